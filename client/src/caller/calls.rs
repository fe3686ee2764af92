//! One function per method; names as in `docs/rpc.md`, with `_` for the dot.

use super::{Client, retry::Effect};
use crate::error::ClientError;
use campanile_schema::{
    apply::{AppliedView, ApplyBody, PlanView},
    cluster::{ClusterEventView, MemberView, PlanView as ClusterPlan, ShardFilter, ShardView},
    error::ApiError,
    ids::{JobId, RunId},
    job::{JobSpec, JobView},
    rpc::{
        calls::{CreateCall, Items, JobCall, Listed, NoBody, NodeCall, RunCall, TenantCall},
        hello::ItemResult,
        method,
    },
    view::{
        ConfirmBody, Created, DeadLetterView, ExecutorView, FindBody, Gathered, JobFilter, LedgerBody, LedgerView,
        LogBody, LogView, NodeView, Page, PageBody, PoolView, Preview, PreviewBody, ReasonBody, ReplaceBody,
        RunGetBody, RunView, Spread, TenantBody, TenantPageBody, TenantView, TriggerBody,
    },
};

use std::time::Duration;

type Answer<T> = Result<T, ClientError>;

fn reason(text: Option<&str>) -> ReasonBody {
    ReasonBody { reason: text.map(str::to_owned) }
}

impl Client {
    pub async fn job_create(&self, spec: impl Into<JobSpec>) -> Answer<Created> {
        self.call(method::JOB_CREATE, &CreateCall { field: None, body: spec.into() }).await
    }
    /// The same key with the same job again answers with the job that was made; so it is asked again when the answer was lost.
    pub async fn job_create_once(&self, spec: impl Into<JobSpec>, idempotency_key: &str) -> Answer<Created> {
        let call = CreateCall::new(idempotency_key.to_owned(), spec.into());
        self.call_as(method::JOB_CREATE, &call, Effect::Safe).await
    }
    /// Many in one frame; an answer per job, in order.
    pub async fn job_create_many(&self, specs: Vec<JobSpec>) -> Answer<Vec<Result<Created, ApiError>>> {
        let answers: Listed<ItemResult<Created>> = self.call(method::JOB_CREATE_MANY, &Items { items: specs }).await?;
        answers.items.into_iter().map(|item| item.into_result().map_err(ClientError::Protocol)).collect()
    }
    /// What an apply of the same manifests would do. Changes nothing.
    pub async fn job_plan(&self, body: ApplyBody) -> Answer<PlanView> {
        self.call(method::JOB_PLAN, &body).await
    }
    pub async fn job_apply(&self, body: ApplyBody) -> Answer<AppliedView> {
        self.call(method::JOB_APPLY, &body).await
    }
    pub async fn job_get(&self, job: JobId) -> Answer<JobView> {
        self.call(method::JOB_GET, &JobCall::new(job, NoBody {})).await
    }
    /// The job of a name; `tenant`: None = the token's own, for operators `default`.
    pub async fn job_find(&self, tenant: Option<&str>, name: &str) -> Answer<JobView> {
        let body = FindBody { name: name.to_owned(), tenant_id: tenant.map(str::to_owned) };
        self.call(method::JOB_FIND, &body).await
    }
    pub async fn job_list(&self, filter: JobFilter) -> Answer<Page<JobView>> {
        self.call(method::JOB_LIST, &filter).await
    }
    pub async fn job_replace(&self, job: JobId, version: u64, spec: impl Into<JobSpec>) -> Answer<JobView> {
        self.call(method::JOB_REPLACE, &JobCall::new(job, ReplaceBody::new(version, spec.into()))).await
    }
    pub async fn job_delete(&self, job: JobId, why: Option<&str>) -> Answer<()> {
        self.done(method::JOB_DELETE, &JobCall::new(job, reason(why))).await
    }
    pub async fn job_pause(&self, job: JobId, why: Option<&str>) -> Answer<JobView> {
        self.call(method::JOB_PAUSE, &JobCall::new(job, reason(why))).await
    }
    pub async fn job_resume(&self, job: JobId, why: Option<&str>) -> Answer<JobView> {
        self.call(method::JOB_RESUME, &JobCall::new(job, reason(why))).await
    }
    /// The same `manualRunId` again answers with the run that it made; so it is asked again when the answer was lost.
    pub async fn job_trigger(&self, job: JobId, body: TriggerBody) -> Answer<RunView> {
        let effect = Effect::keyed(body.manual_run_id.as_deref());
        self.call_as(method::JOB_TRIGGER, &JobCall::new(job, body), effect).await
    }
    pub async fn job_runs(&self, job: JobId, page: PageBody) -> Answer<Page<RunView>> {
        self.call(method::JOB_RUNS, &JobCall::new(job, page)).await
    }
    pub async fn job_ledger(&self, job: JobId, body: LedgerBody) -> Answer<LedgerView> {
        self.call(method::JOB_LEDGER, &JobCall::new(job, body)).await
    }

