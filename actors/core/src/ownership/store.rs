//! The statements that the protocol sends to the store, and their answers. The shell executes a statement once and
//! gives its answer back; it never repeats a statement on its own.

use super::rows::{SessionRow, ShardRow};
use campanile_schema::ids::{SessionId, ShardId};
use std::sync::Arc;

/// Ties an answer to its statement. Rises with each statement of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The bytes of one row of a lane: frames, one after the other.
pub type Batch = Arc<[u8]>;

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// LWT: writes the row if the one that stands has this version; None: if there is none.
    PutSession { session: SessionId, expected: Option<u64>, row: SessionRow },
    /// LWT: removes the row if it has this version.
    DropSession { session: SessionId, expected: u64 },
    /// LWT: writes the row if the one that stands has this version.
    PutShard { shard: ShardId, expected: u64, row: ShardRow },
    /// At SERIAL.
    ReadSession { session: SessionId },
    /// At SERIAL.
    ReadShard { shard: ShardId },
    /// Every shard's row, each at SERIAL.
    ReadShards,
    /// At QUORUM: a row of the own journal.
    Append { lane: u16, seq: u64, batch: Batch },
    /// At QUORUM: rows of another session's lane, with the bytes that were read. Answered when all are written.
    Rewrite { session: SessionId, lane: u16, rows: Vec<(u64, Batch)> },
    /// At QUORUM: rows of a lane behind `after`, in order, up to the first one that is not found.
    ReadLane { session: SessionId, lane: u16, after: u64 },
    /// Rows of a lane up to and including `upto`.
    DeleteRows { session: SessionId, lane: u16, upto: u64 },
}

/// What came of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAnswer {
    /// The LWT was applied, or the rows are written or deleted.
    Done,
    /// The row that stands: what was read, or why an LWT was not applied.
    Session(Option<SessionRow>),
    /// The row that stands: what was read, or why an LWT was not applied.
    Shard(ShardRow),
    Shards(Vec<(ShardId, ShardRow)>),
    Lane(Vec<(u64, Batch)>),
    /// A timeout or an error: it may have happened, may happen later, or never.
    Unknown,
}
