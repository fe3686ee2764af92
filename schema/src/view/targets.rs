//! Bodies of calls about targets.

use crate::{
    job::upper_enum,
    stored::{TargetTerms, TenantRecord},
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// State of a target's breaker. Of several nodes the worst one is told.
    BreakerState {
        /// Attempts start as the limits of the target allow.
        Closed = "CLOSED" = 0,
        /// The target has been failing and comes back: attempts start one by one, and each that works makes room for one more.
        Recovering = "RECOVERING" = 1,
        /// Most attempts failed: nothing starts for a while.
        Open = "OPEN" = 2
    } default Closed);

/// `PUT /tenants/{tenantId}/targets/{target}`, `target.set`: all settings of a target. Limits hold over all nodes; the breaker and the retry
/// budget are kept by each node for itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TargetBody {
    /// Runs that may use the target at once; 0 = no limit.
    pub max_concurrent_runs: u32,
    /// Runs that start a second; 0 = no limit.
    pub max_runs_per_sec: f64,
    /// Retries among a hundred first attempts, 0 to 100. Besides them ten retries of each node, and one more each minute, are free.
    pub retry_percent: u32,
    /// The breaker opens when so many of a hundred attempts failed or timed out, within ten seconds on one node; 0 = never.
    pub failure_percent: u32,
    /// Attempts that must have ended in these ten seconds before the breaker opens.
    pub min_attempts: u32,
    /// For how long it opens at first, 1 to 3600 seconds. Each opening that follows another lasts twice as long, up to eight times.
    pub open_sec: u64,
}

impl Default for TargetBody {
    fn default() -> Self {
        Self::of(&TenantRecord::default())
    }
}

impl TargetBody {
    /// Settings as they are stored.
    pub fn of(record: &TenantRecord) -> Self {
        let TargetTerms { retry_percent, failure_percent, min_attempts, open_sec } = record.target.unwrap_or_default();
        Self {
            max_concurrent_runs: record.max_concurrent_runs,
            max_runs_per_sec: record.max_triggers_per_sec,
            retry_percent,
            failure_percent,
            min_attempts,
            open_sec,
        }
    }

    /// The record of this target; `key`: [`crate::stored::target_key`].
    pub fn record(&self, key: String) -> TenantRecord {
        let &Self { max_concurrent_runs, max_runs_per_sec, retry_percent, failure_percent, min_attempts, open_sec } =
            self;
        TenantRecord {
            tenant: key,
            max_concurrent_runs,
            max_triggers_per_sec: max_runs_per_sec,
            target: Some(TargetTerms { retry_percent, failure_percent, min_attempts, open_sec }),
            ..TenantRecord::default()
        }
    }
}

/// A target as read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetView {
    pub tenant_id: String,
    pub target: String,
    pub settings: TargetBody,
    /// Counts changes of the settings; 0 = they are the default ones.
    pub version: u64,
    pub breaker: BreakerState,
    /// Runs that use it.
    pub running: u64,
    /// Runs that wait for it.
    pub waiting: u64,
}
