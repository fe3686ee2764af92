//! What a node knows of tenants without asking: current counts and limits, which shards, quota actors and the pool
//! share. A shard therefore notices at once that a tenant's queue is full.

use crate::{lending::Counts, measure::shares::Levels};
use campanile_schema::{
    channel::{is_hidden, is_of_channels},
    ids::{ShardId, shard_of_slot, slot_of},
    limits,
    stored::{TenantRecord, target_of},
    text::Text,
};
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering},
};

/// Live counts and limits of a tenant, shared by shards (admission), its quota actor and the pool.
#[derive(Debug, Default)]
pub struct TenantGauge {
    pub jobs: AtomicI64,
    /// On other nodes, as far as is known.
    pub jobs_elsewhere: AtomicI64,
    /// Runs that wait for a permit or an executor.
    pub waiting: AtomicI64,
    /// On other nodes, as far as is known.
    pub waiting_elsewhere: AtomicI64,
    /// Runs that hold a permit.
    pub running: AtomicI64,
    pub max_jobs: AtomicU64,
    pub max_waiting: AtomicU64,
    pub max_running: AtomicU64,
    pub paused: AtomicBool,
    /// Of a target: the number of the state of its breaker.
    pub breaker: AtomicU8,
}

impl TenantGauge {
    pub fn queue_full(&self) -> bool {
        let max = match self.max_waiting.load(Ordering::Relaxed) {
            0 => u64::from(limits::QUEUED_RUNS_PER_TENANT),
            n => n,
        };
        self.waiting.load(Ordering::Relaxed) + self.waiting_elsewhere.load(Ordering::Relaxed) >= max as i64
    }
    /// As many runs wait as messages of other jobs may add to: half of what callers may.
    pub fn queue_half(&self) -> bool {
        let max = match self.max_waiting.load(Ordering::Relaxed) {
            0 => u64::from(limits::QUEUED_RUNS_PER_TENANT),
            n => n,
        };
        let half = max.div_ceil(2) as i64;
        self.waiting.load(Ordering::Relaxed) + self.waiting_elsewhere.load(Ordering::Relaxed) >= half
    }
    /// Counts one more job, unless there are as many as there may be: shards make jobs side by side, so looking first and counting later
    /// would let too many through.
    pub fn count_job(&self) -> bool {
        let max = match self.max_jobs.load(Ordering::Relaxed) {
            0 => limits::JOBS_PER_TENANT,
            n => n,
        };
        let elsewhere = self.jobs_elsewhere.load(Ordering::Relaxed);
        let more = |jobs: i64| (jobs + elsewhere < max as i64).then_some(jobs + 1);
        self.jobs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
    pub fn set_elsewhere(&self, counts: Counts) {
        self.jobs_elsewhere.store(counts.jobs as i64, Ordering::Relaxed);
        self.waiting_elsewhere.store(counts.waiting as i64, Ordering::Relaxed);
    }
    pub fn set_limits(&self, tenant: &TenantRecord) {
        self.max_jobs.store(tenant.max_jobs, Ordering::Relaxed);
        self.max_waiting.store(u64::from(tenant.max_queued_runs), Ordering::Relaxed);
        self.max_running.store(u64::from(tenant.max_concurrent_runs), Ordering::Relaxed);
    }
}

/// The gauges of all tenants.
#[derive(Debug, Default)]
pub struct TenantGauges {
    gauges: RwLock<HashMap<String, Arc<TenantGauge>>>,
    pub system_paused: AtomicBool,
}

impl TenantGauges {
    /// Counts and limits of a tenant; made when first seen.
    pub fn gauge(&self, tenant: &str) -> Arc<TenantGauge> {
        if let Some(known) = self.gauges.read().get(tenant) {
            return known.clone();
        }
        self.gauges.write().entry_ref(tenant).or_default().clone()
    }

    /// Jobs of this name have come or gone. What only nodes make is no job of a tenant's.
    pub fn count_jobs(&self, tenant: &str, name: &str, by: i64) {
        if !is_hidden(name) {
            self.gauge(tenant).jobs.fetch_add(by, Ordering::Relaxed);
        }
    }

    /// Those of a tenant that was seen before.
    pub fn known(&self, tenant: &str) -> Option<Arc<TenantGauge>> {
        self.gauges.read().get(tenant).cloned()
    }

    /// What this node has of a tenant.
    pub fn counts(&self, tenant: &str) -> Counts {
        let count = |n: &AtomicI64| n.load(Ordering::Relaxed).max(0) as u64;
        self.known(tenant).map_or_else(Counts::default, |gauge| Counts {
            jobs: count(&gauge.jobs),
            running: count(&gauge.running),
            waiting: count(&gauge.waiting),
            wanted: 0,
            breaker: gauge.breaker.load(Ordering::Relaxed),
        })
    }

    /// What this node has of each tenant, and the tenants' limits, for the metrics.
    pub fn levels(&self) -> Vec<(Text, u64, Levels)> {
        let gauges = self.gauges.read();
        let tenants = gauges.iter().filter(|(name, _)| target_of(name).is_none() && !is_of_channels(name));
        let levels = tenants.map(|(name, gauge)| {
            let count = |n: &AtomicI64| n.load(Ordering::Relaxed).max(0) as u64;
            // 0 = there is no limit.
            let limit = |n: &AtomicU64| Some(n.load(Ordering::Relaxed)).filter(|n| *n > 0).map(|n| n as f64);
            let (jobs, running, waiting) = (count(&gauge.jobs), count(&gauge.running), count(&gauge.waiting));
            let levels = vec![
                Some(jobs as f64),
                limit(&gauge.max_jobs),
                Some(running as f64),
                limit(&gauge.max_running),
                Some(waiting as f64),
                limit(&gauge.max_waiting),
            ];
            (name.as_str().into(), running + waiting, levels)
        });
        levels.collect()
    }

    /// Names of tenants, and keys of targets. What channels have is no tenant's.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.gauges.read().keys().filter(|name| !is_of_channels(name)).cloned().collect();
        names.sort_unstable();
        names
    }
}

/// Where the quota of a tenant is kept.
pub(crate) fn home_of(tenant: &str, shards: u16) -> ShardId {
    shard_of_slot(slot_of(tenant, ""), shards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_of_its_own_a_tenant_may_queue_what_the_node_allows() {
        let gauge = TenantGauge::default();
        let full = |waiting: i64| {
            gauge.waiting.store(waiting, Ordering::Relaxed);
            gauge.queue_full()
        };
        let most = i64::from(limits::QUEUED_RUNS_PER_TENANT);
        assert_eq!([full(most - 1), full(most)], [false, true]);
        gauge.max_waiting.store(3, Ordering::Relaxed);
        assert_eq!([full(2), full(3)], [false, true]);
    }

    #[test]
    fn not_one_job_too_many_is_counted_although_many_count() {
        let gauge = TenantGauge::default();
        gauge.max_jobs.store(1_000, Ordering::Relaxed);
        gauge.jobs_elsewhere.store(10, Ordering::Relaxed);
        let counted = || (0..500).filter(|_| gauge.count_job()).count();
        let all: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(counted)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((all, gauge.jobs.load(Ordering::Relaxed)), (990, 990));
    }
}
