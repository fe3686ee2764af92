//! Snapshots of shards: what is in their chunks, and the manifest that makes them readable.

use crate::{ids::Epoch, stored::journal::Position};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Which part of a shard's snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SnapshotPart {
    /// Hot state of all jobs, tenants, pauses: rewritten by every snapshot.
    Hot,
    /// Definitions that changed since the snapshot before (or all of them).
    Definitions,
    /// Messages that are not settled: rewritten by every snapshot, if there ever was one. Format 2.
    Outbox,
    /// Open runs of DAGs: rewritten by every snapshot, if there are any. Format 2.
    Graphs,
}

/// Names one written part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRef {
    pub number: u64,
    pub part: SnapshotPart,
    pub chunks: u32,
    pub bytes: u64,
    /// crc32c over all chunks in order.
    pub crc: u32,
}

/// What makes a snapshot readable. Its number is above those of all before it, of other owners too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub number: u64,
    pub epoch: Epoch,
    /// Highest frame seq of the shard that it covers.
    pub shard_seq: u64,
    /// A journal position before which no frame of this shard above `shard_seq` stands: replay may start after it.
    pub replay_after: Position,
    pub last_hlc: u64,
    /// Parts in the order in which they are read; later definitions win.
    pub parts: Vec<PartRef>,
}

/// One item of a chunk.
#[derive(Serialize, Deserialize)]
pub struct Item<'a>(pub u64, #[serde(borrow, with = "serde_bytes")] pub Cow<'a, [u8]>);
