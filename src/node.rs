//! One node: opens its store, starts a session, serves HTTP and RPC, and stops in order. When the store cannot be written
//! it drops its session, reopens the store at its last durable position and goes on by itself when it can.

use crate::{
    api::{self, Api},
    auth::{Authenticator, Caller},
    clock::{self, SystemClock},
    ops::Operations,
    rpc,
    store::embedded::{EmbeddedOptions, EmbeddedStore},
};
use campanile_actors::{
    maintenance::Retention,
    ports::{Opened, Secrets, StoreError},
    scheduler::Scheduler,
    session::{self, Session, SessionParts},
};
use metrics_exporter_prometheus::PrometheusHandle;
use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// Between two attempts to reopen a store that cannot be written.
const REOPEN_PAUSE: Duration = Duration::from_millis(500);
/// Between two saved clock readings.
const CLOCK_PAUSE: Duration = Duration::from_secs(5);

/// Longest wait for actors and threads at the end.
const LET_GO: Duration = Duration::from_secs(2);

/// What a node is started with. Every field of the configuration that it needs, checked.
pub struct NodeOptions {
    /// Name of this node, told to executors and in logs.
    pub name: String,
    pub store: EmbeddedOptions,
    pub http: SocketAddr,
    pub rpc: SocketAddr,
    pub authenticator: Authenticator,
    pub secrets: Arc<dyn Secrets>,
    /// Dev mode: who a caller from this machine without a token is.
    pub open_to_loopback: Option<Caller>,
    /// `/metrics` without a token.
    pub open_metrics: bool,
    pub metrics: Option<PrometheusHandle>,
    pub retention: Retention,
    /// How long a journal batch waits for more frames, microseconds.
    pub linger_us: u64,
}

/// A running node.
pub struct Node {
    http: SocketAddr,
    rpc: SocketAddr,
    scheduler: Scheduler,
    stop: watch::Sender<bool>,
    serving: Vec<JoinHandle<()>>,
    supervising: JoinHandle<()>,
}

impl Node {
    /// Opens the store, recovers, serves. Errors are sentences for the operator: port taken, directory locked, ...
    pub async fn start(options: NodeOptions) -> Result<Self, String> {
        #[cfg(feature = "faults")]
        for mutation in campanile_core::faults::Mutation::ALL {
            campanile_core::faults::set(mutation, campanile_actors::faults::mutation(mutation.name()));
        }
        // Ports first: a taken one must not cost a recovery.
        let http = bind("HTTP", options.http).await?;
        let rpc_listener = bind("RPC", options.rpc).await?;
        let addresses = (local(&http)?, local(&rpc_listener)?);
        let dir = options.store.dir.clone();
        let store_options = options.store.clone();
        let (store, opened) = tokio::task::spawn_blocking(move || EmbeddedStore::open(store_options))
            .await
            .map_err(|e| e.to_string())?
            .map_err(|e| e.to_string())?;
        let scheduler = Scheduler::new();
        let (failures, failed) = mpsc::unbounded_channel();
        let cluster_id = opened.format.cluster_id.0;
        let sessions = Sessions {
            name: options.name.clone(),
            dir,
            store,
            secrets: options.secrets,
            retention: options.retention,
            linger_us: options.linger_us,
            failures,
            scheduler: scheduler.clone(),
        };
        let session = sessions.start(opened).await.map_err(|e| e.to_string())?;
        let (stop, stopped) = watch::channel(false);
        let operations = Operations::new(scheduler.clone());
        let api = Api {
            operations: operations.clone(),
            authenticator: options.authenticator.clone(),
            open_to_loopback: options.open_to_loopback,
            metrics: options.metrics,
            open_metrics: options.open_metrics,
        };
        let mut http_stop = stopped.clone();
        let serving = vec![
            tokio::spawn(async move {
                let stop = async move {
                    // A dropped sender stops too.
                    let _ = http_stop.wait_for(|s| *s).await;
                };
                if let Err(error) = api::serve(http, api, stop).await {
                    tracing::error!(%error, "HTTP ended");
                }
            }),
            tokio::spawn(rpc::serve(
                rpc_listener,
                rpc::Server::new(operations, options.authenticator, options.name, cluster_id),
                stopped.clone(),
            )),
        ];
        let supervising = tokio::spawn(sessions.supervise(session, failed, stopped));
        Ok(Self { http: addresses.0, rpc: addresses.1, scheduler, stop, serving, supervising })
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

    /// In order: no new calls, no more fires, snapshots, actors. Bounded in time by its parts.
    pub async fn stop(self) {
        // Nobody listens when everything ended before.
        let _ = self.stop.send(true);
        for part in self.serving {
            let _ = part.await;
        }
        let _ = self.supervising.await;
    }
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

/// Starts sessions on one store, one after the other.
struct Sessions {
    name: String,
    dir: PathBuf,
    store: Arc<EmbeddedStore>,
    secrets: Arc<dyn Secrets>,
    retention: Retention,
    linger_us: u64,
    failures: mpsc::UnboundedSender<StoreError>,
    scheduler: Scheduler,
}

impl Sessions {
    async fn start(&self, opened: Opened) -> Result<Session, StoreError> {
        let session = session::start(SessionParts {
            node: self.name.clone(),
            opened,
            journal: self.store.clone(),
            snapshots: self.store.clone(),
            views: self.store.clone(),
            secrets: self.secrets.clone(),
            clock: Arc::new(SystemClock),
            boot_id: clock::boot_id(),
            saved_clock: clock::load(&self.dir),
            linger_us: self.linger_us,
            retention: self.retention,
            failures: self.failures.clone(),
        })
        .await?;
        self.scheduler.set_session(Ok(session.directory.clone()));
        Ok(session)
    }

    /// Watches over the session until the node stops.
    async fn supervise(
        self,
        session: Session,
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
        self.scheduler.set_session(Err("the node is stopping".to_owned()));
        if let Some(session) = current {
            self.save_clock(&session);
            session.drain().await;
        }
        self.let_go().await;
    }

    /// Waits until actors and threads have let the store go, so that its lock is free when the node has stopped.
    async fn let_go(self) {
        let deadline = tokio::time::Instant::now() + LET_GO;
        // One is ours.
        while Arc::strong_count(&self.store) > 1 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn save_clock(&self, session: &Session) {
        // A clock that is not believed must not be what the next start believes.
        if session.directory.time.halted().is_none()
            && let Err(error) = clock::save(&self.dir, &session.directory.time.reading(&clock::boot_id()))
        {
            tracing::debug!(%error, "the clock reading was not saved");
        }
    }

    fn leave(&self, session: Option<Session>, error: &StoreError) {
        let reason = format!("the store cannot be written ({error}); it is reopened as soon as it can");
        tracing::error!(%reason, "session left");
        self.scheduler.set_session(Err(reason));
        if let Some(session) = session {
            session.stop();
        }
    }

    async fn reopen(&self) -> Session {
        loop {
            tokio::time::sleep(REOPEN_PAUSE).await;
            let store = self.store.clone();
            let reopened = tokio::task::spawn_blocking(move || store.reopen()).await;
            let started = match reopened {
                Ok(Ok(opened)) => self.start(opened).await,
                Ok(Err(error)) => Err(error),
                Err(error) => Err(StoreError::Unavailable(error.to_string())),
            };
            match started {
                Ok(session) => return session,
                Err(error) => {
                    tracing::warn!(%error, "the store is still not writable");
                    self.scheduler.set_session(Err(format!(
                        "the store cannot be written ({error}); it is reopened as soon as it can"
                    )));
                }
            }
        }
    }
}
