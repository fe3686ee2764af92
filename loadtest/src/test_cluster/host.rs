//! The host on which the processes of a cluster run.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The first three numbers of all addresses.
pub const PREFIX: &str = "10.77.0.";
/// In front of the names of namespaces; the host's number follows.
pub const NAMESPACE: &str = "h";

/// Where a process lives: on this machine's loopback, or in a namespace.
#[derive(Clone, Debug)]
pub struct Host {
    /// IP.
    pub address: String,
    namespace: Option<PathBuf>,
}

impl Host {
    pub fn loopback() -> Self {
        Self { address: "127.0.0.1".to_owned(), namespace: None }
    }

    /// In the namespace of this number, see `chaos/net.rs`.
    pub fn of(number: u8) -> Self {
        Self {
            address: format!("{PREFIX}{number}"),
            namespace: Some(PathBuf::from(format!("/run/netns/{NAMESPACE}{number}"))),
        }
    }

    /// A command that runs there; its process is the program's own.
    pub fn command(&self, program: &Path) -> Command {
        match &self.namespace {
            None => Command::new(program),
            Some(namespace) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net={}", namespace.display())).arg(program);
                command
            }
        }
    }
}

/// Runs a tool of the system; its own words when it fails.
pub fn run(program: &str, args: &[&str]) -> io::Result<()> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program} {}: {}", args.join(" "), told.trim())))
}
