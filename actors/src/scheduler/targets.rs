//! Calls about targets, whose settings are kept as limits of tenants are (`quota/target.rs`).

use super::{Scheduler, changed::read_changed};
use crate::{
    ask::ask,
    calls::{ShardCall, TenantFacts},
    fan_out::ask_all,
    handles::SessionHandles,
    tenants::home_of,
};
use campanile_core::spec;
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    format::MESSAGES_FORMAT,
    ids::ShardId,
    limits::TARGETS_PER_TENANT,
    stored::{target_key, target_of},
    view::targets::{BreakerState, TargetBody, TargetView},
};
use std::{collections::BTreeSet, sync::Arc};

impl Scheduler {
    /// A target that has settings, or runs that use it or wait for it.
    pub async fn target(&self, tenant: &str, target: &str) -> Answer<TargetView> {
        self.target_of(tenant, target, false).await
    }

    async fn target_of(&self, tenant: &str, target: &str, is_set: bool) -> Answer<TargetView> {
        let handles = self.handles()?;
        spec::check_tenant("target", target)?;
        let key = target_key(tenant, target);
        let home = home_of(&key, handles.identity.shards);
        let facts: TenantFacts = ask(&handles.client, home, ShardCall::GetTenant(key.clone())).await?;
        let counts = facts.counts.unwrap_or_else(|| handles.tenants.counts(&key));
        let breaker = BreakerState::from_code(counts.breaker).unwrap_or_default();
        let in_use = counts.running + counts.waiting > 0 || breaker != BreakerState::Closed;
        if facts.limits.is_none() && (is_set || !in_use) {
            return Err(super::no_such("target", format!("'{target}' of tenant '{tenant}'")));
        }
        let record = facts.limits.unwrap_or_default();
        Ok(TargetView {
            tenant_id: tenant.to_owned(),
            target: target.to_owned(),
            settings: TargetBody::of(&record),
            version: record.version,
            breaker,
            running: counts.running,
            waiting: counts.waiting,
        })
    }

    /// The targets of a tenant that have settings, by name.
    pub async fn targets(&self, tenant: &str) -> Answer<Vec<TargetView>> {
        let handles = self.handles()?;
        let mut views = Vec::new();
        for name in names(&handles, tenant).await? {
            match self.target_of(tenant, &name, true).await {
                Ok(view) => views.push(view),
                // It is used without settings.
                Err(error) if error.known() == ErrorCode::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(views)
    }

    pub async fn set_target(&self, tenant: &str, target: &str, settings: &TargetBody) -> Answer<TargetView> {
        let handles = self.handles()?;
        spec::check_tenant("target", target)?;
        if handles.in_use.event() < MESSAGES_FORMAT {
            let why =
                "targets: not all nodes of the cluster run the release that knows them; repeat the call when they do";
            return Err(ApiError::new(ErrorCode::UpgradeUnderWay, why).retry_after(10.0));
        }
        let others = names(&handles, tenant).await?;
        if others.len() >= TARGETS_PER_TENANT && !others.contains(target) {
            let why = format!("tenant '{tenant}' has {TARGETS_PER_TENANT} targets, and not more: delete some");
            return Err(ApiError::new(ErrorCode::TenantQuota, why));
        }
        let key = target_key(tenant, target);
        let home = home_of(&key, handles.identity.shards);
        let set = self.with_record(&handles, ShardCall::SetTenant(settings.record(key)));
        ask::<()>(&handles.client, home, set).await?;
        handles.pool.tick_quotas();
        read_changed(|| self.target(tenant, target)).await
    }

    /// Forgets the settings. Jobs that name the target have the default ones from then on.
    pub async fn delete_target(&self, tenant: &str, target: &str) -> Answer<()> {
        self.target_of(tenant, target, true).await?;
        let handles = self.handles()?;
        let key = target_key(tenant, target);
        let home = home_of(&key, handles.identity.shards);
        ask::<()>(&handles.client, home, self.with_record(&handles, ShardCall::DeleteTenant(key))).await?;
        handles.pool.tick_quotas();
        Ok(())
    }

    /// All targets of a tenant that is deleted.
    pub(super) async fn delete_targets(&self, handles: &Arc<SessionHandles>, tenant: &str) -> Answer<()> {
        for name in names(handles, tenant).await? {
            let key = target_key(tenant, &name);
            let home = home_of(&key, handles.identity.shards);
            ask::<()>(&handles.client, home, ShardCall::DeleteTenant(key)).await?;
        }
        Ok(())
    }
}

/// Names of a tenant's targets that are known to the shards which keep settings.
async fn names(handles: &Arc<SessionHandles>, tenant: &str) -> Answer<BTreeSet<String>> {
    let shards = (0..handles.identity.shards).map(ShardId);
    let known = ask_all::<Vec<String>>(&handles.client, shards, &ShardCall::Tenants).await?;
    let of_tenant = known.iter().flatten().filter_map(|key| target_of(key)).filter(|(of, _)| *of == tenant);
    Ok(of_tenant.map(|(_, name)| name.to_owned()).collect())
}
