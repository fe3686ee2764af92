//! Messages of the outbox as the journal and the snapshots hold them. They belong to event format 2: nothing of this is
//! written before the format row says so (ADR 0028).

use crate::{
    ids::RunId,
    job::upper_enum,
    payload::Payload,
    record::{
        RunRecord,
        code::{self, Code},
    },
    stored::deadline::MissedDeadline,
    text::Text,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;

/// A message's number in the shard that sends it. It rises; a number is never given to another message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub u64);

upper_enum!(/// What a message asks of its receiver.
    MessageKind {
        /// Make the run of a DAG's node, or open it again under a higher generation.
        Start = "START" = 0,
        /// A node's run has ended.
        End = "END" = 1,
        /// End a node's run, or make it as ended if it is not there.
        Cancel = "CANCEL" = 2,
        /// Make a run because another one has ended.
        Hook = "HOOK" = 3,
        /// A hook that undoes what the run did: once for the run, however often it fails.
        Compensation = "COMPENSATION" = 4,
        /// Make a run because another one has missed its deadline, or never began.
        Deadline = "DEADLINE" = 5,
    } default Hook);

upper_enum!(/// Why a receiver will never do what a message asks. The answer is final.
    Refusal {
        /// The job was deleted, or the one of that name was created after the message was decided.
        JobDeleted = "JOB_DELETED" = 0,
        OtherTenant = "OTHER_TENANT" = 1,
        /// The receiving job is among those that led to the message.
        Recursion = "RECURSION" = 2,
        /// The chain of messages that led to this one is too long.
        Depth = "DEPTH" = 3,
        /// The receiver could not decode it, or panicked over it, too often.
        Poisoned = "POISONED" = 4,
        /// A run that the message did not make has its key.
        KeyTaken = "KEY_TAKEN" = 5,
    } default JobDeleted);

impl Code for MessageKind {
    fn code(self) -> u8 {
        Self::code(self)
    }
    fn from_code(code: u8) -> Option<Self> {
        Self::from_code(code)
    }
}
impl Code for Refusal {
    fn code(self) -> u8 {
        Self::code(self)
    }
    fn from_code(code: u8) -> Option<Self> {
        Self::from_code(code)
    }
}

/// A message that was decided. It names runs; what its receiver needs of the sending run is taken from that run's state when it is
/// sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    #[serde(rename = "i")]
    pub id: MessageId,
    /// Slot of the sending run's job, and of the receiving job. Slots, so that a store may be moved to another number of shards.
    #[serde(rename = "f")]
    pub from: u16,
    #[serde(rename = "t")]
    pub to: u16,
    #[serde(rename = "k", with = "code")]
    pub kind: MessageKind,
    #[serde(rename = "n")]
    pub tenant: Text,
    /// START, CANCEL: the DAG run; END: the node's run; hooks: the run that ended or is late.
    #[serde(rename = "r")]
    pub run: RunId,
    #[serde(rename = "g", default = "one", skip_serializing_if = "is_one")]
    pub generation: u32,
    /// START, END, CANCEL: the node; hooks: which of the job's hooks.
    #[serde(rename = "x", default, skip_serializing_if = "is_zero")]
    pub index: u32,
    /// END: the DAG run, which receives it.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// Name of the receiving job; None for END, whose receiver is a run.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Text>,
    /// What the definition said of the receiving job's params when the message was decided: the definition may change.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Payload>,
    /// Messages that led to this one.
    #[serde(rename = "d", default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// Bytes that its body takes at most: what it holds of the outbox's room.
    #[serde(rename = "b")]
    pub bytes: u32,
    /// When it was decided.
    #[serde(rename = "a")]
    pub at_ms: i64,
    /// A restore lies between the events that led to it and now: the receiver may have acted on it before.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// It is sent until then instead of for a day: it was restored from a backup, or sent again by hand.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
    /// Hooks: runs of hooks to which the run that it makes may lead.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
    /// DEADLINE: what was missed. `run` is the job's id when the instant made no run.
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Box<MissedDeadline>>,
}

fn one() -> u32 {
    1
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_one(n: &u32) -> bool {
    *n == 1
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Why a message is not sent any more although it was not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    #[serde(rename = "r")]
    Refused(#[serde(with = "code")] Refusal),
    /// No answer for a day. The receiver may have acted on it all the same.
    #[serde(rename = "u")]
    Undelivered,
}

/// What a dropped hook lacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DropReason {
    #[serde(rename = "f")]
    OutboxFull,
    /// The runs of hooks that the end of the first run may lead to are used up.
    #[serde(rename = "b")]
    Budget,
}

impl DropReason {
    /// How people read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OutboxFull => "OUTBOX_FULL",
            Self::Budget => "HOOK_BUDGET",
        }
    }
}

/// A change of a shard's outbox. Part of the frame of the decision that causes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum OutboxEvent {
    #[serde(rename = "s")]
    Sent(Message),
    /// A hook found no room. It is recorded and counted, and nothing is sent.
    #[serde(rename = "d")]
    Dropped {
        #[serde(rename = "m")]
        message: Message,
        #[serde(rename = "y")]
        why: DropReason,
    },
    /// The receivers have made these durable.
    #[serde(rename = "t")]
    Settled {
        #[serde(rename = "i")]
        ids: Vec<MessageId>,
    },
    #[serde(rename = "x")]
    Failed {
        #[serde(rename = "i")]
        id: MessageId,
        #[serde(rename = "y")]
        why: Failure,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// The shard comes from a backup: what it owes is marked, and its day begins anew.
    #[serde(rename = "r")]
    Restored {
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// Messages that were given up are not shown any more: a person has put them away, or they are sent again under new numbers.
    #[serde(rename = "c")]
    Cleared {
        #[serde(rename = "i")]
        ids: Vec<MessageId>,
    },
}

/// Why a message was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GiveUp {
    #[serde(rename = "f")]
    Failed(Failure),
    #[serde(rename = "d")]
    Dropped(DropReason),
}

/// A message as a snapshot holds it: one that is owed, or one that was given up and is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutboxItem {
    #[serde(rename = "m")]
    pub message: Message,
    /// The run that sends it, as it ended.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Arc<RunRecord>>,
    /// Why it was given up, and when.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<(GiveUp, i64)>,
    /// The run as it ended last, if it was started again or changed since. None: `record` is that.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Arc<RunRecord>>,
    /// `record` has only what the message tells, because a person has sent the message again.
    #[serde(rename = "e", default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// What a shard knows of its outbox besides the messages: the first of its items in a snapshot. Each message is an item of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxHead {
    /// The newest number that was given to a message.
    #[serde(rename = "l", default)]
    pub last: MessageId,
    /// When the shard was last restored from a backup. Runs that are older may have sent what they send now.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub restored_ms: Option<i64>,
}
