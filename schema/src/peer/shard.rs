//! What nodes tell each other of the jobs, runs and tenants of a shard: parts of the calls to shards and of their answers.

use crate::{ids::Digest, peer::lending::Counts, stored::TenantRecord};
use serde::{Deserialize, Serialize};

/// A create that comes with a caller's key.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CreateKey {
    /// Digest of the tenant and the key.
    pub key: Digest,
    /// Digest of the request.
    pub print: Digest,
}

/// What to do with a run that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FinalAction {
    Reopen { redrive: bool, reason: Option<String> },
    Discard,
}

/// What to do with the messages of a run that were given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutboxAction {
    Resend,
    Discard,
}

/// What the home shard of a tenant knows of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TenantFacts {
    pub limits: Option<TenantRecord>,
    pub paused: bool,
    /// Of all sessions of a cluster; None: the node is alone.
    pub counts: Option<Counts>,
    /// The tenant itself is paused, not only the whole system.
    #[serde(default)]
    pub paused_itself: bool,
}

/// How many jobs and open runs of a tenant a shard has.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct TenantUse {
    /// Not deleted.
    pub jobs: u64,
    /// Also of deleted jobs.
    pub open_runs: u64,
}
