//! Members whose wall clocks jump, or were wrong from the start.

use super::world::{Start, World, address};
use crate::node_id;

/// What the member at a place says of another: whether its clock is wrong, and how far it is off.
fn clock_of(world: &World, place: usize, of: &str) -> (bool, i64) {
    let members = world.members(place);
    let member = members.get(node_id(of)).unwrap_or_else(|| panic!("{of} is gone\n{}", world.story()));
    (member.clock_wrong, member.clock_offset_ms.unwrap_or(0))
}

fn undisturbed(world: &World) {
    for place in world.living() {
        let counters = world.places[place].as_ref().unwrap().counters();
        assert_eq!((counters.downs, counters.rejoins), (0, 0), "{place}\n{}", world.story());
    }
}

#[test]
fn one_that_jumps_stays_a_member_and_all_see_it_until_it_is_right_again() {
    for off_ms in [3_600_000, -90_000, 5_000, -31_536_000_000] {
        let mut world = World::of(40, 4);
        world.run(2_000);
        world.set_clock(2, off_ms);
        let took = world.until(5_000, "all know", |world| (0..4).all(|place| clock_of(world, place, "n2").0));
        assert!(took >= 1_500, "others might have followed");
        world.run(5_000);
        let seen = clock_of(&world, 0, "n2").1;
        assert!((seen - off_ms).abs() <= 200, "{seen}");
        assert!((0..4).all(|place| !clock_of(&world, place, "n1").0), "{}", world.story());
        assert!(world.was_told(2, "this node's wall clock is"), "{}", world.story());
        world.set_clock(2, 0);
        world.until(5_000, "all know that it is right", |world| {
            (0..4).all(|place| !clock_of(world, place, "n2").0 && clock_of(world, place, "n2").1.abs() < 200)
        });
        undisturbed(&world);
    }
}

#[test]
fn when_all_clocks_are_set_within_a_second_nobody_is_wrong() {
    let mut world = World::of(41, 4);
    world.run(2_000);
    for place in 0..4 {
        world.set_clock(place, 3_600_000);
        world.run(250);
        assert!((0..4).all(|at| !clock_of(&world, at, "n0").0), "{}", world.story());
    }
    world.run(10_000);
    for at in 0..4 {
        assert!((0..4).all(|of| !clock_of(&world, at, &format!("n{of}")).0), "{}", world.story());
    }
    undisturbed(&world);
}

#[test]
fn of_two_the_one_that_jumped_is_wrong_and_of_two_that_never_agreed_neither() {
    let mut world = World::of(42, 2);
    world.run(2_000);
    world.set_clock(0, 60_000);
    world.until(5_000, "both know", |world| (0..2).all(|place| clock_of(world, place, "n0").0));
    assert!(!clock_of(&world, 0, "n1").0);
    undisturbed(&world);

    let mut world = World::new(43);
    for (place, clock_off_ms) in [(0, 0), (1, 20_000)] {
        world.start(place, Start { clock_off_ms, ..Start::named(&format!("n{place}"), address(place)) });
    }
    world.until(5_000, "they see each other", World::all_see_all);
    world.run(10_000);
    assert!((0..2).all(|at| !clock_of(&world, at, "n0").0 && !clock_of(&world, at, "n1").0), "{}", world.story());
    assert!(world.was_told(0, "there is no majority"));
    assert!(world.was_told(1, "there is no majority"));
}

#[test]
fn one_that_starts_a_little_wrong_is_known_to_be() {
    let mut world = World::of(44, 3);
    world.start(3, Start { clock_off_ms: -20_000, ..Start::named("n3", address(3)) });
    world.until(3_000, "all know", |world| world.all_see_all() && (0..4).all(|place| clock_of(world, place, "n3").0));
    undisturbed(&world);
}

#[test]
fn one_that_starts_far_off_is_taken_when_its_clock_is_right() {
    let mut world = World::of(45, 3);
    world.start(3, Start { clock_off_ms: 3_600_000, ..Start::named("n3", address(3)) });
    world.until(2_000, "it is refused at once", |world| world.members(3).refused.is_some());
    assert!(world.members(3).refused.as_ref().unwrap().contains("ahead of its clock"));
    world.set_clock(3, 0);
    world.until(5_000, "it is taken", World::all_see_all);
    assert!(world.members(3).refused.is_none());
    undisturbed(&world);
}

/// What was said to it once must not turn it away a second time.
#[test]
fn an_old_refusal_that_is_sent_again_is_nothing() {
    let mut world = World::of(46, 3);
    world.start(3, Start { clock_off_ms: 3_600_000, ..Start::named("n3", address(3)) });
    world.until(2_000, "it is refused", |world| world.members(3).refused.is_some());
    let said: Vec<_> = world.seen.iter().filter(|(_, to, _)| *to == 3).cloned().collect();
    assert!(!said.is_empty());
    world.kill(3);
    world.start(3, Start::named("n3", address(3)));
    for (from, to, bytes) in said {
        world.deliver(from, to, &bytes);
    }
    assert!(world.members(3).refused.is_none(), "{}", world.story());
}
