//! Which part of the node's slots each tenant has, so that a tenant with long bodies does not get more of them than one with short ones.
//!
//! The slots of each pool are a resource. A tenant's *dominant share* is the largest of its parts of the pools: dominant-resource
//! fairness (Ghodsi et al., 2011). Of the tenants of a priority whose turn comes next, the one with the least dominant share gets it.
//!
//! The parts are counted only while runs of several tenants wait, and anew after [`FRESH_MS`]; in between only what starts is added. A run
//! that ends in between is counted for so long: among short bodies, tenants then share what starts.

use super::executor::Seat;
use crate::job::WaitingRun;
use campanile_schema::text::Text;
use hashbrown::HashMap;

/// A count is used for so long, ms.
pub const FRESH_MS: i64 = 100;

/// See the module's text.
#[derive(Debug, Default)]
pub struct Shares {
    /// When it was counted, CLOCK_BOOTTIME ms. None: it is not needed.
    counted_ms: Option<i64>,
    /// Slots in use, by tenant and pool.
    used: HashMap<(Text, Text), u32>,
    /// Slots of each pool. Those of an executor of several pools count in each.
    slots: HashMap<Text, u32>,
    dominant: HashMap<Text, f64>,
}

impl Shares {
    /// Runs of several tenants wait, or do not.
    pub fn count(&mut self, needed: bool, seats: &[Seat<'_>], now_ms: i64) {
        if !needed {
            self.counted_ms = None;
            return;
        }
        if self.counted_ms.is_some_and(|counted_ms| now_ms - counted_ms < FRESH_MS) {
            return;
        }
        self.counted_ms = Some(now_ms);
        self.used.clear();
        self.slots.clear();
        self.dominant.clear();
        for seat in seats {
            for pool in seat.executor.register.iter().flat_map(|register| &register.pools) {
                *self.slots.entry(Text::from(pool.as_str())).or_default() += seat.executor.slots();
            }
        }
        for holding in seats.iter().flat_map(|seat| seat.executor.running.values()) {
            self.add(&holding.tenant, &holding.pool);
        }
    }

    /// The run has got a slot.
    pub fn took(&mut self, run: &WaitingRun) {
        if self.counted_ms.is_some() {
            self.add(&run.tenant, &run.pool);
        }
    }

    fn add(&mut self, tenant: &Text, pool: &Text) {
        let used = self.used.entry((tenant.clone(), pool.clone())).or_default();
        *used += 1;
        let slots = self.slots.get(pool.as_str()).copied().unwrap_or(0).max(1);
        let share = f64::from(*used) / f64::from(slots);
        let dominant = self.dominant.entry(tenant.clone()).or_default();
        *dominant = dominant.max(share);
    }

    /// The tenant's dominant share.
    pub fn of(&self, tenant: &str) -> f64 {
        if self.counted_ms.is_none() {
            return 0.0;
        }
        self.dominant.get(tenant).copied().unwrap_or(0.0)
    }
}
