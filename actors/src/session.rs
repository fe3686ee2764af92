//! Starts and ends the session of a single node, which lasts from the opening of the store until the node leaves it.
//! Recovery comes first (snapshots, then the journal, then the read model), then the actors, then the ticks.

use crate::{
    calendars, disk_space,
    handles::SessionHandles,
    health::Health,
    identity::Identity,
    journal::{JournalHandle, JournalOptions},
    maintenance::{self, LocalStore},
    messages::{PoolMsg, ShardMsg},
    owner::InUse,
    pauses::carry,
    pool::PoolActor,
    pool_handle::PoolHandle,
    projector::{OnFailure, ProjectorHandle, project_now},
    scheduler::Scheduler,
    shard::{ShardActor, ShardStart, load::Loaded},
    shard_map::ShardMap,
    time::{AgreedTime, NodeTime},
    waiting_results::WaitingResults,
    wiring::{Wiring, WiringParts},
};
use campanile_core::{clock::Saved, cron::tzdb_version};
use campanile_ports::{Clock, Journal, LocalViews, Opened, Position, Secrets, Snapshots, StoreError, spans::Tracer};
use campanile_schema::{
    frame::{Frame, decode_batch},
    ids::{Epoch, ShardId},
    limits,
};
use ractor::Actor;
use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, sync::oneshot, task::JoinHandle};

/// Bytes of journal read at once during recovery.
const REPLAY_BYTES: usize = 8 << 20;
/// Batches of the journal that go to the read model together while there is much to do.
const PROJECTED_BATCHES: u64 = 8;
/// Ticks of 10 ms after which the quotas are asked for permits, the pool checks its leases, and a shard does its housekeeping.
const QUOTA_TICKS: u64 = 10;
const POOL_TICKS: u64 = 25;
const HOUSEKEEP_TICKS: u64 = 100;

/// What a session is made of.
pub struct SessionParts {
    pub node: String,
    pub opened: Opened,
    pub journal: Arc<dyn Journal>,
    pub snapshots: Arc<dyn Snapshots>,
    pub views: Arc<dyn LocalViews>,
    pub secrets: Arc<dyn Secrets>,
    pub clock: Arc<dyn Clock>,
    pub boot_id: String,
    /// Clock reading of an earlier start.
    pub saved_clock: Option<Saved>,
    /// See [`JournalOptions::linger_us`].
    pub linger_us: u64,
    pub retention: maintenance::Retention,
    pub tracer: Tracer,
    /// Told once when the journal or the read model cannot be written.
    pub failures: mpsc::UnboundedSender<StoreError>,
}

/// A running session, of a node alone or of one of a cluster.
pub struct NodeSession {
    pub handles: Arc<SessionHandles>,
    /// None: the store is shared.
    #[cfg(feature = "faults")]
    store: Option<LocalStore>,
    tasks: Vec<JoinHandle<()>>,
}

