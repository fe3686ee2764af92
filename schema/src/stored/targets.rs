//! Settings of targets. They are kept, lent and moved like limits of tenants, under a key that no tenant has.

use serde::{Deserialize, Serialize};

/// Between the tenant and the name of a target. No tenant has it in its name.
const BETWEEN: char = '/';

/// The name under which the settings of a target are kept.
pub fn target_key(tenant: &str, target: &str) -> String {
    format!("{tenant}{BETWEEN}{target}")
}

/// The tenant and the name of a target by its key. None: it is a tenant.
pub fn target_of(key: &str) -> Option<(&str, &str)> {
    key.split_once(BETWEEN)
}

/// Settings of a target besides its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetTerms {
    /// Retries among a hundred first attempts.
    #[serde(rename = "rp")]
    pub retry_percent: u32,
    /// The breaker opens when so many of a hundred attempts fail. 0: never.
    #[serde(rename = "fp")]
    pub failure_percent: u32,
    /// Attempts that must have ended before it opens.
    #[serde(rename = "ma")]
    pub min_attempts: u32,
    /// For how long it opens at first.
    #[serde(rename = "os")]
    pub open_sec: u64,
}

/// Of a target that nobody has set anything for.
impl Default for TargetTerms {
    fn default() -> Self {
        Self { retry_percent: 10, failure_percent: 50, min_attempts: 10, open_sec: 10 }
    }
}
