//! Rows of the tables as of one moment, for a backup: runs, intervals of ledgers, logs. Lists and keys follow from the runs. And ended
//! runs by when they ended, for days of history.

use super::{
    Db, keys, ledger_from,
    packs::{self, Ended, SPAN_MS},
    scan::Merge,
    staging::Table,
};
use crate::tables::{self, EndedRuns, Stored, StoredRows, stored_run};
use campanile_ports::{LedgerRow, Row, StoreError};
use campanile_schema::{ids::RunId, record::RunRecord};
use std::{collections::BTreeSet, iter, ops::Bound, sync::Arc};

/// What is there now, however long the reading takes.
pub fn rows(db: &Arc<Db>) -> StoredRows {
    // All are opened before the first is read.
    let runs = Merge::over(db.clone(), Table::Runs, Bound::Unbounded);
    let ledger = Merge::over(db.clone(), Table::Ledger, Bound::Unbounded);
    let fires = Merge::over(db.clone(), Table::Fires, Bound::Unbounded);
    let audit = super::audit::all(db);
    let definitions = super::definitions::all(db);
    let logs = db.chunks.iter();
    let hidden = ledger_from(db);
    let (run_db, ledger_db, fires_db, log_db) = (db.clone(), db.clone(), db.clone(), db.clone());
    let runs = runs.map(move |entry| {
        let record: RunRecord = run_db.decode("run record", &entry?.1)?;
        Ok(Stored::Row(stored_run(record)))
    });
    let ledger = ledger.map(move |entry| ledger_db.decode::<LedgerRow>("ledger row", &entry?.1));
    let fires = fires.map(move |entry| fires_db.fired_interval(&entry?));
    let intervals = ledger.chain(fires).filter_map(move |row| match row {
        Ok(row) if row.to_ms < hidden => None,
        Ok(row) => Some(Ok(Stored::Row(Row::Ledger(row)))),
        Err(error) => Some(Err(error)),
    });
    let logs = logs
        .map(move |entry| log_piece(&log_db, entry).map(|(run, attempt, bytes)| Stored::Log { run, attempt, bytes }));
    let audit = audit.map(|record| Ok(Stored::Row(Row::Audited(record?.into()))));
    let definitions = definitions.map(|row| Ok(Stored::Row(Row::Defined(row?.into()))));
    Box::new(runs.chain(intervals).chain(audit).chain(definitions).chain(logs))
}

fn log_piece(db: &Db, entry: fjall::Guard) -> Result<(RunId, u32, Vec<u8>), StoreError> {
    let (key, bytes) = entry.into_inner().map_err(|e| db.failure("read", &e))?;
    let (run, attempt) = keys::of_log_chunk(&key).ok_or_else(|| {
        StoreError::Corrupt(format!("{}: a log under a key of {} bytes", db.dir.display(), key.len()))
    })?;
    Ok((run, attempt, bytes.to_vec()))
}

/// See [`Tables::ended`](crate::tables::Tables::ended). One that is started again while this is read is left out: it ends anew.
pub fn ended(db: &Arc<Db>, from_ms: i64, to_ms: i64) -> EndedRuns {
    // A pack that begins before may reach into it.
    let from = Bound::Included(keys::by_time_end(from_ms.div_euclid(SPAN_MS).saturating_mul(SPAN_MS)).to_vec());
    let end = keys::by_time_end(to_ms);
    let rows = Merge::over(db.clone(), Table::ByTime, from);
    let rows = rows.take_while(move |entry| entry.as_ref().map_or(true, |(key, _)| **key < end[..]));
    let entries = InOrder { rows, met: BTreeSet::new(), complete: None };
    let asked =
        move |entry: &Result<Ended, StoreError>| entry.as_ref().map_or(true, |(at, _)| (from_ms..to_ms).contains(at));
    let db = db.clone();
    let run = move |entry: Result<Ended, StoreError>| -> EndedRuns {
        match entry.and_then(|ended| ended_at(&db, ended)) {
            Ok(None) => Box::new(iter::empty()),
            Ok(Some(record)) => {
                let log_db = db.clone();
                let logs = db.chunks.prefix(keys::run_logs(record.run)).map(move |entry| {
                    log_piece(&log_db, entry).map(|(run, attempt, bytes)| tables::Ended::Log { run, attempt, bytes })
                });
                Box::new(iter::once(Ok(tables::Ended::Run(Box::new(record)))).chain(logs))
            }
            Err(error) => Box::new(iter::once(Err(error))),
        }
    };
    Box::new(entries.filter(asked).flat_map(run))
}

/// The run of an entry, unless it has another end by now.
fn ended_at(db: &Db, (ended, run): Ended) -> Result<Option<RunRecord>, StoreError> {
    Ok(db.record(run)?.filter(|record| record.ended_ms == Some(ended) && record.state.is_final()))
}

/// Runs of rows of `by_time` by when they ended and their id, each once. Packs overlap, and begin in order: what ended before the one that
/// comes next begins is complete.
struct InOrder<R> {
    rows: R,
    met: BTreeSet<(i64, u64)>,
    /// Where the newest row begins; None: before the first one. All are read when it is the end of time.
    complete: Option<(i64, u64)>,
}

impl<R: Iterator<Item = Result<(fjall::Slice, fjall::Slice), StoreError>>> Iterator for InOrder<R> {
    type Item = Result<Ended, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(first) = self.met.first().filter(|first| self.complete.is_some_and(|upto| **first < upto)) {
                let (at, run) = *first;
                self.met.pop_first();
                return Some(Ok((at, RunId(run))));
            }
            match self.rows.next() {
                Some(Ok((key, value))) => {
                    let Some((at, run)) = keys::of_by_time(&key) else { continue };
                    self.complete = Some((at, run.0));
                    match packs::of(&key, &value) {
                        Some(runs) => self.met.extend(runs.into_iter().map(|(at, run)| (at, run.0))),
                        None => self.met.extend([(at, run.0)]),
                    }
                }
                Some(Err(error)) => return Some(Err(error)),
                None if self.met.is_empty() => return None,
                None => self.complete = Some((i64::MAX, u64::MAX)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::open::begin;
    use crate::{
        embedded::EmbeddedOptions,
        samples::{at, end_at},
        tables::{Ended, Tables},
    };

    #[test]
    fn ended_runs_come_in_order_and_once_however_batches_were_cut() {
        let temp = tempfile::tempdir().unwrap();
        let tables = begin(&EmbeddedOptions::new(temp.path()), at(0, 0)).unwrap();
        end_at(&*tables, 1, &[10, 30, 50, 999, 1_000]);
        end_at(&*tables, 2, &[20, 40, 60, 1_001]);
        tables.flush().unwrap();
        // As after a crash.
        end_at(&*tables, 2, &[30, 50, 999, 1_000, 20]);
        end_at(&*tables, 3, &[40, 60, 1_001, 2_000]);
        let read = |from, to| -> Vec<u64> {
            let run = |ended: Result<Ended, _>| match ended.unwrap() {
                Ended::Run(record) => record.run.0,
                Ended::Log { .. } => unreachable!("nothing was said"),
            };
            tables.ended(from, to).unwrap().map(run).collect()
        };
        assert_eq!(read(i64::MIN, i64::MAX), [10, 20, 30, 40, 50, 60, 999, 1_000, 1_001, 2_000]);
        assert_eq!(read(25, 60), [30, 40, 50]);
        assert_eq!(read(1_000, 2_000), [1_000, 1_001]);
        assert_eq!(read(999, 1_000), [999]);
        assert_eq!(read(3_000, i64::MAX), [0; 0]);
    }
}
