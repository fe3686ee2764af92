//! Several nodes in this process on one store in memory, with membership and peers that are never wrong unless told to be.

use super::{
    roads::{Road, Roads},
    support,
};
use campanile::node::{
    Node, NodeOptions,
    node_store::{ClusterOptions, NodeStoreOptions},
};
use campanile_actors::{
    cluster_events::ClusterEventLog, owner::ClusterMember, scheduler::Scheduler, shared_store::SharedStore,
    time::AgreedTime,
};
use campanile_client::Client;
use campanile_cluster::{
    admin::ClusterAdmin,
    membership::{self, Addresses, Membership},
    peers::GatewayPeers,
    self_announcer::{Announce, SelfAnnouncer, StoreRuntime, is_cordoned},
};
use campanile_core::{
    ownership::Settings,
    placement::{Member, NodeId, Owners, Standing, place},
};
use campanile_ports::{Clock, clock::SystemClock, spans::Tracer};
use campanile_schema::{
    format::{EVENT_FORMAT, FormatRow, Formats, WIRE_FORMAT},
    ids::{ClusterId, Epoch, JobId, SessionId, ShardId},
    rpc::executor::{ClusterNodes, NodeAddress},
};
use campanile_security::secrets::KeyRing;
use campanile_store::memory::shared::{SharedEnd, SharedMemory};
use std::{
    collections::BTreeMap,
    future::Future,
    net::SocketAddr,
    path::Path,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

pub const SHARDS: u16 = 16;
/// Short, so that a take-over takes little of a test; long enough for a busy machine.
const LEASE_MS: u64 = 1_500;
/// Rises with each start of a node, as it does outside of tests.
static GENERATION: AtomicU64 = AtomicU64::new(1);
const GOSSIP_KEY: &str = "key-1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// See the module's text.
pub struct TestCluster {
    store: Arc<SharedMemory>,
    members: watch::Sender<Arc<Vec<ClusterMember>>>,
    /// What executors are told.
    addresses: watch::Sender<Arc<ClusterNodes>>,
    roads: Arc<Roads>,
    nodes: BTreeMap<u64, House>,
    /// Nodes find each other over UDP, by this one's address. None: they are told by [`Crier`].
    gossip: Option<Vec<String>>,
    /// Where spans of all nodes go.
    tracer: Tracer,
}

/// A node and what it is made of.
struct House {
    node: Option<Node>,
    addresses: (SocketAddr, SocketAddr),
    dir: tempfile::TempDir,
    end: SharedEnd,
    kit: Kit,
}

/// What differs between nodes.
#[derive(Clone)]
struct Kit {
    clock: Arc<Watch>,
    /// Formats that its build knows.
    reads: Formats,
}

impl Default for Kit {
    fn default() -> Self {
        Self { clock: Arc::default(), reads: Formats::OURS }
    }
}

/// A node's clock: it may be wrong.
#[derive(Default)]
pub struct Watch {
    off_us: AtomicI64,
}

impl Clock for Watch {
    fn wall_us(&self) -> i64 {
        SystemClock.wall_us() + self.off_us.load(Ordering::Relaxed)
    }
    fn boot_us(&self) -> u64 {
        SystemClock.boot_us()
    }
}

struct Crier {
    node: NodeId,
    reads: Formats,
    members: watch::Sender<Arc<Vec<ClusterMember>>>,
    roads: Arc<Roads>,
}

impl Crier {
    fn change(&self, change: impl Fn(&mut ClusterMember)) {
        self.members.send_modify(|members| {
            let mut list = members.to_vec();
            list.iter_mut().filter(|member| member.node == self.node).for_each(change);
            *members = Arc::new(list);
        });
    }
}

impl Announce for Crier {
    fn session(&self, session: SessionId) {
        self.roads.sessions.lock().insert(session, self.node);
        self.members.send_modify(|members| {
            let mut list: Vec<_> = members.iter().filter(|member| member.node != self.node).cloned().collect();
            let (node, reads) = (self.node, self.reads);
            list.push(ClusterMember {
                node,
                session,
                standing: Standing::Open,
                suspected: false,
                refused: None,
                reads,
            });
            *members = Arc::new(list);
        });
    }
    fn draining(&self) {
        self.change(|member| member.standing = Standing::Draining);
    }
    fn leave(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
}

/// Membership over UDP.
struct Gossip {
    node: NodeId,
    announcer: Arc<SelfAnnouncer>,
    roads: Arc<Roads>,
}

impl Gossip {
    fn start(
        node: u64,
        seeds: &mut Vec<String>,
        kit: &Kit,
        dir: &Path,
        agreed: AgreedTime,
        roads: Arc<Roads>,
        cluster_events: Arc<ClusterEventLog>,
    ) -> (Self, watch::Receiver<Arc<Vec<ClusterMember>>>, Arc<ClusterAdmin>) {
        let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let options = membership::Options {
            cluster: "cluster".to_owned(),
            keys: KeyRing::parse(GOSSIP_KEY).unwrap(),
            listen: loopback,
            advertised: None,
            seeds: seeds.clone(),
            clock: kit.clock.clone(),
            agreed,
        };
        let me = membership::Me {
            node: NodeId(node),
            name: format!("n{node}"),
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
            session: SessionId::default(),
            addresses: Addresses { gateway: loopback, rpc: loopback, http: loopback },
            build: "test".to_owned(),
            event_format: membership::up_to(kit.reads.event),
            wire_format: membership::up_to(kit.reads.wire),
            shards: SHARDS,
            cordoned: is_cordoned(dir),
            executors_at: None,
        };
        let membership = Membership::start(options, me).unwrap();
        if seeds.is_empty() {
            seeds.push(membership.address().to_string());
        }
        let (mirror, members) = watch::channel(Arc::default());
        tokio::spawn(campanile::node::keep_mirror(membership.members(), mirror, campanile_cluster::owning));
        let known = membership.members();
        let announcer = Arc::new(SelfAnnouncer::new(dir.to_owned(), membership, StoreRuntime::default()));
        let admin = ClusterAdmin::open(known.clone(), cluster_events, announcer.clone(), GatewayPeers::new(known));
        (Self { node: NodeId(node), announcer, roads }, members, admin)
    }
}

impl Announce for Gossip {
    fn session(&self, session: SessionId) {
        self.roads.sessions.lock().insert(session, self.node);
        self.announcer.session(session);
    }
    fn draining(&self) {
        self.announcer.draining();
    }
    fn leave(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.announcer.leave()
    }
}

impl TestCluster {
    pub fn new() -> Self {
        Self::of_formats(Formats::OURS)
    }

    /// Made by a release with these formats.
    pub fn of_formats(formats: Formats) -> Self {
        let (members, _) = watch::channel(Arc::default());
        let (addresses, _) = watch::channel(Arc::default());
        let (store, roads) = (SharedMemory::of_formats(SHARDS, formats), Arc::default());
        Self { store, members, addresses, roads, nodes: BTreeMap::new(), gossip: None, tracer: Tracer::default() }
    }

    /// Nodes tell each other who is there, as they do outside of tests.
    pub fn with_gossip() -> Self {
        Self { gossip: Some(Vec::new()), ..Self::new() }
    }

    /// Nodes record spans.
    pub fn traced(tracer: &Tracer) -> Self {
        Self { tracer: tracer.clone(), ..Self::new() }
    }

    /// A way to the store besides those of nodes.
    pub fn end(&self) -> SharedEnd {
        self.store.end()
    }

    pub async fn start(&mut self, node: u64) {
        self.start_off(node, 0).await;
    }

    /// With a wall clock that is off by so much.
    pub async fn start_off(&mut self, node: u64, off_ms: i64) {
        let kit = Kit::default();
        kit.clock.off_us.store(off_ms * 1_000, Ordering::Relaxed);
        self.start_in(node, tempfile::tempdir().unwrap(), None, kit).await.unwrap();
    }

    /// A node of another build.
    pub async fn start_later(&mut self, node: u64, reads: Formats) {
        let kit = Kit { reads, ..Kit::default() };
        self.start_in(node, tempfile::tempdir().unwrap(), None, kit).await.unwrap();
    }

    /// From now on.
    pub fn set_clock(&self, node: u64, off_ms: i64) {
        self.nodes[&node].kit.clock.off_us.store(off_ms * 1_000, Ordering::Relaxed);
    }

    async fn start_in(
        &mut self,
        node: u64,
        dir: tempfile::TempDir,
        addresses: Option<(SocketAddr, SocketAddr)>,
        kit: Kit,
    ) -> Result<(), String> {
        let end = self.store.end();
        let agreed = AgreedTime::default();
        let cluster_events = Arc::new(ClusterEventLog::default());
        let announce: Arc<dyn Announce>;
        let mut admin = None;
        let members = match &mut self.gossip {
            None => {
                let node = NodeId(node);
                let crier = Crier { node, reads: kit.reads, members: self.members.clone(), roads: self.roads.clone() };
                announce = Arc::new(crier);
                self.members.subscribe()
            }
            Some(seeds) => {
                let (roads, cluster_events) = (self.roads.clone(), cluster_events.clone());
                let (gossip, members, its_desk) =
                    Gossip::start(node, seeds, &kit, dir.path(), agreed.clone(), roads, cluster_events);
                announce = Arc::new(gossip);
                admin = Some(its_desk);
                members
            }
        };
        let port = Arc::new(end.clone());
        let home = NodeStoreOptions::Clustered(Box::new(ClusterOptions {
            dir: dir.path().to_owned(),
            lock: campanile::node::node_store::lock(dir.path()).unwrap(),
            format: FormatRow {
                event_format: EVENT_FORMAT,
                wire_format: WIRE_FORMAT,
                cluster_id: ClusterId(77),
                shards: SHARDS,
                created_ms: 0,
            },
            store: SharedStore { leases: port.clone(), snapshots: port.clone(), views: port },
            settings: Settings {
                session: SessionId(0),
                lease_ms: LEASE_MS,
                beat_ms: 250,
                watch_ms: 100,
                reconcile_ms: 300,
                keep_ended_ms: 86_400_000,
                window: 16,
                lanes: 2,
                predecessor: None,
            },
            members,
            nodes: self.addresses.subscribe(),
            cluster_events,
            admin,
            announce,
            peers: Arc::new(Road { from: NodeId(node), roads: self.roads.clone() }),
            connect: Box::new(|_| Box::pin(async { Ok(()) })),
            drain: Duration::from_secs(20),
            clock: kit.clock.clone(),
            agreed,
            reads: kit.reads,
        }));
        let mut options = NodeOptions { name: format!("n{node}"), store: home, ..support::options(dir.path()) };
        options.tracer = self.tracer.clone();
        if let Some((http, rpc)) = addresses {
            (options.http, options.rpc) = (http, rpc);
        }
        let started = Node::start(options).await?;
        self.roads.schedulers.lock().insert(NodeId(node), started.scheduler().clone());
        let addresses = (started.http_addr(), started.rpc_addr());
        self.tell_executors(|nodes| {
            nodes.push(NodeAddress { node: format!("n{node}"), address: addresses.1.to_string() });
        });
        self.nodes.insert(node, House { node: Some(started), addresses, dir, end, kit });
        Ok(())
    }

    pub fn scheduler(&self, node: u64) -> &Scheduler {
        self.nodes[&node].node.as_ref().unwrap().scheduler()
    }

    pub fn rpc(&self, node: u64) -> String {
        self.nodes[&node].addresses.1.to_string()
    }

    pub fn http(&self, node: u64) -> SocketAddr {
        self.nodes[&node].addresses.0
    }

    /// As an operator.
    pub async fn client(&self, node: u64) -> Client {
        Client::connect(&self.rpc(node), support::TOKEN).await.unwrap()
    }

    /// How many shards each node owns, as the rows say.
    pub fn owned(&self) -> BTreeMap<u64, usize> {
        let mut owned = BTreeMap::new();
        for session in self.store.owners().values() {
            if let Some(node) = self.roads.sessions.lock().get(session) {
                *owned.entry(node.0).or_default() += 1;
            }
        }
        owned
    }

    /// Where every shard is, once each is served by the node that placement wants it on, and how often it was claimed until then.
    pub fn at_rest(&self) -> Option<(Owners, BTreeMap<ShardId, Epoch>)> {
        let members: Vec<Member> = self.nodes.keys().map(|node| Member::open(NodeId(*node))).collect();
        let mut served = Owners::new();
        for node in self.nodes.keys() {
            let rows = self.scheduler(*node).rows().ok()?;
            served.extend(rows.served.into_iter().map(|shard| (shard, NodeId(*node))));
        }
        (place(SHARDS, &members, &served) == served).then(|| (served, self.store.epochs()))
    }

    /// The node of a job's shard, as the rows say.
    pub fn owner_of(&self, job: JobId) -> Option<u64> {
        self.owner_of_shard(job.shard(SHARDS))
    }

    pub fn owner_of_shard(&self, shard: ShardId) -> Option<u64> {
        let owners = self.store.owners();
        let session = owners.get(&shard)?;
        self.roads.sessions.lock().get(session).map(|node| node.0)
    }

    /// Stops in order: its shards are given away first.
    pub async fn stop(&mut self, node: u64) {
        self.leave(node).await;
    }

    /// Stops in order and starts again, at the same addresses.
    pub async fn restart(&mut self, node: u64) {
        let house = self.leave(node).await;
        self.start_in(node, house.dir, Some(house.addresses), house.kit).await.unwrap();
    }

    /// The same with another build, which knows these formats. Error: why it does not start.
    pub async fn replace(&mut self, node: u64, reads: Formats) -> Result<(), String> {
        let house = self.leave(node).await;
        self.start_in(node, house.dir, Some(house.addresses), Kit { reads, ..house.kit }).await
    }

    async fn leave(&mut self, node: u64) -> House {
        let mut house = self.nodes.remove(&node).unwrap();
        house.node.take().unwrap().stop().await;
        self.gone(node);
        house
    }

    /// The others take it for dead, and it reaches neither them nor the store.
    pub fn cut_off(&self, node: u64) {
        self.nodes[&node].end.weather().cut.store(true, Ordering::Release);
        self.roads.schedulers.lock().remove(&NodeId(node));
        self.roads.cut_off.lock().insert(NodeId(node));
        self.gone(node);
    }

    /// The store answers it again; the others will hear of its next session.
    pub fn reconnect(&self, node: u64) {
        self.roads.schedulers.lock().insert(NodeId(node), self.scheduler(node).clone());
        self.roads.cut_off.lock().remove(&NodeId(node));
        self.nodes[&node].end.weather().cut.store(false, Ordering::Release);
    }

    fn tell_executors(&self, change: impl FnOnce(&mut Vec<NodeAddress>)) {
        self.addresses.send_modify(|nodes| change(&mut Arc::make_mut(nodes).nodes));
    }

    fn gone(&self, node: u64) {
        self.tell_executors(|nodes| nodes.retain(|known| known.node != format!("n{node}")));
        self.members.send_modify(|members| {
            *members = Arc::new(members.iter().filter(|member| member.node != NodeId(node)).cloned().collect());
        });
    }

    /// The other nodes cannot ask it. It can ask them, everybody knows of it, and it keeps what it has.
    pub fn deafen(&self, node: u64) {
        self.roads.schedulers.lock().remove(&NodeId(node));
    }

    pub fn hear_again(&self, node: u64) {
        self.roads.schedulers.lock().insert(NodeId(node), self.scheduler(node).clone());
    }

    /// No node reaches the store; they still see each other.
    pub fn cut_store(&self, cut: bool) {
        self.nodes.values().for_each(|house| house.end.weather().cut.store(cut, Ordering::Release));
    }

    /// No node can write the read model; all else of the store works.
    pub fn cut_views(&self, cut: bool) {
        self.nodes.values().for_each(|house| house.end.weather().views_cut.store(cut, Ordering::Release));
    }

    /// The next so many calls for a shard go to a node that does not own it, from whichever node they come.
    pub fn lead_astray(&self, shard: ShardId, to: u64, calls: usize) {
        self.roads.astray.lock().insert(shard, (NodeId(to), calls));
        self.roads.hops.lock().clear();
    }

    /// Who asked whom since then.
    pub fn hops(&self) -> Vec<(u64, u64)> {
        self.roads.hops.lock().iter().map(|(from, to)| (from.0, to.0)).collect()
    }

    pub fn lose_every(&self, node: u64, every: u64) {
        self.nodes[&node].end.weather().lose_every.store(every, Ordering::Release);
    }
}
