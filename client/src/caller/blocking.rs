//! The same client for programs without an async runtime: each call waits for its answer on the calling thread.
//!
//! Not within an async runtime: it would wait on a thread that others need, and tokio refuses that with a panic.

use super::{ClientOptions, WatchEvent, watch};
use crate::error::ClientError;
use campanile_schema::{
    apply::{AppliedView, ApplyBody, PlanView},
    audit::{AuditBody, AuditView},
    cluster::{ClusterEventView, MemberView, PlanView as ClusterPlan, ShardFilter, ShardView},
    error::ApiError,
    graph::ShortGraphSpec,
    ids::{BackfillId, BulkId, JobId, RunId},
    job::{JobSpec, JobView},
    time::Timestamp,
    trace::TraceContext,
    view::{
        ConfirmBody, Created, DeadLetterView, ExecutorView, Gathered, JobFilter, LedgerBody, LedgerView, LogBody,
        LogView, NodeView, Page, PageBody, PoolView, Preview, PreviewBody, PriorityBody, RetryBody, RunView, Spread,
        TenantBody, TenantPageBody, TenantView, TriggerBody,
        backfill::{BackfillBody, BackfillView, ReplayBody},
        bulk::{BulkBody, BulkView},
        calendars::{CalendarBody, CalendarPreviewBody, CalendarPreviewView, CalendarView},
        dag::{DagCreated, DagDrawing, DagMarkBody, DagRetryBody, DagRunView},
        explain::ExplainView,
        outbox::OutboxMessageView,
        runs::{CausesBody, CausesView, DeadLettersBody, LoadBody, LoadView, RunListBody, StatisticsView},
        targets::{TargetBody, TargetView},
        versions::{RollbackBody, VersionView, VersionsBody},
    },
    watch::{JobChange, RunChange, WatchJobs, WatchRuns},
};
use serde::de::DeserializeOwned;
use std::{sync::Arc, time::Duration};
use tokio::runtime::Runtime;

/// See the module's text. Cheap to clone; threads can share it.
#[derive(Clone)]
pub struct Client {
    inner: super::Client,
    /// Its one thread keeps the connections.
    runtime: Arc<Runtime>,
}

impl Client {
    /// Connects to one node and says hello; an unknown token is told here.
    pub fn connect(address: impl Into<String>, token: impl Into<String>) -> Result<Self, ClientError> {
        Self::connect_with(ClientOptions::new(vec![address.into()], token))
    }

    /// Like [`Client::connect`], with all options.
    pub fn connect_with(options: ClientOptions) -> Result<Self, ClientError> {
        let built = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("campanile-client")
            .enable_all()
            .build();
        let runtime = built.map_err(|error| ClientError::io("this machine", format!("no thread: {error}")))?;
        let inner = runtime.block_on(super::Client::connect_with(options))?;
        Ok(Self { inner, runtime: Arc::new(runtime) })
    }

    /// The same connections with another deadline for each call.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { inner: self.inner.with_timeout(timeout), runtime: self.runtime.clone() }
    }

    /// See [`super::Client::in_trace`].
    #[must_use]
    pub fn in_trace(&self, span: TraceContext) -> Self {
        Self { inner: self.inner.in_trace(span), runtime: self.runtime.clone() }
    }

    /// Runs as they change; see [`super::Client::run_watch`].
    pub fn run_watch(&self, body: WatchRuns) -> Result<Changes<RunChange>, ClientError> {
        let inner = self.runtime.block_on(self.inner.run_watch(body))?;
        Ok(Changes { inner, runtime: self.runtime.clone() })
    }

    /// Definitions of jobs as they change; see [`super::Client::job_watch`].
    pub fn job_watch(&self, body: WatchJobs) -> Result<Changes<JobChange>, ClientError> {
        let inner = self.runtime.block_on(self.inner.job_watch(body))?;
        Ok(Changes { inner, runtime: self.runtime.clone() })
    }
}

/// Changes, one after the other. Ends with the one run that was watched, or with the first error.
pub struct Changes<T> {
    inner: watch::Changes<T>,
    runtime: Arc<Runtime>,
}

impl<T: DeserializeOwned> Iterator for Changes<T> {
    type Item = Result<WatchEvent<T>, ClientError>;
    fn next(&mut self) -> Option<Self::Item> {
        self.runtime.block_on(self.inner.next()).transpose()
    }
}

/// Each call of [`super::Client`] under its own name.
macro_rules! waits {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)+) => {
        impl Client {
            $(#[doc = concat!("See [`super::Client::", stringify!($name), "`].")]
            pub fn $name(&self $(, $arg: $type)*) -> Result<$answer, ClientError> {
                self.runtime.block_on(self.inner.$name($($arg),*))
            })+
        }
    };
}

