//! The store in which a node's sessions run: a directory of its own, or the store that a cluster shares. Both start a
//! session, and another one when that has ended.

use campanile_actors::{
    calls::Peers,
    cluster::{self, ClusterParts},
    cluster_events::ClusterEventLog,
    maintenance::Retention,
    owner::ClusterMember,
    scheduler::Scheduler,
    session::{self, NodeSession, SessionParts},
    shared_store::SharedStore,
    time::AgreedTime,
};
use campanile_cluster::{admin::ClusterAdmin, self_announcer::Announce};
use campanile_core::{ownership::Settings, placement::Standing};
use campanile_ports::{
    Clock, Opened, Secrets, StoreError,
    clock::{self, SystemClock},
    private,
    spans::Tracer,
};
use campanile_schema::{
    format::{FormatRow, Formats},
    ids::SessionId,
    rpc::executor::ClusterNodes,
};
use campanile_serve::ops::BackupSource;
use campanile_store::embedded::{EmbeddedOptions, EmbeddedStore};
use parking_lot::Mutex;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::sync::{mpsc, watch};

/// Longest wait for actors and threads at the end.
const LET_GO: Duration = Duration::from_secs(2);
/// File of the session that a node had last, and of the boot it had it in.
const SESSION_FILE: &str = "SESSION";
const LOCK_FILE: &str = "LOCK";

/// What a node is to live in.
pub enum NodeStoreOptions {
    Standalone(EmbeddedOptions),
    Clustered(Box<ClusterOptions>),
}

impl From<EmbeddedOptions> for NodeStoreOptions {
    fn from(options: EmbeddedOptions) -> Self {
        Self::Standalone(options)
    }
}

/// A cluster, as a node needs it.
pub struct ClusterOptions {
    /// Of this node: its last session, its clock, and what membership keeps.
    pub dir: PathBuf,
    /// See [`lock`].
    pub lock: File,
    pub format: FormatRow,
    pub store: SharedStore,
    /// Without a session and a predecessor: those come with each start.
    pub settings: Settings,
    /// Living members, this node among them once it was announced.
    pub members: watch::Receiver<Arc<Vec<ClusterMember>>>,
    /// The same nodes, as executors reach them.
    pub nodes: watch::Receiver<Arc<ClusterNodes>>,
    pub announce: Arc<dyn Announce>,
    /// What happens is noted there.
    pub cluster_events: Arc<ClusterEventLog>,
    /// Where operators ask about the cluster.
    pub admin: Option<Arc<ClusterAdmin>>,
    pub peers: Arc<dyn Peers>,
    /// Lets other nodes ask this one's scheduler; called once, before the first session.
    pub connect: Connect,
    /// Longest time in which shards are given away when the node stops.
    pub drain: Duration,
    pub clock: Arc<dyn Clock>,
    /// What most nodes' clocks say.
    pub agreed: AgreedTime,
    /// What this build knows.
    pub reads: Formats,
}

/// See [`ClusterOptions::connect`].
pub type Connect = Box<dyn FnOnce(Scheduler) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send>;

/// What every session of a node gets, wherever it lives.
pub struct SessionDeps {
    pub name: String,
    pub secrets: Arc<dyn Secrets>,
    pub retention: Retention,
    pub linger_us: u64,
    pub tracer: Tracer,
    pub failures: mpsc::UnboundedSender<StoreError>,
}

/// See the module's text.
pub enum NodeStore {
    Standalone(Standalone),
    Clustered(Box<Clustered>),
}

/// A directory of its own, locked.
pub struct Standalone {
    dir: PathBuf,
    store: Arc<EmbeddedStore>,
    /// What opening gave, for the first session.
    opened: Mutex<Option<Opened>>,
}

