//! Who is there, as one node sees it now.

use super::{
    card::{Addresses, Card, Versions},
    identity::Identity,
    refusal::{REASONS, Reason},
};
use campanile_core::placement::NodeId;
use campanile_schema::{
    ids::SessionId,
    rpc::executor::{ClusterNodes, NodeAddress},
};
use std::net::SocketAddr;

/// A living node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub node: NodeId,
    pub name: String,
    /// Another one is another process: what was under way at the old one is lost.
    pub generation: u64,
    pub session: SessionId,
    pub gossip: SocketAddr,
    pub addresses: Addresses,
    /// Its RPC port, `host:port`, as executors reach it.
    pub executors_at: String,
    pub build: String,
    pub event_format: Versions,
    pub wire_format: Versions,
    pub shards: u16,
    pub draining: bool,
    pub cordoned: bool,
    /// It did not answer, and has some more time to say that it is there.
    pub suspect: bool,
    pub is_self: bool,
    /// Most nodes' clocks say that its own is wrong.
    pub clock_wrong: bool,
    /// Its wall clock minus ours, less the time on the way, milliseconds; once it was heard directly.
    pub clock_offset_ms: Option<i64>,
}

impl Member {
    pub(super) fn new(identity: &Identity, card: &Card) -> Self {
        Self {
            node: identity.node(),
            name: card.name.clone(),
            generation: card.generation,
            session: SessionId(card.session),
            gossip: identity.address,
            addresses: card.addresses,
            executors_at: card.executors_at.clone().unwrap_or_else(|| card.addresses.rpc.to_string()),
            build: card.build.clone(),
            event_format: card.event_format,
            wire_format: card.wire_format,
            shards: card.shards,
            draining: card.draining,
            cordoned: card.cordoned,
            suspect: false,
            is_self: false,
            clock_wrong: card.clock_wrong,
            clock_offset_ms: None,
        }
    }
}

/// All members that live, this node included, by node id. A hint: two nodes may see different ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    pub all: Vec<Member>,
    /// Why the cluster does not take this node. It goes on trying.
    pub refused: Option<String>,
}

impl Members {
    pub fn get(&self, node: NodeId) -> Option<&Member> {
        self.all.binary_search_by_key(&node, |member| member.node).ok().map(|at| &self.all[at])
    }

    /// All of them, suspected ones too: whoever is there still has shards.
    pub fn for_executors(&self) -> ClusterNodes {
        let node = |member: &Member| NodeAddress { node: member.name.clone(), address: member.executors_at.clone() };
        ClusterNodes { nodes: self.all.iter().map(node).collect() }
    }

    /// All but this node.
    pub fn others(&self) -> impl Iterator<Item = &Member> {
        self.all.iter().filter(|member| !member.is_self)
    }
}

/// Since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub sent: u64,
    pub received: u64,
    /// Members that were seen to come, restarts included.
    pub ups: u64,
    pub downs: u64,
    /// Times that others took this node for down.
    pub rejoins: u64,
    pub(super) refused: [u64; REASONS],
}

impl Counters {
    /// Packets refused for that reason.
    pub fn refused(&self, reason: Reason) -> u64 {
        let at = Reason::ALL.iter().position(|known| *known == reason);
        at.map_or(0, |at| self.refused[at])
    }
}
