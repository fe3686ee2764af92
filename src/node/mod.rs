//! One node: opens its store, starts a session, serves HTTP and RPC, and stops in order. A session is over when the
//! store cannot be written or another node has fenced it. The node then drops the session and starts a new one by
//! itself.

mod join;
pub mod measured;
pub mod node_store;

pub use join::{join, keep_mirror};

use crate::{
    files::{self, FilesOptions},
    node::node_store::{NodeStore, NodeStoreOptions, SessionDeps},
};
use campanile_actors::{maintenance::Retention, scheduler::Scheduler, session::NodeSession};
use campanile_ports::{Secrets, StoreError, clock, log_once::LogOnce, spans::Tracer};
use campanile_security::{
    auth::{Authenticator, Caller},
    sessions::BrowserSessions,
    tls::Ports,
};
use campanile_serve::{
    api::{self, Api, Origins},
    ops::{AuditTrail, Operations},
    rpc,
};
use metrics_exporter_prometheus::PrometheusHandle;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// Between two attempts to reopen a store that cannot be written.
const REOPEN_PAUSE: Duration = Duration::from_millis(500);
/// Between two saved clock readings.
const CLOCK_PAUSE: Duration = Duration::from_secs(5);

/// What a node is started with. Every field of the configuration that it needs, checked.
pub struct NodeOptions {
    /// Name of this node, told to executors and in logs.
    pub name: String,
    pub store: NodeStoreOptions,
    pub http: SocketAddr,
    pub rpc: SocketAddr,
    /// Which of the two speak TLS.
    pub tls: Ports,
    pub authenticator: Authenticator,
    pub secrets: Arc<dyn Secrets>,
    /// Dev mode: who a caller from this machine without a token is.
    pub open_to_loopback: Option<Caller>,
    /// `/metrics` without a token.
    pub open_metrics: bool,
    /// Pages of which origins may call from a browser.
    pub origins: Origins,
    pub metrics: Option<PrometheusHandle>,
    pub retention: Retention,
    /// The directory of manifests and crontabs that it keeps jobs by.
    pub files: Option<FilesOptions>,
    /// From one batch of the journal, or one round of rows of a cluster's lanes, to the next at the least, microseconds.
    pub linger_us: u64,
    /// Where spans go.
    pub tracer: Tracer,
}

/// A running node.
pub struct Node {
    http: SocketAddr,
    rpc: SocketAddr,
    scheduler: Scheduler,
    /// Calls and connections.
    stop: watch::Sender<bool>,
    /// Sessions.
    leave: watch::Sender<bool>,
    is_member: bool,
    serving: Vec<JoinHandle<()>>,
    supervising: JoinHandle<()>,
}

impl Node {
    /// Opens the store, recovers, serves. Errors are sentences for the operator: port taken, directory locked, ...
    pub async fn start(options: NodeOptions) -> Result<Self, String> {
        #[cfg(feature = "faults")]
        campanile_ports::faults::set_in_core();
        // Ports first: a taken one must not cost a recovery.
        let http = bind("HTTP", options.http).await?;
        let rpc_listener = bind("RPC", options.rpc).await?;
        let addresses = (local(&http)?, local(&rpc_listener)?);
        let scheduler = Scheduler::new();
        let store = NodeStore::open(options.store, &scheduler).await?;
        let (failures, failed) = mpsc::unbounded_channel();
        let cluster_id = store.cluster_id();
        let browsers = Arc::new(BrowserSessions::new(options.secrets.clone())?);
        let with = SessionDeps {
            name: options.name.clone(),
            secrets: options.secrets,
            retention: options.retention,
            linger_us: options.linger_us,
            tracer: options.tracer.clone(),
            failures,
        };
        let sessions = Sessions { store, with, scheduler: scheduler.clone() };
        let session = sessions.start().await.map_err(|e| e.to_string())?;
        let (stop, stopped) = watch::channel(false);
        let (leave, left) = watch::channel(false);
        let is_member = sessions.store.is_member();
        let nodes = sessions.store.nodes();
        let mut operations =
            Operations::new(scheduler.clone()).with_cluster(sessions.store.admin()).with_tracer(options.tracer);
        if let Some(source) = sessions.store.backup_source() {
            operations = operations.with_backups(source);
        }
        AuditTrail::at_zero();
        let trail = operations.trail.clone();
        let reloads = tell_of_tokens(operations.clone(), options.authenticator.clone(), options.name.clone());
        let api = Api {
            operations: operations.clone(),
            authenticator: options.authenticator.clone(),
            sessions: browsers,
            open_to_loopback: options.open_to_loopback,
            metrics: options.metrics,
            open_metrics: options.open_metrics,
            origins: options.origins,
        };
        let mut http_stop = stopped.clone();
        let watching =
            options.files.map(|files| tokio::spawn(files::watch(operations.clone(), files, stopped.clone())));
        let certificate = options.tls.certificate().cloned();
        let renewing = certificate.map(|certificate| tokio::spawn(certificate.watch(stopped.clone())));
        let Ports { http: http_tls, rpc: rpc_tls } = options.tls;
        let mut serving = vec![
            tokio::spawn(async move {
                let stop = async move {
                    // A dropped sender stops too.
                    let _ = http_stop.wait_for(|s| *s).await;
                };
                if let Err(error) = api::serve(http, http_tls, api, stop).await {
                    tracing::error!(%error, "HTTP ended");
                }
            }),
            tokio::spawn(rpc::serve(
                rpc_listener,
                rpc_tls,
                rpc::Server::new(operations, options.authenticator, options.name, cluster_id).with_nodes(nodes),
                stopped.clone(),
            )),
        ];
        let mut ends = (stopped.clone(), left.clone());
        let ends = async move {
            // A node of a cluster leaves first, and has no shards to ask by the time that it stops.
            tokio::select! { () = told(&mut ends.0) => (), () = told(&mut ends.1) => () }
        };
        serving.push(tokio::spawn(trail.run(scheduler.clone(), ends)));
        serving.extend(watching);
        serving.extend(renewing);
        let mut tokens_stop = stopped.clone();
        serving.push(tokio::spawn(async move {
            tokio::select! { () = reloads => (), () = told(&mut tokens_stop) => () }
        }));
        let supervising = tokio::spawn(sessions.supervise(session, failed, left));
        Ok(Self { http: addresses.0, rpc: addresses.1, scheduler, stop, leave, is_member, serving, supervising })
    }

