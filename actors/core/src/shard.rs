//! What a shard holds besides its jobs: its counter, tenants, pauses, and where its log stands. Pure; changed by events only.

use campanile_schema::{
    event::{Event, PauseScope, SkipReason},
    ids::SLOTS,
    stored::TenantRecord,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// State of a shard itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardState {
    /// Highest counter used in an id or a token.
    #[serde(rename = "c", default)]
    pub counter: u64,
    /// Seq of the last frame applied.
    #[serde(rename = "q", default)]
    pub seq: u64,
    /// Hybrid clock after the last event, microseconds.
    #[serde(rename = "h", default)]
    pub hlc: u64,
    /// Zone database in force for the cached next instants.
    #[serde(rename = "z", default)]
    pub tzdb: String,
    #[serde(rename = "t", default)]
    pub tenants: BTreeMap<String, TenantRecord>,
    /// Scope -> (paused, version).
    #[serde(rename = "p", default)]
    pub pauses: BTreeMap<PauseScope, (bool, u64)>,
}

impl ShardState {
    /// Applies an event's part that belongs to the shard (ids used, tenants, pauses).
    pub fn apply(&mut self, event: &Event) {
        let used = match event {
            Event::JobCreated { job, .. } => job.0 / SLOTS,
            Event::RunCreated { run, .. } => run.0 / SLOTS,
            Event::AttemptStarted { token, .. } => token.0,
            Event::TenantSet { tenant } => {
                self.tenants.insert(tenant.tenant.clone(), tenant.clone());
                0
            }
            Event::TenantDeleted { tenant } => {
                self.tenants.remove(tenant);
                0
            }
            Event::PauseSet { scope, paused, version } => {
                let entry = self.pauses.entry(scope.clone()).or_default();
                if *version > entry.1 {
                    *entry = (*paused, *version);
                }
                0
            }
            Event::JobReplaced { .. }
            | Event::JobPaused { .. }
            | Event::JobResumed { .. }
            | Event::JobDeleted { .. }
            | Event::JobQuarantined { .. }
            | Event::CursorMoved { .. }
            | Event::RunReleased { .. }
            | Event::RetryDue { .. }
            | Event::AttemptSuspected { .. }
            | Event::AttemptHeard { .. }
            | Event::AttemptStopping { .. }
            | Event::AttemptEnded { .. }
            | Event::RunConfirmed { .. }
            | Event::RunEnded { .. }
            | Event::RunReopened { .. }
            | Event::DeadLetterDiscarded { .. } => 0,
        };
        self.counter = self.counter.max(used);
    }

    /// Hybrid time of a frame's first event; the frame takes `events` microseconds.
    pub fn next_hlc(&self, wall_us: i64) -> u64 {
        (wall_us.max(0) as u64).max(self.hlc + 1)
    }

    /// Why instants of a tenant do not fire.
    pub fn paused(&self, tenant: &str) -> Option<SkipReason> {
        if self.pauses.is_empty() {
            return None;
        }
        if self.pauses.get(&PauseScope::System).is_some_and(|p| p.0) {
            return Some(SkipReason::SystemPaused);
        }
        let scope = PauseScope::Tenant(tenant.to_owned());
        self.pauses.get(&scope).is_some_and(|p| p.0).then_some(SkipReason::TenantPaused)
    }
}
