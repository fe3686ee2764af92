//! Runs and the ledger must agree: each instant that fired has one run, each scheduled run has its instant, and each
//! run has an end or a reason for not having one.

use super::{
    causes::stopped_by_executor,
    facts::{entries, waits_for_a_person},
};
use crate::checker::{Findings, History, Job, Run, ViolationKind};
use campanile_schema::{
    event::Outcome,
    record::{AttemptState, RunState, Source},
};
use std::collections::{HashMap, HashSet};

pub fn check(history: &History, found: &mut Findings<'_>) {
    for run in &history.runs_repeated {
        let job = history.runs.get(run).map_or(0, |r| r.job_id);
        found.of_run(ViolationKind::RunDoubled, job, *run, None, format!("the run {run} is listed twice"));
    }
    for job in history.jobs.values().filter(|j| !j.ledger.is_empty()) {
        named_runs(history, job, found);
    }
    for run in history.runs.values() {
        if let Some(job) = history.jobs.get(&run.job_id) {
            ended(history, run, found);
            attempts(history, job, run, found);
            superseded(history, run, found);
        }
    }
}

fn named_runs(history: &History, job: &Job, found: &mut Findings<'_>) {
    let mut named: HashSet<u64> = HashSet::new();
    for entry in entries(job) {
        let carries = match entry.outcome {
            Outcome::Fired | Outcome::FiredLate => false,
            Outcome::Coalesced => true,
            Outcome::Skipped | Outcome::Missed | Outcome::DstSkipped => continue,
        };
        let at_ms = entry.logical_time.0;
        let Some(id) = entry.run_id else {
            found.of_job(
                ViolationKind::RunMissing,
                job.id,
                Some(at_ms),
                format!("{} at {at_ms} names no run", entry.outcome),
            );
            continue;
        };
        named.insert(id.0);
        match history.runs.get(&id.0) {
            None => {
                let text = format!("{} at {at_ms} names run {id}, which does not exist", entry.outcome);
                found.of_run(ViolationKind::RunMissing, job.id, id.0, Some(at_ms), text);
            }
            Some(run) if run.job_id != job.id => {
                let text = format!("{} at {at_ms} names run {id} of job {}", entry.outcome, run.job_id);
                found.of_run(ViolationKind::RunMissing, job.id, id.0, Some(at_ms), text);
            }
            Some(run) if !carries && run.logical_time.map(|l| l.0) != Some(at_ms) => {
                let text = format!(
                    "{} at {at_ms} names run {id}, whose instant is {:?}",
                    entry.outcome,
                    run.logical_time.map(|l| l.0)
                );
                found.of_run(ViolationKind::RunMissing, job.id, id.0, Some(at_ms), text);
            }
            Some(_) => {}
        }
    }
    let told_to = job.ledger.last().map_or(i64::MIN, |page| page.to.0);
    let mut by_instant: HashMap<i64, u64> = HashMap::new();
    let scheduled = history
        .runs_of
        .get(&job.id)
        .into_iter()
        .flatten()
        .filter_map(|id| history.runs.get(id))
        .filter(|run| run.source == Source::Schedule);
    for run in scheduled {
        let Some(at_ms) = run.logical_time.map(|l| l.0) else {
            found.of_run(
                ViolationKind::RunWithoutInstant,
                job.id,
                run.run_id,
                None,
                format!("run {} has no instant", run.run_id),
            );
            continue;
        };
        if let Some(other) = by_instant.insert(at_ms, run.run_id) {
            let text = format!("the instant {at_ms} of job {} has the runs {other} and {}", job.id, run.run_id);
            found.of_run(ViolationKind::RunDoubled, job.id, run.run_id, Some(at_ms), text);
        }
        if !named.contains(&run.run_id) && at_ms <= told_to {
            let text = format!("run {} for {at_ms} is not in the ledger, which is told to {told_to}", run.run_id);
            found.of_run(ViolationKind::RunWithoutInstant, job.id, run.run_id, Some(at_ms), text);
        }
    }
}

