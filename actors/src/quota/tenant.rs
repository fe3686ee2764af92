//! The quota actor of a tenant: which runs wait, which hold a permit, and whether there is another permit.

use super::{rank::QueueRank, target_state::TargetState};
use crate::tenants::TenantGauge;
use campanile_core::{
    dispatch::permit::{TenantLimits, TenantPermits},
    job::WaitingRun,
};
use campanile_schema::{
    channel::is_of_channels,
    ids::RunId,
    limits::{CHANNEL_RUNS_PER_TENANT, STARTS_BY_PRIORITY},
    stored::TenantRecord,
    wait::WaitCode,
};
use hashbrown::HashMap;
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

/// Why a run of a paused tenant waits, or of any tenant in a system that is paused.
pub(crate) const PAUSED: &str = "the tenant or the system is paused";

/// Runs that come back go before it.
const FIRST_ARRIVAL: u64 = 1 << 63;

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
    pub permits: TenantPermits,
    pub waiting: BTreeMap<QueueRank, Box<WaitingRun>>,
    pub places: HashMap<RunId, QueueRank>,
    arrivals: u64,
    /// Runs that got a permit by their priority, since one got it for its age.
    by_priority: u32,
    /// Runs that came back; each before all others.
    returns: u64,
    /// Its home shard is not asked before, CLOCK_BOOTTIME ms.
    pub ask_at_ms: i64,
    /// It is not of a tenant, but of one of its targets.
    pub target: Option<Box<TargetState>>,
}

impl Quota {
    pub fn new(name: &str, gauge: Arc<TenantGauge>, shards: u16, known: bool) -> Self {
        // Those of channels are this node's own, and no home shard is asked for them.
        let own = is_of_channels(name);
        let max_concurrent_runs = if own { CHANNEL_RUNS_PER_TENANT } else { 0 };
        Self {
            name: name.to_owned(),
            gauge,
            touched: false,
            asking: false,
            known: known || own,
            limit: TenantRecord { max_concurrent_runs, ..TenantRecord::default() },
            told_since_asked: false,
            paused: false,
            permits: TenantPermits::new(shards),
            waiting: BTreeMap::new(),
            places: HashMap::new(),
            arrivals: FIRST_ARRIVAL,
            by_priority: 0,
            returns: FIRST_ARRIVAL,
            ask_at_ms: 0,
            target: None,
        }
    }

    /// Nothing limits it, so runs need not wait for each other.
    pub fn lends_freely(&self) -> bool {
        self.known && !self.paused && self.limit.max_concurrent_runs == 0 && self.limit.max_triggers_per_sec <= 0.0
    }

