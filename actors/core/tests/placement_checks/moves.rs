//! Moves, played until nothing moves any more, by nodes that see the rows late.

use super::{config, drawn, members, open, owners};
use campanile_core::placement::{Member, Move, NodeId, Owners, Reason, Standing, place, plan, wanted};
use campanile_schema::ids::ShardId;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const SHARDS: u16 = 64;

fn living(members: &[Member], node: Option<&NodeId>) -> bool {
    node.is_some_and(|node| members.iter().any(|member| member.node == *node))
}

proptest! {
    #![proptest_config(config(200))]

    /// Every move that is allowed is made, some at once and some late, until there is none.
    #[test]
    fn moves_lead_to_the_placement_each_shard_once_and_never_too_many(
        members in members(12), seed in any::<u64>(), limit in 1usize..6,
    ) {
        let (mut owners, mut chance) = (owners(SHARDS, &members, seed), seed);
        let placement = place(SHARDS, &members, &owners);
        let (mut underway, mut begun, mut at_once) = (Owners::new(), BTreeSet::new(), BTreeSet::new());
        for _ in 0..2_000 {
            let moves = plan(&placement, &members, &owners, &underway, limit);
            if moves.is_empty() {
                break;
            }
            let waits = |reason| !matches!(reason, Reason::NoOwner | Reason::OwnerHalted);
            let limited = moves.iter().filter(|a_move| waits(a_move.reason) && !at_once.contains(&a_move.shard)).count();
            prop_assert!(limited <= limit, "{limited} moves at once, {limit} allowed");
            let orphans = owners_wanting(&placement, &owners, &members);
            prop_assert_eq!(moves.iter().filter(|a_move| a_move.reason == Reason::NoOwner).count(), orphans);
            let leaving = moves.iter().filter(|a_move| a_move.reason == Reason::OwnerLeaves).count();
            let balance = moves.iter().any(|a_move| a_move.reason == Reason::Balance);
            let waiting = leaving_shards(&placement, &owners, &underway, &members);
            prop_assert!(!balance || leaving == waiting, "balanced before all left");
            for a_move in &moves {
                if a_move.reason == Reason::OwnerHalted {
                    at_once.insert(a_move.shard);
                }
                if a_move.reason != Reason::Underway && a_move.from.is_some() {
                    prop_assert!(begun.insert(a_move.shard), "shard {} moves again", a_move.shard);
                    underway.insert(a_move.shard, a_move.to);
                }
                if drawn(&mut chance).is_multiple_of(3) {
                    owners.insert(a_move.shard, a_move.to);
                    underway.remove(&a_move.shard);
                }
            }
        }
        let reached = placement.iter().all(|(shard, node)| owners.get(shard) == Some(node));
        prop_assert!(reached, "not there yet");
        prop_assert_eq!(place(SHARDS, &members, &owners), placement);
    }

    /// Each node reads the rows when it likes, and knows only of its own hand-overs.
    #[test]
    fn nodes_that_see_the_rows_late_keep_the_limit_together(
        nodes in 2usize..8, seed in any::<u64>(), limit in 1usize..6,
    ) {
        let mut chance = seed;
        let (before, mut members) = (open(nodes, &mut chance), open(2, &mut chance));
        members.extend(&before);
        let mut owners = place(SHARDS, &before, &Owners::new());
        let placement = place(SHARDS, &members, &owners);
        let mut seen: BTreeMap<NodeId, Owners> = members.iter().map(|m| (m.node, owners.clone())).collect();
        let mut underway = Owners::new();
        for _ in 0..5_000 {
            if owners == placement {
                break;
            }
            let me = members[drawn(&mut chance) as usize % members.len()].node;
            if drawn(&mut chance).is_multiple_of(4) {
                seen.insert(me, owners.clone());
            }
            let mine = underway.iter().filter(|(shard, _)| owners[shard] == me).map(|(shard, to)| (*shard, *to));
            let moves = plan(&placement, &members, &seen[&me], &mine.collect(), limit);
            for a_move in moves.iter().filter(|a_move| owners[&a_move.shard] == me && a_move.from == Some(me)) {
                underway.insert(a_move.shard, a_move.to);
            }
            prop_assert!(underway.len() <= limit, "{} hand-overs at once, {limit} allowed", underway.len());
            let at = drawn(&mut chance) as usize % (underway.len() * 2 + 1);
            if let Some((shard, to)) = underway.iter().nth(at).map(|(shard, to)| (*shard, *to)) {
                underway.remove(&shard);
                owners.insert(shard, to);
            }
        }
        prop_assert_eq!(owners, placement);
    }

    #[test]
    fn the_order_of_members_does_not_matter(
        (members, shuffled) in members(12).prop_flat_map(|m| (Just(m.clone()), Just(m).prop_shuffle())),
        seed in any::<u64>(),
    ) {
        let owners = owners(SHARDS, &members, seed);
        let placement = place(SHARDS, &members, &owners);
        let none = Owners::new();
        prop_assert_eq!(plan(&placement, &members, &owners, &none, 3), plan(&placement, &shuffled, &owners, &none, 3));
    }
}

