//! Compares the ledger with the executors' files: an instant that was skipped, missed or removed by daylight saving has
//! no body.

use super::facts::{entries, last_of};
use crate::checker::{Findings, History, ViolationKind};
use campanile_schema::{event::Outcome, record::Source};
use std::collections::HashMap;

pub fn check(history: &History, found: &mut Findings<'_>) {
    // (Instant, run) of each job's bodies. Runs by hand have a time of their own, and instants are none of theirs.
    let mut ran: HashMap<u64, Vec<(i64, u64)>> = HashMap::new();
    for body in history.bodies.values().flatten() {
        // A run that the API does not show may be one of these too.
        let scheduled = history.runs.get(&body.run).is_none_or(|run| run.source == Source::Schedule);
        if let (true, Some(logical)) = (scheduled, body.logical) {
            ran.entry(body.job).or_default().push((logical, body.run));
        }
    }
    for (id, mut bodies) in ran {
        let Some(job) = history.jobs.get(&id) else { continue };
        bodies.sort_unstable();
        bodies.dedup();
        for entry in entries(job) {
            match entry.outcome {
                Outcome::Skipped | Outcome::Missed | Outcome::DstSkipped => {}
                Outcome::Fired | Outcome::FiredLate | Outcome::Coalesced => continue,
            }
            let first = bodies.partition_point(|(at, _)| *at < entry.logical_time.0);
            for (at, run) in bodies.iter().skip(first).take_while(|(at, _)| *at <= last_of(entry)) {
                let text = format!("the ledger of job {id} says {} for {at}, and run {run} ran for it", entry.outcome);
                found.of_run(ViolationKind::SkippedYetRan, id, *run, Some(*at), text);
            }
        }
    }
}
