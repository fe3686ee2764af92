//! What others can ask the pool: its pools, why a run waits, and gauges.

use super::{PoolDeps, PoolState, session::ExecutorSessionState};
use crate::{
    measure::shares::{self, Levels},
    quota::PAUSED,
};
use campanile_core::{
    degradation::USUAL_PRIORITY,
    dispatch::{Class, Whereabouts, filter},
    job::Need,
};
use campanile_schema::{
    channel::CHANNEL_POOL,
    ids::RunId,
    kinds::ActionKind,
    text::Text,
    view::{DegradationLevel, ExecutorState, PoolView},
    wait::WaitCode,
};
use hashbrown::HashMap;
use std::{collections::BTreeMap, sync::atomic::Ordering};

/// Between two looks at the pools for the metrics, ms.
const POOLS_SHOWN_EVERY_MS: i64 = 5_000;

/// What an executor does that runs the kind, for people.
fn does(kind: ActionKind) -> &'static str {
    match kind {
        ActionKind::Handler => "has handlers",
        ActionKind::Command => "runs commands",
        ActionKind::Http => "runs HTTP actions",
    }
}

impl PoolState {
    pub(super) fn pools(&self, deps: &PoolDeps) -> Vec<PoolView> {
        let now = deps.time.boot_ms();
        let mut pools: BTreeMap<String, PoolView> = BTreeMap::new();
        let empty = |name: &str| PoolView { name: name.to_owned(), executors: 0, credit: 0, running: 0, waiting: 0 };
        for (name, waiting) in self.dispatch.waiting().filter(|(name, _)| *name != CHANNEL_POOL) {
            pools.entry(name.to_owned()).or_insert_with(|| empty(name)).waiting += waiting as u64;
        }
        for session in self.shown() {
            for name in session.executor.register.iter().flat_map(|r| &r.pools) {
                let pool = pools.entry(name.clone()).or_insert_with(|| empty(name));
                pool.executors += u32::from(session.outbox.is_some());
                pool.credit += session.credit_left(now);
                pool.running += session.executor.running.len() as u64;
            }
        }
        pools.into_values().collect()
    }

    /// Sessions that people look after: not the node's own, for channels.
    fn shown(&self) -> impl Iterator<Item = &ExecutorSessionState> {
        self.sessions.values().filter(|session| !session.is_of_channels())
    }

    pub(super) fn gauges(&mut self, now_ms: i64) {
        let waiting: usize = self.dispatch.waiting().map(|(_, runs)| runs).sum();
        let running: usize = self.sessions.values().map(|s| s.executor.running.len()).sum();
        metrics::gauge!("dispatch_queue_lag").set(waiting as f64);
        metrics::gauge!("campanile_attempts_running").set(running as f64);
        let (stopping, overdue) =
            self.sessions.values().map(|s| s.stopping(now_ms)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        metrics::gauge!("campanile_attempts_stopping").set(stopping as f64);
        metrics::gauge!("campanile_attempts_stop_overdue").set(overdue as f64);
        metrics::gauge!("campanile_executors").set(self.shown().count() as f64);
        for state in ExecutorState::ALL {
            let sessions = self.shown().filter(|session| session.state() == *state).count();
            metrics::gauge!("campanile_executor_sessions", "state" => state.as_str()).set(sessions as f64);
        }
        if now_ms >= self.pools_shown_ms + POOLS_SHOWN_EVERY_MS {
            self.pools_shown_ms = now_ms;
            shares::pools().look(self.levels(now_ms));
        }
    }

    /// Each pool with what it has of runs, and the levels of [`shares::pools`].
    fn levels(&self, now_ms: i64) -> Vec<(Text, u64, Levels)> {
        // Executors, slots, credit, running, waiting.
        let mut pools: HashMap<&str, [u64; 5]> = HashMap::new();
        for (pool, waiting) in self.dispatch.waiting().filter(|(name, _)| *name != CHANNEL_POOL) {
            pools.entry(pool).or_default()[4] += waiting as u64;
        }
        for session in self.shown() {
            let here = u64::from(session.outbox.is_some());
            let slots = here * u64::from(session.executor.slots());
            let (credit, running) = (session.credit_left(now_ms), session.executor.running.len() as u64);
            for pool in session.executor.register.iter().flat_map(|register| &register.pools) {
                let of = pools.entry(pool).or_default();
                for (sum, more) in of.iter_mut().zip([here, slots, u64::from(credit), running]) {
                    *sum += more;
                }
            }
        }
        let levels = pools
            .into_iter()
            .map(|(pool, of)| (pool.into(), of[3] + of[4], of.into_iter().map(|value| Some(value as f64)).collect()));
        levels.collect()
    }

    /// A run that waits for no more than a slot, as it seems, waits because the node cannot keep up.
    pub(super) fn why_degraded(&self, deps: &PoolDeps, run: RunId, why: &str) -> Option<String> {
        let (WaitCode::BackfillYields | WaitCode::NoCredit, _) = WaitCode::of(why)? else { return None };
        let level = deps.client.projector.degradation.level();
        let (is_back, priority) = self.quotas.lane_of(run).or_else(|| self.dispatch.lane_of(run))?;
        let what = if is_back && level >= DegradationLevel::BackfillsStop {
            "backfills start no runs"
        } else if priority < USUAL_PRIORITY && level >= DegradationLevel::LowPriorityWaits {
            "runs of a priority below 100 wait"
        } else {
            return None;
        };
        Some(WaitCode::NodeDegraded.because(format!("the node cannot keep up ({level}): {what}")))
    }

    /// Why a run has no executor yet, beginning with a code; None: it is not here.
    pub(super) fn why(&self, deps: &PoolDeps, run: RunId, pool: &str) -> Option<String> {
        if deps.tenants.system_paused.load(Ordering::Relaxed) && self.dispatch.waits(run) {
            return Some(WaitCode::TenantPaused.because(PAUSED));
        }
        let (kind, waiting) = match self.dispatch.find(run, pool)? {
            Whereabouts::Misfit(waiting) => {
                let what = match &waiting.need {
                    Need::Handler(name) => format!("has the handler '{name}'"),
                    need @ (Need::Command | Need::Http) => does(need.kind()).to_owned(),
                };
                let why = format!("no executor of pool '{pool}' {what} and is large enough");
                return Some(WaitCode::NoFit.because(why));
            }
            Whereabouts::Bound => {
                return Some(WaitCode::Binding.because("an executor was chosen; the attempt is being started"));
            }
            Whereabouts::Queued { kind, among } => (kind, among),
        };
        let now = deps.time.boot_ms();
        let in_pool = |s: &&ExecutorSessionState| filter::is_in(&s.executor, pool) && s.outbox.is_some();
        let class = Class { pool: pool.into(), kind };
        let executors = self.sessions.values().filter(in_pool).count();
        let credit: u32 = self.sessions.values().filter(in_pool).map(|s| s.credit_left(now)).sum();
        Some(if executors == 0 {
            WaitCode::NoExecutor.because(format!("no executor of pool '{pool}' is connected; {waiting} runs wait"))
        } else if !self.sessions.values().filter(in_pool).any(|s| filter::serves(&s.executor, &class)) {
            WaitCode::NoFit.because(format!("no executor of pool '{pool}' {}; {waiting} runs wait", does(kind)))
        } else {
            WaitCode::NoCredit.because(format!(
                "{executors} executors of pool '{pool}' have {credit} free slots; {waiting} runs wait"
            ))
        })
    }
}
