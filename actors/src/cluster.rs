//! Starts a session of a node of a cluster. The session owns no shard at first. The ownership protocol takes shards and
//! gives them away ([`crate::owner`]); the actors that run on them are the same as on a single node.

use crate::{
    calendars,
    calls::Peers,
    cluster_events::ClusterEventLog,
    identity::Identity,
    journal::JournalHandle,
    maintenance,
    owner::{
        ClusterMember, InUse, OwnerHandle, OwnerParts,
        keeper::{ShardKeeper, ShardKeeperParts},
        lanes::{self, LaneOptions},
    },
    pauses::carry,
    pool::PoolActor,
    projector::{OnFailure, ProjectorHandle},
    scheduler::Scheduler,
    session::{self, NodeSession, Ticker},
    shard_map::Membership,
    shared_store::SharedStore,
    time::{AgreedTime, NodeTime},
    wiring::{Wiring, WiringParts},
};
use campanile_core::{clock::Saved, cron::tzdb_version, ownership::Settings};
use campanile_ports::{Clock, Secrets, StoreError, spans::Tracer};
use campanile_schema::{
    cluster::ClusterEventKind,
    format::{FormatRow, Formats},
};
use ractor::Actor;
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};

/// From one apply of the read model to the next. Each costs the store a request for every shard that has something to show, and one for every four
/// of them, however much that is. With the time that an apply takes history is to lag by less than a second.
const SHOWN_EACH: Duration = Duration::from_millis(500);
/// Reads of all shard rows for which everybody must know newer formats before they are written: some ten seconds.
const FORMATS_SETTLE: u64 = 10;

/// What a session is made of.
pub struct ClusterParts {
    pub node: String,
    pub format: FormatRow,
    pub settings: Settings,
    pub store: SharedStore,
    pub secrets: Arc<dyn Secrets>,
    pub clock: Arc<dyn Clock>,
    /// What most nodes' clocks say.
    pub agreed: AgreedTime,
    /// What this build knows.
    pub reads: Formats,
    pub boot_id: String,
    /// Clock reading of an earlier start.
    pub saved_clock: Option<Saved>,
    /// From one round of rows to the next at the least, microseconds.
    pub linger_us: u64,
    /// Living members, this node with its current session among them.
    pub members: watch::Receiver<Arc<Vec<ClusterMember>>>,
    pub peers: Arc<dyn Peers>,
    pub cluster_events: Arc<ClusterEventLog>,
    pub tracer: Tracer,
    /// Told when the session is over: a new one is to be started.
    pub failures: mpsc::UnboundedSender<StoreError>,
}

/// Starts a session. It serves nothing until the protocol says so.
pub async fn start(parts: ClusterParts) -> Result<NodeSession, StoreError> {
    let threads = |e: std::io::Error| StoreError::Unavailable(format!("no thread: {e}"));
    let SharedStore { leases, snapshots, views } = parts.store.clone();
    let (id, shards, lane_count) = (parts.settings.session, parts.format.shards, parts.settings.lanes);
    let saved = parts.saved_clock.as_ref();
    let time = NodeTime::start(parts.clock.clone(), &parts.boot_id, None, saved, parts.agreed);
    // A store that is away for a while costs the session nothing: what is not shown yet is shown later.
    let projector = ProjectorHandle::start(views.clone(), SHOWN_EACH, OnFailure::TryAgain, parts.failures.clone())
        .map_err(threads)?;
    let (journal, to_lanes, frames) = JournalHandle::new(id);
    let (to_keeper, orders) = mpsc::unbounded_channel();
    let formats_settle = Duration::from_millis(parts.settings.reconcile_ms * FORMATS_SETTLE);
    let owner_parts =
        OwnerParts { settings: parts.settings, shards, clock: parts.clock, store: leases, to_lanes, to_keeper };
    let owner = OwnerHandle::start(owner_parts, parts.failures.clone()).map_err(threads)?;
    let options = LaneOptions { session: id, lanes: lane_count, linger_us: parts.linger_us };
    lanes::start(&journal, frames, owner.clone(), projector.clone(), options, parts.failures.clone())
        .map_err(threads)?;
    let wiring = Wiring::new(WiringParts {
        identity: Identity {
            node: parts.node.into(),
            cluster_id: parts.format.cluster_id,
            session: id,
            shards,
            tzdb: tzdb_version(),
            time,
            tracer: parts.tracer,
        },
        journal,
        projector,
        views,
        snapshots,
        secrets: parts.secrets,
        in_use: Arc::new(InUse::new(parts.format.formats())),
        membership: Some(Membership { owner: owner.clone(), peers: parts.peers }),
    });
    metrics::gauge!("retry_queue_depth").set(0.0);
    let (pool, _) = Actor::spawn(None, PoolActor, wiring.pool_deps()).await.map_err(session::spawned)?;
    let handles = wiring.handles.clone();
    handles.pool.set(pool);
    let keeper = ShardKeeper::new(ShardKeeperParts {
        deps: wiring.shard_deps,
        health: handles.health.clone(),
        owner,
        store: parts.store,
        orders,
        members: parts.members,
        cluster_events: parts.cluster_events.clone(),
        reads: parts.reads,
        formats_settle,
        failures: parts.failures,
    });
    tracing::info!(session = id.0, shards, "session of a cluster started");
    parts.cluster_events.note(ClusterEventKind::SessionBegun, None, None, Some(format!("session {}", id.0)));
    let tasks = vec![
        tokio::spawn(Ticker::new(&handles).run()),
        tokio::spawn(maintenance::gauges(handles.client.clone(), handles.tenants.clone())),
        tokio::spawn(carry::run(handles.client.clone(), wiring.pauses)),
        tokio::spawn(calendars::carry::run(handles.client.clone(), wiring.calendars)),
        tokio::spawn(Scheduler::of(handles.clone()).drive_bulks(wiring.bulks)),
        tokio::spawn(keeper.run()),
    ];
    Ok(NodeSession::of_cluster(handles, tasks))
}
