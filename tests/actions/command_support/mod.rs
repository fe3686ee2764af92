//! For the tests that start real commands: a spec in one line, a run that gathers the log, and looks at `/proc`.
#![allow(dead_code, clippy::unwrap_used)]

use campanile_actions::command::{AttemptEnv, CommandReport, CommandSpec, Shim, run_with};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Long, for commands that use up seconds of CPU on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The binary under test as shim.
pub fn shim() -> Shim {
    Shim::at(env!("CARGO_BIN_EXE_campanile"))
}

pub fn words(words: &[&str]) -> CommandSpec {
    CommandSpec {
        command: words.iter().map(|w| (*w).to_owned()).collect(),
        output_cap_kb: 256,
        ..CommandSpec::default()
    }
}

pub fn shell(script: &str) -> CommandSpec {
    words(&["/bin/sh", "-c", script])
}

/// A token that no other attempt on this machine has.
pub fn attempt() -> AttemptEnv {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let token = u64::from(std::process::id()) << 20 | NEXT.fetch_add(1, Ordering::Relaxed);
    AttemptEnv { job_id: 1, job_name: "test/job".into(), run_id: 2, attempt: 1, token, ..AttemptEnv::default() }
}

pub struct Done {
    pub report: CommandReport,
    pub log: String,
}

pub async fn run(spec: CommandSpec) -> Done {
    run_as(&shim(), spec, attempt()).await
}

pub async fn run_as(shim: &Shim, spec: CommandSpec, attempt: AttemptEnv) -> Done {
    let (_stop, stopped) = watch::channel(false);
    let (log, mut chunks) = mpsc::channel(4);
    let gather = async {
        let mut all = Vec::new();
        while let Some(chunk) = chunks.recv().await {
            all.extend(chunk);
        }
        all
    };
    let both = async { tokio::join!(run_with(shim, spec, attempt, stopped, log), gather) };
    let (report, log) = tokio::time::timeout(PATIENCE, both).await.expect("the command ends in time");
    Done { report, log: String::from_utf8_lossy(&log).into_owned() }
}

/// Living processes whose environment has this token; zombies have none.
pub fn alive(token: u64) -> Vec<i32> {
    let mark = format!("CAMPANILE_TOKEN={token}").into_bytes();
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|b| *b == 0).any(|variable| variable == mark)
        })
        .collect()
}

/// Looks again and again until it holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
