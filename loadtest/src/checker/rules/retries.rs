//! Between a failure and the next attempt lies the delay that the job's policy says, neither less nor much more.

use super::{
    causes::{body_of, stopped_by_executor},
    facts::us,
    lateness::held_back,
};
use crate::checker::{Findings, History, Job, Run, ViolationKind};
use campanile_schema::{
    job::{Backoff, RetryPolicy},
    limits::ATTEMPTS_KEPT,
    record::{AttemptState, RunState},
};

/// Delays are stored in whole milliseconds, and clocks are read one after the other, microseconds.
const ROUNDING_US: i64 = 2_000;
/// A delay that has been decided may be this much longer than what the policy says, microseconds: the body's end has to be heard.
const HEARD_US: i64 = 10_000_000;

pub fn check(history: &History, found: &mut Findings<'_>) {
    for run in history.runs.values() {
        if let Some(job) = history.jobs.get(&run.job_id)
            && run.attempt_count as usize <= ATTEMPTS_KEPT
        {
            delays(history, job, run, found);
        }
    }
}

/// Shortest and longest delay after the `tried`-th attempt, microseconds.
fn delay_us(policy: &RetryPolicy, tried: u32) -> (i64, i64) {
    let grown = match policy.backoff {
        Backoff::Fixed => policy.base_delay_sec,
        Backoff::Exponential => policy.base_delay_sec * 2_f64.powi(tried.saturating_sub(1).min(1_000) as i32),
    };
    let delay = grown.min(policy.max_delay_sec);
    let us = |factor: f64| (delay * factor * 1e6).max(0.0) as i64;
    (us(1.0 - policy.jitter), us(1.0 + policy.jitter))
}

fn delays(history: &History, job: &Job, run: &Run, found: &mut Findings<'_>) {
    let latest_us = history.meta.as_ref().and_then(|meta| meta.latest_ms).map(us);
    // Attempts before, without and with those that a loss or an orderly stop of an executor took: they may not count.
    let (mut counted, mut tried, mut generation) = (0, 0, 0);
    for (n, attempt) in run.attempts.iter().enumerate() {
        if attempt.generation != generation {
            (counted, tried, generation) = (0, 0, attempt.generation);
        }
        match attempt.state {
            AttemptState::NotStarted | AttemptState::Running => continue,
            // They are repeated at once, or not at all.
            AttemptState::Success | AttemptState::Canceled | AttemptState::Lost => {
                tried += 1;
                continue;
            }
            AttemptState::Failed if stopped_by_executor(history, run, attempt.token) => {
                tried += 1;
                continue;
            }
            AttemptState::Failed | AttemptState::Timeout => (counted, tried) = (counted + 1, tried + 1),
        }
        let Some((ended_us, _)) = body_of(history, run, attempt.token).and_then(|body| body.end) else { continue };
        let next = run.attempts.iter().skip(n + 1).find(|a| a.generation == generation);
        let next_us = match (next, run.state, run.next_retry_at) {
            (Some(next), _, _) => body_of(history, run, next.token).map_or(i64::MAX, |body| body.start_us),
            (None, RunState::RetryWait, Some(at)) => us(at.0),
            (None, _, _) => continue,
        };
        if next_us == i64::MAX {
            continue;
        }
        let specs: Vec<_> = job.in_force(us(run.created_at.0), next_us).collect();
        // A person says when a run of theirs goes on.
        if specs.iter().any(|spec| !spec.idempotent) {
            continue;
        }
        let of_specs = specs.iter().map(|spec| {
            let (few, many) = (delay_us(&spec.retry_policy, counted), delay_us(&spec.retry_policy, tried));
            (few.0.min(many.0), few.1.max(many.1))
        });
        let (least, most) = of_specs.fold((i64::MAX, 0), |(least, most), (low, high)| (least.min(low), most.max(high)));
        if next_us.saturating_add(ROUNDING_US) < ended_us.saturating_add(least) {
            wrong(job, run, (ended_us, next_us), format!("sooner than {} ms", least / 1000), found);
        }
        let Some(latest_us) = latest_us else { continue };
        let due_us = ended_us.saturating_add(most);
        let in_time = match next.and_then(|next| body_of(history, run, next.token)) {
            Some(body) => {
                next_us <= due_us.saturating_add(latest_us) || held_back(history, job, run, body, ended_us, latest_us)
            }
            None => next_us <= due_us.saturating_add(latest_us + HEARD_US),
        };
        if !in_time {
            wrong(job, run, (ended_us, next_us), format!("later than {} ms", most / 1000), found);
        }
    }
}

fn wrong(job: &Job, run: &Run, (ended_us, next_us): (i64, i64), what: String, found: &mut Findings<'_>) {
    let text = format!("run {} was tried again {} ms after a failure, {what}", run.run_id, (next_us - ended_us) / 1000);
    found.of_run(ViolationKind::BackoffNotKept, job.id, run.run_id, Some(next_us / 1000), text);
}
