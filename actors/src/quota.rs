//! The quota actor of a tenant: lends permits to runs. A permit is held from the grant until the body has ended; rate
//! permits are a token bucket. Without a permit a run waits here with a reason, and is woken by the grant: nothing spins.
//!
//! Its state is rebuilt from the shards after a restart (`Want` of queued runs, `Adopt` of running ones, above the limit if
//! need be: a debt that stops admission until it is paid).

use crate::{
    directory::{Directory, TenantGauge},
    messages::{PoolMsg, QuotaMsg},
};
use campanile_core::job::Waiting;
use campanile_schema::{ids::RunId, stored::TenantRecord};
use hashbrown::{HashMap, HashSet};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Arc, Weak, atomic::Ordering},
};

/// See the module's text.
pub struct QuotaActor;

/// What it is started with.
pub struct QuotaStart {
    pub gauge: Arc<TenantGauge>,
    pub directory: Weak<Directory>,
    /// All shards are up. Else it grants nothing before the first tick, which comes after all that they send at their start.
    pub open: bool,
}

/// Order in which waiting runs get permits: live before backfill, higher priority first, then first come.
type Place = (bool, Reverse<u16>, u64);

/// State of the actor.
pub struct QuotaState {
    gauge: Arc<TenantGauge>,
    directory: Weak<Directory>,
    /// All shards have said what they know of this tenant. Before that a limit may still be on its way, or a pause, or runs
    /// that hold permits: nothing is granted.
    open: bool,
    limit: TenantRecord,
    paused: bool,
    holders: HashSet<RunId>,
    waiting: BTreeMap<Place, Waiting>,
    places: HashMap<RunId, Place>,
    arrivals: u64,
    /// Rate permits at `refilled_ms` (CLOCK_BOOTTIME).
    tokens: f64,
    refilled_ms: i64,
}

impl Actor for QuotaActor {
    type Msg = QuotaMsg;
    type State = QuotaState;
    type Arguments = QuotaStart;

    async fn pre_start(&self, _: ActorRef<QuotaMsg>, start: QuotaStart) -> Result<QuotaState, ActorProcessingErr> {
        Ok(QuotaState {
            gauge: start.gauge,
            directory: start.directory,
            open: start.open,
            limit: TenantRecord::default(),
            paused: false,
            holders: HashSet::new(),
            waiting: BTreeMap::new(),
            places: HashMap::new(),
            arrivals: 0,
            tokens: 0.0,
            refilled_ms: 0,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<QuotaMsg>,
        message: QuotaMsg,
        state: &mut QuotaState,
    ) -> Result<(), ActorProcessingErr> {
        let Some(directory) = state.directory.upgrade() else { return Ok(()) };
        match message {
            QuotaMsg::Want(runs) => state.want(runs),
            QuotaMsg::Dequeue(run) => state.dequeue(run),
            QuotaMsg::Ended(runs) => {
                for run in runs {
                    state.holders.remove(&run);
                }
            }
            QuotaMsg::Adopt(runs) => state.holders.extend(runs),
            QuotaMsg::Set(limit) => {
                state.gauge.set_limits(&limit);
                // A bucket starts full, so that the first second is not refused.
                state.tokens = limit.max_triggers_per_sec.max(1.0);
                state.limit = limit;
            }
            QuotaMsg::Pause(paused) => {
                state.paused = paused;
                state.gauge.paused.store(paused, Ordering::Relaxed);
            }
            QuotaMsg::Tick => state.open = true,
            QuotaMsg::WhyWaiting(run, port) => {
                // Nobody may listen any more.
                let _ = port.send(state.why(run, directory.system_paused.load(Ordering::Relaxed)));
            }
        }
        state.grant(&directory);
        Ok(())
    }
}

impl QuotaState {
    fn want(&mut self, runs: Vec<Waiting>) {
        for run in runs {
            // A run that waits or holds a permit already asked before (an effect done twice).
            if self.places.contains_key(&run.run) {
                continue;
            }
            self.holders.remove(&run.run);
            self.arrivals += 1;
            let place = (run.backfill, Reverse(run.priority), self.arrivals);
            self.places.insert(run.run, place);
            self.waiting.insert(place, run);
            self.gauge.waiting.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn dequeue(&mut self, run: RunId) {
        if let Some(place) = self.places.remove(&run) {
            self.waiting.remove(&place);
            self.gauge.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        self.holders.remove(&run);
    }

    fn grant(&mut self, directory: &Directory) {
        self.refill(directory.time.boot_ms());
        let mut granted = Vec::new();
        let paused = self.paused || directory.system_paused.load(Ordering::Relaxed);
        while self.open && !paused && self.has_room() {
            let Some((_, run)) = self.waiting.pop_first() else { break };
            self.places.remove(&run.run);
            self.holders.insert(run.run);
            if self.limit.max_triggers_per_sec > 0.0 {
                self.tokens -= 1.0;
            }
            granted.push(run);
        }
        self.gauge.running.store(self.holders.len() as i64, Ordering::Relaxed);
        if !granted.is_empty() {
            directory.to_pool(PoolMsg::Enqueue(granted));
        }
    }

    fn has_room(&self) -> bool {
        let concurrency = self.limit.max_concurrent_runs;
        #[cfg(feature = "faults")]
        let concurrency = concurrency + u32::from(concurrency > 0 && crate::faults::quota_plus_one());
        (concurrency == 0 || self.holders.len() < concurrency as usize)
            && (self.limit.max_triggers_per_sec <= 0.0 || self.tokens >= 1.0)
    }

    fn refill(&mut self, now_ms: i64) {
        let rate = self.limit.max_triggers_per_sec;
        if rate > 0.0 {
            let seconds = (now_ms - self.refilled_ms).clamp(0, 60_000) as f64 / 1000.0;
            self.tokens = (self.tokens + seconds * rate).min(rate.max(1.0));
        }
        self.refilled_ms = now_ms;
    }

    fn why(&self, run: RunId, system_paused: bool) -> Option<String> {
        if !self.places.contains_key(&run) {
            return None;
        }
        let limit = &self.limit;
        Some(if self.paused || system_paused {
            "TENANT_PAUSED: the tenant or the system is paused".to_owned()
        } else if limit.max_concurrent_runs > 0 && self.holders.len() >= limit.max_concurrent_runs as usize {
            format!(
                "TENANT_CONCURRENCY: {} of {} permits are lent; {} runs wait",
                self.holders.len(),
                limit.max_concurrent_runs,
                self.waiting.len()
            )
        } else {
            format!(
                "TENANT_RATE: at most {} runs start per second; {} runs wait",
                limit.max_triggers_per_sec,
                self.waiting.len()
            )
        })
    }
}
