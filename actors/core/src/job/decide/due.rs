//! Decides what follows when time has passed: every due instant up to now gets exactly one outcome, retries become due,
//! and timeouts are noticed.

use super::{Draft, finish, lane, stop};
#[cfg(feature = "faults")]
use crate::faults::{self, Mutation};
use crate::{
    backfill::rules::{Rule, kept},
    job::state::OpenRun,
    reject::Rejection,
};
use campanile_schema::{
    error::ErrorCode,
    event::{Event, Interval, LedgerEntry, Outcome, SkipReason, StopReason},
    ids::RunId,
    job::{ConcurrencyPolicy, MisfirePolicy},
    limits::{INSTANTS_PER_DECISION, LATE_MS, OPEN_RUNS_PER_JOB},
    record::{RunState, Source},
};

/// What the concurrency policy says of an instant or a trigger.
pub(super) enum Admission {
    Start,
    /// PENDING until the active run has ended.
    Hold,
    No(SkipReason),
}

/// Admission of one more run. REPLACE stops what is active.
pub(super) fn admit(draft: &mut Draft<'_>) -> Admission {
    if draft.ctx.queue_full || draft.job.hot.runs.len() >= OPEN_RUNS_PER_JOB {
        return Admission::No(SkipReason::QueueFull);
    }
    if !draft.job.is_busy() {
        lane::give_way(draft);
        return Admission::Start;
    }
    #[cfg(feature = "faults")]
    if faults::active(Mutation::ForgetPolicy) {
        return Admission::Start;
    }
    match draft.job.def.concurrency {
        ConcurrencyPolicy::Allow => Admission::Start,
        // What is in the way is a run of a backfill: the instant waits for it.
        ConcurrencyPolicy::Forbid if !draft.job.has_live() && kept(Rule::LiveIsHeld) => Admission::Hold,
        ConcurrencyPolicy::Forbid => Admission::No(SkipReason::RunActive),
        ConcurrencyPolicy::QueueOne => {
            #[cfg(feature = "faults")]
            if faults::active(Mutation::NewestFirst) {
                return Admission::Hold;
            }
            let is_held = |r: &OpenRun| r.state() == RunState::Pending && r.record.dag.is_none() && !r.is_back();
            if draft.job.hot.runs.iter().any(is_held) { Admission::No(SkipReason::OneQueued) } else { Admission::Hold }
        }
        ConcurrencyPolicy::Replace => {
            stop::stop_all(draft, StopReason::Replace);
            if draft.job.has_live() { Admission::Hold } else { Admission::Start }
        }
    }
}

pub(super) fn wake(draft: &mut Draft<'_>) {
    runs_due(draft);
    // The node's own backlog is no reason to skip an instant: it waits, and its run is late.
    if !draft.ctx.overloaded {
        instants_due(draft);
    }
}

/// Retries whose delay is over, attempts whose time is over.
fn runs_due(draft: &mut Draft<'_>) {
    #[cfg(feature = "faults")]
    super::mutations::lose_at_once(draft);
    let now = draft.ctx.now_ms;
    let job = draft.job.id;
    let over: Vec<RunId> = draft
        .job
        .hot
        .runs
        .iter()
        .filter(|open| draft.job.limit_of_waiting(open).is_some_and(|limit| limit.last_start_ms < now))
        .map(OpenRun::id)
        .collect();
    for run in over {
        finish::out_of_time(draft, run);
    }
    let retries: Vec<RunId> =
        draft.job.hot.runs.iter().filter(|r| r.retry_at_ms.is_some_and(|at| at <= now)).map(|r| r.id()).collect();
    for run in retries {
        draft.emit(Event::RetryDue { job, run, at_ms: now });
        let back = draft.job.run(run).is_some_and(OpenRun::is_back);
        if back && draft.job.is_one_at_a_time() && draft.job.has_live() {
            lane::hold(draft, run);
        } else {
            draft.enqueue(run);
        }
    }
    let overdue: Vec<RunId> = draft
        .job
        .hot
        .runs
        .iter()
        .filter(|r| r.has_body() && r.stopping.is_none())
        .filter(|r| r.attempt().is_some_and(|a| draft.job.attempt_deadline(r, a) <= now))
        .map(|r| r.id())
        .collect();
    for run in overdue {
        stop::stop(draft, run, StopReason::Timeout);
    }
    draft.wake_graphs();
}

