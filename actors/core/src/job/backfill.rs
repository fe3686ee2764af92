//! A backfill in the state of its job: how events change it, how it stands beside the live runs, and how callers see it. What it decides
//! is in `decide/backfill.rs`.
//!
//! A run of a backfill is in the lane of backfills ([`RunRecord::is_back`]). Under ALLOW and REPLACE live runs and runs of that lane do
//! not see each other. Under FORBID and QUEUE_ONE one run of either is open at a time, and the live ones go first:
//!
//! | open | a live instant | the next run of the backfill |
//! |---|---|---|
//! | a live run | the policy decides | waits |
//! | a run of the backfill that has a body, or whose body nobody knows of | is held | waits |
//! | a run of the backfill that only waits | starts, and the other waits for it | waits |

use super::{
    command::Context,
    state::{Job, OpenRun},
};
use crate::{
    backfill::rules::{Rule, kept},
    channels::Placed,
};
use campanile_schema::{
    ids::BackfillId,
    job::ConcurrencyPolicy,
    limits::OPEN_RUNS_PER_JOB,
    record::{RunRecord, RunState},
    stored::backfill::{BackfillChange, BackfillMode, BackfillState, StoredBackfill},
    time::Timestamp,
    view::backfill::{BackfillProgress, BackfillView, UnknownInstants},
    wait::WaitCode,
};
use std::sync::Arc;

impl OpenRun {
    pub(crate) fn is_back(&self) -> bool {
        self.record.is_back() && kept(Rule::PoliciesIgnore)
    }

    /// Whether no live run may start beside it where one run is allowed: it has a body, or had one of which nobody knows whether it has
    /// ended.
    fn blocks(&self) -> bool {
        match self.state() {
            RunState::Running | RunState::SuspectedLost | RunState::NeedsConfirmation => true,
            RunState::Pending | RunState::Queued | RunState::RetryWait => !kept(Rule::WaitingGivesWay),
            RunState::Success | RunState::Failed | RunState::Timeout | RunState::Canceled | RunState::Skipped => false,
        }
    }
}

impl Job {
    /// FORBID and QUEUE_ONE: one run at a time, of whatever lane.
    pub(crate) fn is_one_at_a_time(&self) -> bool {
        match self.def.policy() {
            ConcurrencyPolicy::Forbid | ConcurrencyPolicy::QueueOne => true,
            ConcurrencyPolicy::Allow | ConcurrencyPolicy::Replace => false,
        }
    }

    /// Whether live runs are open.
    pub fn has_live(&self) -> bool {
        self.hot.runs.iter().any(|open| !open.is_back())
    }

    /// Whether a run of a backfill is in the way of a live one.
    pub(crate) fn is_blocked_by_backfill(&self) -> bool {
        self.is_one_at_a_time() && self.hot.runs.iter().any(|open| open.is_back() && open.blocks())
    }

    /// Whether a live run would have to wait for another run or be refused, but under ALLOW.
    pub(crate) fn is_busy(&self) -> bool {
        self.has_live() || self.is_blocked_by_backfill()
    }

    /// Whether a run that comes waits until others have ended. `back`: it is in the lane of backfills.
    pub(crate) fn holds_newcomer(&self, back: bool) -> bool {
        match self.def.policy() {
            ConcurrencyPolicy::Allow => false,
            ConcurrencyPolicy::Replace => !(back && kept(Rule::PoliciesIgnore)) && self.has_live(),
            ConcurrencyPolicy::Forbid | ConcurrencyPolicy::QueueOne if back => self.is_active(),
            ConcurrencyPolicy::Forbid | ConcurrencyPolicy::QueueOne => self.is_busy(),
        }
    }

    /// The job's backfill, if it has this id.
    pub fn backfill(&self, id: BackfillId) -> Option<&StoredBackfill> {
        self.hot.backfill.as_deref().filter(|backfill| backfill.id == id)
    }

    /// The job's backfill while it starts or waits for runs.
    pub fn open_backfill(&self) -> Option<&StoredBackfill> {
        self.hot.backfill.as_deref().filter(|backfill| backfill.is_open())
    }

    /// Open runs of a backfill.
    pub(crate) fn runs_of_backfill(&self, id: BackfillId) -> impl Iterator<Item = &OpenRun> {
        self.hot.runs.iter().filter(move |open| open.record.backfill == Some(id))
    }

