//! An attempt while its body may run: it starts, its executor is silent, its executor is heard again.

use super::{
    super::{
        effect::{Assign, Effect, Reply},
        table::{Step, run_after},
    },
    Draft, deadline,
};
use crate::{channels::Placed, reject::Rejection};
use campanile_schema::{
    error::ErrorCode,
    event::Event,
    ids::{ExecutorSession, RunId, ShardId, Token},
    payload::Payload,
    record::RunState,
    rpc::executor::{Assignment, Held},
    text::Text,
    time::Timestamp,
};

pub(super) fn start(
    draft: &mut Draft<'_>,
    run: RunId,
    executor: &Text,
    (session, credential): (ExecutorSession, Option<&Text>),
    credit_stamp_ms: u64,
) -> Result<Reply, Rejection> {
    let open = draft.job.run(run).filter(|r| run_after(r.state(), Step::Start).is_some());
    let Some(open) = open else {
        return Err(Rejection::new(ErrorCode::IllegalState, "the run does not wait for an executor any more"));
    };
    let attempt = open.record.attempts.last().map_or(1, |a| a.attempt + 1);
    // The wake that ends it is due.
    if draft.job.limit_of_waiting(open).is_some_and(|limit| limit.last_start_ms < draft.ctx.now_ms) {
        return Err(Rejection::new(ErrorCode::IllegalState, "the time of the run is over: no further attempt begins"));
    }
    // The pool may have chosen an executor before it heard of the pause.
    if draft.job.holds_runs() {
        return Err(Rejection::new(
            ErrorCode::IllegalState,
            "the job is paused: resuming it asks for an executor again",
        ));
    }
    if draft.paused().is_some() {
        return Err(Rejection::new(ErrorCode::JobPaused, "the tenant or the whole system is paused: the run waits on"));
    }
    let token = draft.new_token();
    draft.emit(Event::AttemptStarted {
        job: draft.job.id,
        run,
        attempt,
        token,
        executor: executor.clone(),
        session,
        credential: credential.cloned(),
        at_ms: draft.ctx.now_ms,
    });
    deadline::at_start(draft, run);
    let open = draft.job.run(run).expect("started above");
    let timeout_sec = draft.job.attempt_seconds(open, draft.ctx.now_ms);
    let (def, record) = (&draft.job.def, &open.record);
    let assignment = Box::new(Assignment {
        run,
        job: draft.job.id,
        job_name: def.name.clone(),
        tenant: def.tenant.clone(),
        attempt,
        generation: record.generation,
        token,
        // Shard and cluster are the shell's to fill in: the job does not know them.
        shard: ShardId(0),
        epoch: draft.ctx.epoch,
        cluster_id: 0,
        credit_stamp_ms,
        source: record.source,
        logical_time: record.logical_ms.map(Timestamp),
        timeout_sec,
        on_lost_contact: def.on_lost_contact,
        action: def.resolved_action(),
        params: merged_params(&def.params, record.params.as_ref()),
        secrets: std::collections::BTreeMap::new(),
        // The span that the run is a child of. A shell that records spans names the attempt's instead.
        traceparent: record.trace().map(|trace| trace.to_string()),
        checkpoint: None,
    });
    // Of a channel that tells of one run; of any other job they are for somebody else.
    let own = record.sealed.as_deref().filter(|_| def.is_channel()).cloned();
    let secrets = own.or_else(|| def.secrets.clone());
    let assign = Assign { session, assignment, secrets, decided_ms: draft.ctx.now_ms };
    #[cfg(feature = "faults")]
    if super::mutations::invent_success(draft, run, token) {
        return Ok(Reply::Done);
    }
    #[cfg(feature = "faults")]
    let again = assign.clone();
    draft.effect(Effect::Assign(assign));
    #[cfg(feature = "faults")]
    super::mutations::assign_again(draft, &again);
    Ok(Reply::Done)
}

/// The run's params over the job's, key by key where both are objects.
fn merged_params(job: &Payload, run: Option<&Payload>) -> Payload {
    #[cfg(feature = "faults")]
    if crate::faults::active(crate::faults::Mutation::DropParams) {
        return Payload::default();
    }
    job.laid_over(run)
}

fn holds(draft: &Draft<'_>, run: RunId, token: Token, step: Step) -> bool {
    draft.job.run(run).is_some_and(|r| r.token() == Some(token) && run_after(r.state(), step).is_some())
}

pub(super) fn suspect(draft: &mut Draft<'_>, run: RunId, token: Token) -> Reply {
    if !holds(draft, run, token, Step::Suspect) {
        return Reply::Unchanged;
    }
    draft.emit(Event::AttemptSuspected { job: draft.job.id, run, at_ms: draft.ctx.now_ms });
    Reply::Done
}

/// `credential`: the speaker's, which the attempt belongs to from now on if it has named none so far.
pub(super) fn heard(
    draft: &mut Draft<'_>,
    run: RunId,
    token: Token,
    session: ExecutorSession,
    credential: Option<&Text>,
) -> Reply {
    if !holds(draft, run, token, Step::Hear) {
        // It holds a body that was replaced or ended: it must stop it.
        return Reply::Stale;
    }
    let Some(open) = draft.job.run(run) else { return Reply::Stale };
    let adopted = credential.filter(|_| open.credential.is_none()).cloned();
    let moved_from = open.session.filter(|before| *before != session);
    let known = moved_from.is_none() && adopted.is_none() && open.state() == RunState::Running;
    let executor = open.attempt().map(|attempt| attempt.executor.clone());
    if open.stopping.is_some() {
        // It may not have heard that it shall stop.
        draft.effect(Effect::Stop { session, held: Held { run, job: draft.job.id, token } });
    }
    if known {
        return Reply::Unchanged;
    }
    draft.emit(Event::AttemptHeard { job: draft.job.id, run, session, credential: adopted, at_ms: draft.ctx.now_ms });
    if let (Some(_), Some(executor)) = (moved_from, executor) {
        // From now on the lease of the new session counts. Said by the job, so that it cannot come behind the attempt's end.
        let (def, open) = (&draft.job.def, draft.job.run(run));
        let watch = Effect::Watch {
            session,
            credential: open.and_then(|open| open.credential.clone()),
            held: Held { run, job: draft.job.id, token },
            tenant: def.permits(),
            pool: def.place(),
            executor,
            moved_from,
            target: def.target.clone(),
        };
        draft.effect(watch);
    }
    Reply::Done
}
