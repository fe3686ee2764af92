//! The store on a real CQL server. All of it is ignored by default and run by `make test-cql`; what every store must do is in
//! `store/conformance`.
#![allow(clippy::unwrap_used)]

mod bench;
mod clocks;
mod faults;
mod forgetful;
mod history;
mod lanes;
mod layouts;
mod refused;
mod replicas;
mod secured;
mod server;
mod session_numbers;

use super::{CqlOptions, CqlStore, CqlTls, schema};
use campanile_core::ownership::rows::{Nonce, SessionRow, SessionState};
use campanile_schema::ids::SessionId;
use server::Server;
use std::{
    future::Future,
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::runtime::Runtime;

pub const SHARDS: u16 = 256;

/// Where stores live; ports are waited for on threads without a runtime.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());
    &RUNTIME
}

/// Waits for what needs the runtime's reactor.
pub fn on_runtime<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    runtime().spawn(async move { sender.send(future.await) });
    receiver.recv().unwrap()
}

pub fn options(server: &Server, keyspace: &str) -> CqlOptions {
    CqlOptions {
        contact_points: server.addresses.clone(),
        data_center: "datacenter1".to_owned(),
        keyspace: keyspace.to_owned(),
        replication: 1,
        user: String::new(),
        password_file: String::new(),
        tls: None,
        max_in_flight: 64,
        // A young server on a busy machine pauses.
        request_timeout: Duration::from_secs(10),
        retention_days: 30,
        audit_days: 400,
        cluster: "tests".to_owned(),
        shards: SHARDS,
        node: "node-1".to_owned(),
    }
}

/// A connected store whose schema was made.
pub fn open(options: CqlOptions) -> Arc<CqlStore> {
    on_runtime(async move {
        let report = schema::apply(&options, "tests", 1_000).await.unwrap();
        assert_eq!((report.applied.len(), report.missing.len()), (6, 0));
        CqlStore::connect(&options).await.unwrap().0
    })
}

/// The same cluster, as another node has it.
pub fn another() -> Arc<CqlStore> {
    let options = shared().options.clone();
    on_runtime(async move { CqlStore::connect(&options).await.unwrap().0 })
}

/// The server, and the keyspace in it, that all tests share; they keep apart by what they write.
pub struct Shared {
    pub store: Arc<CqlStore>,
    pub options: CqlOptions,
    _server: Server,
}

pub fn shared() -> &'static Shared {
    static SHARED: LazyLock<Shared> = LazyLock::new(|| {
        let server = Server::start(1);
        let options = options(&server, "shared");
        Shared { store: open(options.clone()), options, _server: server }
    });
    &SHARED
}

/// A session that acts, with one lane.
pub fn session_row(session: SessionId, version: u64, count: u64) -> SessionRow {
    SessionRow {
        version,
        nonce: Nonce { session, count },
        lease_ms: 2_500,
        window: 8,
        state: SessionState::Active,
        durable: vec![0],
        sealed: None,
    }
}
