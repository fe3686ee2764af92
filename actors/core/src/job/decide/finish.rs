//! The end of an attempt, because its executor reported it or because the executor's lease ended. It leads to success,
//! a retry, a request for confirmation, or the final failure.

use super::{
    super::{
        effect::{Effect, Reply},
        rules::{Rule, kept},
        state::OpenRun,
        table::{Step, run_after},
        time_limit::TimeLimit,
    },
    Draft, deadline, lane, message,
};
#[cfg(feature = "faults")]
use crate::faults::{self, Mutation};
use crate::{channels::Placed, deadline::after, dispatch::target::Verdict, reject::Rejection, retry};
use campanile_schema::{
    error::ErrorCode,
    event::{Event, Next, StopReason},
    ids::{RunId, Token},
    job::ConcurrencyPolicy,
    limits::{ERROR_CODE_BYTES, ERROR_MESSAGE_BYTES, RESULT_BYTES, UNCOUNTED_ATTEMPTS},
    record::{AttemptState, RunRecord, RunState},
    rpc::executor::{EXECUTOR_SHUTDOWN, Ended, Held, LOST_CONTACT},
};
use std::{borrow::Cow, sync::Arc};

/// Wait before a run that executors refused again and again is offered once more, ms.
const REFUSED_WAIT_MS: i64 = 1_000;

pub(super) fn finish(draft: &mut Draft<'_>, ended: &Ended) -> Reply {
    let Some(open) = current(draft, ended.run, ended.token) else { return Reply::Stale };
    let mut bounded = Cow::Borrowed(ended);
    if ended.result.as_ref().is_some_and(|result| result.len() > RESULT_BYTES) {
        bounded.to_mut().drop_large_result();
    }
    let ended = &*bounded;
    match (ended.state, open.stop_reason()) {
        #[cfg(feature = "faults")]
        (AttemptState::Success, _) if faults::strikes(Mutation::InventTimeout, draft.ctx.now_ms) => {
            failed(draft, ended, AttemptState::Timeout, RunState::Timeout)
        }
        #[cfg(feature = "faults")]
        (AttemptState::Success, _) if faults::strikes(Mutation::InventCancel, draft.ctx.now_ms) => {
            end(draft, ended, AttemptState::Canceled, RunState::Canceled)
        }
        #[cfg(feature = "faults")]
        (AttemptState::Success, None)
            if faults::strikes(Mutation::AcceptTwice, draft.ctx.now_ms) && open.counted_attempts() == 1 =>
        {
            go_on(draft, ended, AttemptState::Success, Next::Requeue)
        }
        (AttemptState::Success, _) => end(draft, ended, AttemptState::Success, RunState::Success),
        (_, Some(StopReason::Cancel | StopReason::Replace)) => {
            end(draft, ended, AttemptState::Canceled, RunState::Canceled)
        }
        (AttemptState::NotStarted, _) => not_started(draft, ended),
        (AttemptState::Timeout, _) | (_, Some(StopReason::Timeout)) => {
            failed(draft, ended, AttemptState::Timeout, RunState::Timeout)
        }
        (AttemptState::Canceled, None) => {
            // Nobody asked: the executor gave up by itself (drain limit, lost contact).
            let mut ended = ended.clone();
            ended.error_code.get_or_insert_with(|| "EXECUTOR_STOPPED".to_owned());
            failed(draft, &ended, AttemptState::Failed, RunState::Failed)
        }
        (AttemptState::Lost, None) => failed(draft, ended, AttemptState::Lost, RunState::Failed),
        (AttemptState::Failed | AttemptState::Running, None) => {
            failed(draft, ended, AttemptState::Failed, RunState::Failed)
        }
    }
    Reply::Done
}

