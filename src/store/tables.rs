//! The tables of the read model, behind a blocking interface. The embedded store keeps them in an LSM, the store in
//! memory in maps. Positions, flush marks and threads are the same for both and belong to the stores.

use campanile_ports::{
    AuditPage, AuditQuery, DefinitionRow, EndedQuery, LedgerRow, Position, Row, RunPage, StoreError,
};
use campanile_schema::{
    event::Outcome,
    ids::{JobId, RunId},
    record::{RunRecord, RunState, Source},
};
use std::sync::Arc;

/// A list of a tenant's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TenantList {
    DeadLetters,
    Failed,
}

impl TenantList {
    /// Whether a run stands in the list.
    pub fn holds(self, record: &RunRecord) -> bool {
        match self {
            Self::DeadLetters => record.dead_letter && record.state.is_final(),
            Self::Failed => failed(record.state),
        }
    }
}

/// FAILED or TIMEOUT.
pub fn failed(state: RunState) -> bool {
    match state {
        RunState::Failed | RunState::Timeout => true,
        RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::RetryWait
        | RunState::SuspectedLost
        | RunState::NeedsConfirmation
        | RunState::Success
        | RunState::Canceled
        | RunState::Skipped => false,
    }
}

/// A scheduled run that took longer also has an entry of its own in its job's list: the interval that fired it goes so much earlier.
pub const SHORT_RUN_MS: i64 = 3_600_000;

/// The run of an interval that a schedule closed by firing it, and nothing else: from it the job's list follows too.
pub fn fired(row: &LedgerRow) -> Option<RunId> {
    match row.entries.as_slice() {
        [entry] => match entry.outcome {
            Outcome::Fired | Outcome::FiredLate => entry.run,
            Outcome::Skipped | Outcome::Missed | Outcome::Coalesced | Outcome::DstSkipped => None,
        },
        _ => None,
    }
}

/// Whether a job's list has the run by the interval that fired it ([`fired`]).
pub fn is_listed_by_fire(record: &RunRecord) -> bool {
    let begun = record.logical_ms.map_or(record.created_ms, |due| due.min(record.created_ms));
    let short = record.ended_ms.is_some_and(|ended| ended.saturating_sub(begun) <= SHORT_RUN_MS);
    record.source == Source::Schedule && record.generation == 1 && record.state.is_final() && short
}

/// A run whose dead letter was put away.
pub fn discarded(record: &RunRecord) -> RunRecord {
    RunRecord { dead_letter: false, ..record.clone() }
}

/// The row that brings a stored run back.
pub fn stored_run(record: RunRecord) -> Row {
    let record = Arc::new(record);
    if record.state.is_final() { Row::Run(record) } else { Row::Reopened(record) }
}

/// What tables hold, for a backup; lists and keys follow from it.
pub enum Stored {
    Row(Row),
    /// Pieces of one attempt in their order.
    Log {
        run: RunId,
        attempt: u32,
        bytes: Vec<u8>,
    },
}

/// See [`Tables::rows`].
pub type StoredRows = Box<dyn Iterator<Item = Result<Stored, StoreError>> + Send>;

/// An ended run, or what an attempt of the last one said.
pub enum Ended {
    Run(Box<RunRecord>),
    /// Pieces of one attempt in their order.
    Log {
        run: RunId,
        attempt: u32,
        bytes: Vec<u8>,
    },
}

/// See [`Tables::ended`].
pub type EndedRuns = Box<dyn Iterator<Item = Result<Ended, StoreError>> + Send>;

/// Tables of runs, keys, ledger, lists and logs. Applying rows twice, or again from an earlier place in the log, ends in
/// the same tables.
pub trait Tables: Send + Sync + 'static {
    /// Applies rows and the position that covers them, all or nothing. One caller at a time.
    fn apply(&self, rows: &[(u64, Row)], position: Position) -> Result<(), StoreError>;
    /// The position of the last apply, as far as it is still there.
    fn position(&self) -> Result<Position, StoreError>;
    /// Everything applied before the call is durable when it returns.
    fn flush(&self) -> Result<(), StoreError>;
    /// Rough size of what the next flush would write.
    fn unflushed_bytes(&self) -> u64;
    /// Goes on after an I/O error, as after a restart.
    fn revive(&self) -> Result<(), StoreError>;

    fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError>;
    fn job_runs(&self, job: JobId, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError>;
    fn find_key(&self, job: JobId, key: &str) -> Result<Option<RunId>, StoreError>;
    fn ledger(&self, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> Result<Vec<LedgerRow>, StoreError>;
    fn tenant_runs(
        &self,
        list: TenantList,
        tenant: &str,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<RunPage, StoreError>;
    /// See [`campanile_ports::Views::ended_runs`].
    fn ended_runs(&self, query: &EndedQuery, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError>;
    /// See [`campanile_ports::Views::definitions`].
    fn definitions(&self, job: JobId, before: Option<u64>, limit: usize) -> Result<Vec<DefinitionRow>, StoreError>;
    /// See [`campanile_ports::Views::audit`].
    fn audit(&self, query: &AuditQuery, after: Option<&[u8]>, limit: usize) -> Result<AuditPage, StoreError>;
    fn retain_audit(&self, before_ms: i64, max_rows: usize) -> Result<u64, StoreError>;
    fn retain(&self, before_ms: i64, max_rows: usize) -> Result<u64, StoreError>;
    /// See [`campanile_ports::LocalViews::keep_messages`]. Until it is called nothing is kept.
    fn keep_messages(&self, from_ms: i64);
    /// Ended runs in the tables, roughly.
    fn runs_stored(&self) -> u64;
    /// Gives the room of what retention removed back to the disk. Takes long, and as much room as the largest table meanwhile.
    fn compact(&self) -> Result<(), StoreError>;

    /// Everything as it is at the call, however long the reading takes.
    fn rows(&self) -> Result<StoredRows, StoreError>;

    /// Runs that ended from `from_ms` on and before `to_ms`, by when they ended and their id, each followed by its logs.
    fn ended(&self, from_ms: i64, to_ms: i64) -> Result<EndedRuns, StoreError>;

    fn append_log(&self, run: RunId, attempt: u32, chunk: &[u8]) -> Result<(), StoreError>;
    fn read_log(&self, run: RunId, attempt: u32, offset: u64, max_bytes: usize) -> Result<Vec<u8>, StoreError>;

    /// Bytes of the tables' files.
    fn disk_bytes(&self) -> u64;
}
