//! One function per method; names as in `docs/rpc.md`, with `_` for the dot.

use super::{Client, retry::RepeatEffect};
use crate::error::ClientError;
use campanile_schema::{
    apply::{AppliedView, ApplyBody, PlanView},
    audit::{AuditBody, AuditView},
    cluster::{ClusterEventView, MemberView, PlanView as ClusterPlan, ShardFilter, ShardView},
    error::ApiError,
    graph::ShortGraphSpec,
    ids::{BackfillId, BulkId, JobId, RunId},
    job::{JobSpec, JobView},
    operations::{self as o, Operation},
    rpc::calls::{
        BackfillCall, BulkCall, CalendarCall, Call, CreateCall, DagCall, Items, JobCall, NoBody, NodeCall, RunCall,
        TargetCall, TenantCall,
    },
    time::Timestamp,
    view::{
        ConfirmBody, Created, DeadLetterView, ExecutorView, FindBody, Gathered, JobFilter, LedgerBody, LedgerView,
        LogBody, LogView, NodeView, Page, PageBody, PoolView, Preview, PreviewBody, PriorityBody, ReasonBody,
        ReplaceBody, RetryBody, RunGetBody, RunView, Spread, TenantBody, TenantPageBody, TenantView, TriggerBody,
        backfill::{BackfillBody, BackfillView, ReplayBody},
        bulk::{BulkBody, BulkView},
        calendars::{CalendarBody, CalendarPreviewBody, CalendarPreviewView, CalendarView},
        dag::{DagCreated, DagDrawing, DagMarkBody, DagNodesBody, DagRetryBody, DagRunView},
        explain::{ExplainBody, ExplainView},
        outbox::OutboxMessageView,
        runs::{
            CausesBody, CausesView, DeadLettersBody, LoadBody, LoadView, RunListBody, StatisticsBody, StatisticsView,
        },
        targets::{TargetBody, TargetView},
        versions::{RollbackBody, VersionView, VersionsBody},
    },
};

use std::time::Duration;

type CallResult<T> = Result<T, ClientError>;

/// A call about one target of a tenant.
fn of_target<B>(tenant: &str, target: &str, body: B) -> TargetCall<B> {
    TenantCall::new(tenant.to_owned(), Call::new(target.to_owned(), body))
}

/// A call about one calendar of a tenant.
fn of_calendar<B>(tenant: &str, calendar: &str, body: B) -> CalendarCall<B> {
    TenantCall::new(tenant.to_owned(), Call::new(calendar.to_owned(), body))
}

fn reason(text: Option<&str>) -> ReasonBody {
    ReasonBody { reason: text.map(str::to_owned) }
}

