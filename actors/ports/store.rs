//! The ports of stores: what the actors need of a store. They are narrow traits. The embedded, CQL and memory stores
//! implement them, and one conformance suite checks that they mean the same.
//!
//! A node on its own directory needs [`Journal`], [`Snapshots`] and [`LocalViews`]; a cluster shares [`Leases`],
//! [`Snapshots`] and [`Views`].
//!
//! What they never do: interpret frames, decide anything, or retry on their own.

use crate::{AuditPage, AuditQuery, EndedQuery};
use campanile_core::ownership::store::{Statement, StoreAnswer};
pub use campanile_schema::stored::{
    journal::Position,
    rows::{DefinitionRow, LedgerRow, Row},
    snapshot::{Manifest, PartRef, SnapshotPart},
};
use campanile_schema::{
    format::{FormatRow, Formats},
    ids::{JobId, RunId, SessionId, ShardId},
    record::RunRecord,
};
use std::{future::Future, pin::Pin};

/// A boxed future of a port call.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store call did not succeed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Nothing changed; the same call may be made again.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// It may or may not have happened: read before going on.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// No space or I/O error on write: the session must end and be reopened at its last durable position.
    #[error("store write failed: {0}")]
    WriteFailed(String),
    /// Stored bytes are damaged. Says the file and the offset, and what to do.
    #[error("corrupt store: {0}")]
    Corrupt(String),
    /// Used by somebody else, of a newer format, or of another cluster.
    #[error("store refused: {0}")]
    Refused(String),
}

/// What opening a store gives: proof that this process alone may write under this session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub format: FormatRow,
    /// Embedded: number of this start, made durable before it is returned. The epoch of every shard of this start.
    pub session: SessionId,
}

/// Append-only batches of frames, in lanes of a session.
pub trait Journal: Send + Sync + 'static {
    /// Appends `batch` (frames one after the other) as row `seq` of `lane` of the current session; resolves when durable.
    /// `seq` is contiguous from 1. After `WriteFailed` nothing more may be appended under this session.
    fn append<'a>(&'a self, lane: u16, seq: u64, batch: &'a [u8]) -> PortFuture<'a, ()>;
    /// Batches after `after` in order of session and seq, of all sessions and lanes still stored; at most about `max_bytes`
    /// (at least one batch when there is one). The current session's are not included while it is appending.
    fn read_after(&self, after: Position, max_bytes: usize) -> PortFuture<'_, Vec<(Position, Vec<u8>)>>;
    /// Nothing at or before `upto` is needed any more (snapshots *and* flushed views cover it). Frees whole segments.
    fn trim(&self, upto: Position) -> PortFuture<'_, ()>;
    /// Bytes the journal uses now.
    fn stored_bytes(&self) -> u64;
}

/// What a cluster shares: the rows of ownership, changed by LWT only, and the lanes of all sessions.
pub trait Leases: Send + Sync + 'static {
    /// Executes one statement of a session once. Whatever is not certain is [`StoreAnswer::Unknown`].
    fn execute(&self, own: SessionId, statement: Statement) -> Pin<Box<dyn Future<Output = StoreAnswer> + Send + '_>>;
    /// A number that no session has had, above all that were given before.
    fn next_session(&self) -> PortFuture<'_, SessionId>;
    /// Formats that may be written.
    fn formats(&self) -> PortFuture<'_, Formats>;
    /// Raises them, never lowers one: those that stand afterwards, which may be newer still.
    fn raise_formats(&self, to: Formats) -> PortFuture<'_, Formats>;
    /// Rows of a lane behind `after` up to and including `upto`, in order, up to the first one that is not there; at most about
    /// `max_bytes` (at least one row when there is one).
    fn read_lane(
        &self,
        session: SessionId,
        lane: u16,
        after: u64,
        upto: u64,
        max_bytes: usize,
    ) -> PortFuture<'_, Vec<(u64, Vec<u8>)>>;
}

/// Snapshots of shards.
pub trait Snapshots: Send + Sync + 'static {
    /// Writes and syncs one part. Chunks are at most `limits::SNAPSHOT_CHUNK_BYTES` unless one item alone is larger.
    fn write_part(
        &self,
        shard: ShardId,
        number: u64,
        part: SnapshotPart,
        chunks: Vec<Vec<u8>>,
    ) -> PortFuture<'_, PartRef>;
    /// Makes the manifest readable. On a directory of one node it is from then on the one that counts; a cluster's counts when the
    /// shard's row names it.
    fn publish(&self, shard: ShardId, manifest: Manifest) -> PortFuture<'_, ()>;
    /// The manifest with this number; None: the one that counts, on a directory of one node.
    fn load(&self, shard: ShardId, number: Option<u64>) -> PortFuture<'_, Option<Manifest>>;
    /// `manifest` counts: older manifests, and parts that it does not name, are deleted. Newer ones are left alone.
    fn forget(&self, shard: ShardId, manifest: Manifest) -> PortFuture<'_, ()>;
    /// The chunks of a part, checked against length and checksum.
    fn read_part(&self, shard: ShardId, part: PartRef) -> PortFuture<'_, Vec<Vec<u8>>>;
}

/// Rows of acknowledged frames, in log order, and how far they take each shard.
#[derive(Clone, Debug, Default)]
pub struct ViewBatch {
    /// With the hybrid time of the event.
    pub rows: Vec<(u64, Row)>,
    /// Highest frame seq per shard in this batch.
    pub applied: Vec<(ShardId, u64)>,
    /// Journal position that covers all of it.
    pub position: Position,
}