    /// Its open runs, and those of them that were told to stop: count.
    pub fn open_runs_of(&self, id: BackfillId) -> (usize, usize) {
        let stopping = self.runs_of_backfill(id).filter(|open| open.stopping.is_some()).count();
        (self.runs_of_backfill(id).count(), stopping)
    }

    /// How many runs of it are open at once.
    fn parallelism(&self, backfill: &StoredBackfill) -> usize {
        let one = self.is_one_at_a_time() && kept(Rule::OneUnderForbid);
        if one { 1 } else { backfill.parallelism as usize }
    }

    /// Runs that its backfill may start now; or why none, which is empty where there is nothing to start.
    pub fn backfill_room(&self, ctx: &Context) -> Result<usize, String> {
        let nothing = || Err(String::new());
        let Some(backfill) = self.open_backfill() else { return nothing() };
        let runs = backfill.state == BackfillState::Running
            || (backfill.state == BackfillState::Paused && !kept(Rule::PauseHolds));
        if !runs || backfill.is_through() {
            return nothing();
        }
        if self.holds_runs() && kept(Rule::PausesHold) {
            return Err(self.held_because());
        }
        if ctx.paused().is_some() && kept(Rule::PausesHold) {
            return Err(WaitCode::TenantPaused.because("the tenant or the whole system is paused"));
        }
        if ctx.overloaded {
            return Err(WaitCode::BackfillYields.because("the node's read model is too far behind; live runs go first"));
        }
        if ctx.queue_half && kept(Rule::HalfTheQueue) {
            let sentence = "half as many runs of the tenant wait as may; a backfill leaves the other half to live runs";
            return Err(WaitCode::BackfillYields.because(sentence));
        }
        if self.hot.runs.len() >= OPEN_RUNS_PER_JOB / 2 {
            let sentence =
                format!("the job has {} open runs; a backfill leaves room for live ones", self.hot.runs.len());
            return Err(WaitCode::BackfillYields.because(sentence));
        }
        if self.is_one_at_a_time() && self.has_live() && kept(Rule::LiveGoesFirst) {
            let sentence = format!("concurrencyPolicy {} and a live run is open", self.def.concurrency);
            return Err(WaitCode::HeldByConcurrencyPolicy.because(sentence));
        }
        let open = self.runs_of_backfill(backfill.id).count();
        let most = if kept(Rule::ParallelismHolds) { self.parallelism(backfill) } else { usize::MAX };
        // Also runs of the lane that count for no backfill are one at a time.
        let alone =
            !self.is_one_at_a_time() || !kept(Rule::OneUnderForbid) || !self.hot.runs.iter().any(OpenRun::is_back);
        if open < most && alone { Ok(most - open) } else { nothing() }
    }

    /// A backfill as callers see it.
    pub fn backfill_view(&self, backfill: &StoredBackfill, waits: Option<String>) -> BackfillView {
        let (plan, counts) = (backfill.plan, backfill.counts);
        let active = self.runs_of_backfill(backfill.id).count() as u64;
        let text = |text: &Option<campanile_schema::text::Text>| text.as_ref().map(ToString::to_string);
        BackfillView {
            backfill_id: Some(backfill.id),
            job_id: self.id,
            tenant_id: self.def.tenant.to_string(),
            state: Some(backfill.state),
            mode: backfill.mode,
            from: Timestamp(backfill.from_ms),
            to: Timestamp(backfill.to_ms),
            parallelism: self.parallelism(backfill) as u32,
            unknown_instants: if backfill.unknown_run { UnknownInstants::Run } else { UnknownInstants::Skip },
            hooks: backfill.hooks,
            instants: plan.instants,
            missing: plan.missing,
            failed: plan.failed,
            existing: plan.passed.existing,
            unknown: plan.passed.unknown,
            differing: plan.passed.differing,
            gone: plan.passed.gone,
            to_run: plan.to_run,
            estimated_sec: self.seconds_left(backfill),
            hazard: None,
            progress: Some(BackfillProgress {
                done_until: (backfill.cursor_ms >= backfill.from_ms).then_some(Timestamp(backfill.cursor_ms)),
                started: counts.started,
                active,
                succeeded: counts.succeeded,
                failed: counts.failed,
                canceled: counts.canceled,
                existing: counts.passed.existing,
                unknown: counts.passed.unknown,
                differing: counts.passed.differing,
                gone: counts.passed.gone,
            }),
            reason: text(&backfill.reason),
            requested_by: text(&backfill.by),
            state_reason: text(&backfill.why),
            wait_reason: waits.filter(|why| !why.is_empty()),
            created_at: Some(Timestamp(backfill.created_ms)),
            ended_at: backfill.ended_ms.map(Timestamp),
        }
    }

