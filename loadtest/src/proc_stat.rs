//! What a process used, from `/proc`.

use serde::Serialize;
use std::{fs, io, path::Path};

/// Linux counts CPU time for user space in hundredths of a second.
const TICKS_PER_SEC: u64 = 100;

/// Use of one process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub cpu_us: u64,
    pub rss_kb: u64,
    /// Highest RSS so far.
    pub peak_rss_kb: u64,
    /// Bytes that the process caused to be written to storage.
    pub write_bytes: u64,
}

impl Usage {
    pub fn of(pid: u32) -> io::Result<Self> {
        let dir = Path::new("/proc").join(pid.to_string());
        let stat = fs::read_to_string(dir.join("stat"))?;
        // The command's name may hold anything; the fields begin after its last parenthesis.
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks = |n: usize| fields.get(n).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
        let status = fs::read_to_string(dir.join("status"))?;
        // Another user's process hides its I/O; the rest is still worth having.
        let io = fs::read_to_string(dir.join("io")).unwrap_or_default();
        Ok(Self {
            cpu_us: (ticks(11) + ticks(12)) * (1_000_000 / TICKS_PER_SEC),
            rss_kb: number_after(&status, "VmRSS:"),
            peak_rss_kb: number_after(&status, "VmHWM:"),
            write_bytes: number_after(&io, "write_bytes:"),
        })
    }
}

fn number_after(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

/// Bytes of all files below a directory; files that vanish meanwhile count nothing.
pub fn dir_bytes(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => dir_bytes(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.rss_kb > 100 && usage.peak_rss_kb >= usage.rss_kb, "{usage:?}");
        assert!(Usage::of(u32::MAX).is_err());
    }
}
