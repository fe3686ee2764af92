//! Under FORBID, REPLACE and QUEUE_ONE two bodies of one job never run at once, unless the earlier one's lease was lost.

use crate::checker::{Body, Findings, History, Run, ViolationKind};
use campanile_schema::{job::ConcurrencyPolicy, record::AttemptState};
use std::collections::HashMap;

pub fn check(history: &History, found: &mut Findings<'_>) {
    let mut of_job: HashMap<u64, Vec<&Body>> = HashMap::new();
    for body in history.bodies.values().flatten() {
        let back = history.runs.get(&body.run).is_some_and(Run::is_back);
        let exclusive = history.jobs.get(&body.job).is_some_and(|job| match job.spec.concurrency_policy {
            ConcurrencyPolicy::Forbid | ConcurrencyPolicy::QueueOne => true,
            // Runs of backfills are stopped by no live run, and stop none.
            ConcurrencyPolicy::Replace => !back,
            ConcurrencyPolicy::Allow => false,
        });
        if exclusive {
            of_job.entry(body.job).or_default().push(body);
        }
    }
    for bodies in of_job.values_mut() {
        bodies.sort_by_key(|b| b.start_us);
        // The body so far that ends last and holds its lease.
        let mut holder: Option<&Body> = None;
        for body in bodies.iter().copied() {
            if let Some(before) = holder
                && body.start_us < end_us(history, before)
                && before.run != body.run
            {
                let text = format!("run {} started while run {} of job {} was running", body.run, before.run, body.job);
                found.of_run(ViolationKind::BodiesOverlap, body.job, body.run, body.logical, text);
            }
            if !lost(history, body) && holder.is_none_or(|before| end_us(history, before) <= end_us(history, body)) {
                holder = Some(body);
            }
        }
    }
}

fn end_us(history: &History, body: &Body) -> i64 {
    body.end.map_or_else(|| history.died_us(body.executor), |(at, _)| at)
}

fn lost(history: &History, body: &Body) -> bool {
    history
        .runs
        .get(&body.run)
        .and_then(|run| run.attempt_of(body.token))
        .is_some_and(|a| a.state == AttemptState::Lost)
}
