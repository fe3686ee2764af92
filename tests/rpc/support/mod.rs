//! A node in this process, on a store in memory, with the RPC server on a free port; and a raw connection to it.
#![allow(dead_code, clippy::unwrap_used)]

use campanile_actors::{
    scheduler::Scheduler,
    session::{self, NodeSession, SessionParts},
};
use campanile_client::{Client, Executor, executor::ExecutorBuilder};
use campanile_ports::{Clock, Opened, SecretOwner, Secrets, spans::Tracer};
use campanile_schema::{
    error::ApiError,
    ids::{ClusterId, ExecutorSession},
    kinds::Kinds,
    rpc::{
        codec::{AFTER_HELLO, Decoder, Message, from_map},
        encode,
        executor::Register,
        hello::{ConnectionRole, Hello},
        method,
    },
    stored::Sealed,
};
use campanile_security::auth::{Authenticator, Caller, Role};
use campanile_serve::{
    ops::Operations,
    rpc::{Server, serve},
};
use campanile_store::memory::MemoryStore;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// Far above what anything here takes; reached only when something hangs.
pub const PATIENCE: Duration = Duration::from_secs(120);
pub const OPERATOR: &str = "operator-token";
pub const TENANT: &str = "tenant-token";
pub const EXECUTOR: &str = "executor-token";
/// A second token of the same name.
pub const ROTATED: &str = "executor-token-2";
/// Another executor of the same pools.
pub const FOREIGN: &str = "foreign-token";

pub struct SystemClock;
impl Clock for SystemClock {
    fn wall_us(&self) -> i64 {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as i64
    }
    fn boot_us(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
    }
}

/// Both clocks go ahead together by so many microseconds, as they do when time passes.
#[derive(Default)]
pub struct Ahead(pub AtomicI64);
impl Clock for Ahead {
    fn wall_us(&self) -> i64 {
        SystemClock.wall_us() + self.0.load(Ordering::Relaxed)
    }
    fn boot_us(&self) -> u64 {
        SystemClock.boot_us() + self.0.load(Ordering::Relaxed).cast_unsigned()
    }
}

struct NoSecrets;
impl Secrets for NoSecrets {
    fn seal(&self, _: SecretOwner<'_>, _: &BTreeMap<String, String>) -> Option<Sealed> {
        None
    }
    fn open(&self, _: SecretOwner<'_>, _: &Sealed) -> Result<BTreeMap<String, String>, String> {
        Err("no key".to_owned())
    }
}

pub struct Node {
    pub address: SocketAddr,
    pub scheduler: Scheduler,
    stop: watch::Sender<bool>,
    serving: Option<JoinHandle<()>>,
    pub session: NodeSession,
}

fn caller(name: &str, role: Role, tenant: Option<&str>, pools: &[&str]) -> Caller {
    Caller {
        name: name.to_owned(),
        role,
        tenant: tenant.map(str::to_owned),
        pools: pools.iter().map(|p| (*p).to_owned()).collect(),
    }
}

impl Node {
    pub async fn start() -> Self {
        Self::limited(0).await
    }

    /// Credentials may make so many calls a second; 0 = as many as they like.
    pub async fn limited(calls_per_sec: u32) -> Self {
        Self::on(MemoryStore::open(16, ClusterId(77)), Arc::new(SystemClock), calls_per_sec).await
    }

    /// On this store, by this clock.
    pub async fn on((store, opened): (Arc<MemoryStore>, Opened), clock: Arc<dyn Clock>, calls_per_sec: u32) -> Self {
        let (failures, _) = mpsc::unbounded_channel();
        let parts = SessionParts {
            node: "test".to_owned(),
            opened,
            journal: store.clone(),
            snapshots: store.clone(),
            views: store.clone(),
            secrets: Arc::new(NoSecrets),
            clock,
            boot_id: "boot".to_owned(),
            saved_clock: None,
            linger_us: 0,
            retention: campanile_actors::maintenance::Retention::default(),
            tracer: Tracer::default(),
            failures,
        };
        let session = session::start(parts).await.unwrap();
        let scheduler = Scheduler::new();
        scheduler.set_session(Ok(session.handles.clone()));
        let authenticator = Authenticator::fixed(vec![
            (OPERATOR, caller("op", Role::Operator, None, &[])),
            (TENANT, caller("fin", Role::Tenant, Some("fin"), &[])),
            (EXECUTOR, caller("x", Role::Executor, None, &["default", "blue"])),
            (ROTATED, caller("x", Role::Executor, None, &["default", "blue"])),
            (FOREIGN, caller("y", Role::Executor, None, &["default", "blue"])),
        ])
        .limited(calls_per_sec);
        let server = Server::new(Operations::new(scheduler.clone()), authenticator, "test", 77);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(serve(listener, None, server, stopped));
        Self { address, scheduler, stop, serving: Some(serving), session }
    }

