//! Rows into the tables, and the tables onto the disk.
//!
//! Rows are idempotent and may be applied again from an earlier place while some tables are already ahead. So a list's
//! entry is only a hint: readers check it against the run's own row, and what is stale is removed when it is met.

use super::{Db, keys};
use crate::store::tables::{TenantList, discarded, failed};
use campanile_actors::ports::{Position, Row, StoreError};
use campanile_schema::{frame, limits, record::RunRecord};
use fjall::{AbstractTree, Keyspace, OwnedWriteBatch, Slice};
use std::time::{Duration, Instant};

const POSITION: &[u8] = b"position";
/// A row of every table that no reader looks at; see [`flush`].
const FLUSH_MARK: &[u8] = b"\xff";

/// Applies rows and the position in one atomic batch.
pub fn apply(db: &Db, rows: &[(u64, Row)], position: Position) -> Result<(), StoreError> {
    let mut writes = Writes::default();
    for (at, (_, row)) in rows.iter().enumerate() {
        match row {
            Row::Run(record) => writes.run(record),
            Row::Reopened(record) => {
                leave_lists(db, &mut writes, &rows[..at], record)?;
                let value = writes.encode(record);
                writes.runs.put(keys::run(record.run), value);
                writes.job_runs.put(keys::job_run(record.job, record.run), []);
            }
            Row::DeadLetterDiscarded(record) => {
                leave_lists(db, &mut writes, &rows[..at], record)?;
                writes.run(&discarded(record));
            }
            Row::Ledger(row) => {
                let value = writes.encode(row);
                writes.ledger.put(keys::ledger(row.job, row.to_ms, row.from_ms), value);
            }
            // Its history stays until retention.
            Row::JobDeleted(_) => {}
        }
    }
    let mut batch = OwnedWriteBatch::with_capacity(db.views.clone(), writes.len() + 1);
    writes.fill(db, &mut batch);
    batch.insert(&db.meta, POSITION, frame::encode(&position));
    batch.commit().map_err(|e| db.failure("write", &e))
}

/// The position of the last apply that is still there.
pub fn position(db: &Db) -> Result<Position, StoreError> {
    let value = db.meta.get(POSITION).map_err(|e| db.failure("read", &e))?;
    value.map_or(Ok(Position::default()), |v| db.decode("position", &v))
}

/// Writes only a position, for tables that begin in the middle of a journal.
pub fn put_position(db: &Db, position: Position) -> Result<(), StoreError> {
    db.meta.insert(POSITION, frame::encode(&position)).map_err(|e| db.failure("write", &e))
}

/// Writes of one batch to one table, in order; of several to one key the last counts.
#[derive(Default)]
struct TableWrites(Vec<(Slice, Option<Slice>)>);

impl TableWrites {
    fn put(&mut self, key: impl AsRef<[u8]>, value: impl Into<Slice>) {
        self.0.push((Slice::from(key.as_ref()), Some(value.into())));
    }

    fn remove(&mut self, key: impl AsRef<[u8]>) {
        self.0.push((Slice::from(key.as_ref()), None));
    }

    /// Sorted, because neighbours in a memtable share cache lines; one write a key, because all items of a batch of fjall
    /// carry the same sequence number.
    fn fill(mut self, keyspace: &Keyspace, batch: &mut OwnedWriteBatch) {
        self.0.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut writes = self.0.into_iter().peekable();
        while let Some((key, value)) = writes.next() {
            if writes.peek().is_some_and(|(next, _)| *next == key) {
                continue;
            }
            match value {
                Some(value) => batch.insert(keyspace, key, value),
                None => batch.remove(keyspace, key),
            }
        }
    }
}

/// Writes of one batch.
#[derive(Default)]
struct Writes {
    runs: TableWrites,
    job_runs: TableWrites,
    keys: TableWrites,
    ledger: TableWrites,
    dead_letters: TableWrites,
    failed: TableWrites,
    by_time: TableWrites,
    scratch: Vec<u8>,
}

impl Writes {
    fn encode<T: serde::Serialize>(&mut self, value: &T) -> Slice {
        self.scratch.clear();
        frame::encode_into(&mut self.scratch, value);
        Slice::from(self.scratch.as_slice())
    }

