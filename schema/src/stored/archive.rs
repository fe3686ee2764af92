//! What an archive holds, record by record. Encoded as MessagePack with named fields; each variant has a number of its own, which
//! stands in its block.

use crate::{
    format::FormatRow,
    frame::{decode, encode},
    ids::{RunId, ShardId},
    stored::{
        journal::Position,
        rows::Row,
        snapshot::{Manifest, SnapshotPart},
    },
};
use serde::{Deserialize, Serialize};

/// Version of the form.
pub const ARCHIVE_FORMAT: u16 = 1;

/// The first record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`ARCHIVE_FORMAT`].
    pub archive_format: u16,
    /// Release that wrote it.
    pub release: String,
    /// Of the store that was backed up.
    pub store: FormatRow,
    /// When the cut was made, ms since 1970.
    pub at_ms: i64,
    /// The last position of the journal that is in it: the cut.
    pub cut: Position,
    /// Up to here the rows are in the archive; the frames after it bring the others.
    pub rows_upto: Position,
}

/// Version of the form of days of history.
pub const DAY_FORMAT: u16 = 1;

/// The first record of days of history (`days`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayHead {
    /// [`DAY_FORMAT`].
    pub day_format: u16,
    /// Release that wrote it.
    pub release: String,
    /// Of the store whose history it is.
    pub store: FormatRow,
    /// What ended from here on is in it, ms since 1970: the beginning of its day.
    pub from_ms: i64,
    /// Up to here, without it.
    pub to_ms: i64,
    /// When it was written, ms since 1970.
    pub at_ms: i64,
}

/// The last record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub snapshots: u64,
    pub batches: u64,
    pub rows: u64,
    pub logs: u64,
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Head(Head),
    /// A shard's snapshot; its chunks follow, part after part.
    Snapshot(SnapshotOf),
    Chunk(ChunkOf),
    Rows(Vec<Row>),
    Log(LogOf),
    Batch(BatchOf),
    Day(DayHead),
    /// Of runs of the rows before.
    Logs(Vec<LogOf>),
    /// Runs of a day that were started again, with their generation.
    Again(Vec<(RunId, u32)>),
    /// Whoever wrote could not go on.
    Broken(String),
    End(EndOf),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotOf {
    pub shard: ShardId,
    pub manifest: Manifest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkOf {
    pub shard: ShardId,
    pub part: SnapshotPart,
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogOf {
    pub run: RunId,
    pub attempt: u32,
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchOf {
    pub position: Position,
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOf {
    pub totals: Totals,
    /// SHA-256 of all bytes before this block.
    #[serde(with = "serde_bytes")]
    pub sha256: Vec<u8>,
}

impl Record {
    pub const ROWS: u8 = 4;
    pub const LOGS: u8 = 8;
    pub const AGAIN: u8 = 9;
    pub const END: u8 = 255;

    /// The number in its block.
    pub fn kind(&self) -> u8 {
        match self {
            Self::Head(_) => 1,
            Self::Snapshot(_) => 2,
            Self::Chunk(_) => 3,
            Self::Rows(_) => Self::ROWS,
            Self::Log(_) => 5,
            Self::Batch(_) => 6,
            Self::Day(_) => 7,
            Self::Logs(_) => Self::LOGS,
            Self::Again(_) => Self::AGAIN,
            Self::Broken(_) => 254,
            Self::End(_) => Self::END,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Head(head) => encode(head),
            Self::Snapshot(snapshot) => encode(snapshot),
            Self::Chunk(chunk) => encode(chunk),
            Self::Rows(rows) => encode(rows),
            Self::Log(log) => encode(log),
            Self::Batch(batch) => encode(batch),
            Self::Day(head) => encode(head),
            Self::Logs(logs) => encode(logs),
            Self::Again(again) => encode(again),
            Self::Broken(why) => encode(why),
            Self::End(end) => encode(end),
        }
    }

    /// Error: why it cannot be read.
    pub fn read(kind: u8, bytes: &[u8]) -> Result<Self, String> {
        let read = match kind {
            1 => decode("head", bytes).map(Self::Head),
            2 => decode("snapshot", bytes).map(Self::Snapshot),
            3 => decode("chunk of a snapshot", bytes).map(Self::Chunk),
            Self::ROWS => decode("rows", bytes).map(Self::Rows),
            5 => decode("log", bytes).map(Self::Log),
            6 => decode("batch of the journal", bytes).map(Self::Batch),
            7 => decode("head of a day", bytes).map(Self::Day),
            Self::LOGS => decode("logs", bytes).map(Self::Logs),
            Self::AGAIN => decode("runs that were started again", bytes).map(Self::Again),
            254 => decode("reason", bytes).map(Self::Broken),
            Self::END => decode("end", bytes).map(Self::End),
            other => return Err(format!("a block of the unknown kind {other}: written by a newer release?")),
        };
        read.map_err(|e| e.to_string())
    }
}