    pub async fn client(&self, token: &str) -> Client {
        Client::connect(self.address.to_string(), token).await.unwrap()
    }

    pub fn executor(&self) -> ExecutorBuilder {
        Executor::builder(self.address.to_string(), EXECUTOR)
    }

    pub async fn raw(&self) -> Raw {
        Raw::open(self.address).await
    }

    /// Stops serving, as the node does before it ends.
    pub async fn stop(&mut self) {
        self.stop.send_replace(true);
        if let Some(serving) = self.serving.take() {
            within(serving).await.unwrap();
        }
    }
}

pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("hangs")
}

/// A message without borrows.
#[derive(Debug)]
pub enum RawMessage {
    Answer(u32, Result<Vec<u8>, ApiError>),
    Notification(String, Vec<u8>),
    Closed,
}

/// A connection on which anything can be sent.
pub struct Raw {
    pub stream: TcpStream,
    decoder: Decoder,
}

impl Raw {
    pub async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, decoder: Decoder::new(AFTER_HELLO) }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub async fn request<T: Serialize>(&mut self, id: u32, method: &str, params: &T) {
        let mut out = Vec::new();
        encode::request(&mut out, id, method, params).unwrap();
        self.send(&out).await;
    }

    pub async fn notify<T: Serialize>(&mut self, method: &str, params: &T) {
        let mut out = Vec::new();
        encode::notification(&mut out, method, params).unwrap();
        self.send(&out).await;
    }

    pub async fn hear(&mut self) -> RawMessage {
        loop {
            match self.decoder.next_message().unwrap() {
                Some(Message::Response { id, error, result }) => {
                    let answer = if error == [0xc0] { Ok(result.to_vec()) } else { Err(from_map(error).unwrap()) };
                    return RawMessage::Answer(id, answer);
                }
                Some(Message::Notification { method, params }) => {
                    return RawMessage::Notification(method.to_owned(), params.map().unwrap().to_vec());
                }
                Some(Message::Request { .. }) => panic!("a node does not call"),
                None => {}
            }
            let input = self.decoder.input(64 << 10);
            match within(self.stream.read_buf(input)).await {
                Ok(0) | Err(_) => return RawMessage::Closed,
                Ok(_) => {}
            }
        }
    }

    /// The next answer; its id and what it is. Hints come when they come.
    pub async fn answer(&mut self) -> (u32, Result<Vec<u8>, ApiError>) {
        loop {
            match self.hear().await {
                RawMessage::Answer(id, answer) => return (id, answer),
                RawMessage::Notification(name, _) if name == method::HINT => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub async fn hello(&mut self, token: &str, role: ConnectionRole) -> Result<Vec<u8>, ApiError> {
        let hello = Hello { protocol: 1, token: token.to_owned(), role, client: "test".to_owned() };
        self.request(0, method::HELLO, &hello).await;
        let (id, answer) = self.answer().await;
        assert_eq!(id, 0);
        answer
    }

    /// Why the node closes the connection.
    pub async fn farewell(&mut self) -> ApiError {
        loop {
            match self.hear().await {
                RawMessage::Notification(name, params) if name == method::SESSION_ERROR => {
                    assert!(matches!(self.hear().await, RawMessage::Closed), "closed after {name}");
                    return from_map(&params).unwrap();
                }
                RawMessage::Closed => panic!("closed without a word"),
                RawMessage::Answer(..) | RawMessage::Notification(..) => {}
            }
        }
    }
}

/// An executor of four slots.
pub fn register(session: u64, pools: &[&str]) -> Register {
    Register {
        executor_id: "raw".to_owned(),
        session: ExecutorSession(session),
        pools: pools.iter().map(|p| (*p).to_owned()).collect(),
        slots: 4,
        handlers: Vec::new(),
        any_handler: true,
        kinds: Kinds::NONE,
        labels: Default::default(),
        cpu: 0.0,
        memory_mb: 0,
        storage_mb: 0,
        stop_grace_sec: None,
    }
}