/// A page of run records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPage {
    pub items: Vec<RunRecord>,
    /// Opaque; pass it to get what follows.
    pub next: Option<Vec<u8>>,
}

/// The rebuildable read model.
pub trait Views: Send + Sync + 'static {
    /// Applies rows and then the position that covers them: a reader who sees the position sees the rows. Embedded: one atomic
    /// batch, not necessarily durable. A cluster: durable when it answers.
    fn apply(&self, batch: ViewBatch) -> PortFuture<'_, ()>;
    /// Applied frame seq of a shard; 0 = none.
    fn applied(&self, shard: ShardId) -> PortFuture<'_, u64>;

    fn run(&self, run: RunId) -> PortFuture<'_, Option<RunRecord>>;
    /// Final runs of a job, newest first.
    fn job_runs(&self, job: JobId, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage>;
    /// The run of a caller's key.
    fn find_key(&self, job: JobId, key: &str) -> PortFuture<'_, Option<RunId>>;
    /// Intervals that touch `(from, to]`, oldest first, `limit` at most. A caller that wants to know whether there are more asks for one
    /// more than it needs.
    fn ledger(&self, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> PortFuture<'_, Vec<LedgerRow>>;
    /// Dead letters of a tenant, newest first.
    fn dead_letters(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage>;
    /// FAILED and TIMEOUT runs of a tenant, newest first.
    fn failed_runs(&self, tenant: &str, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, RunPage>;
    /// Ended runs of all jobs, the one that ended last first. A page may have few runs although more follow: a store looks at a bounded
    /// number. None: the store has no such list, because it would be one more row for each run.
    fn ended_runs(&self, query: EndedQuery, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, Option<RunPage>>;
    /// Versions of a job's definition below `before`, newest first: `limit` at most.
    fn definitions(&self, job: JobId, before: Option<u64>, limit: usize) -> PortFuture<'_, Vec<DefinitionRow>>;
    /// Records of the audit trail, newest first: `limit` at most.
    fn audit(&self, query: AuditQuery, after: Option<Vec<u8>>, limit: usize) -> PortFuture<'_, AuditPage>;
    /// Deletes records of the audit trail from before `before_ms`; at most `max_rows` a call. Returns how many went.
    fn retain_audit(&self, before_ms: i64, max_rows: usize) -> PortFuture<'_, u64>;
    /// Deletes runs, ledger rows and logs that ended before `before_ms`; at most `max_rows` a call. Returns how many went.
    fn retain(&self, before_ms: i64, max_rows: usize) -> PortFuture<'_, u64>;

    /// Appends to the log of an attempt (kept apart from metadata, not journaled, flushed in the background).
    fn append_log(&self, run: RunId, attempt: u32, chunk: Vec<u8>) -> PortFuture<'_, ()>;
    /// The log of an attempt from a byte offset, at most `max_bytes`.
    fn read_log(&self, run: RunId, attempt: u32, offset: u64, max_bytes: usize) -> PortFuture<'_, Vec<u8>>;
}

/// A read model in this node's directory. A cluster's is durable when [`Views::apply`] has answered.
pub trait LocalViews: Views {
    /// Makes what is applied durable without help of the view's own journal; returns the position that is covered.
    fn flush(&self) -> PortFuture<'_, Position>;
    /// What the last flush covered, also after a restart.
    fn flushed(&self) -> Position;
    /// Rough size of what the next flush would write. A store without a disk has nothing to write.
    fn unflushed_bytes(&self) -> u64;
    /// While history takes more than `max_bytes` on disk: lets the oldest of what ended before `before_ms` go, until about nine
    /// tenths of that are left. Their room is given back when enough have gone to be worth it. Returns how many runs went. A store without a disk keeps everything.
    fn shrink(&self, max_bytes: u64, before_ms: i64) -> PortFuture<'_, u64>;
    /// From now on runs that messages made ([`RunRecord::is_of_message`]) and that ended at `from_ms` or later stay, whatever
    /// [`Views::retain`] and [`Self::shrink`] are told: their keys keep repeats from making them again.
    fn keep_messages(&self, from_ms: i64);
    /// What the store takes on disk, and what is left there; None: it has no disk. Not for a hot path.
    fn room(&self) -> PortFuture<'_, Option<DiskRoom>>;
}

/// The disk of a node's own directory, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskRoom {
    pub journal: u64,
    pub snapshots: u64,
    /// Views and logs of attempts.
    pub history: u64,
    /// What a process without privileges may still write, and all of the file system.
    pub free: u64,
    pub size: u64,
}

/// Time. Two clocks, so that the guard in the core can compare them.
pub trait Clock: Send + Sync + 'static {
    /// Wall clock, microseconds since 1970 UTC. May jump.
    fn wall_us(&self) -> i64;
    /// CLOCK_BOOTTIME, microseconds: never jumps, counts suspend.
    fn boot_us(&self) -> u64;
}

/// The job that secret params belong to. Neither name ever changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretOwner<'a> {
    pub tenant: &'a str,
    pub job: &'a str,
}

/// Seals and opens secret params. Implemented by the node, which holds the key file.
pub trait Secrets: Send + Sync + 'static {
    /// They open for this owner only. None: no key is configured.
    fn seal(
        &self,
        owner: SecretOwner<'_>,
        secrets: &std::collections::BTreeMap<String, String>,
    ) -> Option<campanile_schema::stored::Sealed>;
    /// Error: the key with the id is not in the key file, the bytes are damaged, or they were sealed for another owner.
    fn open(
        &self,
        owner: SecretOwner<'_>,
        sealed: &campanile_schema::stored::Sealed,
    ) -> Result<std::collections::BTreeMap<String, String>, String>;
}
