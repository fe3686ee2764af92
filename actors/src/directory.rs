//! Where everybody is: shards, the pool, the journal, the projector, and the shared gauges of tenants
//! that let a shard see a full queue without asking.

use crate::{
    journal::JournalHandle,
    messages::{PoolMsg, ShardMsg},
    ports::{Secrets, Snapshots, Views},
    projector::ProjectorHandle,
    time::NodeTime,
};
use campanile_schema::{
    ids::{ClusterId, Epoch, JobId, RunId, ShardId},
    limits,
    stored::TenantRecord,
};
use hashbrown::HashMap;
use parking_lot::RwLock;
use ractor::ActorRef;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
};

/// Live counts and limits of a tenant, shared by shards (admission), its quota actor and the pool.
#[derive(Debug, Default)]
pub struct TenantGauge {
    pub jobs: AtomicI64,
    /// Runs that wait for a permit or an executor.
    pub waiting: AtomicI64,
    /// Runs that hold a permit.
    pub running: AtomicI64,
    pub max_jobs: AtomicU64,
    pub max_waiting: AtomicU64,
    pub paused: AtomicBool,
}

impl TenantGauge {
    pub fn queue_full(&self) -> bool {
        let max = match self.max_waiting.load(Ordering::Relaxed) {
            0 => u64::from(limits::QUEUED_RUNS_PER_TENANT),
            n => n,
        };
        self.waiting.load(Ordering::Relaxed) >= max as i64
    }
    pub fn jobs_full(&self) -> bool {
        let max = match self.max_jobs.load(Ordering::Relaxed) {
            0 => limits::JOBS_PER_TENANT,
            n => n,
        };
        self.jobs.load(Ordering::Relaxed) >= max as i64
    }
    pub fn set_limits(&self, tenant: &TenantRecord) {
        self.max_jobs.store(tenant.max_jobs, Ordering::Relaxed);
        self.max_waiting.store(u64::from(tenant.max_queued_runs), Ordering::Relaxed);
    }
}

/// What is known of tenants without asking.
#[derive(Debug, Default)]
pub struct Tenants {
    gauges: RwLock<HashMap<String, Arc<TenantGauge>>>,
    pub system_paused: AtomicBool,
}

impl Tenants {
    /// Counts and limits of a tenant; made when first seen.
    pub fn gauge(&self, tenant: &str) -> Arc<TenantGauge> {
        if let Some(known) = self.gauges.read().get(tenant) {
            return known.clone();
        }
        self.gauges.write().entry_ref(tenant).or_default().clone()
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.gauges.read().keys().cloned().collect();
        names.sort_unstable();
        names
    }
}

/// See the module's text. One per session (a restart in place makes a new one).
pub struct Directory {
    pub node: Arc<str>,
    pub cluster_id: ClusterId,
    pub epoch: Epoch,
    pub shards: u16,
    pub tzdb: &'static str,
    pub time: Arc<NodeTime>,
    pub journal: JournalHandle,
    pub projector: ProjectorHandle,
    pub views: Arc<dyn Views>,
    pub snapshots: Arc<dyn Snapshots>,
    pub secrets: Arc<dyn Secrets>,
    /// Next wake per shard, ms; the tick looks here before it wakes a shard.
    pub wakes: Vec<AtomicI64>,
    /// Commands handed to each shard and not yet taken; bounds its mailbox.
    pub mailbox: Vec<AtomicI64>,
    shard_refs: OnceLock<Vec<ActorRef<ShardMsg>>>,
    pool: OnceLock<ActorRef<PoolMsg>>,
    pub tenants: Arc<Tenants>,
    pub draining: AtomicBool,
    /// Shards that have told quotas and pool all that they brought with them.
    shards_up: AtomicU64,
}

impl Directory {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        node: &str,
        cluster_id: ClusterId,
        epoch: Epoch,
        shards: u16,
        time: Arc<NodeTime>,
        journal: JournalHandle,
        projector: ProjectorHandle,
        views: Arc<dyn Views>,
        snapshots: Arc<dyn Snapshots>,
        secrets: Arc<dyn Secrets>,
    ) -> Arc<Self> {
        Arc::new(Self {
            node: node.into(),
            cluster_id,
            epoch,
            shards,
            tzdb: campanile_core::cron::tzdb_version(),
            time,
            journal,
            projector,
            views,
            snapshots,
            secrets,
            wakes: (0..shards).map(|_| AtomicI64::new(i64::MAX)).collect(),
            mailbox: (0..shards).map(|_| AtomicI64::new(0)).collect(),
            shard_refs: OnceLock::new(),
            pool: OnceLock::new(),
            tenants: Arc::default(),
            draining: AtomicBool::new(false),
            shards_up: AtomicU64::new(0),
        })
    }

    pub fn set_shards(&self, refs: Vec<ActorRef<ShardMsg>>) {
        // Set once per session, at its start.
        let _ = self.shard_refs.set(refs);
    }
    pub fn set_pool(&self, pool: ActorRef<PoolMsg>) {
        let _ = self.pool.set(pool);
    }
    pub fn shard_list(&self) -> &[ActorRef<ShardMsg>] {
        self.shard_refs.get().map_or(&[], Vec::as_slice)
    }
    pub fn shard(&self, shard: ShardId) -> Option<&ActorRef<ShardMsg>> {
        self.shard_list().get(usize::from(shard.0))
    }
    pub fn shard_of_job(&self, job: JobId) -> Option<&ActorRef<ShardMsg>> {
        self.shard(job.shard(self.shards))
    }
    pub fn shard_of_run(&self, run: RunId) -> Option<&ActorRef<ShardMsg>> {
        self.shard(run.shard(self.shards))
    }
    /// A shard has sent all that it brought with it.
    pub fn shard_is_up(&self) {
        self.shards_up.fetch_add(1, Ordering::AcqRel);
        // Behind the last of all that, permits may be lent.
        self.tick_quotas();
    }
    /// Lets quotas grant what may go now; not before they know all limits, pauses and permits in use.
    pub fn tick_quotas(&self) {
        if self.shards_up.load(Ordering::Acquire) >= u64::from(self.shards) {
            self.to_pool(PoolMsg::QuotaTick);
        }
    }
    /// Sends to a shard without waiting; a stopping node loses nothing by it, since nothing was promised.
    pub fn to_shard(&self, shard: ShardId, message: ShardMsg) {
        if let Some(actor) = self.shard(shard) {
            let _ = actor.cast(message);
        }
    }
    pub fn to_pool(&self, message: PoolMsg) {
        if let Some(pool) = self.pool.get() {
            let _ = pool.cast(message);
        }
    }

    /// See [`Tenants::gauge`].
    pub fn gauge(&self, tenant: &str) -> Arc<TenantGauge> {
        self.tenants.gauge(tenant)
    }

    /// Queues are so full that callers must wait.
    pub fn overloaded(&self, shard: ShardId) -> bool {
        self.mailbox[usize::from(shard.0)].load(Ordering::Relaxed) > limits::SHARD_MAILBOX as i64
            || self.journal.is_full()
            || self.projector.is_full()
    }

    /// Ends every actor of this session; nothing more is decided.
    pub fn stop_actors(&self) {
        for shard in self.shard_list() {
            shard.stop(None);
        }
        if let Some(pool) = self.pool.get() {
            pool.stop(None);
        }
    }
}
