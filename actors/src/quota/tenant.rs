//! The quota actor of a tenant: which runs wait, which hold a permit, and whether there is another permit.

use crate::tenants::TenantGauge;
use campanile_core::{job::Waiting, ownership::borrowed::Borrowed};
use campanile_schema::{
    ids::{RunId, ShardId},
    stored::TenantRecord,
    wait::WaitCode,
};
use hashbrown::{HashMap, HashSet};
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

/// Why a run of a paused tenant waits, or of any tenant in a system that is paused.
pub(crate) const PAUSED: &str = "the tenant or the system is paused";

/// Runs that come back go before it.
const FIRST_ARRIVAL: u64 = 1 << 63;

/// Order in which waiting runs get permits: live before backfill, higher priority first, then first come.
type Place = (bool, Reverse<u16>, u64);

/// What the tenant's home shard lends to this session of a cluster.
pub(super) struct Loan {
    pub borrowed: Borrowed,
    /// What others leave of the limit.
    pub share: u32,
}

/// State of the actor.
pub(super) struct Quota {
    pub name: String,
    pub gauge: Arc<TenantGauge>,
    pub touched: bool,
    /// It is among those that have something to ask.
    pub asking: bool,
    /// The limits are known: of a tenant whose home is on another node they are asked for first.
    pub known: bool,
    pub limit: TenantRecord,
    /// The question on its way to the home shard was asked before the limits were told: its answer may be older.
    pub told_since_asked: bool,
    pub paused: bool,
    pub holders: HashSet<RunId>,
    pub waiting: BTreeMap<Place, Box<Waiting>>,
    pub places: HashMap<RunId, Place>,
    arrivals: u64,
    /// Runs that came back; each before all others.
    returns: u64,
    /// In a cluster, once there is a limit to runs at once.
    pub loan: Option<Loan>,
    /// Its home shard is not asked before, CLOCK_BOOTTIME ms.
    pub ask_at_ms: i64,
    /// This node's part of the rate, runs per second.
    pub rate: f64,
    /// Rate permits at `refilled_ms` (CLOCK_BOOTTIME).
    pub tokens: f64,
    refilled_ms: i64,
    /// Shards of the cluster, for the shard of a run.
    shards: u16,
}

impl Quota {
    pub fn new(name: &str, gauge: Arc<TenantGauge>, shards: u16, known: bool) -> Self {
        Self {
            name: name.to_owned(),
            gauge,
            touched: false,
            asking: false,
            known,
            limit: TenantRecord::default(),
            told_since_asked: false,
            paused: false,
            holders: HashSet::new(),
            waiting: BTreeMap::new(),
            places: HashMap::new(),
            arrivals: FIRST_ARRIVAL,
            returns: FIRST_ARRIVAL,
            loan: None,
            ask_at_ms: 0,
            rate: 0.0,
            tokens: 0.0,
            refilled_ms: 0,
            shards,
        }
    }

    /// Nothing limits it, so runs need not wait for each other.
    pub fn lends_freely(&self) -> bool {
        self.known && !self.paused && self.limit.max_concurrent_runs == 0 && self.limit.max_triggers_per_sec <= 0.0
    }

    /// Runs wait, and what they wait for comes when others end.
    pub fn lacks_ends(&self) -> bool {
        !self.waiting.is_empty() && !self.paused && self.limit.max_concurrent_runs > 0
    }

    fn shard(&self, run: RunId) -> ShardId {
        run.shard(self.shards)
    }

    pub fn hold(&mut self, run: RunId) {
        let shard = self.shard(run);
        if self.holders.insert(run)
            && let Some(loan) = &mut self.loan
        {
            loan.borrowed.started(shard);
        }
        self.show_running();
    }

    /// Gives a permit back.
    pub fn release(&mut self, run: RunId) {
        let shard = self.shard(run);
        if self.holders.remove(&run)
            && let Some(loan) = &mut self.loan
        {
            loan.borrowed.ended(shard);
        }
        self.show_running();
    }

    pub fn show_running(&self) {
        self.gauge.running.store(self.holders.len() as i64, Ordering::Relaxed);
    }