impl Client {
    pub async fn job_create(&self, spec: impl Into<JobSpec>) -> CallResult<Created> {
        self.typed::<o::JobCreate>(&CreateCall { field: None, body: spec.into() }).await
    }
    /// The same key with the same job again answers with the job that was made; so it is asked again when the answer was lost.
    pub async fn job_create_once(&self, spec: impl Into<JobSpec>, idempotency_key: &str) -> CallResult<Created> {
        let call = CreateCall::new(idempotency_key.to_owned(), spec.into());
        self.call_as(o::JobCreate::NAME, &call, RepeatEffect::Safe).await
    }
    /// Many in one frame; an answer per job, in order.
    pub async fn job_create_many(&self, specs: Vec<JobSpec>) -> CallResult<Vec<Result<Created, ApiError>>> {
        let answers = self.typed::<o::JobCreateMany>(&Items { items: specs }).await?;
        answers.items.into_iter().map(|item| item.into_result().map_err(ClientError::Protocol)).collect()
    }
    /// What an apply of the same manifests would do. Changes nothing.
    pub async fn job_plan(&self, body: ApplyBody) -> CallResult<PlanView> {
        self.typed::<o::JobPlan>(&body).await
    }
    pub async fn job_apply(&self, body: ApplyBody) -> CallResult<AppliedView> {
        self.typed::<o::JobApply>(&body).await
    }
    pub async fn job_get(&self, job: JobId) -> CallResult<JobView> {
        self.typed::<o::JobGet>(&JobCall::new(job, NoBody {})).await
    }
    /// The job of a name; `tenant`: None = the token's own, for operators `default`.
    pub async fn job_find(&self, tenant: Option<&str>, name: &str) -> CallResult<JobView> {
        let body = FindBody { name: name.to_owned(), tenant_id: tenant.map(str::to_owned) };
        self.typed::<o::JobFind>(&body).await
    }
    pub async fn job_list(&self, filter: JobFilter) -> CallResult<Page<JobView>> {
        self.typed::<o::JobList>(&filter).await
    }
    pub async fn job_replace(&self, job: JobId, version: u64, spec: impl Into<JobSpec>) -> CallResult<JobView> {
        self.typed::<o::JobReplace>(&JobCall::new(job, ReplaceBody::new(version, spec.into()))).await
    }
    pub async fn job_delete(&self, job: JobId, why: Option<&str>) -> CallResult<()> {
        self.done::<o::JobDelete>(&JobCall::new(job, reason(why))).await
    }
    pub async fn job_pause(&self, job: JobId, why: Option<&str>) -> CallResult<JobView> {
        self.typed::<o::JobPause>(&JobCall::new(job, reason(why))).await
    }
    pub async fn job_resume(&self, job: JobId, why: Option<&str>) -> CallResult<JobView> {
        self.typed::<o::JobResume>(&JobCall::new(job, reason(why))).await
    }
    /// The same `manualRunId` again answers with the run that it made; so it is asked again when the answer was lost.
    pub async fn job_trigger(&self, job: JobId, body: TriggerBody) -> CallResult<RunView> {
        let effect = RepeatEffect::keyed(body.manual_run_id.as_deref());
        self.call_as(o::JobTrigger::NAME, &JobCall::new(job, body), effect).await
    }
    /// Runs instants of the past; with `dry_run` it only counts them.
    pub async fn job_backfill(&self, job: JobId, body: BackfillBody) -> CallResult<BackfillView> {
        self.typed::<o::JobBackfill>(&JobCall::new(job, body)).await
    }
    /// Runs instants that made a run once more.
    pub async fn job_replay(&self, job: JobId, body: ReplayBody) -> CallResult<BackfillView> {
        self.typed::<o::JobReplay>(&JobCall::new(job, body)).await
    }
    /// The newest backfill of a job.
    pub async fn job_backfill_get(&self, job: JobId) -> CallResult<BackfillView> {
        self.typed::<o::JobBackfillGet>(&JobCall::new(job, NoBody {})).await
    }
    pub async fn backfill_get(&self, id: BackfillId) -> CallResult<BackfillView> {
        self.typed::<o::BackfillGet>(&BackfillCall::new(id, NoBody {})).await
    }
    /// Its open runs are canceled.
    pub async fn backfill_cancel(&self, id: BackfillId, why: Option<&str>) -> CallResult<BackfillView> {
        self.typed::<o::BackfillCancel>(&BackfillCall::new(id, reason(why))).await
    }
    pub async fn backfill_pause(&self, id: BackfillId, why: Option<&str>) -> CallResult<BackfillView> {
        self.typed::<o::BackfillPause>(&BackfillCall::new(id, reason(why))).await
    }
    pub async fn backfill_resume(&self, id: BackfillId, why: Option<&str>) -> CallResult<BackfillView> {
        self.typed::<o::BackfillResume>(&BackfillCall::new(id, reason(why))).await
    }
    /// Changes all jobs or runs that the filter names; with `dry_run` it only counts them.
    pub async fn bulk_create(&self, body: BulkBody) -> CallResult<BulkView> {
        self.typed::<o::BulkCreate>(&body).await
    }
    pub async fn bulk_list(&self, body: TenantPageBody) -> CallResult<Page<BulkView>> {
        self.typed::<o::BulkList>(&body).await
    }
    pub async fn bulk_get(&self, id: BulkId) -> CallResult<BulkView> {
        self.typed::<o::BulkGet>(&BulkCall::new(id, NoBody {})).await
    }
    /// What it has done stays.
    pub async fn bulk_abort(&self, id: BulkId, why: Option<&str>) -> CallResult<BulkView> {
        self.typed::<o::BulkAbort>(&BulkCall::new(id, reason(why))).await
    }
    /// The answer is the operation that takes it back.
    pub async fn bulk_undo(&self, id: BulkId, why: Option<&str>) -> CallResult<BulkView> {
        self.typed::<o::BulkUndo>(&BulkCall::new(id, reason(why))).await
    }
    pub async fn job_runs(&self, job: JobId, page: PageBody) -> CallResult<Page<RunView>> {
        self.typed::<o::JobRuns>(&JobCall::new(job, page)).await
    }
    pub async fn job_ledger(&self, job: JobId, body: LedgerBody) -> CallResult<LedgerView> {
        self.typed::<o::JobLedger>(&JobCall::new(job, body)).await
    }

