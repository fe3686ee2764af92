//! Instants are decided in their order, and where runs may not overlap they begin in the order in which they were made.

use super::{facts::us, lateness::clock_in_doubt};
use crate::checker::{Findings, History, Job, Run, ViolationKind};
use campanile_schema::{job::ConcurrencyPolicy, record::Source};

pub fn check(history: &History, found: &mut Findings<'_>) {
    for job in history.jobs.values() {
        let runs: Vec<&Run> =
            history.runs_of.get(&job.id).into_iter().flatten().filter_map(|id| history.runs.get(id)).collect();
        made(history, job, &runs, found);
        let in_turn = job.versions.iter().all(|version| match version.spec.concurrency_policy {
            ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace | ConcurrencyPolicy::QueueOne => true,
            ConcurrencyPolicy::Allow => false,
        });
        if in_turn {
            begun(history, job, &runs, found);
        }
    }
}

fn broken(job: &Job, first: &Run, second: &Run, what: &str, found: &mut Findings<'_>) {
    let at = |run: &Run| run.logical_time.map_or(run.created_at.0, |at| at.0);
    let text = format!(
        "run {} (for {}) of job {} {what} run {} (for {})",
        second.run_id,
        at(second),
        job.id,
        first.run_id,
        at(first)
    );
    found.of_run(ViolationKind::OrderBroken, job.id, second.run_id, Some(at(second)), text);
}

/// By the node's word: a later instant has no earlier run.
fn made(history: &History, job: &Job, runs: &[&Run], found: &mut Findings<'_>) {
    let mut scheduled: Vec<&Run> = runs.iter().copied().filter(|run| run.source == Source::Schedule).collect();
    scheduled.sort_by_key(|run| run.logical_time.map(|at| at.0));
    for pair in scheduled.windows(2) {
        if let [first, second] = pair
            && second.created_at.0 < first.created_at.0
            // Clocks of a cluster may differ on purpose while its shard moves.
            && !clock_in_doubt(history, job.id, (us(second.created_at.0), us(first.created_at.0)))
        {
            broken(job, first, second, "was made before", found);
        }
    }
}

/// By the executors' word.
fn begun(history: &History, job: &Job, runs: &[&Run], found: &mut Findings<'_>) {
    let again = |run: &Run| job.reopened.iter().any(|again| again.asked.run == run.run_id);
    let first_us = |run: &Run| history.bodies.get(&run.run_id).and_then(|all| all.first()).map(|body| body.start_us);
    let mut begun: Vec<(&Run, i64)> = runs
        .iter()
        .filter(|run| !again(run) && !run.is_back())
        .filter_map(|run| Some((*run, first_us(run)?)))
        .collect();
    begun.sort_by_key(|(run, _)| (run.created_at.0, run.run_id));
    for pair in begun.windows(2) {
        if let [(first, first_us), (second, second_us)] = pair
            && second_us < first_us
        {
            broken(job, first, second, "began before", found);
        }
    }
}