/// Recovers and starts.
pub async fn start(parts: SessionParts) -> Result<NodeSession, StoreError> {
    let began = Instant::now();
    let shards = parts.opened.format.shards;
    let mut loaded = Vec::with_capacity(usize::from(shards));
    for shard in 0..shards {
        loaded.push(Loaded::from_snapshot(&*parts.snapshots, ShardId(shard)).await?);
    }
    let last = replay(&parts, &mut loaded).await?;
    for shard in &mut loaded {
        shard.settle(last);
    }
    let frames: u64 = loaded.iter().map(Loaded::replayed).sum();
    let last_us = loaded.iter().map(Loaded::last_hlc).max().filter(|h| *h > 0).map(|h| h as i64);
    let time = NodeTime::start(
        parts.clock.clone(),
        &parts.boot_id,
        last_us,
        parts.saved_clock.as_ref(),
        AgreedTime::default(),
    );
    let threads = |e: std::io::Error| StoreError::Unavailable(format!("no thread: {e}"));
    let options = JournalOptions { session: parts.opened.session, linger_us: parts.linger_us };
    let gather = Duration::from_micros(parts.linger_us * PROJECTED_BATCHES);
    let projector = ProjectorHandle::start(parts.views.clone(), gather, OnFailure::EndSession, parts.failures.clone())
        .map_err(threads)?;
    let journal = JournalHandle::start(parts.journal.clone(), projector.clone(), options, parts.failures.clone())
        .map_err(threads)?;
    let wiring = Wiring::new(WiringParts {
        identity: Identity {
            node: parts.node.into(),
            cluster_id: parts.opened.format.cluster_id,
            session: parts.opened.session,
            shards,
            tzdb: tzdb_version(),
            time,
            tracer: parts.tracer,
        },
        journal,
        projector,
        views: parts.views.clone(),
        snapshots: parts.snapshots.clone(),
        secrets: parts.secrets.clone(),
        in_use: Arc::new(InUse::new(parts.opened.format.formats())),
        membership: None,
    });
    // The shards add what they bring.
    metrics::gauge!("retry_queue_depth").set(0.0);
    let (pool, _) = Actor::spawn(None, PoolActor, wiring.pool_deps()).await.map_err(spawned)?;
    let handles = wiring.handles.clone();
    handles.pool.set(pool);
    let epoch = Epoch(parts.opened.session.0);
    handles.pool.expect_shards(loaded.len());
    for loaded in loaded {
        let start = ShardStart { deps: wiring.shard_deps.clone(), epoch, loaded };
        Actor::spawn(None, ShardActor, start).await.map_err(spawned)?;
    }
    tracing::info!(
        session = parts.opened.session.0,
        shards,
        frames,
        seconds = began.elapsed().as_secs_f64(),
        "session started"
    );
    let store = LocalStore { journal: parts.journal, views: parts.views };
    let ticker = Ticker::new(&handles);
    let tasks = vec![
        tokio::spawn(ticker.run()),
        tokio::spawn(maintenance::gauges(handles.client.clone(), handles.tenants.clone())),
        tokio::spawn(carry::run(handles.client.clone(), wiring.pauses)),
        tokio::spawn(calendars::carry::run(handles.client.clone(), wiring.calendars)),
        tokio::spawn(Scheduler::of(handles.clone()).drive_bulks(wiring.bulks)),
        tokio::spawn(maintenance::run(
            handles.identity.clone(),
            handles.client.clone(),
            store.clone(),
            parts.retention,
        )),
        tokio::spawn(disk_space::watch(handles.health.clone(), store.views.clone(), parts.retention)),
    ];
    Ok(NodeSession {
        handles,
        #[cfg(feature = "faults")]
        store: Some(store),
        tasks,
    })
}

pub(crate) fn spawned(error: ractor::SpawnErr) -> StoreError {
    StoreError::Unavailable(format!("an actor did not start: {error}"))
}

/// Applies the journal to the shards, and to the read model what its last flush does not cover. Gives the last position
/// that was read.
async fn replay(parts: &SessionParts, loaded: &mut [Loaded]) -> Result<Position, StoreError> {
    let shown = parts.views.flushed();
    let mut after = loaded.iter().map(|l| l.replay_after).min().unwrap_or_default().min(shown);
    loop {
        let batches = parts.journal.read_after(after, REPLAY_BYTES).await?;
        let Some((last, _)) = batches.last() else { return Ok(after) };
        after = *last;
        let mut unseen: Vec<(Position, Frame)> = Vec::new();
        for (position, bytes) in &batches {
            let frames = decode_batch(bytes)
                .map_err(|e| StoreError::Corrupt(format!("journal row {position:?} cannot be read: {e}")))?;
            for frame in frames {
                let shard = loaded.get_mut(usize::from(frame.shard.0)).ok_or_else(|| {
                    StoreError::Corrupt(format!(
                        "journal row {position:?} names shard {} of {}",
                        frame.shard, parts.opened.format.shards
                    ))
                })?;
                shard.replay(&frame)?;
                if *position > shown {
                    unseen.push((*position, frame));
                }
            }
        }
        if !unseen.is_empty() {
            project_now(&*parts.views, &unseen).await?;
        }
    }
}

/// The node's tick, at the beginning of each slot of the timing wheels (a later moment would delay due jobs by one more slot). It wakes only
/// shards with something due.
pub(crate) struct Ticker {
    time: Arc<NodeTime>,
    shards: Arc<ShardMap>,
    waiting_results: Arc<WaitingResults>,
    pool: Arc<PoolHandle>,
    health: Arc<Health>,
    projector: ProjectorHandle,
}

impl Ticker {
    pub fn new(handles: &SessionHandles) -> Self {
        Self {
            time: handles.identity.time.clone(),
            shards: handles.shards.clone(),
            waiting_results: handles.waiting_results.clone(),
            pool: handles.pool.clone(),
            health: handles.health.clone(),
            projector: handles.client.projector.clone(),
        }
    }