    /// When the job fires next and why it does not; with an instant what became of it.
    pub async fn job_explain(&self, job: JobId, at: Option<Timestamp>) -> CallResult<ExplainView> {
        self.typed::<o::JobExplain>(&JobCall::new(job, ExplainBody { at })).await
    }
    /// Outcomes, durations and lateness of the job's runs. `window`: such as `24h`, which is the default.
    pub async fn job_statistics(&self, job: JobId, window: Option<&str>) -> CallResult<StatisticsView> {
        let body = StatisticsBody { window: window.map(str::to_owned) };
        self.typed::<o::JobStatistics>(&JobCall::new(job, body)).await
    }
    /// The history of the job's definition, newest first.
    pub async fn job_versions(&self, job: JobId, body: VersionsBody) -> CallResult<Page<VersionView>> {
        self.typed::<o::JobVersions>(&JobCall::new(job, body)).await
    }
    /// Gives the job the definition of an earlier version, as a new version.
    pub async fn job_rollback(&self, job: JobId, body: RollbackBody) -> CallResult<JobView> {
        self.typed::<o::JobRollback>(&JobCall::new(job, body)).await
    }

    pub async fn run_get(&self, run: RunId) -> CallResult<RunView> {
        // Without the field for waiting, which nodes of an earlier release refuse.
        self.call(o::RunGet::NAME, &RunCall::new(run, NoBody {})).await
    }
    /// As soon as it is final, at the latest after `wait` (a minute at most).
    pub(super) async fn run_get_after(&self, run: RunId, wait: Duration) -> CallResult<RunView> {
        let wait_ms = u64::try_from(wait.as_millis()).ok();
        self.typed::<o::RunGet>(&RunCall::new(run, RunGetBody { wait_ms })).await
    }
    /// Runs of all jobs: those that are open, newest first, then ended ones. A page may have few runs although more follow.
    pub async fn run_list(&self, body: RunListBody) -> CallResult<Page<RunView>> {
        self.typed::<o::RunList>(&body).await
    }
    /// Why the run exists, why it is not running, why it was late.
    pub async fn run_explain(&self, run: RunId) -> CallResult<ExplainView> {
        self.typed::<o::RunExplain>(&RunCall::new(run, NoBody {})).await
    }
    /// FAILED and TIMEOUT runs, newest first.
    pub async fn run_failed(&self, page: TenantPageBody) -> CallResult<Page<RunView>> {
        self.typed::<o::RunFailed>(&page).await
    }
    pub async fn run_cancel(&self, run: RunId, why: Option<&str>) -> CallResult<RunView> {
        self.typed::<o::RunCancel>(&RunCall::new(run, reason(why))).await
    }
    pub async fn run_retry(&self, run: RunId, body: RetryBody) -> CallResult<RunView> {
        self.typed::<o::RunRetry>(&RunCall::new(run, body)).await
    }
    pub async fn run_confirm(&self, run: RunId, body: ConfirmBody) -> CallResult<RunView> {
        self.typed::<o::RunConfirm>(&RunCall::new(run, body)).await
    }
    /// Gives a run that waits a priority of its own, 0 to 1000.
    pub async fn run_priority(&self, run: RunId, body: PriorityBody) -> CallResult<RunView> {
        self.typed::<o::RunPriority>(&RunCall::new(run, body)).await
    }
    /// A DAG of jobs that exist, in its short form; the same key makes one.
    pub async fn dag_create(&self, dag: ShortGraphSpec, key: Option<String>) -> CallResult<DagCreated> {
        self.typed::<o::DagCreate>(&DagCall { field: key, body: dag }).await
    }
    /// The nodes of a run of a DAG.
    pub async fn dag_nodes(&self, run: RunId, draw: Option<DagDrawing>) -> CallResult<DagRunView> {
        self.typed::<o::DagNodes>(&RunCall::new(run, DagNodesBody { draw })).await
    }
    pub async fn dag_retry(&self, run: RunId, body: DagRetryBody) -> CallResult<RunView> {
        self.typed::<o::DagRetry>(&RunCall::new(run, body)).await
    }
    pub async fn dag_mark(&self, run: RunId, body: DagMarkBody) -> CallResult<RunView> {
        self.typed::<o::DagMark>(&RunCall::new(run, body)).await
    }
    /// No further node of an open run starts; runs of nodes go on.
    pub async fn dag_pause(&self, run: RunId, why: Option<&str>) -> CallResult<RunView> {
        self.typed::<o::DagPause>(&RunCall::new(run, reason(why))).await
    }
    pub async fn dag_resume(&self, run: RunId, why: Option<&str>) -> CallResult<RunView> {
        self.typed::<o::DagResume>(&RunCall::new(run, reason(why))).await
    }

