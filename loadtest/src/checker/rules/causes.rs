//! Each end has a cause that somebody other than the node wrote down: a body that said so, a call, a newer run under REPLACE, a time that
//! was over, an executor that was lost. Attempts are made until the policy's last one, and what failed for good is a dead letter.

use super::{facts::us, repeats::lease_was_lost, starts::lines_may_be_lost};
use crate::{
    checker::{Attempt, Body, Findings, History, Job, Run, ViolationKind},
    workload::dags::graph_of,
};
use campanile_schema::{
    job::{ConcurrencyPolicy, JobSpec},
    limits::ATTEMPTS_KEPT,
    record::{AttemptState, RunState, Source},
    view::ConfirmDecision,
};

/// The clocks of a node and of an executor are read at moments that differ by this much, microseconds.
const READING_US: i64 = 50_000;
/// An assignment that was sent so long before its connection broke may not have arrived, microseconds.
const IN_FLIGHT_US: i64 = 1_000_000;

pub fn check(history: &History, found: &mut Findings<'_>) {
    for run in history.runs.values() {
        let Some(job) = history.jobs.get(&run.job_id) else { continue };
        for attempt in &run.attempts {
            attempt_end(history, job, run, attempt, found);
        }
        // `dag_ends` says how a run of a DAG must end, which has no attempts.
        if graph_of(&job.spec).is_none() || run.state == RunState::Canceled {
            run_end(history, job, run, found);
        }
        dead_letter(job, run, found);
        generations(history, job, run, found);
    }
}

/// Definitions that may have been in force from the run's making to `to_us`.
pub(super) fn specs<'a>(job: &'a Job, run: &Run, to_us: i64) -> impl Iterator<Item = &'a JobSpec> + use<'a> {
    job.in_force(us(run.created_at.0), to_us)
}

pub(super) fn body_of<'a>(history: &'a History, run: &Run, token: u64) -> Option<&'a Body> {
    history.bodies.get(&run.run_id)?.iter().find(|body| body.token == token)
}

/// The body did not end by itself: its executor stopped it, and says so.
pub(super) fn stopped_by_executor(history: &History, run: &Run, token: u64) -> bool {
    let end = body_of(history, run, token).and_then(|body| body.end);
    end.is_some_and(|(_, outcome)| outcome == AttemptState::Canceled)
}

/// Somebody asked for it to be stopped by then, or a newer run of a job under REPLACE took its place.
fn was_stopped(history: &History, job: &Job, run: &Run, by_us: i64) -> bool {
    let asked = job.canceled.iter().any(|asked| asked.run == run.run_id && asked.sent_us <= by_us);
    let deleted = job.deleted.is_some_and(|(sent_us, _)| sent_us <= by_us);
    let replaces = specs(job, run, by_us).any(|spec| spec.concurrency_policy == ConcurrencyPolicy::Replace);
    // With a backfill its open runs are canceled.
    let of_it = job.backfills.iter().filter(|asked| asked.id.is_some() && asked.id == run.backfill_id);
    let with_backfill = of_it.filter_map(|asked| asked.canceled_us).any(|sent_us| sent_us <= by_us);
    let with_dag = run.dag_run_id.is_some_and(|dag| dag_was_stopped(history, dag, by_us));
    asked || deleted || with_backfill || with_dag || (replaces && newer_run(history, run, by_us))
}

/// Somebody asked for the DAG run of a node to be stopped, or the failure of another node stops it.
fn dag_was_stopped(history: &History, dag: u64, by_us: i64) -> bool {
    let Some(run) = history.runs.get(&dag) else { return false };
    let Some(job) = history.jobs.get(&run.job_id) else { return false };
    let asked = job.canceled.iter().any(|asked| asked.run == dag && asked.sent_us <= by_us);
    let nodes = history.nodes_of.get(&dag).into_iter().flat_map(|nodes| nodes.values().flatten());
    let mut nodes = nodes.filter_map(|id| history.runs.get(id));
    let failed = |node: &Run| node.attempts.iter().any(|a| a.state != AttemptState::Success && ended_by(a, by_us));
    let fails_fast = graph_of(&job.spec).is_some_and(|graph| graph.fail_fast);
    asked || job.deleted.is_some_and(|(sent_us, _)| sent_us <= by_us) || (fails_fast && nodes.any(failed))
}

fn ended_by(attempt: &Attempt, by_us: i64) -> bool {
    attempt.ended_at.is_some_and(|at| us(at.0) <= by_us)
}

fn newer_run(history: &History, run: &Run, by_us: i64) -> bool {
    let mut others = history.runs_of.get(&run.job_id).into_iter().flatten().filter_map(|id| history.runs.get(id));
    others.any(|other| {
        other.run_id != run.run_id
            && other.created_at.0 >= run.created_at.0
            && us(other.created_at.0) <= by_us.saturating_add(READING_US)
    })
}

