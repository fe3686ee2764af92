//! Manual decisions about runs: retry or redrive a final run, confirm a run whose executor was lost, discard a dead
//! letter.

use super::{
    super::{
        effect::Reply,
        table::{Step, run_after},
    },
    Draft, finish, graph, lane,
    trigger::{has_room, may_start},
};
use crate::{hooks, reject::Rejection};
use campanile_schema::{
    error::ErrorCode,
    event::Event,
    ids::{BackfillId, RunId},
    peer::shard::GraphAction,
    record::{RunRecord, RunState},
    view::ConfirmDecision,
};
use std::sync::Arc;

pub(super) fn reopen(
    draft: &mut Draft<'_>,
    record: &RunRecord,
    redrive: bool,
    force: bool,
    reason: &Option<String>,
) -> Result<Reply, Rejection> {
    if let Some(open) = draft.job.run(record.run) {
        return Err(Rejection::new(
            ErrorCode::IllegalState,
            format!("the run is {}; only a run that has ended can be started again", open.state()),
        ));
    }
    if run_after(record.state, Step::Reopen).is_none() {
        return Err(Rejection::new(ErrorCode::IllegalState, "only a run that has ended can be started again"));
    }
    if redrive && !record.dead_letter {
        return Err(Rejection::new(
            ErrorCode::IllegalState,
            "the run is not a dead letter (it may have been redriven)",
        ));
    }
    if record.compensated {
        hooks::ask_if_undone(record.run, force)?;
    }
    if record.graph.is_some() {
        let (by, reason) = (None, reason.clone());
        return graph::change(draft, record.run, Some(record), &GraphAction::RetryFailed { by, reason });
    }
    if let Some((dag, _)) = record.dag {
        let why =
            format!("the run is of a node of DAG run {dag}: retry the node there, and what comes after it follows");
        return Err(Rejection::new(ErrorCode::IllegalState, why));
    }
    may_start(draft)?;
    has_room(draft)?;
    let mut record = record.clone();
    // It stays in its lane, and no backfill counts it.
    record.backfill = record.backfill.map(|_| BackfillId(0));
    let run = record.run;
    open_again(draft, record, reason);
    Ok(draft.run_reply(run))
}

/// A run that has ended goes on as its next generation.
pub(super) fn open_again(draft: &mut Draft<'_>, mut record: RunRecord, reason: &Option<String>) {
    let held = draft.job.holds_newcomer(record.is_back());
    record.generation += 1;
    record.state = if held { RunState::Pending } else { RunState::Queued };
    record.dead_letter = false;
    record.ended_ms = None;
    record.result = None;
    if reason.is_some() {
        record.reason.clone_from(reason);
    }
    let (run, back) = (record.run, record.is_back());
    draft.emit(Event::RunReopened { job: draft.job.id, record: Arc::new(record), at_ms: draft.ctx.now_ms });
    if !held {
        if !back {
            lane::give_way(draft);
        }
        draft.enqueue(run);
    }
}

pub(super) fn discard(draft: &mut Draft<'_>, record: &RunRecord) -> Result<Reply, Rejection> {
    if draft.job.run(record.run).is_some() || !record.dead_letter {
        return Err(Rejection::new(
            ErrorCode::IllegalState,
            "the run is not a dead letter (it may have been redriven)",
        ));
    }
    let mut record = record.clone();
    record.dead_letter = false;
    draft.emit(Event::DeadLetterDiscarded { job: draft.job.id, record: Arc::new(record), at_ms: draft.ctx.now_ms });
    Ok(Reply::Done)
}

pub(super) fn confirm(
    draft: &mut Draft<'_>,
    run: RunId,
    decision: ConfirmDecision,
    reason: Option<&str>,
) -> Result<Reply, Rejection> {
    if decision == ConfirmDecision::Ended {
        let ended = finish::ended_by_operator(draft, run, reason)?;
        return Ok(ended.map_or_else(|| draft.run_reply(run), |record| Reply::Final(Box::new(record))));
    }
    let open = draft.job.run(run).filter(|r| r.state() == RunState::NeedsConfirmation);
    let Some(open) = open else {
        return Err(Rejection::new(ErrorCode::IllegalState, "the run does not wait for a confirmation"));
    };
    let record = RunRecord::clone(&open.record);
    match decision {
        ConfirmDecision::Rerun => {
            draft.emit(Event::RunConfirmed { job: draft.job.id, run, at_ms: draft.ctx.now_ms });
            finish::enqueue_again(draft, run);
            return Ok(draft.run_reply(run));
        }
        ConfirmDecision::Succeeded => finish::close(draft, record.clone(), RunState::Success, false),
        ConfirmDecision::Failed => {
            let dead_letter = !draft.job.def.no_dead_letter;
            finish::close(draft, record.clone(), RunState::Failed, dead_letter);
        }
        // Answered above.
        ConfirmDecision::Ended => {}
    }
    Ok(Reply::Final(Box::new(draft.ended(run).unwrap_or(record))))
}
