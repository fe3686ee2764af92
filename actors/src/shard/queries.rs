//! Reads of a shard. Answers depend on earlier decisions, so they wait until those are durable.

use super::{Shard, append::not_found};
use crate::{
    call_error::CallError,
    calls::{Responder, TenantFacts},
    filter::JobMatcher,
    lending::Counts,
    messages::{PoolMsg, ShardFacts},
};
use campanile_schema::{
    event::PauseScope,
    frame::encode,
    ids::{JobId, RunId},
    job::{JobStatus, JobView},
    limits,
    stored::Sealed,
    view::{JobFilter, RunView},
};
use tokio::sync::oneshot;

impl Shard {
    fn visible(&self, id: JobId) -> Option<JobView> {
        self.materialize(id).filter(|j| j.hot.status != JobStatus::Deleted).map(|j| j.view())
    }

    pub(super) fn get_job(&mut self, id: JobId, responder: Responder<Box<JobView>>) {
        let answer = self.visible(id).map(Box::new).ok_or_else(|| not_found("job"));
        self.when_durable(move || {
            responder.send(answer);
        });
    }

    pub(super) fn get_job_by_name(&mut self, tenant: &str, name: &str, responder: Responder<Box<JobView>>) {
        let answer =
            self.find_name(tenant, name).and_then(|id| self.visible(id)).map(Box::new).ok_or_else(|| not_found("job"));
        self.when_durable(move || {
            responder.send(answer);
        });
    }

    pub(super) fn get_tenant_of_job(&mut self, id: JobId, responder: Responder<String>) {
        let answer = self.materialize(id).map(|j| j.def.tenant.to_string()).ok_or_else(|| not_found("job"));
        responder.send(answer);
    }

    pub(super) fn get_sealed(&mut self, id: JobId, responder: Responder<Option<Sealed>>) {
        let job = self.materialize(id).filter(|job| job.hot.status != JobStatus::Deleted);
        let answer = job.map(|job| job.def.secrets.clone()).ok_or_else(|| not_found("job"));
        self.when_durable(move || {
            responder.send(answer);
        });
    }

    pub(super) fn get_tenant(&mut self, tenant: &str, responder: Responder<TenantFacts>) {
        let limits = self.state.tenants.get(tenant).cloned();
        let paused = self.state.paused(tenant).is_some();
        let scope = PauseScope::Tenant(tenant.to_owned());
        let paused_itself = self.state.pauses.get(&scope).is_some_and(|(paused, _)| *paused);
        // A shard that has heard of nothing, because it is not the tenant's home or has just become it, tells what its node has.
        let counts = self.deps.shards.membership().map(|_| match self.session_counts.total(tenant, None) {
            nothing if nothing == Counts::default() => self.deps.tenants.counts(tenant),
            heard => heard,
        });
        self.when_durable(move || {
            responder.send(Ok(TenantFacts { limits, paused, counts, paused_itself }));
        });
    }

    /// The pool knows.
    pub(super) fn why_waiting(&self, run: RunId, tenant: String, pool: String, responder: Responder<Option<String>>) {
        let (to_here, why) = oneshot::channel();
        self.deps.pool.send(PoolMsg::WhyWaiting { run, tenant, pool, port: to_here });
        tokio::spawn(async move { responder.send_call(why.await.map_err(|_| CallError::Unanswered)) });
    }

    /// None: not here (any more); the view may have it.
    pub(super) fn get_run(&mut self, run: RunId, responder: Responder<Option<Box<RunView>>>) {
        let open = self.open_runs.get(&run).copied().and_then(|job| self.materialize(job));
        let view = open
            .as_ref()
            .and_then(|job| job.run(run).map(|r| job.run_view(r)))
            .or_else(|| self.recent.get(&run).map(|(_, record)| RunView::from(&**record)));
        self.when_durable(move || {
            responder.send(Ok(view.map(Box::new)));
        });
    }

    /// Runs of a job that the view does not show: open ones, and ended ones on their way.
    pub(super) fn get_open_runs(&mut self, id: JobId, responder: Responder<Vec<RunView>>) {
        let Some(job) = self.materialize(id) else {
            responder.send(Err(not_found("job")));
            return;
        };
        let mut runs: Vec<RunView> = job.hot.runs.iter().map(|r| job.run_view(r)).collect();
        runs.extend(self.recent.values().map(|(_, record)| &**record).filter(|r| r.job == id).map(RunView::from));
        self.when_durable(move || {
            responder.send(Ok(runs));
        });
    }

    pub(super) fn list_jobs(
        &mut self,
        filter: &JobFilter,
        after: u64,
        limit: usize,
        responder: Responder<Vec<JobView>>,
    ) {
        let matcher = JobMatcher::lenient(filter);
        let first = self.order.partition_point(|id| id.0 <= after);
        let listed = self.order[first..].iter().filter_map(|id| self.visible(*id)).filter(|view| matcher.matches(view));
        let (mut views, mut bytes): (Vec<JobView>, usize) = (Vec::new(), 0);
        for view in listed.take(limit) {
            bytes += encode(&view).len();
            if bytes > limits::JOBS_ANSWER_BYTES && !views.is_empty() {
                break;
            }
            views.push(view);
        }
        self.when_durable(move || {
            responder.send(Ok(views));
        });
    }

    pub(super) fn facts(&self) -> ShardFacts {
        ShardFacts {
            shard: self.id,
            jobs: self.names.len() as u64 + self.name_collisions.len() as u64,
            open_runs: self.open_runs.len() as u64,
            active: self.active.len() as u64,
            wheel: self.wheel.len() as u64,
            needs_after: self.needs_after(),
            snapshot_owed_ms: self.snapshots.owed_ms(self.deps.time.boot_ms()),
            messages: self.post.owed.outbox.len() as u64,
            given_up: self.post.owed.given_up().count() as u64,
            backfills: self.backfills.open.len() as u64,
            restored_ms: self.post.owed.outbox.head().restored_ms,
        }
    }
}
