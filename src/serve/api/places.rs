//! Places of connections: so many for all, so many for one peer, and a few that are kept for `/healthz` and `/readyz`, so that
//! who looks after the node hears of it also when callers have taken everything.

use super::connection::Connection;
use campanile_schema::limits::{
    HTTP_CONNECTIONS, HTTP_CONNECTIONS_KEPT, HTTP_CONNECTIONS_KEPT_PER_PEER, HTTP_CONNECTIONS_PER_PEER,
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// What a connection may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceKind {
    Everything,
    /// `/healthz` and `/readyz` only.
    Health,
}

/// Why a connection gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The peer has as many as one peer may have.
    Peer,
    All,
}

#[derive(Default)]
struct Counts {
    all: usize,
    kept: usize,
    /// Of a peer: all, and those of them that are kept ones.
    peers: HashMap<IpAddr, (usize, usize)>,
    /// Connections that wait for their next request, by the order in which they began to.
    idle: BTreeMap<u64, Arc<Connection>>,
    turn: u64,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Places {
    counts: Mutex<Counts>,
}

/// Counts until it is dropped.
pub(super) struct ConnectionPlace {
    places: Arc<Places>,
    peer: IpAddr,
    pub kind: PlaceKind,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut counts = self.places.counts.lock();
        match self.kind {
            PlaceKind::Everything => counts.all -= 1,
            PlaceKind::Health => counts.kept -= 1,
        }
        if let Some((all, kept)) = counts.peers.get_mut(&self.peer) {
            *all -= 1;
            *kept -= usize::from(self.kind == PlaceKind::Health);
            if *all == 0 {
                counts.peers.remove(&self.peer);
            }
        }
    }
}

/// Whom an address belongs to: of IPv6 a network, since one host has as many addresses as it likes.
fn peer_of(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl Places {
    /// A place for a new connection. When there is none, the connection that has been idle longest is closed for it.
    pub fn take(self: &Arc<Self>, address: SocketAddr) -> Result<ConnectionPlace, NoPlace> {
        let peer = peer_of(address);
        let mut counts = self.counts.lock();
        let (of_peer, kept_of_peer) = counts.peers.get(&peer).copied().unwrap_or_default();
        if of_peer >= HTTP_CONNECTIONS_PER_PEER {
            return Err(NoPlace::Peer);
        }
        let kind = if counts.all < HTTP_CONNECTIONS {
            PlaceKind::Everything
        } else if let Some((_, idle)) = counts.idle.pop_first() {
            // Its own place is given back when it is gone, in a moment; until then there is one more.
            idle.close();
            PlaceKind::Everything
        } else if counts.kept < HTTP_CONNECTIONS_KEPT && kept_of_peer < HTTP_CONNECTIONS_KEPT_PER_PEER {
            PlaceKind::Health
        } else {
            return Err(NoPlace::All);
        };
        match kind {
            PlaceKind::Everything => counts.all += 1,
            PlaceKind::Health => counts.kept += 1,
        }
        let (all, kept) = counts.peers.entry(peer).or_default();
        *all += 1;
        *kept += usize::from(kind == PlaceKind::Health);
        Ok(ConnectionPlace { places: self.clone(), peer, kind })
    }

    /// A connection that may be closed for another one from now on; the answer is its turn.
    pub fn idle(&self, connection: Arc<Connection>) -> u64 {
        let mut counts = self.counts.lock();
        counts.turn += 1;
        let turn = counts.turn;
        counts.idle.insert(turn, connection);
        turn
    }

    /// ... and not any more. It may be closed already.
    pub fn busy(&self, turn: u64) {
        self.counts.lock().idle.remove(&turn);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::api::link::Link;

    fn from(n: usize) -> SocketAddr {
        format!("10.{}.{}.1:1", n / 250, n % 250).parse().unwrap()
    }

    #[test]
    fn places_are_bounded_for_all_and_for_each_peer() {
        let places = Arc::<Places>::default();
        let one = from(0);
        let mut held: Vec<ConnectionPlace> =
            (0..HTTP_CONNECTIONS_PER_PEER).map(|_| places.take(one).unwrap()).collect();
        assert_eq!(places.take(one).map(|place| place.kind), Err(NoPlace::Peer));
        held.extend((held.len()..HTTP_CONNECTIONS).map(|n| places.take(from(1 + n)).unwrap()));
        assert!(held.iter().all(|place| place.kind == PlaceKind::Everything));
        // Of the kept ones, too, one peer does not get all.
        let other = from(9_000);
        let kept: Vec<ConnectionPlace> =
            (0..HTTP_CONNECTIONS_KEPT_PER_PEER).map(|_| places.take(other).unwrap()).collect();
        assert!(kept.iter().all(|place| place.kind == PlaceKind::Health));
        assert_eq!(places.take(other).map(|place| place.kind), Err(NoPlace::All));
        held.pop();
        assert_eq!(places.take(other).map(|place| place.kind), Ok(PlaceKind::Everything));
        drop((held, kept));
        let counts = places.counts.lock();
        assert_eq!((counts.all, counts.kept, counts.peers.len()), (0, 0, 0));
    }

    #[test]
    fn an_idle_connection_makes_room_for_a_new_one() {
        let places = Arc::<Places>::default();
        let _held: Vec<ConnectionPlace> = (0..HTTP_CONNECTIONS).map(|n| places.take(from(n)).unwrap()).collect();
        let link = Link::new(places.clone(), PlaceKind::Everything);
        let busy = link.clone().begin();
        assert_eq!(places.take(from(9_000)).map(|place| place.kind), Ok(PlaceKind::Health));
        drop(busy);
        assert_eq!(places.take(from(9_001)).map(|place| place.kind), Ok(PlaceKind::Everything));
        assert!(link.is_closed());
        assert_eq!(places.take(from(9_002)).map(|place| place.kind), Ok(PlaceKind::Health));
    }

    #[test]
    fn of_ipv6_a_network_is_one_peer() {
        let peer = |text: &str| peer_of(text.parse().unwrap());
        assert_eq!(peer("[2001:db8::1]:1"), peer("[2001:db8::2]:9"));
        assert_ne!(peer("[2001:db8::1]:1"), peer("[2001:db8:0:1::1]:1"));
        assert_eq!(peer("[::ffff:10.0.0.1]:1"), peer("10.0.0.1:2"));
    }
}
