//! A run by hand. The same caller's key makes the same run: keys of runs that are final are checked by the shard before.

use super::{
    super::effect::Reply,
    Draft,
    due::{Admission, admit},
};
use crate::reject::Rejection;
use campanile_schema::{
    error::ErrorCode,
    event::{Event, SkipReason},
    job::JobStatus,
    payload::Payload,
    record::Source,
};

pub(super) fn trigger(
    draft: &mut Draft<'_>,
    key: &Option<String>,
    params: &Option<Payload>,
    reason: &Option<String>,
) -> Result<Reply, Rejection> {
    if let Some(key) = key
        && let Some(open) =
            draft.job.hot.runs.iter().find(|r| r.record.source == Source::Manual && r.record.key.as_ref() == Some(key))
    {
        return Ok(Reply::Run(Box::new(draft.job.run_view(open))));
    }
    may_start(draft)?;
    let held = match admit(draft) {
        Admission::Start => false,
        Admission::Hold => true,
        Admission::No(SkipReason::QueueFull) => {
            return Err(queue_full());
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
    draft.emit(Event::RunCreated {
        job: draft.job.id,
        run,
        source: Source::Manual,
        logical_ms: Some(draft.ctx.now_ms),
        key,
        params: params.clone(),
        reason: reason.clone(),
        held,
        at_ms: draft.ctx.now_ms,
        interval: None,
        late: false,
        dag: None,
    });
    if !held {
        draft.enqueue(run);
    }
    Ok(draft.run_reply(run))
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

pub(super) fn queue_full() -> Rejection {
    Rejection::new(
        ErrorCode::JobQueueFull,
        "too many runs of this job or its tenant are waiting or running; try again later",
    )
}
