//! Decides the answer to a message, from what the receiving shard knows. Pure: the shell makes the run, and answers
//! when that is durable.
//!
//! Nothing here depends on the receiver's own outbox, except for the ends that it will owe. Two full shards therefore
//! never wait for each other.

use super::{
    bounds::{self, Bounds, Usage},
    keys,
    memory::KeyState,
    rules::{Rule, kept},
};
use campanile_schema::{
    limits::{DELIVER_LATER_MS, DELIVER_STALE_MS, MESSAGE_DEPTH},
    peer::outbox::{Deliver, Parcel, Said},
    record::Source,
    stored::outbox::{MessageKind, Refusal},
    text::Text,
};

/// The job of the name that a message is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFacts {
    pub tenant: Text,
    pub created_ms: i64,
    pub not_idempotent: bool,
}

/// What the shard knows besides.
#[derive(Clone, Copy, Debug)]
pub struct ShardFacts<'a> {
    /// Children that are open, or whose end is not settled.
    pub children: usize,
    /// Of its own outbox: looked at by a defect only.
    pub usage: &'a Usage,
    pub bounds: &'a Bounds,
    /// The tenant or the job can take no more runs now.
    pub queue_full: bool,
}

/// What is to be done with one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take<R> {
    /// Make the run. `confirm`: it waits for a person. Answer when it is durable.
    Make {
        confirm: bool,
    },
    /// This run is there. Answer when it is durable. What START, END and CANCEL change of it is for the run's own rules, which go by
    /// generation.
    Found(R),
    /// Say so, when what it rests on is durable.
    Refuse(Refusal),
    Later(u32),
    /// The key must be looked up in the view first.
    LookUp,
}

impl<R> Take<R> {
    /// The answer, if it needs no run.
    pub fn said(&self) -> Option<Said> {
        match self {
            Self::Refuse(why) => Some(Said::Refused(*why)),
            Self::Later(ms) => Some(Said::Later(*ms)),
            Self::Make { .. } | Self::Found(_) | Self::LookUp => None,
        }
    }
}

/// Whether a `Deliver` is looked at at all; else all of it is answered with Later.
pub fn takes(deliver: &Deliver, waiting: usize, mailbox: usize, now_ms: i64) -> Result<(), u32> {
    let stale = now_ms - deliver.at_ms > DELIVER_STALE_MS && kept(Rule::StaleIsLater);
    let half_full = waiting * 2 >= mailbox && kept(Rule::HalfFullIsLater);
    if stale || half_full { Err(DELIVER_LATER_MS) } else { Ok(()) }
}

/// Judges a message that makes a run. `job`: the one of that name, if there is one; `known`: the run of the message's key in that job.
pub fn take<R: Copy>(
    parcel: &Parcel,
    job: Option<&JobFacts>,
    known: KeyState<(R, Source)>,
    shard: ShardFacts<'_>,
) -> Take<R> {
    let Some(kind) = MessageKind::from_code(parcel.kind) else {
        let unknown = Take::Later(campanile_schema::limits::DELIVER_AGAIN_MAX_MS as u32);
        return if kept(Rule::UnknownKindWaits) { unknown } else { Take::Refuse(Refusal::JobDeleted) };
    };
    let Some(job) = job else { return Take::Refuse(Refusal::JobDeleted) };
    if job.tenant != parcel.tenant && kept(Rule::TenantIsChecked) {
        return Take::Refuse(Refusal::OtherTenant);
    }
    if job.created_ms > parcel.decided_ms && kept(Rule::NewerJobIsAnother) {
        return Take::Refuse(Refusal::JobDeleted);
    }
    if parcel.depth > MESSAGE_DEPTH && kept(Rule::DepthIsChecked) {
        return Take::Refuse(Refusal::Depth);
    }
    match known {
        KeyState::Unknown => return Take::LookUp,
        KeyState::Found((run, source)) if kept(Rule::IdempotentByKey) => {
            let expected = keys::source(kind).is_none_or(|of_kind| of_kind == source);
            return if expected || !kept(Rule::SourceIsChecked) {
                Take::Found(run)
            } else {
                Take::Refuse(Refusal::KeyTaken)
            };
        }
        KeyState::Found(_) | KeyState::Absent => {}
    }
    let starts = kind == MessageKind::Start;
    if shard.queue_full || (starts && !bounds::takes_child(shard.children, shard.bounds)) {
        return Take::Later(DELIVER_LATER_MS);
    }
    if !kept(Rule::TakeWithoutRoom) && shard.usage.messages() >= shard.bounds.messages {
        return Take::Later(DELIVER_LATER_MS);
    }
    Take::Make { confirm: parcel.marked && job.not_idempotent && kept(Rule::MarkedAsks) }
}