pub(super) fn lost(draft: &mut Draft<'_>, run: RunId, token: Token) -> Reply {
    if current(draft, run, token).is_none() {
        return Reply::Stale;
    }
    let ended = Ended {
        run,
        job: draft.job.id,
        token,
        state: AttemptState::Lost,
        error_code: Some("EXECUTOR_LOST".to_owned()),
        error_message: Some("the executor's lease ended without a result".to_owned()),
        result: None,
        cpu_ms: None,
        max_rss_kb: None,
        permanent: false,
    };
    let why = draft.job.run(run).and_then(OpenRun::stop_reason);
    match why {
        Some(StopReason::Cancel | StopReason::Replace) => end(draft, &ended, AttemptState::Lost, RunState::Canceled),
        Some(StopReason::Timeout) => failed(draft, &ended, AttemptState::Timeout, RunState::Timeout),
        None => failed(draft, &ended, AttemptState::Lost, RunState::Failed),
    }
    Reply::Done
}

/// The run, if this token is its running attempt.
fn current<'d>(draft: &'d Draft<'_>, run: RunId, token: Token) -> Option<&'d OpenRun> {
    #[cfg(feature = "faults")]
    if faults::active(Mutation::AcceptStale) {
        return draft.job.run(run).filter(|r| r.has_body());
    }
    draft.job.run(run).filter(|r| r.has_body() && r.token() == Some(token))
}

fn not_started(draft: &mut Draft<'_>, ended: &Ended) {
    let refusals = draft.job.run(ended.run).map_or(0, |r| {
        r.record.attempts.iter().rev().skip(1).take_while(|a| a.state == AttemptState::NotStarted).count()
    });
    let next = if refusals < 3 { Next::Requeue } else { Next::RetryAt(draft.ctx.now_ms + REFUSED_WAIT_MS) };
    go_on(draft, ended, AttemptState::NotStarted, next);
}

/// An operator says that a body which was told to stop has ended, though its executor does not say so: the attempt ends as if the
/// executor had.
pub(super) fn ended_by_operator(
    draft: &mut Draft<'_>,
    run: RunId,
    reason: Option<&str>,
) -> Result<Option<RunRecord>, Rejection> {
    let stopping = draft.job.run(run).filter(|open| open.has_body());
    let found = stopping.and_then(|open| Some((open.stop_reason()?, open.token()?, open.session)));
    let Some((why, token, session)) = found else {
        return Err(Rejection::new(
            ErrorCode::IllegalState,
            "the run is not STOPPING: only of a body that was told to stop can a person say that it has ended; cancel it first",
        ));
    };
    let said = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let ended = Ended {
        run,
        job: draft.job.id,
        token,
        state: AttemptState::Canceled,
        error_code: Some("ENDED_BY_OPERATOR".to_owned()),
        error_message: Some(format!("an operator said that the body had ended{said}")),
        result: None,
        cpu_ms: None,
        max_rss_kb: None,
        permanent: false,
    };
    match why {
        StopReason::Cancel | StopReason::Replace => end(draft, &ended, AttemptState::Canceled, RunState::Canceled),
        StopReason::Timeout => failed(draft, &ended, AttemptState::Timeout, RunState::Timeout),
    }
    if let Some(session) = session {
        draft.effect(Effect::Forget { session, held: Held { run, job: draft.job.id, token } });
    }
    Ok(draft.ended(run))
}

/// How an attempt that ended by its executor's shutdown or loss, and not by anything of its own, is told. None: it counts.
fn uncounted(draft: &Draft<'_>, open: &OpenRun, ended: &Ended, attempt: AttemptState) -> Option<String> {
    let by_executor = match attempt {
        AttemptState::Lost => true,
        AttemptState::Failed => {
            ended.state == AttemptState::Failed
                && ended.error_code.as_deref().is_some_and(|code| [EXECUTOR_SHUTDOWN, LOST_CONTACT].contains(&code))
        }
        AttemptState::Running
        | AttemptState::Success
        | AttemptState::Timeout
        | AttemptState::Canceled
        | AttemptState::NotStarted => false,
    };
    let free = by_executor && !draft.job.def.not_idempotent && open.uncounted < UNCOUNTED_ATTEMPTS;
    free.then(|| {
        let said = ended.error_message.as_deref().unwrap_or_default();
        let number = open.uncounted + 1;
        format!("{said} (not counted against maxAttempts: {number} of at most {UNCOUNTED_ATTEMPTS} such attempts)")
    })
}

