//! Deciding messages. Their events belong to the frame of the decision that causes them, so either both are durable or neither is.

use super::{
    bounds::{self, Full, Usage, is_hook},
    moving,
    rules::{Rule, kept},
    state::Outbox,
};
use crate::hooks;
use campanile_schema::{
    ids::{RunId, slot_of},
    payload::Payload,
    stored::{
        deadline::MissedDeadline,
        outbox::{DropReason, Message, MessageId, MessageKind, OutboxEvent},
    },
    text::Text,
};

/// A message that a decision wants to send.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageDraft {
    pub kind: MessageKind,
    pub tenant: Text,
    /// The sending run, and when it was created.
    pub run: RunId,
    pub run_created_ms: i64,
    /// The sending run was made by a marked message.
    pub run_marked: bool,
    pub generation: u32,
    pub index: u32,
    pub to: To,
    pub params: Option<Payload>,
    /// Of the sending run.
    pub depth: u32,
    /// Bytes of the body that will be built for it.
    pub body_bytes: usize,
    /// Hooks: runs of hooks to which its run may lead.
    pub budget: Option<u32>,
    /// It is not sent, and that is recorded.
    pub dropped: Option<DropReason>,
    /// DEADLINE: what was missed.
    pub deadline: Option<Box<MissedDeadline>>,
}

/// Who receives it.
#[derive(Clone, Debug, PartialEq)]
pub enum To {
    /// The tenant's job of this name.
    Job(Text),
    /// The run that started this one.
    Parent(RunId),
}

/// Messages of one decision.
pub struct Sending<'a> {
    outbox: &'a Outbox,
    now_ms: i64,
    used: Usage,
    pub events: Vec<OutboxEvent>,
}

impl<'a> Sending<'a> {
    pub fn new(outbox: &'a Outbox, now_ms: i64) -> Self {
        Self { outbox, now_ms, used: Usage::default(), events: Vec::new() }
    }

    /// Sends a message. A hook without room is dropped, and that is an event as well; for any other kind the caller waits and comes
    /// back.
    pub fn send(&mut self, wanted: MessageDraft) -> Result<(), Full> {
        let dropped = wanted.dropped;
        let message = self.message(wanted);
        if let Some(why) = dropped {
            if hooks::rules::kept(hooks::Rule::RefusalIsRecorded) {
                self.events.push(OutboxEvent::Dropped { message, why });
            }
            return Ok(());
        }
        match self.put(message.clone()) {
            Err(_) if is_hook(message.kind) => {
                if kept(Rule::DropIsRecorded) {
                    self.events.push(OutboxEvent::Dropped { message, why: DropReason::OutboxFull });
                }
                Ok(())
            }
            put => put,
        }
    }

    /// Sends an undelivered message that [`moving::by_hand`] allows again. Without room the person is told so. The room of an END went
    /// when it was given up: it needs that of a child once more, of which the shard has so many.
    pub fn send_again(&mut self, message: Message, children: usize) -> Result<(), Full> {
        if message.kind == MessageKind::End && !bounds::takes_child(children, self.outbox.bounds()) {
            return Err(Full::Ends);
        }
        self.put(Message { id: self.next_id(), ..message })
    }

    fn put(&mut self, message: Message) -> Result<(), Full> {
        let (shards, bounds) = (self.outbox.shards(), self.outbox.bounds());
        self.outbox.usage().admits(&self.used, &message, shards, bounds)?;
        self.used.add(&message, shards);
        self.events.push(OutboxEvent::Sent(message));
        Ok(())
    }

    /// Above that of the messages of this decision.
    fn next_id(&self) -> MessageId {
        MessageId(self.outbox.head().last.0 + 1 + self.events.len() as u64)
    }

    fn message(&self, wanted: MessageDraft) -> Message {
        let MessageDraft {
            kind,
            tenant,
            run,
            run_created_ms,
            run_marked,
            generation,
            index,
            to,
            params,
            depth,
            body_bytes,
            budget,
            dropped: _,
            deadline,
        } = wanted;
        let (to, parent, job) = match to {
            To::Job(name) => (slot_of(&tenant, &name), None, Some(name)),
            To::Parent(parent) => (parent.slot(), Some(parent), None),
        };
        let params_bytes = params.as_ref().map_or(0, Payload::len);
        Message {
            id: self.next_id(),
            from: run.slot() as u16,
            to: to as u16,
            kind,
            marked: moving::marks(run_created_ms, run_marked, self.outbox.head().restored_ms),
            tenant,
            run,
            generation,
            index,
            parent,
            job,
            params,
            depth: depth + 1,
            bytes: u32::try_from(body_bytes + params_bytes).unwrap_or(u32::MAX),
            at_ms: self.now_ms,
            until_ms: None,
            budget,
            deadline,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of run 4097 in its second generation.
    pub fn message(kind: MessageKind) -> Message {
        Message {
            id: MessageId(1),
            from: 1,
            to: 2,
            kind,
            tenant: "acme".into(),
            run: RunId(4_097),
            generation: 2,
            index: 7,
            parent: None,
            job: Some("refund".into()),
            params: None,
            depth: 1,
            bytes: 100,
            at_ms: 1_000,
            until_ms: None,
            budget: None,
            deadline: None,
            marked: false,
        }
    }
}
