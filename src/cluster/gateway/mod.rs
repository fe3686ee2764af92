//! Calls from node to node over `ractor_cluster`. Each pair of nodes has one connection, with mutual TLS, and each node
//! has one actor that others can send to. Small calls to one peer travel together. `docs/adr/0016-gateway.md` has the
//! reasons.
//!
//! It is for forwarded commands, loans, questions and hints. It is never for leases, for finding out which nodes live,
//! or for bulk state: a connection that is slow or gone must not decide about those. It makes a call at most once;
//! repeating it is up to the caller.

mod actor;
mod connect;
mod error;
mod hello;
mod link;
mod message;
mod parcel;
mod sessions;
#[cfg(test)]
mod tests;
mod tls;

pub use actor::Handler;
pub use error::GatewayError;
pub use error::RESULTS;
pub use tls::TlsFiles;

use super::membership::Members;
use actor::{GatewayActor, Links};
use campanile_core::placement::NodeId;
use campanile_schema::limits::{GATEWAY_MESSAGE_BYTES, GATEWAY_PARCEL_BYTES};
use link::Peer;
use message::GatewayMsg;
use parking_lot::Mutex;
use ractor::{Actor, ActorRef};
use ractor_cluster::{IncomingEncryptionMode, NodeServer, NodeServerMessage, node::NodeConnectionMode};
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tls::Tls;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, JoinHandle},
};

/// ractor's own authentication has nothing to add to certificates that both sides have checked.
const COOKIE: &str = "campanile";
/// What a frame has beside a parcel, bytes.
const FRAME_BYTES: usize = 4 << 10;
/// Longest wait for actors at the end.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// Who this node is and where it listens.
#[derive(Clone, Debug)]
pub struct Options {
    pub cluster: String,
    pub node: NodeId,
    pub name: String,
    /// TCP. Port 0: a free one.
    pub listen: SocketAddr,
    pub tls: TlsFiles,
}

/// What is shared by the parts.
struct Inner {
    cluster: String,
    node: NodeId,
    name: String,
    tls: Tls,
    server: ActorRef<NodeServerMessage>,
    actor: ActorRef<GatewayMsg>,
    links: watch::Sender<Links>,
    /// What peers said of themselves in the greeting of the connection that is being made: name and number of their actor.
    greetings: Mutex<HashMap<NodeId, (String, u64)>>,
    peers: Mutex<HashMap<NodeId, KnownPeer>>,
}

/// A peer that membership named.
struct KnownPeer {
    name: String,
    address: SocketAddr,
    /// Of the two of a pair the one with the lower id dials.
    dialling: Option<AbortHandle>,
    failed: Option<String>,
}

/// This node's end of all connections. Ends with it.
pub struct Gateway {
    inner: Arc<Inner>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
    following: JoinHandle<()>,
}

