//! The operations of callers. The comment of each row is its text in the OpenAPI document and on the reference page.

use super::{
    Audit, CallEffect, Handle, Http, LeastRole, Operation, OwnRoute, Reason, Request, Row, Tenant, Visit, Weight,
    entries::{form, key_field, operations},
    forms,
    refusals::{
        ALONE, BAD_APPLY, BAD_BACKFILL, BAD_BACKFILL_CHANGE, BAD_BODY, BAD_CORDON, BAD_JOB_CHANGE, BAD_LIST,
        BAD_PREVIEW, BAD_RETRY, BAD_RUN_CHANGE, BAD_SPEC, BAD_TRIGGER,
    },
    row::HttpInput,
};
use crate::{
    apply::{AppliedView, ApplyBody, PlanView},
    audit::{AuditBody, AuditView},
    cluster::{ClusterEventView, MemberView, PlanView as ClusterPlanView, ShardFilter, ShardView},
    error::ErrorCode as E,
    job::{JobSpec, JobView},
    rpc::{
        calls::{BackfillCall, CreateCall, DagCall, Items, JobCall, Listed, NoBody, NodeCall, RunCall, TenantCall},
        hello::ItemResult,
    },
    view::{
        ConfirmBody, Created, DeadLetterView, ExecutorView, FindBody, Gathered, JobFilter, LedgerBody, LedgerView,
        LogBody, LogView, NodeView, Page, PageBody, PoolView, Preview, PreviewBody, ReasonBody, ReplaceBody, RetryBody,
        RunGetBody, RunView, Spread, TenantBody, TenantPageBody, TenantView, TriggerBody,
        backfill::{BackfillBody, BackfillView, ReplayBody},
        dag::{DagCreated, DagMarkBody, DagNodesBody, DagRetryBody, DagRunView},
        explain::{ExplainBody, ExplainView},
        outbox::OutboxMessageView,
        runs::{
            CausesBody, CausesView, DeadLettersBody, LoadBody, LoadView, RunListBody, StatisticsBody, StatisticsView,
        },
        versions::{RollbackBody, VersionView, VersionsBody},
    },
};

const LOCAL: Reason = "`cron next` and `cron explain` do it without a node";
const ONE_CALL: Reason = "`job create FILE` calls job.create for each, `--bulk` job.createLines";
const MANY: Reason = "HTTP has lines for many: job.createLines";
const BY_NAME: Reason = "commands take a name wherever they take an id";
const BY_STATE: Reason = "GET /api/v1/runs?state=FAILED,TIMEOUT gives them, with other filters";
const APPLIES: Reason = "`campanile apply` does job.plan and job.apply, `campanile plan` only job.plan";

