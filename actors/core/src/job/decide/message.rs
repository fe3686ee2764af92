//! Messages between jobs: what a run sends when it ends, and the run that a message makes.

use super::{super::effect::Reply, Draft, restore::doubt, trigger::queue_full};
#[cfg(feature = "faults")]
use crate::faults::{self, Mutation};
use crate::{
    job::command::Taken,
    outbox::{MessageDraft, body, sending::To},
    reject::Rejection,
};
use campanile_schema::{
    error::ErrorCode,
    event::Event,
    job::{ConcurrencyPolicy, JobStatus},
    limits::OPEN_RUNS_PER_JOB,
    record::{RunRecord, RunState},
    stored::outbox::MessageKind,
};

/// A run has ended for good: its hooks are sent in the same frame.
pub(super) fn on_end(draft: &mut Draft<'_>, record: &RunRecord) {
    if !matches!(record.state, RunState::Failed | RunState::Timeout) {
        return;
    }
    #[cfg(feature = "faults")]
    if faults::strikes(Mutation::ForgetHook, draft.ctx.now_ms) {
        return;
    }
    for (index, hook) in (0..).zip(&draft.job.def.on_failure) {
        let body_bytes = body::hook_bytes(record);
        let wanted = MessageDraft {
            kind: MessageKind::Hook,
            tenant: record.tenant.clone(),
            run: record.run,
            run_created_ms: record.created_ms,
            run_marked: record.marked,
            generation: record.generation,
            index,
            to: To::Job(hook.job.clone()),
            params: (!hook.params.is_empty()).then(|| hook.params.clone()),
            depth: record.depth,
            body_bytes,
        };
        draft.sends.push(wanted);
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
    let held = match draft.job.def.concurrency {
        ConcurrencyPolicy::Allow => false,
        ConcurrencyPolicy::Forbid | ConcurrencyPolicy::QueueOne | ConcurrencyPolicy::Replace => draft.job.is_active(),
    };
    let run = draft.new_run_id();
    draft.emit(Event::RunCreated {
        job: draft.job.id,
        run,
        source: taken.source,
        logical_ms: Some(draft.ctx.now_ms),
        key: Some(taken.key.clone()),
        params: Some(taken.params.clone()),
        reason: Some(taken.reason.clone()),
        by: None,
        held,
        at_ms: draft.ctx.now_ms,
        interval: None,
        late: false,
        dag: None,
        depth: taken.depth,
        marked: taken.marked,
    });
    if taken.confirm {
        doubt(draft, run, if held { RunState::Pending } else { RunState::Queued });
    } else if !held {
        draft.enqueue(run);
    }
    Ok(draft.run_reply(run))
}
