//! Plans the moves from the present owners to the wanted ones, a few at a time.
//!
//! The order of moves is fixed by their reason and their shard, and the first of them are allowed. As long as the
//! placement stays the same, nodes that read the rows at different times therefore keep the limit together: a move that
//! one of them still sees ahead of another is either under way or done.

use super::{Member, NodeId, Owners, Standing, sorted};
use campanile_schema::ids::ShardId;
use std::collections::BTreeMap;

/// Why a shard moves. The first ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No living node owns it. Never waits.
    NoOwner,
    /// Its owner decides nothing. Never waits.
    OwnerHalted,
    /// It is on its way already.
    Underway,
    /// Its owner is draining.
    OwnerLeaves,
    /// Another node should have it.
    Balance,
}

/// One shard's change of owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Move {
    pub reason: Reason,
    pub shard: ShardId,
    /// None: no living node.
    pub from: Option<NodeId>,
    pub to: NodeId,
}

/// The moves that may be under way now: all shards without an owner that acts for them, and `limit` others.
///
/// `underway`: hand-overs that are known to have begun and not to have ended, with their successors. They are finished before others
/// begin, even if the placement has changed its mind, unless the successor is gone or draining.
pub fn plan(placement: &Owners, members: &[Member], owners: &Owners, underway: &Owners, limit: usize) -> Vec<Move> {
    let standing: BTreeMap<NodeId, Standing> = sorted(members).iter().map(|m| (m.node, m.standing)).collect();
    let takes = |node: &&NodeId| match standing.get(node) {
        Some(Standing::Open | Standing::Cordoned) => true,
        Some(Standing::Halted | Standing::Draining) | None => false,
    };
    let begun = underway.iter().filter(|(_, to)| takes(to));
    let begun: Owners = begun.map(|(shard, to)| (*shard, *to)).collect();

    let shards = begun.keys().chain(placement.keys());
    let mut moves: Vec<Move> = shards
        .filter_map(|&shard| {
            let owner = owners.get(&shard).and_then(|owner| Some((*owner, *standing.get(owner)?)));
            let (reason, to) = match (owner, begun.get(&shard)) {
                (None, _) => (Reason::NoOwner, placement.get(&shard)?),
                (Some(_), Some(to)) => (Reason::Underway, to),
                (Some((_, Standing::Halted)), None) => (Reason::OwnerHalted, placement.get(&shard)?),
                (Some((_, Standing::Draining)), None) => (Reason::OwnerLeaves, placement.get(&shard)?),
                (Some((_, Standing::Open | Standing::Cordoned)), None) => (Reason::Balance, placement.get(&shard)?),
            };
            let from = owner.map(|(node, _)| node);
            (from != Some(*to)).then_some(Move { reason, shard, from, to: *to })
        })
        .collect();
    moves.sort_unstable();
    moves.dedup();
    let waits = |a_move: &&Move| !matches!(a_move.reason, Reason::NoOwner | Reason::OwnerHalted);
    let unlimited = moves.iter().position(|a_move| waits(&a_move)).unwrap_or(moves.len());
    let begun = moves[unlimited..].iter().take_while(|a_move| a_move.reason == Reason::Underway).count();
    moves.truncate(unlimited + limit.max(begun));
    moves
}

/// Who should own each shard while these moves are made: the hint for the protocol. A shard that may not move yet stays.
pub fn wanted(owners: &Owners, moves: &[Move]) -> Owners {
    let mut wanted = owners.clone();
    wanted.extend(moves.iter().map(|a_move| (a_move.shard, a_move.to)));
    wanted
}
