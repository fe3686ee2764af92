//! What sessions of a cluster and the home shards of tenants tell each other, so that a tenant's limits hold over all nodes.

use crate::{
    loan::{Level, Request},
    stored::TenantRecord,
};
use serde::{Deserialize, Serialize};

/// Of one tenant, or of one of its targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub jobs: u64,
    /// Runs that hold a permit.
    pub running: u64,
    /// Runs that wait for a permit or an executor.
    pub waiting: u64,
    /// Permits that it could use.
    pub wanted: u64,
    /// Of a target: the number of the state of its breaker ([`crate::view::targets::BreakerState`]).
    #[serde(default, skip_serializing_if = "is_closed")]
    pub breaker: u8,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_closed(breaker: &u8) -> bool {
    *breaker == 0
}

impl Counts {
    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            jobs: self.jobs + other.jobs,
            running: self.running + other.running,
            waiting: self.waiting + other.waiting,
            wanted: self.wanted + other.wanted,
            // The worst one.
            breaker: self.breaker.max(other.breaker),
        }
    }
}

/// From a session to a tenant's home shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TenantReport {
    pub tenant: String,
    pub counts: Counts,
    /// What it wants of the permits; None: nothing new.
    pub request: Option<Request>,
}

/// The answer: what the session may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantShare {
    pub tenant: String,
    /// None: nobody has set limits.
    pub limits: Option<TenantRecord>,
    /// Permits lent to the session.
    pub level: Level,
    /// Runs at once that the session may have when all who want some get theirs.
    pub share: u32,
    /// Its part of the rate, runs per second; 0 = no limit.
    pub rate: f64,
    /// What all other sessions have.
    pub elsewhere: Counts,
}