/// Decides instants until none is due, the ids are used up, or the policy says wait.
fn instants_due(draft: &mut Draft<'_>) {
    let now = draft.ctx.now_ms;
    // The pace holds between decisions; within one the ids bound the runs.
    if draft.job.pace_until(now).is_some() {
        return;
    }
    for _ in 0..INSTANTS_PER_DECISION {
        if !draft.job.fires() || draft.ids_left() == 0 || draft.job.backlog_waits(now) {
            return;
        }
        let Some(due) = draft.job.hot.next_due_ms else { return };
        if draft.job.due_with_jitter(due) > now {
            return;
        }
        if let Some(pause) = draft.pause_of(due) {
            skip_until(draft, pause.to_ms.unwrap_or(now).min(now), Outcome::Skipped, pause.reason);
            continue;
        }
        if !draft.job.is_misfire(due, now - draft.ctx.held_since(draft.job.due_with_jitter(due))) {
            fire(draft, due);
            continue;
        }
        match draft.job.def.misfire {
            MisfirePolicy::Skip => {
                let upto = misfires_until(draft, due);
                skip_until(draft, upto, Outcome::Skipped, SkipReason::Misfire);
            }
            MisfirePolicy::FireOnceNow => fire_once(draft, due),
            MisfirePolicy::FireAllMissed => fire_in_order(draft, due),
        }
    }
}

/// All instants up to here are misfires, and in no pause. `due` is one; with jitter a later one may be without being counted here, its
/// turn comes next.
fn misfires_until(draft: &Draft<'_>, due: i64) -> i64 {
    let threshold = i64::from(draft.job.def.misfire_threshold_sec) * 1000;
    let jitter = i64::from(draft.job.def.jitter_sec) * 1000;
    let held = draft.ctx.held_since(draft.job.due_with_jitter(due));
    (draft.ctx.now_ms - held - threshold - jitter - 1).min(draft.until_pause(due)).max(due)
}

/// The latest instant that is due by now, jitter included, and before a pause; `due` is one.
fn latest_due(draft: &Draft<'_>, due: i64) -> i64 {
    let now = draft.ctx.now_ms;
    let (schedule, base) = (&draft.job.schedule, draft.job.delay_base());
    let latest = schedule.last(due, draft.until_pause(due), base).unwrap_or(due);
    if draft.job.due_with_jitter(latest) <= now {
        return latest;
    }
    // Jitter ends before the next instant, so the one before is due.
    schedule.last(due, latest - 1, base).unwrap_or(due)
}

/// One instant, decided by the concurrency policy.
fn fire(draft: &mut Draft<'_>, due: i64) {
    #[cfg(feature = "faults")]
    if let Some(reason) = super::mutations::skip_reason(draft, due) {
        return skip_until(draft, due, Outcome::Skipped, reason);
    }
    match admit(draft) {
        Admission::Start => create(draft, due, false),
        Admission::Hold => create(draft, due, true),
        Admission::No(reason) => refuse(draft, due, reason),
    }
}

/// Nothing in this decision can let in what the concurrency policy refuses now: all that are due share its fate.
fn refuse(draft: &mut Draft<'_>, due: i64, reason: SkipReason) {
    let upto = latest_due(draft, due);
    skip_until(draft, upto, Outcome::Skipped, reason);
}

fn create(draft: &mut Draft<'_>, due: i64, held: bool) {
    let run = draft.new_run_id();
    create_run(draft, run, due, held);
}

fn create_run(draft: &mut Draft<'_>, run: RunId, due: i64, held: bool) {
    note_until(draft, due - 1, run);
    #[cfg(feature = "faults")]
    if leave_phantom(draft, run, due) {
        return;
    }
    let late = draft.ctx.now_ms - draft.job.due_with_jitter(due) > LATE_MS;
    #[cfg(not(feature = "faults"))]
    let at_ms = draft.ctx.now_ms;
    #[cfg(feature = "faults")]
    let at_ms = {
        if let Some(entry) = super::mutations::extra_outcome(draft, due) {
            move_cursor(draft, entry.last_ms, vec![entry]);
        }
        super::mutations::made_at(draft.ctx.now_ms, due)
    };
    let event = Event::RunCreated {
        job: draft.job.id,
        run,
        source: Source::Schedule,
        logical_ms: Some(due),
        key: None,
        params: None,
        reason: None,
        by: draft.ctx.origin(run),
        held: held || draft.job.is_dag(),
        at_ms,
        interval: interval_told(draft, due),
        late,
        dag: None,
        depth: 0,
        marked: false,
        timeout_sec: None,
        backfill: None,
        budget: None,
    };
    draft.emit(event);
    #[cfg(feature = "faults")]
    if super::mutations::cancel_unasked(draft, run, due) {
        return;
    }
    if !held {
        draft.enqueue(run);
    }
    #[cfg(feature = "faults")]
    if faults::strikes(Mutation::DoubleFire, due)
        && draft.ids_left() > 0
        && draft.job.hot.runs.iter().all(|r| again(r, due, run))
    {
        create(draft, due, held);
    }
}

/// The stretch of the ledger that ends with the run's instant.
fn interval_told(draft: &mut Draft<'_>, due: i64) -> Option<Interval> {
    #[cfg(feature = "faults")]
    if faults::strikes(Mutation::LedgerLie, due) {
        skip_until(draft, due, Outcome::Skipped, SkipReason::Misfire);
        return None;
    }
    Some(draft.interval(due))
}

/// No other run than `run` was made for this instant: it is doubled once.
#[cfg(feature = "faults")]
fn again(open: &OpenRun, due: i64, run: RunId) -> bool {
    open.id() == run || open.record.logical_ms != Some(due)
}

