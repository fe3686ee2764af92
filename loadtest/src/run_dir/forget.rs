//! Leaves out of a run directory what a node did after the backup that another one was restored from.
//!
//! The restored node promised nothing of it. What stays: every call that was acknowledged before the backup began or after the
//! restore; every body whose attempt the restored node knows. A call in between may or may not be in the archive.

use crate::run_dir::lines::{CallEvent, CallerLine, ExecutorEvent, ExecutorLine, FaultEvent, FaultLine, Verb};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt, fs, io,
    path::{Path, PathBuf},
};

/// From the moment the backup was asked for, to when the restored node was ready.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    pub from_us: i64,
    pub to_us: i64,
}

impl Between {
    fn holds(self, t_us: i64) -> bool {
        t_us >= self.from_us && t_us < self.to_us
    }
}

/// What was left out.
#[derive(Debug, Default)]
pub struct LeftOut {
    pub calls: u64,
    pub bodies: u64,
    /// Runs of jobs that are not idempotent, whose body ran there and then again without a person's word.
    pub again: BTreeSet<u64>,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "left out, as of after the backup: {} acknowledgements, {} bodies; of them run again though not idempotent: {:?}",
            self.calls, self.bodies, self.again
        )
    }
}

/// What of a `RunView` tells which attempts are known.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportedRun {
    run_id: u64,
    attempts: Vec<KnownAttempt>,
}
#[derive(serde::Deserialize)]
struct KnownAttempt {
    token: u64,
}

/// Rewrites the files of callers, executors and faults.
pub fn forget(dir: &Path, between: Between) -> io::Result<LeftOut> {
    let mut left_out = LeftOut::default();
    let runs: Vec<ReportedRun> = read(&dir.join("runs.jsonl"))?;
    let known: HashMap<u64, HashSet<u64>> =
        runs.into_iter().map(|run| (run.run_id, run.attempts.iter().map(|a| a.token).collect())).collect();
    let mut not_idempotent = HashSet::new();
    let mut confirmed = HashSet::new();
    for path in files(dir, "caller-")? {
        let mut lines: Vec<CallerLine> = read(&path)?;
        let specs: HashMap<u64, bool> =
            lines.iter().filter_map(|line| Some((line.call, line.spec.as_ref()?.idempotent))).collect();
        for line in &mut lines {
            if line.verb == Verb::Create && line.event == CallEvent::Ack && specs.get(&line.call) == Some(&false) {
                not_idempotent.extend(line.job.map(|job| job.0));
            }
            if line.verb == Verb::Confirm {
                confirmed.extend(line.run.map(|run| run.0));
            }
            if line.event == CallEvent::Ack && between.holds(line.t_us) {
                left_out.calls += 1;
                line.event = CallEvent::Unknown;
                line.run = None;
                // The restored node may give its id to another one.
                line.backfill.iter_mut().filter(|_| line.verb == Verb::Backfill).for_each(|of| of.id = None);
            }
        }
        write(&path, &lines)?;
    }
    let mut gone: HashSet<u64> = HashSet::new();
    let mut later: HashSet<u64> = HashSet::new();
    for path in files(dir, "executor-")? {
        let lines: Vec<ExecutorLine> = read(&path)?;
        let mut dropped: HashSet<(u64, u64)> = HashSet::new();
        let mut kept = Vec::new();
        for line in lines {
            let attempt = (line.run, line.token);
            let unknown = known.get(&line.run).is_none_or(|tokens| !tokens.contains(&line.token));
            if line.event == ExecutorEvent::Start {
                if between.holds(line.t_us) && unknown {
                    left_out.bodies += 1;
                    dropped.insert(attempt);
                    if not_idempotent.contains(&line.job) {
                        gone.insert(line.run);
                    }
                } else if line.t_us >= between.to_us {
                    later.insert(line.run);
                }
            }
            if !dropped.contains(&attempt) {
                kept.push(line);
            }
        }
        write(&path, &kept)?;
    }
    left_out.again = gone.intersection(&later).filter(|run| !confirmed.contains(run)).copied().collect();
    let path = dir.join("faults.jsonl");
    let mut faults: Vec<FaultLine> = read(&path)?;
    // What is restored stood still from the backup on.
    for fault in faults.iter_mut().filter(|f| f.event == FaultEvent::NodeKilled && between.holds(f.t_us)) {
        fault.t_us = between.from_us;
    }
    write(&path, &faults)?;
    Ok(left_out)
}

fn files(dir: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if name.starts_with(prefix) && name.ends_with(".jsonl") {
            found.push(path);
        }
    }
    Ok(found)
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let text = fs::read_to_string(path)?;
    text.lines().map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
}

fn write<T: Serialize>(path: &Path, lines: &[T]) -> io::Result<()> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    fs::write(path, text)
}