    /// What is left of it takes so long, by the runs that have ended, or by the usual duration as long as none has.
    fn seconds_left(&self, backfill: &StoredBackfill) -> Option<u64> {
        let counts = backfill.counts;
        let ended = counts.succeeded + counts.failed + counts.canceled;
        let each_ms = counts.busy_ms.checked_div(ended).or(backfill.plan.usual_ms)?;
        if !backfill.is_open() {
            return None;
        }
        let left = backfill.plan.to_run.saturating_sub(ended);
        Some(seconds(left, each_ms, self.parallelism(backfill)))
    }
}

/// Runs of this duration, so many at once, take so long.
pub fn seconds(runs: u64, each_ms: u64, at_once: usize) -> u64 {
    let rounds = runs.div_ceil(at_once.max(1) as u64);
    rounds.saturating_mul(each_ms).div_ceil(1_000)
}

/// An event of a backfill.
pub(super) fn changed(job: &mut Job, change: &BackfillChange, at_ms: i64) {
    if let BackfillChange::Created { backfill } = change {
        job.hot.backfill = Some(Arc::new((**backfill).clone()));
        return;
    }
    if let BackfillChange::Held { run } = change {
        if let Some(open) = job.run_mut(*run) {
            open.record_mut().state = RunState::Pending;
        }
        return;
    }
    let Some(backfill) = job.hot.backfill.as_mut() else { return };
    let backfill = Arc::make_mut(backfill);
    match change {
        BackfillChange::Moved { upto_ms, passed } => {
            backfill.cursor_ms = backfill.cursor_ms.max(*upto_ms);
            backfill.counts.passed.add(*passed);
        }
        BackfillChange::Paused { why } => {
            backfill.state = BackfillState::Paused;
            backfill.why.clone_from(why);
        }
        BackfillChange::Resumed => {
            backfill.state = BackfillState::Running;
            backfill.why = None;
        }
        BackfillChange::Canceling { why } => {
            backfill.state = BackfillState::Canceling;
            backfill.why.clone_from(why);
        }
        BackfillChange::Ended { state } => {
            backfill.state = *state;
            backfill.ended_ms = Some(at_ms);
        }
        // Answered above.
        BackfillChange::Created { .. } | BackfillChange::Held { .. } => {}
    }
}

/// A run began for a backfill: made anew, or opened again.
pub(super) fn began(job: &mut Job, of: Option<BackfillId>) {
    if let Some(backfill) = counted(job, of) {
        backfill.counts.started += 1;
    }
}

/// A run has ended.
pub(super) fn ended(job: &mut Job, record: &RunRecord) {
    let took = record.started_ms.zip(record.ended_ms).map_or(0, |(began, ended)| (ended - began).max(0));
    let Some(backfill) = counted(job, record.backfill) else { return };
    let counts = &mut backfill.counts;
    counts.busy_ms = counts.busy_ms.saturating_add(took.cast_unsigned());
    match record.state {
        RunState::Success => counts.succeeded += 1,
        RunState::Failed | RunState::Timeout => counts.failed += 1,
        RunState::Canceled | RunState::Skipped => counts.canceled += 1,
        RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::RetryWait
        | RunState::SuspectedLost
        | RunState::NeedsConfirmation => {}
    }
}

/// The backfill that a run counts for.
fn counted(job: &mut Job, of: Option<BackfillId>) -> Option<&mut StoredBackfill> {
    let id = of?;
    job.hot.backfill.as_mut().filter(|backfill| backfill.id == id).map(Arc::make_mut)
}

/// Two of them run an instant twice.
pub fn hazard(mode: BackfillMode) -> Option<String> {
    match mode {
        BackfillMode::Missing | BackfillMode::Failed => None,
        BackfillMode::All | BackfillMode::Replay => Some(format!(
            "{mode} makes a new run for each instant, however often it is asked for: two of them run it twice"
        )),
    }
}