/// The executor that the record names could not be heard in the job's shard, or whoever served the shard was away, so that an assignment
/// may not have arrived.
fn may_not_have_arrived(history: &History, job: &Job, attempt: &Attempt, ended_us: i64) -> bool {
    let shard = history.shard_of(job.id);
    let from_us = us(attempt.started_at.0) - IN_FLIGHT_US;
    let during = |begin: i64, end: i64| begin <= ended_us.saturating_add(IN_FLIGHT_US) && end >= from_us;
    let of_node = history.outages.iter().any(|outage| during(outage.from_us, outage.to_us));
    let of_executor = history.executor_of(attempt).is_some_and(|executor| {
        executor.killed_us.is_some_and(|killed| during(killed, i64::MAX))
            || executor.frozen_us.iter().any(|(from, to)| during(*from, *to))
            || executor.unheard.iter().any(|time| time.is_about(shard) && during(time.from_us, time.to_us))
    });
    of_node || of_executor || history.disturbances.iter().any(|d| d.is_about(shard) && during(d.from_us, d.to_us))
}

fn attempt_end(history: &History, job: &Job, run: &Run, attempt: &Attempt, found: &mut Findings<'_>) {
    // A whole millisecond, so up to one later than told.
    let ended_us = attempt.ended_at.map_or(i64::MAX / 2, |at| us(at.0) + 999);
    let body = body_of(history, run, attempt.token);
    let of_run = |kind: ViolationKind, why: &str, found: &mut Findings<'_>| {
        let text = format!(
            "attempt {} (token {}) of run {} is {}: {why}",
            attempt.attempt, attempt.token, run.run_id, attempt.state
        );
        found.of_run(
            kind,
            run.job_id,
            run.run_id,
            Some(ended_us.min(us(run.created_at.0) + 1_000_000_000) / 1000),
            text,
        );
    };
    match attempt.state {
        AttemptState::Running => {
            if is_final(run.state) {
                of_run(ViolationKind::EndedWithoutCause, "its run ended and it did not", found);
            }
        }
        AttemptState::Timeout => {
            let least_us = specs(job, run, ended_us)
                .filter_map(|spec| i64::try_from(spec.timeout_sec).ok())
                .min()
                .map_or(0, |sec| sec.saturating_mul(1_000_000));
            // Its time begins when the attempt is durable, also where the executor gets to the body much later.
            let began_us = body.map_or(i64::MAX, |body| body.start_us).min(us(attempt.started_at.0));
            if ended_us.saturating_add(READING_US) < began_us.saturating_add(least_us) {
                of_run(ViolationKind::AttemptEndInvented, "its time was not over", found);
            } else if body.is_none() && !may_not_have_arrived(history, job, attempt, ended_us) {
                of_run(ViolationKind::AttemptEndInvented, "no executor had it, and nothing kept it from one", found);
            }
        }
        AttemptState::Canceled => {
            if !was_stopped(history, job, run, ended_us) {
                of_run(ViolationKind::AttemptEndInvented, "nobody asked for it to be stopped", found);
            }
        }
        AttemptState::Failed => {
            if body.is_none() && !lines_may_be_lost(history, attempt) {
                of_run(ViolationKind::EndedWithoutCause, "no executor had it", found);
            }
        }
        AttemptState::Lost => {
            let again = history.bodies.get(&run.run_id).is_some_and(|all| all.iter().any(|b| b.token > attempt.token));
            let caused = match body {
                // A second start is judged by `repeats`.
                Some(_) if again => true,
                Some(body) => lease_was_lost(history, body, ended_us / 1000),
                None => may_not_have_arrived(history, job, attempt, ended_us),
            };
            if !caused {
                of_run(ViolationKind::LostWithoutCause, "its executor lived and was heard", found);
            }
        }
        AttemptState::Success | AttemptState::NotStarted => {}
    }
}

fn is_final(state: RunState) -> bool {
    match state {
        RunState::Success | RunState::Failed | RunState::Timeout | RunState::Canceled | RunState::Skipped => true,
        RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::RetryWait
        | RunState::SuspectedLost
        | RunState::NeedsConfirmation => false,
    }
}

