//! Runs of backfills beside the live ones: who waits for whom, and when a backfill is over.

use super::{super::state::OpenRun, Draft};
use crate::{
    backfill::rules::{Rule, kept},
    channels::Placed,
};
use campanile_schema::{
    event::Event,
    ids::RunId,
    record::RunState,
    stored::backfill::{BackfillChange, BackfillState},
};

pub(super) fn emit(draft: &mut Draft<'_>, change: BackfillChange) {
    let (job, at_ms) = (draft.job.id, draft.ctx.now_ms);
    draft.emit(Event::BackfillChanged { job, change, at_ms });
}

/// The job is deleted: its runs are stopped with it.
pub(super) fn job_deleted(draft: &mut Draft<'_>) {
    if draft.job.open_backfill().is_some() && kept(Rule::DeleteCancels) {
        emit(draft, BackfillChange::Canceling { why: Some("the job was deleted".into()) });
    }
}

/// The store was restored: a person looks at it first.
pub(super) fn restored(draft: &mut Draft<'_>) {
    let runs = draft.job.open_backfill().is_some_and(|backfill| backfill.state == BackfillState::Running);
    if runs && kept(Rule::RestorePauses) {
        let why = "restored from a backup: instants after it may have run since; resume it if they may run again";
        emit(draft, BackfillChange::Paused { why: Some(why.into()) });
    }
}

/// A live run starts where one at a time is allowed: runs of a backfill that wait for an executor wait for it.
pub(super) fn give_way(draft: &mut Draft<'_>) {
    if !draft.job.is_one_at_a_time() {
        return;
    }
    let waits = |open: &&OpenRun| open.is_back() && open.state() == RunState::Queued;
    let runs: Vec<RunId> = draft.job.hot.runs.iter().filter(waits).map(OpenRun::id).collect();
    for run in runs {
        hold(draft, run);
    }
}

/// A run of a backfill waits for live ones again.
pub(super) fn hold(draft: &mut Draft<'_>, run: RunId) {
    let (tenant, pool) = (draft.job.def.permits(), draft.job.def.place());
    draft.dequeue(run, tenant, pool);
    emit(draft, BackfillChange::Held { run });
}

/// A run has ended, or nothing is left to start.
pub(super) fn end_if_over(draft: &mut Draft<'_>) {
    let Some(backfill) = draft.job.open_backfill() else { return };
    let open = draft.job.runs_of_backfill(backfill.id).count();
    let state = match backfill.state {
        BackfillState::Running | BackfillState::Paused if !kept(Rule::FailureGoesOn) && backfill.counts.failed > 0 => {
            BackfillState::Done
        }
        BackfillState::Running | BackfillState::Paused
            if backfill.is_through() && (open == 0 || !kept(Rule::DoneAtTheEnd)) =>
        {
            BackfillState::Done
        }
        BackfillState::Canceling if open == 0 || !kept(Rule::CanceledAtTheEnd) => BackfillState::Canceled,
        BackfillState::Running
        | BackfillState::Paused
        | BackfillState::Canceling
        | BackfillState::Canceled
        | BackfillState::Done => return,
    };
    emit(draft, BackfillChange::Ended { state });
}
