//! Connections: accepted and dialled by us, under TLS and greeted, before ractor's node server gets them.
//!
//! Its own listener would wait for one stalled handshake while others queue, and it never dials again.

use super::{
    Inner,
    hello::{Hello, VERSION, Welcome, hear, say},
    link::Peer,
};
use campanile_core::placement::NodeId;
use campanile_schema::limits::{GATEWAY_HANDSHAKE_MS, GATEWAY_HANDSHAKES, GATEWAY_USER_TIMEOUT_MS};
use ractor_cluster::{NetworkStream, NodeServerMessage};
use rand::RngExt;
use std::{io, net::SocketAddr, sync::Arc};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Duration, Instant, sleep, timeout},
};

const HANDSHAKE: Duration = Duration::from_millis(GATEWAY_HANDSHAKE_MS);
/// Between two attempts to reach a peer: the first, and the longest.
const REDIAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// The same failure is told again after this long.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Accepts until it is aborted.
pub(super) async fn accept(inner: Arc<Inner>, listener: TcpListener) {
    let handshakes = Arc::new(Semaphore::new(GATEWAY_HANDSHAKES));
    loop {
        let Ok(place) = handshakes.clone().acquire_owned().await else { return };
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // No file handles, for example: later there may be some.
                tracing::warn!(%error, "gateway: no connection can be accepted");
                sleep(REDIAL.0).await;
                continue;
            }
        };
        let inner = inner.clone();
        tokio::spawn(async move {
            let why = match timeout(HANDSHAKE, welcome(&inner, stream, from)).await {
                Ok(Ok(())) => None,
                Ok(Err(why)) => Some(why),
                Err(_) => Some(format!("it did not say who it is within {GATEWAY_HANDSHAKE_MS} ms")),
            };
            if let Some(why) = why {
                metrics::counter!("campanile_gateway_handshakes_refused_total").increment(1);
                tracing::warn!("gateway: a connection from {from} is refused: {why}");
            }
            drop(place);
        });
    }
}

/// The accepting side.
async fn welcome(inner: &Inner, stream: TcpStream, from: SocketAddr) -> Result<(), String> {
    let local_addr = prepared(&stream).map_err(|error| error.to_string())?;
    let accepted = inner.tls.acceptor.accept(stream).await;
    let mut stream = accepted.map_err(|error| format!("TLS: {error}"))?;
    let named = inner.tls.check_caller(stream.get_ref().1.peer_certificates());
    let hello: Hello = hear(&mut stream).await.map_err(|error| error.to_string())?;
    let why = named.err().or_else(|| inner.objection(&hello));
    let answer = Welcome { refused: why.clone(), name: inner.name.clone(), actor: inner.actor.get_id().pid() };
    if why.is_none() {
        inner.replace(NodeId(hello.node)).await;
        inner.greeted(NodeId(hello.node), hello.name.clone(), hello.actor);
    }
    say(&mut stream, &answer).await.map_err(|error| error.to_string())?;
    if let Some(why) = why {
        return Err(format!("node '{}': {why}", hello.name));
    }
    inner.hand_over(NetworkStream::TlsServer { peer_addr: from, local_addr, stream }, true)
}

/// The dialling side.
async fn connect(inner: &Inner, peer: &Peer, address: SocketAddr) -> Result<(), String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let local_addr = prepared(&stream).map_err(|error| error.to_string())?;
    let connected = inner.tls.connector.connect(inner.tls.name.clone(), stream).await;
    let mut stream = connected.map_err(|error| format!("TLS: {error}"))?;
    let hello = Hello {
        version: VERSION,
        cluster: inner.cluster.clone(),
        node: inner.node.0,
        name: inner.name.clone(),
        wants: peer.node.0,
        actor: inner.actor.get_id().pid(),
    };
    // That our certificate is refused shows only here: with TLS 1.3 the client is done before the server has looked.
    let closed = |error: io::Error| format!("it refuses this node's certificate, or went away: {error}");
    say(&mut stream, &hello).await.map_err(closed)?;
    let welcome: Welcome = hear(&mut stream).await.map_err(closed)?;
    if let Some(why) = welcome.refused {
        return Err(format!("it refuses this node: {why}"));
    }
    inner.greeted(peer.node, welcome.name, welcome.actor);
    inner.hand_over(NetworkStream::TlsClient { peer_addr: address, local_addr, stream }, false)
}

