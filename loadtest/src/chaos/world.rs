//! An isolated environment: the harness starts itself a second time in namespaces of its own for processes, network and
//! mounts. Cuts and full disks affect nothing outside, and nothing of them can stay. When the inner process ends,
//! however it does, the kernel kills everything that it has started, frozen processes too, and removes interfaces,
//! addresses, rules and mounts. Nothing has a name outside, so no run finds anything of an earlier one.
//!
//! The inner process ends when its input is closed, which the outer process holds. Ctrl-C and `kill -9` of the outer
//! process therefore end both.

use crate::{limits::CHAOS_MINUTES, process::children::OwnChild};
use std::{
    env,
    io::{self, Read},
    process::{Command, Stdio},
    time::Duration,
};

/// The hidden flag of the inner process.
pub const INSIDE: &str = "--inside";

/// All that a run will do, in small. It fails where something is not allowed or not installed.
const TRY: &str = "set -e; ip link set lo up; mount -t tmpfs none /run; ip netns add try; ip link add br0 type bridge; \
                   ip link add p0 type veth peer name eth0 netns try; nft add table bridge try; nsenter --net=/run/netns/try true";

/// `unshare` with the namespaces. One who is not root gets them as root of a namespace of users, where that is allowed.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::getuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--pid", "--mount", "--mount-proc", "--fork", "--kill-child"]);
    command
}

/// Why there is no such machine here, in words; None: there is.
pub fn missing() -> Option<String> {
    let output = unshare().args(["sh", "-c", TRY]).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stderr);
            Some(told.lines().last().unwrap_or("the try failed without a word").trim().to_owned())
        }
        Err(error) => Some(format!("unshare (util-linux): {error}")),
    }
}

/// Runs this program inside, with the same arguments; what its verdict was. Bounded in time.
pub fn run() -> io::Result<bool> {
    let mut command = unshare();
    command.arg(env::current_exe()?).args(env::args_os().skip(1)).arg(INSIDE);
    command.stdin(Stdio::piped());
    let mut child = OwnChild::start(&mut command)?;
    // Held until it has ended: its end is the end of all.
    let held = child.child().stdin.take();
    let limit = Duration::from_secs(CHAOS_MINUTES * 60);
    let status = child.wait(limit)?;
    drop(held);
    match status.and_then(|status| status.code()) {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        Some(code) => Err(io::Error::other(format!("the scenarios were not run to their end: exit code {code}"))),
        None => {
            Err(io::Error::other(format!("the scenarios did not end within {CHAOS_MINUTES} minutes, or were killed")))
        }
    }
}

/// In the inner process: ends it when the outer one is gone.
pub fn end_with_outer() -> io::Result<()> {
    std::thread::Builder::new().name("outer".into()).spawn(|| {
        let mut byte = [0];
        while matches!(io::stdin().read(&mut byte), Ok(1..)) {}
        std::process::exit(2);
    })?;
    Ok(())
}
