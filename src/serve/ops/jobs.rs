//! Jobs: create, read, replace, delete, pause, resume, trigger, their runs and their ledger; and schedule previews.

use super::{
    Answer, Operations, access, audit::Subject, check_key, check_params, check_times, invalid, labels, paging,
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    job::{JobSpec, JobView},
    limits::{CREATE_MANY_JOBS, NAME_CHARS, PREVIEW_INSTANTS},
    operations::{
        Handle, JobCreate, JobCreateMany, JobDelete, JobFind, JobGet, JobLedger, JobList, JobPause, JobReplace,
        JobResume, JobRuns, JobTrigger, Operation, Row, SchedulePreview,
    },
    rpc::{
        calls::{CreateCall, Items, JobCall, Listed, NoBody},
        hello::ItemResult,
    },
    time::Timestamp,
    view::{
        Created, FindBody, JobFilter, LedgerBody, LedgerView, Page, PageBody, Preview, PreviewBody, ReasonBody,
        ReplaceBody, RunView, TriggerBody,
    },
};
use campanile_security::auth::Caller;

/// The ledger is read this far back when the call does not say from where, milliseconds.
const LEDGER_MS: i64 = 24 * 3600 * 1000;
/// Ledger entries of a call that names no size.
const LEDGER_ENTRIES: usize = 200;

/// The same key with the same spec again answers with the job that was made; with another spec it is refused.
impl Handle<JobCreate> for Operations {
    fn check(request: &CreateCall) -> Answer<()> {
        check_key("Idempotency-Key", request.field.as_deref())
    }

    async fn handle(&self, caller: &Caller, request: CreateCall) -> Answer<Created> {
        let CreateCall { field: idempotency_key, body: mut spec } = request;
        access::settle_spec(caller, &mut spec)?;
        self.scheduler.create_job(spec, idempotency_key).await
    }
}

/// Many in one go, durable together. The error of the whole call: nothing was created.
impl Handle<JobCreateMany> for Operations {
    async fn handle(&self, caller: &Caller, request: Items<JobSpec>) -> Answer<Listed<ItemResult<Created>>> {
        let created = self.create_many(caller, JobCreateMany::ROW, request.items).await?;
        Ok(Listed { items: created.into_iter().map(ItemResult::from).collect() })
    }
}

impl Operations {
    /// An answer for each spec, in order, and in the audit trail a record of each: of a job in the frame that makes it.
    pub(super) async fn create_many(
        &self,
        caller: &Caller,
        row: &'static Row,
        specs: Vec<JobSpec>,
    ) -> Answer<Vec<Answer<Created>>> {
        if specs.len() > CREATE_MANY_JOBS {
            return Err(invalid(format!("jobs: {} in one call; at most {CREATE_MANY_JOBS}", specs.len())));
        }
        let mut allowed = Vec::with_capacity(specs.len());
        let settled: Vec<Answer<()>> = specs
            .into_iter()
            .map(|mut spec| access::settle_spec(caller, &mut spec).map(|()| allowed.push(spec)))
            .collect();
        let audited = self.audited(caller, row, &Subject::default());
        let scheduler = audited.as_ref().map_or(&self.scheduler, |audited| &audited.scheduler);
        let mut created = scheduler.create_jobs(allowed).await.into_iter();
        let answers = settled
            .into_iter()
            .map(|settled| settled.and_then(|()| created.next().unwrap_or_else(|| Err(lost_answer()))));
        Ok(answers.map(|answer| answer.map_err(|error| self.refused(Some(caller), row, error))).collect())
    }
}

impl Handle<JobGet> for Operations {
    async fn handle(&self, _: &Caller, request: JobCall<NoBody>) -> Answer<JobView> {
        let (job, NoBody {}) = request.parts()?;
        self.scheduler.job(job).await
    }
}

/// By its name in a tenant; None = the caller's own, for operators `default`.
impl Handle<JobFind> for Operations {
    async fn handle(&self, _: &Caller, request: FindBody) -> Answer<JobView> {
        let FindBody { name, tenant_id } = request;
        let tenant = tenant_id.unwrap_or_else(|| access::DEFAULT_TENANT.to_owned());
        let shown = format!("'{}' of tenant '{tenant}'", name.escape_debug());
        self.scheduler.job_by_name(&tenant, &name).await.map_err(|error| access::same_absence(error, "job", &shown))
    }
}

impl Handle<JobList> for Operations {
    async fn handle(&self, _: &Caller, filter: JobFilter) -> Answer<Page<JobView>> {
        let labels = filter.labels.filter(|labels| !labels.is_empty());
        labels.iter().try_for_each(|selector| labels::check(selector).map_err(invalid))?;
        let text = filter.text.filter(|text| !text.is_empty());
        if text.as_ref().is_some_and(|text| text.chars().count() > NAME_CHARS) {
            return Err(invalid(format!("text: longer than a name ({NAME_CHARS} characters)")));
        }
        let wanted = paging::wanted(filter.page_token, filter.page, filter.page_size)?;
        let filter =
            JobFilter { tenant_id: filter.tenant_id, status: filter.status, labels, text, ..JobFilter::default() };
        paging::read(wanted, |page_token, size| {
            self.scheduler.jobs(JobFilter { page_token, page_size: Some(size), ..filter.clone() })
        })
        .await
    }
}

