//! What is durable of a shard's messages: those that are not settled, with the records of the runs that send them. Changed by events
//! only, as the jobs are; a part of its own in the shard's snapshot.

use super::snapshot::{self, chunks};
use campanile_core::outbox::{Bounds, Outbox};
use campanile_ports::StoreError;
use campanile_schema::{
    event::Event,
    frame::{decode, encode},
    ids::RunId,
    record::RunRecord,
    stored::outbox::{Message, OutboxEvent, OutboxHead},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// What a message needs of the run that sends it, for as long as it is owed.
type Records = BTreeMap<(RunId, u32), (Arc<RunRecord>, usize)>;

/// A message as a snapshot holds it.
#[derive(Serialize, Deserialize)]
struct Item {
    #[serde(rename = "m")]
    message: Message,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    record: Option<Arc<RunRecord>>,
}

/// What is durable of a shard's messages.
pub(super) struct Owed {
    pub outbox: Outbox,
    records: Records,
}

impl Owed {
    pub fn new(shards: u16) -> Self {
        Self { outbox: Outbox::new(shards, Bounds::default()), records: Records::new() }
    }

    /// Of a shard that was read without knowing how many there are.
    pub fn of(self, shards: u16) -> Self {
        let messages = self.outbox.owed().map(|message| (**message).clone());
        let outbox = Outbox::from_items(shards, Bounds::default(), self.outbox.head().clone(), messages);
        Self { outbox, records: self.records }
    }

    /// The run that sends a message, as it ended.
    pub fn record(&self, message: &Message) -> Option<&RunRecord> {
        self.records.get(&(message.run, message.generation)).map(|(record, _)| &**record)
    }

    /// Whether a snapshot need not hold anything of it.
    pub fn is_untouched(&self) -> bool {
        *self.outbox.head() == OutboxHead::default()
    }

    /// The items of a snapshot: the head under 0, each message under its number.
    pub fn items(&self) -> Vec<(u64, Vec<u8>)> {
        let head = (0, encode(self.outbox.head()));
        let messages = self.outbox.owed().map(|message| {
            let record = self.records.get(&(message.run, message.generation)).map(|(record, _)| record.clone());
            (message.id.0, encode(&Item { message: (**message).clone(), record }))
        });
        std::iter::once(head).chain(messages).collect()
    }

    /// [`Self::items`] packed; empty when there is nothing to keep.
    pub fn chunks(&self) -> Vec<Vec<u8>> {
        if self.is_untouched() {
            return Vec::new();
        }
        chunks(self.items().into_iter().map(|(id, bytes)| snapshot::Item(id, bytes.into())))
    }

    pub fn from_items(shards: u16, items: Vec<(u64, Vec<u8>)>) -> Result<Self, StoreError> {
        let corrupt = |e: &dyn std::fmt::Display| StoreError::Corrupt(format!("outbox: {e}"));
        let (mut head, mut messages, mut records) = (OutboxHead::default(), Vec::new(), Records::new());
        for (id, bytes) in items {
            if id == 0 {
                head = decode("outbox head", &bytes).map_err(|e| corrupt(&e))?;
                continue;
            }
            let Item { message, record } = decode("message", &bytes).map_err(|e| corrupt(&e))?;
            if let Some(record) = record {
                records.entry((message.run, message.generation)).or_insert((record, 0)).1 += 1;
            }
            messages.push(message);
        }
        Ok(Self { outbox: Outbox::from_items(shards, Bounds::default(), head, messages), records })
    }

    /// Applies the events of one decision, or of one frame: a message stands behind the end that sends it.
    pub fn apply(&mut self, events: &[Event]) {
        for event in events {
            let Event::Outbox { change } = event else { continue };
            let gone: Vec<Arc<Message>> = match change {
                OutboxEvent::Settled { ids } => ids.iter().filter_map(|id| self.outbox.get(*id).cloned()).collect(),
                OutboxEvent::Failed { id, .. } => self.outbox.get(*id).cloned().into_iter().collect(),
                OutboxEvent::Sent(message) => {
                    self.keep(message, events);
                    Vec::new()
                }
                OutboxEvent::Dropped { .. } | OutboxEvent::Restored { .. } => Vec::new(),
            };
            self.outbox.apply(change);
            for message in gone {
                self.release(&message);
            }
        }
    }

    fn keep(&mut self, message: &Message, events: &[Event]) {
        let key = (message.run, message.generation);
        let ended = events.iter().find_map(|event| match event {
            Event::RunEnded { record, .. } if (record.run, record.generation) == key => Some(record.clone()),
            _ => None,
        });
        match (self.records.get_mut(&key), ended) {
            (Some((_, messages)), _) => *messages += 1,
            (None, Some(record)) => {
                self.records.insert(key, (record, 1));
            }
            (None, None) => {}
        }
    }

    fn release(&mut self, message: &Message) {
        let key = (message.run, message.generation);
        if let Some((_, messages)) = self.records.get_mut(&key) {
            *messages -= 1;
            if *messages == 0 {
                self.records.remove(&key);
            }
        }
    }

    /// The store was restored from a backup.
    pub fn restored(&mut self, at_ms: i64) -> Event {
        let event = Event::Outbox { change: OutboxEvent::Restored { at_ms } };
        self.apply(std::slice::from_ref(&event));
        event
    }

    /// Those of all shards in another number of shards.
    pub fn reshard(all: Vec<Self>, shards: u16) -> Vec<Self> {
        let mut records = BTreeMap::new();
        let mut old = Vec::with_capacity(all.len());
        for owed in all {
            old.push((owed.outbox.head().clone(), owed.outbox.owed().map(|message| (**message).clone()).collect()));
            records.extend(owed.records);
        }
        let new = campanile_core::outbox::moving::migrate(old, shards).into_iter();
        new.map(|(_, head, messages)| {
            let mut kept = Records::new();
            for message in &messages {
                let key = (message.run, message.generation);
                if let Some((record, _)) = records.get(&key) {
                    kept.entry(key).or_insert((record.clone(), 0)).1 += 1;
                }
            }
            Self { outbox: Outbox::from_items(shards, Bounds::default(), head, messages), records: kept }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_core::outbox::{Sending, Wanted, body, sending::To};
    use campanile_schema::{
        ids::{JobId, make_id},
        record::Source,
        stored::outbox::MessageKind,
    };

    /// A run that has failed, and its hook, as a decision's events.
    fn failed(owed: &Owed, slot: u64) -> Vec<Event> {
        let run = RunId(make_id(owed.outbox.head().last.0 + 1, slot));
        let record = RunRecord {
            run,
            job: JobId(slot),
            tenant: "acme".into(),
            state: campanile_schema::record::RunState::Failed,
            source: Source::Manual,
            logical_ms: None,
            key: None,
            generation: 1,
            created_ms: 1,
            started_ms: None,
            ended_ms: Some(2),
            params: None,
            result: None,
            reason: None,
            dead_letter: true,
            attempts: Vec::new(),
            dag: None,
            depth: 0,
            marked: false,
        };
        let mut sending = Sending::new(&owed.outbox, 2);
        let wanted = Wanted {
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
        };
        sending.send(wanted).unwrap();
        let sent = sending.events.into_iter().map(|change| Event::Outbox { change });
        std::iter::once(Event::RunEnded { job: JobId(slot), record: Arc::new(record) }).chain(sent).collect()
    }

    fn bodies(owed: &Owed) -> Vec<(RunId, Vec<u8>)> {
        let body = |message: &Arc<Message>| (message.run, body::hook(message, owed.record(message).unwrap()));
        let mut bodies: Vec<_> = owed.outbox.owed().map(body).collect();
        bodies.sort();
        bodies
    }

    #[test]
    fn what_is_owed_survives_its_items_a_restore_and_another_number_of_shards() {
        let mut owed = Owed::new(2);
        assert!(owed.is_untouched() && owed.chunks().is_empty());
        for slot in [0, 2, 4, 6] {
            let events = failed(&owed, slot);
            owed.apply(&events);
        }
        let before = bodies(&owed);
        assert_eq!(before.len(), 4);
        let mut read = Owed::from_items(2, owed.items()).unwrap();
        assert_eq!(bodies(&read), before);
        drop(read.restored(9));
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
        assert_eq!(owed.records.len(), 1);
        let ids = owed.outbox.owed().map(|message| message.id).collect();
        owed.apply(&[Event::Outbox { change: OutboxEvent::Settled { ids } }]);
        assert!(owed.records.is_empty() && owed.outbox.is_empty());
        assert!(!owed.is_untouched(), "its numbers are not given again");
    }
}
