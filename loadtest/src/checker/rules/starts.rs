//! Every body that an executor started belongs to an attempt of a run, began when its instant was due and not before, for a job
//! that was neither paused nor deleted then, and ended as the record says.

use super::windows::{Expect, expect};
use crate::checker::{Attempt, Body, Findings, History, Pause, Run, ViolationKind};
use campanile_schema::{
    limits::ATTEMPTS_KEPT,
    record::{AttemptState, Source},
};
use std::collections::BTreeMap;

/// How much earlier than its instant a body may start, microseconds. One machine, one clock: not at all.
const EARLY_US: i64 = 0;
/// Lines that an executor wrote so long before its death may be lost, microseconds.
const LAST_LINES_US: i64 = 1_000_000;
/// An assignment may be so long under way to its executor, microseconds.
const UNDER_WAY_US: i64 = 2_000_000;

pub fn check(history: &History, found: &mut Findings<'_>) {
    for body in history.bodies.values().flatten() {
        match history.runs.get(&body.run) {
            None => unknown_run(history, body, found),
            Some(run) => {
                of_run(history, body, run, found);
                made_in_time(history, body, run, found);
            }
        }
        if let Some(logical) = body.logical {
            instant(history, body, logical, found);
        }
    }
    of_nobody(history, found);
    for run in history.runs.values().filter(|run| history.jobs.contains_key(&run.job_id)) {
        for attempt in &run.attempts {
            succeeded_somewhere(history, run, attempt, found);
        }
    }
}

/// Jobs whose create was never answered may exist; nobody knows their ids, but how many they are.
fn of_nobody(history: &History, found: &mut Findings<'_>) {
    let mut strangers: BTreeMap<u64, &Body> = BTreeMap::new();
    for body in history.bodies.values().flatten().filter(|body| !history.jobs.contains_key(&body.job)) {
        let first = strangers.entry(body.job).or_insert(body);
        if body.start_us < first.start_us {
            *first = body;
        }
    }
    let mut creates = history.open_creates.clone();
    creates.sort_unstable();
    let mut strangers: Vec<&Body> = strangers.into_values().collect();
    strangers.sort_by_key(|body| body.start_us);
    let mut creates = creates.into_iter().peekable();
    for body in strangers {
        // An open create accounts for one job, and only for what began after it was sent.
        if creates.next_if(|sent_us| *sent_us <= body.start_us).is_none() {
            let text = format!("run {} was started for job {}, which no caller created", body.run, body.job);
            found.of_run(ViolationKind::BodyOfNobody, body.job, body.run, body.logical, text);
        }
    }
}

fn unknown_run(history: &History, body: &Body, found: &mut Findings<'_>) {
    // The API may not show the runs of a deleted job; nothing can be said of them.
    let gone =
        history.jobs.get(&body.job).is_none_or(|j| j.deleted.is_some()) && !history.runs_of.contains_key(&body.job);
    if !gone {
        let text = format!("run {} (token {}) was started and does not exist", body.run, body.token);
        found.of_run(ViolationKind::StartUnknown, body.job, body.run, body.logical, text);
    }
}

fn of_run(history: &History, body: &Body, run: &Run, found: &mut Findings<'_>) {
    let wrong = |text: String, found: &mut Findings<'_>| {
        found.of_run(ViolationKind::StartUnknown, body.job, body.run, body.logical, text)
    };
    if run.job_id != body.job {
        wrong(format!("run {} was started for job {} and belongs to job {}", body.run, body.job, run.job_id), found);
    }
    if run.source == Source::Schedule && run.logical_time.map(|l| l.0) != body.logical {
        let logical = run.logical_time.map(|l| l.0);
        wrong(format!("run {} was started for {:?} and its instant is {logical:?}", body.run, body.logical), found);
    }
    let Some(attempt) = run.attempt_of(body.token) else {
        if (run.attempt_count as usize) <= ATTEMPTS_KEPT {
            wrong(
                format!("run {} was started with token {}, which none of its attempts has", body.run, body.token),
                found,
            );
        }
        return;
    };
    let ended_as = body.end.map(|(_, outcome)| outcome);
    let agrees = match (attempt.state, ended_as) {
        // The body ran, so it was started.
        (AttemptState::NotStarted, _) => false,
        (AttemptState::Success, Some(outcome)) => outcome == AttemptState::Success,
        // A body that its executor stopped by itself failed.
        (AttemptState::Failed, Some(outcome)) => matches!(outcome, AttemptState::Failed | AttemptState::Canceled),
        // An end that its executor did not live to write cannot have been accepted.
        (AttemptState::Success | AttemptState::Failed, None) => history.died_us(body.executor) < i64::MAX,
        // A stop, a time-out or a lost lease may overtake the body's own end.
        (AttemptState::Canceled | AttemptState::Timeout | AttemptState::Lost | AttemptState::Running, _) => true,
    };
    if !agrees {
        let said = ended_as.map_or("no end".to_owned(), |o| o.to_string());
        let text =
            format!("attempt {} of run {} is {}, its body said {said}", attempt.attempt, body.run, attempt.state);
        found.of_run(ViolationKind::ResultChanged, body.job, body.run, body.logical, text);
    }
}