    /// Until it is aborted.
    pub async fn run(self) {
        let mut ticks: u64 = 0;
        let mut acted = false;
        loop {
            const SLOT_US: i64 = limits::WHEEL_SLOT_MS * 1000;
            let left_us = SLOT_US - self.time.now_us().rem_euclid(SLOT_US);
            tokio::time::sleep(Duration::from_micros(left_us.unsigned_abs())).await;
            ticks += 1;
            let acts = self.shards.may_act();
            if acted && !acts {
                tracing::warn!("the lease has run out: nothing is decided until the store answers again");
                self.pool.send(PoolMsg::LeaseLost);
            }
            acted = acts;
            let fires = self.time.tick() && acts;
            let now = self.time.now_ms();
            let mut results = self.waiting_results.take();
            for (shard, wake) in self.shards.wakes() {
                if fires && wake.load(Ordering::Relaxed) <= now && !self.health.is_draining() {
                    // The shard publishes its next wake when it has looked.
                    wake.store(i64::MAX, Ordering::Relaxed);
                    self.shards.send(shard, ShardMsg::Tick(results.remove(&shard).unwrap_or_default()));
                }
                if u64::from(shard.0) % HOUSEKEEP_TICKS == ticks % HOUSEKEEP_TICKS {
                    self.shards.send(shard, ShardMsg::Housekeep);
                }
            }
            for (shard, results) in results {
                self.shards.send(shard, ShardMsg::Finish(results));
            }
            if ticks.is_multiple_of(QUOTA_TICKS) {
                self.projector.look_at_backlog();
                self.pool.tick_quotas();
            }
            if ticks.is_multiple_of(POOL_TICKS) {
                self.pool.send(PoolMsg::Tick);
            }
        }
    }
}

impl NodeSession {
    pub(crate) fn of_cluster(handles: Arc<SessionHandles>, tasks: Vec<JoinHandle<()>>) -> Self {
        Self {
            handles,
            #[cfg(feature = "faults")]
            store: None,
            tasks,
        }
    }

    /// Ends in order: the session fires nothing more, writes the snapshots that are missing, and stops its actors. Everything durable
    /// stays. A node of a cluster gives its shards away before that ([`NodeSession::hand_over`]).
    pub async fn drain(self) {
        self.handles.health.drain();
        self.snapshot_all().await;
        self.stop();
    }

    /// Gives all shards to other nodes: those that live, as soon as membership tells everybody that this one leaves. Returns when
    /// nothing is owned any more, or after `limit`.
    pub async fn hand_over(&self, limit: Duration) {
        let Some(membership) = self.handles.shards.membership() else { return };
        let until = tokio::time::Instant::now() + limit;
        self.handles.health.leave();
        // So that the others have little to read.
        self.snapshot_all().await;
        membership.owner.drain();
        while !membership.owner.is_over() && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn snapshot_all(&self) {
        let mut flushes = Vec::new();
        for shard in self.handles.shards.actors() {
            let (port, done) = oneshot::channel();
            if shard.cast(ShardMsg::Flush(port)).is_ok() {
                flushes.push(done);
            }
        }
        // Snapshots only shorten the next start; a slow disk must not hold the stop.
        let all = async {
            for done in flushes {
                let _ = done.await;
            }
        };
        if tokio::time::timeout(Duration::from_millis(1_200), all).await.is_err() {
            tracing::warn!("not every shard was snapshotted in time; the next start replays more");
        }
    }

    /// One round of what is otherwise done every [`maintenance::ROUND_SECONDS`]: for proofs that cannot wait for it.
    #[cfg(feature = "faults")]
    pub fn maintain(&self) -> impl Future<Output = Result<(), StoreError>> + Send + 'static {
        let (identity, client) = (self.handles.identity.clone(), self.handles.client.clone());
        let store = self.store.clone();
        async move {
            match store {
                Some(store) => {
                    maintenance::round(&identity, &client, &store, maintenance::Retention::default(), true).await
                }
                None => Ok(()),
            }
        }
    }

    /// Ends at once. Nothing that is not durable was acknowledged.
    pub fn stop(self) {
        for task in &self.tasks {
            task.abort();
        }
        if let Some(membership) = self.handles.shards.membership() {
            membership.owner.stop();
        }
        self.handles.stop_actors();
    }
}
