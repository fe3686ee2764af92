//! Defects of decisions that can be switched on, so that the proofs are seen red: see [`crate::faults`].

use super::{Draft, finish};
use crate::{
    channels::Placed,
    faults::{Mutation, strikes},
    job::effect::{Assign, Effect},
};
use campanile_schema::{
    event::{Event, LedgerEntry, Outcome, SkipReason},
    ids::{JobId, RunId, Token},
    job::ConcurrencyPolicy,
    record::{AttemptState, RunRecord, RunState},
    rpc::executor::Ended,
};

/// Ids of runs and jobs that do not exist, in the same shard.
const NOBODY: u64 = 1 << 40;

/// The reason for which an instant is skipped though nothing is in its way.
pub(super) fn skip_reason(draft: &Draft<'_>, due: i64) -> Option<SkipReason> {
    let reason = match draft.job.def.policy() {
        ConcurrencyPolicy::Forbid => SkipReason::RunActive,
        ConcurrencyPolicy::QueueOne => SkipReason::OneQueued,
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Replace => SkipReason::QueueFull,
    };
    strikes(Mutation::SkipPlausibly, due).then_some(reason)
}

/// An entry of the ledger for an instant that was not due, the one before `due`.
pub(super) fn extra_outcome(draft: &Draft<'_>, due: i64) -> Option<LedgerEntry> {
    let extra = due - 1;
    (strikes(Mutation::ExtraOutcome, due) && extra > draft.job.hot.cursor_ms).then_some(LedgerEntry {
        first_ms: extra,
        last_ms: extra,
        count: 1,
        outcome: Outcome::Skipped,
        reason: Some(SkipReason::RunActive),
        run: None,
    })
}

/// When a run is said to have been made.
pub(super) fn made_at(now_ms: i64, due: i64) -> i64 {
    if strikes(Mutation::MadeLater, due) {
        now_ms + 2_000
    } else if strikes(Mutation::FireLate, due) {
        due
    } else {
        now_ms
    }
}

/// True: the run that was made has ended already.
pub(super) fn cancel_unasked(draft: &mut Draft<'_>, run: RunId, due: i64) -> bool {
    let open = draft.job.run(run).filter(|_| strikes(Mutation::CancelUnasked, due));
    let Some(record) = open.map(|open| RunRecord::clone(&open.record)) else { return false };
    finish::close(draft, record, RunState::Canceled, false);
    true
}

/// A second run for a trigger by hand, under its key or under another.
pub(super) fn trigger_again(draft: &mut Draft<'_>, made: &Event) {
    let (doubled, phantom) =
        (strikes(Mutation::DoubleTrigger, draft.ctx.now_ms), strikes(Mutation::PhantomTrigger, draft.ctx.now_ms));
    if !doubled && !phantom {
        return;
    }
    let again = draft.new_run_id();
    let mut event = made.clone();
    if let Event::RunCreated { run, key, held, .. } = &mut event {
        *run = again;
        *key = if phantom { Some(format!("phantom-{again}")) } else { key.take() };
        let waits = *held;
        draft.emit(event);
        if !waits {
            draft.enqueue(again);
        }
    }
}

/// True: the attempt has succeeded without being sent.
pub(super) fn invent_success(draft: &mut Draft<'_>, run: RunId, token: Token) -> bool {
    let strikes = strikes(Mutation::InventSuccess, draft.ctx.now_ms);
    if strikes {
        let ended = ended(draft, run, token, AttemptState::Success);
        finish::end(draft, &ended, AttemptState::Success, RunState::Success);
    }
    strikes
}

/// More assignments for an attempt that is being sent.
pub(super) fn assign_again(draft: &mut Draft<'_>, assign: &Assign) {
    let now = draft.ctx.now_ms;
    if strikes(Mutation::StrayBody, now) {
        let mut stray = assign.clone();
        stray.assignment.run = RunId(stray.assignment.run.0 | NOBODY);
        stray.assignment.job = JobId(stray.assignment.job.0 | NOBODY);
        draft.effect(Effect::Assign(stray));
    }
    if strikes(Mutation::StartTwice, now) && draft.ids_left() > 0 {
        let (run, token) = (assign.assignment.run, draft.new_token());
        let Some(open) = draft.job.run(run) else { return };
        let Some(executor) = open.attempt().map(|attempt| attempt.executor.clone()) else { return };
        let attempt = assign.assignment.attempt + 1;
        let (job, session, credential) = (draft.job.id, assign.session, open.credential.clone());
        draft.emit(Event::AttemptStarted { job, run, attempt, token, executor, session, credential, at_ms: now });
        let mut again = assign.clone();
        (again.assignment.token, again.assignment.attempt) = (token, attempt);
        draft.effect(Effect::Assign(again));
    }
}

/// Attempts that are given up though their executor is heard.
pub(super) fn lose_at_once(draft: &mut Draft<'_>) {
    let now = draft.ctx.now_ms;
    if !strikes(Mutation::LoseAtOnce, now) {
        return;
    }
    let running = |r: &&crate::job::state::OpenRun| r.attempt().is_some_and(|a| a.started_ms + 500 < now);
    let running: Vec<(RunId, Token)> =
        draft.job.hot.runs.iter().filter(running).filter_map(|r| Some((r.id(), r.token()?))).collect();
    for (run, token) in running {
        finish::lost(draft, run, token);
    }
}

fn ended(draft: &Draft<'_>, run: RunId, token: Token, state: AttemptState) -> Ended {
    Ended {
        run,
        job: draft.job.id,
        token,
        state,
        error_code: None,
        error_message: None,
        result: None,
        cpu_ms: None,
        max_rss_kb: None,
        permanent: false,
    }
}