/// The whole definition anew. Its name and its tenant cannot change.
impl Handle<JobReplace> for Operations {
    async fn handle(&self, caller: &Caller, request: JobCall<ReplaceBody>) -> Answer<JobView> {
        let (job, ReplaceBody { version, mut spec, read }) = request.parts()?;
        let created_at = if read.needs_job() {
            Some(self.call::<JobGet>(caller, JobCall::new(job, NoBody {})).await?.created_at)
        } else {
            None
        };
        read.check(job, version, created_at)?;
        access::settle_spec(caller, &mut spec)?;
        self.scheduler.replace_job(job, version, spec).await
    }
}

impl Handle<JobDelete> for Operations {
    async fn handle(&self, _: &Caller, request: JobCall<ReasonBody>) -> Answer<NoBody> {
        let (job, body) = request.parts()?;
        self.scheduler.delete_job(job, body.reason).await.map(|()| NoBody {})
    }
}

impl Handle<JobPause> for Operations {
    async fn handle(&self, _: &Caller, request: JobCall<ReasonBody>) -> Answer<JobView> {
        let (job, body) = request.parts()?;
        self.scheduler.pause_job(job, body.reason).await
    }
}

impl Handle<JobResume> for Operations {
    async fn handle(&self, _: &Caller, request: JobCall<ReasonBody>) -> Answer<JobView> {
        let (job, body) = request.parts()?;
        self.scheduler.resume_job(job, body.reason).await
    }
}

/// The same `manualRunId` again answers with the run that it made.
impl Handle<JobTrigger> for Operations {
    fn check(request: &JobCall<TriggerBody>) -> Answer<()> {
        check_key("manualRunId", request.body.manual_run_id.as_deref())?;
        check_params(request.body.params.as_ref())
    }

    async fn handle(&self, _: &Caller, request: JobCall<TriggerBody>) -> Answer<RunView> {
        let (job, body) = request.parts()?;
        self.scheduler.trigger(job, body).await
    }
}

/// Live and final runs, newest first.
impl Handle<JobRuns> for Operations {
    fn check(request: &JobCall<PageBody>) -> Answer<()> {
        let body = &request.body;
        paging::wanted(body.page_token.clone(), body.page, body.page_size).map(drop)
    }

    async fn handle(&self, _: &Caller, request: JobCall<PageBody>) -> Answer<Page<RunView>> {
        let (job, body) = request.parts()?;
        let wanted = paging::wanted(body.page_token, body.page, body.page_size)?;
        paging::read(wanted, |token, size| self.scheduler.job_runs(job, token, size)).await
    }
}

/// What became of every due instant from `from` to `to`, both included; default: of the last day.
impl Handle<JobLedger> for Operations {
    fn check(request: &JobCall<LedgerBody>) -> Answer<()> {
        paging::page_size(request.body.page_size, LEDGER_ENTRIES).map(drop)
    }

    async fn handle(&self, _: &Caller, request: JobCall<LedgerBody>) -> Answer<LedgerView> {
        let (job, body) = request.parts()?;
        let limit = paging::page_size(body.page_size, LEDGER_ENTRIES)?;
        let to = match body.to {
            Some(to) => to,
            None => Timestamp(self.scheduler.now_ms()?),
        };
        let from = body.from.unwrap_or(to.plus_ms(-LEDGER_MS));
        check_times(Some(from), Some(to))?;
        // Behind the instant before: the store tells what comes after one.
        let mut ledger = self.scheduler.ledger(job, from.ms().saturating_sub(1), to.ms(), limit).await?;
        ledger.from = ledger.from.max(from);
        if ledger.truncated {
            // Where the next page begins, and no instant of this one comes again.
            ledger.to = ledger.to.plus_ms(1);
        }
        Ok(ledger)
    }
}

/// When a trigger would fire, in words and instants, and what may surprise about it. Creates nothing.
impl Handle<SchedulePreview> for Operations {
    async fn handle(&self, _: &Caller, body: PreviewBody) -> Answer<Preview> {
        if body.count.is_some_and(|count| count > PREVIEW_INSTANTS) {
            return Err(invalid(format!("count: at most {PREVIEW_INSTANTS}")));
        }
        self.scheduler.preview(body)
    }
}

fn lost_answer() -> ApiError {
    ApiError::new(ErrorCode::Internal, "the scheduler gave fewer answers than jobs; ask with job.get what exists")
}
