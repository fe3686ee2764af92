//! Runs: read, wait for, cancel, retry, confirm, and their logs.

use super::{Answer, Operations, at_most, check_times, invalid, labels, log_search::search, paging};
use campanile_actors::scheduler::{LogPart, RunQuery};
use campanile_schema::{
    ids::RunId,
    job::JobView,
    limits::{HTTP_WAIT_MS, LOG_BYTES_PER_ATTEMPT, LOG_SEARCH_BYTES, PRIORITY_MAX},
    operations::{Handle, RunCancel, RunConfirm, RunExplain, RunGet, RunList, RunLog, RunPriority, RunRetry},
    peer::runs::RunFilter,
    record::RunState,
    rpc::calls::{NoBody, RunCall},
    view::{
        ConfirmBody, LogBody, LogView, Page, PriorityBody, ReasonBody, RetryBody, RunGetBody, RunView,
        explain::ExplainView, runs::RunListBody,
    },
};
use campanile_security::auth::Caller;

/// The run as it is, or as soon as it is final, or as it is after `waitMs`.
impl Handle<RunGet> for Operations {
    fn check(request: &RunCall<RunGetBody>) -> Answer<()> {
        if request.body.wait_ms.is_some_and(|wait_ms| wait_ms > HTTP_WAIT_MS) {
            let most = HTTP_WAIT_MS / 1000;
            let message = format!("waitSec: at most {most} (waitMs: {HTTP_WAIT_MS}); ask again to go on waiting");
            return Err(invalid(message));
        }
        Ok(())
    }

    async fn handle(&self, caller: &Caller, request: RunCall<RunGetBody>) -> Answer<RunView> {
        let (run, body) = request.parts()?;
        let view = match body.wait_ms {
            None | Some(0) => self.scheduler.run(run).await?,
            Some(wait_ms) => {
                // How long a foreign run takes is not told either.
                self.own_run(caller, run).await?;
                self.scheduler.wait_run(run, wait_ms).await?
            }
        };
        Ok(self.with_effective_params(view).await)
    }
}

impl Operations {
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

    /// At most so many bytes of a run's log.
    pub async fn run_log_part(&self, caller: &Caller, run: RunId, body: LogBody, most: usize) -> Answer<LogView> {
        check_log(&body)?;
        self.own_run(caller, run).await?;
        self.log_part(run, body, most).await
    }

    async fn log_part(&self, run: RunId, body: LogBody, most: usize) -> Answer<LogView> {
        // Lines that are looked for may be anywhere.
        let most = if body.is_search() { LOG_BYTES_PER_ATTEMPT } else { most };
        let LogPart { attempt, offset, bytes, end } =
            self.scheduler.run_log(run, body.attempt, body.offset.unwrap_or(0), most).await?;
        let (text, read, lines) = if body.is_search() {
            let found = search(&bytes, &body, end);
            (found.text, found.read, Some(found.lines))
        } else {
            (String::from_utf8_lossy(&bytes).into_owned(), bytes.len(), None)
        };
        Ok(LogView { run_id: run, attempt, offset, text, next_offset: offset + read as u64, end, lines })
    }
}

fn check_log(body: &LogBody) -> Answer<()> {
    if body.attempt == Some(0) {
        return Err(invalid("attempt: counts from 1"));
    }
    at_most("contains", body.contains.as_deref(), LOG_SEARCH_BYTES)
}

/// Of a tenant's credential those of its tenant.
impl Handle<RunList> for Operations {
    fn check(request: &RunListBody) -> Answer<()> {
        query(request).map(drop)?;
        paging::wanted(request.page_token.clone(), request.page, request.page_size).map(drop)
    }

    async fn handle(&self, _: &Caller, request: RunListBody) -> Answer<Page<RunView>> {
        let query = query(&request)?;
        let wanted = paging::wanted(request.page_token, request.page, request.page_size)?;
        paging::read(wanted, |token, size| self.scheduler.run_list(&query, token, size)).await
    }
}

/// States that a list has that names none: with a job all, otherwise those that somebody may have to look at.
fn usual_states(of_job: bool) -> Vec<RunState> {
    let shown = |state: &&RunState| match state {
        RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::RetryWait
        | RunState::SuspectedLost
        | RunState::NeedsConfirmation
        | RunState::Failed
        | RunState::Timeout => true,
        RunState::Success | RunState::Canceled | RunState::Skipped => of_job,
    };
    RunState::ALL.iter().filter(shown).copied().collect()
}

