//! What executors recorded when a node was killed or stopped in order: how late instants began that were due after it,
//! with those of its own shards apart.

use super::{metrics::Counters, report::TakeOver};
use crate::{
    load::latency::{HIGHEST_US, Percentiles, percentiles},
    run_dir::lines::{ExecutorEvent, ExecutorLine},
};
use hdrhistogram::Histogram;
use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    io::{self, BufRead, BufReader},
    ops::Range,
    path::Path,
};

/// A body that begins so late was held up, microseconds: by the take-over, or by the work that it makes.
const HELD_UP_US: i64 = 250_000;

/// The node that left.
pub struct DepartedNode {
    pub node: String,
    pub shards: Vec<u16>,
    /// When it was killed or asked to stop, microseconds since 1970 UTC.
    pub at_us: i64,
    /// From then until it had ended, milliseconds; None: it was gone.
    pub stopped_ms: Option<i64>,
}

/// First attempts that began.
struct Began {
    shard: u16,
    due_ms: i64,
    at_us: i64,
}

pub fn figures(
    departed: DepartedNode,
    window: &Range<i64>,
    dir: &Path,
    (before, after): (&Counters, &Counters),
) -> io::Result<TakeOver> {
    let from_ms = departed.at_us.div_euclid(1000);
    let mut began = began(dir, window.start * 1000..window.end * 1000)?;
    let started = began.len() as u64;
    began.retain(|body| body.due_ms > from_ms);
    let orphans: BTreeSet<u16> = departed.shards.iter().copied().collect();
    let is_orphan = |body: &&Began| orphans.contains(&body.shard);
    let lateness = |body: &Began| body.at_us - body.due_ms * 1000;
    // From then to the first body of each shard that was due after it.
    let mut again = HashMap::<u16, i64>::new();
    for body in began.iter().filter(is_orphan) {
        again.entry(body.shard).and_modify(|at| *at = body.at_us.min(*at)).or_insert(body.at_us);
    }
    let quiet_us = began.iter().filter(|body| lateness(body) > HELD_UP_US).map(|body| body.at_us).max();
    let rise = |name: &str| (after.sum(name) - before.sum(name)).max(0.0) as u64;
    Ok(TakeOver {
        node: departed.node,
        stopped_ms: departed.stopped_ms,
        shards: departed.shards.len() as u64,
        orphans: share(began.iter().filter(is_orphan).map(lateness)),
        others: share(began.iter().filter(|body| !is_orphan(body)).map(lateness)),
        fires_again: share(again.values().map(|at| at - departed.at_us)),
        never_again: orphans.iter().filter(|shard| !again.contains_key(shard)).count() as u64,
        quiet_ms: quiet_us.map_or(0.0, |at| (at - departed.at_us) as f64 / 1000.0),
        started,
        shards_taken: rise("campanile_shards_taken_total"),
        read_ahead: rise("campanile_shards_read_ahead_total"),
        replayed_frames: rise("campanile_replayed_frames_total"),
        replayed_rows: rise("campanile_replayed_rows_total"),
        replayed_bytes: rise("campanile_replayed_bytes_total"),
        snapshot_bytes: rise("campanile_snapshot_bytes_read_total"),
    })
}

fn share(values_us: impl Iterator<Item = i64>) -> Percentiles {
    // It grows with its values. More digits than it can have are the only thing that is refused.
    let mut all = Histogram::<u64>::new(3).unwrap_or_else(|_| unreachable!("3 digits are allowed"));
    for value in values_us {
        let _ = all.record(value.max(1).unsigned_abs().min(HIGHEST_US));
    }
    percentiles(&all)
}

/// The first body of each run that was due in the time, milliseconds.
fn began(dir: &Path, due: Range<i64>) -> io::Result<Vec<Began>> {
    let mut first = HashMap::<u64, Began>::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("executor-") || !name.ends_with(".jsonl") {
            continue;
        }
        for line in BufReader::with_capacity(1 << 20, File::open(&path)?).lines() {
            // A last line may be torn.
            let Ok(line) = serde_json::from_str::<ExecutorLine>(&line?) else { continue };
            let Some(due_ms) = line.logical.filter(|at| due.contains(at)) else { continue };
            if line.event == ExecutorEvent::Start {
                let body = Began { shard: line.shard, due_ms, at_us: line.t_us };
                let known = first.entry(line.run).or_insert(Began { at_us: i64::MAX, ..body });
                known.at_us = known.at_us.min(line.t_us);
            }
        }
    }
    Ok(first.into_values().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::run_dir::record::Record;
    use std::time::Duration;

    #[test]
    fn orphans_are_told_apart_and_a_repeated_body_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let record = Record::open(&dir.path().join("executor-1.jsonl"), Duration::ZERO).unwrap();
        let body = |run, shard, due_ms: i64, late_us: i64| ExecutorLine {
            event: ExecutorEvent::Start,
            run,
            shard,
            logical: Some(due_ms),
            t_us: due_ms * 1000 + late_us,
            attempt: 1,
            ..ExecutorLine::up()
        };
        // Killed at 10 s; shard 1 is the dead node's, and 3 is never heard of again.
        for line in [
            body(1, 1, 9_999, 9_000_000),
            body(2, 1, 10_500, 3_000_000),
            body(2, 1, 10_500, 5_000_000),
            body(3, 1, 13_000, 1_000_000),
            body(4, 2, 10_500, 2_000),
            body(5, 2, 20_000, 2_000),
        ] {
            record.body(&line);
        }
        record.close().unwrap();
        let departed = DepartedNode { node: "n2".to_owned(), shards: vec![1, 3], at_us: 10_000_000, stopped_ms: None };
        let counters = Counters::default();
        let figures = figures(departed, &(10..20), dir.path(), (&counters, &counters)).unwrap();
        assert_eq!((figures.orphans.count, figures.others.count, figures.never_again, figures.started), (2, 1, 1, 3));
        assert!((figures.orphans.max_ms - 3_000.0).abs() < 5.0, "{figures:?}");
        assert!((figures.others.max_ms - 2.0).abs() < 0.1, "{figures:?}");
        assert!((figures.fires_again.max_ms - 3_500.0).abs() < 5.0, "{figures:?}");
        assert!((figures.quiet_ms - 4_000.0).abs() < 1.0, "{figures:?}");
    }
}
