//! How long a failed run waits for its next attempt.

use crate::mix::mix;
use campanile_schema::{ids::RunId, job::Backoff, stored::StoredJob};

/// Delay before the attempt after the `tried`-th counted one, ms. Fixed: base; exponential: base x 2^(tried-1); at most
/// max; times 1 ± jitter, where the jitter is a hash of run and attempt: the same on every node and in every replay.
pub fn delay_ms(def: &StoredJob, run: RunId, tried: u32) -> i64 {
    let base = match def.backoff {
        Backoff::Fixed => def.base_delay_ms,
        Backoff::Exponential => {
            let factor = 1u64.checked_shl(tried.saturating_sub(1)).unwrap_or(u64::MAX);
            def.base_delay_ms.saturating_mul(factor)
        }
    }
    .min(def.max_delay_ms);
    let unit = (mix(run.0 ^ (u64::from(tried) << 48)) >> 11) as f64 / (1u64 << 53) as f64;
    let spread = f64::from(def.retry_jitter_milli) / 1000.0 * (2.0 * unit - 1.0);
    (base as f64 * (1.0 + spread)).max(0.0) as i64
}

/// Jitter of one instant, ms: a hash of job and instant within `jitter_sec`, and below `room_ms` (the time to the next
/// instant or to the end of its window), so that instants keep their order and none waits for the jitter of the one before.
pub fn instant_jitter_ms(jitter_sec: u32, job: u64, at_ms: i64, room_ms: i64) -> i64 {
    let below = (i64::from(jitter_sec) * 1000).min(room_ms);
    if below <= 0 {
        return 0;
    }
    (mix(job ^ (at_ms as u64).rotate_left(17)) % below as u64) as i64
}
