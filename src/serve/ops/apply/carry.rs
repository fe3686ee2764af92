//! A plan carried out: so many jobs at once, each by itself, DAGs behind the jobs that may be their nodes, deletions last and only when
//! all else went well.

use super::{
    super::{Answer, Operations},
    Planned,
    plan::Step,
};
use campanile_schema::{
    apply::{AppliedView, ApplyFailure, ApplyOutcome, PlanAction, PlanItem},
    error::{ApiError, ErrorCode},
    ids::JobId,
    limits::APPLY_IN_FLIGHT,
    operations::{JobCreate, JobDelete, JobGet, JobPause, JobReplace, JobResume},
    rpc::calls::{CreateCall, JobCall, NoBody},
    view::{ReasonBody, ReplaceBody},
};
use campanile_security::auth::Caller;
use futures_util::{StreamExt, stream};
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a job is paused, resumed or deleted, in its history and the audit log.
const REASON: &str = "apply: as its manifest says";
/// The same for a job that no manifest names any more.
const REASON_GONE: &str = "apply: its manifest is gone";

pub(super) async fn out(ops: &Operations, caller: &Caller, planned: Planned) -> AppliedView {
    let (last, first): (Vec<_>, Vec<_>) =
        planned.items.into_iter().partition(|(item, _)| item.action == PlanAction::Delete);
    let (dags, first): (Vec<_>, Vec<_>) = first.into_iter().partition(|(_, steps)| steps.iter().any(Step::is_dag));
    let halted = AtomicBool::new(false);
    let mut items = all(ops, caller, first, &halted).await;
    items.extend(all(ops, caller, dags, &halted).await);
    // What is deleted may be what another job was to take the place of.
    halted.fetch_or(items.iter().any(|item| item.error.is_some()), Ordering::Relaxed);
    items.extend(all(ops, caller, last, &halted).await);
    let count = |action: Option<PlanAction>, outcome| {
        let fits =
            |item: &&PlanItem| item.outcome == Some(outcome) && action.is_none_or(|action| item.action == action);
        items.iter().filter(fits).count() as u64
    };
    AppliedView {
        created: count(Some(PlanAction::Create), ApplyOutcome::Done),
        changed: count(Some(PlanAction::Change), ApplyOutcome::Done),
        unchanged: count(Some(PlanAction::Unchanged), ApplyOutcome::Done),
        deleted: count(Some(PlanAction::Delete), ApplyOutcome::Done),
        failed: count(None, ApplyOutcome::Failed),
        not_begun: count(None, ApplyOutcome::NotBegun),
        items,
    }
}

async fn all(
    ops: &Operations,
    caller: &Caller,
    items: Vec<(PlanItem, Vec<Step>)>,
    halted: &AtomicBool,
) -> Vec<PlanItem> {
    let one = |(mut item, steps): (PlanItem, Vec<Step>)| async move {
        if halted.load(Ordering::Relaxed) && item.action != PlanAction::Unchanged {
            item.outcome = Some(ApplyOutcome::NotBegun);
            return item;
        }
        match job(ops, caller, &mut item, steps).await {
            Ok(()) => item.outcome = Some(ApplyOutcome::Done),
            Err(error) => {
                // What would fail for every job need not be tried with each.
                halted.fetch_or(error.known().status() >= 500, Ordering::Relaxed);
                item.outcome = Some(ApplyOutcome::Failed);
                item.error = Some(ApplyFailure { code: error.code, message: error.message });
            }
        }
        item
    };
    let begun: Vec<_> = items.into_iter().map(one).collect();
    stream::iter(begun).buffered(APPLY_IN_FLIGHT).collect().await
}

async fn job(ops: &Operations, caller: &Caller, item: &mut PlanItem, steps: Vec<Step>) -> Answer<()> {
    // Only what is left over has no place in a file.
    let is_gone = item.file.is_none() && item.job_id.is_some() && !steps.is_empty();
    let reason = || ReasonBody { reason: Some(if is_gone { REASON_GONE } else { REASON }.to_owned()) };
    for step in steps {
        let known = |item: &PlanItem| -> Answer<JobId> {
            item.job_id.ok_or_else(|| ApiError::new(ErrorCode::Internal, "a step came before the job was made"))
        };
        match step {
            Step::Create(spec) => {
                let created = ops.call::<JobCreate>(caller, CreateCall { field: None, body: spec }).await?;
                item.job_id = Some(created.job_id);
            }
            Step::Replace { version, spec } => {
                let job = known(item)?;
                let version = match version {
                    Some(version) => version,
                    None => ops.call::<JobGet>(caller, JobCall::new(job, NoBody {})).await?.version,
                };
                let call = JobCall::new(job, ReplaceBody::new(version, spec));
                item.version = Some(ops.call::<JobReplace>(caller, call).await?.version);
            }
            Step::Pause => drop(ops.call::<JobPause>(caller, JobCall::new(known(item)?, reason())).await?),
            Step::Resume => drop(ops.call::<JobResume>(caller, JobCall::new(known(item)?, reason())).await?),
            Step::Delete => drop(ops.call::<JobDelete>(caller, JobCall::new(known(item)?, reason())).await?),
        }
    }
    Ok(())
}