/// A node of a cluster. Its directory holds no jobs.
pub struct Clustered {
    dir: PathBuf,
    format: FormatRow,
    store: SharedStore,
    settings: Settings,
    members: watch::Receiver<Arc<Vec<ClusterMember>>>,
    nodes: watch::Receiver<Arc<ClusterNodes>>,
    announce: Arc<dyn Announce>,
    cluster_events: Arc<ClusterEventLog>,
    admin: Option<Arc<ClusterAdmin>>,
    peers: Arc<dyn Peers>,
    drain: Duration,
    clock: Arc<dyn Clock>,
    agreed: AgreedTime,
    reads: Formats,
    _lock: File,
}

impl NodeStore {
    /// Errors are sentences for the operator.
    pub async fn open(options: NodeStoreOptions, scheduler: &Scheduler) -> Result<Self, String> {
        match options {
            NodeStoreOptions::Standalone(options) => {
                let dir = options.dir.clone();
                let (store, opened) = tokio::task::spawn_blocking(move || EmbeddedStore::open(options))
                    .await
                    .map_err(|e| e.to_string())?
                    .map_err(|e| e.to_string())?;
                Ok(Self::Standalone(Standalone { dir, store, opened: Mutex::new(Some(opened)) }))
            }
            NodeStoreOptions::Clustered(options) => {
                let options = *options;
                (options.connect)(scheduler.clone()).await?;
                Ok(Self::Clustered(Box::new(Clustered {
                    dir: options.dir,
                    format: options.format,
                    store: options.store,
                    settings: options.settings,
                    members: options.members,
                    nodes: options.nodes,
                    announce: options.announce,
                    cluster_events: options.cluster_events,
                    admin: options.admin,
                    peers: options.peers,
                    drain: options.drain,
                    clock: options.clock,
                    agreed: options.agreed,
                    reads: options.reads,
                    _lock: options.lock,
                })))
            }
        }
    }

    pub fn dir(&self) -> &Path {
        match self {
            Self::Standalone(alone) => &alone.dir,
            Self::Clustered(member) => &member.dir,
        }
    }

    /// Where operators ask about the cluster; None: there is none.
    pub fn admin(&self) -> Option<Arc<ClusterAdmin>> {
        match self {
            Self::Standalone(_) => None,
            Self::Clustered(member) => member.admin.clone(),
        }
    }

    /// The nodes that executors are told of; None: the node is alone.
    pub fn nodes(&self) -> Option<watch::Receiver<Arc<ClusterNodes>>> {
        match self {
            Self::Standalone(_) => None,
            Self::Clustered(member) => Some(member.nodes.clone()),
        }
    }

    /// The node's own store; a cluster's is not backed up by its nodes.
    pub fn backup_source(&self) -> Option<Weak<dyn BackupSource>> {
        match self {
            Self::Standalone(alone) => {
                let store: Weak<EmbeddedStore> = Arc::downgrade(&alone.store);
                Some(store)
            }
            Self::Clustered(_) => None,
        }
    }

    pub fn is_member(&self) -> bool {
        match self {
            Self::Standalone(_) => false,
            Self::Clustered(_) => true,
        }
    }

    /// What callers are told while there is no session.
    pub fn left(&self, error: &StoreError) -> String {
        match self {
            Self::Standalone(_) => format!("the store cannot be written ({error}); it is reopened as soon as it can"),
            Self::Clustered(_) => format!("the node has no session ({error}); it begins a new one as soon as it can"),
        }
    }

    pub fn cluster_id(&self) -> u64 {
        match self {
            Self::Standalone(alone) => alone.opened.lock().as_ref().map_or(0, |opened| opened.format.cluster_id.0),
            Self::Clustered(member) => member.format.cluster_id.0,
        }
    }

    /// The first session, or the next one.
    pub async fn start(&self, with: &SessionDeps) -> Result<NodeSession, StoreError> {
        match self {
            Self::Standalone(alone) => alone.start(with).await,
            Self::Clustered(member) => member.start(with).await,
        }
    }

    /// Ends the last session in order.
    pub async fn leave(&self, session: NodeSession) {
        if let Self::Clustered(member) = self {
            // The last one has nobody to give them to: they wait for whoever comes.
            if member.has_successors(&session) {
                member.announce.draining();
                session.hand_over(member.drain).await;
            }
        }
        session.drain().await;
    }