waits! {
    job_create(spec: impl Into<JobSpec>) -> Created;
    job_create_once(spec: impl Into<JobSpec>, idempotency_key: &str) -> Created;
    job_create_many(specs: Vec<JobSpec>) -> Vec<Result<Created, ApiError>>;
    job_plan(body: ApplyBody) -> PlanView;
    job_apply(body: ApplyBody) -> AppliedView;
    job_get(job: JobId) -> JobView;
    job_find(tenant: Option<&str>, name: &str) -> JobView;
    job_list(filter: JobFilter) -> Page<JobView>;
    job_replace(job: JobId, version: u64, spec: impl Into<JobSpec>) -> JobView;
    job_delete(job: JobId, why: Option<&str>) -> ();
    job_pause(job: JobId, why: Option<&str>) -> JobView;
    job_resume(job: JobId, why: Option<&str>) -> JobView;
    job_trigger(job: JobId, body: TriggerBody) -> RunView;
    job_backfill(job: JobId, body: BackfillBody) -> BackfillView;
    job_replay(job: JobId, body: ReplayBody) -> BackfillView;
    job_backfill_get(job: JobId) -> BackfillView;
    backfill_get(id: BackfillId) -> BackfillView;
    backfill_cancel(id: BackfillId, why: Option<&str>) -> BackfillView;
    backfill_pause(id: BackfillId, why: Option<&str>) -> BackfillView;
    backfill_resume(id: BackfillId, why: Option<&str>) -> BackfillView;
    bulk_create(body: BulkBody) -> BulkView;
    bulk_list(body: TenantPageBody) -> Page<BulkView>;
    bulk_get(id: BulkId) -> BulkView;
    bulk_abort(id: BulkId, why: Option<&str>) -> BulkView;
    bulk_undo(id: BulkId, why: Option<&str>) -> BulkView;
    job_runs(job: JobId, page: PageBody) -> Page<RunView>;
    job_ledger(job: JobId, body: LedgerBody) -> LedgerView;
    job_explain(job: JobId, at: Option<Timestamp>) -> ExplainView;
    job_statistics(job: JobId, window: Option<&str>) -> StatisticsView;
    job_versions(job: JobId, body: VersionsBody) -> Page<VersionView>;
    job_rollback(job: JobId, body: RollbackBody) -> JobView;
    run_get(run: RunId) -> RunView;
    run_wait(run: RunId, patience: Duration) -> RunView;
    run_list(body: RunListBody) -> Page<RunView>;
    run_explain(run: RunId) -> ExplainView;
    run_failed(page: TenantPageBody) -> Page<RunView>;
    run_cancel(run: RunId, why: Option<&str>) -> RunView;
    run_retry(run: RunId, body: RetryBody) -> RunView;
    run_confirm(run: RunId, body: ConfirmBody) -> RunView;
    run_priority(run: RunId, body: PriorityBody) -> RunView;
    run_log(run: RunId, body: LogBody) -> LogView;
    dag_create(dag: ShortGraphSpec, key: Option<String>) -> DagCreated;
    dag_nodes(run: RunId, draw: Option<DagDrawing>) -> DagRunView;
    dag_retry(run: RunId, body: DagRetryBody) -> RunView;
    dag_mark(run: RunId, body: DagMarkBody) -> RunView;
    dag_pause(run: RunId, why: Option<&str>) -> RunView;
    dag_resume(run: RunId, why: Option<&str>) -> RunView;
    dlq_list(body: DeadLettersBody) -> Page<DeadLetterView>;
    dlq_causes(body: CausesBody) -> CausesView;
    dlq_redrive(run: RunId, body: RetryBody) -> RunView;
    dlq_discard(run: RunId, why: Option<&str>) -> ();
    outbox_list(page: TenantPageBody) -> Page<OutboxMessageView>;
    outbox_resend(run: RunId, why: Option<&str>) -> ();
    outbox_discard(run: RunId, why: Option<&str>) -> ();
    audit_list(body: AuditBody) -> Page<AuditView>;
    schedule_load(body: LoadBody) -> LoadView;
    schedule_preview(body: PreviewBody) -> Preview;
    tenant_get(tenant: &str) -> TenantView;
    tenant_list() -> Vec<TenantView>;
    tenant_set(tenant: &str, quota: TenantBody) -> TenantView;
    tenant_delete(tenant: &str, why: Option<&str>) -> ();
    tenant_pause(tenant: &str, why: Option<&str>) -> Spread;
    tenant_resume(tenant: &str, why: Option<&str>) -> Spread;
    target_list(tenant: &str) -> Vec<TargetView>;
    target_get(tenant: &str, target: &str) -> TargetView;
    target_set(tenant: &str, target: &str, settings: TargetBody) -> TargetView;
    target_delete(tenant: &str, target: &str, why: Option<&str>) -> ();
    calendar_list(tenant: &str) -> Vec<CalendarView>;
    calendar_get(tenant: &str, calendar: &str) -> CalendarView;
    calendar_set(tenant: &str, calendar: &str, body: CalendarBody) -> CalendarView;
    calendar_delete(tenant: &str, calendar: &str, why: Option<&str>) -> ();
    calendar_preview(tenant: &str, calendar: &str, body: CalendarPreviewBody) -> CalendarPreviewView;
    system_pause(why: Option<&str>) -> Spread;
    system_resume(why: Option<&str>) -> Spread;
    clock_accept(why: Option<&str>) -> ();
    system_info() -> NodeView;
    executor_list() -> Gathered<ExecutorView>;
    pool_list() -> Gathered<PoolView>;
    cluster_members() -> Vec<MemberView>;
    cluster_shards(filter: ShardFilter) -> Vec<ShardView>;
    cluster_plan() -> ClusterPlan;
    cluster_events() -> Vec<ClusterEventView>;
    cluster_cordon(node: &str, why: Option<&str>) -> ();
    cluster_uncordon(node: &str, why: Option<&str>) -> ();
}