    pub fn http_addr(&self) -> SocketAddr {
        self.http
    }
    pub fn rpc_addr(&self) -> SocketAddr {
        self.rpc
    }
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// In order: no new calls, no more fires, snapshots, actors; a node of a cluster gives its shards away first. Bounded in time by
    /// its parts.
    pub async fn stop(self) {
        // Nobody listens when everything ended before.
        if self.is_member {
            // As long as it owns a shard its executors work for it.
            let _ = self.leave.send(true);
            let _ = self.supervising.await;
            let _ = self.stop.send(true);
            for part in self.serving {
                let _ = part.await;
            }
            return;
        }
        let _ = self.stop.send(true);
        for part in self.serving {
            let _ = part.await;
        }
        let _ = self.leave.send(true);
        let _ = self.supervising.await;
    }
}

/// Tells the audit trail when other tokens are in force.
async fn tell_of_tokens(operations: Operations, authenticator: Authenticator, node: String) {
    let Some(mut changes) = authenticator.changes() else { return std::future::pending().await };
    while changes.changed().await.is_ok() {
        operations.note_tokens(&node).await;
    }
    std::future::pending().await
}

async fn bind(what: &str, address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address)
        .await
        .map_err(|e| format!("{what} cannot listen on {address}: {e}; is another node running? Choose another address"))
}

fn local(listener: &TcpListener) -> Result<SocketAddr, String> {
    listener.local_addr().map_err(|e| e.to_string())
}

/// Resolves when the node is told to stop; a dropped sender tells too.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|s| *s).await;
}

/// Starts sessions in one store, one after the other.
struct Sessions {
    store: NodeStore,
    with: SessionDeps,
    scheduler: Scheduler,
}

impl Sessions {
    async fn start(&self) -> Result<NodeSession, StoreError> {
        let session = self.store.start(&self.with).await?;
        self.scheduler.set_session(Ok(session.handles.clone()));
        Ok(session)
    }

    /// Watches over the session until the node stops.
    async fn supervise(
        self,
        session: NodeSession,
        mut failed: mpsc::UnboundedReceiver<StoreError>,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut current = Some(session);
        let mut stop_while_reopening = stop.clone();
        let mut clock_saves = tokio::time::interval(CLOCK_PAUSE);
        loop {
            tokio::select! {
                () = told(&mut stop) => break,
                Some(error) = failed.recv() => {
                    self.leave(current.take(), &error);
                    // One failure may be told by journal and projector both.
                    while failed.try_recv().is_ok() {}
                    tokio::select! {
                        session = self.reopen() => current = Some(session),
                        () = told(&mut stop_while_reopening) => break,
                    }
                }
                _ = clock_saves.tick() => {
                    if let Some(session) = &current {
                        self.save_clock(session);
                    }
                }
            }
        }
        if let Some(session) = current {
            self.save_clock(&session);
            // While its shards are given away a node of a cluster still answers.
            if !self.store.is_member() {
                self.scheduler.set_session(Err("the node is stopping".to_owned()));
            }
            self.store.leave(session).await;
        }
        self.scheduler.set_session(Err("the node is stopping".to_owned()));
        self.store.let_go().await;
    }

    fn save_clock(&self, session: &NodeSession) {
        // A clock that is not believed must not be what the next start believes.
        if session.handles.identity.time.halted().is_none()
            && let Err(error) = clock::save(self.store.dir(), &session.handles.identity.time.reading(&clock::boot_id()))
        {
            tracing::debug!(%error, "the clock reading was not saved");
        }
    }

    fn leave(&self, session: Option<NodeSession>, error: &StoreError) {
        let reason = self.store.left(error);
        tracing::error!(%reason, "session left");
        self.scheduler.set_session(Err(reason));
        if let Some(session) = session {
            session.stop();
        }
    }

    async fn reopen(&self) -> NodeSession {
        let log = LogOnce::new("no new session yet");
        loop {
            tokio::time::sleep(REOPEN_PAUSE).await;
            match self.start().await {
                Ok(session) => {
                    log.end();
                    return session;
                }
                Err(error) => {
                    log.failed(&error);
                    self.scheduler.set_session(Err(self.store.left(&error)));
                }
            }
        }
    }
}
