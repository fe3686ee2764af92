//! The format row: which versions of stored and wire forms a directory or a cluster uses. Writers use what it names;
//! a reader that meets a higher one stops with a clear error.

use crate::ids::ClusterId;
use serde::{Deserialize, Serialize};

/// Newest event and snapshot format this build reads and writes.
pub const EVENT_FORMAT: u32 = 1;
/// Newest RPC protocol version this build speaks.
pub const WIRE_FORMAT: u32 = 1;

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
    "written in event format {found_event} / wire format {found_wire}; this release knows {EVENT_FORMAT} / {WIRE_FORMAT}. Start a release that is at least as new as the one that wrote it"
)]
pub struct FormatError {
    pub found_event: u32,
    pub found_wire: u32,
}

impl FormatRow {
    /// Refuses a newer format.
    pub fn check(&self) -> Result<(), FormatError> {
        if self.event_format > EVENT_FORMAT || self.wire_format > WIRE_FORMAT {
            return Err(FormatError { found_event: self.event_format, found_wire: self.wire_format });
        }
        Ok(())
    }
}
