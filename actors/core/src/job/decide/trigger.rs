//! A manual trigger. The same caller's key makes the same run. The shard has checked the keys of final runs before.

use super::{
    super::effect::Reply,
    Draft, deadline,
    due::{Admission, admit},
};
use crate::reject::Rejection;
use campanile_schema::{
    error::ErrorCode,
    event::{Event, SkipReason},
    job::JobStatus,
    limits::OPEN_RUNS_PER_JOB,
    payload::Payload,
    record::{RunRecord, Source},
    stored::{Sealed, audit::CallOrigin},
};
use std::sync::Arc;

pub(super) fn trigger(
    draft: &mut Draft<'_>,
    key: &Option<String>,
    params: &Option<Payload>,
    reason: &Option<String>,
    (by, sealed): (&Option<Arc<CallOrigin>>, &Option<Arc<Sealed>>),
) -> Result<Reply, Rejection> {
    if let Some(key) = key
        && let Some(open) =
            draft.job.hot.runs.iter().find(|r| r.record.source == Source::Manual && r.record.key.as_ref() == Some(key))
    {
        same_request(&open.record, params.as_ref())?;
        return Ok(Reply::Run(Box::new(draft.job.run_view(open))));
    }
    may_start(draft)?;
    has_room(draft)?;
    check_params(draft, params.as_ref())?;
    let held = match admit(draft) {
        Admission::Start => false,
        Admission::Hold => true,
        Admission::No(SkipReason::QueueFull) => {
            return Err(super::queue_full());
        }
        Admission::No(_) => {
            return Err(Rejection::new(
                ErrorCode::RunActive,
                format!(
                    "concurrencyPolicy {} and a run is active; wait for it or cancel it",
                    draft.job.def.concurrency
                ),
            ));
        }
    };
    let run = draft.new_run_id();
    let key = key.clone().or_else(|| Some(format!("run-{run}")));
    let made = Event::RunCreated {
        job: draft.job.id,
        run,
        source: Source::Manual,
        logical_ms: Some(draft.ctx.now_ms),
        key,
        params: params.clone(),
        reason: reason.clone(),
        by: by.clone(),
        held: held || draft.job.is_dag(),
        at_ms: draft.ctx.now_ms,
        interval: None,
        late: false,
        dag: None,
        depth: 0,
        marked: false,
        timeout_sec: None,
        backfill: None,
        budget: None,
        sealed: sealed.clone(),
    };
    #[cfg(feature = "faults")]
    let again = made.clone();
    draft.emit(made);
    deadline::of_other(draft, run);
    if !held {
        draft.enqueue(run);
    }
    #[cfg(feature = "faults")]
    super::mutations::trigger_again(draft, &again);
    Ok(draft.run_reply(run))
}

/// Params of a trigger are laid over the job's, name by name: so both are objects. Only a job whose own params are something else, as
/// a list, is triggered with something else.
fn check_params(draft: &Draft<'_>, params: Option<&Payload>) -> Result<(), Rejection> {
    let job = &draft.job.def.params;
    match params {
        Some(params) if !params.is_empty() && !params.is_object() && (job.is_object() || job.is_empty()) => {
            let why = "params: an object is wanted, whose values are laid over the job's params by their names: write \
                       {\"name\": value}";
            Err(Rejection::new(ErrorCode::InvalidArgument, why))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether runs may be started by hand.
pub(super) fn may_start(draft: &Draft<'_>) -> Result<(), Rejection> {
    match draft.job.hot.status {
        JobStatus::Enabled => {}
        JobStatus::Paused => {
            return Err(Rejection::new(ErrorCode::JobPaused, "the job is paused; resume it first"));
        }
        JobStatus::Deleted => return Err(Rejection::new(ErrorCode::NotFound, "the job was deleted")),
    }
    if draft.paused().is_some() {
        return Err(Rejection::new(ErrorCode::JobPaused, "the tenant or the whole system is paused; resume it first"));
    }
    if let Some(why) = &draft.job.hot.quarantine {
        return Err(Rejection::new(ErrorCode::JobPaused, format!("the job is in quarantine ({why}); resume it first")));
    }
    Ok(())
}

/// Whether one more run may be made by hand: instants that are due wait for the node, callers are told to come back.
pub(super) fn has_room(draft: &Draft<'_>) -> Result<(), Rejection> {
    if draft.ctx.overloaded {
        let why =
            "the node's read model is too far behind; due runs wait for it, and triggers are to be sent again later";
        return Err(Rejection::new(ErrorCode::Overloaded, why));
    }
    if draft.queue_full() {
        let why = "as many runs of the tenant wait as its limit maxQueuedRuns allows; try again when some have started";
        return Err(Rejection::new(ErrorCode::TenantQuota, why));
    }
    if draft.job.hot.runs.len() >= OPEN_RUNS_PER_JOB {
        return Err(super::queue_full());
    }
    Ok(())
}

/// A repeated key finds the run that it made only with the params that it came with.
pub fn same_request(made: &RunRecord, params: Option<&Payload>) -> Result<(), Rejection> {
    if Payload::same(made.params.as_ref(), params) {
        return Ok(());
    }
    let why = format!(
        "this key came with other params before and made run {}; a new request needs a new key, a repeat the same params",
        made.run
    );
    Err(Rejection::new(ErrorCode::IdempotencyKeyReused, why))
}