    /// Waits until actors and threads have let the store go, so that its lock is free when the node has stopped.
    pub async fn let_go(self) {
        let alone = match self {
            Self::Standalone(alone) => alone,
            Self::Clustered(member) => return member.announce.leave().await,
        };
        let deadline = tokio::time::Instant::now() + LET_GO;
        // One is ours.
        while Arc::strong_count(&alone.store) > 1 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Standalone {
    async fn start(&self, with: &SessionDeps) -> Result<NodeSession, StoreError> {
        let first = self.opened.lock().take();
        let opened = match first {
            Some(opened) => opened,
            None => {
                let store = self.store.clone();
                tokio::task::spawn_blocking(move || store.reopen())
                    .await
                    .map_err(|e| StoreError::Unavailable(e.to_string()))??
            }
        };
        session::start(SessionParts {
            node: with.name.clone(),
            opened,
            journal: self.store.clone(),
            snapshots: self.store.clone(),
            views: self.store.clone(),
            secrets: with.secrets.clone(),
            clock: Arc::new(SystemClock),
            boot_id: clock::boot_id(),
            saved_clock: clock::load(&self.dir),
            linger_us: with.linger_us,
            retention: with.retention,
            tracer: with.tracer.clone(),
            failures: with.failures.clone(),
        })
        .await
    }
}

impl Clustered {
    fn has_successors(&self, session: &NodeSession) -> bool {
        let own = session.handles.identity.session;
        self.members.borrow().iter().any(|m| m.session != own && m.standing == Standing::Open)
    }

    async fn start(&self, with: &SessionDeps) -> Result<NodeSession, StoreError> {
        // They may have been raised since the node was started.
        let formats = self.store.leases.formats().await?;
        self.reads.check(formats).map_err(|newer| StoreError::Refused(newer.to_string()))?;
        let format = FormatRow { event_format: formats.event, wire_format: formats.wire, ..self.format.clone() };
        let session = self.store.leases.next_session().await?;
        let boot = clock::boot_id();
        // With the lock in hand, whoever had it before on this boot is gone: nobody need wait for its lease.
        let predecessor = last_session(&self.dir, &boot);
        private::put_file(&self.dir, SESSION_FILE, format!("{} {boot}\n", session.0).as_bytes())
            .map_err(|e| StoreError::Unavailable(format!("cannot write {SESSION_FILE}: {e}")))?;
        self.announce.session(session);
        cluster::start(ClusterParts {
            node: with.name.clone(),
            format,
            settings: Settings { session, predecessor, ..self.settings.clone() },
            store: self.store.clone(),
            secrets: with.secrets.clone(),
            clock: self.clock.clone(),
            agreed: self.agreed.clone(),
            reads: self.reads,
            boot_id: boot,
            saved_clock: clock::load(&self.dir),
            linger_us: with.linger_us,
            members: self.members.clone(),
            cluster_events: self.cluster_events.clone(),
            peers: self.peers.clone(),
            tracer: with.tracer.clone(),
            failures: with.failures.clone(),
        })
        .await
    }
}

/// Makes the directory of a node of a cluster, and keeps other processes out of it for as long as the file is open.
pub fn lock(dir: &Path) -> Result<File, String> {
    private::make_dir(dir).map_err(|e| format!("{}: cannot be made: {e}", dir.display()))?;
    private::close(dir);
    let path = dir.join(LOCK_FILE);
    let file = private::options()
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|e| format!("{}: cannot be opened: {e}", path.display()))?;
    file.try_lock().map_err(|_| {
        format!("{}: another process uses this directory; every node needs a directory of its own", dir.display())
    })?;
    Ok(file)
}

fn last_session(dir: &Path, boot: &str) -> Option<SessionId> {
    let text = fs::read_to_string(dir.join(SESSION_FILE)).ok()?;
    let (number, on) = text.trim().split_once(' ')?;
    (on == boot).then(|| number.parse().ok().map(SessionId)).flatten()
}
