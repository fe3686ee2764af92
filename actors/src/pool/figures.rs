//! What the pool tells of itself: its pools for people, and gauges.

use super::{PoolState, queue::Queue};
use crate::directory::Directory;
use campanile_schema::view::PoolView;
use std::collections::BTreeMap;

impl PoolState {
    pub(super) fn pools(&self, directory: &Directory) -> Vec<PoolView> {
        let now = directory.time.boot_ms();
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
}