    pub async fn run_log(&self, run: RunId, body: LogBody) -> CallResult<LogView> {
        self.typed::<o::RunLog>(&RunCall::new(run, body)).await
    }

    pub async fn dlq_list(&self, body: DeadLettersBody) -> CallResult<Page<DeadLetterView>> {
        self.typed::<o::DlqList>(&body).await
    }
    /// Dead letters by cause: errors that differ in numbers and ids only are one.
    pub async fn dlq_causes(&self, body: CausesBody) -> CallResult<CausesView> {
        self.typed::<o::DlqCauses>(&body).await
    }
    pub async fn dlq_redrive(&self, run: RunId, body: RetryBody) -> CallResult<RunView> {
        self.typed::<o::DlqRedrive>(&RunCall::new(run, body)).await
    }
    pub async fn dlq_discard(&self, run: RunId, why: Option<&str>) -> CallResult<()> {
        self.done::<o::DlqDiscard>(&RunCall::new(run, reason(why))).await
    }

    pub async fn outbox_list(&self, page: TenantPageBody) -> CallResult<Page<OutboxMessageView>> {
        self.typed::<o::OutboxList>(&page).await
    }
    pub async fn outbox_resend(&self, run: RunId, why: Option<&str>) -> CallResult<()> {
        self.done::<o::OutboxResend>(&RunCall::new(run, reason(why))).await
    }
    pub async fn outbox_discard(&self, run: RunId, why: Option<&str>) -> CallResult<()> {
        self.done::<o::OutboxDiscard>(&RunCall::new(run, reason(why))).await
    }

    /// Who changed what and why, and who was refused, newest first. A page may have few records although more follow.
    pub async fn audit_list(&self, body: AuditBody) -> CallResult<Page<AuditView>> {
        self.typed::<o::AuditList>(&body).await
    }

