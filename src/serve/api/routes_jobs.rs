//! Routes of jobs and schedules.

use super::{
    bulk,
    route::{Call, Route},
};
use campanile_schema::{
    apply::{AppliedView, ApplyBody, PlanView},
    error::{ApiError, ErrorCode},
    job::{JobSpec, JobView},
    view::{
        Created, JobFilter, LedgerBody, LedgerView, Page, PageBody, Preview, PreviewBody, ReasonBody, ReplaceBody,
        RunView, TriggerBody,
    },
};
use campanile_security::auth::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

type Answer<T> = Result<T, ApiError>;

/// Which job.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NameQuery {
    name: String,
    /// Default: the credential's; for operators `default`.
    #[serde(default)]
    tenant_id: Option<String>,
}

const BAD_SPEC: &[ErrorCode] = &[
    ErrorCode::InvalidArgument,
    ErrorCode::MalformedBody,
    ErrorCode::InvalidSchedule,
    ErrorCode::ScheduleNeverFires,
    ErrorCode::UnknownTimezone,
    ErrorCode::NoSecretKey,
    ErrorCode::BodyTooLarge,
    ErrorCode::UnsupportedMediaType,
    ErrorCode::NotFound,
    ErrorCode::DuplicateName,
    ErrorCode::IdempotencyKeyReused,
    ErrorCode::StaleVersion,
    ErrorCode::IllegalState,
    ErrorCode::TenantQuota,
];
const BAD_APPLY: &[ErrorCode] = &[
    ErrorCode::InvalidArgument,
    ErrorCode::MalformedBody,
    ErrorCode::NoSecretKey,
    ErrorCode::BodyTooLarge,
    ErrorCode::UnsupportedMediaType,
    ErrorCode::NotFound,
    ErrorCode::StaleVersion,
];
const BAD_LIST: &[ErrorCode] = &[ErrorCode::InvalidArgument, ErrorCode::NotFound];
const BAD_CHANGE: &[ErrorCode] = &[
    ErrorCode::InvalidArgument,
    ErrorCode::MalformedBody,
    ErrorCode::NotFound,
    ErrorCode::IllegalState,
    ErrorCode::BodyTooLarge,
    ErrorCode::UnsupportedMediaType,
];
const BAD_TRIGGER: &[ErrorCode] = &[
    ErrorCode::InvalidArgument,
    ErrorCode::MalformedBody,
    ErrorCode::NotFound,
    ErrorCode::IdempotencyKeyReused,
    ErrorCode::IllegalState,
    ErrorCode::RunActive,
    ErrorCode::BodyTooLarge,
    ErrorCode::UnsupportedMediaType,
    ErrorCode::JobPaused,
    ErrorCode::TenantQuota,
    ErrorCode::JobQueueFull,
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/jobs", "job.create", "Create a job")
            .body(create)
            .status(201)
            .idempotent_by_key()
            .errors(BAD_SPEC),
        Route::get("/api/v1/jobs", "job.list", "Jobs, in order of their id").query(list).errors(BAD_LIST),
        Route::get("/api/v1/jobs/by-name", "job.find", "The job of a name").query(find).errors(BAD_LIST),
        Route::post(
            "/api/v1/jobs/bulk",
            "job.createLines",
            "Create many jobs: one in each line, an answer for each line",
        )
        .lines::<JobSpec, bulk::BulkLine, _>(bulk::MEDIA, bulk::create)
        .idempotent_by_key()
        .errors(&[ErrorCode::UnsupportedMediaType]),
        Route::post("/api/v1/plan", "job.plan", "What an apply of these manifests would do; changes nothing")
            .body(plan)
            .errors(BAD_APPLY),
        Route::post("/api/v1/apply", "job.apply", "Bring jobs to what their manifests say, an answer for each")
            .body(apply)
            .errors(BAD_APPLY),
        Route::get("/api/v1/jobs/{jobId}", "job.get", "A job").plain(get).errors(&[ErrorCode::NotFound]),
        Route::put("/api/v1/jobs/{jobId}", "job.replace", "Replace a job's definition, given the version it replaces")
            .body(replace)
            .errors(BAD_SPEC),
        Route::delete("/api/v1/jobs/{jobId}", "job.delete", "Delete a job; its history stays")
            .query(delete)
            .status(204)
            .errors(BAD_LIST),
        Route::post("/api/v1/jobs/{jobId}/pause", "job.pause", "Start nothing more; bodies that run go on")
            .optional_body(pause)
            .errors(BAD_CHANGE),
        Route::post("/api/v1/jobs/{jobId}/resume", "job.resume", "Fire again, from the next due instant on")
            .optional_body(resume)
            .errors(BAD_CHANGE),
        Route::post("/api/v1/jobs/{jobId}/trigger", "job.trigger", "Run now; the same manualRunId makes one run")
            .optional_body(trigger)
            .idempotent_by_key()
            .errors(BAD_TRIGGER),
        Route::get("/api/v1/jobs/{jobId}/runs", "job.runs", "A job's runs, newest first").query(runs).errors(BAD_LIST),
        Route::get("/api/v1/jobs/{jobId}/ledger", "job.ledger", "What became of every due instant")
            .query(ledger)
            .errors(BAD_LIST),
        Route::post("/api/v1/schedules/preview", "schedule.preview", "When a trigger would fire; creates nothing")
            .body(preview)
            .errors(&[
                ErrorCode::InvalidArgument,
                ErrorCode::MalformedBody,
                ErrorCode::InvalidSchedule,
                ErrorCode::ScheduleNeverFires,
                ErrorCode::UnknownTimezone,
                ErrorCode::BodyTooLarge,
                ErrorCode::UnsupportedMediaType,
            ]),
    ]
}

