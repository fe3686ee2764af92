//! The views on fjall: the read model in LSM tables, off the way of an acknowledgement.
//!
//! Two databases: `views/` (rebuildable from the journal; its own journal is never trusted and is emptied at every open,
//! because rows are applied again from the flushed position anyway) and `logs/` (output of attempts, which stands in no
//! journal of ours, so there fjall's own is what survives a kill).
//!
//! Rows gather in memory (`staging`) and go to disk as whole table files. Traps of fjall that are met here: without a journal
//! file it forgets its sequence numbers, so an empty one is put there.

mod audit;
mod compaction;
mod definitions;
mod ended;
mod export;
mod fires;
mod keys;
mod lists;
mod logs;
mod merged;
mod open;
mod packs;
mod points;
mod retain;
mod scan;
mod staging;
mod stretch;
mod write;

pub use open::FjallSource;
#[cfg(any(test, feature = "faults"))]
pub use open::copy_flushed_to;

use crate::tables::{EndedRuns, StoredRows, Tables, TenantList};
use campanile_ports::{
    AuditPage, AuditQuery, DefinitionRow, EndedQuery, LedgerRow, Position, Row, RunPage, StoreError,
};
use campanile_schema::{
    frame,
    ids::{JobId, RunId},
    record::RunRecord,
};
use fjall::{Database, Keyspace, Slice};
use staging::{Staging, Table};
use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    thread,
};

/// Threads that read the records of one list.
const READERS: usize = 4;
/// So many are read sooner than a thread is started.
const READ_BY_ONE: usize = 4;

/// The tables of a directory.
pub struct FjallTables {
    settings: open::Settings,
    /// None only after a reopen failed.
    db: RwLock<Option<Arc<Db>>>,
    /// Held by whoever appends to a log: its length is read first.
    log_writer: Mutex<()>,
    /// Runs of messages that ended then or later stay.
    messages_from_ms: AtomicI64,
}

/// Open databases and their keyspaces.
struct Db {
    views: Database,
    /// In the order of [`Table::ALL`].
    keyspaces: Vec<Keyspace>,
    staging: Staging,
    logs: Database,
    chunks: Keyspace,
    /// Ledger rows that end before this are gone for readers; compaction removes them. After a restart those that are
    /// still there are seen again until the next retention.
    ledger_from_ms: Arc<AtomicI64>,
    /// Where the next call of a sweep of `by_time` begins, so that it does not walk over what the calls before removed.
    retained: Mutex<Vec<u8>>,
    dir: PathBuf,
}

impl Db {
    fn keyspace(&self, table: Table) -> &Keyspace {
        &self.keyspaces[table as usize]
    }

    fn record(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        let value = self.get(Table::Runs, &keys::run(run))?;
        value.map(|v| self.decode("run record", &v)).transpose()
    }

    /// Records in the order of `runs`. They lie far apart and most of the time is waiting for the disk, so several threads read.
    fn records(&self, runs: &[RunId]) -> Result<Vec<Option<RunRecord>>, StoreError> {
        let next = AtomicUsize::new(0);
        let read = || {
            let mut found = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(run) = runs.get(index) else { return Ok(found) };
                found.push((index, self.record(*run)?));
            }
        };
        let mut found = thread::scope(|scope| {
            let helpers = runs.len().div_ceil(READ_BY_ONE).min(READERS).saturating_sub(1);
            // The others do the work of one that cannot be started.
            let start = |_| thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, read).ok();
            let others: Vec<_> = (0..helpers).filter_map(start).collect();
            let mut found = read()?;
            for other in others {
                found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok::<_, StoreError>(found)
        })?;
        found.sort_unstable_by_key(|(index, _)| *index);
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    /// The interval of a row of `fires`.
    fn fired_interval(&self, (key, value): &(Slice, Slice)) -> Result<LedgerRow, StoreError> {
        fires::interval(key, value).ok_or_else(|| self.damaged("fired interval"))
    }

    /// Run and instant of a row of `fires`, as an entry of its job's list.
    fn fire(&self, (key, value): &(Slice, Slice)) -> Result<(RunId, Option<i64>), StoreError> {
        let entry = fires::entry(key, value).ok_or_else(|| self.damaged("fired interval"))?;
        Ok((entry.1, Some(entry.0)))
    }

    fn damaged(&self, what: &str) -> StoreError {
        let dir = self.dir.display();
        StoreError::Corrupt(format!(
            "{dir}: a {what} cannot be read. Remove the directory to rebuild it from the journal"
        ))
    }

    fn decode<T: serde::de::DeserializeOwned>(&self, what: &'static str, value: &Slice) -> Result<T, StoreError> {
        frame::decode(what, value).map_err(|e| {
            StoreError::Corrupt(format!(
                "{}: {e}. Remove the directory to rebuild it from the journal",
                self.dir.display()
            ))
        })
    }