    /// How many instants are due in each of the next minutes.
    pub async fn schedule_load(&self, body: LoadBody) -> CallResult<LoadView> {
        self.typed::<o::ScheduleLoad>(&body).await
    }
    pub async fn schedule_preview(&self, body: PreviewBody) -> CallResult<Preview> {
        self.typed::<o::SchedulePreview>(&body).await
    }

    pub async fn tenant_get(&self, tenant: &str) -> CallResult<TenantView> {
        self.typed::<o::TenantGet>(&TenantCall::new(tenant.to_owned(), NoBody {})).await
    }
    pub async fn tenant_list(&self) -> CallResult<Vec<TenantView>> {
        self.typed::<o::TenantList>(&NoBody {}).await.map(|list| list.items)
    }
    pub async fn tenant_set(&self, tenant: &str, quota: TenantBody) -> CallResult<TenantView> {
        self.typed::<o::TenantSet>(&TenantCall::new(tenant.to_owned(), quota)).await
    }
    /// Its limits and its pause go, for operators; refused with ILLEGAL_STATE while it has jobs or open runs.
    pub async fn tenant_delete(&self, tenant: &str, why: Option<&str>) -> CallResult<()> {
        self.done::<o::TenantDelete>(&TenantCall::new(tenant.to_owned(), reason(why))).await
    }
    /// No job of the tenant fires until it is resumed (operators). The answer has the shards that are not known to hold it yet: it goes on
    /// there by itself, and saying it again is harmless.
    pub async fn tenant_pause(&self, tenant: &str, why: Option<&str>) -> CallResult<Spread> {
        self.typed::<o::TenantPause>(&TenantCall::new(tenant.to_owned(), reason(why))).await
    }
    /// See [`Client::tenant_pause`].
    pub async fn tenant_resume(&self, tenant: &str, why: Option<&str>) -> CallResult<Spread> {
        self.typed::<o::TenantResume>(&TenantCall::new(tenant.to_owned(), reason(why))).await
    }

    /// The targets of a tenant that have settings.
    pub async fn target_list(&self, tenant: &str) -> CallResult<Vec<TargetView>> {
        self.typed::<o::TargetList>(&TenantCall::new(tenant.to_owned(), NoBody {})).await.map(|list| list.items)
    }
    /// Its settings, the state of its breaker, and the runs that use it or wait for it.
    pub async fn target_get(&self, tenant: &str, target: &str) -> CallResult<TargetView> {
        self.typed::<o::TargetGet>(&of_target(tenant, target, NoBody {})).await
    }
    /// Sets all of its settings.
    pub async fn target_set(&self, tenant: &str, target: &str, settings: TargetBody) -> CallResult<TargetView> {
        self.typed::<o::TargetSet>(&of_target(tenant, target, settings)).await
    }
    /// Its settings go; jobs that name it have the default ones.
    pub async fn target_delete(&self, tenant: &str, target: &str, why: Option<&str>) -> CallResult<()> {
        self.done::<o::TargetDelete>(&of_target(tenant, target, reason(why))).await
    }

    /// The calendars of a tenant.
    pub async fn calendar_list(&self, tenant: &str) -> CallResult<Vec<CalendarView>> {
        self.typed::<o::CalendarList>(&TenantCall::new(tenant.to_owned(), NoBody {})).await.map(|list| list.items)
    }
    /// A calendar with its versions, also a deleted one.
    pub async fn calendar_get(&self, tenant: &str, calendar: &str) -> CallResult<CalendarView> {
        self.typed::<o::CalendarGet>(&of_calendar(tenant, calendar, NoBody {})).await
    }
    /// Sets all of its days, as its next version, which decides instants from at least 60 s later on.
    pub async fn calendar_set(&self, tenant: &str, calendar: &str, body: CalendarBody) -> CallResult<CalendarView> {
        self.typed::<o::CalendarSet>(&of_calendar(tenant, calendar, body)).await
    }
    /// Jobs that name it wait from 60 s later on.
    pub async fn calendar_delete(&self, tenant: &str, calendar: &str, why: Option<&str>) -> CallResult<()> {
        self.done::<o::CalendarDelete>(&of_calendar(tenant, calendar, reason(why))).await
    }
    /// Its days, and with a definition the next instants of jobs that would change.
    pub async fn calendar_preview(
        &self,
        tenant: &str,
        calendar: &str,
        body: CalendarPreviewBody,
    ) -> CallResult<CalendarPreviewView> {
        self.typed::<o::CalendarPreview>(&of_calendar(tenant, calendar, body)).await
    }