    pub async fn run_get(&self, run: RunId) -> Answer<RunView> {
        self.call(method::RUN_GET, &RunCall::new(run, NoBody {})).await
    }
    /// As soon as it is final, at the latest after `wait` (a minute at most).
    pub(super) async fn run_get_after(&self, run: RunId, wait: Duration) -> Answer<RunView> {
        let wait_ms = u64::try_from(wait.as_millis()).ok();
        self.call(method::RUN_GET, &RunCall::new(run, RunGetBody { wait_ms })).await
    }
    /// FAILED and TIMEOUT runs, newest first.
    pub async fn run_failed(&self, page: TenantPageBody) -> Answer<Page<RunView>> {
        self.call(method::RUN_FAILED, &page).await
    }
    pub async fn run_cancel(&self, run: RunId, why: Option<&str>) -> Answer<RunView> {
        self.call(method::RUN_CANCEL, &RunCall::new(run, reason(why))).await
    }
    pub async fn run_retry(&self, run: RunId, why: Option<&str>) -> Answer<RunView> {
        self.call(method::RUN_RETRY, &RunCall::new(run, reason(why))).await
    }
    pub async fn run_confirm(&self, run: RunId, body: ConfirmBody) -> Answer<RunView> {
        self.call(method::RUN_CONFIRM, &RunCall::new(run, body)).await
    }
    pub async fn run_log(&self, run: RunId, body: LogBody) -> Answer<LogView> {
        self.call(method::RUN_LOG, &RunCall::new(run, body)).await
    }

    pub async fn dlq_list(&self, page: TenantPageBody) -> Answer<Page<DeadLetterView>> {
        self.call(method::DLQ_LIST, &page).await
    }
    pub async fn dlq_redrive(&self, run: RunId, why: Option<&str>) -> Answer<RunView> {
        self.call(method::DLQ_REDRIVE, &RunCall::new(run, reason(why))).await
    }
    pub async fn dlq_discard(&self, run: RunId, why: Option<&str>) -> Answer<()> {
        self.done(method::DLQ_DISCARD, &RunCall::new(run, reason(why))).await
    }

    pub async fn schedule_preview(&self, body: PreviewBody) -> Answer<Preview> {
        self.call(method::SCHEDULE_PREVIEW, &body).await
    }

