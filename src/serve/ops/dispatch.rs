//! The only path to an operation, for HTTP, RPC and the node itself.
//!
//! It does what the table says, once for all operations: it checks the role of the credential and the tenant of the
//! job, run or tenant that the request is about, and keeps the audit trail (`audit`). The order is always the same:
//! may this credential call this operation; is the request within its limits; does its subject belong to the caller's
//! tenant; then the handler begins.

use super::{Answer, Operations, access, audit::Subject, check_reason};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{BackfillId, BulkId, JobId, RunId},
    operations::{About, Audit, Handle, Host, Operation, Request, Tenant},
};
use campanile_security::auth::Caller;
use tracing::Instrument;

impl Host for Operations {
    type Context = Caller;
}

impl Operations {
    /// Carries out an operation for a caller.
    pub async fn call<O: Operation>(&self, caller: &Caller, request: O::Request) -> Answer<O::Answer>
    where
        Self: Handle<O>,
    {
        match self.traced(O::ROW) {
            Some(traced) => traced.spanned(O::ROW, &Subject::of(&request), traced.kept::<O>(caller, request)).await,
            None => self.kept::<O>(caller, request).await,
        }
    }

    async fn kept<O: Operation>(&self, caller: &Caller, request: O::Request) -> Answer<O::Answer>
    where
        Self: Handle<O>,
    {
        if O::ROW.audit != Audit::Home {
            return self.recorded::<O>(caller, request).await;
        }
        // Its record is made after the change: begun, both are carried on, also when the caller goes away or its time is over.
        let (ops, caller) = (self.clone(), caller.clone());
        let call = async move { ops.recorded::<O>(&caller, request).await };
        tokio::spawn(call.in_current_span()).await.unwrap_or_else(|error| match error.try_into_panic() {
            // As if it had been awaited here: the interface logs it.
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ApiError::new(ErrorCode::Timeout, "the node is stopping; read what became of the call")),
        })
    }

    async fn recorded<O: Operation>(&self, caller: &Caller, request: O::Request) -> Answer<O::Answer>
    where
        Self: Handle<O>,
    {
        let subject = Subject::of(&request);
        let answer = self.carried_out_for::<O>(caller, request, &subject).await;
        if let Some(record) = self.leave_trace(caller, O::ROW, &subject, &answer) {
            self.trail.change(&self.scheduler, record).await;
        }
        answer
    }

    async fn carried_out_for<O: Operation>(
        &self,
        caller: &Caller,
        mut request: O::Request,
        subject: &Subject,
    ) -> Answer<O::Answer>
    where
        Self: Handle<O>,
    {
        let row = O::ROW;
        access::least(caller, row.least)?;
        check_reason(request.reason())?;
        <Self as Handle<O>>::check(&request)?;
        if row.tenant == Tenant::Before {
            self.check_tenant(caller, &mut request).await?;
        }
        let about = ReadSubject::of(&request);
        let answer = match self.audited(caller, row, subject) {
            Some(audited) => <Self as Handle<O>>::handle(&audited, caller, request).await,
            None => <Self as Handle<O>>::handle(self, caller, request).await,
        };
        match row.tenant {
            Tenant::InAnswer => check_answer_tenant(caller, about, answer),
            Tenant::Before | Tenant::Each | Tenant::Nothing => answer,
        }
    }

    /// Refuses a thing of another tenant before anything is done with it, and narrows a list to the caller's own tenant.
    async fn check_tenant<R: Request>(&self, caller: &Caller, request: &mut R) -> Answer<()> {
        match request.about() {
            About::Job(job) => self.own_job(caller, job).await,
            About::Run(run) => self.own_run(caller, run).await,
            About::Backfill(id) => self.own_backfill(caller, id).await,
            About::Bulk(id) => self.own_bulk(caller, id).await,
            About::Tenant(tenant) => {
                access::check_tenant_name(tenant)?;
                access::owns(caller, tenant, "tenant", &tenant)
            }
            About::Target { tenant, target } => {
                access::check_tenant_name(tenant)?;
                access::owns(caller, tenant, "target", &target)
            }
            About::Calendar { tenant, calendar } => {
                access::check_tenant_name(tenant)?;
                access::owns(caller, tenant, "calendar", &calendar)
            }
            About::Named => match request.named_tenant() {
                Some(named) => {
                    *named = access::scope(caller, named.take())?;
                    Ok(())
                }
                None => Err(bad_row()),
            },
            About::Node(_) | About::Nothing => Err(bad_row()),
        }
    }

    /// Refuses a job of another tenant.
    pub(super) async fn own_job(&self, caller: &Caller, job: JobId) -> Answer<()> {
        if access::bound_to(caller)?.is_some() {
            let tenant = self.scheduler.tenant_of_job(job).await;
            let tenant = tenant.map_err(|error| access::same_absence(error, "job", &job))?;
            access::owns(caller, &tenant, "job", &job)?;
        }
        Ok(())
    }

    /// Refuses a run of another tenant.
    pub(super) async fn own_run(&self, caller: &Caller, run: RunId) -> Answer<()> {
        if access::bound_to(caller)?.is_some() {
            let tenant = self.scheduler.tenant_of_run(run).await;
            let tenant = tenant.map_err(|error| access::same_absence(error, "run", &run))?;
            access::owns(caller, &tenant, "run", &run)?;
        }
        Ok(())
    }
}

