//! What others can ask the pool: its pools, why a run waits, and gauges.

use super::{PoolDeps, PoolState, session::ExecutorSessionState};
use crate::quota::PAUSED;
use campanile_core::{
    dispatch::{Class, Whereabouts, filter},
    job::Need,
};
use campanile_schema::{ids::RunId, kinds::ActionKind, view::PoolView, wait::WaitCode};
use std::{collections::BTreeMap, sync::atomic::Ordering};

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
        for (name, waiting) in self.dispatch.waiting() {
            pools.entry(name.to_owned()).or_insert_with(|| empty(name)).waiting += waiting as u64;
        }
        for session in self.sessions.values() {
            for name in session.executor.register.iter().flat_map(|r| &r.pools) {
                let pool = pools.entry(name.clone()).or_insert_with(|| empty(name));
                pool.executors += u32::from(session.outbox.is_some());
                pool.credit += session.credit_left(now);
                pool.running += session.executor.running.len() as u64;
            }
        }
        pools.into_values().collect()
    }

    pub(super) fn gauges(&self, now_ms: i64) {
        let waiting: usize = self.dispatch.waiting().map(|(_, runs)| runs).sum();
        let running: usize = self.sessions.values().map(|s| s.executor.running.len()).sum();
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
