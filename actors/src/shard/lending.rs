//! The home shard of tenants: what it lends of their limits to the sessions of a cluster.

use super::{Shard, ShardDeps};
use crate::{
    ask::{ShardClient, ask},
    calls::{Responder, ShardCall},
    lending::{TenantReport, TenantShare},
    messages::{PoolMsg, ReplyTo, ShardMsg},
};
use campanile_core::job::Reply;
use campanile_schema::{
    event::Event,
    ids::{SessionId, ShardId},
    loan::LoanEvent,
    stored::TenantRecord,
};
use ractor::ActorRef;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What cannot be divided goes to the next session after so long, ms.
const TURN_MS: i64 = 1_000;

impl Shard {
    /// A session says what it has and wants. Answered when what is lent to it is durable.
    pub(super) fn lend(
        &mut self,
        myself: &ActorRef<ShardMsg>,
        session: SessionId,
        reports: Vec<TenantReport>,
        responder: Responder<Vec<TenantShare>>,
    ) {
        let now = self.deps.time.boot_ms();
        let mut shares = Vec::with_capacity(reports.len());
        for TenantReport { tenant, counts, request } in reports {
            self.session_counts.note(&tenant, session, counts, now);
            let limits = self.state.tenants.get(&tenant).cloned();
            let limit = limits.as_ref().map_or(0, |record| record.max_concurrent_runs);
            if let Some(request) = request {
                let loans = self.state.loans.entry(tenant.clone()).or_default();
                loans.limit = limit;
                let changes = loans.decide(&request);
                self.lent(myself, tenant.clone(), changes);
            }
            let rate = limits.as_ref().map_or(0.0, |record| record.max_triggers_per_sec);
            shares.push(TenantShare {
                level: self.state.loans.get(&tenant).map(|loans| loans.level(session)).unwrap_or_default(),
                share: self.session_counts.share(&tenant, session, limit, (now / TURN_MS).unsigned_abs()),
                rate: self.session_counts.rate(&tenant, session, rate),
                elsewhere: self.session_counts.total(&tenant, Some(session)),
                limits,
                tenant,
            });
        }
        self.when_durable(move || responder.send(Ok(shares)));
    }

    fn lent(&mut self, myself: &ActorRef<ShardMsg>, tenant: String, changes: Vec<LoanEvent>) {
        if !changes.is_empty() {
            self.append(myself, vec![Event::Lent { tenant, changes }], Vec::new(), ReplyTo::Nobody, Ok(Reply::Done));
        }
    }

    /// Once a second: frees the permits of sessions that are over, when the takers of their shards have counted what runs.
    pub(super) fn look_after_loans(&mut self, myself: &ActorRef<ShardMsg>) {
        self.session_counts.forget(self.deps.time.boot_ms());
        let deps = self.deps.clone();
        let Some(membership) = deps.shards.membership().filter(|_| !self.stopping) else { return };
        let borrowers = self.state.loans.values().flat_map(|loans| loans.sessions()).collect();
        membership.owner.lends_to(self.id, borrowers);
        if self.state.loans.is_empty() {
            return;
        }
        let (freed, uncounted) = membership.owner.look_at_rows(|rows, over| {
            let mut freed = Vec::new();
            let mut uncounted: BTreeMap<(SessionId, String), ShardId> = BTreeMap::new();
            for (tenant, loans) in &self.state.loans {
                let events = loans.free(over, rows);
                if events.is_empty() && loans.sessions().any(|session| over.contains(&session)) {
                    let owners = loans.uncounted(rows).filter(|(_, owner)| !over.contains(owner));
                    uncounted.extend(owners.map(|(shard, owner)| ((owner, tenant.clone()), shard)));
                }
                freed.push((tenant.clone(), events));
            }
            (freed, uncounted)
        });
        for (tenant, events) in freed {
            self.lent(myself, tenant, events);
        }
        for ((_, tenant), shard) in uncounted {
            // It may not know the tenant at all.
            remind(&deps.client, shard, self.limits_of(&tenant));
        }
    }

    fn limits_of(&self, tenant: &str) -> TenantRecord {
        let none = || TenantRecord { tenant: tenant.to_owned(), ..TenantRecord::default() };
        self.state.tenants.get(tenant).cloned().unwrap_or_else(none)
    }

    /// From a tenant's home shard.
    pub(super) fn reminded(&self, limits: TenantRecord, responder: Responder<()>) {
        self.deps.pool.send(PoolMsg::SetQuota(limits));
        responder.send(Ok(()));
    }

    /// Names of tenants whose home this is: those with limits, and those that any session has jobs or runs of.
    pub(super) fn tenant_names(&self, responder: Responder<Vec<String>>) {
        let names: BTreeSet<&String> = self.state.tenants.keys().chain(self.session_counts.tenants()).collect();
        responder.send(Ok(names.into_iter().cloned().collect()));
    }
}

/// Tells the owner of a shard that a tenant has limits. One that does not hear it is told again, or hears of them when it reports.
fn remind(client: &Arc<ShardClient>, shard: ShardId, limits: TenantRecord) {
    let client = client.clone();
    tokio::spawn(async move {
        let _ = ask::<()>(&client, shard, ShardCall::Remind(limits)).await;
    });
}

/// Tells all sessions of the cluster that a tenant's limits have changed.
pub(super) fn remind_all(deps: &ShardDeps, limits: &TenantRecord) {
    let Some(membership) = deps.shards.membership() else { return };
    let owners: BTreeMap<SessionId, ShardId> = (0..deps.identity.shards)
        .filter_map(|shard| Some((membership.owner.owner_of(ShardId(shard))?, ShardId(shard))))
        .collect();
    for shard in owners.into_values() {
        remind(&deps.client, shard, limits.clone());
    }
}
