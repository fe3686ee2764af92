//! A person gives a run that waits a priority of its own. It stays with the run, also over attempts and generations.

use super::{
    super::{
        effect::Reply,
        rules::{Rule, kept},
    },
    Draft,
};
use crate::{channels::Placed, reject::Rejection};
use campanile_schema::{error::ErrorCode, event::Event, ids::RunId, record::RunState};

pub(super) fn change(draft: &mut Draft<'_>, run: RunId, priority: u16) -> Result<Reply, Rejection> {
    let illegal = |why: String| Rejection::new(ErrorCode::IllegalState, why);
    let Some(open) = draft.job.run(run) else {
        return Err(illegal("the run has ended, so it waits for nothing; start it again first (run retry)".to_owned()));
    };
    if draft.job.is_dag() {
        let why =
            "the run of a DAG needs no executor; give the priority to the runs of its nodes (dag nodes shows them)";
        return Err(illegal(why.to_owned()));
    }
    match open.state() {
        RunState::Pending | RunState::Queued | RunState::RetryWait => {}
        state @ (RunState::Running
        | RunState::SuspectedLost
        | RunState::NeedsConfirmation
        | RunState::Success
        | RunState::Failed
        | RunState::Timeout
        | RunState::Canceled
        | RunState::Skipped) => {
            let why = format!("the run is {state}; only one that is PENDING, QUEUED or RETRY_WAIT is given a priority");
            return Err(illegal(why));
        }
    }
    let (is_queued, known) = (open.state() == RunState::Queued, open.record.priority);
    if known != Some(priority) {
        draft.emit(Event::RunPrioritized { job: draft.job.id, run, priority, at_ms: draft.ctx.now_ms });
        if is_queued && kept(Rule::OwnPriorityMovesIt) {
            // It takes its place anew, both where it waits for a permit and where it waits for an executor.
            let (tenant, pool) = (draft.job.def.permits(), draft.job.def.place());
            draft.dequeue(run, tenant, pool);
            draft.enqueue(run);
        }
    }
    Ok(draft.run_reply(run))
}
