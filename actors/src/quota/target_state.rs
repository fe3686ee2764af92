//! What the quota of a target has besides limits.

use super::rank::QueueRank;
use campanile_core::{
    dispatch::target::{HealthTerms, TargetHealth},
    job::WaitingRun,
};
use campanile_schema::stored::TargetTerms;
use std::collections::BTreeMap;

/// See [`super::target`].
pub(super) struct TargetState {
    pub health: TargetHealth,
    /// Parked retries; parked first attempts are in `Quota::waiting`. They wait apart, since retries may lack a budget of their own.
    pub retries: BTreeMap<QueueRank, Box<WaitingRun>>,
    /// The place of its tenant in `Quotas::quotas`.
    pub tenant: usize,
    /// Runs that it has let go and that wait in the order of their tenant: it needs permits for them still.
    pub returned: usize,
}

pub(super) fn health_terms(terms: TargetTerms) -> HealthTerms {
    let TargetTerms { retry_percent, failure_percent, min_attempts, open_sec } = terms;
    HealthTerms { retry_percent, failure_percent, min_attempts, open_ms: (open_sec * 1_000) as i64 }
}

impl TargetState {
    pub fn new(tenant: usize) -> Self {
        let health = TargetHealth::new(health_terms(TargetTerms::default()));
        Self { health, retries: BTreeMap::new(), tenant, returned: 0 }
    }

    /// Retries that could start, were there permits for them.
    pub fn ready_retries(&self) -> usize {
        self.retries.len().min(self.health.retries_left())
    }

    /// The run does not wait here any more.
    pub fn unwant(&mut self, place: QueueRank) {
        self.retries.remove(&place);
    }

    pub fn has_waiting(&self) -> bool {
        !self.retries.is_empty()
    }
}