/// Retry, ask, or end for good.
fn failed(draft: &mut Draft<'_>, ended: &Ended, attempt: AttemptState, last: RunState) {
    let Some(open) = draft.job.run(ended.run) else { return };
    // The attempt at hand counts too: it is in the record as RUNNING.
    let tried = open.counted_attempts();
    let free = uncounted(draft, open, ended, attempt);
    let is_at_once = free.is_some() || attempt == AttemptState::Lost;
    let limit = over_by_then(draft, ended.run, is_at_once, tried);
    let is_free = free.is_some();
    if let Some(message) = free
        && limit.is_none()
    {
        // Another executor can go on at once, as a refused attempt does.
        let ended = Ended { error_message: Some(message), ..ended.clone() };
        return go_on_uncounted(draft, &ended, attempt);
    }
    let budget = draft.job.def.max_attempts.max(1);
    let spent = tried >= budget || permanent(ended);
    // Whether a lost body did its work nobody knows: a person says so, however many attempts are left.
    let ask = draft.job.def.not_idempotent;
    if let Some(limit) = limit
        && (is_free || !spent)
        && !(ask && attempt == AttemptState::Lost)
    {
        let message = limit.told(ended.error_message.as_deref(), ERROR_MESSAGE_BYTES);
        let ended = Ended { error_message: Some(message), ..ended.clone() };
        return end(draft, &ended, attempt, last);
    }
    #[cfg(feature = "faults")]
    let spent =
        (spent && !(faults::active(Mutation::EndlessRetry) && tried < budget + 2)) || faults::active(Mutation::NoRetry);
    #[cfg(feature = "faults")]
    let ask = (ask && !faults::active(Mutation::ForgetIdempotence)) || faults::active(Mutation::AskUndue);
    if ask && attempt == AttemptState::Lost {
        go_on(draft, ended, attempt, Next::Confirm);
    } else if spent {
        end(draft, ended, attempt, last);
    } else if ask {
        go_on(draft, ended, attempt, Next::Confirm);
    } else if attempt == AttemptState::Lost {
        go_on(draft, ended, attempt, Next::Requeue);
    } else {
        let at = draft.ctx.now_ms + retry::delay_ms(&draft.job.def, ended.run, tried);
        #[cfg(feature = "faults")]
        let at = if faults::active(Mutation::NoBackoff) { draft.ctx.now_ms } else { at };
        go_on(draft, ended, attempt, Next::RetryAt(at));
    }
}

/// The limit in time after which the next attempt would begin.
fn over_by_then(draft: &Draft<'_>, run: RunId, is_at_once: bool, tried: u32) -> Option<TimeLimit> {
    let (job, now) = (&draft.job, draft.ctx.now_ms);
    // What a person decides about has no delay either.
    let begins = if is_at_once || job.def.not_idempotent { now } else { now + retry::delay_ms(&job.def, run, tried) };
    let limit = job.time_limit(job.run(run)?)?;
    (limit.last_start_ms < begins && kept(Rule::RetriesEndInTime)).then_some(limit)
}

/// The time of a run is over while it waits for its next attempt.
pub(super) fn out_of_time(draft: &mut Draft<'_>, run: RunId) {
    let Some(open) = draft.job.run(run) else { return };
    let Some(limit) = draft.job.limit_of_waiting(open) else { return };
    let mut record = RunRecord::clone(&open.record);
    if record.state == RunState::Queued {
        let (tenant, pool) = (draft.job.def.permits(), draft.job.def.place());
        draft.dequeue(run, tenant, pool);
    }
    if let Some(last) = record.attempts.last_mut() {
        last.error_message = Some(limit.told(last.error_message.as_deref(), ERROR_MESSAGE_BYTES));
    }
    let dead_letter = !draft.job.def.no_dead_letter;
    close(draft, record, RunState::Timeout, dead_letter);
}

/// Only a body that failed by itself knows that the next one would too: one that was stopped or lost may well succeed.
fn permanent(ended: &Ended) -> bool {
    ended.permanent && ended.state == AttemptState::Failed
}

