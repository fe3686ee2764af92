//! Rows into the tables, and the tables onto the disk.
//!
//! A run that a schedule started is two rows: the interval that it closed (`fires`), from which its job's list follows too, and its record; of
//! `by_time` it shares a row with what else ended in the batch.
//!
//! Rows are idempotent and may be applied again from an earlier place while some tables are already ahead. So a list's
//! entry is only a hint: readers check it against the run's own row, and what is stale is removed when it is met.

use super::{Db, audit, definitions, fires, keys, packs, staging::Table, stretch::Writes};
use crate::tables::{TenantList, discarded, failed, is_listed_by_fire};
use campanile_ports::{LedgerRow, Position, Row, StoreError};
use campanile_schema::{frame, record::RunRecord};

const POSITION: &[u8] = b"position";

/// Applies rows and the position.
pub fn apply(db: &Db, rows: &[(u64, Row)], position: Position) -> Result<(), StoreError> {
    let mut batch = Batch::default();
    let intervals = rows.iter().filter(|(_, row)| matches!(row, Row::Ledger(_))).count();
    batch.writes.reserve(Table::Fires, intervals);
    batch.writes.reserve(Table::Runs, rows.len() - intervals);
    batch.ended.reserve(rows.len() - intervals);
    for (at, (_, row)) in rows.iter().enumerate() {
        match row {
            Row::Run(record) => batch.run(record),
            Row::Reopened(record) => {
                leave_lists(db, &mut batch.writes, &rows[..at], record)?;
                batch.put(Table::Runs, &keys::run(record.run), record);
                batch.writes.put(Table::JobRuns, keys::job_run(record.job, record.run), []);
            }
            Row::DeadLetterDiscarded(record) => {
                leave_lists(db, &mut batch.writes, &rows[..at], record)?;
                batch.run(&discarded(record));
            }
            Row::Ledger(row) => batch.interval(row),
            // Its runs stay until retention.
            Row::JobDeleted(job) => definitions::forget(db, &mut batch.writes, &rows[..at], *job)?,
            Row::Audited(record) => audit::put(&mut batch.writes, record),
            Row::Defined(row) => definitions::put(&mut batch.writes, row),
        }
    }
    packs::put(&mut batch.writes, batch.ended);
    batch.writes.put(Table::Meta, POSITION, frame::encode(&position));
    db.staging.add(batch.writes);
    Ok(())
}

/// The position of the last apply that is still there.
pub fn position(db: &Db) -> Result<Position, StoreError> {
    let value = db.get(Table::Meta, POSITION)?;
    value.map_or(Ok(Position::default()), |v| db.decode("position", &v))
}

/// Writes only a position, for tables that begin in the middle of a journal.
pub fn put_position(db: &Db, position: Position) -> Result<(), StoreError> {
    apply(db, &[], position)
}

#[derive(Default)]
struct Batch {
    writes: Writes,
    /// Runs that stand in no list of their tenant.
    ended: Vec<packs::Ended>,
}

impl Batch {
    fn put<T: serde::Serialize>(&mut self, table: Table, key: &[u8], value: &T) {
        self.writes.write(table, key, |bytes| frame::encode_into(bytes, value));
    }

    fn interval(&mut self, row: &LedgerRow) {
        let key = keys::ledger(row.job, row.to_ms, row.from_ms);
        match fires::value(row) {
            Some(value) => self.writes.put(Table::Fires, key, value),
            None => self.put(Table::Ledger, &key, row),
        }
    }

    fn run(&mut self, record: &RunRecord) {
        self.put(Table::Runs, &keys::run(record.run), record);
        let writes = &mut self.writes;
        if !is_listed_by_fire(record) {
            writes.put(Table::JobRuns, keys::job_run(record.job, record.run), []);
        }
        if let Some(key) = &record.key {
            writes.put(Table::Keys, keys::caller_key(record.job, key), keys::run(record.run));
        }
        let Some(ended) = record.ended_ms else { return };
        match keys::by_time_value(record) {
            Some(value) => writes.put(Table::ByTime, keys::by_time(ended, record.run), value),
            None => self.ended.push((ended, record.run)),
        }
        if record.dead_letter {
            writes.put(Table::DeadLetters, keys::tenant_run(&record.tenant, ended, record.run), []);
        }
        if failed(record.state) {
            writes.put(Table::Failed, keys::tenant_run(&record.tenant, ended, record.run), []);
        }
    }
}

/// The table of a list.
pub fn list(list: TenantList) -> Table {
    match list {
        TenantList::DeadLetters => Table::DeadLetters,
        TenantList::Failed => Table::Failed,
    }
}

/// Removes what the run's earlier rows put into lists: those on disk, those earlier in this batch, and its own.
fn leave_lists(db: &Db, writes: &mut Writes, earlier: &[(u64, Row)], record: &RunRecord) -> Result<(), StoreError> {
    let stored = db.record(record.run)?.and_then(|r| r.ended_ms);
    let in_batch = earlier.iter().rev().find_map(|(_, row)| match row {
        Row::Run(r) if r.run == record.run => r.ended_ms,
        Row::Run(_)
        | Row::Reopened(_)
        | Row::DeadLetterDiscarded(_)
        | Row::Ledger(_)
        | Row::JobDeleted(_)
        | Row::Audited(_)
        | Row::Defined(_) => None,
    });
    for ended in [stored, in_batch, record.ended_ms].into_iter().flatten() {
        writes.remove(Table::ByTime, keys::by_time(ended, record.run));
        for table in [Table::DeadLetters, Table::Failed] {
            writes.remove(table, keys::tenant_run(&record.tenant, ended, record.run));
        }
    }
    Ok(())
}