    /// Runs wait here, retries of a target among them.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || self.target.as_ref().is_some_and(|target| target.has_waiting())
    }

    /// Runs that could start, were there permits for them.
    pub fn could_start(&self) -> usize {
        self.waiting.len() + self.target.as_ref().map_or(0, |target| target.ready_retries() + target.returned)
    }

    /// Runs wait, and what they wait for comes when others end.
    pub fn lacks_ends(&self) -> bool {
        !self.waiting.is_empty() && !self.paused && self.limit.max_concurrent_runs > 0
    }

    pub fn hold(&mut self, run: RunId) {
        self.permits.hold(run);
        self.show_running();
    }

    /// Gives a permit back.
    pub fn release(&mut self, run: RunId) {
        self.permits.release(run);
        self.show_running();
    }

    pub fn show_running(&self) {
        self.gauge.running.store(self.permits.held() as i64, Ordering::Relaxed);
    }

    pub fn want(&mut self, run: Box<WaitingRun>) {
        self.arrivals += 1;
        self.wait(run, self.arrivals);
    }

    /// See [`super::Quotas::again`].
    pub fn again(&mut self, run: Box<WaitingRun>) {
        self.returns -= 1;
        self.wait(run, self.returns);
    }

    fn wait(&mut self, run: Box<WaitingRun>, arrival: u64) {
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

    /// A run of a backfill found no executor: its permit is there for others, and it waits behind those of its lane.
    pub fn found_no_slot(&mut self, run: Box<WaitingRun>) {
        self.permits.give_back(run.run, self.limits());
        self.want(run);
    }

    /// The run does not wait any more.
    pub fn unwant(&mut self, run: RunId) {
        if let Some(place) = self.places.remove(&run) {
            self.waiting.remove(&place);
            if let Some(target) = &mut self.target {
                target.unwant(place);
            }
            self.gauge.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Runs of backfills wait, and no live ones.
    pub fn has_back_only(&self) -> bool {
        self.waiting.first_key_value().is_some_and(|(place, _)| place.0)
    }

    /// Gives permits in order. `back`: so many runs of backfills at most. A place: the turn is that of a run with a target, which needs a
    /// permit of it too, and which waits at this place.
    #[allow(clippy::vec_box)] // They stay boxed all the way.
    pub fn grant(&mut self, granted: &mut Vec<Box<WaitingRun>>, back: &mut usize) -> Option<QueueRank> {
        while !self.paused && self.known {
            let Some(place) = self.next_place() else { break };
            let Some(run) = self.waiting.get(&place) else { break };
            if !self.may_start(run.run) || (place.0 && *back == 0) {
                break;
            }
            if run.target.is_some() {
                return Some(place);
            }
            *back -= usize::from(place.0);
            let Some(run) = self.waiting.remove(&place) else { break };
            self.start(place, run.run);
            granted.push(run);
        }
        None
    }

    /// Whose turn it is: the first of the highest priority, but after so many of those the live run that has waited longest.
    pub fn next_place(&self) -> Option<QueueRank> {
        let first = self.waiting.first_key_value().map(|(place, _)| *place)?;
        if self.by_priority < STARTS_BY_PRIORITY || first.0 {
            return Some(first);
        }
        let mut oldest = first;
        let mut place = first;
        // One look for each priority.
        while let Some((next, _)) = self.waiting.range((place.0, place.1, u64::MAX)..).next() {
            if next.0 {
                break;
            }
            place = *next;
            if place.2 < oldest.2 {
                oldest = place;
            }
        }
        Some(oldest)
    }

    /// The run that waited at this place has got a permit.
    pub fn start(&mut self, place: QueueRank, run: RunId) {
        let by_priority = self.waiting.first_key_value().is_none_or(|(first, _)| place < *first);
        self.by_priority = if by_priority { self.by_priority.saturating_add(1) } else { 0 };
        self.places.remove(&run);
        self.permits.start(run, self.limits());
        self.show_running();
    }

    /// Whether runs a second are limited; in a cluster the node's part may not be known yet.
    pub fn has_rate(&self) -> bool {
        #[cfg(feature = "faults")]
        if campanile_ports::faults::forget_rate() {
            return false;
        }
        self.limit.max_triggers_per_sec > 0.0
    }

    pub fn limits(&self) -> TenantLimits {
        let concurrent = self.limit.max_concurrent_runs;
        #[cfg(feature = "faults")]
        let concurrent = concurrent + u32::from(concurrent > 0 && campanile_ports::faults::quota_plus_one());
        TenantLimits { concurrent, rated: self.has_rate() }
    }

    /// Whether a run may have a permit.
    pub fn may_start(&self, run: RunId) -> bool {
        #[cfg(feature = "faults")]
        if campanile_ports::faults::limits_alone() {
            return self.permits.may_start_alone(self.limits());
        }
        self.permits.may_start(run, self.limits())
    }

    /// Whether it may have one as far as runs at once are limited.
    pub fn has_permit(&self, run: RunId) -> bool {
        self.permits.may_start(run, TenantLimits { rated: false, ..self.limits() })
    }

    pub fn refill(&mut self, now_ms: i64) {
        self.permits.refill(now_ms, self.limits());
        self.look_at_target(now_ms);
    }

    pub fn why(&self, run: RunId, system_paused: bool) -> Option<String> {
        if !self.places.contains_key(&run) {
            return None;
        }
        let limit = &self.limit;
        let (lent, all) = (self.permits.held(), limit.max_concurrent_runs);
        let waiting = self.waiting.len();
        Some(if self.paused || system_paused {
            WaitCode::TenantPaused.because(PAUSED)
        } else if !self.known {
            WaitCode::Starting.because("the node asks for the tenant's limits")
        } else if let Some(loan) = self.permits.loan.as_ref().filter(|_| all > 0 && !self.may_start(run)) {
            let (used, level) = (loan.borrowed.used(), loan.borrowed.permits());
            WaitCode::TenantConcurrency.because(format!(
                "{used} of the {level} permits that the cluster lends to this node are in use, of {all} in all; {waiting} runs wait here"
            ))
        } else if all > 0 && lent >= all as usize {
            WaitCode::TenantConcurrency.because(format!("{lent} of {all} permits are lent; {waiting} runs wait"))
        } else if self.has_back_only() && self.may_start(run) {
            let sentence =
                "a run of a backfill gets its permit together with a free slot of an executor, after all live runs";
            WaitCode::BackfillYields.because(sentence)
        } else {
            let per_sec = limit.max_triggers_per_sec;
            WaitCode::TenantRate.because(format!("at most {per_sec} runs start per second; {waiting} runs wait"))
        })
    }
}