fn query(body: &RunListBody) -> Answer<RunQuery> {
    let labels = body.labels.clone().filter(|labels| !labels.is_empty());
    labels.iter().try_for_each(|selector| labels::check(selector).map_err(invalid))?;
    let states = match body.state.as_deref().filter(|states| !states.is_empty()) {
        None => usual_states(body.job_id.is_some()),
        Some(states) => {
            let state = |word: &str| word.trim().parse::<RunState>().map_err(|why| invalid(format!("state: {why}")));
            states.split(',').map(state).collect::<Answer<Vec<RunState>>>()?
        }
    };
    check_times(body.from, body.to)?;
    let filter = RunFilter {
        tenant: body.tenant_id.clone(),
        states: states.into_iter().map(RunState::code).collect(),
        job: body.job_id,
        labels,
        source: body.source.map(|source| source.code()),
        from_ms: body.from.map(|from| from.ms()),
        to_ms: body.to.map(|to| to.ms()),
    };
    Ok(RunQuery { filter })
}

impl Handle<RunExplain> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<NoBody>) -> Answer<ExplainView> {
        let (run, NoBody {}) = request.parts()?;
        self.scheduler.explain_run(run).await
    }
}

impl Handle<RunCancel> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<ReasonBody>) -> Answer<RunView> {
        let (run, body) = request.parts()?;
        self.scheduler.cancel_run(run, body.reason).await
    }
}

/// A final run again: the next generation with a fresh budget of attempts.
impl Handle<RunRetry> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<RetryBody>) -> Answer<RunView> {
        let (run, body) = request.parts()?;
        self.scheduler.retry_run_anyway(run, false, body).await
    }
}

/// A person decides about a run in NEEDS_CONFIRMATION.
impl Handle<RunConfirm> for Operations {
    async fn handle(&self, _: &Caller, request: RunCall<ConfirmBody>) -> Answer<RunView> {
        let (run, body) = request.parts()?;
        self.scheduler.confirm_run(run, body.decision, body.reason).await
    }
}

/// Of a run that waits; the run keeps it.
impl Handle<RunPriority> for Operations {
    fn check(request: &RunCall<PriorityBody>) -> Answer<()> {
        if request.body.priority > PRIORITY_MAX {
            return Err(invalid(format!("priority must be 0 to {PRIORITY_MAX}; a higher one goes first")));
        }
        Ok(())
    }

    async fn handle(&self, _: &Caller, request: RunCall<PriorityBody>) -> Answer<RunView> {
        let (run, PriorityBody { priority, reason }) = request.parts()?;
        self.scheduler.set_run_priority(run, priority, reason).await
    }
}

impl Handle<RunLog> for Operations {
    fn check(request: &RunCall<LogBody>) -> Answer<()> {
        check_log(&request.body)
    }

    async fn handle(&self, _: &Caller, request: RunCall<LogBody>) -> Answer<LogView> {
        let (run, body) = request.parts()?;
        self.log_part(run, body, LOG_BYTES_PER_ATTEMPT).await
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
    fn states_are_words_with_commas_between_them_in_any_case() {
        let of = |state: &str| query(&RunListBody { state: Some(state.to_owned()), ..RunListBody::default() });
        let states = of("running, FAILED").unwrap().filter.states;
        assert_eq!(states, [RunState::Running.code(), RunState::Failed.code()]);
        let refused = of("RUNNING,DONE").unwrap_err().message;
        assert!(refused.starts_with("state: 'DONE' is not one of PENDING, QUEUED"), "{refused}");
        let usual = |job_id| query(&RunListBody { job_id, ..RunListBody::default() }).unwrap().filter.states;
        assert!(!usual(None).contains(&RunState::Success.code()));
        assert!(usual(Some(campanile_schema::ids::JobId(1))).contains(&RunState::Success.code()));
    }

    #[test]
    fn params_are_known_while_the_definition_is_the_one_that_the_attempt_began_with() {
        let (before, at, after) = ("2026-01-01T00:00:09Z", "2026-01-01T00:00:10Z", "2026-01-01T00:00:11Z");
        assert!(known(1, "RUNNING", &[before]), "the first definition");
        assert!(known(2, "RUNNING", &[before, after]));
        assert!(!known(2, "RUNNING", &[after, before]));
        assert!(!known(2, "SUCCESS", &[at]), "the same millisecond tells nothing");
        assert!(known(2, "QUEUED", &[]));
        assert!(!known(2, "CANCELED", &[]));
    }
}
