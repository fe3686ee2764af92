//! How even a placement is, that all nodes find the same one, and what cordoned and draining nodes get.

use super::{config, loads, members, nodes, open, owners, shards};
use campanile_core::placement::{Member, NodeId, Owners, Standing, place, score};
use campanile_schema::ids::ShardId;
use proptest::prelude::*;
use std::{collections::BTreeSet, num::NonZeroU8};

/// `ceil(1.05 x shards x weight / weights)`, said in another way than the code does.
fn most(shards: usize, weight: u8, weights: usize) -> usize {
    let hundredths = 105 * shards * usize::from(weight);
    hundredths / (100 * weights) + usize::from(!hundredths.is_multiple_of(100 * weights))
}

fn weights(members: &[Member]) -> usize {
    members.iter().map(|member| usize::from(member.weight.get())).sum()
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn every_shard_has_a_node_and_no_node_too_many(shards in shards(), nodes in nodes(60)) {
        let members: Vec<Member> = nodes.into_iter().map(Member::open).collect();
        let placed = place(shards, &members, &Owners::new());
        let all = if members.is_empty() { 0 } else { usize::from(shards) };
        prop_assert_eq!(placed.len(), all);
        prop_assert!(placed.keys().all(|shard| shard.0 < shards));
        for (node, load) in loads(&placed) {
            prop_assert!(members.contains(&Member::open(node)));
            let most = most(usize::from(shards), 1, members.len());
            prop_assert!(load <= most, "{load} shards on one of {} nodes, {most} allowed", members.len());
        }
    }

    #[test]
    fn weights_are_parts_of_the_load(shards in shards(), members in members(20)) {
        let members: Vec<Member> = members.into_iter().map(|m| Member { standing: Standing::Open, ..m }).collect();
        let loads = loads(&place(shards, &members, &Owners::new()));
        for member in &members {
            let load = loads.get(&member.node).copied().unwrap_or(0);
            prop_assert!(load <= most(usize::from(shards), member.weight.get(), weights(&members)));
        }
    }

    #[test]
    fn the_order_in_which_members_are_listed_does_not_matter(
        shards in shards(),
        (members, shuffled) in members(40).prop_flat_map(|m| (Just(m.clone()), Just(m).prop_shuffle())),
        seed in any::<u64>(),
    ) {
        let owners = owners(shards, &members, seed);
        prop_assert_eq!(place(shards, &members, &owners), place(shards, &shuffled, &owners));
    }

    /// No shard and no node would both rather have each other: there is one placement like that, whoever asks first.
    #[test]
    fn no_shard_would_be_taken_by_a_node_that_it_likes_better(shards in shards(), members in members(20)) {
        let members: Vec<Member> = members.into_iter().map(|m| Member { standing: Standing::Open, ..m }).collect();
        let placed = place(shards, &members, &Owners::new());
        for member in &members {
            let score = |shard: ShardId| score(member.node, member.weight, shard);
            let (own, others): (Vec<_>, Vec<_>) = placed.iter().partition(|(_, node)| **node == member.node);
            let full = own.len() >= most(usize::from(shards), member.weight.get(), weights(&members));
            let worst = if full { own.iter().map(|(shard, _)| score(**shard)).min().unwrap_or(u64::MAX) } else { 0 };
            for (shard, node) in others {
                let has = members.iter().find(|m| m.node == *node).unwrap();
                let likes = score(*shard) > campanile_core::placement::score(has.node, has.weight, *shard);
                prop_assert!(!likes || score(*shard) < worst, "shard {shard} on {node:?} and {:?} would rather have each other", member.node);
            }
        }
    }

    #[test]
    fn cordoned_nodes_keep_what_they_own_and_draining_ones_get_nothing(
        shards in shards(), members in members(20), seed in any::<u64>(),
    ) {
        let owners = owners(shards, &members, seed);
        let placed = place(shards, &members, &owners);
        let loads = loads(&placed);
        let of = |standing: Standing| members.iter().filter(move |m| m.standing == standing).copied();
        let mut pinned = 0;
        for member in of(Standing::Cordoned) {
            let of_it = |owners: &Owners| -> BTreeSet<ShardId> {
                owners.iter().filter(|(_, node)| **node == member.node).map(|(shard, _)| *shard).collect()
            };
            prop_assert_eq!(of_it(&placed), of_it(&owners));
            pinned += of_it(&owners).len();
        }
        prop_assert!(of(Standing::Draining).all(|member| !loads.contains_key(&member.node)));
        prop_assert!(of(Standing::Halted).all(|member| !loads.contains_key(&member.node)));
        let open: Vec<Member> = of(Standing::Open).collect();
        let staying = weights(&open) + weights(&of(Standing::Cordoned).collect::<Vec<_>>());
        let all = usize::from(shards);
        prop_assert_eq!(placed.len(), if open.is_empty() { pinned } else { all });
        for member in &open {
            let weight = member.weight.get();
            let most = most(all, weight, staying).max(most(all - pinned, weight, weights(&open)));
            prop_assert!(loads.get(&member.node).is_none_or(|load| *load <= most));
        }
    }

    #[test]
    fn a_cordon_moves_nothing_and_its_end_neither(shards in shards(), nodes in nodes(40), at in any::<prop::sample::Index>()) {
        prop_assume!(!nodes.is_empty());
        let mut members: Vec<Member> = nodes.into_iter().map(Member::open).collect();
        let before = place(shards, &members, &Owners::new());
        let at = at.index(members.len());
        members[at].standing = Standing::Cordoned;
        let cordoned = place(shards, &members, &before);
        prop_assert_eq!(&cordoned, &before);
        members[at].standing = Standing::Open;
        prop_assert_eq!(place(shards, &members, &cordoned), before);
    }
}