    /// See [`Client::tenant_pause`].
    pub async fn system_pause(&self, why: Option<&str>) -> CallResult<Spread> {
        self.typed::<o::SystemPause>(&reason(why)).await
    }
    /// See [`Client::tenant_pause`].
    pub async fn system_resume(&self, why: Option<&str>) -> CallResult<Spread> {
        self.typed::<o::SystemResume>(&reason(why)).await
    }
    /// After a jump of a node's clock that halted its firing: the clock is right.
    pub async fn clock_accept(&self, why: Option<&str>) -> CallResult<()> {
        self.done::<o::ClockAccept>(&reason(why)).await
    }
    /// Facts of the asked node, with numbers of its cluster.
    pub async fn system_info(&self) -> CallResult<NodeView> {
        self.typed::<o::SystemInfo>(&NoBody {}).await
    }
    /// Of all nodes of the cluster; those that did not answer are named.
    pub async fn executor_list(&self) -> CallResult<Gathered<ExecutorView>> {
        self.typed::<o::ExecutorList>(&NoBody {}).await
    }
    /// Of all nodes of the cluster; those that did not answer are named.
    pub async fn pool_list(&self) -> CallResult<Gathered<PoolView>> {
        self.typed::<o::PoolList>(&NoBody {}).await
    }
    /// Living nodes of the cluster, as the asked one sees them.
    pub async fn cluster_members(&self) -> CallResult<Vec<MemberView>> {
        self.typed::<o::ClusterMembers>(&NoBody {}).await.map(|list| list.items)
    }
    pub async fn cluster_shards(&self, filter: ShardFilter) -> CallResult<Vec<ShardView>> {
        self.typed::<o::ClusterShards>(&filter).await.map(|list| list.items)
    }
    /// Shards that are to move.
    pub async fn cluster_plan(&self) -> CallResult<ClusterPlan> {
        self.typed::<o::ClusterPlan>(&NoBody {}).await
    }
    /// What the asked node saw happen, the newest first.
    pub async fn cluster_events(&self) -> CallResult<Vec<ClusterEventView>> {
        self.typed::<o::ClusterEvents>(&NoBody {}).await.map(|list| list.items)
    }
    /// The node keeps its shards and gets nothing new.
    pub async fn cluster_cordon(&self, node: &str, why: Option<&str>) -> CallResult<()> {
        self.done::<o::ClusterCordon>(&NodeCall::new(node.to_owned(), reason(why))).await
    }
    pub async fn cluster_uncordon(&self, node: &str, why: Option<&str>) -> CallResult<()> {
        self.done::<o::ClusterUncordon>(&NodeCall::new(node.to_owned(), reason(why))).await
    }

    /// A call of the table of operations.
    async fn typed<O: Operation>(&self, request: &O::Request) -> CallResult<O::Answer> {
        self.call_as(O::ROW.name, request, RepeatEffect::of_row(O::ROW)).await
    }
    /// A call whose answer says nothing but that it was done.
    async fn done<O: Operation>(&self, request: &O::Request) -> CallResult<()> {
        self.call_as::<_, serde::de::IgnoredAny>(O::ROW.name, request, RepeatEffect::of_row(O::ROW)).await.map(drop)
    }
}
