//! How many `Deliver` calls of this node are under way: so many in all, and a quarter of them to one other node, so that a node that
//! does not answer leaves places for all others. Places are given in the order in which they were asked for.

use campanile_schema::{
    ids::SessionId,
    limits::{DELIVERS_IN_FLIGHT, DELIVERS_TO_ONE_NODE},
};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Sessions that are remembered although nothing is under way to them, count.
const REMEMBERED: usize = 64;

/// See the module's text. One per session.
pub struct DeliveryWindow {
    all: Arc<Semaphore>,
    by_node: Mutex<HashMap<SessionId, Arc<Semaphore>>>,
}

/// One call under way, until it is dropped.
#[derive(Debug)]
pub struct DeliveryPlace {
    _node: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
}

impl Default for DeliveryWindow {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(DELIVERS_IN_FLIGHT)), by_node: Mutex::default() }
    }
}

impl DeliveryWindow {
    /// Waits for a place. `node`: the session of the other node that is called; None: the shard is here.
    pub async fn enter(&self, node: Option<SessionId>) -> DeliveryPlace {
        // First, or calls that wait for one node would keep places from the others.
        let node = match node.map(|node| self.of(node)) {
            Some(places) => places.acquire_owned().await.ok(),
            None => None,
        };
        DeliveryPlace { _node: node, _all: self.all.clone().acquire_owned().await.ok() }
    }

    fn of(&self, node: SessionId) -> Arc<Semaphore> {
        let mut by_node = self.by_node.lock();
        if by_node.len() >= REMEMBERED {
            by_node.retain(|_, places| places.available_permits() < DELIVERS_TO_ONE_NODE);
        }
        by_node.entry(node).or_insert_with(|| Arc::new(Semaphore::new(DELIVERS_TO_ONE_NODE))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    fn enters(window: &DeliveryWindow, node: Option<u64>) -> Option<DeliveryPlace> {
        let mut entering = std::pin::pin!(window.enter(node.map(SessionId)));
        match entering.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_node_that_does_not_answer_leaves_places_for_the_others() {
        let window = DeliveryWindow::default();
        let mut slow: Vec<_> = std::iter::from_fn(|| enters(&window, Some(1))).take(DELIVERS_IN_FLIGHT).collect();
        assert_eq!(slow.len(), DELIVERS_TO_ONE_NODE);
        let others: Vec<_> = std::iter::from_fn(|| enters(&window, None)).take(DELIVERS_IN_FLIGHT).collect();
        assert_eq!(others.len(), DELIVERS_IN_FLIGHT - DELIVERS_TO_ONE_NODE);
        assert!(enters(&window, Some(2)).is_none(), "none is left");
        drop(slow.pop());
        assert!(enters(&window, Some(2)).is_some());
    }
}
