//! What a shard owes: changed by events only, written into snapshots, and all that a restart needs.

use super::{
    bounds::{Bounds, Usage},
    moving,
    rules::{Rule, kept},
};
use campanile_schema::{
    limits::DELIVER_FOR_MS,
    stored::outbox::{Message, MessageId, OutboxEvent, OutboxHead},
};
use std::{collections::BTreeMap, sync::Arc};

/// The unsettled messages of a shard.
#[derive(Clone, Debug)]
pub struct Outbox {
    shards: u16,
    bounds: Bounds,
    head: OutboxHead,
    messages: BTreeMap<MessageId, Arc<Message>>,
    usage: Usage,
}

impl Outbox {
    /// Of a store with so many shards.
    pub fn new(shards: u16, bounds: Bounds) -> Self {
        Self { shards, bounds, head: OutboxHead::default(), messages: BTreeMap::new(), usage: Usage::default() }
    }

    /// From the items of a snapshot.
    pub fn from_items(
        shards: u16,
        bounds: Bounds,
        head: OutboxHead,
        messages: impl IntoIterator<Item = Message>,
    ) -> Self {
        let mut outbox = Self { head, ..Self::new(shards, bounds) };
        messages.into_iter().for_each(|message| outbox.insert(message));
        outbox
    }

    pub fn shards(&self) -> u16 {
        self.shards
    }
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }
    pub fn head(&self) -> &OutboxHead {
        &self.head
    }
    pub fn usage(&self) -> &Usage {
        &self.usage
    }
    pub fn get(&self, id: MessageId) -> Option<&Arc<Message>> {
        self.messages.get(&id)
    }
    /// All that is owed, in the order in which it was decided.
    pub fn owed(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.messages.values()
    }
    pub fn len(&self) -> usize {
        self.messages.len()
    }
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn insert(&mut self, message: Message) {
        self.head.last = self.head.last.max(message.id);
        self.usage.add(&message, self.shards);
        if let Some(older) = self.messages.insert(message.id, Arc::new(message)) {
            self.usage.remove(&older, self.shards);
        }
    }
    fn remove(&mut self, id: MessageId) {
        if let Some(message) = self.messages.remove(&id) {
            self.usage.remove(&message, self.shards);
        }
    }

    /// Applies an event. Total: every event in every state gives a state.
    pub fn apply(&mut self, event: &OutboxEvent) {
        match event {
            OutboxEvent::Sent(message) => self.insert(message.clone()),
            OutboxEvent::Dropped { message, .. } => self.head.last = self.head.last.max(message.id),
            OutboxEvent::Settled { ids } => ids.iter().for_each(|id| self.remove(*id)),
            OutboxEvent::Failed { id, .. } => self.remove(*id),
            // They were taken out when they were given up.
            OutboxEvent::Cleared { .. } => {}
            OutboxEvent::Restored { at_ms } => {
                self.head.restored_ms = Some(*at_ms);
                for message in self.messages.values_mut() {
                    moving::mark(Arc::make_mut(message), *at_ms);
                }
            }
        }
    }
}

/// Until when a message is sent.
pub fn send_until(message: &Message) -> i64 {
    if !kept(Rule::DayLimit) {
        return i64::MAX;
    }
    message.until_ms.unwrap_or_else(|| message.at_ms.saturating_add(DELIVER_FOR_MS))
}
