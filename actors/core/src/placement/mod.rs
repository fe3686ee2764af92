//! Computes which node should own which shard, and which moves lead there.
//!
//! Pure: [`place`] gives the same answer on every node that knows the same members; [`plan`] makes a few moves at a
//! time from it, and [`wanted`] makes the hint for the ownership protocol. It never decides who owns a shard, because
//! the store's rows do (`docs/ownership.md`). Two nodes that know different members therefore cost moves, not safety.
//! `docs/adr/0013-placement.md` has the reasons.

mod place;
mod plan;
mod score;

pub use place::{cap, place};
pub use plan::{Move, Reason, plan, wanted};
pub use score::score;

use campanile_schema::ids::ShardId;
use std::{collections::BTreeMap, num::NonZeroU8};

/// A node for as long as its data directory lives: neither its address nor its session, so that a restart moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// What a node may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Decides nothing: gives all of its shards away, and each of them stands still until it is gone.
    Halted,
    /// Gives all of its shards away, and serves them until then.
    Draining,
    /// Keeps what it owns and gets nothing new.
    Cordoned,
    Open,
}

/// A living node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    pub node: NodeId,
    pub standing: Standing,
    /// Its part of the load, relative to the others' weights. Placing costs time in proportion to the sum of all.
    pub weight: NonZeroU8,
}

impl Member {
    /// One like all others.
    pub fn open(node: NodeId) -> Self {
        Self { node, standing: Standing::Open, weight: NonZeroU8::MIN }
    }
}

/// A node for each shard that has one: who owns it, or who should. An owner is a node whose *current* session owns the shard: the
/// shards of a node's session before a restart have no owner.
pub type Owners = BTreeMap<ShardId, NodeId>;

/// By node id, each once: of two that contradict each other the one that gives the node less.
fn sorted(members: &[Member]) -> Vec<Member> {
    let mut members = members.to_vec();
    members.sort_unstable();
    members.dedup_by_key(|member| member.node);
    members
}
