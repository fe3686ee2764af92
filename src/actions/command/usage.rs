//! What a command and all that it started used: time and memory.
//!
//! **Time** is the kernel's sum over all children. **Memory** is not as simple: the kernel's largest resident size of a process begins
//! with what the process had before it became the command, a copy of its launcher. So the launcher is forked (a copy of the few pages
//! that it has written) and not started by a call that lends it the shim's whole memory, and what lies below the launcher's own size
//! is not taken from there: it is the peak of the command itself as `/proc` tells it, looked at again and again while it lives.

use super::wire::Usage;
use rustix::process::Pid;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// From one look at the command's memory to the next: at first, and at most. Each is twice as long as the one before.
const FIRST_LOOK: Duration = Duration::from_micros(500);
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// Pages that a launcher touches between its start and the command's, KiB.
const LAUNCHING_KB: u64 = 1_024;

/// Peak of the command's own memory.
#[derive(Clone, Default)]
pub(super) struct Peak(Arc<AtomicU64>);

impl Peak {
    /// Looks until the process has ended. For a thread of its own.
    pub(super) fn watch(&self, shim: Pid, command: Pid) {
        let mut pause = FIRST_LOOK;
        while let Some(kb) = own_peak_kb(shim, command) {
            self.0.fetch_max(kb, Ordering::Relaxed);
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_LOOK);
        }
    }

    /// What the whole tree used, all of it reaped. `launcher_kb`: what the launcher may have had before it became the command.
    pub(super) fn usage(&self, launcher_kb: u64) -> Usage {
        use nix::sys::{resource, time::TimeValLike};
        let seen = Some(self.0.load(Ordering::Relaxed)).filter(|kb| *kb > 0);
        let Ok(usage) = resource::getrusage(resource::UsageWho::RUSAGE_CHILDREN) else {
            return Usage { cpu_ms: 0, max_rss_kb: seen };
        };
        let cpu = (usage.user_time() + usage.system_time()).num_microseconds();
        let largest = u64::try_from(usage.max_rss()).ok().filter(|kb| *kb > launcher_kb);
        Usage { cpu_ms: u64::try_from(cpu).unwrap_or(0) / 1000, max_rss_kb: largest.max(seen) }
    }
}

/// What a launcher has at most before it becomes the command, KiB: the pages that this process has written, or, when it becomes this
/// program once more to set limits, all that this process has.
pub(super) fn launcher_kb(confined: bool) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    // A program that sets limits has a little more than one that waits.
    let own = if confined { field(&status, "VmHWM:").map(|kb| kb + kb / 4) } else { field(&status, "RssAnon:") };
    own.map_or(u64::MAX, |kb| kb + LAUNCHING_KB)
}

/// The largest resident size of a child that lives; a number that is another process's by now has another parent.
fn own_peak_kb(shim: Pid, command: Pid) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", command.as_raw_nonzero())).ok()?;
    let parent = field(&status, "PPid:")?;
    (i64::try_from(parent) == Ok(i64::from(shim.as_raw_nonzero().get()))).then(|| field(&status, "VmHWM:")).flatten()
}

fn field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_ascii_whitespace().next()?.parse().ok()
}
