//! Jobs: create, read, replace, delete, pause, resume, trigger, their runs and their ledger; and schedule previews.

use super::{Answer, Operations, access, audit, check_key, check_params, check_reason, invalid, labels, paging};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::JobId,
    job::{JobSpec, JobView},
    limits::{CREATE_MANY_JOBS, NAME_CHARS, PREVIEW_INSTANTS},
    time::Timestamp,
    view::{
        Created, JobFilter, LedgerBody, LedgerView, Page, PageBody, Preview, PreviewBody, ReasonBody, ReplaceBody,
        RunView, TriggerBody,
    },
};
use campanile_security::auth::Caller;

/// The ledger is read this far back when the call does not say from where, milliseconds.
const LEDGER_MS: i64 = 24 * 3600 * 1000;
/// Ledger entries of a call that names no size.
const LEDGER_ENTRIES: usize = 200;

impl Operations {
    /// `idempotency_key`: the same one with the same spec again answers with the job that was made; with another spec it is
    /// refused.
    pub async fn job_create(
        &self,
        caller: &Caller,
        mut spec: JobSpec,
        idempotency_key: Option<String>,
    ) -> Answer<Created> {
        check_key("Idempotency-Key", idempotency_key.as_deref())?;
        access::settle_spec(caller, &mut spec)?;
        self.scheduler.create_job(spec, idempotency_key).await
    }

    /// Many in one go, durable together. The error of the whole call: nothing was created.
    pub async fn job_create_many(&self, caller: &Caller, specs: Vec<JobSpec>) -> Answer<Vec<Answer<Created>>> {
        access::caller(caller)?;
        if specs.len() > CREATE_MANY_JOBS {
            return Err(invalid(format!("jobs: {} in one call; at most {CREATE_MANY_JOBS}", specs.len())));
        }
        let mut allowed = Vec::with_capacity(specs.len());
        let settled: Vec<Answer<()>> = specs
            .into_iter()
            .map(|mut spec| access::settle_spec(caller, &mut spec).map(|()| allowed.push(spec)))
            .collect();
        let mut created = self.scheduler.create_jobs(allowed).await.into_iter();
        Ok(settled
            .into_iter()
            .map(|settled| settled.and_then(|()| created.next().unwrap_or_else(|| Err(lost_answer()))))
            .collect())
    }

    pub async fn job_get(&self, caller: &Caller, job: JobId) -> Answer<JobView> {
        access::caller(caller)?;
        let view = self.scheduler.job(job).await.map_err(|error| access::same_absence(error, "job", &job))?;
        access::owns(caller, &view.spec.tenant_id, "job", &job)?;
        Ok(view)
    }

    /// By its name in `tenant`; None = the caller's own, for operators `default`.
    pub async fn job_find(&self, caller: &Caller, tenant: Option<String>, name: String) -> Answer<JobView> {
        let tenant = access::scope(caller, tenant)?.unwrap_or_else(|| access::DEFAULT_TENANT.to_owned());
        let shown = format!("'{}' of tenant '{tenant}'", name.escape_debug());
        self.scheduler.job_by_name(&tenant, &name).await.map_err(|error| access::same_absence(error, "job", &shown))
    }

    pub async fn job_list(&self, caller: &Caller, filter: JobFilter) -> Answer<Page<JobView>> {
        let tenant_id = access::scope(caller, filter.tenant_id)?;
        let labels = filter.labels.filter(|labels| !labels.is_empty());
        labels.iter().try_for_each(|selector| labels::check(selector).map_err(invalid))?;
        let text = filter.text.filter(|text| !text.is_empty());
        if text.as_ref().is_some_and(|text| text.len() > NAME_CHARS) {
            return Err(invalid(format!("text: longer than a name ({NAME_CHARS} characters)")));
        }
        let wanted = paging::wanted(filter.page_token, filter.page, filter.page_size)?;
        let filter = JobFilter { tenant_id, status: filter.status, labels, text, ..JobFilter::default() };
        paging::read(wanted, |page_token, size| {
            self.scheduler.jobs(JobFilter { page_token, page_size: Some(size), ..filter.clone() })
        })
        .await
    }

