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

/// CPU so far of a process and all that descend from it, those included that ended and were waited for.
pub fn tree_cpu_us(root: u32) -> io::Result<u64> {
    let mut seen: Vec<(u32, u32, u64)> = Vec::new();
    for entry in fs::read_dir("/proc")?.filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that ends meanwhile is in its parent's count.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let number = |n: usize| fields.get(n).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
        let ticks: u64 = (11..=14).map(number).sum();
        seen.push((pid, u32::try_from(number(1)).unwrap_or(0), ticks * (1_000_000 / TICKS_PER_SEC)));
    }
    if !seen.iter().any(|(pid, _, _)| *pid == root) {
        return Err(io::Error::other(format!("no process {root}")));
    }
    let (mut family, mut at) = (vec![root], 0);
    while let Some(parent) = family.get(at).copied() {
        family.extend(seen.iter().filter(|(_, of, _)| *of == parent).map(|(pid, _, _)| *pid));
        at += 1;
    }
    Ok(seen.iter().filter(|(pid, _, _)| family.contains(pid)).map(|(_, _, cpu)| cpu).sum())
}

/// CPU that the whole machine used so far, whoever used it.
pub fn machine_cpu_us() -> io::Result<u64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    // user, nice, system, then idle and waiting for disks, then interrupts; what guests use is in user already.
    let busy = |(n, ticks): (usize, &str)| if matches!(n, 3 | 4) { 0 } else { ticks.parse::<u64>().unwrap_or(0) };
    let ticks: u64 = line.split_whitespace().skip(1).take(7).enumerate().map(busy).sum();
    Ok(ticks * (1_000_000 / TICKS_PER_SEC))
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
        assert!(usage.rss_kb > 100, "{usage:?}");
        assert!(usage.peak_rss_kb >= usage.rss_kb, "{usage:?}");
        assert!(Usage::of(u32::MAX).is_err());
    }

    #[test]
    fn a_family_uses_at_least_what_its_head_does() {
        let here = std::process::id();
        let head = Usage::of(here).unwrap().cpu_us;
        // A child that burns some time and is waited for.
        let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("/bin/sh").args(["-c", burn]).status().unwrap().success());
        let all = tree_cpu_us(here).unwrap();
        assert!(all > head, "{all} and {head}");
        assert!(tree_cpu_us(u32::MAX).is_err());
        assert!(machine_cpu_us().unwrap() >= all);
    }
}