    /// A failure of fjall in our words. It refuses everything after a failed write, as it should.
    fn failure(&self, what: &str, error: &fjall::Error) -> StoreError {
        let text = format!("{}: cannot {what} the views: {error}", self.dir.display());
        match error {
            fjall::Error::Poisoned | fjall::Error::Io(_) => StoreError::WriteFailed(text),
            fjall::Error::Storage(fjall::LsmError::Io(_)) => StoreError::Unavailable(text),
            // Not our enum, and open for additions: whatever else it names is damage.
            _ => StoreError::Corrupt(text),
        }
    }
}

impl FjallTables {
    fn db(&self) -> Result<Arc<Db>, StoreError> {
        let slot = self.db.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        slot.clone().ok_or_else(|| StoreError::WriteFailed("the views could not be opened again".into()))
    }
}

impl Tables for FjallTables {
    fn apply(&self, rows: &[(u64, Row)], position: Position) -> Result<(), StoreError> {
        let db = self.db()?;
        if db.staging.bytes() > self.settings.staged_bytes() {
            // At this thread's priority: everybody waits for it.
            db.staging.flush(&db)?;
        }
        write::apply(&db, rows, position)
    }

    fn position(&self) -> Result<Position, StoreError> {
        write::position(&*self.db()?)
    }

    fn flush(&self) -> Result<(), StoreError> {
        let db = self.db()?;
        open::in_background(|| db.staging.flush(&db))
    }

    fn unflushed_bytes(&self) -> u64 {
        self.db().map_or(0, |db| db.staging.bytes() as u64)
    }

    fn revive(&self) -> Result<(), StoreError> {
        self.reopen_if_poisoned()
    }

    fn run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        self.db()?.record(run)
    }

    fn job_runs(&self, job: JobId, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError> {
        lists::job_runs(&*self.db()?, job, after, limit)
    }

    fn find_key(&self, job: JobId, key: &str) -> Result<Option<RunId>, StoreError> {
        points::find_key(&*self.db()?, job, key)
    }

    fn ledger(&self, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> Result<Vec<LedgerRow>, StoreError> {
        lists::ledger(&*self.db()?, job, from_ms, to_ms, limit)
    }

    fn tenant_runs(
        &self,
        list: TenantList,
        tenant: &str,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<RunPage, StoreError> {
        lists::tenant_runs(&*self.db()?, list, tenant, after, limit)
    }

    fn retain(&self, before_ms: i64, max_rows: usize) -> Result<u64, StoreError> {
        retain::retain(&*self.db()?, before_ms, max_rows, self.messages_from_ms.load(Ordering::Relaxed))
    }

    fn keep_messages(&self, from_ms: i64) {
        self.messages_from_ms.store(from_ms, Ordering::Relaxed);
    }

    fn ended_runs(&self, query: &EndedQuery, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError> {
        ended::list(&*self.db()?, query, after, limit)
    }

    fn definitions(&self, job: JobId, before: Option<u64>, limit: usize) -> Result<Vec<DefinitionRow>, StoreError> {
        definitions::list(&*self.db()?, job, before, limit)
    }

    fn audit(&self, query: &AuditQuery, after: Option<&[u8]>, limit: usize) -> Result<AuditPage, StoreError> {
        audit::list(&*self.db()?, query, after, limit)
    }

    fn retain_audit(&self, before_ms: i64, max_rows: usize) -> Result<u64, StoreError> {
        audit::retain(&*self.db()?, before_ms, max_rows)
    }

    fn runs_stored(&self) -> u64 {
        self.db().map_or(0, |db| db.keyspace(Table::Runs).approximate_len() as u64)
    }

    fn compact(&self) -> Result<(), StoreError> {
        let db = self.db()?;
        open::in_background(|| {
            for keyspace in db.keyspaces.iter().chain([&db.chunks]) {
                keyspace.major_compact().map_err(|e| db.failure("compact", &e))?;
            }
            Ok(())
        })
    }

    fn rows(&self) -> Result<StoredRows, StoreError> {
        Ok(export::rows(&self.db()?))
    }

    fn ended(&self, from_ms: i64, to_ms: i64) -> Result<EndedRuns, StoreError> {
        Ok(export::ended(&self.db()?, from_ms, to_ms))
    }

    fn append_log(&self, run: RunId, attempt: u32, chunk: &[u8]) -> Result<(), StoreError> {
        let _one_at_a_time = self.log_writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        logs::append(&*self.db()?, run, attempt, chunk)
    }

    fn read_log(&self, run: RunId, attempt: u32, offset: u64, max_bytes: usize) -> Result<Vec<u8>, StoreError> {
        logs::read(&*self.db()?, run, attempt, offset, max_bytes)
    }

    fn disk_bytes(&self) -> u64 {
        let Ok(db) = self.db() else { return 0 };
        // Without fjall's journals: they are files of a fixed size, nearly empty.
        db.keyspaces.iter().chain([&db.chunks]).map(Keyspace::disk_space).sum()
    }
}

/// Readers hide ledger rows that retention passed.
fn ledger_from(db: &Db) -> i64 {
    db.ledger_from_ms.load(Ordering::Relaxed)
}