/// True: the run is not made, though the ledger names it.
#[cfg(feature = "faults")]
fn leave_phantom(draft: &mut Draft<'_>, run: RunId, due: i64) -> bool {
    let phantom = faults::strikes(Mutation::PhantomRun, due);
    if phantom {
        let entry = LedgerEntry {
            first_ms: due,
            last_ms: due,
            count: 1,
            outcome: Outcome::Fired,
            reason: None,
            run: Some(run),
        };
        move_cursor(draft, due, vec![entry]);
    }
    phantom
}

/// FIRE_ONCE_NOW: one run carries the latest instant that is due, the ones before are coalesced into it.
fn fire_once(draft: &mut Draft<'_>, due: i64) {
    match admit(draft) {
        Admission::Start => create(draft, latest_due(draft, due), false),
        Admission::Hold => create(draft, latest_due(draft, due), true),
        Admission::No(reason) => refuse(draft, due, reason),
    }
}

/// FIRE_ALL_MISSED: in order; of the misfires the oldest beyond the cap are MISSED.
fn fire_in_order(draft: &mut Draft<'_>, due: i64) {
    let (cursor, base) = (draft.job.hot.cursor_ms, draft.job.delay_base());
    let (cap, until) = (u64::from(draft.job.def.max_catch_up), misfires_until(draft, due));
    if draft.job.schedule.count(cursor, until, base) > cap {
        let upto = draft.job.schedule.drop_before(cursor, until, cap, base);
        skip_until(draft, upto, Outcome::Missed, SkipReason::CatchUpCap);
        return;
    }
    fire(draft, due);
}

/// Moves the cursor to `to`; all instants in between get one outcome. A fixed delay begins again now.
pub(super) fn skip_until(draft: &mut Draft<'_>, to: i64, outcome: Outcome, reason: SkipReason) {
    let fixed_delay = draft.job.schedule.is_fixed_delay();
    let to = if fixed_delay { to.max(draft.ctx.now_ms) } else { to };
    if to > draft.job.hot.cursor_ms {
        let entries = entries_until(draft, to, outcome, Some(reason), None);
        move_cursor(draft, to, entries);
    }
}

/// What lies between the cursor and the instant of a run: coalesced into it, or taken away by daylight saving, a window or a blackout.
fn note_until(draft: &mut Draft<'_>, to: i64, run: RunId) {
    let entries = entries_until(draft, to, Outcome::Coalesced, None, Some(run));
    if !entries.is_empty() {
        move_cursor(draft, to, entries);
    }
}

fn move_cursor(draft: &mut Draft<'_>, to: i64, entries: Vec<LedgerEntry>) {
    let event = Event::CursorMoved { job: draft.job.id, interval: draft.interval(to), entries };
    draft.emit(event);
}

/// Every instant from the cursor to `to`: those that count get `outcome`, those that were taken away theirs.
fn entries_until(
    draft: &Draft<'_>,
    to: i64,
    outcome: Outcome,
    reason: Option<SkipReason>,
    run: Option<RunId>,
) -> Vec<LedgerEntry> {
    let (schedule, base) = (&draft.job.schedule, draft.job.delay_base());
    let mut entries = Vec::new();
    // The common case costs no look-up: what is due next lies beyond.
    let none_fires = draft.job.hot.next_due_ms.is_none_or(|due| due > to);
    let fires = |entries: &mut Vec<LedgerEntry>, after: i64, until: i64| {
        if none_fires {
            return;
        }
        let Some(first_ms) = schedule.next(after, base).filter(|due| *due <= until) else { return };
        let count = schedule.count(after, until, base);
        let last_ms = schedule.last(first_ms, until, base).unwrap_or(first_ms);
        entries.push(LedgerEntry { first_ms, last_ms, count, outcome, reason, run });
    };
    let mut after = draft.job.hot.cursor_ms;
    for gone in schedule.removed(after, to) {
        fires(&mut entries, after, gone.first_ms - 1);
        entries.push(gone.into());
        after = gone.last_ms;
    }
    fires(&mut entries, after, to);
    #[cfg(feature = "faults")]
    if faults::active(Mutation::ForgetOutcome) {
        entries.pop();
    }
    entries
}

/// Closes everything up to now before a change: what is due fires (as far as one decision goes), the rest gets `reason`. While due instants
/// wait for the node the change is refused: they are to fire.
pub(super) fn settle(draft: &mut Draft<'_>, fire_due: bool, reason: SkipReason) -> Result<(), Rejection> {
    let now = draft.ctx.now_ms;
    if fire_due {
        if draft.ctx.overloaded && draft.job.fires() && draft.job.hot.next_due_ms.is_some_and(|due| due <= now) {
            let why = "the node's read model is too far behind, and due runs of the job wait for it; try again later";
            return Err(Rejection::new(ErrorCode::Overloaded, why));
        }
        instants_due(draft);
    }
    skip_until(draft, now, Outcome::Skipped, reason);
    Ok(())
}
