//! Which messages travel when. Kept in memory only and built again from what is owed: losing it costs repeats.
//!
//! Messages for one shard travel together, one `Deliver` at a time. A message that its receiver puts off waits by itself; a shard that
//! does not answer is asked less and less often, and keeps none of the node's places meanwhile.

use super::{
    keys,
    rules::{Rule, kept},
    state::{Outbox, send_until},
};
use campanile_schema::{
    ids::{ShardId, shard_of_slot},
    limits::{
        DELIVER_AGAIN_MAX_MS, DELIVER_AGAIN_MS, DELIVER_BYTES, DELIVER_MESSAGES, POISONED_AFTER, SETTLE_BATCH,
        SETTLE_MS,
    },
    peer::outbox::{Delivered, Parcel, Said},
    stored::outbox::{Failure, Message, MessageId, OutboxEvent, Refusal},
};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a parcel takes besides its body.
const PARCEL_BYTES: usize = 256;

/// Two clocks: waits are measured by one that is never set, ages by the guarded wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub wall_ms: i64,
    pub boot_ms: i64,
}

/// One `Deliver` to be made and sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub to: ShardId,
    /// Tells its answer from that of an earlier one.
    pub number: u64,
    pub ids: Vec<MessageId>,
}

#[derive(Debug, Default)]
struct Lane {
    /// Not before then, by the boot clock.
    waiting: BTreeSet<(i64, MessageId)>,
    under_way: BTreeMap<u64, Vec<MessageId>>,
    /// Failures in a row of the whole lane, and until when it rests.
    failures: u32,
    rests_until: i64,
}

/// How a message fared so far, for those that were not settled at their first try.
#[derive(Clone, Copy, Debug, Default)]
struct Tries {
    put_off: u32,
    broken: u32,
}

/// The deliveries of one shard.
#[derive(Debug, Default)]
pub struct Courier {
    lanes: BTreeMap<ShardId, Lane>,
    tries: BTreeMap<MessageId, Tries>,
    /// Messages of a lane, waiting or under way.
    known: BTreeSet<MessageId>,
    answered: Vec<MessageId>,
    answered_since: Option<i64>,
    failed: Vec<(MessageId, Failure)>,
    number: u64,
    /// The lane that was served last: the next one has its turn.
    last: ShardId,
}

impl Courier {
    /// After a restart or a move: all that is owed is to be sent.
    pub fn load(outbox: &Outbox, now: Now) -> Self {
        let mut courier = Self::default();
        if kept(Rule::OweAfterRestart) {
            outbox.owed().for_each(|message| courier.durable(message, outbox.shards(), now));
        }
        courier
    }

    /// The frame of a message is durable.
    pub fn durable(&mut self, message: &Message, shards: u16, now: Now) {
        if self.known.insert(message.id) {
            let to = shard_of_slot(u64::from(message.to), shards);
            self.lanes.entry(to).or_default().waiting.insert((now.boot_ms, message.id));
        }
    }

    /// `Deliver` calls under way.
    pub fn under_way(&self) -> usize {
        self.lanes.values().map(|lane| lane.under_way.len()).sum()
    }

    /// What is to be sent now, with `places` of the node's window left. Each lane has its turn.
    pub fn next(&mut self, outbox: &Outbox, now: Now, places: usize) -> Vec<Batch> {
        let mut batches = Vec::new();
        let later: Vec<ShardId> =
            self.lanes.range(self.last..).map(|(to, _)| *to).filter(|to| *to > self.last).collect();
        let turns: Vec<ShardId> = later.into_iter().chain(self.lanes.range(..=self.last).map(|(to, _)| *to)).collect();
        for to in turns {
            if batches.len() >= places && kept(Rule::WindowOfNode) {
                break;
            }
            let Some(lane) = self.lanes.get_mut(&to) else { continue };
            let busy = !lane.under_way.is_empty() && kept(Rule::OneUnderWay);
            if busy || (lane.rests_until > now.boot_ms && kept(Rule::BackOff)) {
                continue;
            }
            let ids = pick(lane, outbox, now, &mut self.failed);
            if ids.is_empty() {
                continue;
            }
            self.number += 1;
            if !kept(Rule::SettleOnAnswer) {
                self.answered_since.get_or_insert(now.boot_ms);
                self.answered.extend(&ids);
            }
            lane.under_way.insert(self.number, ids.clone());
            self.last = to;
            batches.push(Batch { to, number: self.number, ids });
        }
        batches
    }

