//! Why a run or a job is as it is. Here the facts are gathered; [`run`] and [`job`] make reasons of them and of nothing else, so that each
//! sentence rests on a fact that was true when the node looked.
//!
//! What cannot be known is left out: of a run that has ended nobody remembers for what it waited.

mod job;
mod parts;
mod run;

use super::{Scheduler, run_list::some_open_runs, unavailable};
use crate::{ask::ask, calls::ShardCall, handles::SessionHandles, shard_map::ShardPlace};
use campanile_ports::{AuditQuery, LedgerRow};
use campanile_schema::{
    audit::DONE,
    error::{Answer, ErrorCode},
    ids::{JobId, RunId},
    job::{JobStatus, JobView},
    limits::{HOLDER_LOOKS, HOLDERS_NAMED},
    operations::{JobApply, JobPause, TenantPause},
    record::RunState,
    stored::audit::AuditRecord,
    time::Timestamp,
    view::{
        LedgerEntryView, PreviewBody, RunView,
        dag::DagRunView,
        explain::{ExplainView, HolderKind, HolderView, ReasonView},
    },
    wait::WaitCode,
};
use job::{InstantFacts, JobFacts};
use parts::Pauses;
use run::RunFacts;
use std::sync::Arc;

/// Newest records of the audit trail among which the one of a pause is looked for.
const PAUSE_LOOKS: usize = 50;
/// Intervals of the ledger that are read for one instant: those that end there, an empty one among them.
const INTERVALS: usize = 8;

impl Scheduler {
    /// Why a run exists, why it is not running, why it was late, how it ended.
    pub async fn explain_run(&self, run: RunId) -> Answer<ExplainView> {
        let handles = self.handles()?;
        let view = self.run(run).await?;
        let job = found(self.job(view.job_id).await)?;
        let facts = self.run_facts(&handles, view, job).await?;
        Ok(ExplainView {
            tenant_id: facts.run.tenant_id.clone(),
            job_id: facts.run.job_id,
            job_name: facts.job.as_ref().map(|job| job.spec.name.clone()),
            run_id: Some(run),
            run_state: Some(facts.run.state),
            job_status: None,
            at: None,
            now: Timestamp(facts.now_ms),
            reasons: run::reasons(&facts),
        })
    }

    async fn run_facts(&self, handles: &Arc<SessionHandles>, run: RunView, job: Option<JobView>) -> Answer<RunFacts> {
        let code = run.wait_reason.as_deref().and_then(WaitCode::of).map(|(code, _)| code);
        let mut facts = RunFacts {
            now_ms: handles.identity.time.now_ms(),
            open: Vec::new(),
            running: Vec::new(),
            job_paused_by: None,
            pauses: Pauses::default(),
            dag: None,
            entry: None,
            run,
            job,
        };
        let run = &facts.run;
        match code {
            Some(WaitCode::HeldByConcurrencyPolicy) => facts.open = self.open_runs_of(handles, run.job_id).await?,
            Some(WaitCode::TenantConcurrency) => {
                facts.running = running_of(handles, &run.tenant_id, |_| true).await?;
            }
            Some(WaitCode::NoCredit) => {
                let pool = facts.job.as_ref().map_or("", |job| job.spec.executor_selector.as_str());
                let mut executors = self.executors().await?;
                executors.retain(|executor| executor.pools.iter().any(|of| of == pool));
                let is_of_pool = |id: &str| executors.iter().any(|executor| executor.executor_id == id);
                facts.running = running_of(handles, &run.tenant_id, is_of_pool).await?;
            }
            Some(WaitCode::JobPaused) => facts.job_paused_by = self.paused_job(handles, run.job_id).await?,
            Some(
                WaitCode::JobQuarantined
                | WaitCode::TenantPaused
                | WaitCode::Starting
                | WaitCode::TenantRate
                | WaitCode::TargetBreakerOpen
                | WaitCode::TargetRecovering
                | WaitCode::TargetRetryBudget
                | WaitCode::TargetConcurrency
                | WaitCode::TargetRate
                | WaitCode::NoExecutor
                | WaitCode::NoFit
                | WaitCode::Binding
                | WaitCode::DagPaused
                | WaitCode::NoNodeRoom
                | WaitCode::BackfillYields
                | WaitCode::NodeDegraded
                | WaitCode::WaitingForRetry
                | WaitCode::NeedsConfirmation
                | WaitCode::SuspectedLost
                | WaitCode::Stopping,
            )
            | None => {}
        }
        if run::waits_to_start(facts.run.state) {
            facts.pauses = self.pauses(handles, &facts.run.tenant_id).await?;
        }
        if facts.run.state == RunState::Running && facts.is_dag() {
            facts.dag = self.nodes_of(facts.run.run_id).await?;
        }
        if let Some(due) = facts.run.logical_time {
            let row = self.ledger_at(handles, facts.run.job_id, due.ms()).await?;
            let of_run = |entry: &LedgerEntryView| entry.run_id == Some(facts.run.run_id);
            facts.entry = entries(&row, due.ms()).into_iter().find(of_run);
        }
        Ok(facts)
    }

