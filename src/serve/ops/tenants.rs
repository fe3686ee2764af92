//! Tenants with their limits, the whole system, executors and pools.

use super::{Answer, Operations, access, audit, check_reason, invalid};
use campanile_schema::view::{ExecutorView, Gathered, NodeView, PoolView, ReasonBody, Spread, TenantBody, TenantView};
use campanile_security::auth::Caller;

impl Operations {
    pub async fn tenant_get(&self, caller: &Caller, tenant: String) -> Answer<TenantView> {
        access::check_tenant_name(&tenant)?;
        access::owns(caller, &tenant, "tenant", &tenant)?;
        let view = self.scheduler.tenant(&tenant).await;
        view.map_err(|error| access::same_absence(error, "tenant", &tenant))
    }

    /// Every tenant; for a tenant's credential its own.
    pub async fn tenant_list(&self, caller: &Caller) -> Answer<Vec<TenantView>> {
        let own = access::bound_to(caller)?;
        let mut tenants = self.scheduler.tenants().await?;
        tenants.retain(|tenant| own.is_none_or(|own| own == tenant.tenant_id));
        tenants.sort_by(|a, b| a.tenant_id.cmp(&b.tenant_id));
        Ok(tenants)
    }

    /// Sets every limit of a tenant (0 = none). For operators: a tenant does not set its own limits.
    pub async fn tenant_set(&self, caller: &Caller, tenant: String, quota: TenantBody) -> Answer<TenantView> {
        access::operator(caller)?;
        access::check_tenant_name(&tenant)?;
        if !quota.max_triggers_per_sec.is_finite() || quota.max_triggers_per_sec < 0.0 {
            return Err(invalid("maxTriggersPerSec: must be 0 (no limit) or more"));
        }
        let set = self.scheduler.set_tenant(&tenant, quota).await;
        audit(caller, "tenant.set", &tenant, None, &set);
        set
    }

    /// The limits and the pause of a tenant without jobs and open runs go; its history stays.
    pub async fn tenant_delete(&self, caller: &Caller, tenant: String, body: ReasonBody) -> Answer<()> {
        access::operator(caller)?;
        access::check_tenant_name(&tenant)?;
        check_reason(body.reason.as_deref())?;
        let deleted = self.scheduler.delete_tenant(&tenant).await;
        audit(caller, "tenant.delete", &tenant, body.reason.as_deref(), &deleted);
        deleted
    }

    /// For operators, like its opposite: a tenant must not undo what contains it.
    pub async fn tenant_pause(&self, caller: &Caller, tenant: String, body: ReasonBody) -> Answer<Spread> {
        self.pause(caller, "tenant.pause", Some(tenant), true, body).await
    }

    pub async fn tenant_resume(&self, caller: &Caller, tenant: String, body: ReasonBody) -> Answer<Spread> {
        self.pause(caller, "tenant.resume", Some(tenant), false, body).await
    }

    pub async fn system_pause(&self, caller: &Caller, body: ReasonBody) -> Answer<Spread> {
        self.pause(caller, "system.pause", None, true, body).await
    }

    pub async fn system_resume(&self, caller: &Caller, body: ReasonBody) -> Answer<Spread> {
        self.pause(caller, "system.resume", None, false, body).await
    }

    /// After a jump of the wall clock that halted firing: an operator says that the clock is right.
    pub async fn clock_accept(&self, caller: &Caller, body: ReasonBody) -> Answer<()> {
        access::operator(caller)?;
        check_reason(body.reason.as_deref())?;
        let accepted = self.scheduler.accept_clock();
        audit(caller, "clock.accept", &"clock", body.reason.as_deref(), &accepted);
        accepted
    }

    /// Facts of the node, with numbers of its cluster. They are about all tenants, so for operators.
    pub async fn system_info(&self, caller: &Caller) -> Answer<NodeView> {
        access::operator(caller)?;
        let facts = self.scheduler.whole_node().await?;
        Ok(NodeView { files: self.files.view(), ..facts })
    }

    /// Of all nodes of the cluster.
    pub async fn executor_list(&self, caller: &Caller) -> Answer<Gathered<ExecutorView>> {
        access::operator(caller)?;
        self.scheduler.all_executors().await
    }

    /// Of all nodes of the cluster.
    pub async fn pool_list(&self, caller: &Caller) -> Answer<Gathered<PoolView>> {
        access::operator(caller)?;
        self.scheduler.all_pools().await
    }

    async fn pause(
        &self,
        caller: &Caller,
        operation: &str,
        tenant: Option<String>,
        paused: bool,
        body: ReasonBody,
    ) -> Answer<Spread> {
        access::operator(caller)?;
        tenant.iter().try_for_each(|tenant| access::check_tenant_name(tenant))?;
        check_reason(body.reason.as_deref())?;
        let done = self.scheduler.set_paused(tenant.as_deref(), paused, body.reason.clone()).await;
        audit(caller, operation, &tenant.as_deref().unwrap_or("system"), body.reason.as_deref(), &done);
        done
    }
}