impl Operations {
    /// Refuses a backfill of another tenant.
    async fn own_backfill(&self, caller: &Caller, id: BackfillId) -> Answer<()> {
        if access::bound_to(caller)?.is_some() {
            let tenant = self.scheduler.tenant_of_backfill(id).await;
            let tenant = tenant.map_err(|error| access::same_absence(error, "backfill", &id))?;
            access::owns(caller, &tenant, "backfill", &id)?;
        }
        Ok(())
    }
}

impl Operations {
    /// Refuses a bulk operation of another tenant, or of all.
    async fn own_bulk(&self, caller: &Caller, id: BulkId) -> Answer<()> {
        if access::bound_to(caller)?.is_some() {
            let tenant = self.scheduler.tenant_of_bulk(id).await;
            let tenant = tenant.map_err(|error| access::same_absence(error, "bulk operation", &id))?;
            access::owns(caller, &tenant, "bulk operation", &id)?;
        }
        Ok(())
    }
}

/// The subject of a read, whose tenant is compared with the answer.
#[derive(Clone, Copy)]
enum ReadSubject {
    Job(JobId),
    Run(RunId),
    Backfill(BackfillId),
    Bulk(BulkId),
    Other,
}

impl ReadSubject {
    fn of<R: Request>(request: &R) -> Self {
        match request.about() {
            About::Job(job) => Self::Job(job),
            About::Run(run) => Self::Run(run),
            About::Backfill(id) => Self::Backfill(id),
            About::Bulk(id) => Self::Bulk(id),
            About::Tenant(_)
            | About::Target { .. }
            | About::Calendar { .. }
            | About::Node(_)
            | About::Named
            | About::Nothing => Self::Other,
        }
    }
}

/// Compares the tenant of an answer. A job or run of another tenant is answered as unknown.
fn check_answer_tenant<A: campanile_schema::operations::OperationAnswer>(
    caller: &Caller,
    about: ReadSubject,
    answer: Answer<A>,
) -> Answer<A> {
    let (what, id) = match about {
        ReadSubject::Job(job) => ("job", job.to_string()),
        ReadSubject::Run(run) => ("run", run.to_string()),
        ReadSubject::Backfill(id) => ("backfill", id.to_string()),
        ReadSubject::Bulk(id) => ("bulk operation", id.to_string()),
        ReadSubject::Other => return Err(bad_row()),
    };
    let answer = answer.map_err(|error| access::same_absence(error, what, &id))?;
    access::owns(caller, answer.tenant().ok_or_else(bad_row)?, what, &id)?;
    Ok(answer)
}

/// A row of the table that asks for a comparison of tenants which its request or answer does not allow. The call is refused.
fn bad_row() -> ApiError {
    ApiError::new(ErrorCode::Internal, "the table of operations names no tenant to compare here; report it as a bug")
}
