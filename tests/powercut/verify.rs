//! After a restart: everything that was acknowledged, or seen since, is there.

use crate::{
    caller::{Caller, Said, said},
    executor::{Attempts, check_order},
    ledger,
    model::Job,
};
use campanile_actors::scheduler::Scheduler;
use campanile_ports::{LedgerRow, Views};
use campanile_schema::{
    error::ErrorCode,
    ids::{JobId, RunId},
    limits,
    record::{AttemptState, RunState},
    view::{ConfirmDecision, RunView},
};
use campanile_store::embedded::EmbeddedStore;
use std::collections::BTreeMap;

/// Keys and runs of one job that are looked at after each restart: the newest; in the end all are.
const NEWEST: usize = 6;

/// Newest items, or all.
fn newest<T>(items: Vec<T>, all: bool) -> Vec<T> {
    let skip = if all { 0 } else { items.len().saturating_sub(NEWEST) };
    items.into_iter().skip(skip).collect()
}

impl Caller {
    /// False: the node went away before all was answered.
    pub async fn verify(&mut self, node: &Scheduler, store: &EmbeddedStore, all: bool) -> Result<bool, String> {
        Ok(self.verify_creates(node).await?
            && self.verify_jobs(node).await?
            && self.verify_keys(node, all).await?
            && self.verify_runs(node, all).await?
            && self.verify_ledgers(node, store).await?
            && self.verify_tenant(node).await?)
    }

    /// Creates without an answer happened or did not, and it stays so.
    async fn verify_creates(&mut self, node: &Scheduler) -> Result<bool, String> {
        while let Some((name, plan)) = self.creating.last() {
            match said(node.job_by_name(&self.tenant.name, name).await)? {
                Said::Yes(view) => {
                    let mut job = Job::new(view.job_id, &self.tenant.name, name, plan.clone());
                    job.seen(&view)?;
                    self.jobs.push(job);
                    self.creating.pop();
                }
                Said::No(e) if e.known() == ErrorCode::NotFound => {
                    self.absent.push(name.clone());
                    self.creating.pop();
                }
                Said::No(e) => return Err(format!("job '{name}' could not be looked up: {e}")),
                Said::Nothing => return Ok(false),
            }
        }
        for name in newest(self.absent.iter().collect(), false) {
            match said(node.job_by_name(&self.tenant.name, name).await)? {
                Said::Yes(view) => return Err(format!("a job that was not there appeared: {view:?}")),
                Said::No(_) => {}
                Said::Nothing => return Ok(false),
            }
        }
        Ok(true)
    }

