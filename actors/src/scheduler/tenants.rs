//! Calls about tenants, pools and the node; pauses of many.

use super::Scheduler;
use crate::{
    calls::{ShardCall, TenantFacts, ask, gone},
    lending::Counts,
    maintenance,
    messages::{Answer, PoolMsg},
    quota::home_of,
};
use campanile_core::{ownership::rows::ShardRow, spec};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    event::PauseScope,
    ids::{SessionId, ShardId},
    stored::TenantRecord,
    time::Timestamp,
    view::{ExecutorView, NodeView, PoolView, RunView, TenantBody, TenantView},
};
use std::{collections::BTreeSet, sync::atomic::Ordering};
use tokio::sync::oneshot;

/// What a node of a cluster knows of its shards.
pub struct Rows {
    pub rows: Vec<(ShardId, ShardRow)>,
    /// Sessions that were over by then.
    pub over: Vec<SessionId>,
    /// Shards that this node serves.
    pub served: Vec<ShardId>,
    /// Its hand-overs that have begun, with their successors.
    pub leaving: Vec<(ShardId, SessionId)>,
    /// Of the cluster.
    pub shards: u16,
}

impl Scheduler {
    pub async fn tenant(&self, tenant: &str) -> Answer<TenantView> {
        let directory = self.directory()?;
        spec::check_tenant("tenantId", tenant)?;
        let shard = home_of(tenant, directory.shards);
        let TenantFacts { limits, paused, counts } =
            ask(&directory, shard, ShardCall::GetTenant(tenant.to_owned())).await?;
        let counted = counts.is_some_and(|counts| counts != Counts::default());
        let known = limits.is_some() || counted || directory.tenants.names().iter().any(|t| t == tenant);
        if !known {
            return Err(super::no_such("tenant", format!("'{tenant}'")));
        }
        let record = limits.unwrap_or_default();
        let gauge = directory.gauge(tenant);
        let count = |n: &std::sync::atomic::AtomicI64| n.load(Ordering::Relaxed).max(0) as u64;
        let here = || Counts {
            jobs: count(&gauge.jobs),
            running: count(&gauge.running),
            waiting: count(&gauge.waiting),
            wanted: 0,
        };
        let Counts { jobs, running, waiting, .. } = counts.unwrap_or_else(here);
        Ok(TenantView {
            tenant_id: tenant.to_owned(),
            quota: TenantBody {
                max_concurrent_runs: record.max_concurrent_runs,
                max_triggers_per_sec: record.max_triggers_per_sec,
                max_jobs: record.max_jobs,
                max_queued_runs: record.max_queued_runs,
            },
            version: record.version,
            paused,
            jobs,
            running,
            waiting,
        })
    }

    pub async fn tenants(&self) -> Answer<Vec<TenantView>> {
        let directory = self.directory()?;
        let mut names: BTreeSet<String> = directory.tenants.names().into_iter().collect();
        if directory.membership.is_some() {
            // Some may be known on other nodes only.
            for shard in 0..directory.shards {
                names.extend(ask::<Vec<String>>(&directory, ShardId(shard), ShardCall::Tenants).await?);
            }
        }
        let mut views = Vec::with_capacity(names.len());
        for tenant in names {
            views.push(self.tenant(&tenant).await?);
        }
        Ok(views)
    }

    pub async fn set_tenant(&self, tenant: &str, quota: TenantBody) -> Answer<TenantView> {
        spec::check_tenant("tenantId", tenant)?;
        let rate = quota.max_triggers_per_sec;
        if !rate.is_finite() || !(0.0..=1e9).contains(&rate) {
            return Err(ApiError::new(
                ErrorCode::InvalidArgument,
                "maxTriggersPerSec must be 0 (no limit) to 1000000000",
            ));
        }
        let directory = self.directory()?;
        let record = TenantRecord {
            tenant: tenant.to_owned(),
            max_concurrent_runs: quota.max_concurrent_runs,
            max_triggers_per_sec: rate,
            max_jobs: quota.max_jobs,
            max_queued_runs: quota.max_queued_runs,
            version: 0,
        };
        ask::<()>(&directory, home_of(tenant, directory.shards), ShardCall::SetTenant(record)).await?;
        self.tenant(tenant).await
    }

    /// `tenant` None = the whole system. Answered when every shard holds it.
    pub async fn set_paused(&self, tenant: Option<&str>, paused: bool, _reason: Option<String>) -> Answer<()> {
        let directory = self.directory()?;
        let scope = match tenant {
            Some(tenant) => {
                self.tenant(tenant).await?;
                PauseScope::Tenant(tenant.to_owned())
            }
            None => PauseScope::System,
        };
        // Rises with time, also over restarts and owners.
        let version = directory.time.now_us().max(0) as u64;
        for shard in 0..directory.shards {
            let scope = scope.clone();
            ask::<()>(&directory, ShardId(shard), ShardCall::SetPause { scope, paused, version }).await?;
        }
        directory.tick_quotas();
        Ok(())
    }

    pub async fn executors(&self) -> Answer<Vec<ExecutorView>> {
        let directory = self.directory()?;
        let (port, answer) = oneshot::channel();
        directory.to_pool(PoolMsg::Executors(port));
        let mut views = directory.ended.or_answer(answer).await.ok_or_else(gone)?;
        views.sort_by(|a, b| (&a.executor_id, a.session).cmp(&(&b.executor_id, b.session)));
        Ok(views)
    }

    pub async fn pools(&self) -> Answer<Vec<PoolView>> {
        let directory = self.directory()?;
        let (port, answer) = oneshot::channel();
        directory.to_pool(PoolMsg::Pools(port));
        directory.ended.or_answer(answer).await.ok_or_else(gone)
    }

    /// Why a queued run waits: first its tenant's permits, then the pool.
    pub(super) async fn why_waiting(&self, run: &RunView) -> Option<String> {
        let directory = self.directory().ok()?;
        let pool = self.job(run.job_id).await.ok()?.spec.executor_selector;
        let (id, tenant) = (run.run_id, run.tenant_id.clone());
        let call = ShardCall::WhyWaiting { run: id, tenant, pool };
        ask::<Option<String>>(&directory, id.shard(directory.shards), call).await.ok().flatten()
    }

    /// The cluster's shards as this node read them last. Refused without a session, and on a node that is alone.
    pub fn rows(&self) -> Answer<Rows> {
        let directory = self.directory()?;
        let Some(membership) = &directory.membership else {
            return Err(ApiError::new(ErrorCode::IllegalState, "this node is alone: there is no cluster"));
        };
        let (rows, over) = membership.owner.look_at_rows(|rows, over| (rows.to_vec(), over.to_vec()));
        let served = directory.epochs().into_iter().map(|(shard, _)| shard).collect();
        Ok(Rows { rows, over, served, leaving: membership.owner.leaving(), shards: directory.shards })
    }

    pub async fn node(&self) -> Answer<NodeView> {
        let directory = self.directory()?;
        let facts = maintenance::facts(&directory).await;
        let reasons = self.not_ready_reasons();
        Ok(NodeView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster_id: directory.cluster_id.0,
            shards: directory.shards,
            epoch: directory.session.0,
            tzdb: directory.tzdb.to_owned(),
            ready: reasons.is_empty(),
            not_ready_reasons: reasons,
            jobs: facts.iter().map(|f| f.jobs).sum(),
            open_runs: facts.iter().map(|f| f.open_runs).sum(),
            executors: self.executors().await?.len() as u64,
            now: Timestamp(directory.time.now_ms()),
            files: None,
        })
    }
}
