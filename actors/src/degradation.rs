//! The node's level of degradation, for whoever does without something at it. The ticker looks ten times a second.

use campanile_core::degradation::next;
use campanile_schema::view::DegradationLevel;
use std::sync::atomic::{AtomicU8, Ordering};

/// See the module's text.
#[derive(Debug, Default)]
pub struct Degradation {
    level: AtomicU8,
    /// For proofs that cannot make a backlog: the number of a level and 1.
    #[cfg(feature = "faults")]
    forced: AtomicU8,
}

impl Degradation {
    pub fn level(&self) -> DegradationLevel {
        DegradationLevel::from_code(self.level.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// The backlog is so many percent of its limit.
    pub fn look(&self, percent: u64) {
        let before = self.level();
        let after = next(before, percent);
        #[cfg(feature = "faults")]
        let after = DegradationLevel::from_code(self.forced.load(Ordering::Relaxed).wrapping_sub(1)).unwrap_or(after);
        if after == before {
            return;
        }
        self.level.store(after.code(), Ordering::Relaxed);
        metrics::gauge!("campanile_degradation_level").set(f64::from(after.code()));
        for level in DegradationLevel::ALL.iter().filter(|level| **level > before && **level <= after) {
            metrics::counter!("campanile_degradations_total", "level" => level.as_str()).increment(1);
        }
        tracing::warn!(%before, %after, percent, "the node cannot keep up, or can again: its level of degradation has changed");
    }

    /// Stays at this level; None: not any more.
    #[cfg(feature = "faults")]
    pub fn force(&self, level: Option<DegradationLevel>) {
        self.forced.store(level.map_or(0, |level| level.code() + 1), Ordering::Relaxed);
    }
}
