//! Rows of the tables as of one moment, for a backup: runs, intervals of ledgers, logs. Lists and keys follow from the runs. And ended
//! runs by when they ended, for days of history.

use super::{
    Db, keys, ledger_from,
    staging::{Merge, Table},
};
use crate::store::tables::{Ended, EndedRuns, Stored, StoredRows, stored_run};
use campanile_actors::ports::{LedgerRow, Row, StoreError};
use campanile_schema::{ids::RunId, record::RunRecord};
use std::{iter, ops::Bound, sync::Arc};

/// What is there now, however long the reading takes.
pub fn rows(db: &Arc<Db>) -> StoredRows {
    // All are opened before the first is read.
    let runs = Merge::over(db.clone(), Table::Runs, Bound::Unbounded);
    let ledger = Merge::over(db.clone(), Table::Ledger, Bound::Unbounded);
    let logs = db.chunks.iter();
    let hidden = ledger_from(db);
    let (run_db, ledger_db, log_db) = (db.clone(), db.clone(), db.clone());
    let runs = runs.map(move |entry| {
        let record: RunRecord = run_db.decode("run record", &entry?.1)?;
        Ok(Stored::Row(stored_run(record)))
    });
    let ledger = ledger.filter_map(move |entry| {
        let row = entry.and_then(|(_, value)| ledger_db.decode::<LedgerRow>("ledger row", &value));
        match row {
            Ok(row) if row.to_ms < hidden => None,
            Ok(row) => Some(Ok(Stored::Row(Row::Ledger(row)))),
            Err(error) => Some(Err(error)),
        }
    });
    let logs = logs
        .map(move |entry| log_piece(&log_db, entry).map(|(run, attempt, bytes)| Stored::Log { run, attempt, bytes }));
    Box::new(runs.chain(ledger).chain(logs))
}

fn log_piece(db: &Db, entry: fjall::Guard) -> Result<(RunId, u32, Vec<u8>), StoreError> {
    let (key, bytes) = entry.into_inner().map_err(|e| db.failure("read", &e))?;
    let (run, attempt) = keys::of_log_chunk(&key).ok_or_else(|| {
        StoreError::Corrupt(format!("{}: a log under a key of {} bytes", db.dir.display(), key.len()))
    })?;
    Ok((run, attempt, bytes.to_vec()))
}

/// See [`Tables::ended`](crate::store::tables::Tables::ended). One that is started again while this is read is left out: it ends anew.
pub fn ended(db: &Arc<Db>, from_ms: i64, to_ms: i64) -> EndedRuns {
    let from = Bound::Included(keys::by_time_end(from_ms).to_vec());
    let end = keys::by_time_end(to_ms);
    let times = Merge::over(db.clone(), Table::ByTime, from);
    let times = times.take_while(move |entry| entry.as_ref().map_or(true, |(key, _)| **key < end[..]));
    let db = db.clone();
    let run = move |entry: Result<(fjall::Slice, fjall::Slice), StoreError>| -> EndedRuns {
        match entry.and_then(|(key, _)| ended_at(&db, &key)) {
            Ok(None) => Box::new(iter::empty()),
            Ok(Some(record)) => {
                let log_db = db.clone();
                let logs = db.chunks.prefix(keys::run_logs(record.run)).map(move |entry| {
                    log_piece(&log_db, entry).map(|(run, attempt, bytes)| Ended::Log { run, attempt, bytes })
                });
                Box::new(iter::once(Ok(Ended::Run(Box::new(record)))).chain(logs))
            }
            Err(error) => Box::new(iter::once(Err(error))),
        }
    };
    Box::new(times.flat_map(run))
}

/// The run of a `by_time` key, unless it has another end by now.
fn ended_at(db: &Db, key: &[u8]) -> Result<Option<RunRecord>, StoreError> {
    let Some((ended, run)) = keys::of_by_time(key) else { return Ok(None) };
    Ok(db.record(run)?.filter(|record| record.ended_ms == Some(ended) && record.state.is_final()))
}
