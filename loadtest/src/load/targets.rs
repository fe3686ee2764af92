//! The nodes that callers use: each call goes to a random node among those that are up, as with a load balancer that
//! knows no more.

use crate::random::mix;
use campanile_client::{Client, ClientError, ClientOptions};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::Mutex;

/// Which nodes are up, and since which of their starts. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct NodeStarts(Arc<[NodeStart]>);

#[derive(Debug, Default)]
struct NodeStart {
    /// 0: down.
    now: AtomicU64,
    begun: AtomicU64,
}

impl NodeStarts {
    pub fn of(nodes: usize) -> Self {
        Self((0..nodes).map(|_| NodeStart::default()).collect())
    }

    pub fn begin(&self, n: usize) {
        if let Some(start) = self.0.get(n) {
            start.now.store(start.begun.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    pub fn end(&self, n: usize) {
        if let Some(start) = self.0.get(n) {
            start.now.store(0, Ordering::Relaxed);
        }
    }

    /// Nodes that are up, each with the number of its start.
    fn up(&self) -> Vec<(usize, u64)> {
        let now = self.0.iter().map(|start| start.now.load(Ordering::Relaxed)).enumerate();
        now.filter(|(_, start)| *start > 0).collect()
    }
}

/// One node's: its address, the client since its latest start, and the calls that it answered.
struct Target {
    options: ClientOptions,
    client: Mutex<Option<(u64, Client)>>,
    answered: AtomicU64,
}

/// See the module's text.
pub struct Targets {
    node_starts: NodeStarts,
    targets: Vec<Target>,
    drawn: AtomicU64,
}

impl Targets {
    /// A node each, with its address; `seed` makes the draws.
    pub fn new(node_starts: NodeStarts, nodes: Vec<ClientOptions>, seed: u64) -> Self {
        let target = |options| Target { options, client: Mutex::default(), answered: AtomicU64::new(0) };
        Self { node_starts, targets: nodes.into_iter().map(target).collect(), drawn: AtomicU64::new(mix(seed)) }
    }

    /// A way in, and its number. One that cannot be reached is passed over; None: there is none.
    pub async fn draw(&self) -> Option<(usize, Client)> {
        let mut up = self.node_starts.up();
        while !up.is_empty() {
            let at = mix(self.drawn.fetch_add(1, Ordering::Relaxed)) % up.len() as u64;
            let (n, start) = up.swap_remove(at as usize);
            if let Some(target) = self.targets.get(n)
                && let Ok(client) = target.open(start).await
            {
                return Some((n, client));
            }
        }
        None
    }

    /// A call came back from there with an answer, a refusal among them.
    pub fn note(&self, n: usize) {
        if let Some(target) = self.targets.get(n) {
            target.answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls that each node answered.
    pub fn answered(&self) -> Vec<u64> {
        self.targets.iter().map(|target| target.answered.load(Ordering::Relaxed)).collect()
    }
}

impl Target {
    async fn open(&self, start: u64) -> Result<Client, ClientError> {
        let mut known = self.client.lock().await;
        if let Some((of, client)) = known.as_ref()
            && *of == start
        {
            return Ok(client.clone());
        }
        let client = Client::connect_with(self.options.clone()).await?;
        *known = Some((start, client.clone()));
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_up_from_each_start_to_its_end() {
        let node_starts = NodeStarts::of(3);
        assert_eq!(node_starts.up(), []);
        node_starts.begin(0);
        node_starts.begin(2);
        assert_eq!(node_starts.up(), [(0, 1), (2, 1)]);
        node_starts.end(0);
        assert_eq!(node_starts.up(), [(2, 1)]);
        node_starts.begin(0);
        assert_eq!(node_starts.up(), [(0, 2), (2, 1)]);
    }
}
