//! Histories of the outbox that chance finds too rarely: each is sound, and is not with the one rule broken that is there for it.

use super::{
    checks::ViolationKind,
    world::{NODES, Packet, SHARDS, START_MS, World},
};
use campanile_core::outbox::{
    Batch, Bounds, Courier, MessageDraft, Now, Outbox, Sending, Take, keys,
    memory::KeyState,
    moving, parcel,
    receiver::{JobFacts, ShardFacts, take},
    rules::{Rule, break_rule},
    sending::To,
};
use campanile_schema::{
    ids::{RunId, ShardId},
    limits::{DELIVER_AGAIN_MAX_MS, MESSAGE_DEPTH, MESSAGE_KEY_MS, SETTLE_BATCH, SETTLE_MS},
    peer::outbox::{Delivered, Parcel, Said},
    record::Source,
    stored::outbox::{MessageId, MessageKind, OutboxEvent, OutboxHead, Refusal},
};

/// The history holds, and does not without the rule.
fn told(rule: Rule, history: impl Fn() -> bool) {
    assert!(history(), "sound");
    break_rule(Some(rule));
    let holds = history();
    break_rule(None);
    assert!(!holds, "{rule:?} is broken, and nothing shows it");
}

fn wanted(run: u64, name: &str) -> MessageDraft {
    MessageDraft {
        kind: MessageKind::Hook,
        tenant: "acme".into(),
        run: RunId(run),
        run_created_ms: START_MS,
        run_marked: false,
        generation: 1,
        index: 0,
        to: To::Job(name.into()),
        params: None,
        depth: 0,
        body_bytes: 100,
        budget: None,
        dropped: None,
        deadline: None,
    }
}

/// A shard that owes messages for one job, one for each run.
fn owing(count: u64) -> Outbox {
    let mut outbox = Outbox::new(1, Bounds { tenant_part: 1, ..Bounds::default() });
    for run in 0..count {
        let mut sending = Sending::new(&outbox, START_MS);
        sending.send(wanted(run, "a")).unwrap();
        let events = sending.events;
        events.iter().for_each(|event| outbox.apply(event));
    }
    outbox
}

fn at(ms: i64) -> Now {
    Now { wall_ms: START_MS + ms, boot_ms: ms }
}

fn each(batch: &Batch, said: impl Fn(MessageId) -> Said) -> Delivered {
    Delivered::Each(batch.ids.iter().map(|id| (*id, said(*id))).collect())
}

#[test]
fn a_message_that_waits_does_not_hold_up_the_next_one() {
    told(Rule::LaterHoldsNoOthers, || {
        let outbox = owing(2);
        let mut courier = Courier::default();
        courier.durable(outbox.get(MessageId(1)).unwrap(), 1, at(0));
        let batch = courier.next(&outbox, at(0), 9).remove(0);
        courier.answered(ShardId(0), batch.number, &each(&batch, |_| Said::Later(100)), at(1));
        courier.durable(outbox.get(MessageId(2)).unwrap(), 1, at(2));
        courier.next(&outbox, at(2), 9).first().is_some_and(|batch| batch.ids == [MessageId(2)])
    });
}

#[test]
fn repeats_become_rarer() {
    told(Rule::BackOff, || {
        let outbox = owing(1);
        let mut courier = Courier::load(&outbox, at(0));
        let mut tries = 0;
        // An hour, looked at ten times a second.
        for ms in (0..3_600_000).step_by(100) {
            for batch in courier.next(&outbox, at(ms), 9) {
                tries += 1;
                courier.answered(ShardId(0), batch.number, &each(&batch, |_| Said::Later(0)), at(ms));
            }
        }
        tries < 3_600_000 / DELIVER_AGAIN_MAX_MS + 20
    });
}

