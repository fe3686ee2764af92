//! The judge: what was promised of the outbox, checked from what happened. It knows effects and not messages: an effect is what a
//! decision asked for, named by the path of runs that led to it, which is the same before and after a restore.

use campanile_schema::{
    limits::{DELIVER_FOR_MS, POISONED_AFTER, SEND_BY_HAND_MS},
    stored::outbox::{Failure, Message, MessageKind, Refusal},
};
use std::collections::{BTreeMap, BTreeSet};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    /// An effect happened twice.
    Double,
    /// An effect happened that nobody decided.
    Phantom,
    /// A message was settled, or forgotten, without its effect.
    Lost,
    /// Everybody lives and answers, and a message is still owed.
    Stuck,
    /// A message was sent after its time.
    TooLate,
    /// A limit was exceeded.
    Bounds,
    /// A message was given up without reason.
    WrongFailure,
    /// A run of another tenant was made.
    Foreign,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub kind: ViolationKind,
    pub what: String,
}

/// What was decided, made and ended, as far as it is durable.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Effects whose message is durable at its sender.
    sent: BTreeSet<String>,
    /// Effects that are durable at their receiver: how often.
    made: BTreeMap<String, u32>,
    /// Effects whose failure or lack of room is recorded.
    failed: BTreeSet<String>,
    /// Decisions that should have sent an effect.
    pub decided: BTreeSet<String>,
    /// Names of jobs that were deleted at some time.
    deleted: BTreeSet<(String, String)>,
}

#[derive(Debug, Default)]
pub struct Judge {
    pub now: Timeline,
    /// Of non-idempotent jobs, over all timelines.
    bodies: BTreeMap<String, u32>,
    pub found: Option<Violation>,
}

impl Judge {
    pub fn violated(&mut self, kind: ViolationKind, what: impl Into<String>) {
        if self.found.is_none() {
            self.found = Some(Violation { kind, what: what.into() });
        }
    }

    pub fn decided(&mut self, effect: &str) {
        self.now.decided.insert(effect.to_owned());
    }
    pub fn sent(&mut self, effect: &str) {
        self.now.sent.insert(effect.to_owned());
        // A message that is sent again by hand is owed again.
        self.now.failed.remove(effect);
    }
    pub fn dropped(&mut self, effect: &str) {
        self.now.failed.insert(effect.to_owned());
    }
    pub fn deleted(&mut self, tenant: &str, name: &str) {
        self.now.deleted.insert((tenant.to_owned(), name.to_owned()));
    }

    /// A run was made by a message, durably. For an END: its parent has taken note.
    pub fn made(&mut self, effect: &str, is_end: bool) {
        if !self.now.sent.contains(effect) {
            self.violated(ViolationKind::Phantom, format!("{effect} happened, and no decision of it is durable"));
        }
        let times = self.now.made.entry(effect.to_owned()).or_default();
        *times += 1;
        if *times > 1 && !is_end {
            self.violated(ViolationKind::Double, format!("{effect} was made twice"));
        }
    }

    /// A body of a job that is not idempotent has run.
    pub fn body(&mut self, effect: &str) {
        let times = self.bodies.entry(effect.to_owned()).or_default();
        *times += 1;
        if *times > 1 {
            self.violated(ViolationKind::Double, format!("the body of {effect} ran twice"));
        }
    }
    /// What a person knows who is asked whether the body ran.
    pub fn has_run(&self, effect: &str) -> bool {
        self.bodies.contains_key(effect)
    }

    /// The sender settles a message.
    pub fn settled(&mut self, effect: &str) {
        if !self.now.made.contains_key(effect) {
            self.violated(ViolationKind::Lost, format!("{effect} is settled, and its receiver has not made it"));
        }
    }

    /// A message goes out, the `tries`th time.
    pub fn goes(&mut self, effect: &str, message: &Message, restored_ms: Option<i64>, now_ms: i64) {
        let born_ms = restored_ms.map_or(message.at_ms, |at| at.max(message.at_ms));
        let by_hand = message.until_ms.is_some() && message.until_ms != Some(born_ms + DELIVER_FOR_MS);
        let most = if by_hand { SEND_BY_HAND_MS } else { DELIVER_FOR_MS };
        if now_ms >= born_ms + most {
            self.violated(
                ViolationKind::TooLate,
                format!("{effect} is sent {} h after its decision", (now_ms - born_ms) / 3_600_000),
            );
        }
    }

    /// The sender gives a message up.
    pub fn failed(&mut self, effect: &str, message: &Message, why: Failure, facts: FailureFacts) {
        self.now.failed.insert(effect.to_owned());
        let born_ms = facts.restored_ms.map_or(message.at_ms, |at| at.max(message.at_ms));
        let right = match why {
            Failure::Undelivered => facts.now_ms >= message.until_ms.unwrap_or(born_ms + DELIVER_FOR_MS),
            Failure::Refused(Refusal::JobDeleted) => {
                let name = message.job.as_deref().unwrap_or_default().to_owned();
                self.now.deleted.contains(&(message.tenant.to_string(), name))
            }
            Failure::Refused(Refusal::Poisoned) => facts.is_poison && facts.tries >= POISONED_AFTER,
            Failure::Refused(Refusal::Depth) => message.depth > campanile_schema::limits::MESSAGE_DEPTH,
            Failure::Refused(Refusal::OtherTenant | Refusal::Recursion | Refusal::KeyTaken) => false,
        };
        if !right {
            self.violated(ViolationKind::WrongFailure, format!("{effect} is given up: {why:?}, {facts:?}"));
        }
    }

    /// Nothing is to be expected any more: what was decided has happened, or it is recorded why not.
    pub fn at_the_end(&mut self, owed: &[String]) {
        if let Some(effect) = owed.first() {
            return self.violated(ViolationKind::Stuck, format!("{effect} is still owed"));
        }
        let lost = |effect: &&String| !self.now.made.contains_key(*effect) && !self.now.failed.contains(*effect);
        if let Some(effect) = self.now.decided.iter().find(lost).cloned() {
            self.violated(ViolationKind::Lost, format!("{effect} was decided and neither happened nor failed"));
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct FailureFacts {
    pub now_ms: i64,
    pub restored_ms: Option<i64>,
    pub tries: u32,
    pub is_poison: bool,
}

/// The name of a message's effect, given the path of its sending run.
pub fn effect(path: &str, message: &Message) -> String {
    match message.kind {
        MessageKind::Start | MessageKind::Cancel => format!("{path}/n{}", message.index),
        MessageKind::End => format!("{path}/end{}", message.generation),
        MessageKind::Hook => format!("{path}/h{}.{}", message.generation, message.index),
        MessageKind::Compensation => format!("{path}/c{}", message.index),
        MessageKind::Deadline => panic!("no job has a deadline"),
    }
}