    pub fn want(&mut self, run: Box<Waiting>) {
        self.arrivals += 1;
        self.wait(run, self.arrivals);
    }

    /// See [`super::Quotas::again`].
    pub fn again(&mut self, run: Box<Waiting>) {
        self.returns -= 1;
        self.wait(run, self.returns);
    }

    fn wait(&mut self, run: Box<Waiting>, arrival: u64) {
        // A run that waits asked before (an effect done twice).
        if self.places.contains_key(&run.run) {
            return;
        }
        self.release(run.run);
        let place = (run.backfill, Reverse(run.priority), arrival);
        self.places.insert(run.run, place);
        self.waiting.insert(place, run);
        self.gauge.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// The run does not wait any more.
    pub fn unwant(&mut self, run: RunId) {
        if let Some(place) = self.places.remove(&run) {
            self.waiting.remove(&place);
            self.gauge.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[allow(clippy::vec_box)] // They stay boxed all the way.
    pub fn grant(&mut self, granted: &mut Vec<Box<Waiting>>) {
        while !self.paused && self.known {
            let Some(run) = self.waiting.first_key_value().map(|(_, waiting)| waiting.run) else { break };
            if !self.has_room(self.shard(run)) {
                break;
            }
            let Some((_, run)) = self.waiting.pop_first() else { break };
            self.places.remove(&run.run);
            self.hold(run.run);
            if self.has_rate() {
                self.tokens -= 1.0;
            }
            granted.push(run);
        }
    }

    /// Whether runs a second are limited; in a cluster the node's part may not be known yet.
    pub fn has_rate(&self) -> bool {
        #[cfg(feature = "faults")]
        if campanile_ports::faults::forget_rate() {
            return false;
        }
        self.limit.max_triggers_per_sec > 0.0
    }

    /// Whether a run of the shard may have a permit.
    fn has_room(&self, shard: ShardId) -> bool {
        let concurrency = self.limit.max_concurrent_runs;
        #[cfg(feature = "faults")]
        let concurrency = concurrency + u32::from(concurrency > 0 && campanile_ports::faults::quota_plus_one());
        let permit = match &self.loan {
            _ if concurrency == 0 => true,
            None => self.holders.len() < concurrency as usize,
            #[cfg(feature = "faults")]
            Some(_) if campanile_ports::faults::limits_alone() => self.holders.len() < concurrency as usize,
            Some(loan) => loan.borrowed.used() < loan.share && loan.borrowed.may_start(shard),
        };
        permit && (!self.has_rate() || self.tokens >= 1.0)
    }

    pub fn refill(&mut self, now_ms: i64) {
        if self.has_rate() {
            let seconds = (now_ms - self.refilled_ms).clamp(0, 60_000) as f64 / 1000.0;
            self.tokens = (self.tokens + seconds * self.rate).min(self.rate.max(1.0));
        }
        self.refilled_ms = now_ms;
    }

    pub fn why(&self, run: RunId, system_paused: bool) -> Option<String> {
        if !self.places.contains_key(&run) {
            return None;
        }
        let limit = &self.limit;
        let (lent, all) = (self.holders.len(), limit.max_concurrent_runs);
        let waiting = self.waiting.len();
        Some(if self.paused || system_paused {
            WaitCode::TenantPaused.because(PAUSED)
        } else if !self.known {
            WaitCode::Starting.because("the node asks for the tenant's limits")
        } else if let Some(loan) = self.loan.as_ref().filter(|_| all > 0 && !self.has_room(self.shard(run))) {
            let (used, level) = (loan.borrowed.used(), loan.borrowed.permits());
            WaitCode::TenantConcurrency.because(format!(
                "{used} of the {level} permits that the cluster lends to this node are in use, of {all} in all; {waiting} runs wait here"
            ))
        } else if all > 0 && lent >= all as usize {
            WaitCode::TenantConcurrency.because(format!("{lent} of {all} permits are lent; {waiting} runs wait"))
        } else {
            let per_sec = limit.max_triggers_per_sec;
            WaitCode::TenantRate.because(format!("at most {per_sec} runs start per second; {waiting} runs wait"))
        })
    }
}
