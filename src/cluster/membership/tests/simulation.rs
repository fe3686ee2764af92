//! Fifty members in virtual time.

use super::world::{Start, World, address};
use crate::node_id;
use campanile_schema::ids::SessionId;
use rand::RngExt;

const MEMBERS: usize = 50;

/// How long until a node is seen by nobody any more.
fn known_down(world: &mut World, node: &str) -> u64 {
    let id = node_id(node);
    world.until(20_000, "the dead one is known to all", |world| {
        world.living().into_iter().all(|place| !world.sees(place).contains(&id))
    })
}

fn rejoins(world: &World) -> u64 {
    world.living().into_iter().map(|place| world.places[place].as_ref().unwrap().counters().rejoins).sum()
}

fn downs(world: &World) -> u64 {
    world.living().into_iter().map(|place| world.places[place].as_ref().unwrap().counters().downs).sum()
}

#[test]
fn a_crash_is_known_to_all_within_three_seconds() {
    let mut world = World::of(1, MEMBERS);
    let mut took = Vec::new();
    for victim in 3..15 {
        let pause = world.random.random_range(500..1_500);
        world.run(pause);
        world.kill(victim);
        took.push(known_down(&mut world, &format!("n{victim}")));
    }
    println!("a crash is known to all of {MEMBERS} after, ms: {took:?}");
    assert!(took.iter().all(|ms| *ms <= 3_000), "{took:?}");
    assert_eq!(rejoins(&world), 0, "somebody else was taken for down\n{}", world.story());
}