/// What the end of an attempt says about the target of its run. A permanent failure is the body's own.
fn verdict(ended: &Ended, attempt: AttemptState) -> Verdict {
    let code = ended.error_code.as_deref();
    match attempt {
        AttemptState::Success => Verdict::Worked,
        AttemptState::Timeout => Verdict::Failed,
        AttemptState::Failed if permanent(ended) => Verdict::Silent,
        AttemptState::Failed if code.is_some_and(|code| [EXECUTOR_SHUTDOWN, LOST_CONTACT].contains(&code)) => {
            Verdict::Silent
        }
        AttemptState::Failed => Verdict::Failed,
        AttemptState::Running | AttemptState::Lost | AttemptState::Canceled | AttemptState::NotStarted => {
            Verdict::Silent
        }
    }
}

fn release(draft: &mut Draft<'_>, ended: &Ended, attempt: AttemptState) {
    let session = draft.job.run(ended.run).and_then(|r| r.session);
    let tenant = draft.job.def.permits();
    let verdict = verdict(ended, attempt);
    draft.effect(Effect::Ended { run: ended.run, token: ended.token, session, tenant, verdict });
}

fn go_on(draft: &mut Draft<'_>, ended: &Ended, state: AttemptState, next: Next) {
    proceed(draft, ended, state, next, false);
}

fn go_on_uncounted(draft: &mut Draft<'_>, ended: &Ended, state: AttemptState) {
    proceed(draft, ended, state, Next::Requeue, true);
}

fn proceed(draft: &mut Draft<'_>, ended: &Ended, state: AttemptState, next: Next, uncounted: bool) {
    let step = match next {
        Next::RetryAt(_) => Step::Retry,
        Next::Requeue => Step::Requeue,
        Next::Confirm => Step::AskConfirm,
    };
    debug_assert!(draft.job.run(ended.run).is_some_and(|r| run_after(r.state(), step).is_some()));
    release(draft, ended, state);
    let requeue = next == Next::Requeue;
    draft.emit(Event::AttemptEnded {
        job: draft.job.id,
        run: ended.run,
        token: ended.token,
        state,
        error_code: clipped(ended.error_code.as_deref(), ERROR_CODE_BYTES),
        error_message: clipped(ended.error_message.as_deref(), ERROR_MESSAGE_BYTES),
        cpu_ms: ended.cpu_ms,
        max_rss_kb: ended.max_rss_kb,
        at_ms: draft.ctx.now_ms,
        next,
        uncounted,
    });
    if requeue {
        enqueue_again(draft, ended.run);
    } else {
        release_held_live(draft);
    }
}

/// A run is QUEUED again, unless it has to wait for a live one that it held back.
pub(super) fn enqueue_again(draft: &mut Draft<'_>, run: RunId) {
    release_held_live(draft);
    if draft.job.run(run).is_some_and(|open| open.state() == RunState::Queued) {
        draft.enqueue(run);
    }
}

/// A run of a backfill has no body any more, and goes on later: a live run that waited for it goes first.
fn release_held_live(draft: &mut Draft<'_>) {
    let is_held = |open: &OpenRun| !open.is_back() && open.state() == RunState::Pending;
    if !draft.job.is_dag() && draft.job.is_one_at_a_time() && draft.job.hot.runs.iter().any(is_held) {
        release_held(draft);
    }
}

/// The last attempt and the run end together.
pub(super) fn end(draft: &mut Draft<'_>, ended: &Ended, attempt_state: AttemptState, state: RunState) {
    release(draft, ended, attempt_state);
    let now = draft.ctx.now_ms;
    let dead_letter = !draft.job.def.no_dead_letter && matches!(state, RunState::Failed | RunState::Timeout);
    #[cfg(feature = "faults")]
    let dead_letter = dead_letter && !faults::active(Mutation::ForgetDeadLetter);
    let Some(open) = draft.job.run(ended.run) else { return };
    let mut record = RunRecord::clone(&open.record);
    if let Some(attempt) = record.attempts.iter_mut().rev().find(|a| a.token == ended.token) {
        attempt.state = attempt_state;
        attempt.ended_ms = Some(now);
        attempt.error_code = clipped(ended.error_code.as_deref(), ERROR_CODE_BYTES);
        attempt.error_message = clipped(ended.error_message.as_deref(), ERROR_MESSAGE_BYTES);
        attempt.cpu_ms = ended.cpu_ms;
        attempt.max_rss_kb = ended.max_rss_kb;
        attempt.permanent = permanent(ended);
    }
    record.result.clone_from(&ended.result);
    note_short(draft, &mut record, state, ended.token);
    #[cfg(feature = "faults")]
    if faults::strikes(Mutation::ChangeResult, now) {
        record.result = Some(campanile_schema::payload::Payload("{\"changed\":true}".to_owned()));
    }
    close(draft, record, state, dead_letter);
}