    /// A shard has answered. What is settled or refused counts whenever it comes; the rest only from the `Deliver` that is under way.
    pub fn answered(&mut self, to: ShardId, number: u64, answer: &Delivered, now: Now) {
        let mut open = self.lanes.get_mut(&to).and_then(|lane| lane.under_way.remove(&number));
        match answer {
            Delivered::Later(ms) => {
                if let (Some(ids), Some(lane)) = (open, self.lanes.get_mut(&to)) {
                    lane.rests_until = now.boot_ms + clamp(i64::from(*ms));
                    lane.waiting.extend(ids.into_iter().map(|id| (now.boot_ms, id)));
                }
            }
            Delivered::Each(said) => {
                if let (Some(_), Some(lane)) = (&open, self.lanes.get_mut(&to)) {
                    lane.failures = 0;
                }
                for (id, said) in said {
                    let mine = open.as_mut().is_some_and(|ids| {
                        let before = ids.len();
                        ids.retain(|other| other != id);
                        ids.len() < before
                    });
                    self.said(to, *id, said, mine, now);
                }
                // Those that the answer does not name.
                for id in open.into_iter().flatten() {
                    if kept(Rule::SettleOnlyNamed) {
                        self.put_off(to, id, 0, now);
                    } else {
                        self.settled(id, now);
                    }
                }
            }
        }
    }

    fn said(&mut self, to: ShardId, id: MessageId, said: &Said, mine: bool, now: Now) {
        match said {
            Said::Settled { .. } | Said::Ended(_) => self.settled(id, now),
            Said::Refused(why) => self.gave_up(id, Failure::Refused(*why)),
            Said::Later(_) | Said::Broken if !mine || !self.known.contains(&id) => {}
            Said::Later(_) if !kept(Rule::SettleOnlyNamed) => self.settled(id, now),
            Said::Later(ms) => {
                self.put_off(to, id, i64::from(*ms), now);
                if !kept(Rule::LaterHoldsNoOthers)
                    && let Some(lane) = self.lanes.get_mut(&to)
                {
                    lane.rests_until = lane.rests_until.max(now.boot_ms + DELIVER_AGAIN_MAX_MS);
                }
            }
            Said::Broken => {
                let tries = self.tries.entry(id).or_default();
                tries.broken += 1;
                if tries.broken >= POISONED_AFTER && kept(Rule::PoisonedAfterTries) {
                    self.gave_up(id, Failure::Refused(Refusal::Poisoned));
                } else {
                    self.put_off(to, id, 0, now);
                }
            }
        }
    }

    /// There was no answer: whether the messages arrived nobody knows.
    pub fn unanswered(&mut self, to: ShardId, number: u64, now: Now) {
        let Some(lane) = self.lanes.get_mut(&to) else { return };
        let Some(ids) = lane.under_way.remove(&number) else { return };
        lane.failures = lane.failures.saturating_add(1);
        lane.rests_until = now.boot_ms + doubled(lane.failures);
        if kept(Rule::RepeatUnanswered) {
            lane.waiting.extend(ids.into_iter().map(|id| (now.boot_ms, id)));
        }
    }

    fn settled(&mut self, id: MessageId, now: Now) {
        if self.known.contains(&id) && !self.answered.contains(&id) {
            self.answered_since.get_or_insert(now.boot_ms);
            self.answered.push(id);
        }
    }

    fn gave_up(&mut self, id: MessageId, why: Failure) {
        if self.known.contains(&id) && !self.failed.iter().any(|(other, _)| *other == id) {
            self.failed.push((id, why));
        }
    }

    fn put_off(&mut self, to: ShardId, id: MessageId, asked_ms: i64, now: Now) {
        // Settled by an answer to an earlier `Deliver`, perhaps.
        if self.answered.contains(&id) || !self.known.contains(&id) {
            return;
        }
        let tries = self.tries.entry(id).or_default();
        tries.put_off = tries.put_off.saturating_add(1);
        let wait = if kept(Rule::BackOff) { clamp(asked_ms).max(doubled(tries.put_off)) } else { 0 };
        self.lanes.entry(to).or_default().waiting.insert((now.boot_ms + wait, id));
    }