fn ended(history: &History, run: &Run, found: &mut Findings<'_>) {
    let until_ms = history.meta.as_ref().map_or(i64::MAX, |m| m.until_ms);
    let fine = match run.state {
        RunState::Success | RunState::Failed | RunState::Timeout | RunState::Canceled | RunState::Skipped => {
            run.ended_at.is_some()
        }
        // A person decides.
        RunState::NeedsConfirmation => true,
        RunState::RetryWait => run.next_retry_at.is_some_and(|at| at.0 > until_ms),
        // Held behind one that waits for a person.
        RunState::Pending if waits_for_a_person(history, run.job_id) => true,
        // Nothing starts while a pause lasts.
        RunState::Pending | RunState::Queued if stays_paused(history, run.job_id) => true,
        // The history was told while runs were under way, on purpose.
        RunState::Pending | RunState::Queued | RunState::Running | RunState::SuspectedLost => {
            history.meta.as_ref().is_some_and(|m| !m.drained) && run.wait_reason.is_some()
        }
    };
    if !fine {
        let text = format!(
            "run {} of job {} is {} at the end (reason: {})",
            run.run_id,
            run.job_id,
            run.state,
            run.wait_reason.as_deref().unwrap_or("none")
        );
        found.of_run(ViolationKind::RunNotEnded, run.job_id, run.run_id, Some(run.created_at.0), text);
    }
}

/// A pause of the job, its tenant or the system that nobody is known to have ended.
fn stays_paused(history: &History, job: u64) -> bool {
    history.jobs.get(&job).is_some_and(|job| job.all_pauses().any(|pause| pause.resume_ack_us.is_none()))
}

/// A result counts only while its attempt is the run's last: once an executor was told of a later one, the earlier token is void.
fn superseded(history: &History, run: &Run, found: &mut Findings<'_>) {
    let bodies = history.bodies.get(&run.run_id).map(Vec::as_slice).unwrap_or_default();
    for attempt in &run.attempts {
        let accepted = match attempt.state {
            AttemptState::Success | AttemptState::Failed => attempt.ended_at,
            AttemptState::Running
            | AttemptState::Timeout
            | AttemptState::Canceled
            | AttemptState::Lost
            | AttemptState::NotStarted => None,
        };
        let Some(accepted_us) = accepted.map(|at| at.0.saturating_mul(1000)) else { continue };
        let began_us = attempt.started_at.0.saturating_mul(1000);
        // A retry begins after the failure that it repeats.
        let meanwhile = began_us..accepted_us;
        if let Some(later) = bodies.iter().find(|b| b.token > attempt.token && meanwhile.contains(&b.start_us)) {
            let text = format!(
                "run {} took the result of token {} although token {} had started",
                run.run_id, attempt.token, later.token
            );
            found.of_run(ViolationKind::StaleAccepted, run.job_id, run.run_id, Some(accepted_us / 1000), text);
        }
    }
}

fn attempts(history: &History, job: &Job, run: &Run, found: &mut Findings<'_>) {
    // Generation -> (accepted, failed).
    let mut by_generation: HashMap<u32, (u32, u32)> = HashMap::new();
    for attempt in &run.attempts {
        let (accepted, failed) = by_generation.entry(attempt.generation).or_default();
        match attempt.state {
            AttemptState::Success => *accepted += 1,
            // An orderly stop of its executor is no failure of the body.
            AttemptState::Failed if stopped_by_executor(history, run, attempt.token) => {}
            AttemptState::Failed | AttemptState::Timeout => *failed += 1,
            AttemptState::Running | AttemptState::Canceled | AttemptState::Lost | AttemptState::NotStarted => {}
        }
    }
    for (generation, (accepted, failed)) in by_generation {
        if accepted > 1 {
            let text = format!("generation {generation} of run {} has {accepted} successful attempts", run.run_id);
            found.of_run(ViolationKind::AcceptedTwice, job.id, run.run_id, None, text);
        }
        let most = job.versions.iter().map(|version| version.spec.retry_policy.max_attempts.max(1)).max();
        if failed > most.unwrap_or(1) {
            let text = format!("generation {generation} of run {} failed {failed} times", run.run_id);
            found.of_run(ViolationKind::AttemptsExceeded, job.id, run.run_id, None, text);
        }
    }
}
