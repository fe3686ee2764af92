//! Changes of the job itself: replace, pause, resume, delete, quarantine. None of them fires anything retroactively.

use super::{
    super::{
        effect::{Reply, WaitingRun},
        pending::{waiting, withdrawn},
        state::OpenRun,
        table::{JobStep, job_after},
    },
    Draft, due, finish, lane, stop,
};
use crate::{
    bulk::rules::{Rule, kept},
    channels,
    reject::Rejection,
};
use campanile_schema::{
    error::ErrorCode,
    event::{Event, SkipReason, StopReason},
    ids::RunId,
    job::JobStatus,
    record::RunState,
    stored::{Sealed, StoredJob, StoredTrigger, bulk::BulkMark},
};
use std::sync::Arc;

fn legal(draft: &Draft<'_>, step: JobStep) -> Result<(), Rejection> {
    if job_after(draft.job.hot.status, step).is_some() {
        return Ok(());
    }
    Err(match draft.job.hot.status {
        JobStatus::Deleted => Rejection::new(ErrorCode::NotFound, "the job was deleted"),
        JobStatus::Enabled | JobStatus::Paused => {
            Rejection::new(ErrorCode::JobPaused, "the job is paused; resume it first")
        }
    })
}

/// Why instants up to now were not decided: what stands in the ledger when such a stretch is closed.
pub(super) fn standing_reason(draft: &Draft<'_>) -> SkipReason {
    if draft.job.hot.quarantine.is_some() { SkipReason::Quarantined } else { SkipReason::Paused }
}

pub(super) fn replace(draft: &mut Draft<'_>, version: u64, spec: &StoredJob) -> Result<Reply, Rejection> {
    legal(draft, JobStep::Replace)?;
    if version != draft.job.hot.version {
        return Err(Rejection::new(
            ErrorCode::StaleVersion,
            format!("version {version} was given, the current one is {}: read the job again", draft.job.hot.version),
        ));
    }
    if spec.name != draft.job.def.name || spec.tenant != draft.job.def.tenant {
        return Err(Rejection::new(ErrorCode::InvalidArgument, "name and tenantId of a job cannot be changed"));
    }
    if spec.graph().is_some() != draft.job.is_dag() {
        let why = "action.kind: a job cannot become a DAG, and a DAG no other job; create a job with another name";
        return Err(Rejection::new(ErrorCode::InvalidArgument, why));
    }
    // Its runs would give their permits back where they did not take them.
    if spec.is_channel() != draft.job.def.is_channel() && channels::rules::kept(channels::Rule::StaysChannel) {
        let why =
            "action.kind: a job cannot become a WEBHOOK, and a WEBHOOK no other job; create a job with another name";
        return Err(Rejection::new(ErrorCode::InvalidArgument, why));
    }
    let reason = if draft.job.fires() { SkipReason::Edited } else { standing_reason(draft) };
    let fires = draft.job.fires();
    due::settle(draft, fires, reason)?;
    let at_ms = draft.ctx.now_ms.max(draft.job.hot.cursor_ms);
    if let StoredTrigger::Once { at_ms: due } = spec.trigger
        && due <= at_ms
        && spec.trigger != draft.job.def.trigger
    {
        return Err(Rejection::new(
            ErrorCode::ScheduleNeverFires,
            "an edit fires nothing in the past; give trigger.at a later instant, or trigger the job by hand",
        ));
    }
    let queued: Vec<Box<WaitingRun>> = draft
        .job
        .hot
        .runs
        .iter()
        .filter(|r| r.state() == RunState::Queued)
        .map(|r| waiting(&draft.job, r, draft.ctx.now_ms))
        .collect();
    let mut spec = spec.clone();
    if spec.secrets.as_ref().is_some_and(Sealed::is_keep) {
        spec.secrets.clone_from(&draft.job.def.secrets);
    }
    draft.emit(Event::JobReplaced { job: draft.job.id, spec: Arc::new(spec), version: version + 1, at_ms });
    for was in queued {
        queue_again(draft, was);
    }
    Ok(Reply::Done)
}

