//! On which machine, with which programs.

use serde::Serialize;
use std::{fs, path::Path, process::Command};

/// Facts about the machine and the programs. What cannot be found out is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    pub host: String,
    pub cpu: String,
    pub cpus: usize,
    pub memory_mb: u64,
    pub kernel: String,
    /// What the node says of itself.
    pub server_version: String,
    /// Commit of the repository in which the harness was started.
    pub commit: String,
    pub harness_version: String,
    /// The harness was built for speed.
    pub release: bool,
    /// Date of the run, UTC.
    pub date: String,
}

impl Machine {
    pub fn here(server_version: String) -> Self {
        let uname = rustix::system::uname();
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let after = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':')).map_or(String::new(), |(_, value)| value.trim().to_owned())
        };
        let memory = after(&text("/proc/meminfo"), "MemTotal");
        Self {
            host: uname.nodename().to_string_lossy().into_owned(),
            cpu: after(&text("/proc/cpuinfo"), "model name"),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            memory_mb: memory.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024,
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            server_version,
            commit: commit().unwrap_or_default(),
            harness_version: env!("CARGO_PKG_VERSION").to_owned(),
            release: !cfg!(debug_assertions),
            date: chrono::Utc::now().format("%Y-%m-%d %H:%M:%S UTC").to_string(),
        }
    }
}

/// Only where there is a repository: an operator has none.
fn commit() -> Option<String> {
    if !Path::new("Cargo.toml").exists() {
        return None;
    }
    let git = |args: &[&str]| Command::new("git").args(args).output().ok().filter(|out| out.status.success());
    let hash = String::from_utf8(git(&["rev-parse", "--short", "HEAD"])?.stdout).ok()?.trim().to_owned();
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.stdout.is_empty();
    Some(if changed { format!("{hash} with changes") } else { hash })
}
