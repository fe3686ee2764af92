//! Foreign, changed, repeated and old packets change nothing; keys can be changed under way.

use super::{
    super::{
        Addresses, Versions,
        card::Card,
        driver::{Body, Content},
        identity::Identity,
        refusal::{Notice, Reason},
        seal::{SEAL_BYTES, Seal, Unopened},
    },
    world::{KEY, Start, World, address},
};
use crate::earlier_release::are_read;
use campanile_schema::limits::{CLUSTER_NAME_CHARS, GOSSIP_CARD_BYTES, GOSSIP_PACKET_BYTES, RPC_ADVERTISE_BYTES};
use campanile_security::secrets::KeyRing;
use rand::RngExt;
use serde_bytes::ByteBuf;

const NEW: &str = "key-2 ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";

fn seal(cluster: &str, keys: &str) -> Seal {
    Seal::new(cluster.to_owned(), KeyRing::parse(keys).unwrap()).unwrap()
}

#[test]
fn nothing_of_a_packet_can_be_changed() {
    let ours = seal("test", KEY);
    let packet = ours.close(7, &[3; 24], b"something").unwrap();
    assert_eq!(ours.open(&packet), Ok((7, b"something".to_vec())));
    assert!(packet.len() <= SEAL_BYTES + 9);
    for at in 0..packet.len() {
        let mut changed = packet.clone();
        changed[at] ^= 1;
        assert!(ours.open(&changed).is_err(), "byte {at}");
        assert!(ours.open(&packet[..at]).is_err(), "cut at {at}");
    }
    // The name in the packet is bound: written over with ours it does not open.
    let theirs = seal("tset", KEY).close(7, &[3; 24], b"something").unwrap();
    assert_eq!(ours.open(&theirs), Err(Unopened::OtherCluster("tset".to_owned())));
    let at = theirs.windows(4).position(|window| window == b"tset").unwrap();
    let mut renamed = theirs;
    renamed[at..at + 4].copy_from_slice(b"test");
    assert_eq!(ours.open(&renamed), Err(Unopened::Spoilt("key-1".to_owned())));
    assert!(!packet.windows(9).any(|window| window == b"something"));
}

#[test]
fn keys_can_be_changed_under_way() {
    let mut world = World::of(40, 3);
    // Everybody can open the new one before anybody seals with it; then the old one goes.
    for keys in [format!("{KEY}\n{NEW}"), format!("{NEW}\n{KEY}"), NEW.to_owned()] {
        for place in 0..3 {
            let mut start = Start::named(&format!("n{place}"), address(place));
            let before = world.members(place).get(crate::node_id(&format!("n{place}"))).unwrap().generation;
            start.me.generation = before + 1;
            start.keys.clone_from(&keys);
            world.kill(place);
            world.start(place, start);
            world.until(10_000, "all see all", World::all_see_all);
        }
    }
}

#[test]
fn what_came_before_is_refused() {
    let mut world = World::of(41, 3);
    let counted = |world: &World, reason| world.places[1].as_ref().unwrap().counters().refused(reason);
    world.until(5_000, "a packet is on its way", |world| world.seen.iter().any(|(from, to, _)| (*from, *to) == (0, 1)));
    let (_, _, packet) = world.seen.iter().rfind(|(from, to, _)| (*from, *to) == (0, 1)).unwrap().clone();
    assert_eq!(counted(&world, Reason::Replay), 0);
    world.deliver(0, 1, &packet);
    assert_eq!(counted(&world, Reason::Replay), 1);
    assert!(world.was_told(1, "of node 'n0' came from 10.0.0.0:7702 again"), "{}", world.story());
    // From a third place, and much later.
    world.deliver(2, 1, &packet);
    world.run(60_000);
    world.deliver(0, 1, &packet);
    assert_eq!((counted(&world, Reason::Replay), counted(&world, Reason::Clock)), (2, 1));
    assert!(world.all_see_all());
}

#[test]
fn a_flood_of_rubbish_is_counted_and_told_once() {
    let mut world = World::of(42, 3);
    let sent = world.places[1].as_ref().unwrap().counters().sent;
    let other = seal("other", KEY);
    for round in 0..1_000 {
        let length = world.random.random_range(0..1_400);
        let rubbish: Vec<u8> = (0..length).map(|_| world.random.random()).collect();
        world.deliver(9, 1, &rubbish);
        let foreign = other.close(0, &[round as u8; 24], b"x").unwrap();
        world.deliver(9, 1, &foreign);
        world.deliver(9, 1, &Notice::encode(Reason::Cluster, "elsewhere", 0));
    }
    let counters = world.places[1].as_ref().unwrap().counters();
    assert_eq!((counters.refused(Reason::Malformed), counters.refused(Reason::Cluster)), (1_000, 1_000));
    assert!(counters.sent - sent <= 10, "{} answers to a flood", counters.sent - sent);
    let told = world.told.iter().filter(|(_, place, text)| *place == 1 && text.contains("a packet from")).count();
    assert_eq!(told, 2, "{}", world.story());
    world.run(5_000);
    assert!(world.all_see_all());
}

#[test]
fn the_largest_packet_fits() {
    let long = |length: usize| "x".repeat(length);
    let address = "[2001:db8:1111:2222:3333:4444:5555:6666]:65535".parse().unwrap();
    let card = Card {
        node: u64::MAX,
        generation: u64::MAX,
        process: u32::MAX,
        revision: u32::MAX,
        name: long(64),
        session: u64::MAX,
        addresses: Addresses { gateway: address, rpc: address, http: address },
        build: long(16),
        event_format: Versions(u32::MAX, u32::MAX),
        wire_format: Versions(u32::MAX, u32::MAX),
        shards: u16::MAX,
        draining: true,
        cordoned: true,
        clock_off_ms: i64::MIN,
        clock_wrong: true,
        executors_at: Some(long(RPC_ADVERTISE_BYTES)),
    };
    let card = card.encode().unwrap();
    assert!(card.len() <= GOSSIP_CARD_BYTES, "{}", card.len());
    let identity = Identity { node: u64::MAX, address, generation: u64::MAX, process: u32::MAX, life: u32::MAX };
    let message = super::super::settings::swim().max_packet_size.get();
    let body = Body {
        from: identity,
        number: u64::MAX,
        standing_ms: u64::MAX,
        card: ByteBuf::from(vec![0; GOSSIP_CARD_BYTES]),
        content: Content::Swim(ByteBuf::from(vec![0; message])),
    };
    let plain = rmp_serde::to_vec(&body).unwrap();
    let id = format!("{} {}", long(32), KEY.split(' ').nth(1).unwrap());
    let packet = seal(&long(CLUSTER_NAME_CHARS), &id).close(i64::MAX, &[0; 24], &plain).unwrap();
    assert!(packet.len() <= GOSSIP_PACKET_BYTES, "{}", packet.len());
    println!("a card of {} bytes at most, a packet of {}", card.len(), packet.len());
}

#[test]
fn packets_and_cards_of_an_earlier_release_are_read() {
    are_read::<Body>("membership", |body| rmp_serde::to_vec(body).unwrap());
    are_read::<Card>("card", |card| rmp_serde::to_vec_named(card).unwrap());
}
