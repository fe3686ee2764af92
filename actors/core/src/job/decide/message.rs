//! Messages between jobs: what a run sends when it ends, and the run that a message makes.

use super::{super::effect::Reply, Draft, deadline, doubtful::doubt, lane, queue_full};
#[cfg(feature = "faults")]
use crate::faults::{self, Mutation};
use crate::{
    backfill, channels,
    hooks::{self, DueHook, rules::kept},
    job::command::Taken,
    outbox::{MessageDraft, body, sending::To},
    reject::Rejection,
};
use campanile_schema::{
    channel::CALLBACK_JOB,
    error::ErrorCode,
    event::Event,
    hooks::CALLBACK,
    ids::RunId,
    job::JobStatus,
    limits::OPEN_RUNS_PER_JOB,
    record::{RunRecord, RunState},
    stored::{
        audit::CallOrigin,
        outbox::{DropReason, MessageKind},
    },
    text::Text,
};

/// What is sent in the frame of the end of a run for good: its hooks, and the end that its DAG run waits for.
/// The record says whether a compensation is among them.
pub(super) fn of_end(draft: &Draft<'_>, record: &mut RunRecord) -> Vec<MessageDraft> {
    let mut sends = hooks(draft, record);
    // Also by one that is dropped: a person may send it again.
    record.compensated |= sends.iter().any(|of| of.kind == MessageKind::Compensation);
    if record.sealed.is_some() && !draft.job.def.is_channel() && channels::rules::kept(channels::Rule::CallbackIsSent) {
        let wanted = wanted(record, MessageKind::Hook, CALLBACK, To::Job(Text::new_static(CALLBACK_JOB)));
        // A channel has no hooks of its own, so it takes nothing of the budget.
        sends.push(MessageDraft { body_bytes: body::hook_bytes(record), budget: Some(0), ..wanted });
    }
    if let Some((dag, node)) = record.dag {
        let wanted = wanted(record, MessageKind::End, node, To::Parent(RunId(dag)));
        sends.push(MessageDraft { body_bytes: body::end_bytes(record), ..wanted });
    }
    sends
}

fn hooks(draft: &Draft<'_>, record: &RunRecord) -> Vec<MessageDraft> {
    if is_silent(draft, record) {
        return Vec::new();
    }
    let due = hooks::due(&draft.job.def, record);
    #[cfg(feature = "faults")]
    if !due.is_empty() && faults::strikes(Mutation::ForgetHook, draft.ctx.now_ms) {
        return Vec::new();
    }
    let message = |DueHook { hook, number, budget }: DueHook<'_>| {
        let undoes = hook.compensation && kept(hooks::Rule::CompensationIsOne);
        let kind = if undoes { MessageKind::Compensation } else { MessageKind::Hook };
        MessageDraft {
            params: (!hook.params.is_empty()).then(|| hook.params.clone()),
            body_bytes: body::hook_bytes(record),
            budget: Some(budget.unwrap_or(0)),
            dropped: budget.is_none().then_some(DropReason::Budget),
            ..wanted(record, kind, number, To::Job(hook.job.clone()))
        }
    };
    due.into_iter().map(message).collect()
}

/// Runs of a backfill start no hooks, unless that was asked for.
pub(super) fn is_silent(draft: &Draft<'_>, record: &RunRecord) -> bool {
    let asked = |id| draft.job.backfill(id).is_some_and(|backfill| backfill.hooks);
    record.backfill.is_some_and(|id| !asked(id)) && backfill::rules::kept(backfill::Rule::HooksAreOff)
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
        budget: None,
        dropped: None,
        deadline: None,
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
    if draft.ctx.overloaded || draft.queue_full() || draft.job.hot.runs.len() >= OPEN_RUNS_PER_JOB {
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
        budget: taken.budget.filter(|_| kept(hooks::Rule::BudgetIsCarried)),
        sealed: taken.sealed.clone(),
    });
    deadline::of_other(draft, run);
    if taken.confirm {
        doubt(draft, run, if held || draft.job.is_dag() { RunState::Pending } else { RunState::Queued });
    } else if !held {
        lane::give_way(draft);
        draft.enqueue(run);
    }
    Ok(draft.run_reply(run))
}
