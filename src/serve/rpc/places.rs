//! How much of the node connections may take together: how many there may be for each address and each credential, and how many bytes
//! of frames that are not whole yet.

use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::{
        RPC_CONNECTIONS_PER_CREDENTIAL, RPC_FRAME_BEFORE_HELLO_BYTES, RPC_UNFINISHED_BYTES, RPC_UNGREETED_PER_PEER,
    },
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Counts of something by whose it is.
struct Counts<K>(Mutex<HashMap<K, usize>>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> Counts<K> {
    fn counts(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock()
    }

    /// None: there are as many as may be.
    fn take(self: &Arc<Self>, of: K, most: usize) -> Option<Seat<K>> {
        let mut counts = self.counts();
        let count = counts.entry(of.clone()).or_insert(0);
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Seat { counts: self.clone(), of })
    }
}

/// One of those that are counted, until it is dropped.
pub(super) struct Seat<K: Hash + Eq + Clone> {
    counts: Arc<Counts<K>>,
    of: K,
}

impl<K: Hash + Eq + Clone> Drop for Seat<K> {
    fn drop(&mut self) {
        let mut counts = self.counts.counts();
        if let Some(count) = counts.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.of);
            }
        }
    }
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Places {
    ungreeted: Arc<Counts<IpAddr>>,
    greeted: Arc<Counts<String>>,
    unfinished: Arc<AtomicUsize>,
}

/// Whoever has an IPv6 address has its whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl Places {
    /// A connection that has not said hello.
    pub fn ungreeted(&self, peer: IpAddr) -> Result<Seat<IpAddr>, ApiError> {
        self.ungreeted.take(network(peer), RPC_UNGREETED_PER_PEER).ok_or_else(|| {
            let message = format!("{RPC_UNGREETED_PER_PEER} connections from this address have not said hello yet");
            ApiError::new(ErrorCode::Overloaded, message).retry_after(1.0)
        })
    }

    /// One that has said whose it is.
    pub fn greeted(&self, credential: &str) -> Result<Seat<String>, ApiError> {
        self.greeted.take(credential.to_owned(), RPC_CONNECTIONS_PER_CREDENTIAL).ok_or_else(|| {
            let message = format!("this credential has {RPC_CONNECTIONS_PER_CREDENTIAL} connections to this node");
            ApiError::new(ErrorCode::Overloaded, message).retry_after(1.0)
        })
    }

    /// What one connection has of the node's budget for unfinished frames.
    pub fn unfinished(&self) -> Unfinished {
        Unfinished { all: self.unfinished.clone(), own: 0 }
    }
}

/// See [`Places::unfinished`].
pub(super) struct Unfinished {
    all: Arc<AtomicUsize>,
    own: usize,
}

impl Unfinished {
    /// The connection holds so many bytes of an unfinished frame now. Error: all of them together are too many.
    pub fn holds(&mut self, bytes: usize) -> Result<(), ApiError> {
        let counted = bytes.saturating_sub(RPC_FRAME_BEFORE_HELLO_BYTES);
        let before = if counted >= self.own {
            let more = counted - self.own;
            self.all.fetch_add(more, Ordering::Relaxed) + more
        } else {
            self.all.fetch_sub(self.own - counted, Ordering::Relaxed)
        };
        let grows = counted > self.own;
        self.own = counted;
        if grows && before > RPC_UNFINISHED_BYTES {
            let message = "the node holds too much of unfinished messages; connect again and send this one later";
            return Err(ApiError::new(ErrorCode::Overloaded, message).retry_after(1.0));
        }
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn connections_are_counted_by_network_and_credential_until_they_end() {
        let places = Places::default();
        let of = |address: &str| address.parse::<IpAddr>().unwrap();
        let mut seats: Vec<_> =
            (0..RPC_UNGREETED_PER_PEER).map(|n| places.ungreeted(of(&format!("2001:db8::{n:x}"))).unwrap()).collect();
        assert!(places.ungreeted(of("2001:db8::ffff")).is_err());
        assert!(places.ungreeted(of("2001:db8:0:1::1")).is_ok());
        assert!(places.ungreeted(of("192.0.2.1")).is_ok());
        seats.pop();
        assert!(places.ungreeted(of("2001:db8::ffff")).is_ok());
        let seats: Vec<_> = (0..RPC_CONNECTIONS_PER_CREDENTIAL).map(|_| places.greeted("a").unwrap()).collect();
        assert_eq!([places.greeted("a").is_ok(), places.greeted("b").is_ok()], [false, true]);
        drop(seats);
        assert!(places.greeted.counts().is_empty(), "nothing is left of those");
        assert_eq!(places.ungreeted.counts().len(), 1, "nothing is left of those");
    }

    #[test]
    fn unfinished_frames_of_all_connections_have_one_budget() {
        let places = Places::default();
        let free = RPC_FRAME_BEFORE_HELLO_BYTES;
        let mut connections: Vec<_> = (0..100).map(|_| places.unfinished()).collect();
        let each = RPC_UNFINISHED_BYTES / 100 + free;
        assert!(connections.iter_mut().all(|connection| connection.holds(each).is_ok()));
        let mut one_more = places.unfinished();
        assert!(one_more.holds(free).is_ok(), "small frames are always taken");
        assert!(one_more.holds(free + 200).is_err());
        assert!(one_more.holds(0).is_ok());
        connections.pop();
        assert!(one_more.holds(each).is_ok());
        drop((connections, one_more));
        assert_eq!(places.unfinished.load(Ordering::Relaxed), 0);
    }
}
