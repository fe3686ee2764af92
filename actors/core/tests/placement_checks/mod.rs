//! Members and owners for the checks of placement.

mod load;
mod movement;
mod moves;

use campanile_core::{
    mix::{STEP, mix},
    placement::{Member, NodeId, Owners, Standing},
};
use campanile_schema::ids::ShardId;
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, RngSeed},
};
use std::{collections::BTreeMap, num::NonZeroU8};

/// The same cases in every run.
pub fn config(cases: u32) -> Config {
    let rng_seed = RngSeed::Fixed(20_261_122);
    Config { cases, rng_seed, failure_persistence: None, ..Config::default() }
}

/// SplitMix64's sequence: ids as they come, without any order.
pub fn drawn(seed: &mut u64) -> u64 {
    let number = mix(*seed);
    *seed = seed.wrapping_add(STEP);
    number
}

/// As many open members of weight one.
pub fn open(count: usize, seed: &mut u64) -> Vec<Member> {
    (0..count).map(|_| Member::open(NodeId(drawn(seed)))).collect()
}

/// Numbers of shards, some of them fewer than nodes and some that no cluster would have.
pub fn shards() -> impl Strategy<Value = u16> {
    select(vec![0, 1, 2, 7, 31, 64, 256, 1_000, 1_024])
}

/// Ids near each other are as likely as ids far apart.
pub fn nodes(most: usize) -> impl Strategy<Value = Vec<NodeId>> {
    let id = prop_oneof![0u64..100, any::<u64>()];
    proptest::collection::btree_set(id, 0..=most).prop_map(|ids| ids.into_iter().map(NodeId).collect())
}

/// Members of all standings and some weights.
pub fn members(most: usize) -> impl Strategy<Value = Vec<Member>> {
    let standing = prop_oneof![4 => Just(Standing::Open), 1 => Just(Standing::Cordoned), 1 => Just(Standing::Draining),
        1 => Just(Standing::Halted)];
    let drawn = proptest::collection::vec((standing, 1u8..=4), most);
    (nodes(most), drawn).prop_map(|(nodes, drawn)| {
        let members = nodes.into_iter().zip(drawn);
        let member = |(node, (standing, weight))| Member { node, standing, weight: NonZeroU8::new(weight).unwrap() };
        members.map(member).collect()
    })
}

/// Each shard with one of these nodes, one that is not there, or none.
pub fn owners(shards: u16, members: &[Member], seed: u64) -> Owners {
    let mut seed = seed;
    let mut owner = |shard| {
        let at = drawn(&mut seed) as usize % (members.len() + 2);
        let gone = (at == members.len()).then_some(NodeId(u64::MAX - 1));
        members.get(at).map(|member| member.node).or(gone).map(|node| (ShardId(shard), node))
    };
    (0..shards).filter_map(&mut owner).collect()
}

pub fn loads(owners: &Owners) -> BTreeMap<NodeId, usize> {
    let mut loads = BTreeMap::new();
    owners.values().for_each(|node| *loads.entry(*node).or_default() += 1);
    loads
}

/// Shards that both placements have, with different owners.
pub fn moved(before: &Owners, after: &Owners) -> usize {
    before.iter().filter(|(shard, node)| after.get(shard).is_some_and(|now| now != *node)).count()
}