/// An attempt that succeeds in less than the job takes at least is suspicious: it may have done nothing.
fn note_short(draft: &Draft<'_>, record: &mut RunRecord, state: RunState, token: Token) {
    let min_sec = draft.job.def.min_duration_sec().filter(|_| state == RunState::Success);
    let started_ms = record.attempts.iter().find(|attempt| attempt.token == token).map(|attempt| attempt.started_ms);
    let ends_before = |min_sec: &u64| started_ms.is_some_and(|at| draft.ctx.now_ms < after(at, *min_sec));
    let short = min_sec.filter(ends_before);
    // An earlier generation may have been too short.
    if short.is_some() || record.timing.is_some() {
        record.timing.get_or_insert_default().min_duration_sec = short;
    }
}

/// The run is final; what it held back may go on.
pub(super) fn close(draft: &mut Draft<'_>, mut record: RunRecord, state: RunState, dead_letter: bool) {
    deadline::at_end(draft, &mut record);
    record.state = state;
    record.ended_ms = Some(draft.ctx.now_ms);
    record.dead_letter = dead_letter;
    let sends = message::of_end(draft, &mut record);
    draft.emit(Event::RunEnded { job: draft.job.id, record: Arc::new(record) });
    draft.sends.extend(sends);
    lane::end_if_over(draft);
    release_held(draft);
}

/// The oldest PENDING run becomes QUEUED when nothing else is in its way, the live ones before those of a backfill. Of a DAG, the runs
/// that may begin do: all under ALLOW, where they wait for a pause or for room, else the oldest.
pub(super) fn release_held(draft: &mut Draft<'_>) {
    if draft.job.is_dag() {
        return begin_held(draft);
    }
    let one = draft.job.is_one_at_a_time();
    let stands = |open: &OpenRun| open.state() != RunState::Pending;
    if draft.job.hot.runs.iter().any(|open| stands(open) && !open.is_back()) || draft.job.is_blocked_by_backfill() {
        return;
    }
    let held = draft.job.hot.runs.iter().filter(|open| !stands(open));
    // Of a backfill the one that waits for its retry is open.
    let next = held.filter(|open| !open.is_back() || !one || !draft.job.hot.runs.iter().any(stands));
    let next = next.map(|open| (open.is_back(), open.id()));
    #[cfg(feature = "faults")]
    let next = if faults::active(Mutation::NewestFirst) { next.max() } else { next.min() };
    #[cfg(not(feature = "faults"))]
    let next = next.min();
    let Some((back, run)) = next else { return };
    if !back {
        lane::give_way(draft);
    }
    draft.emit(Event::RunReleased { job: draft.job.id, run, at_ms: draft.ctx.now_ms });
    draft.enqueue(run);
}

fn begin_held(draft: &mut Draft<'_>) {
    let pending = |open: &&OpenRun| open.state() == RunState::Pending;
    let mut held: Vec<(bool, RunId)> =
        draft.job.hot.runs.iter().filter(pending).map(|open| (open.is_back(), open.id())).collect();
    held.sort_unstable();
    let one = draft.job.is_one_at_a_time();
    for (back, run) in held {
        // A run of the other lane is in the way only where one run of either is allowed.
        let in_way = |open: &OpenRun| open.state() != RunState::Pending && (one || (!back && !open.is_back()));
        if draft.job.def.policy() != ConcurrencyPolicy::Allow && draft.job.hot.runs.iter().any(in_way) {
            continue;
        }
        draft.enqueue(run);
    }
}

fn clipped(text: Option<&str>, bytes: usize) -> Option<String> {
    text.map(|t| {
        let mut end = t.len().min(bytes);
        while !t.is_char_boundary(end) {
            end -= 1;
        }
        t[..end].to_owned()
    })
}
