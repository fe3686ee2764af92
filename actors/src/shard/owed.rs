//! What is durable of a shard's messages: those that are not settled, with the records of the runs that send them, and those that were
//! given up, until a person sends them again or puts them away. Changed by events only, as the jobs are; a part of its own in the
//! shard's snapshot.

use super::{
    graphs::is_of_node,
    snapshotting::{self, chunks},
};
use campanile_core::outbox::{Bounds, Outbox, body};
use campanile_ports::StoreError;
use campanile_schema::{
    event::Event,
    frame::{decode, encode},
    ids::RunId,
    limits::{OUTBOX_FAILED, OUTBOX_FAILED_BYTES, OUTBOX_TENANT_PART},
    record::RunRecord,
    stored::outbox::{DropReason, GiveUp, Message, MessageId, MessageKind, OutboxEvent, OutboxHead, OutboxItem},
};
use std::{collections::BTreeMap, sync::Arc};

/// By run and generation.
type Senders = BTreeMap<(RunId, u32), Sender>;

/// The run that sends messages.
#[derive(Clone)]
struct Sender {
    /// As it ended, which the messages tell of.
    record: Arc<RunRecord>,
    /// Messages of it that are not settled, count.
    messages: usize,
    /// The run as it ended last, if it was started again or changed since.
    newest: Option<Arc<RunRecord>>,
    /// `record` has only what the messages tell: a person has sent one again.
    partial: bool,
}

/// A message that was given up.
#[derive(Clone)]
pub(super) struct GivenUp {
    pub message: Arc<Message>,
    pub record: Option<Arc<RunRecord>>,
    pub why: GiveUp,
    pub at_ms: i64,
}

/// What is durable of a shard's messages.
pub(super) struct Owed {
    pub outbox: Outbox,
    senders: Senders,
    given_up: BTreeMap<MessageId, GivenUp>,
}

impl Owed {
    pub fn new(shards: u16) -> Self {
        let outbox = Outbox::new(shards, Bounds::default());
        Self { outbox, senders: Senders::new(), given_up: BTreeMap::new() }
    }

    /// Of a shard that was read without knowing how many there are.
    pub fn of(self, shards: u16) -> Self {
        let messages = self.outbox.owed().map(|message| (**message).clone());
        let outbox = Outbox::from_items(shards, Bounds::default(), self.outbox.head().clone(), messages);
        Self { outbox, ..self }
    }

    /// The run that sends a message, as it ended.
    pub fn record(&self, message: &Message) -> Option<&Arc<RunRecord>> {
        self.sender(message).map(|sender| &sender.record)
    }

    /// The same, as it ended last. None: it is not known whole.
    pub fn newest(&self, message: &Message) -> Option<&Arc<RunRecord>> {
        let sender = self.sender(message)?;
        sender.newest.as_ref().or_else(|| (!sender.partial).then_some(&sender.record))
    }

    fn sender(&self, message: &Message) -> Option<&Sender> {
        self.senders.get(&sender_of(message)?)
    }

    /// Whether events of runs may concern it.
    pub fn has_records(&self) -> bool {
        !self.senders.is_empty()
    }

    /// Messages that were given up, in the order in which they were decided.
    pub fn given_up(&self) -> impl Iterator<Item = &GivenUp> {
        self.given_up.values()
    }

    /// Whether a snapshot need not hold anything of it.
    pub fn is_untouched(&self) -> bool {
        *self.outbox.head() == OutboxHead::default()
    }

    /// The items of a snapshot: the head under 0, each message under its number.
    pub fn items(&self) -> Vec<(u64, Vec<u8>)> {
        let head = (0, encode(self.outbox.head()));
        let owed =
            self.outbox.owed().map(|message| (message.id.0, encode(&item((**message).clone(), self.sender(message)))));
        let given_up = self.given_up.values().map(|GivenUp { message, record, why, at_ms }| {
            let given_up = Some((*why, *at_ms));
            let item = OutboxItem { record: record.clone(), given_up, ..item((**message).clone(), None) };
            (message.id.0, encode(&item))
        });
        std::iter::once(head).chain(owed).chain(given_up).collect()
    }

    /// [`Self::items`] packed; empty when there is nothing to keep.
    pub fn chunks(&self) -> Vec<Vec<u8>> {
        if self.is_untouched() {
            return Vec::new();
        }
        chunks(self.items().into_iter().map(|(id, bytes)| snapshotting::Item(id, bytes.into())))
    }