    async fn verify_jobs(&mut self, node: &Scheduler) -> Result<bool, String> {
        for job in &mut self.jobs {
            match said(node.job(job.id).await)? {
                Said::Yes(view) => job.seen(&view)?,
                Said::No(e) if e.known() == ErrorCode::NotFound => job.missing()?,
                Said::No(e) => return Err(format!("job {} could not be read: {e}", job.id)),
                Said::Nothing => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The same key is the same run, for jobs that are gone too.
    async fn verify_keys(&mut self, node: &Scheduler, all: bool) -> Result<bool, String> {
        for at in 0..self.jobs.len() {
            let keys = self.jobs[at].keys.iter().map(|k| k.text.clone()).collect();
            for key in newest(keys, all) {
                if !self.trigger_key(node, at, &key).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    async fn verify_runs(&mut self, node: &Scheduler, all: bool) -> Result<bool, String> {
        for job in &mut self.jobs {
            let runs = job.runs.keys().copied().collect();
            for run in newest(runs, all) {
                match run_of(node, run).await? {
                    Some(view) => job.run_seen(&view)?,
                    None => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    async fn verify_ledgers(&mut self, node: &Scheduler, store: &EmbeddedStore) -> Result<bool, String> {
        for job in &mut self.jobs {
            let rows = ledger_of(store, job.id).await?;
            if rows.len() < job.ledger.len() || rows[..job.ledger.len()] != job.ledger {
                return Err(format!("the ledger of job {} was {:?} and is {rows:?}", job.id, job.ledger));
            }
            let begins = job.created_ms.map(|at| job.plans[0].ledger_from(at));
            let told = ledger::check(begins, &job.plans, &rows)
                .map_err(|why| format!("ledger of job {} '{}': {why}", job.id, job.name))?;
            job.ledger = rows;
            for (run, instant) in told.fired {
                if job.fired.contains_key(&run) {
                    continue;
                }
                let Some(view) = run_of(node, run).await? else { return Ok(false) };
                if view.logical_time.map(|t| t.0) != Some(instant) {
                    return Err(format!("the instant {instant} fired run {run}, which is {view:?}"));
                }
                job.run_seen(&view)?;
                job.fired.insert(run, instant);
            }
        }
        Ok(true)
    }

    async fn verify_tenant(&mut self, node: &Scheduler) -> Result<bool, String> {
        let view = match said(node.tenant(&self.tenant.name).await)? {
            Said::Yes(view) => view,
            Said::No(e) if e.known() == ErrorCode::NotFound => {
                let expected = self.tenant.quota.as_ref().is_none_or(|q| *q == Default::default());
                return if expected && self.tenant.paused != Some(true) {
                    Ok(true)
                } else {
                    Err(format!("{} is gone", self.tenant.name))
                };
            }
            Said::No(e) => return Err(format!("{} could not be read: {e}", self.tenant.name)),
            Said::Nothing => return Ok(false),
        };
        let quota = self.tenant.quota.get_or_insert(view.quota.clone());
        if *quota != view.quota || self.tenant.paused.is_some_and(|p| p != view.paused) {
            return Err(format!("quota {quota:?}, paused {:?} were acknowledged: {view:?}", self.tenant.paused));
        }
        // A pause that had no answer may stand in some shards only: it is said again.
        if self.tenant.paused.is_none() {
            return self.pause_tenant(node, false).await;
        }
        Ok(true)
    }

    /// Instants up to `mark_ms` without an outcome, of a job that fires. Runs that wait for a person get their answer: those
    /// behind them wait too.
    pub async fn still_due(
        &mut self,
        node: &Scheduler,
        store: &EmbeddedStore,
        mark_ms: i64,
    ) -> Result<Option<String>, String> {
        for job in &mut self.jobs {
            let fires = job.status == campanile_schema::job::JobStatus::Enabled;
            let Some(plan) = job.plans.last().filter(|_| fires) else { continue };
            let rows = ledger_of(store, job.id).await?;
            let begins = job.created_ms.map(|at| job.plans[0].ledger_from(at));
            let cursor = rows.last().map(|r| r.to_ms).or(begins).unwrap_or(0);
            let left = plan.instants(cursor, mark_ms).unwrap_or_default();
            if !left.is_empty() {
                let Said::Yes(page) = said(node.job_runs(job.id, None, limits::PAGE_SIZE_MAX).await)? else { continue };
                let mut open = Vec::new();
                for run in page.items.iter().filter(|r| !r.state.is_final()) {
                    open.extend(run_of(node, run.run_id).await?);
                }
                let text = format!(
                    "job {} '{}' {plan:?}: {left:?} have no outcome; its open runs: {open:?}",
                    job.id, job.name
                );
                for run in page.items.iter().filter(|r| r.state == RunState::NeedsConfirmation) {
                    if let Said::Yes(view) = said(node.confirm_run(run.run_id, ConfirmDecision::Failed, None).await)? {
                        job.run_seen(&view)?;
                    }
                }
                return Ok(Some(text));
            }
        }
        Ok(None)
    }
}

/// None: the node went away.
async fn run_of(node: &Scheduler, run: RunId) -> Result<Option<RunView>, String> {
    match said(node.run(run).await)? {
        Said::Yes(view) => Ok(Some(view)),
        Said::No(e) => Err(format!("run {run} was acknowledged, and now: {e}")),
        Said::Nothing => Ok(None),
    }
}

async fn ledger_of(store: &EmbeddedStore, job: JobId) -> Result<Vec<LedgerRow>, String> {
    let mut rows: Vec<LedgerRow> = Vec::new();
    loop {
        let from = rows.last().map_or(i64::MIN, |r| r.to_ms);
        let page = store.ledger(job, from, i64::MAX, limits::PAGE_SIZE_MAX).await.map_err(|e| e.to_string())?;
        let last = page.len() < limits::PAGE_SIZE_MAX;
        rows.extend(page);
        if last {
            return Ok(rows);
        }
    }
}

/// What executors were given and what was taken from them. `fired`: by the ledgers. False: the node went away.
pub async fn verify_attempts(
    node: &Scheduler,
    attempts: &Attempts,
    fired: &BTreeMap<RunId, i64>,
    all: bool,
) -> Result<bool, String> {
    let runs = attempts.all();
    for (run, tokens) in &runs {
        check_order(*run, tokens)?;
    }
    for (run, tokens) in newest(runs.into_iter().collect(), all) {
        let Some(view) = run_of(node, run).await? else { return Ok(false) };
        for (token, given) in &tokens {
            let attempt = view.attempts.iter().find(|a| a.token == token.0);
            let fits = attempt.is_some_and(|a| a.attempt == given.attempt && a.generation == given.generation);
            let kept = given.durable.is_none() || attempt.is_some_and(|a| a.state != AttemptState::Running);
            if (!fits || !kept) && view.attempts.len() < limits::ATTEMPTS_KEPT {
                return Err(format!("attempt {token} {given:?} was given out, but run {run} is {view:?}"));
            }
            let success = given.durable == Some(AttemptState::Success) && view.generation == given.generation;
            if view.job_id != given.job || success && view.state != RunState::Success {
                return Err(format!("attempt {token} {given:?} of run {run}, which is {view:?}"));
            }
            if let Some(instant) = given.instant_ms
                && fired.get(&run) != Some(&instant)
            {
                return Err(format!("run {run} of the instant {instant} stands in no ledger"));
            }
        }
    }
    Ok(true)
}
