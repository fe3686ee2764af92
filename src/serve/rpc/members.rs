//! Tells the executor on a connection which nodes there are: after its registration, and whenever that changes.

use super::writer::Outgoing;
use campanile_schema::rpc::{encode, executor::ClusterNodes, method};
use std::sync::Arc;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// Tells until it is dropped.
pub(super) struct Telling(JoinHandle<()>);

impl Drop for Telling {
    fn drop(&mut self) {
        // It holds the way to the connection's writer, which ends with the last one.
        self.0.abort();
    }
}

pub(super) fn start(nodes: watch::Receiver<Arc<ClusterNodes>>, out: mpsc::Sender<Outgoing>) -> Telling {
    Telling(tokio::spawn(tell(nodes, out)))
}

async fn tell(mut nodes: watch::Receiver<Arc<ClusterNodes>>, out: mpsc::Sender<Outgoing>) {
    loop {
        let now = nodes.borrow_and_update().clone();
        let mut bytes = Vec::new();
        if let Err(error) = encode::notification(&mut bytes, method::MEMBERS, &*now) {
            tracing::error!(%error, "an executor cannot be told of the nodes");
        }
        if out.send(Outgoing::Frame { bytes, permit: None }).await.is_err() || nodes.changed().await.is_err() {
            return;
        }
    }
}
