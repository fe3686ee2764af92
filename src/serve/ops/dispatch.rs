//! The only path to an operation, for HTTP, RPC and the node itself.
//!
//! It does what the table says, once for all operations: it checks the role of the credential and the tenant of the
//! job, run or tenant that the request is about, and writes the line of the audit log. The order is always the same:
//! may this credential call this operation; is the request within its limits; does its subject belong to the caller's
//! tenant; then the handler begins.

use super::{Answer, Operations, access, check_reason};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{JobId, RunId},
    operations::{About, Audit, Handle, Host, Operation, Request, Row, Tenant},
};
use campanile_security::auth::Caller;

impl Host for Operations {
    type Context = Caller;
}

impl Operations {
    /// Carries out an operation for a caller.
    pub async fn call<O: Operation>(&self, caller: &Caller, mut request: O::Request) -> Answer<O::Answer>
    where
        Self: Handle<O>,
    {
        let row = O::ROW;
        access::least(caller, row.least)?;
        check_reason(request.reason())?;
        <Self as Handle<O>>::check(&request)?;
        if row.tenant == Tenant::Before {
            self.let_in(caller, &mut request).await?;
        }
        let kept = Kept::of(row, &request);
        let answer = <Self as Handle<O>>::handle(self, caller, request).await;
        let answer = match (row.tenant, kept.about) {
            (Tenant::InAnswer, about) => shown(caller, about, answer),
            (Tenant::Before | Tenant::Each | Tenant::Nothing, _) => answer,
        };
        match row.audit {
            Audit::Line => audit(caller, row, &kept.subject, kept.reason.as_deref(), &answer),
            Audit::Own | Audit::No => {}
        }
        answer
    }

    /// Refuses a thing of another tenant before anything is done with it, and narrows a list to the caller's own tenant.
    async fn let_in<R: Request>(&self, caller: &Caller, request: &mut R) -> Answer<()> {
        match request.about() {
            About::Job(job) => self.own_job(caller, job).await,
            About::Run(run) => self.own_run(caller, run).await,
            About::Tenant(tenant) => {
                access::check_tenant_name(tenant)?;
                access::owns(caller, tenant, "tenant", &tenant)
            }
            About::Named => match request.named_tenant() {
                Some(named) => {
                    *named = access::scope(caller, named.take())?;
                    Ok(())
                }
                None => Err(unsound()),
            },
            About::Node(_) | About::Nothing => Err(unsound()),
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

/// The parts of a request that the dispatcher still needs after the handler has taken it.
struct Kept {
    about: Shown,
    subject: String,
    reason: Option<String>,
}

/// The subject of a read, whose tenant is compared with the answer.
#[derive(Clone, Copy)]
enum Shown {
    Job(JobId),
    Run(RunId),
    Other,
}

impl Kept {
    fn of<R: Request>(row: &Row, request: &R) -> Self {
        let about = match request.about() {
            About::Job(job) => Shown::Job(job),
            About::Run(run) => Shown::Run(run),
            About::Tenant(_) | About::Node(_) | About::Named | About::Nothing => Shown::Other,
        };
        if row.audit != Audit::Line {
            return Self { about, subject: String::new(), reason: None };
        }
        let subject = match request.about() {
            About::Job(job) => job.to_string(),
            About::Run(run) => run.to_string(),
            About::Tenant(name) | About::Node(name) => name.to_owned(),
            About::Named | About::Nothing => row.noun().to_owned(),
        };
        Self { about, subject, reason: request.reason().map(str::to_owned) }
    }
}

/// Compares the tenant of an answer. A job or run of another tenant is answered as unknown.
fn shown<A: campanile_schema::operations::Answer>(caller: &Caller, about: Shown, answer: Answer<A>) -> Answer<A> {
    let (what, id) = match about {
        Shown::Job(job) => ("job", job.to_string()),
        Shown::Run(run) => ("run", run.to_string()),
        Shown::Other => return Err(unsound()),
    };
    let answer = answer.map_err(|error| access::same_absence(error, what, &id))?;
    access::owns(caller, answer.tenant().ok_or_else(unsound)?, what, &id)?;
    Ok(answer)
}

/// A row of the table that asks for a comparison of tenants which its request or answer does not allow. The call is refused.
fn unsound() -> ApiError {
    ApiError::new(ErrorCode::Internal, "the table of operations names no tenant to compare here; report it as a bug")
}

/// One line of the audit log: who did what to what, why, and whether it was done.
pub(super) fn audit<T>(caller: &Caller, row: &Row, subject: &str, reason: Option<&str>, done: &Answer<T>) {
    let outcome = done.as_ref().err().map_or("done", |error| error.code.as_str());
    tracing::info!(target: "audit", caller = %caller.name, operation = row.name, %subject, reason, outcome);
}