impl Gateway {
    /// Listens; knows nobody yet. Errors are sentences for the operator.
    pub async fn start(options: Options, handler: Handler) -> Result<Self, String> {
        let tls = Tls::load(&options.tls, &options.cluster)?;
        let listen = options.listen;
        let taken = |error| {
            format!("the gateway cannot listen on {listen}: {error}; is another node running? Choose another address")
        };
        let listener = TcpListener::bind(listen).await.map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        let failed = |error: ractor::SpawnErr| format!("the gateway cannot start: {error}");
        let links = watch::channel(Links::new()).0;
        let gateway = GatewayActor { handler, links: links.subscribe() };
        let (actor, _) = Actor::spawn(None, gateway, ()).await.map_err(failed)?;
        // It insists on a listener of its own: on this machine only, and with the same certificates. Nobody calls there.
        let id = format!("{:016x}", options.node.0);
        let own = IncomingEncryptionMode::Tls(tls.acceptor.clone());
        let isolated = NodeConnectionMode::Isolated;
        let server = NodeServer::new(0, COOKIE.to_owned(), id.clone(), id, Some(own), Some(isolated))
            .with_listen_addr(IpAddr::V4(Ipv4Addr::LOCALHOST))
            .with_max_inbound_frame_size((GATEWAY_MESSAGE_BYTES + GATEWAY_PARCEL_BYTES + FRAME_BYTES) as u64);
        let (server, _) = Actor::spawn(None, server, ()).await.map_err(failed)?;
        let inner = Arc::new(Inner {
            cluster: options.cluster,
            node: options.node,
            name: options.name,
            tls,
            server,
            actor,
            links,
            greetings: Mutex::default(),
            peers: Mutex::default(),
        });
        let following = sessions::follow(inner.clone())?;
        let accepting = tokio::spawn(connect::accept(inner.clone(), listener));
        Ok(Self { inner, address, accepting, following })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whom to be connected with. A connection that works is kept, whatever membership thinks of its peer.
    pub fn set_peers(&self, members: &Members) {
        let mut peers = self.inner.peers.lock();
        peers.retain(|node, known| {
            let same = |member: &super::membership::Member| member.addresses.gateway == known.address;
            let keep = members.get(*node).is_some_and(same);
            if !keep && let Some(dialling) = &known.dialling {
                dialling.abort();
            }
            keep
        });
        for member in members.others() {
            let address = member.addresses.gateway;
            peers.entry(member.node).or_insert_with(|| {
                let peer = Peer { node: member.node, name: member.name.clone() };
                let dialling = (self.inner.node < member.node)
                    .then(|| tokio::spawn(connect::keep_dialling(self.inner.clone(), peer, address)).abort_handle());
                KnownPeer { name: member.name.clone(), address, dialling, failed: None }
            });
        }
    }

    /// Whether calls to it would be sent now.
    pub fn is_connected(&self, node: NodeId) -> bool {
        self.inner.links.borrow().contains_key(&node)
    }

    /// Asks a peer. Never answered twice; without an answer the error says whether it may have been executed.
    pub async fn call(&self, node: NodeId, request: Vec<u8>, timeout: Duration) -> Result<Vec<u8>, GatewayError> {
        let link = self.inner.links.borrow().get(&node).cloned();
        let result = match link {
            Some(link) => link.call(request, timeout).await,
            None => Err(GatewayError::NotConnected(self.inner.describe(node))),
        };
        let label = result.as_ref().map_or_else(GatewayError::label, |_| "answered");
        metrics::counter!("campanile_gateway_calls_total", "result" => label).increment(1);
        result
    }

    /// Closes all connections, and waits for it.
    pub async fn stop(self) {
        self.end();
        let server = self.inner.server.stop_and_wait(None, Some(ractor::concurrency::Duration::from(STOP_WAIT))).await;
        if server.is_err() {
            tracing::warn!("gateway: connections were not closed in time");
        }
    }

    fn end(&self) {
        self.accepting.abort();
        for known in self.inner.peers.lock().values() {
            if let Some(dialling) = &known.dialling {
                dialling.abort();
            }
        }
        let links: Vec<_> = self.inner.links.borrow().values().cloned().collect();
        for link in links {
            link.close();
        }
        self.inner.actor.stop(None);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.end();
        self.following.abort();
        self.inner.server.stop(None);
        self.inner.links.send_replace(Links::new());
    }
}

impl Inner {
    fn greeted(&self, node: NodeId, name: String, actor: u64) {
        self.greetings.lock().insert(node, (name, actor));
    }

    fn note_failure(&self, node: NodeId, why: String) {
        if let Some(known) = self.peers.lock().get_mut(&node) {
            known.failed = Some(why);
        }
    }

    /// A peer's name for people, with what went wrong last.
    fn describe(&self, node: NodeId) -> String {
        match self.peers.lock().get(&node) {
            Some(KnownPeer { name, failed: Some(why), .. }) => format!("'{name}' ({why})"),
            Some(KnownPeer { name, .. }) => format!("'{name}'"),
            None => format!("{:016x}, which is no member", node.0),
        }
    }
}
