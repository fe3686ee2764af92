//! Calls about backfills and replays. Before one begins, the past of the job is looked at here and counted; a dry run ends with that.

use super::{Scheduler, jobs::named, unavailable};
use crate::{
    ask::ask,
    backfill::{PastOf, plan, shown},
    calls::{BackfillAction, BackfillFacts, ShardCall},
    handles::SessionHandles,
};
use campanile_core::{
    backfill::{Past, Wish},
    job::{BackfillAsked, BackfillCommand, Command, Reply, backfill, check_backfill, too_many_instants},
};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    format::MESSAGES_FORMAT,
    ids::{BackfillId, JobId},
    job::ConcurrencyPolicy,
    limits::{BACKFILL_INSTANTS, BACKFILL_PARALLEL},
    stored::backfill::{BackfillMode, BackfillPlan},
    text::Text,
    time::Timestamp,
    view::backfill::{BackfillBody, BackfillView, ReplayBody, UnknownInstants},
};

impl Scheduler {
    /// Runs instants of a job's past; with `dryRun` it says what it would do.
    pub async fn backfill(&self, job: JobId, body: BackfillBody) -> Answer<BackfillView> {
        let mode = body.mode.unwrap_or_default();
        if mode == BackfillMode::Replay {
            let why =
                "mode: REPLAY is what POST /api/v1/jobs/{jobId}/replay (job.replay) does; give MISSING, FAILED or ALL";
            return Err(ApiError::new(ErrorCode::InvalidArgument, why));
        }
        self.begin_backfill(job, mode, body).await
    }

    /// Runs instants that made a run once more.
    pub async fn replay(&self, job: JobId, body: ReplayBody) -> Answer<BackfillView> {
        let ReplayBody { from, to, parallelism, hooks, dry_run, reason } = body;
        let unknown = UnknownInstants::Skip;
        let body = BackfillBody { from, to, parallelism, mode: None, unknown, hooks, dry_run, reason };
        self.begin_backfill(job, BackfillMode::Replay, body).await
    }

    async fn begin_backfill(&self, job: JobId, mode: BackfillMode, body: BackfillBody) -> Answer<BackfillView> {
        let handles = self.handles()?;
        if handles.in_use.event() < MESSAGES_FORMAT {
            let why = "not all nodes of the cluster run the release that knows backfills; repeat the call when they do";
            return Err(ApiError::new(ErrorCode::UpgradeUnderWay, why).retry_after(10.0));
        }
        let shard = job.shard(handles.identity.shards);
        let facts: Box<BackfillFacts> =
            ask(&handles.client, shard, ShardCall::BackfillFacts(job)).await.map_err(|e| named(e, "job", job))?;
        let schedule = self.schedule_of(&handles, &facts.definition).await?;
        let (from_ms, asked_ms) = (body.from.ms(), body.to.ms());
        let parallelism = body.parallelism.unwrap_or(BACKFILL_PARALLEL);
        let now_ms = handles.identity.time.now_ms();
        check_backfill(&facts.definition, &schedule, (from_ms, asked_ms), parallelism, now_ms)?;
        // What is not decided yet is left to the schedule.
        let to_ms = asked_ms.min(facts.cursor_ms).max(from_ms - 1);
        let unknown_run = body.unknown == UnknownInstants::Run;
        let of = PastOf {
            views: handles.views.clone(),
            job,
            past: Past { schedule: schedule.clone(), created_ms: facts.created_ms },
            wish: Wish { mode, unknown_run, first: facts.first },
        };
        handles.client.projector.shows_all().await;
        shown(&*of.views, shard, facts.seq).await.map_err(|error| unavailable(&error))?;
        let plan = plan(&of, from_ms - 1, to_ms).await.map_err(|error| unavailable(&error))?;
        if plan.instants > BACKFILL_INSTANTS {
            return Err(too_many_instants(&schedule, from_ms, to_ms).into());
        }
        let by = self.caller().and_then(|origin| origin.who.clone());
        let reason = body.reason.as_deref().map(Text::from);
        let asked =
            BackfillAsked { mode, from_ms, to_ms, parallelism, unknown_run, hooks: body.hooks, plan, reason, by };
        if body.dry_run {
            return Ok(would(job, &facts, &asked));
        }
        let command = Command::Backfill(Box::new(BackfillCommand::Create(Box::new(asked))));
        let mut view = backfill_view(self.command(job, command).await?)?;
        view.hazard = backfill::hazard(mode);
        Ok(view)
    }

