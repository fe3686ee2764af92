//! The RPC server: msgpack-rpc over TCP for callers in any language, and for executors.
//!
//! Each connection has one reader and one writer. Calls run side by side, in a limited number for each connection. The
//! server stops reading from a peer that does not read its answers. Messages of executors are batches and go to the
//! scheduler as batches.
//!
//! Never here: permissions and the meaning of a call (`ops`, the same for HTTP), and decisions about runs.
//! `docs/rpc.md` describes the protocol.

mod calls;
mod claims;
mod connection;
mod executor;
mod logs;
mod members;
mod places;
mod reply;
mod watching;
mod writer;

use crate::ops::Operations;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::ExecutorSession,
    limits::{RPC_CLOSE_MS, RPC_CONNECTIONS, TOKEN_LOOK_MS},
    rpc::{encode, executor::ClusterNodes, method},
    text::Text,
};
use campanile_security::{
    auth::Authenticator,
    tls::{Handshakes, Port, ServingCertificate, Transport},
};
use claims::Complaints;
use parking_lot::{Mutex, MutexGuard};
use places::{Places, Seat};
use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    io::AsyncWriteExt,
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
};

/// What a listener serves.
pub struct Server {
    operations: Operations,
    authenticator: Authenticator,
    /// Name of this node, told in the hello.
    node: String,
    cluster_id: u64,
    /// The nodes that executors are told of; None: the node is alone.
    nodes: Option<watch::Receiver<Arc<ClusterNodes>>>,
    /// The connection that each executor session is on: a connection that ends late must not end its successor's session.
    sessions: Mutex<HashMap<ExecutorSession, (u64, Text)>>,
    complaints: Arc<Complaints>,
    places: Places,
}

impl Server {
    pub fn new(operations: Operations, authenticator: Authenticator, node: impl Into<String>, cluster_id: u64) -> Self {
        Self {
            operations,
            authenticator,
            node: node.into(),
            cluster_id,
            nodes: None,
            sessions: Mutex::default(),
            complaints: Arc::default(),
            places: Places::default(),
        }
    }

    /// Executors are told of these nodes.
    #[must_use]
    pub fn with_nodes(self, nodes: Option<watch::Receiver<Arc<ClusterNodes>>>) -> Self {
        Self { nodes, ..self }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<ExecutorSession, (u64, Text)>> {
        self.sessions.lock()
    }

    /// A session registers on a connection; from now on the one before speaks for it no more. False: it is on a connection of another
    /// credential, and stays there.
    fn takes(&self, session: ExecutorSession, connection: u64, credential: &Text) -> bool {
        let mut sessions = self.sessions();
        let free = sessions.get(&session).is_none_or(|(_, holder)| holder == credential);
        if free {
            sessions.insert(session, (connection, credential.clone()));
        }
        free
    }

    /// A connection was not given the session that it asked for.
    fn gives_back(&self, session: ExecutorSession, connection: u64) {
        let mut sessions = self.sessions();
        if sessions.get(&session).is_some_and(|(on, _)| *on == connection) {
            sessions.remove(&session);
        }
    }

    /// A connection ends: its session is disconnected unless it is on another one by now.
    fn leaves(&self, session: ExecutorSession, connection: u64) {
        let mut sessions = self.sessions();
        if sessions.get(&session).is_some_and(|(on, _)| *on == connection) {
            sessions.remove(&session);
            // Under the lock, so that it cannot overtake a registration on another connection.
            self.operations.scheduler.executor_disconnected(session);
        }
    }

    fn is_on(&self, session: ExecutorSession, connection: u64) -> bool {
        self.sessions().get(&session).is_some_and(|(on, _)| *on == connection)
    }
}

/// Serves until `stop` becomes true (or its sender is dropped); then no call is taken any more, and those under way get
/// their answers. `tls`: None = in clear.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServingCertificate>>,
    server: Server,
    mut stop: watch::Receiver<bool>,
) {
    let server = Arc::new(server);
    let room = Arc::new(Semaphore::new(RPC_CONNECTIONS));
    let mut connections = JoinSet::new();
    // One too many goes without a permit, to be told so over TLS too.
    let mut handshakes = Handshakes::<Result<ConnectionPlace, ApiError>>::new(tls, Port::Rpc, speaks_tls);
    // At zero from the start: what looks for an increase would miss the first one.
    metrics::counter!("campanile_executor_claims_refused_total").increment(0);
    metrics::counter!("campanile_executor_guessers_closed_total").increment(0);
    metrics::counter!("campanile_rpc_hellos_refused_total").increment(0);
    let mut number = 0u64;
    // Also when nobody calls: the connections of a token that is taken back must end.
    let mut looks = tokio::time::interval(Duration::from_millis(TOKEN_LOOK_MS));
    loop {
        let (accepted, finished) = tokio::select! {
            accepted = listener.accept() => (Some(accepted), None),
            finished = handshakes.next() => (None, Some(finished)),
            // Reaps those that have ended.
            Some(_) = connections.join_next() => continue,
            _ = looks.tick() => {
                server.authenticator.look();
                continue;
            }
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let ready = match accepted {
            Some(Ok((stream, peer))) => {
                let _ = stream.set_nodelay(true);
                let place = match room.clone().try_acquire_owned() {
                    Ok(permit) => {
                        let seat = server.places.ungreeted(peer.ip());
                        seat.map(|seat| ConnectionPlace { permit, peer: (peer.ip(), seat) })
                    }
                    Err(_) => Err(full()),
                };
                handshakes.begin(stream, place)
            }
            Some(Err(error)) => {
                // Out of file descriptors, most likely: those in use are freed by connections that end.
                tracing::warn!(%error, "cannot accept an RPC connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                None
            }
            None => finished,
        };
        match ready {
            None => {}
            Some((transport, Ok(ConnectionPlace { permit, peer }))) => {
                number += 1;
                let (server, stop) = (server.clone(), stop.clone());
                connections.spawn(async move {
                    let _permit = permit;
                    connection::run(transport, number, peer, server, stop).await;
                });
            }
            Some((transport, Err(error))) => refuse(transport, &error).await,
        }
    }
    drop(listener);
    drop(handshakes);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(Duration::from_millis(RPC_CLOSE_MS), all).await;
}

/// Room for a connection.
struct ConnectionPlace {
    permit: OwnedSemaphorePermit,
    /// Its seat is among those of its network until it has said hello.
    peer: (IpAddr, Seat<IpAddr>),
}

fn full() -> ApiError {
    ApiError::new(ErrorCode::Overloaded, format!("the node has {RPC_CONNECTIONS} connections; try another"))
}

/// One connection too many.
async fn refuse(mut transport: Transport, error: &ApiError) {
    let told = async {
        transport.write_all(&farewell(error)).await?;
        transport.flush().await
    };
    // A new socket has room for these few bytes.
    let _ = tokio::time::timeout(Duration::from_millis(100), told).await;
}

/// To who speaks in clear on a port that speaks TLS.
fn speaks_tls() -> Vec<u8> {
    let message = "this port speaks TLS, and the connection is in clear: write tls:// in front of the node's address";
    farewell(&ApiError::new(ErrorCode::InvalidArgument, message))
}

fn farewell(error: &ApiError) -> Vec<u8> {
    let mut out = Vec::new();
    if encode::notification(&mut out, method::SESSION_ERROR, error).is_err() {
        // A few words always fit; without them the connection only ends.
        out.clear();
    }
    out
}
