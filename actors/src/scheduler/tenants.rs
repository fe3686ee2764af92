//! Calls about tenants, pools and the node; pauses of many.

use super::{Scheduler, changed::read_changed};
use crate::{
    ask::ask,
    call_error::CallError,
    calls::{ShardCall, TenantFacts, TenantUse},
    fan_out::{ask_all, ask_each},
    handles::SessionHandles,
    lending::Counts,
    maintenance,
    messages::PoolMsg,
    pauses::pause_home,
    tenants::home_of,
};
use campanile_core::{ownership::rows::ShardRow, spec};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    event::PauseScope,
    format::MESSAGES_FORMAT,
    ids::{SessionId, ShardId},
    stored::{TenantRecord, target_of},
    time::Timestamp,
    view::{ExecutorView, NodeView, PoolView, RunView, Spread, TenantBody, TenantView},
};
use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};
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
        self.tenant_of(tenant, true).await
    }

    /// `ask_others`: before it is called absent, whether other nodes have jobs or runs of it. While its home shard moves, whoever serves it
    /// next has not yet been told of them.
    async fn tenant_of(&self, tenant: &str, ask_others: bool) -> Answer<TenantView> {
        let handles = self.handles()?;
        spec::check_tenant("tenantId", tenant)?;
        let shard = home_of(tenant, handles.identity.shards);
        let facts: TenantFacts = ask(&handles.client, shard, ShardCall::GetTenant(tenant.to_owned())).await?;
        let paused_itself = paused_itself(&handles, &facts, tenant);
        let TenantFacts { limits, paused, counts, .. } = facts;
        let here = handles.tenants.counts(tenant);
        // By what there is of it now, and not by what this node has heard of since its start: all nodes say the same.
        let counted = here != Counts::default() || counts.is_some_and(|counts| counts != Counts::default());
        if !(limits.is_some() || paused_itself || counted || (ask_others && is_used(&handles, tenant).await?)) {
            return Err(super::no_such("tenant", format!("'{tenant}'")));
        }
        let record = limits.unwrap_or_default();
        let Counts { jobs, running, waiting, .. } = counts.unwrap_or(here);
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
        let handles = self.handles()?;
        let mut names: BTreeSet<String> = handles.tenants.names().into_iter().collect();
        if !handles.shards.is_alone() {
            // Some may be known on other nodes only.
            let shards = (0..handles.identity.shards).map(ShardId);
            names.extend(
                ask_all::<Vec<String>>(&handles.client, shards, &ShardCall::Tenants).await?.into_iter().flatten(),
            );
        }
        names.retain(|name| target_of(name).is_none());
        let mut views = Vec::with_capacity(names.len());
        for tenant in names {
            match self.tenant_of(&tenant, false).await {
                Ok(view) => views.push(view),
                // This node has heard of it; nothing of it is left.
                Err(error) if error.known() == ErrorCode::NotFound => (),
                Err(error) => return Err(error),
            }
        }
        Ok(views)
    }

    /// A tenant without jobs and open runs loses its limits and its pause, as if they had never been set; its history stays. A job
    /// that is created meanwhile has the limits of a tenant without any.
    ///
    /// # Errors
    /// There are jobs or open runs: how many of each is in the message and its detail.
    pub async fn delete_tenant(&self, tenant: &str) -> Answer<()> {
        // Also what is known only by its runs, such as those that wait for a person, is refused and not absent.
        let absent = self.tenant(tenant).await.err();
        if let Some(error) = absent.as_ref().filter(|error| error.known() != ErrorCode::NotFound) {
            return Err(error.clone());
        }
        let handles = self.handles()?;
        let all = || (0..handles.identity.shards).map(ShardId);
        let uses: Vec<TenantUse> = ask_all(&handles.client, all(), &ShardCall::TenantUse(tenant.to_owned())).await?;
        let jobs: u64 = uses.iter().map(|of_shard| of_shard.jobs).sum();
        let open_runs: u64 = uses.iter().map(|of_shard| of_shard.open_runs).sum();
        if jobs > 0 || open_runs > 0 {
            let message = format!(
                "the tenant '{tenant}' has {jobs} jobs and {open_runs} open runs: delete its jobs, and cancel its runs or wait until they have ended"
            );
            let detail = serde_json::json!({"jobs": jobs, "openRuns": open_runs});
            return Err(ApiError::new(ErrorCode::IllegalState, message).with_detail(detail));
        }
        if let Some(error) = absent {
            return Err(error);
        }
        // Nodes of an earlier release have none, and do not know the question.
        let knows_calendars = handles.in_use.event() >= MESSAGES_FORMAT;
        let calendars = if knows_calendars { self.calendars(tenant).await?.len() } else { 0 };
        if calendars > 0 {
            let message = format!("the tenant '{tenant}' has {calendars} calendars: delete them first");
            return Err(ApiError::new(ErrorCode::IllegalState, message));
        }
        self.delete_targets(&handles, tenant).await?;
        // The home shard last: as long as it holds anything the tenant is known, so what a crash leaves half done can be done again.
        let home = home_of(tenant, handles.identity.shards);
        let facts: TenantFacts = ask(&handles.client, home, ShardCall::GetTenant(tenant.to_owned())).await?;
        if paused_itself(&handles, &facts, tenant) {
            // Its end is a part of the deletion, which has the record.
            let unrecorded = Self { record: None, ..self.clone() };
            unrecorded.change_pause(&handles, PauseScope::Tenant(tenant.to_owned()), false).await?;
        }
        let delete = ShardCall::DeleteTenant(tenant.to_owned());
        ask_all::<()>(&handles.client, all().filter(|shard| *shard != home), &delete).await?;
        ask::<()>(&handles.client, home, self.with_record(&handles, delete)).await?;
        handles.pool.tick_quotas();
        Ok(())
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
        let handles = self.handles()?;
        let record = TenantRecord {
            tenant: tenant.to_owned(),
            max_concurrent_runs: quota.max_concurrent_runs,
            max_triggers_per_sec: rate,
            max_jobs: quota.max_jobs,
            max_queued_runs: quota.max_queued_runs,
            ..TenantRecord::default()
        };
        let set = self.with_record(&handles, ShardCall::SetTenant(record));
        ask::<()>(&handles.client, home_of(tenant, handles.identity.shards), set).await?;
        read_changed(|| self.tenant(tenant)).await
    }

    /// `tenant` None = the whole system. With an answer the change is kept and is the newest one; in it are the shards that were not
    /// heard to hold it in time, and that come to hold it without another call.
    pub async fn set_paused(&self, tenant: Option<&str>, paused: bool, reason: Option<String>) -> Answer<Spread> {
        let handles = self.handles()?;
        let scope = match tenant {
            Some(tenant) => {
                self.tenant(tenant).await?;
                PauseScope::Tenant(tenant.to_owned())
            }
            None => PauseScope::System,
        };
        let spread = self.because(reason).change_pause(&handles, scope, paused).await?;
        handles.pool.tick_quotas();
        Ok(spread)
    }

    /// First in the home shard, which makes it the newest change; then everywhere.
    async fn change_pause(&self, handles: &Arc<SessionHandles>, scope: PauseScope, paused: bool) -> Answer<Spread> {
        let home = pause_home(&scope, handles.identity.shards);
        let change = self.with_record(handles, ShardCall::ChangePause { scope: scope.clone(), paused });
        let version = match ask(&handles.client, home, change).await {
            Err(CallError::UnknownCall) => {
                // As its release does it, which knows no better.
                let version = handles.identity.time.now_us().max(0) as u64;
                ask::<()>(&handles.client, home, ShardCall::SetPause { scope: scope.clone(), paused, version }).await?;
                version
            }
            said => said?,
        };
        let set = ShardCall::SetPause { scope, paused, version };
        let others = (0..handles.identity.shards).map(ShardId).filter(|shard| *shard != home);
        let answers = ask_each::<()>(&handles.client, others.map(|shard| (shard, set.clone()))).await;
        let outstanding = answers.into_iter().filter(|(_, answer)| answer.is_err()).map(|(shard, _)| shard.0);
        Ok(Spread { outstanding: outstanding.collect() })
    }

    /// Executors of this node.
    pub async fn executors(&self) -> Answer<Vec<ExecutorView>> {
        let handles = self.handles()?;
        let (port, answer) = oneshot::channel();
        handles.pool.send(PoolMsg::Executors(port));
        let mut views = handles.health.ended.or_answer(answer).await.ok_or(CallError::Unanswered)?;
        views.sort_by(|a, b| (&a.executor_id, a.session).cmp(&(&b.executor_id, b.session)));
        Ok(views)
    }

    /// Pools of this node.
    pub async fn pools(&self) -> Answer<Vec<PoolView>> {
        let handles = self.handles()?;
        let (port, answer) = oneshot::channel();
        handles.pool.send(PoolMsg::Pools(port));
        Ok(handles.health.ended.or_answer(answer).await.ok_or(CallError::Unanswered)?)
    }

    /// Whether the tenant itself is paused, and whether the whole system is.
    pub(super) async fn pauses_of(&self, tenant: &str) -> Answer<(bool, bool)> {
        let handles = self.handles()?;
        let home = home_of(tenant, handles.identity.shards);
        let facts: TenantFacts = ask(&handles.client, home, ShardCall::GetTenant(tenant.to_owned())).await?;
        let itself = paused_itself(&handles, &facts, tenant);
        let system = handles.tenants.system_paused.load(Ordering::Relaxed) || (facts.paused && !itself);
        Ok((itself, system))
    }

    /// Why a queued run waits: first its tenant's permits, then the pool.
    pub(super) async fn why_waiting(&self, run: &RunView) -> Option<String> {
        let handles = self.handles().ok()?;
        let pool = self.job(run.job_id).await.ok()?.spec.executor_selector;
        let (id, tenant) = (run.run_id, run.tenant_id.clone());
        let call = ShardCall::WhyWaiting { run: id, tenant, pool };
        ask::<Option<String>>(&handles.client, id.shard(handles.identity.shards), call).await.ok().flatten()
    }

    /// The cluster's shards as this node read them last. Refused without a session, and on a node that is alone.
    pub fn rows(&self) -> Answer<Rows> {
        let handles = self.handles()?;
        let Some(membership) = handles.shards.membership() else {
            return Err(ApiError::new(ErrorCode::IllegalState, "this node is alone: there is no cluster"));
        };
        let (rows, over) = membership.owner.look_at_rows(|rows, over| (rows.to_vec(), over.to_vec()));
        let served = handles.shards.epochs().into_iter().map(|(shard, _)| shard).collect();
        Ok(Rows { rows, over, served, leaving: membership.owner.leaving(), shards: handles.identity.shards })
    }

    /// Facts of this node alone.
    pub async fn node(&self) -> Answer<NodeView> {
        let handles = self.handles()?;
        let facts = maintenance::facts(&handles.client).await;
        let reasons = self.not_ready_reasons();
        Ok(NodeView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster_id: handles.identity.cluster_id.0,
            shards: handles.identity.shards,
            epoch: handles.identity.session.0,
            tzdb: handles.identity.tzdb.to_owned(),
            ready: reasons.is_empty(),
            not_ready_reasons: reasons,
            jobs: facts.iter().map(|f| f.jobs).sum(),
            open_runs: facts.iter().map(|f| f.open_runs).sum(),
            executors: self.executors().await?.len() as u64,
            now: Timestamp(handles.identity.time.now_ms()),
            degradation: handles.client.projector.degradation.level(),
            files: None,
            nodes: Vec::new(),
            missing: Vec::new(),
        })
    }
}

/// Whether any node of a cluster has jobs or runs of a tenant, by its counters: no shard looks through its jobs for it.
async fn is_used(handles: &Arc<SessionHandles>, tenant: &str) -> Answer<bool> {
    if handles.shards.is_alone() {
        return Ok(false);
    }
    let all = (0..handles.identity.shards).map(ShardId);
    let facts: Vec<TenantFacts> = ask_all(&handles.client, all, &ShardCall::GetTenant(tenant.to_owned())).await?;
    Ok(facts.iter().filter_map(|facts| facts.counts).any(|counts| counts != Counts::default()))
}

/// Whether a tenant is paused, and not only with the whole system: also in some shards only, because its call did not come to its end.
fn paused_itself(handles: &SessionHandles, facts: &TenantFacts, tenant: &str) -> bool {
    let here = handles.tenants.known(tenant);
    facts.paused_itself || here.is_some_and(|gauge| gauge.paused.load(Ordering::Relaxed))
}