#[test]
fn a_settled_event_has_a_batch_at_most_and_waits_a_second_at_most() {
    told(Rule::SettleInBatches, || {
        let mut outbox = owing(3 * SETTLE_BATCH as u64 / 2);
        let mut courier = Courier::load(&outbox, at(0));
        let mut settled = Vec::new();
        for ms in [0, SETTLE_MS] {
            for batch in courier.next(&outbox, at(ms), 9) {
                courier.answered(ShardId(0), batch.number, &each(&batch, |_| Said::Settled { run: None }), at(ms));
            }
            for event in courier.events(&outbox, at(ms)) {
                outbox.apply(&event);
                courier.applied(&event);
                let OutboxEvent::Settled { ids } = event else { panic!("{event:?}") };
                settled.push(ids.len());
            }
        }
        outbox.is_empty() && settled == [SETTLE_BATCH, SETTLE_BATCH / 2]
    });
}

#[test]
fn messages_of_a_shard_are_limited_in_bytes() {
    told(Rule::RoomBytes, || {
        let outbox = Outbox::new(1, Bounds { tenant_part: 1, bytes: 250, ..Bounds::default() });
        let mut sending = Sending::new(&outbox, START_MS);
        // Of three tenants: the part of one does not end it.
        let of_tenant = |run: u64| MessageDraft { tenant: format!("acm{run}").as_str().into(), ..wanted(run, "a") };
        (0..3).for_each(|run| sending.send(of_tenant(run)).unwrap());
        let dropped = |event: &&OutboxEvent| matches!(event, OutboxEvent::Dropped { .. });
        sending.events.iter().filter(dropped).count() == 1
    });
}

#[test]
fn a_message_is_sent_by_hand_only_while_its_key_lives() {
    told(Rule::ByHandWithinKey, || {
        let outbox = owing(1);
        let failed = outbox.get(MessageId(1)).unwrap();
        let head = OutboxHead { last: MessageId(7), restored_ms: None };
        let day = 86_400_000;
        let again = moving::by_hand(failed, &head, START_MS + day).unwrap();
        let lives = again.until_ms.unwrap() < START_MS + MESSAGE_KEY_MS;
        lives && moving::by_hand(failed, &head, START_MS + 2 * day).is_err()
    });
}

#[test]
fn keys_of_a_restored_store_outlive_the_messages_that_it_owes() {
    told(Rule::KeysAfterRestore, || {
        let mut outbox = owing(1);
        // The backup is of last week; its message made a run that ended at once.
        let restored_ms = START_MS + 7 * 86_400_000;
        outbox.apply(&OutboxEvent::Restored { at_ms: restored_ms });
        let until_ms = outbox.get(MessageId(1)).unwrap().until_ms.unwrap();
        keys::keep_until(START_MS, Some(restored_ms)) > until_ms
    });
}

fn travels(kind: MessageKind) -> Parcel {
    let outbox = owing(1);
    let message = campanile_schema::stored::outbox::Message { kind, ..(**outbox.get(MessageId(1)).unwrap()).clone() };
    parcel(&message, Vec::new())
}

fn judged(parcel: &Parcel, tenant: &str, known: KeyState<(u64, Source)>) -> Take<u64> {
    let job = JobFacts { tenant: tenant.into(), created_ms: START_MS - 1, not_idempotent: false };
    let outbox = Outbox::new(1, Bounds::default());
    let shard = ShardFacts { children: 0, usage: outbox.usage(), bounds: outbox.bounds(), queue_full: false };
    take(parcel, Some(&job), known, shard)
}

#[test]
fn a_run_of_a_caller_is_not_taken_for_that_of_a_message() {
    let hook = travels(MessageKind::Hook);
    assert_eq!(judged(&hook, "acme", KeyState::Found((7, Source::Event))), Take::Found(7));
    told(Rule::SourceIsChecked, || {
        judged(&hook, "acme", KeyState::Found((7, Source::Manual))) == Take::Refuse(Refusal::KeyTaken)
    });
    told(Rule::CallersKeysAreOthers, || keys::is_reserved(&hook.key));
}