operations! {
    /// Create a job.
    JobCreate = "job.create": CreateCall => Created, key field as "idempotencyKey" {
        cli: Ok("job create"), http: Ok(Http::post("/api/v1/jobs").takes(HttpInput::Definition).created()),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_SPEC,
    }

    /// Create many jobs in one message, durable together, an answer for each.
    JobCreateMany = "job.createMany": Items<JobSpec> => Listed<ItemResult<Created>> {
        cli: Err(ONE_CALL), http: Err(MANY),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::List,
        errors: &[],
    }

    /// Create a DAG of jobs that exist, by their ids.
    DagCreate = "dag.create": DagCall => DagCreated, key field as "idempotencyKey" {
        cli: Ok("dag create"), http: Ok(Http::post("/api/v1/jobs/dag").takes(HttpInput::Definition).created()),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_SPEC,
    }

    /// Jobs, in order of their id.
    JobList = "job.list": JobFilter => Page<JobView> {
        cli: Ok("job list"), http: Ok(Http::get("/api/v1/jobs")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// The job of a name.
    JobFind = "job.find": FindBody => JobView, form forms::JobFindQuery {
        cli: Err(BY_NAME), http: Ok(Http::get("/api/v1/jobs/by-name")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: BAD_LIST,
    }

    /// What an apply of these manifests would do; changes nothing.
    JobPlan = "job.plan": ApplyBody => PlanView {
        cli: Err(APPLIES), http: Ok(Http::post("/api/v1/plan")),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_APPLY,
    }

    /// Bring jobs to what their manifests say, an answer for each.
    JobApply = "job.apply": ApplyBody => AppliedView {
        cli: Err(APPLIES), http: Ok(Http::post("/api/v1/apply")),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::Home, effect: CallEffect::Once, weight: Weight::List,
        errors: BAD_APPLY,
    }

    /// A job.
    JobGet = "job.get": JobCall<NoBody> => JobView {
        cli: Ok("job get"), http: Ok(Http::get("/api/v1/jobs/{jobId}")),
        least: LeastRole::Tenant, tenant: Tenant::InAnswer, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: &[E::NotFound],
    }

    /// Replace a job's definition, given the version it replaces.
    JobReplace = "job.replace": JobCall<ReplaceBody> => JobView {
        cli: Ok("job replace"), http: Ok(Http::put("/api/v1/jobs/{jobId}").takes(HttpInput::Definition)),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_SPEC,
    }

    /// Delete a job; its history stays.
    JobDelete = "job.delete": JobCall<ReasonBody> => NoBody {
        cli: Ok("job delete"), http: Ok(Http::delete("/api/v1/jobs/{jobId}").nothing()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_LIST,
    }

    /// Start nothing more; bodies that run go on.
    JobPause = "job.pause": JobCall<ReasonBody> => JobView {
        cli: Ok("job pause"), http: Ok(Http::post("/api/v1/jobs/{jobId}/pause").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_JOB_CHANGE,
    }

    /// Fire again, from the next due instant on.
    JobResume = "job.resume": JobCall<ReasonBody> => JobView {
        cli: Ok("job resume"), http: Ok(Http::post("/api/v1/jobs/{jobId}/resume").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_JOB_CHANGE,
    }

    /// Run now; the same manualRunId makes one run.
    JobTrigger = "job.trigger": JobCall<TriggerBody> => RunView, key body.manual_run_id as "manualRunId" {
        cli: Ok("job trigger"), http: Ok(Http::post("/api/v1/jobs/{jobId}/trigger").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Run, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_TRIGGER,
    }

    /// Run instants of the past that made no run, or whose run failed, or all of them, behind the live runs.
    JobBackfill = "job.backfill": JobCall<BackfillBody> => BackfillView {
        cli: Ok("backfill create"), http: Ok(Http::post("/api/v1/jobs/{jobId}/backfill").accepted()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::List,
        errors: BAD_BACKFILL,
    }

    /// Run instants that made a run once more, with the params of that run.
    JobReplay = "job.replay": JobCall<ReplayBody> => BackfillView {
        cli: Ok("backfill replay"), http: Ok(Http::post("/api/v1/jobs/{jobId}/replay").accepted()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::List,
        errors: BAD_BACKFILL,
    }

    /// The newest backfill or replay of a job, with its progress.
    JobBackfillGet = "job.backfillGet": JobCall<NoBody> => BackfillView {
        cli: Ok("backfill of"), http: Ok(Http::get("/api/v1/jobs/{jobId}/backfill")),
        least: LeastRole::Tenant, tenant: Tenant::InAnswer, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: &[E::NotFound],
    }

    /// A backfill or a replay, with its progress.
    BackfillGet = "backfill.get": BackfillCall<NoBody> => BackfillView {
        cli: Ok("backfill get"), http: Ok(Http::get("/api/v1/backfills/{backfillId}")),
        least: LeastRole::Tenant, tenant: Tenant::InAnswer, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: &[E::NotFound],
    }

    /// Cancel a backfill: it starts nothing more, and its open runs are canceled.
    BackfillCancel = "backfill.cancel": BackfillCall<ReasonBody> => BackfillView {
        cli: Ok("backfill cancel"), http: Ok(Http::delete("/api/v1/backfills/{backfillId}")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BACKFILL_CHANGE,
    }

    /// Start nothing more of a backfill; its runs that are open go on.
    BackfillPause = "backfill.pause": BackfillCall<ReasonBody> => BackfillView {
        cli: Ok("backfill pause"), http: Ok(Http::post("/api/v1/backfills/{backfillId}/pause").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BACKFILL_CHANGE,
    }

    /// Go on with a backfill that was paused.
    BackfillResume = "backfill.resume": BackfillCall<ReasonBody> => BackfillView {
        cli: Ok("backfill resume"), http: Ok(Http::post("/api/v1/backfills/{backfillId}/resume").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BACKFILL_CHANGE,
    }

    /// A job's runs, newest first.
    JobRuns = "job.runs": JobCall<PageBody> => Page<RunView> {
        cli: Ok("job runs"), http: Ok(Http::get("/api/v1/jobs/{jobId}/runs")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// What became of every due instant.
    JobLedger = "job.ledger": JobCall<LedgerBody> => LedgerView {
        cli: Ok("job ledger"), http: Ok(Http::get("/api/v1/jobs/{jobId}/ledger")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Why a job fires or does not, or what became of one of its instants.
    JobExplain = "job.explain": JobCall<ExplainBody> => ExplainView {
        cli: Ok("job explain"), http: Ok(Http::get("/api/v1/jobs/{jobId}/explain")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Outcomes, durations and lateness of a job's runs.
    JobStatistics = "job.statistics": JobCall<StatisticsBody> => StatisticsView {
        cli: Ok("job statistics"), http: Ok(Http::get("/api/v1/jobs/{jobId}/statistics")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// The history of a job's definition, newest first: who changed what and why.
    JobVersions = "job.versions": JobCall<VersionsBody> => Page<VersionView> {
        cli: Ok("job versions"), http: Ok(Http::get("/api/v1/jobs/{jobId}/versions")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Give a job the definition of an earlier version, as a new version.
    JobRollback = "job.rollback": JobCall<RollbackBody> => JobView {
        cli: Ok("job rollback"), http: Ok(Http::post("/api/v1/jobs/{jobId}/rollback")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_SPEC,
    }

    /// When a trigger would fire; creates nothing.
    SchedulePreview = "schedule.preview": PreviewBody => Preview {
        cli: Err(LOCAL), http: Ok(Http::post("/api/v1/schedules/preview")),
        least: LeastRole::Tenant, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: BAD_PREVIEW,
    }

    /// How many instants are due in each of the next minutes.
    ScheduleLoad = "schedule.load": LoadBody => LoadView {
        cli: Ok("job load"), http: Ok(Http::get("/api/v1/schedules/load")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Runs of all jobs: those that are open, newest first, then those that have ended, the last one first.
    RunList = "run.list": RunListBody => Page<RunView> {
        cli: Ok("run list"), http: Ok(Http::get("/api/v1/runs")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// FAILED and TIMEOUT runs, newest first.
    RunFailed = "run.failed": TenantPageBody => Page<RunView> {
        cli: Ok("run failed"), http: Err(BY_STATE),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// A run with its attempts; can wait for its end.
    RunGet = "run.get": RunCall<RunGetBody> => RunView, form forms::RunGetQuery {
        cli: Ok("run get"), http: Ok(Http::get("/api/v1/runs/{runId}")),
        least: LeastRole::Tenant, tenant: Tenant::InAnswer, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: BAD_LIST,
    }

    /// Why a run exists, why it is not running, why it was late.
    RunExplain = "run.explain": RunCall<NoBody> => ExplainView {
        cli: Ok("run explain"), http: Ok(Http::get("/api/v1/runs/{runId}/explain")),
        least: LeastRole::Tenant, tenant: Tenant::InAnswer, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Cancel a run that is not final.
    RunCancel = "run.cancel": RunCall<ReasonBody> => RunView {
        cli: Ok("run cancel"), http: Ok(Http::post("/api/v1/runs/{runId}/cancel").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Run a final run again, as its next generation.
    RunRetry = "run.retry": RunCall<RetryBody> => RunView {
        cli: Ok("run retry"), http: Ok(Http::post("/api/v1/runs/{runId}/retry").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RETRY,
    }

    /// Decide about a run in NEEDS_CONFIRMATION.
    RunConfirm = "run.confirm": RunCall<ConfirmBody> => RunView {
        cli: Ok("run confirm"), http: Ok(Http::post("/api/v1/runs/{runId}/confirm")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// The nodes of a run of a DAG, with a layout.
    DagNodes = "dag.nodes": RunCall<DagNodesBody> => DagRunView {
        cli: Ok("dag nodes"), http: Ok(Http::get("/api/v1/runs/{runId}/nodes")),
        least: LeastRole::Tenant, tenant: Tenant::InAnswer, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: &[E::InvalidArgument, E::NotFound, E::IllegalState],
    }

    /// Run nodes of a DAG run again; what did not run because of them follows.
    DagRetry = "dag.retry": RunCall<DagRetryBody> => RunView {
        cli: Ok("dag retry"), http: Ok(Http::post("/api/v1/runs/{runId}/nodes/retry").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Set the state of a node of a DAG run, SUCCESS or SKIPPED; what waits for it goes on.
    DagMark = "dag.mark": RunCall<DagMarkBody> => RunView {
        cli: Ok("dag mark"), http: Ok(Http::post("/api/v1/runs/{runId}/nodes/mark")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// The output of an attempt.
    RunLog = "run.log": RunCall<LogBody> => LogView {
        cli: Ok("run log"), http: Ok(Http::get("/api/v1/runs/{runId}/log").own(OwnRoute::RunLog)),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Dead letters, newest first.
    DlqList = "dlq.list": DeadLettersBody => Page<DeadLetterView> {
        cli: Ok("dlq list"), http: Ok(Http::get("/api/v1/dead-letters")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Dead letters by their cause, the most frequent first.
    DlqCauses = "dlq.causes": CausesBody => CausesView {
        cli: Ok("dlq causes"), http: Ok(Http::get("/api/v1/dead-letters/causes")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Run a dead letter again.
    DlqRedrive = "dlq.redrive": RunCall<RetryBody> => RunView {
        cli: Ok("dlq redrive"), http: Ok(Http::post("/api/v1/dead-letters/{runId}/redrive").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RETRY,
    }

    /// Put a dead letter away; the run stays.
    DlqDiscard = "dlq.discard": RunCall<ReasonBody> => NoBody {
        cli: Ok("dlq discard"), http: Ok(Http::post("/api/v1/dead-letters/{runId}/discard").optional_body().nothing()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Messages between jobs that wait or were given up.
    OutboxList = "outbox.list": TenantPageBody => Page<OutboxMessageView> {
        cli: Ok("outbox list"), http: Ok(Http::get("/api/v1/outbox")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Send the messages of a run that were given up again.
    OutboxResend = "outbox.resend": RunCall<ReasonBody> => NoBody {
        cli: Ok("outbox resend"), http: Ok(Http::post("/api/v1/outbox/{runId}/resend").optional_body().nothing()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Take the messages of a run that were given up off the list.
    OutboxDiscard = "outbox.discard": RunCall<ReasonBody> => NoBody {
        cli: Ok("outbox discard"), http: Ok(Http::post("/api/v1/outbox/{runId}/discard").optional_body().nothing()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_RUN_CHANGE,
    }

    /// Tenants with their limits and use.
    TenantList = "tenant.list": NoBody => Listed<TenantView> {
        cli: Ok("tenant list"), http: Ok(Http::get("/api/v1/tenants")),
        least: LeastRole::Tenant, tenant: Tenant::Each, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: &[],
    }

    /// A tenant.
    TenantGet = "tenant.get": TenantCall<NoBody> => TenantView {
        cli: Ok("tenant get"), http: Ok(Http::get("/api/v1/tenants/{tenantId}")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: &[E::NotFound],
    }

    /// Set a tenant's limits (0 = none).
    TenantSet = "tenant.set": TenantCall<TenantBody> => TenantView {
        cli: Ok("tenant set"), http: Ok(Http::put("/api/v1/tenants/{tenantId}")),
        least: LeastRole::Operator, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// Forget the limits and the pause of a tenant without jobs and open runs; its history stays.
    TenantDelete = "tenant.delete": TenantCall<ReasonBody> => NoBody {
        cli: Ok("tenant delete"), http: Ok(Http::delete("/api/v1/tenants/{tenantId}").nothing()),
        least: LeastRole::Operator, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: &[E::InvalidArgument, E::NotFound, E::IllegalState],
    }

    /// Stop firing and starting for a tenant.
    TenantPause = "tenant.pause": TenantCall<ReasonBody> => Spread {
        cli: Ok("tenant pause"), http: Ok(Http::post("/api/v1/tenants/{tenantId}/pause").optional_body().spread()),
        least: LeastRole::Operator, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// Undo a tenant's pause.
    TenantResume = "tenant.resume": TenantCall<ReasonBody> => Spread {
        cli: Ok("tenant resume"), http: Ok(Http::post("/api/v1/tenants/{tenantId}/resume").optional_body().spread()),
        least: LeastRole::Operator, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// Stop firing and starting everywhere.
    SystemPause = "system.pause": ReasonBody => Spread {
        cli: Ok("system pause"), http: Ok(Http::post("/api/v1/system/pause").optional_body().spread()),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// Undo the system's pause.
    SystemResume = "system.resume": ReasonBody => Spread {
        cli: Ok("system resume"), http: Ok(Http::post("/api/v1/system/resume").optional_body().spread()),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// Fire again after a jump of the clock: it is right.
    ClockAccept = "clock.accept": ReasonBody => NoBody {
        cli: Ok("system accept-clock"), http: Ok(Http::post("/api/v1/cluster/clock/accept").optional_body().nothing()),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Home, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BODY,
    }

    /// The audit trail, newest first: who changed what and why, and who was refused.
    AuditList = "audit.list": AuditBody => Page<AuditView> {
        cli: Ok("audit list"), http: Ok(Http::get("/api/v1/audit")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// Executors that are connected, of all nodes.
    ExecutorList = "executor.list": NoBody => Gathered<ExecutorView> {
        cli: Ok("system executors"), http: Ok(Http::get("/api/v1/executors")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: &[],
    }

    /// Pools with their executors and waiting runs, of all nodes.
    PoolList = "pool.list": NoBody => Gathered<PoolView> {
        cli: Ok("system pools"), http: Ok(Http::get("/api/v1/pools")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: &[],
    }

    /// Facts of this node, with numbers of all nodes.
    SystemInfo = "system.info": NoBody => NodeView {
        cli: Ok("system info"), http: Ok(Http::get("/api/v1/cluster/node")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: &[],
    }

    /// Living nodes of the cluster, as this one sees them.
    ClusterMembers = "cluster.members": NoBody => Listed<MemberView> {
        cli: Ok("cluster members"), http: Ok(Http::get("/api/v1/cluster/members")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: ALONE,
    }

    /// Who owns each shard.
    ClusterShards = "cluster.shards": ShardFilter => Listed<ShardView> {
        cli: Ok("cluster shards"), http: Ok(Http::get("/api/v1/cluster/shards")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: &[E::IllegalState, E::InvalidArgument, E::NotFound],
    }

    /// Shards that are to move, and why.
    ClusterPlan = "cluster.plan": NoBody => ClusterPlanView {
        cli: Ok("cluster plan"), http: Ok(Http::get("/api/v1/cluster/plan")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: ALONE,
    }

    /// What this node saw happen, the newest first.
    ClusterEvents = "cluster.events": NoBody => Listed<ClusterEventView> {
        cli: Ok("cluster events"), http: Ok(Http::get("/api/v1/cluster/events")),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: ALONE,
    }

    /// Give a node nothing new; it keeps what it has.
    ClusterCordon = "cluster.cordon": NodeCall<ReasonBody> => NoBody {
        cli: Ok("cluster cordon"), http: Ok(Http::post("/api/v1/cluster/members/{node}/cordon").optional_body().nothing()),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Home, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_CORDON,
    }

    /// Undo a node's cordon.
    ClusterUncordon = "cluster.uncordon": NodeCall<ReasonBody> => NoBody {
        cli: Ok("cluster uncordon"), http: Ok(Http::post("/api/v1/cluster/members/{node}/uncordon").optional_body().nothing()),
        least: LeastRole::Operator, tenant: Tenant::Nothing, audit: Audit::Home, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_CORDON,
    }
}
