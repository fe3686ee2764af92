//! A body begins soon after its instant, by what executors wrote. `Meta::latest_ms` says how soon; an outage, a pause of the tenant, a run
//! that it had to wait for, or an executor that was lost may hold it back, and then it begins as soon after that.
//!
//! What the node says of the moment in which it made a run must agree with it.

use super::facts::{jitter_us, us};
use crate::checker::{Attempt, Body, Findings, History, Job, Run, ViolationKind};
use campanile_schema::{
    job::ConcurrencyPolicy,
    limits::LEASE_MS,
    record::{AttemptState, Source},
};

pub fn check(history: &History, found: &mut Findings<'_>) {
    let latest_us = history.meta.as_ref().and_then(|meta| meta.latest_ms).map(us);
    for run in history.runs.values() {
        let Some(job) = history.jobs.get(&run.job_id) else { continue };
        let first = history.bodies.get(&run.run_id).and_then(|bodies| bodies.first());
        if let Some(body) = first {
            made_as_told(history, job, run, body, found);
        }
        asked_as_told(history, job, run, found);
        let (Some(latest_us), Some(body), Some(at)) = (latest_us, first, run.logical_time) else { continue };
        if run.source == Source::Schedule && body.generation == 1 {
            late(history, job, run, body, (us(at.0), latest_us), found);
        }
    }
}

fn late(
    history: &History,
    job: &Job,
    run: &Run,
    body: &Body,
    (due_us, latest_us): (i64, i64),
    found: &mut Findings<'_>,
) {
    let from_us = due_us.saturating_add(jitter_us(job));
    if body.start_us <= from_us.saturating_add(latest_us) || held_back(history, job, run, body, due_us, latest_us) {
        return;
    }
    let text = format!(
        "run {} started {} ms after its instant {}, and nothing that was written down held it back",
        run.run_id,
        (body.start_us - due_us) / 1000,
        due_us / 1000
    );
    found.of_run(ViolationKind::StartedLate, job.id, run.run_id, Some(due_us / 1000), text);
}

/// Something that ended at most `latest_us` before the body began kept it from beginning since `from_us`.
pub(super) fn held_back(history: &History, job: &Job, run: &Run, body: &Body, from_us: i64, latest_us: i64) -> bool {
    let start_us = body.start_us;
    let until = |begin_us: i64, end_us: i64| {
        begin_us <= start_us && end_us >= from_us && end_us.saturating_add(latest_us) >= start_us
    };
    let shard = history.shard_of(job.id);
    let meta = history.meta.as_ref();
    // Runs of a limited tenant wait for each other; `quotas` judges them.
    let limited = meta.is_some_and(|meta| {
        meta.quotas.contains_key(&job.spec.tenant_id) || meta.rates.contains_key(&job.spec.tenant_id)
    });
    let lease_us = us(meta.map_or(LEASE_MS, |meta| meta.lease_ms));
    // An earlier attempt of it went to an executor that then could not be heard.
    let no_more =
        |a: &&Attempt| matches!(a.state, AttemptState::Lost | AttemptState::NotStarted | AttemptState::Timeout);
    let before = run.attempts.iter().filter(|a| a.token < body.token).filter(no_more);
    let lost_before = before.filter_map(|a| history.executor_of(a)).any(|executor| {
        executor.killed_us.is_some_and(|killed| until(killed, lease_over_us(history, killed, lease_us)))
            || executor.frozen_us.iter().any(|(from, to)| until(*from, *to) || until(*from, from + lease_us))
            || executor.unheard.iter().any(|time| time.is_about(shard) && until(time.from_us, time.to_us))
    });
    limited
        || lost_before
        || history.outages.iter().any(|outage| until(outage.from_us, outage.to_us))
        || history.disturbances.iter().any(|d| d.is_about(shard) && until(d.from_us, d.to_us))
        || job.pauses_above.iter().any(|(pause, _)| until(pause.sent_us, pause.over_us()))
        || behind_another(history, job, run, &until)
}

/// When a node counts an executor as lost that was heard last at `heard_us`. Its leases begin anew at each start of the node.
fn lease_over_us(history: &History, heard_us: i64, lease_us: i64) -> i64 {
    let outages = history.outages.iter().filter(|outage| outage.to_us >= heard_us);
    outages.fold(heard_us.saturating_add(lease_us), |over_us, outage| {
        if outage.from_us <= over_us { over_us.max(outage.to_us.saturating_add(lease_us)) } else { over_us }
    })
}

/// It waited its turn: another run of the job, made before it, was still active.
fn behind_another(history: &History, job: &Job, run: &Run, until: &impl Fn(i64, i64) -> bool) -> bool {
    let one_at_a_time = job.versions.iter().any(|version| match version.spec.concurrency_policy {
        ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace | ConcurrencyPolicy::QueueOne => true,
        ConcurrencyPolicy::Allow => false,
    });
    one_at_a_time
        && history.runs_of.get(&job.id).into_iter().flatten().filter_map(|id| history.runs.get(id)).any(|other| {
            let ended_us = other.ended_at.map_or(i64::MAX / 2, |at| us(at.0) + 999);
            other.run_id != run.run_id
                && other.created_at.0 <= run.created_at.0
                && until(us(other.created_at.0), ended_us)
        })
}

/// A clock of a cluster may be wrong on purpose; then what a node says of time is not compared.
pub(super) fn clock_in_doubt(history: &History, job: u64, (from_us, to_us): (i64, i64)) -> bool {
    let shard = history.shard_of(job);
    history.disturbances.iter().any(|d| d.is_about(shard) && d.from_us <= to_us && d.to_us >= from_us)
}

fn made_as_told(history: &History, job: &Job, run: &Run, body: &Body, found: &mut Findings<'_>) {
    if clock_in_doubt(history, job.id, (body.start_us, body.start_us)) {
        return;
    }
    let untrue = |what: String, found: &mut Findings<'_>| {
        let text = format!("run {} is said to have been made at {}, {what}", run.run_id, run.created_at.0);
        found.of_run(ViolationKind::CreatedAtUntrue, job.id, run.run_id, Some(run.created_at.0), text);
    };
    if us(run.created_at.0) > body.start_us {
        untrue(format!("and its body began at {} us", body.start_us), found);
    }
    if let Some(at) = run.logical_time.filter(|at| run.source == Source::Schedule && at.0 > run.created_at.0) {
        untrue(format!("before its instant {}", at.0), found);
    }
}

/// A run by hand is made between the request and its answer.
fn asked_as_told(history: &History, job: &Job, run: &Run, found: &mut Findings<'_>) {
    if run.source != Source::Manual {
        return;
    }
    let Some(asked) = job.triggers.iter().find(|t| Some(t.key.as_str()) == run.key.as_deref() && t.refused.is_none())
    else {
        return;
    };
    let (made_us, doubt) = (us(run.created_at.0), clock_in_doubt(history, job.id, (asked.sent_us, asked.sent_us)));
    if !doubt && (made_us + 999 < asked.sent_us || asked.ack_us.is_some_and(|ack_us| made_us > ack_us)) {
        let text = format!(
            "run {} is said to have been made at {}; it was asked for at {} us and acknowledged at {:?} us",
            run.run_id, run.created_at.0, asked.sent_us, asked.ack_us
        );
        found.of_run(ViolationKind::CreatedAtUntrue, job.id, run.run_id, Some(run.created_at.0), text);
    }
}
