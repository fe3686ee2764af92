//! What a shard holds of tenants: limits in a tenant's home shard, pauses in every shard.

use super::{Shard, lending::remind_all, load::tell_of_pause};
use crate::{
    calls::{Port, TenantUse},
    messages::{PoolMsg, ReplyTo, ShardMsg},
};
use campanile_core::job::Reply;
use campanile_schema::{
    event::{Event, PauseScope},
    ids::JobId,
    job::JobStatus,
    stored::TenantRecord,
};
use ractor::ActorRef;

impl Shard {
    pub(super) fn set_tenant(&mut self, myself: &ActorRef<ShardMsg>, mut tenant: TenantRecord, port: Port<()>) {
        tenant.version = self.state.tenants.get(&tenant.tenant).map_or(0, |t| t.version) + 1;
        let event = Event::TenantSet { tenant: tenant.clone() };
        self.append(myself, vec![event], Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        let directory = self.directory.clone();
        self.when_durable(move || {
            remind_all(&directory, &tenant);
            directory.to_pool(PoolMsg::SetQuota(tenant));
            port.send(Ok(()));
        });
    }

    pub(super) fn set_pause(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        scope: PauseScope,
        paused: bool,
        version: u64,
        port: Port<()>,
    ) {
        let event = Event::PauseSet { scope: scope.clone(), paused, version };
        self.append(myself, vec![event], Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        // An older call that came later changes nothing.
        let paused = self.state.pauses.get(&scope).is_some_and(|(paused, _)| *paused);
        let directory = self.directory.clone();
        self.when_durable(move || {
            tell_of_pause(&directory, &scope, paused);
            port.send(Ok(()));
        });
    }

    /// Drops what the shard holds of a tenant, if anything. Runs that it lends to sessions stay counted until they are given back.
    pub(super) fn delete_tenant(&mut self, myself: &ActorRef<ShardMsg>, tenant: String, port: Port<()>) {
        let scope = PauseScope::Tenant(tenant.clone());
        let mut events = Vec::new();
        let limited = self.state.tenants.contains_key(&tenant);
        if limited {
            events.push(Event::TenantDeleted { tenant: tenant.clone() });
        }
        if let Some((true, version)) = self.state.pauses.get(&scope) {
            // What was decided before, and comes late, stays older than this.
            let version = (version + 1).max(self.directory.time.now_us().max(0) as u64);
            events.push(Event::PauseSet { scope: scope.clone(), paused: false, version });
        }
        if !events.is_empty() {
            self.append(myself, events, Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        }
        let directory = self.directory.clone();
        self.when_durable(move || {
            if limited {
                let none = TenantRecord { tenant, ..TenantRecord::default() };
                remind_all(&directory, &none);
                directory.to_pool(PoolMsg::SetQuota(none));
            }
            tell_of_pause(&directory, &scope, false);
            port.send(Ok(()));
        });
    }

    /// What the shard has of a tenant, counted now: the gauges do not know runs that wait for a retry or for a person.
    pub(super) fn tenant_use(&mut self, tenant: &str, port: Port<TenantUse>) {
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        let mut found = TenantUse::default();
        for job in ids.into_iter().filter_map(|id| self.materialize(id)).filter(|job| job.def.tenant == tenant) {
            found.jobs += u64::from(job.hot.status != JobStatus::Deleted);
            found.open_runs += job.hot.runs.len() as u64;
        }
        self.when_durable(move || port.send(Ok(found)));
    }
}
