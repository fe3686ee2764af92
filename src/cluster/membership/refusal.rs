//! What is refused, why, and how both sides come to know.

use super::{
    card::{Card, Versions},
    identity::Identity,
};
use campanile_schema::limits::{CLUSTER_NAME_CHARS, GOSSIP_LOG_EVERY_MS};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Label of the metric, and what is told at most once a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Malformed,
    Cluster,
    Key,
    Seal,
    Clock,
    Replay,
    Node,
    Shards,
    Format,
    Generation,
}

/// Number of reasons.
pub(super) const REASONS: usize = 10;

impl Reason {
    /// Every one, in its order.
    pub const ALL: [Self; REASONS] = [
        Self::Malformed,
        Self::Cluster,
        Self::Key,
        Self::Seal,
        Self::Clock,
        Self::Replay,
        Self::Node,
        Self::Shards,
        Self::Format,
        Self::Generation,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Cluster => "cluster",
            Self::Key => "key",
            Self::Seal => "seal",
            Self::Clock => "clock",
            Self::Replay => "replay",
            Self::Node => "node",
            Self::Shards => "shards",
            Self::Format => "format",
            Self::Generation => "generation",
        }
    }
}

/// To a node of the same cluster with the same key that cannot be a member: sealed, so it is believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Refusal {
    /// Another process is the node with that id, for so long, milliseconds.
    SameNode {
        holder: Identity,
        standing_ms: u64,
    },
    Shards(u16),
    Formats {
        event: Versions,
        wire: Versions,
    },
    /// A process with a later generation was at that address.
    Generation(Identity),
    /// Its clock is so far ahead. Names the packet that showed it, so that nobody can say it again later.
    Clock {
        process: u32,
        number: u64,
        ahead_ms: i64,
    },
}

impl Refusal {
    /// Why nodes with these cards cannot be in one cluster; said by the first to the second.
    pub fn of_cards(ours: &Card, theirs: &Card) -> Option<Self> {
        if ours.fits(theirs) {
            return None;
        }
        Some(if ours.shards == theirs.shards {
            Self::Formats { event: ours.event_format, wire: ours.wire_format }
        } else {
            Self::Shards(ours.shards)
        })
    }

    pub fn reason(&self) -> Reason {
        match self {
            Self::SameNode { .. } => Reason::Node,
            Self::Shards(_) => Reason::Shards,
            Self::Formats { .. } => Reason::Format,
            Self::Generation(_) => Reason::Generation,
            Self::Clock { .. } => Reason::Clock,
        }
    }

    /// What is the matter, with the view of the one that refuses and the card of the one that is refused.
    pub fn explain(&self, refused: &Card) -> String {
        match self {
            Self::SameNode { holder, .. } => {
                let name = &refused.name;
                format!("the node '{name}' is the process at {}; every node needs a name of its own", holder.address)
            }
            Self::Shards(ours) => format!("the cluster has {ours} shards, this node {}", refused.shards),
            Self::Formats { event, wire } => format!(
                "the cluster reads event format {event} and wire format {wire}, this node {} and {}",
                refused.event_format, refused.wire_format
            ),
            Self::Generation(known) => format!(
                "generation {} of this node was seen and this is {}: its data directory was lost or is an old copy; give the node \
                 another name, or wait until the others forgot it (an hour)",
                known.generation, refused.generation
            ),
            Self::Clock { ahead_ms, .. } => format!(
                "this node's clock is {} ms {} its clock; set the clock right, and this node is taken",
                ahead_ms.saturating_abs(),
                if *ahead_ms > 0 { "ahead of" } else { "behind" }
            ),
        }
    }
}

/// To whoever sent what could not be opened. It is in clear, so it is only told, never acted on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Notice {
    reason: u8,
    cluster: String,
    now_ms: i64,
}

const NOTICE: &[u8; 4] = b"CMN1";
/// Longest notice, bytes: shorter than any packet that it answers, so that nobody is flooded through us.
const NOTICE_BYTES: usize = 4 + CLUSTER_NAME_CHARS + 16;

impl Notice {
    pub fn encode(reason: Reason, cluster: &str, now_ms: i64) -> Vec<u8> {
        let reason = Reason::ALL.iter().position(|known| *known == reason).unwrap_or_default() as u8;
        let notice = Self { reason, cluster: cluster.to_owned(), now_ms };
        let mut packet = NOTICE.to_vec();
        packet.extend(rmp_serde::to_vec(&notice).expect("a notice is plain data, written into memory"));
        packet
    }

    pub fn decode(packet: &[u8]) -> Option<Self> {
        let rest = packet.strip_prefix(NOTICE).filter(|rest| rest.len() <= NOTICE_BYTES)?;
        let notice: Self = rmp_serde::from_slice(rest).ok()?;
        notice.cluster.chars().all(|c| c.is_ascii_graphic()).then_some(notice)
    }

    pub fn reason(&self) -> Option<Reason> {
        Reason::ALL.get(usize::from(self.reason)).copied()
    }

    /// Told to the operator of the node that is refused.
    pub fn explain(&self, from: SocketAddr, cluster: &str) -> Option<String> {
        let theirs = &self.cluster;
        let why = match self.reason()? {
            Reason::Cluster => format!("it belongs to cluster '{theirs}', this node to '{cluster}'"),
            Reason::Key => "it does not have the key that this node seals with".to_owned(),
            Reason::Seal => "its key with the same id is another one".to_owned(),
            Reason::Malformed
            // Told under seal.
            | Reason::Clock
            | Reason::Replay
            | Reason::Node
            | Reason::Shards
            | Reason::Format
            | Reason::Generation => {
                return None;
            }
        };
        Some(format!("the node at {from} refuses this node: {why} (the message is not authenticated)"))
    }
}

/// The same complaint at most once a while.
#[derive(Default)]
pub(super) struct Complaints {
    last: [Option<u64>; 2 * REASONS],
    untold: [u64; 2 * REASONS],
}

impl Complaints {
    /// How many were not told since the last; None: this one is not told either. Ours and theirs are told apart.
    pub fn due(&mut self, reason: Reason, ours: bool, now_ms: u64) -> Option<u64> {
        let at = Reason::ALL.iter().position(|known| *known == reason)? + if ours { REASONS } else { 0 };
        if self.last[at].is_some_and(|last| now_ms < last + GOSSIP_LOG_EVERY_MS) {
            self.untold[at] += 1;
            return None;
        }
        self.last[at] = Some(now_ms);
        Some(std::mem::take(&mut self.untold[at]))
    }
}
