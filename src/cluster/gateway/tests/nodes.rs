//! A few gateways in one process, as far as ractor lets them: its registry of actors is one for all.

use super::super::{Gateway, Handler, Options, TlsFiles};
use crate::{
    keys::{Authority, ClusterKeys},
    membership::{Addresses, Member, Members, Versions},
    node_id,
};
use campanile_core::placement::NodeId;
use campanile_schema::ids::SessionId;
use std::{
    future::Future,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;

/// It only ends a test that hangs.
pub const SOON: Duration = Duration::from_secs(60);

/// Files of one CA.
pub struct Files {
    pub dir: TempDir,
}

impl Files {
    pub fn of(cluster: &str) -> Self {
        Self::with(&Authority::new(cluster).unwrap().keys(cluster).unwrap())
    }

    pub fn with(keys: &ClusterKeys) -> Self {
        let dir = TempDir::new().unwrap();
        for (file, text) in [("ca.pem", &keys.ca), ("node.pem", &keys.certificate), ("node-key.pem", &keys.key)] {
            write(&dir.path().join(file), text);
        }
        Self { dir }
    }

    pub fn tls(&self) -> TlsFiles {
        let path = |file| self.dir.path().join(file);
        TlsFiles { certificate: path("node.pem"), key: path("node-key.pem"), ca: path("ca.pem") }
    }
}

pub fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

pub fn options(cluster: &str, name: &str, files: &Files) -> Options {
    Options {
        cluster: cluster.to_owned(),
        node: node_id(name),
        name: name.to_owned(),
        listen: ([127, 0, 0, 1], 0).into(),
        tls: files.tls(),
    }
}

/// Answers "NAME: REQUEST"; a request "silence" never, "panic" by one, "large N" with N bytes, "count..." with
/// its length. Counts what it began.
pub fn handler(name: &str, begun: Arc<AtomicU64>) -> Handler {
    let name = name.to_owned();
    Arc::new(move |_from: NodeId, request: Vec<u8>| {
        begun.fetch_add(1, Ordering::Relaxed);
        let name = name.clone();
        Box::pin(async move {
            let text = String::from_utf8_lossy(&request[..request.len().min(64)]).into_owned();
            if text == "silence" {
                std::future::pending::<()>().await;
            }
            assert!(text != "panic", "as it was told");
            if text.starts_with("count") {
                return request.len().to_string().into_bytes();
            }
            match text.strip_prefix("large ") {
                Some(length) => vec![b'x'; length.parse().unwrap()],
                None => [name.as_bytes(), b": ", &request].concat(),
            }
        })
    })
}

pub struct Node {
    pub name: String,
    pub gateway: Gateway,
    pub begun: Arc<AtomicU64>,
}

pub async fn node(name: &str, files: &Files) -> Node {
    node_at(name, files, ([127, 0, 0, 1], 0).into()).await
}

pub async fn node_at(name: &str, files: &Files, listen: SocketAddr) -> Node {
    let begun = Arc::new(AtomicU64::new(0));
    let options = Options { listen, ..options("bells", name, files) };
    let gateway = Gateway::start(options, handler(name, begun.clone())).await.unwrap();
    Node { name: name.to_owned(), gateway, begun }
}

/// What membership would say, seen by the node with that name.
pub fn members(names: &[(&str, SocketAddr)], me: &str) -> Members {
    let member = |(name, address): &(&str, SocketAddr)| Member {
        node: node_id(name),
        name: (*name).to_owned(),
        generation: 1,
        session: SessionId(1),
        gossip: *address,
        addresses: Addresses { gateway: *address, rpc: *address, http: *address },
        executors_at: address.to_string(),
        build: String::new(),
        event_format: Versions(1, 1),
        wire_format: Versions(1, 1),
        shards: 256,
        draining: false,
        cordoned: false,
        suspect: false,
        is_self: *name == me,
        clock_wrong: false,
        clock_offset_ms: None,
    };
    let mut all: Vec<Member> = names.iter().map(member).collect();
    all.sort_by_key(|member| member.node);
    Members { all, refused: None }
}

/// Tells each of all.
pub fn introduce(nodes: &[&Node]) {
    let names: Vec<(&str, SocketAddr)> =
        nodes.iter().map(|node| (node.name.as_str(), node.gateway.address())).collect();
    for node in nodes {
        node.gateway.set_peers(&members(&names, &node.name));
    }
}

/// Polls until it is so.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + SOON;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub async fn connected(nodes: &[&Node]) {
    eventually("all are connected with all", || async {
        let one_way = |from: &Node, to: &Node| from.name == to.name || from.gateway.is_connected(node_id(&to.name));
        nodes.iter().all(|from| nodes.iter().all(|to| one_way(from, to)))
    })
    .await;
}

pub async fn ask(from: &Node, to: &str, request: &str) -> Result<String, super::super::GatewayError> {
    let answer = from.gateway.call(node_id(to), request.as_bytes().to_vec(), SOON).await;
    answer.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
