//! Ends a run early: cancel, replace, timeout. A run without a body ends at once. A body is told to stop, and the run
//! ends when its executor reports the end or the executor's lease ends.

use super::{
    super::{
        effect::{Effect, Reply},
        state::OpenRun,
    },
    Draft, finish,
};
use crate::{
    backfill::rules::{Rule, kept},
    channels::Placed,
    reject::Rejection,
};
use campanile_schema::{
    error::ErrorCode,
    event::{Event, StopReason},
    ids::RunId,
    record::{RunRecord, RunState},
    rpc::executor::Held,
};

pub(super) fn cancel(draft: &mut Draft<'_>, run: RunId) -> Result<Reply, Rejection> {
    let Some(open) = draft.job.run(run) else {
        return Err(Rejection::new(ErrorCode::IllegalState, "the run has ended; there is nothing to cancel"));
    };
    #[cfg(feature = "faults")]
    if crate::faults::active(crate::faults::Mutation::ForgetCancel) {
        return Ok(draft.run_reply(run));
    }
    if open.has_body() || open.graph {
        stop(draft, run, StopReason::Cancel);
        return Ok(draft.ended(run).map_or_else(|| draft.run_reply(run), |record| Reply::Final(Box::new(record))));
    }
    let mut record = RunRecord::clone(&open.record);
    stop(draft, run, StopReason::Cancel);
    record.state = RunState::Canceled;
    record.ended_ms = Some(draft.ctx.now_ms);
    Ok(Reply::Final(Box::new(record)))
}

/// Stops all runs; those that are held first, so that none is let go on by the end of another. REPLACE does not stop runs of a DAG's
/// nodes: a DAG that waits for one would fail because of an instant of another job.
pub(super) fn stop_all(draft: &mut Draft<'_>, why: StopReason) {
    let mut open: Vec<(bool, RunId)> = (draft.job.hot.runs.iter())
        .filter(|r| why != StopReason::Replace || (r.record.dag.is_none() && !spared(r)))
        .map(|r| (r.state() != RunState::Pending, r.id()))
        .collect();
    open.sort_unstable();
    for (_, run) in open {
        stop(draft, run, why);
    }
}

/// Runs of backfills and the live ones do not see each other.
fn spared(open: &OpenRun) -> bool {
    open.is_back() && kept(Rule::ReplaceSparesBackfills)
}

pub(super) fn stop(draft: &mut Draft<'_>, run: RunId, why: StopReason) {
    let job = draft.job.id;
    let Some(open) = draft.job.run(run) else { return };
    if open.graph {
        return draft.stop_graph(run);
    }
    if open.has_body() {
        let (session, token, told) = (open.session, open.token(), open.stop_reason());
        // A cancel overrides a timeout under way; told twice with one reason is told once.
        if told == Some(why) || told == Some(StopReason::Cancel) {
            return;
        }
        draft.emit(Event::AttemptStopping { job, run, why, at_ms: draft.ctx.now_ms });
        if let (Some(session), Some(token)) = (session, token) {
            draft.effect(Effect::Stop { session, held: Held { run, job, token } });
        }
        return;
    }
    let record = RunRecord::clone(&open.record);
    if record.state == RunState::Queued {
        let (tenant, pool) = (draft.job.def.permits(), draft.job.def.place());
        draft.dequeue(run, tenant, pool);
    }
    finish::close(draft, record, RunState::Canceled, false);
}
