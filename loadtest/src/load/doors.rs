//! The nodes that callers use: each call goes to a random node among those that are up, as with a load balancer that
//! knows no more.

use crate::random::mix;
use campanile_client::{Client, ClientError, ClientOptions};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::Mutex;

/// Which nodes are up, and in which life: each start is a new one. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Lives(Arc<[Life]>);

#[derive(Debug, Default)]
struct Life {
    /// 0: down.
    now: AtomicU64,
    begun: AtomicU64,
}

impl Lives {
    pub fn of(nodes: usize) -> Self {
        Self((0..nodes).map(|_| Life::default()).collect())
    }

    pub fn begin(&self, n: usize) {
        if let Some(life) = self.0.get(n) {
            life.now.store(life.begun.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    pub fn end(&self, n: usize) {
        if let Some(life) = self.0.get(n) {
            life.now.store(0, Ordering::Relaxed);
        }
    }

    /// Nodes that are up, with their lives.
    fn up(&self) -> Vec<(usize, u64)> {
        let now = self.0.iter().map(|life| life.now.load(Ordering::Relaxed)).enumerate();
        now.filter(|(_, life)| *life > 0).collect()
    }
}

/// One node's: its address, the client of its present life, and the calls that it answered.
struct Door {
    options: ClientOptions,
    client: Mutex<Option<(u64, Client)>>,
    answered: AtomicU64,
}

/// See the module's text.
pub struct Doors {
    lives: Lives,
    doors: Vec<Door>,
    drawn: AtomicU64,
}

impl Doors {
    /// A node each, with its address; `seed` makes the draws.
    pub fn new(lives: Lives, nodes: Vec<ClientOptions>, seed: u64) -> Self {
        let door = |options| Door { options, client: Mutex::default(), answered: AtomicU64::new(0) };
        Self { lives, doors: nodes.into_iter().map(door).collect(), drawn: AtomicU64::new(mix(seed)) }
    }

    /// A way in, and its number. One that cannot be reached is passed over; None: there is none.
    pub async fn draw(&self) -> Option<(usize, Client)> {
        let mut up = self.lives.up();
        while !up.is_empty() {
            let at = mix(self.drawn.fetch_add(1, Ordering::Relaxed)) % up.len() as u64;
            let (n, life) = up.swap_remove(at as usize);
            if let Some(door) = self.doors.get(n)
                && let Ok(client) = door.open(life).await
            {
                return Some((n, client));
            }
        }
        None
    }

    /// A call came back from there with an answer, a refusal among them.
    pub fn note(&self, n: usize) {
        if let Some(door) = self.doors.get(n) {
            door.answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls that each node answered.
    pub fn answered(&self) -> Vec<u64> {
        self.doors.iter().map(|door| door.answered.load(Ordering::Relaxed)).collect()
    }
}

impl Door {
    async fn open(&self, life: u64) -> Result<Client, ClientError> {
        let mut known = self.client.lock().await;
        if let Some((of, client)) = known.as_ref()
            && *of == life
        {
            return Ok(client.clone());
        }
        let client = Client::connect_with(self.options.clone()).await?;
        *known = Some((life, client.clone()));
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_up_from_each_start_to_its_end_in_another_life() {
        let lives = Lives::of(3);
        assert_eq!(lives.up(), []);
        lives.begin(0);
        lives.begin(2);
        assert_eq!(lives.up(), [(0, 1), (2, 1)]);
        lives.end(0);
        assert_eq!(lives.up(), [(2, 1)]);
        lives.begin(0);
        assert_eq!(lives.up(), [(0, 2), (2, 1)]);
    }
}
