//! A node in this process for integration tests: own directory, free loopback ports, one token for everything.
#![allow(clippy::unwrap_used, dead_code)]

use campanile::node::{Node, NodeOptions};
use campanile_actors::scheduler::Scheduler;
use campanile_client::Client;
use campanile_ports::{SecretOwner, Secrets, spans::Tracer};
use campanile_schema::stored::Sealed;
use campanile_security::auth::{Authenticator, Caller, Role};
use campanile_store::embedded::EmbeddedOptions;
use std::{
    collections::BTreeMap,
    future::Future,
    net::SocketAddr,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

pub mod ledger;
pub mod spans;

pub const TOKEN: &str = "test-token";
/// How long anything may take before a test gives up: generous, for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// No key: secret params are refused.
pub struct NoSecrets;
impl Secrets for NoSecrets {
    fn seal(&self, _: SecretOwner<'_>, _: &BTreeMap<String, String>) -> Option<Sealed> {
        None
    }
    fn open(&self, _: SecretOwner<'_>, _: &Sealed) -> Result<BTreeMap<String, String>, String> {
        Err("no key".to_owned())
    }
}

/// See the module's text.
pub struct TestNode {
    dir: Arc<tempfile::TempDir>,
    node: Arc<Mutex<Option<Node>>>,
    http: SocketAddr,
    rpc: SocketAddr,
    scheduler: Scheduler,
}

pub fn options(dir: &Path) -> NodeOptions {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let operator = Caller { name: "test".to_owned(), role: Role::Operator, tenant: None, pools: Vec::new() };
    let mut store = EmbeddedOptions::new(dir);
    store.shards = 16;
    NodeOptions {
        name: "test".to_owned(),
        store: store.into(),
        http: any,
        rpc: any,
        tls: Default::default(),
        authenticator: Authenticator::single(TOKEN, operator),
        secrets: Arc::new(NoSecrets),
        open_to_loopback: None,
        origins: Default::default(),
        files: None,
        open_metrics: true,
        metrics: None,
        retention: campanile_actors::maintenance::Retention { days: 30, max_bytes: 0, audit_days: 400 },
        linger_us: 500,
        tracer: Tracer::default(),
    }
}

impl TestNode {
    pub async fn start() -> Self {
        Self::on(Arc::new(tempfile::tempdir().unwrap()), None).await
    }

    /// With other options.
    pub async fn with(change: impl FnOnce(&mut NodeOptions)) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let mut options = options(dir.path());
        change(&mut options);
        Self::of(dir, options).await
    }

    /// On a directory that a stopped node has left.
    pub async fn again(dir: Arc<tempfile::TempDir>) -> Self {
        Self::on(dir, None).await
    }

    async fn on(dir: Arc<tempfile::TempDir>, rpc: Option<SocketAddr>) -> Self {
        let mut options = options(dir.path());
        if let Some(rpc) = rpc {
            options.rpc = rpc;
        }
        Self::of(dir, options).await
    }

    async fn of(dir: Arc<tempfile::TempDir>, options: NodeOptions) -> Self {
        let node = Node::start(options).await.unwrap();
        let (http, rpc, scheduler) = (node.http_addr(), node.rpc_addr(), node.scheduler().clone());
        Self { dir, node: Arc::new(Mutex::new(Some(node))), http, rpc, scheduler }
    }

    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }
    pub fn rpc(&self) -> String {
        self.rpc.to_string()
    }
    pub fn http(&self) -> String {
        format!("http://{}", self.http)
    }
    /// Keeps the directory when the node is gone.
    pub fn dir_handle(&self) -> Arc<tempfile::TempDir> {
        self.dir.clone()
    }
    pub fn dir(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    /// Calls as anybody makes them, over RPC. Survives a restart of the node.
    pub async fn client(&self) -> Client {
        Client::connect(self.rpc(), TOKEN).await.unwrap()
    }

    /// Stops, and starts again on the same directory and RPC port.
    pub async fn restart(&self) -> Self {
        self.away(Duration::ZERO).await.0
    }

    /// Like [`TestNode::restart`], after some time. Also gives when nothing was decided, milliseconds since 1970.
    pub async fn away(&self, time: Duration) -> (Self, Range<i64>) {
        self.halt().await;
        let from = now_ms();
        wait_until(from + time.as_millis() as i64).await;
        let until = now_ms();
        let new = Self::on(self.dir.clone(), Some(self.rpc)).await;
        *self.node.lock().unwrap() = new.node.lock().unwrap().take();
        (Self { node: self.node.clone(), ..new }, from..until)
    }

    async fn halt(&self) {
        let node = self.node.lock().unwrap().take();
        if let Some(node) = node {
            node.stop().await;
        }
    }

    pub async fn stop(self) {
        self.halt().await;
    }
}

/// The wall clock, milliseconds since 1970.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

/// Until the wall clock shows this, milliseconds since 1970.
pub async fn wait_until(ms: i64) {
    while now_ms() < ms {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Polls until `look` gives something.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