    pub fn from_items(shards: u16, items: Vec<(u64, Vec<u8>)>) -> Result<Self, StoreError> {
        let corrupt = |e: &dyn std::fmt::Display| StoreError::Corrupt(format!("outbox: {e}"));
        let mut head = OutboxHead::default();
        let mut read = Vec::with_capacity(items.len());
        for (id, bytes) in items {
            if id == 0 {
                head = decode("outbox head", &bytes).map_err(|e| corrupt(&e))?;
            } else {
                read.push(decode::<OutboxItem>("message", &bytes).map_err(|e| corrupt(&e))?);
            }
        }
        Ok(Self::from_read(shards, head, read))
    }

    fn from_read(shards: u16, head: OutboxHead, items: Vec<OutboxItem>) -> Self {
        let (mut messages, mut senders, mut given_up) = (Vec::new(), Senders::new(), BTreeMap::new());
        for OutboxItem { message, record, given_up: why, newest, partial } in items {
            if let Some((why, at_ms)) = why {
                given_up.insert(message.id, GivenUp { message: Arc::new(message), record, why, at_ms });
                continue;
            }
            if let (Some(record), Some(key)) = (record, sender_of(&message)) {
                let sender = Sender { record, messages: 0, newest, partial };
                senders.entry(key).or_insert(sender).messages += 1;
            }
            messages.push(message);
        }
        Self { outbox: Outbox::from_items(shards, Bounds::default(), head, messages), senders, given_up }
    }

    /// Applies the events of one decision, or of one frame: a message stands behind the end that sends it.
    pub fn apply(&mut self, events: &[Event]) {
        for event in events {
            if let Event::RunEnded { record, .. }
            | Event::DeadLetterDiscarded { record, .. }
            | Event::HookFailed { record: Some(record), .. } = event
            {
                self.ended_last(record);
            }
            let Event::Outbox { change } = event else { continue };
            match change {
                OutboxEvent::Sent(message) => self.keep(message, events),
                OutboxEvent::Settled { ids } => ids.iter().for_each(|id| drop(self.release(*id))),
                OutboxEvent::Failed { id, why, at_ms } => {
                    // What becomes of a message to a node stands in the run of its DAG, where a retry sends another.
                    if let Some((message, record)) = self.release(*id).filter(|(of, _)| !is_of_node(of.kind)) {
                        self.give_up(message, record.as_deref(), GiveUp::Failed(*why), *at_ms);
                    }
                }
                OutboxEvent::Dropped { message, why } => {
                    let record = ended(message, events);
                    self.give_up(Arc::new(message.clone()), record.as_deref(), GiveUp::Dropped(*why), message.at_ms);
                }
                OutboxEvent::Cleared { ids } => ids.iter().for_each(|id| drop(self.given_up.remove(id))),
                OutboxEvent::Restored { .. } => {}
            }
            self.outbox.apply(change);
        }
    }

    /// A run that may have sent messages was started again and has ended, or its record has changed.
    fn ended_last(&mut self, record: &Arc<RunRecord>) {
        for (_, sender) in self.senders.range_mut((record.run, 0)..=(record.run, u32::MAX)) {
            sender.newest = Some(record.clone());
        }
    }

    fn keep(&mut self, message: &Message, events: &[Event]) {
        let Some(key) = sender_of(message) else { return };
        if let Some(sender) = self.senders.get_mut(&key) {
            sender.messages += 1;
            return;
        }
        // Sent again by a person, it stands among those that were given up.
        let before = || {
            let same = |given_up: &&GivenUp| sender_of(&given_up.message) == Some(key);
            self.given_up.values().find(same).and_then(|given_up| given_up.record.clone())
        };
        let ended = ended(message, events);
        // Hooks of a run stand in front of its END, which needs less.
        let partial = ended.is_none() || message.kind == MessageKind::End;
        if let Some(record) = ended.map(|record| needed(message, record)).or_else(before) {
            self.senders.insert(key, Sender { record, messages: 1, newest: None, partial });
        }
    }

    /// A message leaves what is owed, and the record of its run with its last one.
    fn release(&mut self, id: MessageId) -> Option<(Arc<Message>, Option<Arc<RunRecord>>)> {
        let message = self.outbox.get(id)?.clone();
        let Some(key) = sender_of(&message) else { return Some((message, None)) };
        let Some(sender) = self.senders.get_mut(&key) else { return Some((message, None)) };
        let record = sender.record.clone();
        sender.messages -= 1;
        if sender.messages == 0 {
            self.senders.remove(&key);
        }
        Some((message, Some(record)))
    }

