//! When an attempt that failed is followed by another one.

use super::Backoff;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `maxAttempts` counts the first try. Delay before try n+1: `base` (fixed) or `base x 2^(n-1)`, at most `max`, times 1 ± jitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RetryPolicy {
    pub max_attempts: u32,
    pub backoff: Backoff,
    pub base_delay_sec: f64,
    pub max_delay_sec: f64,
    /// Fraction 0..=1.
    pub jitter: f64,
    /// No attempt begins later than so long after the first one of its generation. Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_elapsed_sec: Option<u64>,
}
impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            backoff: Backoff::Exponential,
            base_delay_sec: 10.0,
            max_delay_sec: 3600.0,
            jitter: 0.2,
            max_elapsed_sec: None,
        }
    }
}
