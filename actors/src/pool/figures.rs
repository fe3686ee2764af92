//! What others can ask the pool: its pools, why a run waits, and gauges.

use super::{
    PoolDeps, PoolState,
    class::{Class, Kind},
    queue::Queue,
    session::Session,
};
use crate::quota::PAUSED;
use campanile_core::job::Need;
use campanile_schema::{ids::RunId, view::PoolView, wait::WaitCode};
use std::{collections::BTreeMap, sync::atomic::Ordering};

impl PoolState {
    pub(super) fn pools(&self, deps: &PoolDeps) -> Vec<PoolView> {
        let now = deps.time.boot_ms();
        let mut pools: BTreeMap<String, PoolView> = BTreeMap::new();
        let empty = |name: &str| PoolView { name: name.to_owned(), executors: 0, credit: 0, running: 0, waiting: 0 };
        for (class, queue) in &self.queues {
            let name = class.pool.as_str();
            pools.entry(name.to_owned()).or_insert_with(|| empty(name)).waiting += queue.len() as u64;
        }
        for run in self.misfits.values() {
            pools.entry(run.pool.to_string()).or_insert_with(|| empty(&run.pool)).waiting += 1;
        }
        for session in self.sessions.values() {
            for name in session.register.iter().flat_map(|r| &r.pools) {
                let pool = pools.entry(name.clone()).or_insert_with(|| empty(name));
                pool.executors += u32::from(session.outbox.is_some());
                pool.credit += session.credit_left(now);
                pool.running += session.running.len() as u64;
            }
        }
        pools.into_values().collect()
    }

    pub(super) fn gauges(&self, now_ms: i64) {
        let waiting: usize = self.queues.values().map(Queue::len).sum::<usize>() + self.misfits.len();
        let running: usize = self.sessions.values().map(|s| s.running.len()).sum();
        metrics::gauge!("dispatch_queue_lag").set(waiting as f64);
        metrics::gauge!("campanile_attempts_running").set(running as f64);
        let (stopping, overdue) =
            self.sessions.values().map(|s| s.stopping(now_ms)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        metrics::gauge!("campanile_attempts_stopping").set(stopping as f64);
        metrics::gauge!("campanile_attempts_stop_overdue").set(overdue as f64);
        metrics::gauge!("campanile_executors").set(self.sessions.len() as f64);
    }

    /// Why a run has no executor yet, beginning with a code; None: it is not here.
    pub(super) fn why(&self, deps: &PoolDeps, run: RunId, pool: &str) -> Option<String> {
        let waits = || self.misfits.contains_key(&run) || self.queues.values().any(|queue| queue.contains(run));
        if deps.tenants.system_paused.load(Ordering::Relaxed) && waits() {
            return Some(WaitCode::TenantPaused.because(PAUSED));
        }
        if let Some(waiting) = self.misfits.get(&run) {
            let what = match &waiting.need {
                Need::Command => Kind::Commands.does().to_owned(),
                Need::Http => Kind::Http.does().to_owned(),
                Need::Handler(name) => format!("has the handler '{name}'"),
            };
            return Some(WaitCode::NoFit.because(format!("no executor of pool '{pool}' {what} and is large enough")));
        }
        if self.bound.contains_key(&run) {
            return Some(WaitCode::Binding.because("an executor was chosen; the attempt is being started"));
        }
        let (kind, queue) = Kind::ALL.into_iter().find_map(|kind| {
            let class = Class { pool: pool.into(), kind };
            self.queues.get(&class).filter(|q| q.contains(run)).map(|queue| (kind, queue))
        })?;
        let waiting = queue.len();
        let now = deps.time.boot_ms();
        let in_pool = |s: &&Session| s.is_in(pool) && s.outbox.is_some();
        let executors = self.sessions.values().filter(in_pool).count();
        let credit: u32 = self.sessions.values().filter(in_pool).map(|s| s.credit_left(now)).sum();
        Some(if executors == 0 {
            WaitCode::NoExecutor.because(format!("no executor of pool '{pool}' is connected; {waiting} runs wait"))
        } else if !self.sessions.values().filter(in_pool).any(|s| s.takes(kind)) {
            WaitCode::NoFit.because(format!("no executor of pool '{pool}' {}; {waiting} runs wait", kind.does()))
        } else {
            WaitCode::NoCredit.because(format!(
                "{executors} executors of pool '{pool}' have {credit} free slots; {waiting} runs wait"
            ))
        })
    }
}
