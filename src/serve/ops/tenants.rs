//! Tenants with their limits, the whole system, executors and pools.

use super::{Answer, Operations, access, invalid};
use campanile_schema::{
    operations::{
        ClockAccept, ExecutorList, Handle, PoolList, SystemInfo, SystemPause, SystemResume, TenantDelete, TenantGet,
        TenantList, TenantPause, TenantResume, TenantSet,
    },
    rpc::calls::{Listed, NoBody, TenantCall},
    view::{ExecutorView, Gathered, NodeView, PoolView, ReasonBody, Spread, TenantBody, TenantView},
};
use campanile_security::auth::Caller;

impl Handle<TenantGet> for Operations {
    async fn handle(&self, _: &Caller, request: TenantCall<NoBody>) -> Answer<TenantView> {
        let (tenant, NoBody {}) = request.parts()?;
        let view = self.scheduler.tenant(&tenant).await;
        view.map_err(|error| access::same_absence(error, "tenant", &tenant))
    }
}

/// Every tenant; for a tenant's credential its own.
impl Handle<TenantList> for Operations {
    async fn handle(&self, caller: &Caller, NoBody {}: NoBody) -> Answer<Listed<TenantView>> {
        let own = access::bound_to(caller)?;
        let mut items = self.scheduler.tenants().await?;
        items.retain(|tenant| own.is_none_or(|own| own == tenant.tenant_id));
        items.sort_by(|a, b| a.tenant_id.cmp(&b.tenant_id));
        Ok(Listed { items })
    }
}

/// Sets every limit of a tenant (0 = none). For operators: a tenant does not set its own limits.
impl Handle<TenantSet> for Operations {
    fn check(request: &TenantCall<TenantBody>) -> Answer<()> {
        let triggers = request.body.max_triggers_per_sec;
        if !triggers.is_finite() || triggers < 0.0 {
            return Err(invalid("maxTriggersPerSec: must be 0 (no limit) or more"));
        }
        Ok(())
    }

    async fn handle(&self, _: &Caller, request: TenantCall<TenantBody>) -> Answer<TenantView> {
        let (tenant, quota) = request.parts()?;
        self.scheduler.set_tenant(&tenant, quota).await
    }
}

/// The limits and the pause of a tenant without jobs and open runs go; its history stays.
impl Handle<TenantDelete> for Operations {
    async fn handle(&self, _: &Caller, request: TenantCall<ReasonBody>) -> Answer<NoBody> {
        let (tenant, _) = request.parts()?;
        self.scheduler.delete_tenant(&tenant).await.map(|()| NoBody {})
    }
}

/// For operators, like its opposite: a tenant must not undo what contains it.
impl Handle<TenantPause> for Operations {
    async fn handle(&self, _: &Caller, request: TenantCall<ReasonBody>) -> Answer<Spread> {
        let (tenant, body) = request.parts()?;
        self.scheduler.set_paused(Some(&tenant), true, body.reason).await
    }
}

impl Handle<TenantResume> for Operations {
    async fn handle(&self, _: &Caller, request: TenantCall<ReasonBody>) -> Answer<Spread> {
        let (tenant, body) = request.parts()?;
        self.scheduler.set_paused(Some(&tenant), false, body.reason).await
    }
}

impl Handle<SystemPause> for Operations {
    async fn handle(&self, _: &Caller, body: ReasonBody) -> Answer<Spread> {
        self.scheduler.set_paused(None, true, body.reason).await
    }
}

impl Handle<SystemResume> for Operations {
    async fn handle(&self, _: &Caller, body: ReasonBody) -> Answer<Spread> {
        self.scheduler.set_paused(None, false, body.reason).await
    }
}

/// After a jump of the wall clock that halted firing: an operator says that the clock is right.
impl Handle<ClockAccept> for Operations {
    async fn handle(&self, _: &Caller, _: ReasonBody) -> Answer<NoBody> {
        self.scheduler.accept_clock().map(|()| NoBody {})
    }
}

/// Facts of the node, with numbers of its cluster. They are about all tenants, so for operators.
impl Handle<SystemInfo> for Operations {
    async fn handle(&self, _: &Caller, NoBody {}: NoBody) -> Answer<NodeView> {
        let facts = self.scheduler.whole_node().await?;
        Ok(NodeView { files: self.files.view(), ..facts })
    }
}

/// Of all nodes of the cluster.
impl Handle<ExecutorList> for Operations {
    async fn handle(&self, _: &Caller, NoBody {}: NoBody) -> Answer<Gathered<ExecutorView>> {
        self.scheduler.all_executors().await
    }
}

/// Of all nodes of the cluster.
impl Handle<PoolList> for Operations {
    async fn handle(&self, _: &Caller, NoBody {}: NoBody) -> Answer<Gathered<PoolView>> {
        self.scheduler.all_pools().await
    }
}
