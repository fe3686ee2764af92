//! Joins a node to its cluster, from its configuration: the shared store, membership, and the connections to the other
//! nodes.

use crate::{
    config::Config,
    node::node_store::{self, ClusterOptions, Connect},
};
use campanile_actors::{cluster_events::ClusterEventLog, shared_store::SharedStore, time::AgreedTime};
use campanile_cluster::{
    admin::{self, ClusterAdmin},
    answering,
    gateway::{self, Gateway},
    membership::{self, Addresses, Me, Members, Membership},
    node_id,
    peers::GatewayPeers,
    self_announcer::{self, SelfAnnouncer, StoreRuntime},
};
use campanile_core::ownership::Settings;
use campanile_ports::{StoreError, clock::SystemClock, private, release};
use campanile_schema::ids::SessionId;
use campanile_security::secrets::KeyRing;
use campanile_store::cql::CqlStore;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;

/// Longest time in which a node that stops gives its shards away.
const DRAIN: Duration = Duration::from_secs(30);
/// Milliseconds between two reads of a session that is watched, and of all shard rows.
const WATCH_MS: u64 = 250;
const RECONCILE_MS: u64 = 1_000;
/// Milliseconds for which the row of a session that is over stays: no statement is late for so long.
const KEEP_ENDED_MS: u64 = 86_400_000;
/// Threads of the store's own runtime: what beats must not wait for what the node computes.
const STORE_THREADS: usize = 2;
const GENERATION_FILE: &str = "GENERATION";
/// Times that a node that starts asks a store that does not answer: both may start at once, and a store may be busy.
const STORE_TRIES: u32 = 30;
/// Between two of them.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Tries again while the store does not answer. What it refuses is told at once.
async fn patiently<T, F>(pause: Duration, mut connect: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    for _ in 1..STORE_TRIES {
        match connect().await {
            Err(StoreError::Unavailable(why)) => {
                tracing::warn!(why, "the store does not answer; it is asked again in a second");
                tokio::time::sleep(pause).await;
            }
            ended => return ended,
        }
    }
    connect().await
}

/// Connects to the store, then says that this node is there. Errors are sentences for the operator.
pub async fn join(config: &Config) -> Result<ClusterOptions, String> {
    let dir = PathBuf::from(&config.node.data_dir);
    let lock = node_store::lock(&dir)?;
    let cluster = &config.cluster;
    let keys = KeyRing::from_file(Path::new(&cluster.key_file))?;
    let options = config.cql().ok_or("a cluster needs a store that its nodes share: set cql.contact_points")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(STORE_THREADS)
        .thread_name("store")
        .enable_all()
        .build()
        .map_err(|e| format!("no threads for the store: {e}"))?;
    let connected = runtime.spawn(async move { patiently(STORE_PAUSE, || CqlStore::connect(&options)).await });
    let runtime = StoreRuntime::from(runtime);
    let (store, format) = connected.await.map_err(|e| e.to_string())?.map_err(|e: StoreError| e.to_string())?;
    let generation = next_generation(&dir).map_err(|e| format!("{}: cannot count its starts: {e}", dir.display()))?;
    let node = node_id(&config.node.name);
    let (clock, agreed, reads) = (Arc::new(SystemClock), AgreedTime::default(), release::formats());
    let advertised = (!cluster.gossip_advertise.is_empty()).then(|| cluster.gossip_at());
    let membership = Membership::start(
        membership::Options {
            cluster: cluster.name.clone(),
            keys,
            listen: cluster.gossip_listen,
            advertised,
            seeds: cluster.seeds.clone(),
            clock: clock.clone(),
            agreed: agreed.clone(),
        },
        Me {
            node,
            name: config.node.name.clone(),
            generation,
            session: SessionId::default(),
            addresses: Addresses {
                gateway: cluster.gateway_at(),
                rpc: cluster.reached_at(config.rpc.listen),
                http: cluster.reached_at(config.http.listen),
            },
            executors_at: (!config.rpc.advertise.is_empty()).then(|| config.rpc.advertise.clone()),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            event_format: membership::up_to(reads.event),
            wire_format: membership::up_to(reads.wire),
            shards: format.shards,
            cordoned: self_announcer::is_cordoned(&dir),
        },
    )?;
    let known = membership.members();
    let peers = GatewayPeers::new(known.clone());
    let (mirror, members) = watch::channel(Arc::default());
    tokio::spawn(keep_mirror(known.clone(), mirror, admin::owning));
    let (mirror, nodes) = watch::channel(Arc::default());
    tokio::spawn(keep_mirror(known.clone(), mirror, Members::for_executors));
    let gateway = gateway::Options {
        cluster: cluster.name.clone(),
        node,
        name: config.node.name.clone(),
        listen: cluster.gateway_listen,
        tls: cluster.tls_files(),
    };
    let cluster_events = Arc::new(ClusterEventLog::default());
    let announcer = Arc::new(SelfAnnouncer::new(dir.clone(), membership, runtime));
    let admin = ClusterAdmin::open(known.clone(), cluster_events.clone(), announcer.clone(), peers.clone());
    let connect = connect(gateway, peers.clone(), known, admin.clone());
    Ok(ClusterOptions {
        dir,
        lock,
        format,
        store: SharedStore { leases: store.clone(), snapshots: store.clone(), views: store },
        settings: Settings {
            session: SessionId::default(),
            lease_ms: cluster.lease_ms.into(),
            beat_ms: cluster.beat_ms.into(),
            watch_ms: WATCH_MS,
            reconcile_ms: RECONCILE_MS,
            keep_ended_ms: KEEP_ENDED_MS,
            window: cluster.window.into(),
            lanes: cluster.lanes,
            predecessor: None,
        },
        members,
        nodes,
        announce: announcer,
        cluster_events,
        admin: Some(admin),
        peers: Arc::new(peers),
        connect,
        drain: DRAIN,
        clock,
        agreed,
        reads,
    })
}

