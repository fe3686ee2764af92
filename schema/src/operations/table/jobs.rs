//! Operations on jobs: their definitions, their triggers, their backfills, and what is read of them.

use super::super::{
    Audit, CallEffect, Handle, Http, LeastRole, Operation, Reason, Request, Row, Tenant, Visit, Weight,
    entries::{form, key_field, operations},
    forms,
    refusals::{
        BAD_APPLY, BAD_BACKFILL, BAD_BACKFILL_CHANGE, BAD_BULK, BAD_BULK_CHANGE, BAD_JOB_CHANGE, BAD_LIST, BAD_PREVIEW,
        BAD_SPEC, BAD_TRIGGER,
    },
    row::HttpInput,
};
use crate::{
    apply::{AppliedView, ApplyBody, PlanView},
    error::ErrorCode as E,
    job::{JobSpec, JobView},
    rpc::{
        calls::{BackfillCall, BulkCall, CreateCall, DagCall, Items, JobCall, Listed, NoBody},
        hello::ItemResult,
    },
    view::{
        Created, FindBody, JobFilter, LedgerBody, LedgerView, Page, PageBody, Preview, PreviewBody, ReasonBody,
        ReplaceBody, RunView, TenantPageBody, TriggerBody,
        backfill::{BackfillBody, BackfillView, ReplayBody},
        bulk::{BulkBody, BulkView},
        dag::DagCreated,
        explain::{ExplainBody, ExplainView},
        runs::{LoadBody, LoadView, StatisticsBody, StatisticsView},
        versions::{RollbackBody, VersionView, VersionsBody},
    },
};

const LOCAL: Reason = "`cron next` and `cron explain` do it without a node";
const ONE_CALL: Reason = "`job create FILE` calls job.create for each, `--bulk` job.createLines";
const MANY: Reason = "HTTP has lines for many: job.createLines";
const BY_NAME: Reason = "commands take a name wherever they take an id";
const APPLIES: Reason = "`campanile apply` does job.plan and job.apply, `campanile plan` only job.plan";

operations! {
    JobHandlers;

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

    /// Pause, resume, trigger or delete all jobs that a filter names, or cancel, retry or redrive its runs; dryRun only counts them.
    BulkCreate = "bulk.create": BulkBody => BulkView {
        cli: Ok("bulk pause"), http: Ok(Http::post("/api/v1/bulk").accepted()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::List,
        errors: BAD_BULK,
    }

    /// Bulk operations, the newest first.
    BulkList = "bulk.list": TenantPageBody => Page<BulkView> {
        cli: Ok("bulk list"), http: Ok(Http::get("/api/v1/bulk")),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::No, effect: CallEffect::Read, weight: Weight::List,
        errors: BAD_LIST,
    }

    /// A bulk operation, with its progress.
    BulkGet = "bulk.get": BulkCall<NoBody> => BulkView {
        cli: Ok("bulk get"), http: Ok(Http::get("/api/v1/bulk/{bulkId}")),
        least: LeastRole::Tenant, tenant: Tenant::InAnswer, audit: Audit::No, effect: CallEffect::Read, weight: Weight::One,
        errors: &[E::NotFound],
    }

    /// Begin no further items of a bulk operation; what it has done stays.
    BulkAbort = "bulk.abort": BulkCall<ReasonBody> => BulkView {
        cli: Ok("bulk abort"), http: Ok(Http::post("/api/v1/bulk/{bulkId}/abort").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BULK_CHANGE,
    }

    /// Resume what a bulk operation has paused, or pause what it has resumed, as far as nobody has changed it since.
    BulkUndo = "bulk.undo": BulkCall<ReasonBody> => BulkView {
        cli: Ok("bulk undo"), http: Ok(Http::post("/api/v1/bulk/{bulkId}/undo").optional_body()),
        least: LeastRole::Tenant, tenant: Tenant::Before, audit: Audit::Frame, effect: CallEffect::Once, weight: Weight::One,
        errors: BAD_BULK_CHANGE,
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
}