fn run_end(history: &History, job: &Job, run: &Run, found: &mut Findings<'_>) {
    let ended_us = run.ended_at.map_or(i64::MAX / 2, |at| us(at.0) + 999);
    let tried: Vec<&Attempt> = run
        .attempts
        .iter()
        .filter(|a| a.generation == run.generation)
        .filter(|a| !matches!(a.state, AttemptState::NotStarted | AttemptState::Running))
        .collect();
    let decided = |decision: ConfirmDecision| {
        job.confirmed.iter().any(|c| c.asked.run == run.run_id && c.decision == decision && c.asked.sent_us <= ended_us)
    };
    let last = tried.last().map(|a| a.state);
    let fine = match run.state {
        // Only a node of a graph is skipped as a run.
        RunState::Skipped => run.source == Source::Dag,
        RunState::Canceled => was_stopped(history, job, run, ended_us),
        RunState::Success => last == Some(AttemptState::Success) || decided(ConfirmDecision::Succeeded),
        RunState::Failed if decided(ConfirmDecision::Failed) => true,
        RunState::Failed => matches!(last, Some(AttemptState::Failed | AttemptState::Lost)),
        RunState::Timeout => last == Some(AttemptState::Timeout),
        RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::RetryWait
        | RunState::SuspectedLost
        | RunState::NeedsConfirmation => return,
    };
    if !fine {
        let last = last.map_or("none".to_owned(), |state| state.to_string());
        let text = format!(
            "run {} of job {} ended {}, and nothing that was written down is the cause (its last attempt: {last})",
            run.run_id, job.id, run.state
        );
        return found.of_run(ViolationKind::EndedWithoutCause, job.id, run.run_id, run.ended_at.map(|at| at.0), text);
    }
    let by_attempts = matches!(run.state, RunState::Failed | RunState::Timeout) && !decided(ConfirmDecision::Failed);
    if by_attempts && run.attempt_count as usize <= ATTEMPTS_KEPT && run.attempt_count as usize == run.attempts.len() {
        let least = specs(job, run, ended_us).map(|spec| spec.retry_policy.max_attempts.max(1)).min().unwrap_or(1);
        let permanent =
            tried.last().is_some_and(|a| a.permanent && body_of(history, run, a.token).is_none_or(|b| b.permanent));
        if tried.len() < least as usize && !permanent {
            let text = format!(
                "run {} of job {} ended {} after {} attempts of {least}, and no body said that trying again is in vain",
                run.run_id,
                job.id,
                run.state,
                tried.len()
            );
            found.of_run(ViolationKind::RetryMissing, job.id, run.run_id, run.ended_at.map(|at| at.0), text);
        }
    }
}

fn dead_letter(job: &Job, run: &Run, found: &mut Findings<'_>) {
    let ended_us = run.ended_at.map_or(i64::MAX / 2, |at| us(at.0) + 999);
    let failed = matches!(run.state, RunState::Failed | RunState::Timeout);
    let mut wanted = specs(job, run, ended_us).map(|spec| spec.dead_letter && graph_of(spec).is_none()).peekable();
    let first = wanted.peek().copied().unwrap_or(true);
    // An edit while it ran may have changed it.
    let certain = wanted.all(|wants| wants == first);
    let put_away = job.discarded.iter().any(|asked| asked.run == run.run_id);
    let wrong = if failed && first {
        certain && !run.dead_letter && !put_away
    } else {
        run.dead_letter && (certain || !failed)
    };
    if wrong {
        let what = if run.dead_letter { "is a dead letter" } else { "is no dead letter" };
        let text = format!("run {} of job {} ended {} and {what}", run.run_id, job.id, run.state);
        found.of_run(ViolationKind::DeadLetterWrong, job.id, run.run_id, run.ended_at.map(|at| at.0), text);
    }
}

/// A run has the generations that callers asked for, and no other.
fn generations(history: &History, job: &Job, run: &Run, found: &mut Findings<'_>) {
    let asked = || job.reopened.iter().filter(|again| again.asked.run == run.run_id);
    let told = asked().filter(|again| again.asked.ack_us.is_some()).filter_map(|again| again.generation).max();
    let forgotten = history.outages.iter().any(|outage| outage.restored);
    if told.is_some_and(|told| told > run.generation) && !forgotten {
        let text =
            format!("a caller was told of generation {told:?} of run {}, which is at {}", run.run_id, run.generation);
        found.of_run(ViolationKind::ReopenLost, job.id, run.run_id, None, text);
    }
    let most = asked().map(|again| again.at_most).sum::<u32>() + of_dag(history, run) + 1;
    if run.generation > most {
        let text = format!("run {} has generation {}, and callers asked for {most}", run.run_id, run.generation);
        found.of_run(ViolationKind::ReopenUnasked, job.id, run.run_id, None, text);
    }
}

/// Each time a run of a DAG goes on, the run of a node may go on once.
fn of_dag(history: &History, run: &Run) -> u32 {
    let dag = run.dag_run_id.and_then(|dag| history.runs.get(&dag));
    let job = dag.and_then(|dag| history.jobs.get(&dag.job_id));
    let asked = job.into_iter().flat_map(|job| &job.reopened);
    asked.filter(|again| Some(again.asked.run) == run.dag_run_id).map(|again| again.at_most).sum()
}