    /// When a job fires next or why it does not; with `at` what became of that instant.
    pub async fn explain_job(&self, job: JobId, at: Option<Timestamp>) -> Answer<ExplainView> {
        let handles = self.handles()?;
        let view = self.job(job).await?;
        let now_ms = handles.identity.time.now_ms();
        let reasons = match at {
            Some(at) => self.explain_instant(&handles, &view, at.ms(), now_ms).await?,
            None => self.explain_now(&handles, &view, now_ms).await?,
        };
        Ok(ExplainView {
            tenant_id: view.spec.tenant_id.clone(),
            job_id: job,
            job_name: Some(view.spec.name.clone()),
            run_id: None,
            run_state: None,
            job_status: Some(view.status),
            at,
            now: Timestamp(now_ms),
            reasons,
        })
    }

    async fn explain_now(&self, handles: &Arc<SessionHandles>, job: &JobView, now_ms: i64) -> Answer<Vec<ReasonView>> {
        let pauses = self.pauses(handles, &job.spec.tenant_id).await?;
        let paused_by = match job.status {
            JobStatus::Paused => self.paused_job(handles, job.job_id).await?,
            JobStatus::Enabled | JobStatus::Deleted => None,
        };
        // Of a job whose shard another node has, this node's own troubles say nothing.
        let is_here = matches!(handles.shards.place(job.job_id.shard(handles.identity.shards)), ShardPlace::Here);
        let not_ready = if is_here { self.not_ready_reasons() } else { Vec::new() };
        let open = self.open_runs_of(handles, job.job_id).await?;
        let waits = |run: &&RunView| [RunState::Pending, RunState::Queued].contains(&run.state);
        let oldest = open.iter().filter(waits).min_by_key(|run| run.run_id).map(|run| run.run_id);
        let (paused_by, pauses, not_ready) = (paused_by.as_ref(), &pauses, not_ready.as_slice());
        let mut reasons = job::reasons(&JobFacts { job, open: &open, paused_by, pauses, not_ready, now_ms });
        if let Some(run) = oldest {
            // It may have ended meanwhile: then it waits for nothing.
            let facts = self.run_facts(handles, self.run(run).await?, Some(job.clone())).await?;
            reasons.extend(run::waits(&facts).into_iter().map(|wait| ReasonView {
                sentence: format!("run {run}, the oldest that waits: {}", wait.sentence),
                ..wait
            }));
        }
        Ok(reasons)
    }

    async fn explain_instant(
        &self,
        handles: &Arc<SessionHandles>,
        job: &JobView,
        at_ms: i64,
        now_ms: i64,
    ) -> Answer<Vec<ReasonView>> {
        let rows = self.ledger_at(handles, job.job_id, at_ms).await?;
        let (next, removed) = match super::jobs::as_stored(job).filter(|def| def.calendar.is_some()) {
            Some(def) => self.calendar_instant(handles, &def, at_ms).await?,
            None => instant_by_spec(job, at_ms, now_ms),
        };
        // What comes behind it in the ledger: nothing as long as it is undecided.
        let later = handles.views.ledger(job.job_id, at_ms, i64::MAX, 1).await.map_err(|e| unavailable(&e))?;
        let covering = rows.iter().find(|row| row.from_ms < at_ms && at_ms <= row.to_ms);
        let facts = InstantFacts {
            job,
            at_ms,
            is_decided: !later.is_empty(),
            entries: entries(&rows, at_ms),
            version: covering.map(|row| row.version),
            next,
            removed: removed.filter(|removed| removed.logical_time.ms() == at_ms),
        };
        Ok(job::instant(&facts))
    }

