//! Messages between jobs: what a run sends when it ends, and the run that a message makes.

use super::{super::effect::Reply, Draft, doubtful::doubt, lane, queue_full};
#[cfg(feature = "faults")]
use crate::faults::{self, Mutation};
use crate::{
    backfill::rules::{Rule, kept},
    job::command::Taken,
    outbox::{MessageDraft, body, sending::To},
    reject::Rejection,
};
use campanile_schema::{
    error::ErrorCode,
    event::Event,
    ids::RunId,
    job::JobStatus,
    limits::OPEN_RUNS_PER_JOB,
    record::{RunRecord, RunState},
    stored::{audit::CallOrigin, outbox::MessageKind},
};

/// A run has ended for good: its hooks, and the end that its DAG run waits for, are sent in the same frame.
pub(super) fn on_end(draft: &mut Draft<'_>, record: &RunRecord) {
    hooks(draft, record);
    if let Some((dag, node)) = record.dag {
        let wanted = wanted(record, MessageKind::End, node, To::Parent(RunId(dag)));
        draft.sends.push(MessageDraft { body_bytes: body::end_bytes(record), ..wanted });
    }
}

fn hooks(draft: &mut Draft<'_>, record: &RunRecord) {
    if !matches!(record.state, RunState::Failed | RunState::Timeout) || is_silent(draft, record) {
        return;
    }
    #[cfg(feature = "faults")]
    if faults::strikes(Mutation::ForgetHook, draft.ctx.now_ms) {
        return;
    }
    for (index, hook) in (0..).zip(&draft.job.def.on_failure) {
        let body_bytes = body::hook_bytes(record);
        let params = (!hook.params.is_empty()).then(|| hook.params.clone());
        let wanted = wanted(record, MessageKind::Hook, index, To::Job(hook.job.clone()));
        draft.sends.push(MessageDraft { params, body_bytes, ..wanted });
    }
}

/// Runs of a backfill start no hooks, unless that was asked for.
fn is_silent(draft: &Draft<'_>, record: &RunRecord) -> bool {
    let asked = |id| draft.job.backfill(id).is_some_and(|backfill| backfill.hooks);
    record.backfill.is_some_and(|id| !asked(id)) && kept(Rule::HooksAreOff)
}

fn wanted(record: &RunRecord, kind: MessageKind, index: u32, to: To) -> MessageDraft {
    MessageDraft {
        kind,
        tenant: record.tenant.clone(),
        run: record.run,
        run_created_ms: record.created_ms,
        run_marked: record.marked,
        generation: record.generation,
        index,
        to,
        params: None,
        depth: record.depth,
        body_bytes: 0,
    }
}

/// Makes the run of a message, once. A pause, or an active run that the policy does not let it join, holds it back; it is not refused
/// for them.
pub(super) fn take(draft: &mut Draft<'_>, taken: &Taken) -> Result<Reply, Rejection> {
    if let Some(open) = draft.job.hot.runs.iter().find(|run| run.record.key.as_deref() == Some(taken.key.as_str())) {
        return Ok(Reply::Run(Box::new(draft.job.run_view(open))));
    }
    if draft.job.hot.status == JobStatus::Deleted {
        return Err(Rejection::new(ErrorCode::NotFound, "the job was deleted"));
    }
    if draft.ctx.overloaded || draft.ctx.queue_full || draft.job.hot.runs.len() >= OPEN_RUNS_PER_JOB {
        return Err(queue_full());
    }
    let held = draft.job.holds_newcomer(false);
    let run = draft.new_run_id();
    draft.emit(Event::RunCreated {
        job: draft.job.id,
        run,
        source: taken.source,
        logical_ms: Some(draft.ctx.now_ms),
        key: Some(taken.key.clone()),
        params: Some(taken.params.clone()),
        reason: Some(taken.reason.clone()),
        by: taken.trace.map(|trace| CallOrigin::in_trace(trace).into()),
        held: held || draft.job.is_dag(),
        at_ms: draft.ctx.now_ms,
        interval: None,
        late: false,
        dag: None,
        depth: taken.depth,
        marked: taken.marked,
        timeout_sec: None,
        backfill: None,
    });
    if taken.confirm {
        doubt(draft, run, if held || draft.job.is_dag() { RunState::Pending } else { RunState::Queued });
    } else if !held {
        lane::give_way(draft);
        draft.enqueue(run);
    }
    Ok(draft.run_reply(run))
}