#[test]
fn without_a_node_nothing_is_placed_and_one_node_gets_all() {
    assert_eq!(place(256, &[], &Owners::new()), Owners::new());
    let member = Member::open(NodeId(3));
    let all: Owners = (0..256).map(|shard| (ShardId(shard), NodeId(3))).collect();
    assert_eq!(place(256, &[member], &Owners::new()), all);
    let cordoned = Member { standing: Standing::Cordoned, ..member };
    assert_eq!(place(256, &[cordoned], &Owners::new()), Owners::new());
    assert_eq!(place(256, &[cordoned], &all), all);
    assert_eq!(place(256, &[Member { standing: Standing::Draining, ..member }], &all), Owners::new());
}

#[test]
fn fewer_shards_than_nodes_are_one_for_each_node() {
    let members = open(50, &mut 1);
    let loads = loads(&place(31, &members, &Owners::new()));
    assert_eq!(loads.len(), 31);
}

#[test]
fn of_two_members_with_one_id_the_one_that_gives_it_less_counts() {
    let [first, second] = [1, 2].map(|node| Member::open(NodeId(node)));
    let draining = Member { standing: Standing::Draining, ..first };
    for members in [[first, draining, second], [draining, first, second], [second, first, draining]] {
        let placed = place(64, &members, &Owners::new());
        assert!(placed.values().all(|node| *node == second.node));
    }
    let heavy = Member { weight: NonZeroU8::MAX, ..first };
    let light = place(64, &[first, second], &Owners::new());
    assert_eq!(place(64, &[heavy, first, second], &Owners::new()), light);
}

/// Another release that places otherwise would fight with this one over the shards.
#[test]
fn a_placement_never_changes() {
    let members: Vec<Member> = (1..=5).map(|node| Member::open(NodeId(node))).collect();
    let placed = place(64, &members, &Owners::new());
    let text: String = placed.values().map(|node| node.0.to_string()).collect();
    assert_eq!(
        text, "3244253251541521231251313521142315345344323115453121454514222552",
        "computed apart from this code, by a script"
    );
}
