//! A run may be started again only with a higher token, after its earlier attempt ended for a reason that stands up: it failed,
//! was stopped, or its executor's lease was really lost.

use crate::checker::{Body, Findings, History, Run, ViolationKind};
use campanile_schema::record::AttemptState;

/// Grace for a lease: the node looks at silence in steps, and both sides read a clock, milliseconds.
const LEASE_SLACK_MS: i64 = 1_000;

pub fn check(history: &History, found: &mut Findings<'_>) {
    for bodies in history.bodies.values().filter(|b| b.len() > 1) {
        for (n, pair) in bodies.windows(2).enumerate() {
            let [before, after] = pair else { continue };
            tokens(bodies.get(..=n).unwrap_or_default(), after, found);
            if after.token > before.token
                && let Some(run) = history.runs.get(&after.run)
            {
                reason(history, run, before, after, found);
            }
        }
    }
}

fn tokens(earlier: &[Body], body: &Body, found: &mut Findings<'_>) {
    if earlier.iter().any(|b| b.token == body.token) {
        let text = format!("run {} was started twice with token {}", body.run, body.token);
        found.of_run(ViolationKind::TokenReused, body.job, body.run, body.logical, text);
    } else if let Some(higher) = earlier.iter().find(|b| b.token > body.token) {
        let text = format!("run {} was started with token {} after token {}", body.run, body.token, higher.token);
        found.of_run(ViolationKind::TokenNotHigher, body.job, body.run, body.logical, text);
    }
}

fn reason(history: &History, run: &Run, before: &Body, after: &Body, found: &mut Findings<'_>) {
    // Attempts that the record no longer keeps, or never had, are told elsewhere.
    let (Some(old), Some(new)) = (run.attempt_of(before.token), run.attempt_of(after.token)) else {
        return;
    };
    let what = format!(
        "run {} was started again with token {}; its attempt {} (token {})",
        run.run_id, after.token, old.attempt, old.token
    );
    let Some(ended_at) = old.ended_at.filter(|ended| ended.0 <= new.started_at.0) else {
        let text = format!("{what} is {} and had not ended when the next began", old.state);
        found.of_run(ViolationKind::DoubleStartUnexplained, run.job_id, run.run_id, before.logical, text);
        return;
    };
    let unasked = old.generation == new.generation
        && history.jobs.get(&run.job_id).is_some_and(|job| {
            let mut specs = job.in_force(before.start_us, after.start_us);
            specs.all(|spec| !spec.idempotent)
                && !job.confirmed.iter().any(|c| c.asked.run == run.run_id && c.asked.sent_us <= after.start_us)
        });
    match old.state {
        AttemptState::Failed | AttemptState::Timeout if unasked => {
            let text = format!("{what} is {} and the job is not idempotent", old.state);
            found.of_run(ViolationKind::NotIdempotentAgain, run.job_id, run.run_id, before.logical, text);
        }
        AttemptState::Failed | AttemptState::Timeout | AttemptState::Canceled | AttemptState::NotStarted => {
            found.counts.restarts_explained += 1;
        }
        AttemptState::Success | AttemptState::Running => {
            if new.generation > old.generation {
                found.counts.restarts_explained += 1;
            } else {
                let text = format!("{what} is {}", old.state);
                found.of_run(ViolationKind::DoubleStartUnexplained, run.job_id, run.run_id, before.logical, text);
            }
        }
        AttemptState::Lost => {
            if !lease_was_lost(history, before, ended_at.0) {
                let text = format!(
                    "{what} is LOST, but executor {} lived and no outage lasted a lease",
                    executor_name(history, before)
                );
                found.of_run(ViolationKind::LostWithoutCause, run.job_id, run.run_id, before.logical, text);
            } else if unasked {
                let text = format!("{what} is LOST and the job is not idempotent");
                found.of_run(ViolationKind::NotIdempotentAgain, run.job_id, run.run_id, before.logical, text);
            } else {
                found.counts.restarts_explained += 1;
            }
        }
    }
}

/// The executor died before the attempt was given up, or nobody could hear it for a lease, or whoever heard how it ended forgot it.
pub(super) fn lease_was_lost(history: &History, body: &Body, lost_ms: i64) -> bool {
    let lost_us = lost_ms.saturating_add(LEASE_SLACK_MS).saturating_mul(1000);
    let lease_us =
        history.meta.as_ref().map_or(campanile_schema::limits::LEASE_MS, |m| m.lease_ms).saturating_sub(LEASE_SLACK_MS)
            * 1000;
    history.died_us(body.executor) <= lost_us
        || stood_still(history, body, lost_us, lease_us)
        || unheard(history, body, lost_us, lease_us)
        || history
            .outages
            .iter()
            .any(|o| o.to_us.saturating_sub(o.from_us) >= lease_us && o.from_us <= lost_us && o.to_us >= body.start_us)
        || body.end.is_some_and(|(end_us, _)| history.outages.iter().any(|o| o.restored && o.holds(end_us)))
}

/// The executor stood still for a lease before the attempt was given up.
fn stood_still(history: &History, body: &Body, lost_us: i64, lease_us: i64) -> bool {
    let frozen = history.executors.get(body.executor).map(|e| e.frozen_us.as_slice()).unwrap_or_default();
    frozen
        .iter()
        .any(|(from, to)| to.saturating_sub(*from) >= lease_us && from + lease_us <= lost_us && *to >= body.start_us)
}

/// The owner of the body's shard could not hear the executor for a lease before the attempt was given up.
fn unheard(history: &History, body: &Body, lost_us: i64, lease_us: i64) -> bool {
    let times = history.executors.get(body.executor).map(|e| e.unheard.as_slice()).unwrap_or_default();
    times.iter().any(|time| {
        time.is_about(history.shard_of(body.job))
            && time.to_us.saturating_sub(time.from_us) >= lease_us
            && time.from_us + lease_us <= lost_us
            && time.to_us >= body.start_us
    })
}

fn executor_name<'a>(history: &'a History, body: &Body) -> &'a str {
    history.executors.get(body.executor).map_or("?", |e| e.name.as_str())
}
