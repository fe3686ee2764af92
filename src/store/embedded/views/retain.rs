//! Retention: what ended long ago goes, oldest first, a bounded number of rows a call.

use super::{Db, keys, points, staging::Table, stretch::Writes, write};
use campanile_actors::ports::StoreError;
use campanile_schema::{limits, record::RunRecord};
use std::{
    ops::Bound,
    sync::{PoisonError, atomic::Ordering},
};

/// Removes runs that ended before `before_ms` with their keys, list entries and logs. Ledger rows that are older than all runs
/// that are left vanish too: readers hide them at once, compaction removes them.
pub fn retain(db: &Db, before_ms: i64, max_rows: usize) -> Result<u64, StoreError> {
    let max_rows = max_rows.min(limits::RETAIN_ROWS);
    if max_rows == 0 {
        return Ok(0);
    }
    let mut cursor = db.retained.lock().unwrap_or_else(PoisonError::into_inner);
    let end = keys::by_time_end(before_ms);
    if cursor.as_slice() >= end.as_slice() {
        cursor.clear();
    }
    let mut batch = Writes::default();
    let (mut gone, mut count, mut last) = (Vec::new(), 0, None);
    for entry in db.scan(Table::ByTime, Bound::Included(cursor.clone()), &[]).take(max_rows) {
        let (key, value) = entry?;
        if *key >= end[..] {
            break;
        }
        let Some((ended, run)) = keys::of_by_time(&key) else { continue };
        let (lists, tenant) = keys::of_by_time_value(&value);
        for list in lists {
            batch.remove(write::list(list), keys::tenant_run(tenant, ended, run));
        }
        last = Some(key.clone());
        count += 1;
        batch.remove(Table::ByTime, key);
        match db.record(run)? {
            // It was reopened meanwhile and has another row by now: only the stale entry goes.
            Some(record) if record.ended_ms != Some(ended) || !record.state.is_final() => continue,
            Some(record) => remove_run(db, &mut batch, &record)?,
            None => {}
        }
        gone.push(run);
    }
    db.staging.add(batch);
    for run in &gone {
        super::logs::remove(db, *run)?;
    }
    let ledger_from_ms = match last {
        Some(key) if count == max_rows => {
            *cursor = key.to_vec();
            keys::of_by_time(&key).map_or(i64::MIN, |(ended, _)| ended)
        }
        Some(_) | None => {
            cursor.clear();
            before_ms
        }
    };
    db.ledger_from_ms.fetch_max(ledger_from_ms, Ordering::Relaxed);
    Ok(count as u64)
}

fn remove_run(db: &Db, batch: &mut Writes, record: &RunRecord) -> Result<(), StoreError> {
    batch.remove(Table::Runs, keys::run(record.run));
    batch.remove(Table::JobRuns, keys::job_run(record.job, record.run));
    if let Some(key) = &record.key
        && points::find_key(db, record.job, key)? == Some(record.run)
    {
        batch.remove(Table::Keys, keys::caller_key(record.job, key));
    }
    Ok(())
}
