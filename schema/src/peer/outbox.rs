//! How messages travel from shard to shard: one `Deliver` at a time for each pair of shards, answered message by message.

use crate::{
    ids::{RunId, ShardId},
    payload::Payload,
    record::{RunState, code},
    stored::{
        Sealed,
        deadline::StoredDeadline,
        outbox::{MessageId, Refusal},
    },
    text::Text,
    trace::{self, TraceContext},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Messages of one shard to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deliver {
    #[serde(rename = "f")]
    pub from: ShardId,
    #[serde(rename = "t")]
    pub to: ShardId,
    /// When it left, by the sender's guarded clock, ms: one that waited for long on its way is not taken.
    #[serde(rename = "a")]
    pub at_ms: i64,
    #[serde(rename = "p")]
    pub parcels: Vec<Parcel>,
}

/// One message on its way. What the receiver checks before it looks into the body stands outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parcel {
    #[serde(rename = "i")]
    pub id: MessageId,
    /// Code of a `MessageKind`. A number, because a receiver of an earlier release answers a kind that it does not know with Later.
    #[serde(rename = "k")]
    pub kind: u8,
    #[serde(rename = "n")]
    pub tenant: Text,
    /// Name of the receiving job; None: the body names a run.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Text>,
    /// The key that makes the message's effect happen once.
    #[serde(rename = "y")]
    pub key: String,
    /// When it was decided. A job that was created later is another one.
    #[serde(rename = "d")]
    pub decided_ms: i64,
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// Messages that led to this one.
    #[serde(rename = "h", default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// MessagePack; its form depends on the kind.
    #[serde(rename = "b", with = "serde_bytes")]
    pub body: Vec<u8>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Body of a hook: what the run that it makes is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookBody {
    /// The run that ended, and its generation.
    #[serde(rename = "r")]
    pub run: RunId,
    #[serde(rename = "g")]
    pub generation: u32,
    /// Params of the new run.
    #[serde(rename = "p")]
    pub params: Payload,
    /// Shown as the new run's reason.
    #[serde(rename = "y")]
    pub reason: String,
    /// The span of the run that ended.
    #[serde(
        rename = "q",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "trace::kept::deserialize"
    )]
    pub trace: Option<TraceContext>,
    /// Runs of hooks to which the new run may lead. None: an earlier release sent it.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
    /// Secret params of the new run alone.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Arc<Sealed>>,
}

/// Body of START and CANCEL: what the run of a DAG's node is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeBody {
    /// The DAG run, and the place of the node.
    #[serde(rename = "d")]
    pub dag: RunId,
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub node: u32,
    /// Of the node's run.
    #[serde(rename = "g")]
    pub generation: u32,
    /// Laid over those of the job. Empty in a CANCEL.
    #[serde(rename = "p", default, skip_serializing_if = "Payload::is_empty")]
    pub params: Payload,
    /// Seconds per attempt, instead of those of the job.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
    /// Instant that the DAG run stands for, ms.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub logical_ms: Option<i64>,
    /// The span of the DAG run.
    #[serde(
        rename = "q",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "trace::kept::deserialize"
    )]
    pub trace: Option<TraceContext>,
    /// The DAG run is in the lane of backfills, and so is the run of the node.
    #[serde(rename = "b", default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
    /// Runs of hooks to which the run of the node may lead. None: no hook has led to the DAG run.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
    /// Until when the run of the node has to end, instead of what its job says.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<StoredDeadline>,
    /// A schedule made the DAG run: deadlines that count from its instant apply.
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
}

/// Body of END: how the run of a DAG's node has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndBody {
    /// The DAG run, and the place of the node.
    #[serde(rename = "d")]
    pub dag: RunId,
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub node: u32,
    /// The node's run.
    #[serde(rename = "r")]
    pub run: RunId,
    #[serde(rename = "g")]
    pub generation: u32,
    #[serde(rename = "s", with = "code")]
    pub state: RunState,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Payload>,
}

/// What a receiver says to one message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Said {
    /// It is durable at the receiver, now or since an earlier delivery. `run`: what it made or found.
    #[serde(rename = "s")]
    Settled {
        #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
        run: Option<RunFacts>,
    },
    /// Never. Durable, as far as it rests on a change.
    #[serde(rename = "r")]
    Refused(#[serde(with = "code")] Refusal),
    /// Not now: send it again after so many ms.
    #[serde(rename = "l")]
    Later(u32),
    /// It could not be decoded, or made the receiver panic.
    #[serde(rename = "b")]
    Broken,
    /// To START and CANCEL: [`Self::Settled`], and the run has ended, as its END says or said.
    #[serde(rename = "e")]
    Ended(Box<EndBody>),
}

/// The run that a message made or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFacts {
    #[serde(rename = "r")]
    pub run: RunId,
    #[serde(rename = "g")]
    pub generation: u32,
    #[serde(rename = "s", with = "code")]
    pub state: RunState,
}

/// Answer to a `Deliver`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Delivered {
    /// One for each message that was looked at; what is missing is sent again.
    #[serde(rename = "e")]
    Each(Vec<(MessageId, Said)>),
    /// The shard has too much to do: none was looked at.
    #[serde(rename = "l")]
    Later(u32),
}
