//! The rows of the store by which ownership is decided. All of them are changed by LWT only,
//! `IF version = the one read`.

use super::rules::{Rule, kept};
use campanile_schema::ids::{Epoch, SessionId, ShardId};

/// Tells one write of a row from every other: which session wrote, and which of its writes it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce {
    pub session: SessionId,
    pub count: u64,
}

/// What a session may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionState {
    Active,
    /// Acts, and takes nothing new.
    Draining,
    /// Another node ended it: no heartbeat of it can succeed any more.
    Fenced,
    /// It ended by itself, owning nothing, with its sealed positions.
    Ended,
}

impl SessionState {
    /// Whether the session can never act again.
    pub fn is_over(self) -> bool {
        match self {
            Self::Active | Self::Draining => false,
            Self::Fenced | Self::Ended => true,
        }
    }
}

/// A node's timed right to own anything. In a partition of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionRow {
    /// Rises with each change.
    pub version: u64,
    /// Who wrote this version.
    pub nonce: Nonce,
    /// How long a heartbeat lets the session act, milliseconds of its own clock from when the heartbeat was sent.
    pub lease_ms: u64,
    /// How far rows of a lane may be written ahead of its first gap, rows.
    pub window: u64,
    pub state: SessionState,
    /// By lane: highest seq up to which every row was durable when this was sent.
    pub durable: Vec<u64>,
    /// By lane: the last seq that counts, once the session is over. Never changed.
    pub sealed: Option<Vec<u64>>,
}

/// A part of a lane that holds frames of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    pub session: SessionId,
    pub lane: u16,
    /// Seq of the first row.
    pub from: u64,
    /// Seq of the last row; None while the session owns the shard.
    pub to: Option<u64>,
}

/// Names a published snapshot of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotPointer {
    pub epoch: Epoch,
    pub number: u64,
    /// Highest frame seq of the shard that it holds.
    pub seq: u64,
}

/// Who owns a shard, and where its frames are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShardRow {
    /// Rises with each change.
    pub version: u64,
    /// Who wrote this version.
    pub nonce: Nonce,
    /// None: nobody has owned it yet.
    pub owner: Option<SessionId>,
    /// Rises with each claim.
    pub epoch: Epoch,
    /// Oldest first. All but the owner's last one are closed.
    pub spans: Vec<Span>,
    pub snapshot: Option<SnapshotPointer>,
}

impl ShardRow {
    /// Whether the owner is this session, and has claimed the shard. A release names an owner that has yet to claim, at the epoch
    /// of the one before: only the open span tells the two apart.
    pub fn is_claimed_by(&self, session: SessionId) -> bool {
        let open = self.spans.iter().any(|span| span.session == session && span.to.is_none());
        self.owner == Some(session) && (open || !kept(Rule::OpenSpanIsTheClaim))
    }

    /// Whether the row needs this session's row: as owner, or for its lanes.
    pub fn names(&self, session: SessionId) -> bool {
        self.owner == Some(session) || self.spans.iter().any(|span| span.session == session)
    }
}

/// The lane that takes a shard's frames, in a session with so many lanes.
pub fn lane_of(shard: ShardId, lanes: u16) -> u16 {
    shard.0 % lanes.max(1)
}