#[test]
fn nobody_is_taken_for_down_while_every_fifth_packet_is_lost() {
    let minutes = std::env::var("MEMBERSHIP_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let mut world = World::of(2, MEMBERS);
    world.loss = 0.2;
    for minute in 0..minutes {
        world.run(60_000);
        assert_eq!((downs(&world), rejoins(&world)), (0, 0), "minute {minute}\n{}", world.story());
    }
    println!("{minutes} min of {MEMBERS} members at 20 % loss, {} packets: nobody down", world.delivered);
    // And a real death is still seen.
    world.kill(7);
    let took = known_down(&mut world, "n7");
    println!("a crash at 20 % loss is known to all after {took} ms");
    assert!(took <= 4_000, "{took}");
}

#[test]
fn a_healed_partition_ends_with_everybody_seeing_everybody() {
    for (seed, apart_ms) in [(3, 1_000), (4, 10_000), (5, 120_000)] {
        let mut world = World::of(seed, MEMBERS);
        world.cut = Box::new(|from, to| (from < 20) != (to < 20));
        world.run(apart_ms);
        if apart_ms >= 10_000 {
            assert_eq!(world.sees(0).len(), 20);
            assert_eq!(world.sees(49).len(), 30);
        }
        world.cut = Box::new(|_, _| false);
        let took = world.until(30_000, "all see all again", World::all_see_all);
        println!("apart for {apart_ms} ms, together again after {took} ms");
        world.run(20_000);
        assert!(world.all_see_all(), "{}", world.story());
    }
}

#[test]
fn who_is_alone_joins_again_by_itself() {
    // One of many is found by the others; of two each is alone, and foca sends nothing.
    for members in [5, 2] {
        let mut world = World::of(6, members);
        let last = members - 1;
        world.cut = Box::new(move |from, to| (from == last) != (to == last));
        world.run(10_000);
        assert_eq!((world.sees(last).len(), world.sees(0).len()), (1, members - 1));
        world.cut = Box::new(|_, _| false);
        world.until(5_000, "it is back", World::all_see_all);
    }
}

#[test]
fn a_fast_restart_is_another_process_to_all() {
    let mut world = World::of(7, MEMBERS);
    let generation = |world: &World, place: usize| {
        world.members(place).get(node_id("n9")).map(|member| (member.generation, member.session))
    };
    world.kill(9);
    world.run(20);
    let mut start = Start::named("n9", address(9));
    start.me.generation = 2;
    start.me.session = SessionId(77);
    world.start(9, start);
    let took = world.until(3_000, "all see the new process", |world| {
        world.living().into_iter().all(|place| generation(world, place) == Some((2, SessionId(77))))
    });
    println!("a restart is known to all after {took} ms");
    world.run(10_000);
    assert!(world.all_see_all());
    assert_eq!(rejoins(&world), 0, "{}", world.story());
    assert!(world.was_told(30, "was started again"), "{}", world.story());
}

#[test]
fn a_restart_at_another_address_waits_until_the_old_one_is_down() {
    let mut world = World::of(8, 10);
    world.kill(9);
    let mut start = Start::named("n9", address(10));
    start.me.generation = 2;
    world.start(10, start);
    let took = world.until(6_000, "it is taken", World::all_see_all);
    println!("a restart at another address is taken after {took} ms");
    assert_eq!(rejoins(&world), 0, "{}", world.story());
    assert!(world.members(10).refused.is_none());
}

#[test]
fn who_leaves_is_known_to_have_left_at_once() {
    let mut world = World::of(9, MEMBERS);
    world.loss = 0.2;
    let now = world.now(5);
    world.places[5].as_mut().unwrap().leave(now);
    world.collect(5);
    let took = world.until(1_000, "its farewell is said", |world| world.places[5].as_ref().unwrap().has_left());
    world.kill(5);
    let known = known_down(&mut world, "n5");
    println!("farewell said after {took} ms, known to all {known} ms later");
    assert!(took + known <= 800, "{took} {known}");
    assert_eq!(rejoins(&world), 0);
}

#[test]
fn a_session_and_a_drain_reach_all() {
    let mut world = World::of(10, MEMBERS);
    // What fifty joins left to be said is said.
    world.run(5_000);
    world.loss = 0.2;
    let now = world.now(3);
    world.places[3].as_mut().unwrap().say(now, |card| {
        card.session = 5;
        card.draining = true;
    });
    world.collect(3);
    let node = node_id("n3");
    let took = world.until(15_000, "all know it", |world| {
        world.living().into_iter().all(|place| {
            world.members(place).get(node).is_some_and(|member| member.session == SessionId(5) && member.draining)
        })
    });
    println!("a new session is known to all of {MEMBERS} at 20 % loss after {took} ms");
    assert!(took <= 1_500, "{took}");
    // Somebody who comes later knows it too.
    world.start(MEMBERS, Start::named("late", address(MEMBERS)));
    world.until(5_000, "the late one knows", |world| {
        world.members(MEMBERS).get(node).is_some_and(|member| member.session == SessionId(5) && member.draining)
    });
    assert_eq!(downs(&world), 0, "a change is no death\n{}", world.story());
}

#[test]
fn a_timer_about_somebody_who_is_not_suspect_is_dropped() {
    let mut world = World::of(14, 3);
    let now = world.now(0);
    let other = world.places[1].as_ref().unwrap().me();
    // foca's own mark of timers is a byte that counts; one of all is the one in force.
    for token in 0..=u8::MAX {
        let timer = foca::Timer::ChangeSuspectToDown { member_id: other, incarnation: 0, token };
        world.places[0].as_mut().unwrap().timer(now.mono_ms, timer);
    }
    assert_eq!(downs(&world), 0, "{}", world.story());
}

#[test]
fn a_process_that_slept_disturbs_nobody() {
    let mut world = World::of(11, 12);
    for (place, sleep_ms) in [(2, 800), (3, 1_500), (4, 5_000), (5, 30_000)] {
        world.stopped.insert(place);
        world.run(sleep_ms);
        world.stopped.remove(&place);
        world.until(10_000, "all see all again", World::all_see_all);
        world.run(5_000);
        assert!(world.all_see_all(), "{}", world.story());
    }
    for place in world.living().into_iter().filter(|place| !(2..6).contains(place)) {
        let rejoins = world.places[place].as_ref().unwrap().counters().rejoins;
        assert_eq!(rejoins, 0, "{place} never slept\n{}", world.story());
    }
}

#[test]
fn a_process_that_slept_over_its_suspicions_takes_nobody_for_down() {
    let mut world = World::of(15, 12);
    world.cut = Box::new(|from, to| (from == 2) != (to == 2));
    let suspects = |world: &World| world.members(2).all.iter().any(|member| member.suspect);
    world.until(5_000, "it suspects somebody", suspects);
    world.stopped.insert(2);
    world.cut = Box::new(|_, _| false);
    world.run(5_000);
    world.stopped.remove(&2);
    world.run(10_000);
    assert!(world.all_see_all(), "{}", world.story());
    for place in world.living().into_iter().filter(|place| *place != 2) {
        assert_eq!(world.places[place].as_ref().unwrap().counters().rejoins, 0, "{place}\n{}", world.story());
    }
}

#[test]
fn clocks_are_compared_on_the_way() {
    let mut world = World::new(12);
    for place in 0..4 {
        let mut start = Start::named(&format!("n{place}"), address(place));
        start.clock_off_ms = if place == 3 { -2_000 } else { 0 };
        world.start(place, start);
    }
    world.until(60_000, "all see all", World::all_see_all);
    world.run(20_000);
    let offset = |of: &str| world.members(0).get(node_id(of)).unwrap().clock_offset_ms.unwrap();
    assert!((-2_010..=-1_990).contains(&offset("n3")), "{}", offset("n3"));
    assert!((-10..=10).contains(&offset("n1")), "{}", offset("n1"));
}

#[test]
fn the_same_seed_is_the_same_history() {
    let history = || {
        let mut world = World::of(13, 8);
        world.loss = 0.1;
        world.run(5_000);
        world.kill(3);
        world.run(5_000);
        (world.delivered, world.told.clone())
    };
    assert_eq!(history(), history());
}