/// Other nodes may ask this one, and it may ask them.
fn connect(
    options: gateway::Options,
    peers: GatewayPeers,
    known: watch::Receiver<Arc<Members>>,
    admin: Arc<ClusterAdmin>,
) -> Connect {
    Box::new(move |scheduler| {
        Box::pin(async move {
            let handler: gateway::Handler =
                Arc::new(move |_, question| Box::pin(answering::answer(scheduler.clone(), admin.clone(), question)));
            let gateway = Arc::new(Gateway::start(options, handler).await?);
            tokio::spawn(keep_peers(known, gateway.clone()));
            peers.connect(gateway);
            Ok(())
        })
    })
}

/// What somebody wants to know of the members, whenever that has changed.
pub async fn keep_mirror<T: PartialEq>(
    mut known: watch::Receiver<Arc<Members>>,
    mirror: watch::Sender<Arc<T>>,
    wanted: impl Fn(&Members) -> T,
) {
    loop {
        let now = wanted(&known.borrow_and_update());
        mirror.send_if_modified(|before| {
            let changed = **before != now;
            if changed {
                *before = Arc::new(now);
            }
            changed
        });
        if known.changed().await.is_err() || mirror.is_closed() {
            return;
        }
    }
}

async fn keep_peers(mut known: watch::Receiver<Arc<Members>>, gateway: Arc<Gateway>) {
    loop {
        let members = known.borrow_and_update().clone();
        gateway.set_peers(&members);
        if known.changed().await.is_err() {
            return;
        }
    }
}

/// Rises with each start. Kept in a file, since clocks go back.
fn next_generation(dir: &Path) -> io::Result<u64> {
    let path = dir.join(GENERATION_FILE);
    let before = match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().map_err(|_| io::Error::other(format!("{} is no number", path.display())))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    private::put_file(dir, GENERATION_FILE, format!("{}\n", before + 1).as_bytes())?;
    Ok(before + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// How often the store was asked, and what was told in the end. `answers`: what it gives to the first, second ... question.
    async fn asked(answers: impl Fn(u32) -> Result<u32, StoreError>) -> (u32, Result<u32, String>) {
        let count = Cell::new(0);
        let ended = patiently(Duration::ZERO, || {
            count.set(count.get() + 1);
            std::future::ready(answers(count.get()))
        });
        let ended = ended.await.map_err(|error| error.to_string());
        (count.get(), ended)
    }

    fn away() -> Result<u32, StoreError> {
        Err(StoreError::Unavailable("nobody answers".to_owned()))
    }

    #[tokio::test]
    async fn a_node_that_starts_waits_for_its_store_but_not_for_ever() {
        assert_eq!(asked(|count| if count < 3 { away() } else { Ok(count) }).await, (3, Ok(3)));
        assert_eq!(asked(|_| away()).await, (30, Err("store unavailable: nobody answers".to_owned())));
        let refused = |_| Err(StoreError::Refused("another cluster".to_owned()));
        assert_eq!(asked(refused).await, (1, Err("store refused: another cluster".to_owned())));
    }
}
