//! From ractor's sessions to links: one that is ready becomes a link, one that ends takes it away.

use super::{
    Inner,
    link::{Link, Peer},
    message::GatewayMsg,
};
use campanile_core::placement::NodeId;
use ractor::{ActorId, ActorRef};
use ractor_cluster::{NodeEventSubscription, NodeServerMessage, node::NodeServerSessionInformation};
use std::sync::Arc;
use tokio::{sync::mpsc, task::JoinHandle};

enum News {
    Ready(NodeServerSessionInformation),
    Gone(NodeServerSessionInformation),
}

/// Called by the node server, which must not wait. As many as there are connections.
struct Reports(mpsc::UnboundedSender<News>);

impl NodeEventSubscription for Reports {
    fn node_session_opened(&self, _session: NodeServerSessionInformation) {}
    fn node_session_authenticated(&self, _session: NodeServerSessionInformation) {}

    fn node_session_ready(&self, session: NodeServerSessionInformation) {
        // Nobody follows any more: the gateway ends.
        let _ = self.0.send(News::Ready(session));
    }

    fn node_session_disconnected(&self, session: NodeServerSessionInformation) {
        let _ = self.0.send(News::Gone(session));
    }
}

pub(super) fn follow(inner: Arc<Inner>) -> Result<JoinHandle<()>, String> {
    let (report, mut news) = mpsc::unbounded_channel();
    let subscribe =
        NodeServerMessage::SubscribeToEvents { id: "gateway".to_owned(), subscription: Box::new(Reports(report)) };
    inner.server.cast(subscribe).map_err(|error| format!("the gateway cannot start: {error}"))?;
    Ok(tokio::spawn(async move {
        while let Some(news) = news.recv().await {
            match news {
                News::Ready(session) => {
                    if let Err(why) = inner.open(&session) {
                        tracing::warn!("gateway: a connection from {} is closed: {why}", session.peer_addr);
                        session.actor.stop(None);
                    }
                }
                News::Gone(session) => inner.gone(&session),
            }
        }
    }))
}

impl Inner {
    fn open(&self, session: &NodeServerSessionInformation) -> Result<(), &'static str> {
        let node = node_of(session).ok_or("it has no node's name")?;
        let (name, actor) = self.greetings.lock().get(&node).cloned().ok_or("it was not greeted")?;
        // Its gateway actor as it is mirrored here. Anything else that it mirrors is not spoken to.
        let mirrored = |id| matches!(id, ActorId::Remote { pid, .. } if pid == actor);
        let cell = session.actor.get_children().into_iter().find(|cell| mirrored(cell.get_id()));
        let cell = cell.ok_or("it has no gateway actor")?;
        let peer = Peer { node, name };
        if let Some(known) = self.peers.lock().get_mut(&node) {
            known.failed = None;
        }
        tracing::info!("gateway: connected with node '{}' at {}", peer.name, session.peer_addr);
        let link = Link::open(peer, self.node, ActorRef::<GatewayMsg>::from(cell), session.actor.clone());
        self.links.send_modify(|links| {
            if let Some(old) = links.insert(node, link) {
                old.close();
            }
        });
        self.count();
        Ok(())
    }

    fn gone(&self, session: &NodeServerSessionInformation) {
        let Some(node) = node_of(session) else { return };
        self.links.send_if_modified(|links| {
            let ours = links.get(&node).is_some_and(|link| link.is_of(&session.actor));
            if ours && let Some(link) = links.remove(&node) {
                tracing::info!("gateway: the connection with node '{}' has ended", link.peer.name);
                link.close();
                self.greetings.lock().remove(&node);
            }
            ours
        });
        self.count();
    }

    fn count(&self) {
        metrics::gauge!("campanile_gateway_links").set(self.links.borrow().len() as f64);
    }
}

/// The id that the session's peer has as its name.
fn node_of(session: &NodeServerSessionInformation) -> Option<NodeId> {
    let name = &session.peer_name.as_ref()?.name;
    u64::from_str_radix(name.split('@').next()?, 16).ok().map(NodeId)
}
