//! Runs: read, wait for, cancel, retry, confirm, and their logs.

use super::{Answer, Operations, access, audit, check_reason, invalid};
use campanile_schema::{
    ids::RunId,
    job::JobView,
    limits::{HTTP_WAIT_MS, LOG_BYTES_PER_ATTEMPT},
    view::{ConfirmBody, LogBody, LogView, ReasonBody, RunView},
};
use campanile_security::auth::Caller;

impl Operations {
    pub async fn run_get(&self, caller: &Caller, run: RunId) -> Answer<RunView> {
        access::caller(caller)?;
        let view = self.scheduler.run(run).await.map_err(|error| access::same_absence(error, "run", &run))?;
        access::owns(caller, &view.tenant_id, "run", &run)?;
        Ok(self.with_effective_params(view).await)
    }

    /// Adds the params that the body of the newest attempt got, or would get now, as far as they are known: a run holds
    /// only the caller's own, and the job's may have been changed since.
    async fn with_effective_params(&self, mut view: RunView) -> RunView {
        // A run is shown whatever became of its job.
        if let Ok(job) = self.scheduler.job(view.job_id).await
            && is_in_force(&job, &view)
        {
            view.effective_params = Some(job.spec.params.laid_over(view.params.as_ref()));
            view.secret_params = job.spec.secret_params;
        }
        view
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
        let view = view.map_err(|error| access::same_absence(error, "run", &run))?;
        Ok(self.with_effective_params(view).await)
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

/// Whether the job's definition of now is the one that the newest attempt began with. Other changes of the job, such as
/// a pause, count as changes of its definition, because a job holds only the time of its last change.
fn is_in_force(job: &JobView, run: &RunView) -> bool {
    match run.attempts.last() {
        Some(newest) => job.version == 1 || job.updated_at < newest.started_at,
        None => !run.state.is_final(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn known(version: u64, state: &str, attempts: &[&str]) -> bool {
        let job = json!({
            "jobId": 1, "status": "ENABLED", "version": version, "createdAt": "2026-01-01T00:00:00Z",
            "updatedAt": "2026-01-01T00:00:10Z", "runCount": 1, "name": "a", "trigger": {"type": "MANUAL"},
        });
        let attempts: Vec<Value> = attempts
            .iter()
            .map(|at| {
                json!({"attempt": 1, "generation": 1, "token": 1, "state": "RUNNING", "executorId": "e", "startedAt": at})
            })
            .collect();
        let run = json!({
            "runId": 1, "jobId": 1, "tenantId": "t", "state": state, "source": "MANUAL", "generation": 1,
            "attemptCount": 1, "createdAt": "2026-01-01T00:00:00Z", "deadLetter": false, "attempts": attempts,
        });
        is_in_force(&serde_json::from_value(job).unwrap(), &serde_json::from_value(run).unwrap())
    }

    #[test]
    fn params_are_known_while_the_definition_is_the_one_that_the_attempt_began_with() {
        let (before, at, after) = ("2026-01-01T00:00:09Z", "2026-01-01T00:00:10Z", "2026-01-01T00:00:11Z");
        assert!(known(1, "RUNNING", &[before]), "the first definition");
        assert!(known(2, "RUNNING", &[before, after]) && !known(2, "RUNNING", &[after, before]));
        assert!(!known(2, "SUCCESS", &[at]), "the same millisecond tells nothing");
        assert!(known(2, "QUEUED", &[]) && !known(2, "CANCELED", &[]));
    }
}