/// Whatever instant it is for: a run that was not there when the pause or the delete was acknowledged never starts. By hand a
/// paused job is refused, which `acknowledged` judges.
fn made_in_time(history: &History, body: &Body, run: &Run, found: &mut Findings<'_>) {
    let Some(job) = history.jobs.get(&run.job_id) else { return };
    // A whole millisecond, so never later than it was.
    let made_us = run.created_at.0.saturating_mul(1000);
    let after = |kind: ViolationKind, what: &str, found: &mut Findings<'_>| {
        let text =
            format!("run {} was made at {} and started, after job {} was {what}", body.run, run.created_at, job.id);
        found.of_run(kind, body.job, body.run, Some(run.created_at.0), text);
    };
    if job.deleted.and_then(|(_, ack_us)| ack_us).is_some_and(|ack_us| made_us > ack_us) {
        after(ViolationKind::StartedAfterDelete, "deleted", found);
    }
    let made_in = |pause: &Pause| {
        let resumed = pause.resume_sent_us.is_some_and(|sent_us| made_us + 1_000 > sent_us);
        pause.ack_us.is_some_and(|ack_us| made_us > ack_us) && !resumed
    };
    // What was due before its tenant or the system was paused gets its run, whenever that is decided.
    let due_in = |pause: &Pause| {
        run.logical_time.is_none_or(|at| pause.ack_us.is_some_and(|ack_us| at.0.saturating_mul(1000) > ack_us))
    };
    let paused = job.pauses.iter().any(made_in) || job.pauses_above.iter().any(|(p, _)| made_in(p) && due_in(p));
    if paused && run.source == Source::Schedule {
        after(ViolationKind::StartedWhilePaused, "paused", found);
    }
    let canceled = job.canceled.iter().filter(|asked| asked.run == run.run_id).filter_map(|asked| asked.ack_us).min();
    let again = job.reopened.iter().any(|again| again.asked.run == run.run_id);
    if let Some(ack_us) = canceled.filter(|_| !again) {
        // An assignment that was under way is stopped after it began.
        let assigned = run.attempt_of(body.token).is_none_or(|a| a.started_at.0.saturating_mul(1000) <= ack_us);
        if body.start_us > ack_us.saturating_add(UNDER_WAY_US) || (body.start_us > ack_us && !assigned) {
            let text = format!("run {} started after its cancel was acknowledged", body.run);
            found.of_run(ViolationKind::StartedAfterCancel, body.job, body.run, Some(body.start_us / 1000), text);
        }
    }
}

fn instant(history: &History, body: &Body, logical: i64, found: &mut Findings<'_>) {
    let scheduled = history.runs.get(&body.run).is_none_or(|run| run.source == Source::Schedule);
    if !scheduled {
        return;
    }
    let early_us = logical.saturating_mul(1000) - body.start_us;
    if early_us > EARLY_US {
        let text = format!("run {} started {early_us} us before {logical}", body.run);
        found.of_run(ViolationKind::StartEarly, body.job, body.run, Some(logical), text);
    }
    let Some(job) = history.jobs.get(&body.job) else {
        return;
    };
    match expect(job, logical) {
        Expect::Paused | Expect::StillPaused => {
            let text = format!("run {} started for {logical}, when job {} was paused", body.run, body.job);
            found.of_run(ViolationKind::StartedWhilePaused, body.job, body.run, Some(logical), text);
        }
        Expect::Deleted => {
            let text = format!("run {} started for {logical}, when job {} was deleted", body.run, body.job);
            found.of_run(ViolationKind::StartedAfterDelete, body.job, body.run, Some(logical), text);
        }
        Expect::Required | Expect::Free => {}
    }
}

fn succeeded_somewhere(history: &History, run: &Run, attempt: &Attempt, found: &mut Findings<'_>) {
    if attempt.state != AttemptState::Success {
        return;
    }
    let started = history.bodies.get(&run.run_id).is_some_and(|bodies| bodies.iter().any(|b| b.token == attempt.token));
    if !started && !lines_may_be_lost(history, attempt) {
        let text = format!(
            "attempt {} (token {}) of run {} succeeded; no executor started it",
            attempt.attempt, attempt.token, run.run_id
        );
        found.of_run(ViolationKind::SuccessWithoutStart, run.job_id, run.run_id, Some(attempt.started_at.0), text);
    }
}

/// The executor that held the attempt was killed soon after it began, before its lines were written.
pub(super) fn lines_may_be_lost(history: &History, attempt: &Attempt) -> bool {
    let began_us = attempt.started_at.0.saturating_mul(1000);
    history
        .executor_of(attempt)
        .and_then(|executor| executor.killed_us)
        .is_some_and(|killed_us| (began_us..=began_us + LAST_LINES_US).contains(&killed_us))
}