    /// Events that are due: batches of what was answered, and what is given up.
    pub fn events(&mut self, outbox: &Outbox, now: Now) -> Vec<OutboxEvent> {
        let mut events = Vec::new();
        let full = if kept(Rule::SettleInBatches) { SETTLE_BATCH } else { usize::MAX };
        let waited = self.answered_since.is_some_and(|since| now.boot_ms - since >= SETTLE_MS);
        while self.answered.len() >= full || (waited && !self.answered.is_empty()) {
            let ids = self.answered.drain(..self.answered.len().min(full)).collect();
            events.push(OutboxEvent::Settled { ids });
        }
        if self.answered.is_empty() {
            self.answered_since = None;
        }
        for (id, why) in std::mem::take(&mut self.failed) {
            if outbox.get(id).is_none() || self.answered.contains(&id) {
                continue;
            }
            if kept(Rule::FailureIsRecorded) {
                events.push(OutboxEvent::Failed { id, why, at_ms: now.wall_ms });
            } else {
                events.push(OutboxEvent::Settled { ids: vec![id] });
            }
        }
        events
    }

    /// An event was applied to the outbox: what it ends is not sent any more.
    pub fn applied(&mut self, event: &OutboxEvent) {
        match event {
            OutboxEvent::Settled { ids } => ids.iter().for_each(|id| self.forget(*id)),
            OutboxEvent::Failed { id, .. } => self.forget(*id),
            OutboxEvent::Sent(_)
            | OutboxEvent::Dropped { .. }
            | OutboxEvent::Restored { .. }
            | OutboxEvent::Cleared { .. } => {}
        }
    }

    fn forget(&mut self, id: MessageId) {
        self.known.remove(&id);
        self.tries.remove(&id);
        self.answered.retain(|other| *other != id);
        // From `waiting` it goes when it would be sent.
    }

    /// When there is something to do, by the boot clock, if no answer comes.
    pub fn wake_at(&self) -> Option<i64> {
        let lanes = self.lanes.values().filter(|lane| lane.under_way.is_empty());
        let sends = lanes.filter_map(|lane| lane.waiting.first().map(|(at, _)| (*at).max(lane.rests_until)));
        let settles = self.answered_since.map(|since| since + SETTLE_MS);
        let fails = (!self.failed.is_empty()).then_some(i64::MIN);
        sends.chain(settles).chain(fails).min()
    }
}

/// Takes the messages of the next `Deliver` from those of a lane that wait; those that are too old are given up instead.
fn pick(lane: &mut Lane, outbox: &Outbox, now: Now, failed: &mut Vec<(MessageId, Failure)>) -> Vec<MessageId> {
    let mut ids = Vec::new();
    let mut bytes = 0;
    while let Some((at, id)) = lane.waiting.first().copied() {
        if at > now.boot_ms || (ids.len() >= DELIVER_MESSAGES && kept(Rule::DeliverBytes)) {
            break;
        }
        let Some(message) = outbox.get(id) else {
            // Settled or given up meanwhile.
            lane.waiting.pop_first();
            continue;
        };
        if send_until(message) <= now.wall_ms {
            lane.waiting.pop_first();
            failed.push((id, Failure::Undelivered));
            continue;
        }
        let size = message.bytes as usize + PARCEL_BYTES;
        if !ids.is_empty() && bytes + size > DELIVER_BYTES && kept(Rule::DeliverBytes) {
            break;
        }
        bytes += size;
        lane.waiting.pop_first();
        ids.push(id);
    }
    ids
}

/// A message as it travels, with the body that was built for it.
pub fn parcel(message: &Message, body: Vec<u8>) -> Parcel {
    Parcel {
        id: message.id,
        kind: message.kind.code(),
        tenant: message.tenant.clone(),
        job: message.job.clone(),
        key: keys::of(message),
        decided_ms: message.at_ms,
        marked: message.marked,
        depth: message.depth,
        body,
    }
}

/// What a receiver may ask for.
fn clamp(ms: i64) -> i64 {
    ms.clamp(DELIVER_AGAIN_MS, DELIVER_AGAIN_MAX_MS)
}

fn doubled(times: u32) -> i64 {
    DELIVER_AGAIN_MS.saturating_mul(1 << times.saturating_sub(1).min(20)).min(DELIVER_AGAIN_MAX_MS)
}