    /// The oldest make room, those of the same tenant first when it has more than its part.
    fn give_up(&mut self, message: Arc<Message>, record: Option<&RunRecord>, why: GiveUp, at_ms: i64) {
        // An END is sent again with its result.
        let of_hook = message.kind != MessageKind::End;
        let record = record.map(|record| Arc::new(if of_hook { body::essence(record) } else { record.clone() }));
        let tenant = message.tenant.clone();
        self.given_up.insert(message.id, GivenUp { message, record, why, at_ms });
        let is_its = |given_up: &GivenUp| given_up.message.tenant == tenant;
        self.shrink(OUTBOX_TENANT_PART, is_its);
        self.shrink(1, |_| true);
    }

    fn shrink(&mut self, part: usize, of: impl Fn(&GivenUp) -> bool) {
        loop {
            let theirs = || self.given_up.values().filter(|given_up| of(given_up));
            let bytes: usize = theirs().map(|given_up| given_up.message.bytes as usize).sum();
            if theirs().count() <= OUTBOX_FAILED / part && bytes <= OUTBOX_FAILED_BYTES / part {
                return;
            }
            let Some(oldest) = theirs().map(|given_up| given_up.message.id).next() else { return };
            self.given_up.remove(&oldest);
        }
    }

    /// The store was restored from a backup.
    pub fn restored(&mut self, at_ms: i64) {
        self.apply(&[Event::Outbox { change: OutboxEvent::Restored { at_ms } }]);
    }

    /// Those of all shards in another number of shards.
    pub fn reshard(all: Vec<Self>, shards: u16) -> Vec<Self> {
        let mut senders = Senders::new();
        let mut given_up = Vec::new();
        let mut old = Vec::with_capacity(all.len());
        for owed in all {
            old.push((owed.outbox.head().clone(), owed.outbox.owed().map(|message| (**message).clone()).collect()));
            senders.extend(owed.senders);
            given_up.extend(owed.given_up.into_values());
        }
        let mut new: Vec<Self> = campanile_core::outbox::moving::migrate(old, shards)
            .into_iter()
            .map(|(_, head, messages)| {
                let item = |message: Message| {
                    let sender = sender_of(&message).and_then(|key| senders.get(&key));
                    item(message, sender)
                };
                Self::from_read(shards, head, messages.into_iter().map(item).collect())
            })
            .collect();
        given_up.sort_by_key(|given_up| (given_up.message.at_ms, given_up.message.from, given_up.message.id));
        for given_up in given_up {
            let shard = given_up.message.run.shard(shards);
            if let Some(owed) = new.get_mut(usize::from(shard.0)) {
                owed.move_here(given_up);
            }
        }
        new
    }

    /// A message of another shard that was given up, under a number that no message had.
    fn move_here(&mut self, GivenUp { message, record, why, at_ms }: GivenUp) {
        let id = MessageId(self.outbox.head().last.0 + 1);
        let message = Message { id, ..(*message).clone() };
        // It takes the number, and is not owed.
        self.outbox.apply(&OutboxEvent::Dropped { message: message.clone(), why: DropReason::OutboxFull });
        self.give_up(Arc::new(message), record.as_deref(), why, at_ms);
    }
}

/// The run whose end sends a message. To its nodes a DAG sends while it is open, and in the generation of the node; what a deadline sends
/// has all that it tells.
fn sender_of(message: &Message) -> Option<(RunId, u32)> {
    let of_end = !is_of_node(message.kind) && message.kind != MessageKind::Deadline;
    of_end.then_some((message.run, message.generation))
}

/// A message that is owed, as a snapshot holds it.
fn item(message: Message, sender: Option<&Sender>) -> OutboxItem {
    let Some(Sender { record, newest, partial, .. }) = sender else {
        return OutboxItem { message, record: None, given_up: None, newest: None, partial: false };
    };
    OutboxItem { message, record: Some(record.clone()), given_up: None, newest: newest.clone(), partial: *partial }
}

/// What a message needs of the record of its run: of the ends of nodes there may be many.
fn needed(message: &Message, record: Arc<RunRecord>) -> Arc<RunRecord> {
    if message.kind == MessageKind::End {
        return Arc::new(RunRecord { params: None, graph: None, attempts: Vec::new(), ..(*record).clone() });
    }
    record
}