/// Shards without a living owner that have a place.
fn owners_wanting(placement: &Owners, owners: &Owners, members: &[Member]) -> usize {
    placement.keys().filter(|shard| !living(members, owners.get(shard))).count()
}

/// Shards of draining nodes that have a place and are not on their way.
fn leaving_shards(placement: &Owners, owners: &Owners, underway: &Owners, members: &[Member]) -> usize {
    let draining = |node: &NodeId| members.iter().any(|m| m.node == *node && m.standing == Standing::Draining);
    let waits = |shard: &&ShardId| owners.get(shard).is_some_and(draining) && !underway.contains_key(shard);
    placement.keys().filter(waits).count()
}

/// Four shards on nodes 1 (draining), 2 and one that is gone; all should be on node 3.
fn four() -> (Owners, [Member; 3], Owners) {
    let all = |node: fn(u16) -> u64| (0..4).map(|shard| (ShardId(shard), NodeId(node(shard)))).collect();
    let members = [1, 2, 3].map(|node| Member::open(NodeId(node)));
    let draining = Member { standing: Standing::Draining, ..members[0] };
    (all(|_| 3), [draining, members[1], members[2]], all(|shard| [2, 1, 9, 2][usize::from(shard)]))
}

fn shards(moves: &[Move]) -> Vec<(u16, Reason)> {
    moves.iter().map(|a_move| (a_move.shard.0, a_move.reason)).collect()
}

#[test]
fn orphans_go_first_then_whose_owner_leaves_then_balance() {
    let (placement, members, owners) = four();
    let none = Owners::new();
    let all = plan(&placement, &members, &owners, &none, 9);
    let (orphan, leaver) = ((2, Reason::NoOwner), (1, Reason::OwnerLeaves));
    assert_eq!(shards(&all), [orphan, leaver, (0, Reason::Balance), (3, Reason::Balance)]);
    assert_eq!(all[0].from, None, "node 9 is gone");
    assert_eq!(shards(&plan(&placement, &members, &owners, &none, 0)), [orphan], "never waits");
    let two = plan(&placement, &members, &owners, &none, 2);
    assert_eq!(shards(&two), [orphan, leaver, (0, Reason::Balance)]);
    let hint: Vec<u64> = wanted(&owners, &two).into_values().map(|node| node.0).collect();
    assert_eq!(hint, [3, 3, 3, 2], "the last one stays for now");
}

#[test]
fn shards_that_stand_still_wait_for_nobody() {
    let (placement, mut members, owners) = four();
    members[1].standing = Standing::Halted;
    let none = Owners::new();
    let (orphan, halted) = ((2, Reason::NoOwner), [(0, Reason::OwnerHalted), (3, Reason::OwnerHalted)]);
    assert_eq!(shards(&plan(&placement, &members, &owners, &none, 0)), [orphan, halted[0], halted[1]]);
    let all = plan(&placement, &members, &owners, &none, 1);
    assert_eq!(shards(&all), [orphan, halted[0], halted[1], (1, Reason::OwnerLeaves)]);
    let back = Owners::from([(ShardId(1), NodeId(2))]);
    let moves = plan(&placement, &members, &owners, &back, 9);
    assert!(moves.iter().all(|a_move| a_move.to == NodeId(3)), "a halted node takes nothing");
}

#[test]
fn what_has_begun_is_finished_before_anything_else_begins() {
    let (placement, members, owners) = four();
    let to = |node| Owners::from([(ShardId(3), NodeId(node))]);
    let moves = plan(&placement, &members, &owners, &to(3), 1);
    assert_eq!(shards(&moves), [(2, Reason::NoOwner), (3, Reason::Underway)]);
    assert_eq!(shards(&plan(&placement, &members, &owners, &to(3), 0)), shards(&moves), "a lower limit stops none");
    let done = plan(&placement, &members, &owners, &to(2), 1);
    assert_eq!(shards(&done), [(2, Reason::NoOwner), (1, Reason::OwnerLeaves)], "node 2 owns it already");
    for gone in [9, 1] {
        let moves = plan(&placement, &members, &owners, &to(gone), 9);
        assert!(moves.iter().all(|a_move| a_move.to == NodeId(3)), "node {gone} cannot take it");
    }
}

#[test]
fn a_shard_on_its_way_is_not_sent_elsewhere() {
    let (mut placement, mut members, owners) = four();
    members[0].standing = Standing::Open;
    placement.insert(ShardId(3), NodeId(1));
    let underway = Owners::from([(ShardId(3), NodeId(3))]);
    let moves = plan(&placement, &members, &owners, &underway, 1);
    assert_eq!((moves[1].shard, moves[1].to), (ShardId(3), NodeId(3)));
}