    /// The newest one of a job.
    pub async fn backfill_of_job(&self, job: JobId) -> Answer<BackfillView> {
        let handles = self.handles()?;
        let call = ShardCall::GetBackfillOfJob(job);
        let view: Box<BackfillView> = ask(&handles.client, job.shard(handles.identity.shards), call).await?;
        Ok(*view)
    }

    pub async fn backfill_by_id(&self, id: BackfillId) -> Answer<BackfillView> {
        let handles = self.handles()?;
        let view: Box<BackfillView> = ask(&handles.client, of(&handles, id), ShardCall::GetBackfill(id))
            .await
            .map_err(|e| named(e, "backfill", id))?;
        Ok(*view)
    }

    pub async fn tenant_of_backfill(&self, id: BackfillId) -> Answer<String> {
        self.backfill_by_id(id).await.map(|view| view.tenant_id)
    }

    pub async fn pause_backfill(&self, id: BackfillId, reason: Option<String>) -> Answer<BackfillView> {
        self.change_backfill(id, BackfillAction::Pause { reason: reason.map(Text::from) }).await
    }

    pub async fn resume_backfill(&self, id: BackfillId, reason: Option<String>) -> Answer<BackfillView> {
        self.because(reason).change_backfill(id, BackfillAction::Resume).await
    }

    /// Its open runs are canceled. Those that have a body end when that has ended.
    pub async fn cancel_backfill(&self, id: BackfillId, reason: Option<String>) -> Answer<BackfillView> {
        self.change_backfill(id, BackfillAction::Cancel { reason: reason.map(Text::from) }).await
    }

    async fn change_backfill(&self, id: BackfillId, action: BackfillAction) -> Answer<BackfillView> {
        let handles = self.handles()?;
        let change = self.with_record(&handles, ShardCall::ChangeBackfill { id, action });
        let reply = ask(&handles.client, of(&handles, id), change).await.map_err(|e| named(e, "backfill", id))?;
        backfill_view(reply)
    }
}

fn of(handles: &SessionHandles, id: BackfillId) -> campanile_schema::ids::ShardId {
    id.shard(handles.identity.shards)
}

fn backfill_view(reply: Reply) -> Answer<BackfillView> {
    match reply {
        Reply::Backfill(view) => Ok(*view),
        Reply::Done | Reply::Unchanged | Reply::Run(_) | Reply::Final(_) | Reply::Stale => {
            Err(ApiError::new(ErrorCode::Internal, "the job answered without its backfill"))
        }
    }
}

/// The answer of a dry run.
fn would(job: JobId, facts: &BackfillFacts, asked: &BackfillAsked) -> BackfillView {
    let plan: BackfillPlan = asked.plan;
    let parallelism = match facts.definition.concurrency {
        ConcurrencyPolicy::Forbid | ConcurrencyPolicy::QueueOne => 1,
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Replace => asked.parallelism,
    };
    BackfillView {
        job_id: job,
        tenant_id: facts.definition.tenant.to_string(),
        mode: asked.mode,
        from: Timestamp(asked.from_ms),
        to: Timestamp(asked.to_ms),
        parallelism,
        unknown_instants: if asked.unknown_run { UnknownInstants::Run } else { UnknownInstants::Skip },
        hooks: asked.hooks,
        instants: plan.instants,
        missing: plan.missing,
        failed: plan.failed,
        existing: plan.passed.existing,
        unknown: plan.passed.unknown,
        differing: plan.passed.differing,
        gone: plan.passed.gone,
        to_run: plan.to_run,
        estimated_sec: plan.usual_ms.map(|each| backfill::seconds(plan.to_run, each, parallelism as usize)),
        hazard: backfill::hazard(asked.mode),
        ..BackfillView::default()
    }
}