    pub async fn tenant_get(&self, tenant: &str) -> Answer<TenantView> {
        self.call(method::TENANT_GET, &TenantCall::new(tenant.to_owned(), NoBody {})).await
    }
    pub async fn tenant_list(&self) -> Answer<Vec<TenantView>> {
        self.list(method::TENANT_LIST).await
    }
    pub async fn tenant_set(&self, tenant: &str, quota: TenantBody) -> Answer<TenantView> {
        self.call(method::TENANT_SET, &TenantCall::new(tenant.to_owned(), quota)).await
    }
    /// Its limits and its pause go, for operators; refused with ILLEGAL_STATE while it has jobs or open runs.
    pub async fn tenant_delete(&self, tenant: &str, why: Option<&str>) -> Answer<()> {
        self.done(method::TENANT_DELETE, &TenantCall::new(tenant.to_owned(), reason(why))).await
    }
    /// No job of the tenant fires until it is resumed (operators). The answer has the shards that are not known to hold it yet: it goes on
    /// there by itself, and saying it again is harmless.
    pub async fn tenant_pause(&self, tenant: &str, why: Option<&str>) -> Answer<Spread> {
        self.call(method::TENANT_PAUSE, &TenantCall::new(tenant.to_owned(), reason(why))).await
    }
    /// See [`Client::tenant_pause`].
    pub async fn tenant_resume(&self, tenant: &str, why: Option<&str>) -> Answer<Spread> {
        self.call(method::TENANT_RESUME, &TenantCall::new(tenant.to_owned(), reason(why))).await
    }

    /// See [`Client::tenant_pause`].
    pub async fn system_pause(&self, why: Option<&str>) -> Answer<Spread> {
        self.call(method::SYSTEM_PAUSE, &reason(why)).await
    }
    /// See [`Client::tenant_pause`].
    pub async fn system_resume(&self, why: Option<&str>) -> Answer<Spread> {
        self.call(method::SYSTEM_RESUME, &reason(why)).await
    }
    /// After a jump of a node's clock that halted its firing: the clock is right.
    pub async fn clock_accept(&self, why: Option<&str>) -> Answer<()> {
        self.done(method::CLOCK_ACCEPT, &reason(why)).await
    }
    /// Facts of the asked node, with numbers of its cluster.
    pub async fn system_info(&self) -> Answer<NodeView> {
        self.call(method::SYSTEM_INFO, &NoBody {}).await
    }
    /// Of all nodes of the cluster; those that did not answer are named.
    pub async fn executor_list(&self) -> Answer<Gathered<ExecutorView>> {
        self.call(method::EXECUTOR_LIST, &NoBody {}).await
    }
    /// Of all nodes of the cluster; those that did not answer are named.
    pub async fn pool_list(&self) -> Answer<Gathered<PoolView>> {
        self.call(method::POOL_LIST, &NoBody {}).await
    }
    /// Living nodes of the cluster, as the asked one sees them.
    pub async fn cluster_members(&self) -> Answer<Vec<MemberView>> {
        self.list(method::CLUSTER_MEMBERS).await
    }
    pub async fn cluster_shards(&self, filter: ShardFilter) -> Answer<Vec<ShardView>> {
        self.call::<_, Listed<ShardView>>(method::CLUSTER_SHARDS, &filter).await.map(|list| list.items)
    }
    /// Shards that are to move.
    pub async fn cluster_plan(&self) -> Answer<ClusterPlan> {
        self.call(method::CLUSTER_PLAN, &NoBody {}).await
    }
    /// What the asked node saw happen, the newest first.
    pub async fn cluster_events(&self) -> Answer<Vec<ClusterEventView>> {
        self.list(method::CLUSTER_EVENTS).await
    }
    /// The node keeps its shards and gets nothing new.
    pub async fn cluster_cordon(&self, node: &str, why: Option<&str>) -> Answer<()> {
        self.done(method::CLUSTER_CORDON, &NodeCall::new(node.to_owned(), reason(why))).await
    }
    pub async fn cluster_uncordon(&self, node: &str, why: Option<&str>) -> Answer<()> {
        self.done(method::CLUSTER_UNCORDON, &NodeCall::new(node.to_owned(), reason(why))).await
    }

    async fn list<T: serde::de::DeserializeOwned>(&self, method: &'static str) -> Answer<Vec<T>> {
        self.call::<_, Listed<T>>(method, &NoBody {}).await.map(|list| list.items)
    }
    /// A call whose answer says nothing but that it was done.
    async fn done<P: serde::Serialize>(&self, method: &'static str, params: &P) -> Answer<()> {
        self.call::<_, serde::de::IgnoredAny>(method, params).await.map(drop)
    }
}
