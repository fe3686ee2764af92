//! History that takes more room than it may: its oldest go, and their room is given back to the disk.
//!
//! Giving room back writes the whole history anew, so it waits until enough has gone; what is too young to go costs nothing at all.

use super::guard;
use crate::tables::Tables;
use campanile_ports::StoreError;
use campanile_schema::limits;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much of its limit history takes after it was shrunk.
const SHRINK_TO: f64 = 0.9;
/// Room is given back when one of so many stored runs has gone. Fewer than what is above [`SHRINK_TO`] when the limit is passed, so that it is
/// reached before nothing more is to go.
const GIVE_BACK_SHARE: u64 = 20;

/// What is known from one call to the next.
#[derive(Debug, Default)]
pub(super) struct Shrinking {
    /// Runs that went and whose room was not given back yet.
    gone: AtomicU64,
    /// Times that room was given back.
    compactions: AtomicU64,
}

impl Shrinking {
    /// See [`campanile_ports::LocalViews::shrink`]. Takes `committer` for each stretch of runs, not for all of them.
    pub(super) fn run(
        &self,
        tables: &dyn Tables,
        committer: &Mutex<()>,
        max_bytes: u64,
        before_ms: i64,
    ) -> Result<u64, StoreError> {
        let bytes = tables.disk_bytes();
        if bytes <= max_bytes {
            return Ok(0);
        }
        let stored = tables.runs_stored();
        let earlier = self.gone.load(Ordering::Relaxed);
        // Somewhat below the limit: it takes a while until the room is free.
        let excess = 1.0 - max_bytes as f64 * SHRINK_TO / bytes as f64;
        let excess = ((stored as f64 * excess) as u64).saturating_sub(earlier);
        let mut gone = 0;
        while gone < excess {
            let rows = usize::try_from(excess - gone).unwrap_or(usize::MAX).min(limits::RETAIN_ROWS);
            let removed = {
                let _one_at_a_time = guard(committer);
                tables.retain(before_ms, rows)?
            };
            if removed == 0 {
                break;
            }
            gone += removed;
            self.gone.store(earlier + gone, Ordering::Relaxed);
        }
        let waiting = earlier + gone;
        if waiting > 0 && waiting.saturating_mul(GIVE_BACK_SHARE) >= stored {
            tables.flush()?;
            tables.compact()?;
            self.gone.store(0, Ordering::Relaxed);
            self.compactions.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("campanile_history_compactions_total").increment(1);
        }
        Ok(gone)
    }

    #[cfg(test)]
    pub(super) fn compactions(&self) -> u64 {
        self.compactions.load(Ordering::Relaxed)
    }
}
