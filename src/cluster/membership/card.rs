//! What a node says of itself, and what a node knows of the others.
//!
//! It is no part of the identity: in SWIM a changed identity is another member, so that every change of session would be a death
//! and a birth, and probes to the old identity would go unanswered meanwhile. A card goes with every packet of its node, and once
//! more as a broadcast when it changes.

use super::identity::Identity;
use campanile_schema::limits::{GOSSIP_CARD_BYTES, GOSSIP_CARDS};
use foca::{BroadcastHandler, Invalidates};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, convert::Infallible, fmt, net::SocketAddr, sync::Arc};

/// A card whose process is not a member (yet) is kept this long, milliseconds.
const STRANGER_MS: u64 = 60_000;

/// Where a node listens, as others reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    #[serde(rename = "g")]
    pub gateway: SocketAddr,
    #[serde(rename = "r")]
    pub rpc: SocketAddr,
    #[serde(rename = "h")]
    pub http: SocketAddr,
}

/// Versions of a format that a build reads, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions(pub u32, pub u32);

impl Versions {
    fn meet(self, other: Self) -> bool {
        self.0 <= other.1 && other.0 <= self.1
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == self.1 { write!(f, "{}", self.0) } else { write!(f, "{} to {}", self.0, self.1) }
    }
}

/// Sent as a map, so that a later release may say more and this one still reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    #[serde(rename = "i")]
    pub node: u64,
    #[serde(rename = "g")]
    pub generation: u64,
    #[serde(rename = "p")]
    pub process: u32,
    /// Rises with each change of what follows.
    #[serde(rename = "v")]
    pub revision: u32,
    #[serde(rename = "n")]
    pub name: String,
    #[serde(rename = "s")]
    pub session: u64,
    #[serde(rename = "a")]
    pub addresses: Addresses,
    #[serde(rename = "b")]
    pub build: String,
    #[serde(rename = "e")]
    pub event_format: Versions,
    #[serde(rename = "w")]
    pub wire_format: Versions,
    #[serde(rename = "c")]
    pub shards: u16,
    #[serde(rename = "d")]
    pub draining: bool,
    #[serde(rename = "k", default, skip_serializing_if = "std::ops::Not::not")]
    pub cordoned: bool,
    /// How far its wall clock is ahead of the time that it seals its packets with, milliseconds: 0, as long as most clocks agree with it.
    #[serde(rename = "o", default, skip_serializing_if = "is_zero")]
    pub clock_off_ms: i64,
    /// Most clocks do not agree with it, and not for a moment only: it gives its shards away.
    #[serde(rename = "t", default, skip_serializing_if = "std::ops::Not::not")]
    pub clock_wrong: bool,
    /// `host:port` of its RPC port for executors, where that is not the address above.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub executors_at: Option<String>,
}

// As serde wants it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Card {
    /// Error: longer than a packet has room for.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let bytes = rmp_serde::to_vec_named(self).map_err(|error| error.to_string())?;
        let most = GOSSIP_CARD_BYTES;
        if bytes.len() > most {
            return Err(format!(
                "what node '{}' says of itself takes {} bytes, at most {most}: use a shorter node.name or rpc.advertise",
                self.name,
                bytes.len()
            ));
        }
        Ok(bytes)
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= GOSSIP_CARD_BYTES).then(|| rmp_serde::from_slice(bytes).ok()).flatten()
    }

    pub fn is_of(&self, identity: &Identity) -> bool {
        (self.node, self.generation, self.process) == (identity.node, identity.generation, identity.process)
    }

    /// Whether nodes with these cards can be members of one cluster.
    pub fn fits(&self, other: &Self) -> bool {
        self.shards == other.shards
            && self.event_format.meet(other.event_format)
            && self.wire_format.meet(other.wire_format)
    }
}

/// Cards of others, the newest of each process.
#[derive(Default)]
pub(super) struct Cards {
    known: HashMap<(u64, u64, u32), (Card, u64)>,
    /// Virtual or real, whatever the driver was told last.
    pub now_ms: u64,
    /// Rises with each change.
    pub changes: u64,
}

impl Cards {
    /// Whether it was new.
    pub fn offer(&mut self, card: Card) -> bool {
        let key = (card.node, card.generation, card.process);
        if let Some((known, heard)) = self.known.get_mut(&key) {
            *heard = self.now_ms;
            if known.revision >= card.revision {
                return false;
            }
            *known = card;
        } else if self.known.len() >= GOSSIP_CARDS {
            return false;
        } else {
            self.known.insert(key, (card, self.now_ms));
        }
        self.changes += 1;
        true
    }

    pub fn of(&self, identity: &Identity) -> Option<&Card> {
        self.known.get(&(identity.node, identity.generation, identity.process)).map(|(card, _)| card)
    }

    /// Forgets those that are no members and were not heard of lately.
    pub fn keep(&mut self, is_member: impl Fn(&Card) -> bool) {
        let now = self.now_ms;
        self.known.retain(|_, (card, heard)| is_member(card) || now.saturating_sub(*heard) < STRANGER_MS);
    }
}

/// Takes cards that come as broadcasts. Shared with the driver: foca does not give its handler back.
pub(super) struct CardBroadcasts {
    pub cards: Arc<Mutex<Cards>>,
    pub own: Card,
}

/// A later card of a process replaces an earlier one on its way.
pub(super) struct CardKey((u64, u64, u32), u32);

impl Invalidates for CardKey {
    fn invalidates(&self, other: &Self) -> bool {
        self.0 == other.0 && self.1 >= other.1
    }
}

impl BroadcastHandler<Identity> for CardBroadcasts {
    type Key = CardKey;
    type Error = Infallible;

    fn receive_item(&mut self, data: &[u8], sender: Option<&Identity>) -> Result<Option<CardKey>, Infallible> {
        let Some(card) = Card::decode(data) else { return Ok(None) };
        let key = CardKey((card.node, card.generation, card.process), card.revision);
        // Without a sender we pass on what we know to be news. Our own that come back are none, and those that do not fit are nobody's.
        let news =
            sender.is_none() || card.node != self.own.node && card.fits(&self.own) && self.cards.lock().offer(card);
        Ok(news.then_some(key))
    }
}