/// The end that sends a message, if it is among these events.
fn ended(message: &Message, events: &[Event]) -> Option<Arc<RunRecord>> {
    events.iter().find_map(|event| match event {
        Event::RunEnded { record, .. } if (record.run, record.generation) == (message.run, message.generation) => {
            Some(record.clone())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_core::outbox::{MessageDraft, Sending, moving, sending::To};
    use campanile_schema::{
        ids::{JobId, make_id},
        stored::outbox::Failure,
    };
    use serde_json::json;

    /// A run that has failed, and its hook, as a decision's events.
    fn failed(owed: &Owed, slot: u64) -> Vec<Event> {
        let run = RunId(make_id(owed.outbox.head().last.0 + 1, slot));
        // As it is stored.
        let record = json!({"r": run, "j": slot, "t": "acme", "s": 7, "o": 1, "c": 1, "e": 2, "d": true});
        let record: RunRecord = serde_json::from_value(record).unwrap();
        let mut sending = Sending::new(&owed.outbox, 2);
        let wanted = MessageDraft {
            kind: MessageKind::Hook,
            tenant: "acme".into(),
            run,
            run_created_ms: 1,
            run_marked: false,
            generation: 1,
            index: 0,
            to: To::Job("refund".into()),
            params: None,
            depth: 0,
            body_bytes: 10,
            budget: None,
            dropped: None,
            deadline: None,
        };
        sending.send(wanted).unwrap();
        let sent = sending.events.into_iter().map(|change| Event::Outbox { change });
        std::iter::once(Event::RunEnded { job: JobId(slot), record: Arc::new(record) }).chain(sent).collect()
    }

    fn change(change: OutboxEvent) -> [Event; 1] {
        [Event::Outbox { change }]
    }

    fn bodies(owed: &Owed) -> Vec<(RunId, Vec<u8>)> {
        let body = |of: &Arc<Message>| (of.run, body::hook(of, Some(owed.record(of).unwrap()), None));
        let mut bodies: Vec<_> = owed.outbox.owed().map(body).collect();
        bodies.sort();
        bodies
    }

    /// Messages that are owed, each of a run of its own.
    fn four() -> Owed {
        let mut owed = Owed::new(2);
        for slot in [0, 2, 4, 6] {
            let events = failed(&owed, slot);
            owed.apply(&events);
        }
        owed
    }

    fn numbers(owed: &Owed) -> Vec<u64> {
        owed.given_up().map(|given_up| given_up.message.id.0).collect()
    }

    #[test]
    fn what_is_owed_survives_its_items_a_restore_and_another_number_of_shards() {
        let untouched = Owed::new(2);
        assert!(untouched.is_untouched() && untouched.chunks().is_empty());
        let owed = four();
        let before = bodies(&owed);
        assert_eq!(before.len(), 4);
        let mut read = Owed::from_items(2, owed.items()).unwrap();
        assert_eq!(bodies(&read), before);
        read.restored(9);
        assert!(read.outbox.owed().all(|message| message.marked));
        let four = Owed::reshard(vec![read, Owed::new(2)], 4);
        let of = |n: usize| four[n].outbox.owed().map(|message| message.from).collect::<Vec<_>>();
        assert_eq!((of(0), of(1), of(2), of(3)), (vec![0, 4], vec![], vec![2, 6], vec![]));
        let mut together: Vec<_> = four.iter().flat_map(bodies).collect();
        together.sort();
        assert_eq!(together, before);
    }

    #[test]
    fn the_record_of_a_run_leaves_with_its_last_message() {
        let mut owed = Owed::new(1);
        let events = failed(&owed, 0);
        owed.apply(&events);
        assert_eq!(owed.senders.len(), 1);
        let ids = owed.outbox.owed().map(|message| message.id).collect();
        owed.apply(&change(OutboxEvent::Settled { ids }));
        assert!(owed.senders.is_empty() && owed.outbox.is_empty());
        assert!(!owed.is_untouched(), "its numbers are not given again");
    }

    #[test]
    fn a_run_that_was_started_again_is_known_as_it_ended_last_wherever_its_message_goes() {
        let mut owed = four();
        let message = (**owed.outbox.owed().next().unwrap()).clone();
        let before = bodies(&owed);
        let again = RunRecord { generation: 2, ..(**owed.record(&message).unwrap()).clone() };
        owed.apply(&[Event::RunEnded { job: again.job, record: Arc::new(again.clone()) }]);
        let read = Owed::from_items(2, owed.items()).unwrap();
        let moved = Owed::reshard(vec![Owed::from_items(2, owed.items()).unwrap(), Owed::new(2)], 4).swap_remove(0);
        for owed in [&owed, &read] {
            assert_eq!(**owed.newest(&message).unwrap(), again);
            assert_eq!(bodies(owed), before, "the message tells of the generation that sent it");
        }
        assert_eq!(**moved.newest(&message).unwrap(), again);
        let told = Arc::new(RunRecord { dead_letter: false, ..again });
        owed.apply(&[Event::DeadLetterDiscarded { job: told.job, record: told, at_ms: 9 }]);
        assert!(!owed.newest(&message).unwrap().dead_letter);
        let ids = owed.outbox.owed().map(|message| message.id).collect();
        owed.apply(&change(OutboxEvent::Settled { ids }));
        assert!(!owed.has_records(), "it goes with the message");
    }

    #[test]
    fn a_message_that_was_given_up_is_kept_wherever_it_goes_until_it_is_sent_again_or_put_away() {
        let mut owed = four();
        let before = bodies(&owed);
        let undelivered = |id| OutboxEvent::Failed { id: MessageId(id), why: Failure::Undelivered, at_ms: 5 };
        owed.apply(&change(undelivered(2)));
        owed.apply(&change(undelivered(3)));
        assert_eq!((owed.outbox.len(), numbers(&owed)), (2, vec![2, 3]));
        let mut read = Owed::from_items(2, owed.items()).unwrap();
        assert_eq!(numbers(&read), [2, 3]);
        let moved = Owed::reshard(vec![Owed::from_items(2, owed.items()).unwrap(), Owed::new(2)], 4);
        assert_eq!(moved.iter().map(|owed| owed.given_up.len()).collect::<Vec<_>>(), [1, 0, 1, 0]);
        let ids: Vec<u64> = moved.iter().flat_map(|owed| owed.outbox.owed().map(|message| message.id.0)).collect();
        assert!(moved.iter().all(|owed| numbers(owed).iter().all(|id| *id > 4)), "new numbers, as {ids:?}");
        // By hand, with the record that was kept of its run.
        let again = read.given_up[&MessageId(2)].message.clone();
        let again = moving::by_hand(&again, read.outbox.head(), 6).unwrap();
        let mut sending = Sending::new(&read.outbox, 6);
        sending.send_again(again, 0).unwrap();
        sending.events.push(OutboxEvent::Cleared { ids: vec![MessageId(2)] });
        let events: Vec<Event> = sending.events.into_iter().map(|change| Event::Outbox { change }).collect();
        read.apply(&events);
        assert_eq!((read.outbox.len(), numbers(&read)), (3, vec![3]));
        assert_eq!(bodies(&read).len(), 3);
        assert!(bodies(&read).iter().all(|body| before.contains(body)), "as it was");
        let of_two = |owed: &Owed| owed.outbox.owed().last().map(|message| owed.newest(message).is_some());
        assert_eq!(of_two(&read), Some(false), "the run's own record must not be written over with less");
        assert_eq!(of_two(&Owed::from_items(2, read.items()).unwrap()), Some(false));
        read.apply(&change(OutboxEvent::Cleared { ids: vec![MessageId(3)] }));
        assert_eq!(numbers(&read), [0; 0]);
    }

    #[test]
    fn the_oldest_that_were_given_up_make_room_and_a_tenant_takes_none_from_others() {
        let mut owed = four();
        let message = (**owed.outbox.owed().next().unwrap()).clone();
        let mut dropped = |tenant: &str, id: u64| {
            let message = Message { id: MessageId(id), tenant: tenant.into(), ..message.clone() };
            owed.apply(&change(OutboxEvent::Dropped { message, why: DropReason::OutboxFull }));
        };
        dropped("globex", 10);
        let part = OUTBOX_FAILED / OUTBOX_TENANT_PART;
        (100..100 + 2 * part as u64).for_each(|id| dropped("acme", id));
        let kept = numbers(&owed);
        assert_eq!(kept.len(), 1 + part);
        assert_eq!((kept[0], kept[1]), (10, 100 + part as u64), "the oldest of acme went");
    }
}
