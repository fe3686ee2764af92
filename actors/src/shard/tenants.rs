//! What a shard stores about tenants: their limits in the tenant's home shard, pauses in every shard.

use super::{Shard, lending::remind_all, load::tell_of_pause};
use crate::{
    calls::{Responder, TenantUse},
    messages::{PoolMsg, ReplyTo, ShardMsg},
    pauses::{CALLERS_TURN, Pause},
};
use campanile_core::job::Reply;
use campanile_schema::{
    channel::is_hidden,
    event::{Event, PauseScope},
    ids::JobId,
    job::JobStatus,
    stored::TenantRecord,
};
use ractor::ActorRef;

impl Shard {
    pub(super) fn set_tenant(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        mut tenant: TenantRecord,
        responder: Responder<()>,
    ) {
        tenant.version = self.state.tenants.get(&tenant.tenant).map_or(0, |t| t.version) + 1;
        let event = Event::TenantSet { tenant: tenant.clone() };
        self.append(myself, vec![event], Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        let deps = self.deps.clone();
        self.when_durable(move || {
            remind_all(&deps, &tenant);
            deps.pool.send(PoolMsg::SetQuota(tenant));
            responder.send(Ok(()));
        });
    }

    /// In the home shard of a pause: all changes of it are made here, one after the other, and each is newer than those before whatever the
    /// clocks say.
    pub(super) fn change_pause(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        scope: PauseScope,
        paused: bool,
        responder: Responder<u64>,
    ) {
        let version = self.state.next_pause(&scope, self.deps.time.now_us());
        let at_ms = Some(self.deps.time.now_ms());
        let event = Event::PauseSet { scope: scope.clone(), paused, version, at_ms };
        self.append(myself, vec![event], Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        let deps = self.deps.clone();
        self.when_durable(move || {
            let pause = Pause { scope, paused, version };
            tell_of_pause(&deps, &pause);
            deps.pauses.owe(pause, deps.identity.shards, CALLERS_TURN);
            responder.send(Ok(version));
        });
    }

    /// What is older than what is held changes nothing.
    pub(super) fn hold_pauses(&mut self, myself: &ActorRef<ShardMsg>, pauses: Vec<Pause>, responder: Responder<()>) {
        let newer = |pause: &Pause| self.state.pauses.get(&pause.scope).is_none_or(|held| pause.version > held.1);
        let newer: Vec<Pause> = pauses.into_iter().filter(newer).collect();
        if !newer.is_empty() {
            let at_ms = Some(self.deps.time.now_ms());
            let event = |pause: &Pause| {
                let Pause { scope, paused, version } = pause.clone();
                Event::PauseSet { scope, paused, version, at_ms }
            };
            let events = newer.iter().map(event).collect();
            self.append(myself, events, Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        }
        let deps = self.deps.clone();
        self.when_durable(move || {
            newer.iter().for_each(|pause| tell_of_pause(&deps, pause));
            responder.send(Ok(()));
        });
    }

    /// Drops what the shard holds of a tenant, if anything. Runs that it lends to sessions stay counted until they are given back.
    pub(super) fn delete_tenant(&mut self, myself: &ActorRef<ShardMsg>, tenant: String, responder: Responder<()>) {
        let scope = PauseScope::Tenant(tenant.clone());
        let mut events = Vec::new();
        let limited = self.state.tenants.contains_key(&tenant);
        if limited {
            events.push(Event::TenantDeleted { tenant: tenant.clone() });
        }
        // Its home shard has ended the pause already; this shard did not hear of it, or a node of an older release deletes. Not by this
        // node's clock: the next change of the pause must be newer in any case.
        let pause = self.state.pauses.get(&scope).filter(|held| held.0).map(|held| Pause {
            scope: scope.clone(),
            paused: false,
            version: held.1 + 1,
        });
        if let Some(Pause { scope, paused, version }) = pause.clone() {
            let at_ms = Some(self.deps.time.now_ms());
            events.push(Event::PauseSet { scope, paused, version, at_ms });
        }
        if !events.is_empty() || self.auditing.is_some() {
            self.append(myself, events, Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        }
        let deps = self.deps.clone();
        self.when_durable(move || {
            if limited {
                let none = TenantRecord { tenant, ..TenantRecord::default() };
                remind_all(&deps, &none);
                deps.pool.send(PoolMsg::SetQuota(none));
            }
            pause.iter().for_each(|pause| tell_of_pause(&deps, pause));
            responder.send(Ok(()));
        });
    }

    /// What the shard has of a tenant, counted now: the gauges do not know runs that wait for a retry or for a person.
    pub(super) fn tenant_use(&mut self, tenant: &str, responder: Responder<TenantUse>) {
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        let mut found = TenantUse::default();
        for job in ids.into_iter().filter_map(|id| self.materialize(id)).filter(|job| job.def.tenant == tenant) {
            // What only nodes make is shown to nobody, who could therefore not delete it first.
            found.jobs += u64::from(job.hot.status != JobStatus::Deleted && !is_hidden(&job.def.name));
            found.open_runs += job.hot.runs.len() as u64;
        }
        self.when_durable(move || responder.send(Ok(found)));
    }
}
