//! The processes below a shim, and how they are signalled.
//!
//! A process that leaves the command's group or session (double fork, setsid) is still below the shim, because the shim
//! adopts orphans. So a walk down from the shim finds it where a signal to the group does not.

use super::environment::MARK;
use campanile_schema::limits::{COMMAND_SWEEPS, COMMAND_TREE_PROCESSES};
use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};
use std::collections::{BTreeSet, HashMap};

/// All living processes below `root`, without it. A process that is born during the walk can be missed: callers that
/// must get all repeat the walk.
pub(super) fn below(root: Pid) -> Vec<Pid> {
    let mut found = BTreeSet::new();
    let mut open = vec![root.as_raw_nonzero().get()];
    let mut table: Option<HashMap<i32, Vec<i32>>> = None;
    while let Some(parent) = open.pop() {
        let children = match children_file(parent) {
            Some(children) => children,
            // Kernels without the children file: one look at all processes serves the whole walk.
            None => table.get_or_insert_with(by_parent).get(&parent).cloned().unwrap_or_default(),
        };
        for child in children {
            if found.len() < COMMAND_TREE_PROCESSES && found.insert(child) {
                open.push(child);
            }
        }
    }
    found.into_iter().filter(|pid| stat(*pid).is_some_and(|s| !s.zombie)).filter_map(Pid::from_raw).collect()
}

/// Children of a process as `/proc` lists them, one list per thread; `None` when this kernel keeps no such list.
fn children_file(parent: i32) -> Option<Vec<i32>> {
    let mut children = Vec::new();
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else {
        return Some(children);
    };
    for thread in threads.flatten() {
        match std::fs::read_to_string(thread.path().join("children")) {
            Ok(text) => children.extend(text.split_ascii_whitespace().filter_map(|w| w.parse::<i32>().ok())),
            // The thread is gone, or the kernel has no such file.
            Err(_) if thread.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

fn by_parent() -> HashMap<i32, Vec<i32>> {
    let mut table: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in all() {
        if let Some(stat) = stat(pid) {
            table.entry(stat.parent).or_default().push(pid);
        }
    }
    table
}

fn all() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stat {
    zombie: bool,
    parent: i32,
    session: i32,
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The program's name, in brackets, may hold blanks and brackets: the fields begin after the last one.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some(Stat { zombie: matches!(state, "Z" | "X" | "x"), parent, session })
}

/// Sends a signal to the command's group at once (while the command itself is not reaped, so that its number cannot be
/// another's) and to every process below the shim that left the group.
pub(super) fn signal(shim: Pid, group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // ESRCH: the whole group has just ended.
        let _ = kill_process_group(group, signal);
    }
    for pid in below(shim) {
        let in_group = group.is_some() && getpgid(Some(pid)).ok() == group;
        if !in_group {
            let _ = kill_process(pid, signal);
        }
    }
}

/// The last resort, for the executor whose shim died without a word: kills everything of the shim's session and
/// everything that carries the attempt's mark, until a look finds nothing. Returns how many were killed.
pub(super) fn sweep(shim: i32, mark: &str) -> usize {
    let variable = format!("{MARK}={mark}").into_bytes();
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut killed = BTreeSet::new();
    for _ in 0..COMMAND_SWEEPS {
        let before = killed.len();
        for pid in all().into_iter().filter(|pid| *pid != own) {
            let ours = stat(pid).is_some_and(|s| !s.zombie && (s.session == shim || carries(pid, &variable)));
            let hit = ours && Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok());
            if hit {
                killed.insert(pid);
            }
        }
        // Whatever was born during the last look would have been found by this one.
        if killed.len() == before {
            break;
        }
    }
    killed.len()
}

/// Living processes that carry the attempt's mark, count.
pub(super) fn carriers(mark: &str) -> usize {
    let variable = format!("{MARK}={mark}").into_bytes();
    all().into_iter().filter(|pid| stat(*pid).is_some_and(|s| !s.zombie) && carries(*pid, &variable)).count()
}

fn carries(pid: i32, variable: &[u8]) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|all| all.split(|b| *b == 0).any(|v| v == variable))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn stat_lines_with_strange_names() {
        let stat = parse_stat("12 (a) Z 1 (b)) S 7 8 9 0 -1").unwrap();
        assert_eq!(stat, Stat { zombie: false, parent: 7, session: 9 });
        assert!(parse_stat("12 (x) Z 7 8 9").unwrap().zombie);
        assert_eq!(parse_stat("garbage"), None);
    }

    #[test]
    fn both_ways_of_walking_find_a_grandchild() {
        let mut child = std::process::Command::new("/bin/sh").args(["-c", "sleep 100 & wait"]).spawn().unwrap();
        let parent = i32::try_from(child.id()).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let mut grandchildren = Vec::new();
        while grandchildren.is_empty() && std::time::Instant::now() < deadline {
            grandchildren = below(Pid::from_raw(parent).unwrap());
            std::thread::yield_now();
        }
        assert_eq!(grandchildren.len(), 1);
        let grandchild = grandchildren[0].as_raw_nonzero().get();
        assert_eq!(by_parent().get(&parent).unwrap(), &vec![grandchild]);
        kill_process(grandchildren[0], Signal::KILL).unwrap();
        child.wait().unwrap();
    }
}
