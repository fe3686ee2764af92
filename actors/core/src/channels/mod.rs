//! Channels: jobs that tell somebody outside, for example by a webhook.
//!
//! **Problem.** Who is told that a tenant's jobs fail has to hear it also when the tenant is paused, or has used up its quota: that may be
//! why they fail. So channels run beside both. Without limits they could in turn keep a node busy, so they have some of their own.
//!
//! **What is different.** A run of a channel waits for an executor of the node's own pool, with a permit of the tenant's channels
//! (`CHANNEL_RUNS_PER_TENANT` at once) instead of the tenant's. A pause of the tenant does not hold it, and a full queue does not refuse
//! it. Runs of one channel never wait for each other, whatever `concurrencyPolicy` says: one receiver that does not answer keeps no other
//! message back. A pause of the job or of the whole system, retries, dead letters and hooks are as for any job.
//!
//! **What this never does:** send anything (`campanile_actions::webhook` does), or decide which addresses may be reached.

pub mod rules;

use campanile_schema::{
    channel::{CHANNEL_POOL, permits_of},
    job::ConcurrencyPolicy,
    stored::StoredJob,
    text::Text,
};
pub use rules::Rule;
use rules::kept;

/// What a job asks permits of, and whose executors run it.
pub trait Placed {
    /// The name under which it has its permits.
    fn permits(&self) -> Text;
    fn place(&self) -> Text;
    /// What its runs do while others are active.
    fn policy(&self) -> ConcurrencyPolicy;
}

impl Placed for StoredJob {
    fn permits(&self) -> Text {
        if self.is_channel() && kept(Rule::OwnPermits) { permits_of(&self.tenant) } else { self.tenant.clone() }
    }

    fn place(&self) -> Text {
        if self.is_channel() { Text::new_static(CHANNEL_POOL) } else { self.pool.clone() }
    }

    fn policy(&self) -> ConcurrencyPolicy {
        if self.is_channel() && kept(Rule::NeverWaits) { ConcurrencyPolicy::Allow } else { self.concurrency }
    }
}

/// Whether a pause of the tenant holds what this job does.
pub fn heeds_tenant(def: &StoredJob) -> bool {
    !def.is_channel() || !kept(Rule::BesideThePause)
}

/// Whether it is refused when as many runs of the tenant wait as may.
pub fn heeds_queue(def: &StoredJob) -> bool {
    !def.is_channel() || !kept(Rule::BesideTheQueue)
}