    fn run(&mut self, record: &RunRecord) {
        let value = self.encode(record);
        self.runs.put(keys::run(record.run), value);
        self.job_runs.put(keys::job_run(record.job, record.run), []);
        if let Some(key) = &record.key {
            self.keys.put(keys::caller_key(record.job, key), keys::run(record.run));
        }
        let Some(ended) = record.ended_ms else { return };
        self.by_time.put(keys::by_time(ended, record.run), keys::by_time_value(record));
        if record.dead_letter {
            self.dead_letters.put(keys::tenant_run(&record.tenant, ended, record.run), []);
        }
        if failed(record.state) {
            self.failed.put(keys::tenant_run(&record.tenant, ended, record.run), []);
        }
    }

    fn list(&mut self, list: TenantList) -> &mut TableWrites {
        match list {
            TenantList::DeadLetters => &mut self.dead_letters,
            TenantList::Failed => &mut self.failed,
        }
    }

    fn len(&self) -> usize {
        let tables = [&self.runs, &self.job_runs, &self.keys, &self.ledger, &self.by_time];
        tables.iter().map(|t| t.0.len()).sum::<usize>() + self.dead_letters.0.len() + self.failed.0.len()
    }

    fn fill(self, db: &Db, batch: &mut OwnedWriteBatch) {
        self.runs.fill(&db.runs, batch);
        self.job_runs.fill(&db.job_runs, batch);
        self.keys.fill(&db.keys, batch);
        self.ledger.fill(&db.ledger, batch);
        self.dead_letters.fill(&db.dead_letters, batch);
        self.failed.fill(&db.failed, batch);
        self.by_time.fill(&db.by_time, batch);
    }
}

/// Removes what the run's earlier rows put into lists: those on disk, those earlier in this batch, and its own.
fn leave_lists(db: &Db, writes: &mut Writes, earlier: &[(u64, Row)], record: &RunRecord) -> Result<(), StoreError> {
    let stored = db.record(record.run)?.and_then(|r| r.ended_ms);
    let in_batch = earlier.iter().rev().find_map(|(_, row)| match row {
        Row::Run(r) if r.run == record.run => r.ended_ms,
        Row::Run(_) | Row::Reopened(_) | Row::DeadLetterDiscarded(_) | Row::Ledger(_) | Row::JobDeleted(_) => None,
    });
    for ended in [stored, in_batch, record.ended_ms].into_iter().flatten() {
        writes.by_time.remove(keys::by_time(ended, record.run));
        for list in [TenantList::DeadLetters, TenantList::Failed] {
            writes.list(list).remove(keys::tenant_run(&record.tenant, ended, record.run));
        }
    }
    Ok(())
}

/// Seals the memtables of all tables and waits until what they hold is in synced files.
///
/// fjall tells how far a table's files reach by the highest sequence number in them, and forgets that when compaction
/// drops a tombstone that carried it: then a wait would never end, and its journal would never shrink. So each flush puts
/// a row into every table that is not dropped, and waits for a number that only rows from it on have.
pub fn flush(db: &Db) -> Result<(), StoreError> {
    // What was applied before has a lower one.
    let from = db.views.seqno();
    let mut marks = db.views.batch();
    for keyspace in db.view_keyspaces() {
        marks.insert(keyspace, FLUSH_MARK, []);
    }
    marks.commit().map_err(|e| db.failure("flush", &e))?;
    for keyspace in db.view_keyspaces() {
        keyspace.rotate_memtable().map_err(|e| db.failure("flush", &e))?;
    }
    let mut waiting = db.view_keyspaces().to_vec();
    let deadline = Instant::now() + Duration::from_millis(limits::VIEWS_FLUSH_MS);
    while let Some(keyspace) = waiting.last() {
        if keyspace.tree.get_highest_persisted_seqno().is_some_and(|seqno| seqno >= from) {
            waiting.pop();
            continue;
        }
        // A worker of fjall that fails poisons the database; nothing else would tell.
        db.views.persist(fjall::PersistMode::Buffer).map_err(|e| db.failure("flush", &e))?;
        if Instant::now() > deadline {
            return Err(StoreError::Unavailable(format!(
                "{}: the views' tables did not reach the disk within {} ms",
                db.dir.display(),
                limits::VIEWS_FLUSH_MS
            )));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
