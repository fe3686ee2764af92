//! The format row: which versions of stored and sent forms a directory or a cluster uses. Writers use the versions that
//! it names. A reader that finds a higher version stops with an error that says so.

use crate::ids::ClusterId;
use serde::{Deserialize, Serialize};

/// Newest event and snapshot format this build reads and writes. 2: messages of the outbox, and what sends them (ADR 0028);
/// records of the audit trail (ADR 0031).
pub const EVENT_FORMAT: u32 = 2;
/// Newest RPC protocol version this build speaks.
pub const WIRE_FORMAT: u32 = 1;

/// Format of whatever does not name one.
pub const FIRST_FORMAT: u32 = 1;

/// Event format from which on messages of the outbox, and what sends them, may be stored.
pub const MESSAGES_FORMAT: u32 = 2;

/// Event format from which on records of the audit trail may be stored.
pub const AUDIT_FORMAT: u32 = 2;

/// The newest formats that a build reads and writes, or that may be written now: all before them are read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Formats {
    pub event: u32,
    pub wire: u32,
}

impl Formats {
    /// Of this build.
    pub const OURS: Self = Self { event: EVENT_FORMAT, wire: WIRE_FORMAT };

    /// The newest that both read.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        Self { event: self.event.min(other.event), wire: self.wire.min(other.wire) }
    }

    /// The newer one of each.
    #[must_use]
    pub fn newest(self, other: Self) -> Self {
        Self { event: self.event.max(other.event), wire: self.wire.max(other.wire) }
    }

    /// Refuses what a build with these formats cannot read.
    pub fn check(self, found: Self) -> Result<(), FormatError> {
        if found.event > self.event || found.wire > self.wire {
            return Err(FormatError { found, known: self });
        }
        Ok(())
    }
}

/// One per directory or cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatRow {
    pub event_format: u32,
    pub wire_format: u32,
    pub cluster_id: ClusterId,
    /// Power of two, fixed at creation.
    pub shards: u16,
    /// Milliseconds since 1970.
    pub created_ms: i64,
}

/// The directory or cluster was written by a newer release.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "written in event format {} / wire format {}; this release knows {} / {}. Start a release that is at least as new as the one that wrote it",
    found.event, found.wire, known.event, known.wire
)]
pub struct FormatError {
    pub found: Formats,
    pub known: Formats,
}

impl FormatRow {
    /// Those that may be written.
    pub fn formats(&self) -> Formats {
        Formats { event: self.event_format, wire: self.wire_format }
    }

    /// Refuses a newer format than this build's.
    pub fn check(&self) -> Result<(), FormatError> {
        Formats::OURS.check(self.formats())
    }
}