    /// The whole definition anew. Its name and its tenant cannot change.
    pub async fn job_replace(&self, caller: &Caller, job: JobId, body: ReplaceBody) -> Answer<JobView> {
        self.own_job(caller, job).await?;
        let ReplaceBody { version, mut spec, read } = body;
        let created_at = if read.needs_job() { Some(self.job_get(caller, job).await?.created_at) } else { None };
        read.check(job, version, created_at)?;
        access::settle_spec(caller, &mut spec)?;
        let replaced = self.scheduler.replace_job(job, version, spec).await;
        audit(caller, "job.replace", &job, None, &replaced);
        replaced
    }

    pub async fn job_delete(&self, caller: &Caller, job: JobId, body: ReasonBody) -> Answer<()> {
        check_reason(body.reason.as_deref())?;
        self.own_job(caller, job).await?;
        let deleted = self.scheduler.delete_job(job, body.reason.clone()).await;
        audit(caller, "job.delete", &job, body.reason.as_deref(), &deleted);
        deleted
    }

    pub async fn job_pause(&self, caller: &Caller, job: JobId, body: ReasonBody) -> Answer<JobView> {
        check_reason(body.reason.as_deref())?;
        self.own_job(caller, job).await?;
        let paused = self.scheduler.pause_job(job, body.reason.clone()).await;
        audit(caller, "job.pause", &job, body.reason.as_deref(), &paused);
        paused
    }

    pub async fn job_resume(&self, caller: &Caller, job: JobId, body: ReasonBody) -> Answer<JobView> {
        check_reason(body.reason.as_deref())?;
        self.own_job(caller, job).await?;
        let resumed = self.scheduler.resume_job(job, body.reason.clone()).await;
        audit(caller, "job.resume", &job, body.reason.as_deref(), &resumed);
        resumed
    }

    /// The same `manualRunId` again answers with the run that it made.
    pub async fn job_trigger(&self, caller: &Caller, job: JobId, body: TriggerBody) -> Answer<RunView> {
        check_reason(body.reason.as_deref())?;
        check_key("manualRunId", body.manual_run_id.as_deref())?;
        check_params(body.params.as_ref())?;
        self.own_job(caller, job).await?;
        self.scheduler.trigger(job, body).await
    }

    /// Live and final runs, newest first.
    pub async fn job_runs(&self, caller: &Caller, job: JobId, body: PageBody) -> Answer<Page<RunView>> {
        let wanted = paging::wanted(body.page_token, body.page, body.page_size)?;
        self.own_job(caller, job).await?;
        paging::read(wanted, |token, size| self.scheduler.job_runs(job, token, size)).await
    }

    /// What became of every due instant from `from` to `to`, both included; default: of the last day.
    pub async fn job_ledger(&self, caller: &Caller, job: JobId, body: LedgerBody) -> Answer<LedgerView> {
        let limit = paging::page_size(body.page_size, LEDGER_ENTRIES)?;
        let to = match body.to {
            Some(to) => to,
            None => Timestamp(self.scheduler.now_ms()?),
        };
        let from = body.from.unwrap_or(to.plus_ms(-LEDGER_MS));
        if from > to {
            return Err(invalid(format!("from: {from} is after to, {to}")));
        }
        self.own_job(caller, job).await?;
        // Behind the instant before: the store tells what comes after one.
        let mut ledger = self.scheduler.ledger(job, from.ms().saturating_sub(1), to.ms(), limit).await?;
        ledger.from = ledger.from.max(from);
        if ledger.truncated {
            // Where the next page begins, and no instant of this one comes again.
            ledger.to = ledger.to.plus_ms(1);
        }
        Ok(ledger)
    }

    /// When a trigger would fire, in words and instants, and what may surprise about it. Creates nothing.
    pub async fn schedule_preview(&self, caller: &Caller, body: PreviewBody) -> Answer<Preview> {
        access::caller(caller)?;
        if body.count.is_some_and(|count| count > PREVIEW_INSTANTS) {
            return Err(invalid(format!("count: at most {PREVIEW_INSTANTS}")));
        }
        self.scheduler.preview(body)
    }

    /// Refuses a job of another tenant before anything is done with it.
    pub(super) async fn own_job(&self, caller: &Caller, job: JobId) -> Answer<()> {
        if access::bound_to(caller)?.is_some() {
            let tenant = self.scheduler.tenant_of_job(job).await;
            let tenant = tenant.map_err(|error| access::same_absence(error, "job", &job))?;
            access::owns(caller, &tenant, "job", &job)?;
        }
        Ok(())
    }
}

fn lost_answer() -> ApiError {
    ApiError::new(ErrorCode::Internal, "the scheduler gave fewer answers than jobs; ask with job.get what exists")
}