/// A run that waits for an executor waits by the new definition: perhaps in another pool.
fn queue_again(draft: &mut Draft<'_>, was: Box<WaitingRun>) {
    let Some(open) = draft.job.run(was.run) else { return };
    if waiting(&draft.job, open, was.since_ms) != was {
        let run = was.run;
        draft.dequeue(run, was.tenant, was.pool);
        draft.enqueue(run);
    }
}

pub(super) fn pause(draft: &mut Draft<'_>, reason: Option<String>, bulk: Option<BulkMark>) -> Result<Reply, Rejection> {
    legal(draft, JobStep::Pause)?;
    if draft.job.hot.status == JobStatus::Paused {
        if draft.job.hot.bulk.is_none() || bulk.is_some() || !kept(Rule::PauseClaims) {
            return Ok(Reply::Unchanged);
        }
        // It is not the bulk operation's any more.
        draft.emit(Event::JobPaused { job: draft.job.id, at_ms: draft.ctx.now_ms, reason, bulk });
        return Ok(Reply::Done);
    }
    // Paused from now on; what is before has its own reason.
    let before = standing_reason(draft);
    due::settle(draft, true, before)?;
    let held_before = draft.job.holds_runs();
    draft.emit(Event::JobPaused { job: draft.job.id, at_ms: draft.ctx.now_ms, reason, bulk });
    withdraw(draft, held_before);
    Ok(Reply::Done)
}

/// The job may have begun to hold its runs: those that wait for an executor do not wait for it any more.
fn withdraw(draft: &mut Draft<'_>, held_before: bool) {
    if draft.job.holds_runs() && !held_before {
        // Runs that this decision made may have asked already; they take it back like the others.
        let effects = withdrawn(&draft.job);
        draft.effects.extend(effects);
    }
}

pub(super) fn resume(draft: &mut Draft<'_>, bulk: Option<BulkMark>) -> Result<Reply, Rejection> {
    legal(draft, JobStep::Resume)?;
    if draft.job.fires() {
        return Ok(Reply::Unchanged);
    }
    let reason = standing_reason(draft);
    due::settle(draft, false, reason)?;
    let held_before = draft.job.holds_runs();
    draft.emit(Event::JobResumed { job: draft.job.id, at_ms: draft.ctx.now_ms, bulk });
    if held_before {
        let queued = |open: &&OpenRun| open.state() == RunState::Queued;
        let waiting: Vec<RunId> = draft.job.hot.runs.iter().filter(queued).map(OpenRun::id).collect();
        waiting.into_iter().for_each(|run| draft.enqueue(run));
        if draft.job.is_dag() {
            finish::release_held(draft);
        }
    }
    Ok(Reply::Done)
}

pub(super) fn delete(draft: &mut Draft<'_>) -> Result<Reply, Rejection> {
    legal(draft, JobStep::Delete)?;
    #[cfg(feature = "faults")]
    if crate::faults::active(crate::faults::Mutation::ForgetDelete) {
        return Ok(Reply::Done);
    }
    let reason = if draft.job.fires() { SkipReason::Deleted } else { standing_reason(draft) };
    due::settle(draft, false, reason)?;
    lane::job_deleted(draft);
    stop::stop_all(draft, StopReason::Cancel);
    lane::end_if_over(draft);
    draft.emit(Event::JobDeleted { job: draft.job.id, at_ms: draft.ctx.now_ms });
    Ok(Reply::Done)
}

pub(super) fn quarantine(draft: &mut Draft<'_>, reason: String) -> Reply {
    let held_before = draft.job.holds_runs();
    draft.emit(Event::JobQuarantined { job: draft.job.id, at_ms: draft.ctx.now_ms, reason });
    withdraw(draft, held_before);
    Reply::Done
}
