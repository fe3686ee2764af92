//! All rows of the tables as of one moment, for a backup: runs, intervals of ledgers, logs. Lists and keys follow from the runs.

use super::{
    Db, keys, ledger_from,
    staging::{Merge, Table},
};
use crate::store::tables::{Stored, StoredRows, stored_run};
use campanile_actors::ports::{LedgerRow, Row, StoreError};
use campanile_schema::record::RunRecord;
use std::{ops::Bound, sync::Arc};

/// What is there now, however long the reading takes.
pub fn rows(db: &Arc<Db>) -> StoredRows {
    // All are opened before the first is read.
    let runs = Merge::over(db.clone(), Table::Runs, Bound::Unbounded, &[]);
    let ledger = Merge::over(db.clone(), Table::Ledger, Bound::Unbounded, &[]);
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
    let logs = logs.map(move |entry| {
        let (key, bytes) = entry.into_inner().map_err(|e| log_db.failure("read", &e))?;
        let (run, attempt) = keys::of_log_chunk(&key).ok_or_else(|| {
            StoreError::Corrupt(format!("{}: a log under a key of {} bytes", log_db.dir.display(), key.len()))
        })?;
        Ok(Stored::Log { run, attempt, bytes: bytes.to_vec() })
    });
    Box::new(runs.chain(ledger).chain(logs))
}