    async fn pauses(&self, handles: &SessionHandles, tenant: &str) -> Answer<Pauses> {
        let (of_tenant, system) = self.pauses_of(tenant).await?;
        let by = if of_tenant {
            let query = AuditQuery {
                tenant: Some(tenant.to_owned()),
                operation: Some(TenantPause::NAME.to_owned()),
                outcome: Some(DONE.to_owned()),
                ..AuditQuery::all()
            };
            self.caller_of(handles, query, |_| true).await?
        } else {
            None
        };
        Ok(Pauses { tenant: of_tenant, system, by })
    }

    /// Who paused a job: by itself, or by an apply of a manifest that says so.
    async fn paused_job(&self, handles: &SessionHandles, job: JobId) -> Answer<Option<HolderView>> {
        let query = AuditQuery { job: Some(job), outcome: Some(DONE.to_owned()), ..AuditQuery::all() };
        self.caller_of(handles, query, |record| [JobPause::NAME, JobApply::NAME].contains(&&*record.operation)).await
    }

    /// The caller of the newest record that fits. None: an earlier release did not record it, or it is not kept any more.
    async fn caller_of(
        &self,
        handles: &SessionHandles,
        query: AuditQuery,
        fits: impl Fn(&AuditRecord) -> bool,
    ) -> Answer<Option<HolderView>> {
        // The pause may have been answered before the read model shows who asked for it.
        handles.client.projector.shows_all().await;
        let page = handles.views.audit(query, None, PAUSE_LOOKS).await.map_err(|e| unavailable(&e))?;
        Ok(page.items.iter().find(|record| fits(record)).map(|record| HolderView {
            name: record.origin.who.as_ref().map(ToString::to_string),
            since: Some(Timestamp(record.at_ms)),
            reason: record.reason.as_ref().map(ToString::to_string),
            ..HolderView::new(HolderKind::Caller)
        }))
    }

    async fn open_runs_of(&self, handles: &SessionHandles, job: JobId) -> Answer<Vec<RunView>> {
        let call = ShardCall::OpenRuns(job);
        let mut runs: Vec<RunView> = ask(&handles.client, job.shard(handles.identity.shards), call).await?;
        runs.retain(|run| !run.state.is_final());
        Ok(runs)
    }

    /// None: it has ended meanwhile, and its graph is not kept.
    async fn nodes_of(&self, run: RunId) -> Answer<Option<DagRunView>> {
        match self.dag_nodes(run, None).await {
            Ok(nodes) => Ok(Some(nodes)),
            Err(error) if error.known() == ErrorCode::IllegalState => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn ledger_at(&self, handles: &SessionHandles, job: JobId, at_ms: i64) -> Answer<Vec<LedgerRow>> {
        handles.client.projector.shows_all().await;
        let rows = handles.views.ledger(job, at_ms.saturating_sub(1), at_ms, INTERVALS).await;
        rows.map_err(|e| unavailable(&e))
    }
}

/// Some runs of a tenant that have a permit and a slot of such an executor. The run of a DAG has neither.
async fn running_of(
    handles: &Arc<SessionHandles>,
    tenant: &str,
    has_executor: impl Fn(&str) -> bool,
) -> Answer<Vec<RunView>> {
    let states = [RunState::Running, RunState::SuspectedLost];
    let mut runs = some_open_runs(handles, tenant, &states, HOLDER_LOOKS).await?;
    runs.retain(|run| run.executor_id.as_deref().is_some_and(&has_executor));
    runs.truncate(HOLDERS_NAMED);
    Ok(runs)
}

/// Entries of the ledger that are of this instant, or of a stretch around it.
fn entries(rows: &[LedgerRow], at_ms: i64) -> Vec<LedgerEntryView> {
    let of_instant = rows.iter().flat_map(|row| &row.entries).filter(|e| (e.first_ms..=e.last_ms).contains(&at_ms));
    of_instant.map(LedgerEntryView::from).collect()
}

/// None: it does not exist (any more).
fn found<T>(answer: Answer<T>) -> Answer<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.known() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first instant at or after one, and what takes that one away.
fn instant_by_spec(job: &JobView, at_ms: i64, now_ms: i64) -> (Option<Timestamp>, Option<LedgerEntryView>) {
    let body = PreviewBody {
        trigger: job.spec.trigger.clone(),
        windows: job.spec.windows.clone(),
        blackouts: job.spec.blackouts.clone(),
        after: Some(Timestamp(at_ms.saturating_sub(1))),
        count: Some(1),
    };
    // A schedule that has no instant left is none that cannot be read.
    let preview = super::jobs::preview(body, now_ms).ok();
    let next = preview.as_ref().and_then(|preview| preview.next.first().copied());
    (next, preview.and_then(|preview| preview.removed.into_iter().next()))
}