/// Dials a peer whenever there is no connection to it, until it is aborted.
pub(super) async fn keep_dialling(inner: Arc<Inner>, peer: Peer, address: SocketAddr) {
    let mut links = inner.links.subscribe();
    let (mut pause, mut told) = (REDIAL.0, None);
    loop {
        if links.wait_for(|links| !links.contains_key(&peer.node)).await.is_err() {
            return;
        }
        let result = timeout(HANDSHAKE, connect(&inner, &peer, address)).await;
        let failed = match result {
            Ok(Ok(())) => match timeout(HANDSHAKE, links.wait_for(|links| links.contains_key(&peer.node))).await {
                Ok(_) => None,
                Err(_) => Some("it was greeted, and then nothing came".to_owned()),
            },
            Ok(Err(why)) => Some(why),
            Err(_) => Some(format!("no answer within {GATEWAY_HANDSHAKE_MS} ms")),
        };
        match failed {
            None => (pause, told) = (REDIAL.0, None),
            Some(why) => {
                if told.is_none_or(|told: Instant| told.elapsed() >= TELL_EVERY) {
                    told = Some(Instant::now());
                    tracing::warn!("gateway: no connection to node '{}' at {address}: {why}", peer.name);
                }
                inner.note_failure(peer.node, why);
                // Not all nodes at one moment after a network was away.
                let jitter = rand::rng().random_range(0.5..1.0);
                sleep(pause.mul_f64(jitter)).await;
                pause = (pause * 2).min(REDIAL.1);
            }
        }
    }
}

/// What is sent and not acknowledged by the other machine ends the connection soon, whatever the system's retries are.
fn prepared(stream: &TcpStream) -> io::Result<SocketAddr> {
    stream.set_nodelay(true)?;
    let limit = Duration::from_millis(GATEWAY_USER_TIMEOUT_MS);
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(limit))?;
    stream.local_addr()
}

impl Inner {
    /// Why a caller is not connected, for both logs.
    fn objection(&self, hello: &Hello) -> Option<String> {
        if hello.version != VERSION {
            return Some(format!("it speaks version {} of the gateway, this node {VERSION}", hello.version));
        }
        if hello.cluster != self.cluster {
            return Some(format!("it belongs to cluster '{}', this node to '{}'", hello.cluster, self.cluster));
        }
        if hello.wants != self.node.0 {
            return Some(format!("it looks for another node than '{}'; the address has changed hands", self.name));
        }
        (hello.node == self.node.0).then(|| format!("it has this node's own name, '{}'", self.name))
    }

    /// Ends a connection that its peer has given up, before the new one comes: ractor would choose one of both by lot.
    async fn replace(&self, node: NodeId) {
        let old = self.links.borrow().get(&node).cloned();
        if let Some(old) = old {
            old.close();
            let mut links = self.links.subscribe();
            let gone = links.wait_for(|links| links.get(&node).is_none_or(|link| !Arc::ptr_eq(link, &old)));
            // Bounded by the handshake; ractor decides when it takes longer.
            let _ = timeout(HANDSHAKE / 3, gone).await;
        }
    }

    fn hand_over(&self, stream: NetworkStream, is_server: bool) -> Result<(), String> {
        let opened = NodeServerMessage::ConnectionOpened { stream: Box::new(stream), is_server };
        self.server.cast(opened).map_err(|_| "the gateway is stopping".to_owned())
    }
}