#[test]
fn a_message_makes_no_run_of_another_tenant() {
    let hook = travels(MessageKind::Hook);
    told(Rule::TenantIsChecked, || judged(&hook, "globex", KeyState::Absent) == Take::Refuse(Refusal::OtherTenant));
}

#[test]
fn a_chain_of_messages_ends() {
    let deep = Parcel { depth: MESSAGE_DEPTH + 1, ..travels(MessageKind::Hook) };
    assert_eq!(judged(&travels(MessageKind::Hook), "acme", KeyState::Absent), Take::Make { confirm: false });
    told(Rule::DepthIsChecked, || judged(&deep, "acme", KeyState::Absent) == Take::Refuse(Refusal::Depth));
}

/// A run has failed, and what it sent is on its way: the world, and the packet for the hook that it sends first.
fn on_its_way() -> (World, Packet) {
    let mut world = World::new(1);
    (0..SHARDS).for_each(|shard| world.claim(shard, 0));
    let run = world.trigger("acme", "a", None, 0).unwrap();
    let (shard, _) = world.job("acme", "a").unwrap();
    durable(&mut world);
    world.end(shard, run, false);
    durable(&mut world);
    world.tick(shard);
    let packet = world.network.remove(0);
    world.network.clear();
    (world, packet)
}

fn durable(world: &mut World) {
    for shard in 0..world.shards() {
        while world.live[usize::from(shard)].as_ref().is_some_and(|live| !live.pending.is_empty()) {
            world.make_durable(shard);
        }
    }
}

fn to(packet: &Packet) -> u16 {
    let Packet::Deliver { deliver, .. } = packet else { panic!("{packet:?}") };
    deliver.to.0
}

/// The newest arrival at a node makes its runs, which end well, and the view shows them; nobody hears of it.
fn take_and_end(world: &mut World, node: usize, shard: u16) {
    let newest = world.arrived[node].len() - 1;
    world.look_up(node, newest);
    world.turn(node, newest);
    durable(world);
    for (of, run) in world.runs(|run| run.source != Source::Manual) {
        world.end(of, run, true);
    }
    durable(world);
    world.project(shard);
    world.network.clear();
}

#[test]
fn a_look_up_of_an_earlier_epoch_does_not_count() {
    told(Rule::LookUpOfThisEpoch, || {
        let (mut world, packet) = on_its_way();
        let shard = to(&packet);
        world.arrive(packet.clone());
        world.look_up(0, 0);
        // The shard visits the other node, where the message arrives a second time.
        world.hand_over(shard);
        world.arrive(packet);
        take_and_end(&mut world, NODES - 1, shard);
        world.hand_over(shard);
        world.turn(0, 0);
        durable(&mut world);
        world.judge.found.is_none_or(|found| found.kind != ViolationKind::Double)
    });
}

#[test]
fn an_old_look_up_does_not_count() {
    told(Rule::LookUpIsFresh, || {
        let (mut world, packet) = on_its_way();
        let shard = to(&packet);
        world.arrive(packet.clone());
        world.look_up(0, 0);
        world.arrive(packet);
        take_and_end(&mut world, 0, shard);
        world.now_ms += 100_000;
        world.project(shard);
        world.turn(0, 0);
        durable(&mut world);
        world.judge.found.is_none_or(|found| found.kind != ViolationKind::Double)
    });
}

#[test]
fn a_deliver_that_is_days_late_is_not_taken() {
    told(Rule::StaleIsLater, || {
        let (mut world, packet) = on_its_way();
        let shard = to(&packet);
        world.arrive(packet.clone());
        take_and_end(&mut world, 0, shard);
        world.now_ms += MESSAGE_KEY_MS + 60_000;
        world.project(shard);
        world.retain();
        world.arrive(packet);
        if !world.arrived[0].is_empty() {
            world.look_up(0, 0);
            world.turn(0, 0);
            durable(&mut world);
        }
        world.judge.found.is_none_or(|found| found.kind != ViolationKind::Double)
    });
}