/// A tenant's caller who wrote another tenant's name, the form's default too, is refused. The typed spec cannot tell the
/// default from what was written, so the text is asked.
pub(super) fn check_written_tenant(caller: &Caller, body: &[u8]) -> Answer<()> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Written {
        tenant_id: Option<String>,
        spec: Option<Box<Written>>,
    }
    let Some(own) = &caller.tenant else {
        return Ok(());
    };
    let written = serde_json::from_slice::<Written>(body).ok();
    let written = written.and_then(|w| w.tenant_id.or_else(|| w.spec.and_then(|spec| spec.tenant_id)));
    match written {
        Some(written) if written != *own => Err(ApiError::new(
            ErrorCode::Forbidden,
            format!("tenantId: this credential is for tenant '{own}', not '{}'", written.escape_debug()),
        )),
        Some(_) | None => Ok(()),
    }
}

async fn create(call: Call, spec: JobSpec) -> Answer<Created> {
    check_written_tenant(&call.caller, &call.body)?;
    call.ops.job_create(&call.caller, spec, call.idempotency_key).await
}
async fn plan(call: Call, body: ApplyBody) -> Answer<PlanView> {
    call.ops.job_plan(&call.caller, body).await
}
async fn apply(call: Call, body: ApplyBody) -> Answer<AppliedView> {
    call.ops.job_apply(&call.caller, body).await
}
async fn list(call: Call, filter: JobFilter) -> Answer<Page<JobView>> {
    call.ops.job_list(&call.caller, filter).await
}
async fn find(call: Call, query: NameQuery) -> Answer<JobView> {
    call.ops.job_find(&call.caller, query.tenant_id, query.name).await
}
async fn get(call: Call) -> Answer<JobView> {
    call.ops.job_get(&call.caller, call.job()?).await
}
async fn replace(call: Call, body: ReplaceBody) -> Answer<JobView> {
    check_written_tenant(&call.caller, &call.body)?;
    call.ops.job_replace(&call.caller, call.job()?, body).await
}
async fn delete(call: Call, body: ReasonBody) -> Answer<()> {
    call.ops.job_delete(&call.caller, call.job()?, body).await
}
async fn pause(call: Call, body: ReasonBody) -> Answer<JobView> {
    call.ops.job_pause(&call.caller, call.job()?, body).await
}
async fn resume(call: Call, body: ReasonBody) -> Answer<JobView> {
    call.ops.job_resume(&call.caller, call.job()?, body).await
}
async fn trigger(call: Call, mut body: TriggerBody) -> Answer<RunView> {
    let job = call.job()?;
    body.manual_run_id = body.manual_run_id.or(call.idempotency_key);
    call.ops.job_trigger(&call.caller, job, body).await
}
async fn runs(call: Call, body: PageBody) -> Answer<Page<RunView>> {
    call.ops.job_runs(&call.caller, call.job()?, body).await
}
async fn ledger(call: Call, body: LedgerBody) -> Answer<LedgerView> {
    call.ops.job_ledger(&call.caller, call.job()?, body).await
}
async fn preview(call: Call, body: PreviewBody) -> Answer<Preview> {
    call.ops.schedule_preview(&call.caller, body).await
}
