//! Who may not be a member is told so, and so are the others; nobody else is disturbed.

use super::super::card::Versions;
use super::{
    super::refusal::Reason,
    world::{Start, World, address},
};
use crate::node_id;

const OTHER_KEY: &str = "key-2 ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";

/// Three members, and a fourth that is not taken. What both sides say.
fn not_taken(seed: u64, change: impl Fn(&mut Start)) -> World {
    let mut world = World::of(seed, 3);
    let mut start = Start::named("stranger", address(3));
    change(&mut start);
    world.start(3, start);
    world.run(10_000);
    assert_eq!(world.sees(3).len(), 1, "{}", world.story());
    for place in 0..3 {
        assert_eq!(world.sees(place).len(), 3, "{}", world.story());
        let counters = world.places[place].as_ref().unwrap().counters();
        assert_eq!((counters.downs, counters.rejoins), (0, 0), "{}", world.story());
    }
    world
}

fn refused(world: &World, reason: Reason) -> u64 {
    (0..3).map(|place| world.places[place].as_ref().unwrap().counters().refused(reason)).sum()
}

fn told_by_members(world: &World, part: &str) -> bool {
    (0..3).any(|place| world.was_told(place, part))
}

#[test]
fn another_cluster() {
    let world = not_taken(20, |start| start.cluster = "production".to_owned());
    assert!(refused(&world, Reason::Cluster) > 0);
    assert!(
        told_by_members(&world, "is of cluster 'production', and this node belongs to 'test'"),
        "{}",
        world.story()
    );
    assert!(world.was_told(3, "belongs to cluster 'test', this node to 'production'"), "{}", world.story());
}

#[test]
fn an_unknown_key() {
    let world = not_taken(21, |start| start.keys = OTHER_KEY.to_owned());
    assert!(refused(&world, Reason::Key) > 0);
    assert!(
        told_by_members(&world, "sealed with key 'key-2', which is not in this node's key file"),
        "{}",
        world.story()
    );
    assert!(world.was_told(3, "does not have the key that this node seals with"), "{}", world.story());
}

#[test]
fn another_key_with_the_same_id() {
    let world = not_taken(22, |start| start.keys = OTHER_KEY.replace("key-2", "key-1"));
    assert!(refused(&world, Reason::Seal) > 0);
    assert!(told_by_members(&world, "does not open with key 'key-1'"), "{}", world.story());
    assert!(world.was_told(3, "its key with the same id is another one"), "{}", world.story());
}

#[test]
fn a_clock_that_is_too_far_off() {
    for off_ms in [-90_000, 3_600_000] {
        let world = not_taken(23, |start| start.clock_off_ms = off_ms);
        assert!(refused(&world, Reason::Clock) > 0);
        assert!(told_by_members(&world, "set the clocks right"), "{}", world.story());
        let side = if off_ms > 0 { "ahead of its clock" } else { "behind its clock" };
        assert!(world.was_told(3, side), "{}", world.story());
        assert!(world.members(3).refused.as_ref().unwrap().contains(side), "{:?}", world.members(3).refused);
    }
}

#[test]
fn another_number_of_shards() {
    let world = not_taken(24, |start| start.me.shards = 512);
    assert!(refused(&world, Reason::Shards) > 0);
    let why = "the cluster has 256 shards, this node 512";
    assert!(
        told_by_members(&world, &format!("node 'stranger' at 10.0.0.3:7702 is refused: {why}")),
        "{}",
        world.story()
    );
    assert!(world.members(3).refused.as_ref().unwrap().contains(why), "{:?}", world.members(3).refused);
}

#[test]
fn an_incompatible_format() {
    let world = not_taken(25, |start| start.me.wire_format = Versions(2, 3));
    assert!(refused(&world, Reason::Format) > 0);
    let why = "the cluster reads event format 1 and wire format 1, this node 1 and 2 to 3";
    assert!(told_by_members(&world, why), "{}", world.story());
    assert!(world.members(3).refused.as_ref().unwrap().contains(why), "{:?}", world.members(3).refused);
}

#[test]
fn formats_that_overlap_are_taken() {
    let mut world = World::of(26, 3);
    let mut start = Start::named("newer", address(3));
    start.me.wire_format = Versions(1, 2);
    world.start(3, start);
    world.until(5_000, "it is taken", World::all_see_all);
}

#[test]
fn a_second_node_with_the_same_name() {
    for generation in [1, 5] {
        let mut world = World::of(27, 3);
        let mut start = Start::named("n1", address(3));
        start.me.generation = generation;
        start.seeds = vec![0, 2];
        world.start(3, start);
        world.run(10_000);
        for place in 0..3 {
            assert_eq!(world.sees(place).len(), 3, "{}", world.story());
            let member = world.members(place).get(node_id("n1")).unwrap().clone();
            assert_eq!((member.gossip, member.suspect), (address(1), false), "{}", world.story());
        }
        let why = "the node 'n1' is the process at 10.0.0.1:7702; every node needs a name of its own";
        assert!(told_by_members(&world, why), "{}", world.story());
        assert!(world.was_told(1, "another process claims to be this node"), "{}", world.story());
        assert!(world.members(3).refused.as_ref().unwrap().contains(why), "{:?}", world.members(3).refused);
        // Whose place it is goes: now there is one.
        world.kill(1);
        world.until(10_000, "the other one is taken", World::all_see_all);
        assert!(world.members(3).refused.is_none());
    }
}

#[test]
fn two_parts_that_each_had_one_keep_the_older() {
    let mut world = World::of(28, 6);
    world.cut = Box::new(|from, to| (from < 3 || from == 6) != (to < 3 || to == 6));
    world.run(10_000);
    // The same name as the fifth, on the other side, with a later generation.
    let mut start = Start::named("n5", address(6));
    start.me.generation = 9;
    world.start(6, start);
    world.until(10_000, "the other side has one too", |world| world.sees(0).contains(&node_id("n5")));
    world.run(5_000);
    world.cut = Box::new(|_, _| false);
    world.until(30_000, "one of them goes", |world| world.members(6).refused.is_some());
    world.until(10_000, "the older one is seen by all", |world| {
        (0..6).all(|place| {
            let members = world.members(place);
            members.all.len() == 6 && members.get(node_id("n5")).is_some_and(|member| member.gossip == address(5))
        })
    });
    assert!(world.members(5).refused.is_none());
}

#[test]
fn an_old_directory_is_not_taken_for_the_node() {
    let mut world = World::of(29, 3);
    let mut start = Start::named("n2", address(2));
    start.me.generation = 7;
    start.seeds = vec![0, 1];
    world.kill(2);
    world.start(2, start.clone());
    world.until(10_000, "all see all", World::all_see_all);
    world.kill(2);
    start.me.generation = 3;
    world.start(2, start);
    world.run(10_000);
    assert_eq!(world.sees(0).len(), 2);
    let why = "generation 7 of this node was seen and this is 3";
    assert!(world.members(2).refused.as_ref().unwrap().contains(why), "{}", world.story());
    assert!(world.was_told(0, why) || world.was_told(1, why), "{}", world.story());
}

#[test]
fn another_node_may_have_the_address_of_one_that_is_gone() {
    let mut world = World::of(30, 4);
    world.kill(3);
    let mut start = Start::named("heir", address(3));
    start.me.generation = 0;
    world.start(3, start);
    world.until(10_000, "all see all", World::all_see_all);
}
