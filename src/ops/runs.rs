//! Runs: read, wait for, cancel, retry, confirm, and their logs.

use super::{Answer, Operations, access, audit, check_reason, invalid};
use crate::auth::Caller;
use campanile_schema::{
    ids::RunId,
    limits::{HTTP_WAIT_MS, LOG_BYTES_PER_ATTEMPT},
    view::{ConfirmBody, LogBody, LogView, ReasonBody, RunView},
};

impl Operations {
    pub async fn run_get(&self, caller: &Caller, run: RunId) -> Answer<RunView> {
        access::caller(caller)?;
        let view = self.scheduler.run(run).await.map_err(|error| access::same_absence(error, "run", &run))?;
        access::owns(caller, &view.tenant_id, "run", &run)?;
        Ok(view)
    }

    /// The run as soon as it is final, or as it is after `wait_ms`.
    pub async fn run_wait(&self, caller: &Caller, run: RunId, wait_ms: u64) -> Answer<RunView> {
        if wait_ms > HTTP_WAIT_MS {
            let most = HTTP_WAIT_MS / 1000;
            let message = format!("waitSec: at most {most} (waitMs: {HTTP_WAIT_MS}); ask again to go on waiting");
            return Err(invalid(message));
        }
        self.own_run(caller, run).await?;
        let view = self.scheduler.wait_run(run, wait_ms).await;
        view.map_err(|error| access::same_absence(error, "run", &run))
    }

    pub async fn run_cancel(&self, caller: &Caller, run: RunId, body: ReasonBody) -> Answer<RunView> {
        check_reason(body.reason.as_deref())?;
        self.own_run(caller, run).await?;
        let canceled = self.scheduler.cancel_run(run, body.reason.clone()).await;
        audit(caller, "run.cancel", &run, body.reason.as_deref(), &canceled);
        canceled
    }

    /// A final run again: the next generation with a fresh budget of attempts.
    pub async fn run_retry(&self, caller: &Caller, run: RunId, body: ReasonBody) -> Answer<RunView> {
        self.run_again(caller, run, body, false).await
    }

    /// A person decides about a run in NEEDS_CONFIRMATION.
    pub async fn run_confirm(&self, caller: &Caller, run: RunId, body: ConfirmBody) -> Answer<RunView> {
        check_reason(body.reason.as_deref())?;
        self.own_run(caller, run).await?;
        let confirmed = self.scheduler.confirm_run(run, body.decision, body.reason.clone()).await;
        audit(caller, "run.confirm", &run, body.reason.as_deref(), &confirmed);
        confirmed
    }

    pub async fn run_log(&self, caller: &Caller, run: RunId, body: LogBody) -> Answer<LogView> {
        self.run_log_part(caller, run, body, LOG_BYTES_PER_ATTEMPT).await
    }

    /// At most so many bytes of it.
    pub async fn run_log_part(&self, caller: &Caller, run: RunId, body: LogBody, most: usize) -> Answer<LogView> {
        if body.attempt == Some(0) {
            return Err(invalid("attempt: counts from 1"));
        }
        self.own_run(caller, run).await?;
        self.scheduler.run_log(run, body.attempt, body.offset.unwrap_or(0), most).await
    }

    /// Retry and redrive: the second takes only dead letters.
    pub(super) async fn run_again(
        &self,
        caller: &Caller,
        run: RunId,
        body: ReasonBody,
        redrive: bool,
    ) -> Answer<RunView> {
        check_reason(body.reason.as_deref())?;
        self.own_run(caller, run).await?;
        let again = self.scheduler.retry_run(run, redrive, body.reason.clone()).await;
        let operation = if redrive { "dlq.redrive" } else { "run.retry" };
        audit(caller, operation, &run, body.reason.as_deref(), &again);
        again
    }

    /// Refuses a run of another tenant before anything is done with it.
    pub(super) async fn own_run(&self, caller: &Caller, run: RunId) -> Answer<()> {
        if access::bound_to(caller)?.is_some() {
            let tenant = self.scheduler.tenant_of_run(run).await;
            let tenant = tenant.map_err(|error| access::same_absence(error, "run", &run))?;
            access::owns(caller, &tenant, "run", &run)?;
        }
        Ok(())
    }
}
