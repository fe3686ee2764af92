//! Consistent hashing with bounded load: every shard asks nodes in the order of its scores, every node keeps the best of those that
//! asked, up to its cap, and the refused ask on (deferred acceptance; Gale and Shapley, 1962).
//!
//! Both sides go by the same score, so exactly one placement is stable, and it does not matter who asks first. A node that comes or
//! goes changes what follows from it and nothing else.

use super::{Member, NodeId, Owners, Standing, score, sorted};
use campanile_schema::ids::ShardId;
use std::{cmp::Reverse, collections::BinaryHeap};

/// How far above its fair part a node's load may be: 21 twentieths, that is 1.05.
const LOAD: (u64, u64) = (21, 20);

/// Most shards of a node with this weight, if so many are shared out over nodes that weigh so much together:
/// `ceil(1.05 x shards x weight / weights)`.
pub fn cap(shards: usize, weight: u64, weights: u64) -> usize {
    (LOAD.0 * shards as u64 * weight).div_ceil(LOAD.1 * weights.max(1)) as usize
}

/// The node that should own each of the shards `0..shards`. `owners` matter only for cordoned nodes, which keep what they own; with
/// no open node, nothing else is placed.
///
/// An open node's load is at most its [`cap`] over all nodes that are not draining. Only where cordoned nodes own so little that this
/// is not enough room for the rest, the rest is shared out over the open nodes with caps of its own. So a cordon alone moves nothing.
pub fn place(shards: u16, members: &[Member], owners: &Owners) -> Owners {
    let members = sorted(members);
    let standing = |standing: Standing| members.iter().filter(move |member| member.standing == standing);
    let is_cordoned = |node: NodeId| standing(Standing::Cordoned).any(|member| member.node == node);
    let mut placed: Owners = (0..shards)
        .map(ShardId)
        .filter_map(|shard| owners.get(&shard).filter(|owner| is_cordoned(**owner)).map(|owner| (shard, *owner)))
        .collect();
    let free: Vec<ShardId> = (0..shards).map(ShardId).filter(|shard| !placed.contains_key(shard)).collect();
    let open: Vec<Member> = standing(Standing::Open).copied().collect();

    let weigh = |members: &mut dyn Iterator<Item = &Member>| members.map(|m| u64::from(m.weight.get())).sum::<u64>();
    let open_weight = weigh(&mut open.iter());
    let all_weight = open_weight + weigh(&mut standing(Standing::Cordoned));
    let caps = |shards: usize, weights: u64| -> Vec<usize> {
        open.iter().map(|member| cap(shards, u64::from(member.weight.get()), weights)).collect()
    };
    let mut rooms = caps(usize::from(shards), all_weight);
    if rooms.iter().sum::<usize>() < free.len() {
        rooms = caps(free.len(), open_weight);
    }
    let offers =
        open.iter().zip(rooms).map(|(member, cap)| NodeOffer { member: *member, cap, kept: BinaryHeap::new() });
    let mut offers: Vec<NodeOffer> = offers.collect();
    for shard in free {
        place_shard(&mut offers, shard);
    }
    for offer in offers {
        placed.extend(offer.kept.into_iter().map(|Reverse((_, shard))| (shard, offer.member.node)));
    }
    placed
}

/// What a node offers to the shards that ask it.
struct NodeOffer {
    member: Member,
    cap: usize,
    /// The worst on top.
    kept: BinaryHeap<Reverse<(u64, ShardId)>>,
}

/// Lets a shard ask, and then whoever is refused because of it. The caps have room for all shards, so each finds a node, if there
/// is one.
fn place_shard(offers: &mut [NodeOffer], shard: ShardId) {
    let mut asking = Some((shard, None));
    while let Some((shard, refused_by)) = asking {
        let scores =
            offers.iter().enumerate().map(|(at, offer)| (score(offer.member.node, offer.member.weight, shard), at));
        // Offers are in the order of node ids, so that equal scores are told apart alike everywhere.
        let next = scores.filter(|choice| refused_by.is_none_or(|refused_by| *choice < refused_by)).max();
        let Some((score, at)) = next else { return };
        let offer = &mut offers[at];
        offer.kept.push(Reverse((score, shard)));
        let refused = if offer.kept.len() > offer.cap { offer.kept.pop() } else { None };
        asking = refused.map(|Reverse((score, shard))| (shard, Some((score, at))));
    }
}
