//! Retention: what ended long ago goes, oldest first, a bounded number of rows a call.

use super::{Db, keys, packs, points, staging::Table, stretch::Writes, write};
use crate::tables::is_listed_by_fire;
use campanile_ports::StoreError;
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
    for entry in db.scan(Table::ByTime, Bound::Included(cursor.clone()), &[]) {
        let (key, value) = entry?;
        if *key >= end[..] || count >= max_rows {
            break;
        }
        let runs = match packs::of(&key, &value) {
            Some(mut runs) => {
                // Those that are not due yet, or too many for this call, stay as a smaller pack.
                let due = runs.partition_point(|(ended, _)| *ended < before_ms).min(max_rows - count);
                packs::put_one(&mut batch, &runs.split_off(due));
                runs
            }
            None => {
                let Some((ended, run)) = keys::of_by_time(&key) else { continue };
                let (lists, tenant) = keys::of_by_time_value(&value);
                for list in lists {
                    batch.remove(write::list(list), keys::tenant_run(tenant, ended, run));
                }
                vec![(ended, run)]
            }
        };
        count += runs.len();
        last = runs.last().map(|(ended, _)| (key.to_vec(), *ended)).or(last);
        batch.remove(Table::ByTime, key);
        for (ended, run) in runs {
            match db.record(run)? {
                // It was reopened meanwhile and has another row by now: only the stale entry goes.
                Some(record) if record.ended_ms != Some(ended) || !record.state.is_final() => continue,
                Some(record) => remove_run(db, &mut batch, &record)?,
                None => {}
            }
            gone.push(run);
        }
    }
    db.staging.add(batch);
    for run in &gone {
        super::logs::remove(db, *run)?;
    }
    let ledger_from_ms = match last {
        Some((key, ended)) if count == max_rows => {
            *cursor = key;
            ended
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
    let entry = keys::job_run(record.job, record.run);
    // A release before wrote one for each run.
    if !is_listed_by_fire(record) || db.get(Table::JobRuns, &entry)?.is_some() {
        batch.remove(Table::JobRuns, entry);
    }
    if let Some(key) = &record.key
        && points::find_key(db, record.job, key)? == Some(record.run)
    {
        batch.remove(Table::Keys, keys::caller_key(record.job, key));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{super::open::begin, *};
    use crate::{
        embedded::EmbeddedOptions,
        samples::{at, fired, run, scheduled},
        tables::Tables,
    };
    use campanile_ports::Row;
    use campanile_schema::{
        frame,
        ids::{JobId, RunId},
        record::RunState,
    };

    const JOB: u64 = 4;

    fn listed(tables: &dyn Tables) -> Vec<u64> {
        tables.job_runs(JobId(JOB), None, 99).unwrap().items.iter().map(|record| record.run.0).collect()
    }

    /// Ten runs of one batch share a row but for one that failed.
    #[test]
    fn runs_that_share_a_row_go_one_by_one() {
        let temp = tempfile::tempdir().unwrap();
        let tables = begin(&EmbeddedOptions::new(temp.path()), at(0, 0)).unwrap();
        let rows = (1..=10_u64).flat_map(|n| {
            let state = if n == 4 { RunState::Failed } else { RunState::Success };
            let ended = n as i64 * 80;
            let record = scheduled(JOB, n, state, ended).into();
            [(0, Row::Ledger(fired(JOB, n, ended - 80, ended))), (0, Row::Run(record))]
        });
        tables.apply(&rows.collect::<Vec<_>>(), at(1, 1)).unwrap();
        assert_eq!(listed(&*tables), [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
        for flushed in [false, true] {
            // Two a call, and the first call of each round ends in the middle of the pack.
            let before = if flushed { 561 } else { 240 };
            assert_eq!(tables.retain(before, 2).unwrap(), 2);
            let left = if flushed { 6 } else { 8 };
            assert_eq!(listed(&*tables).len(), left);
            if !flushed {
                assert_eq!(tables.retain(before, 9).unwrap(), 0, "the third ends when it does not go yet");
                tables.flush().unwrap();
            }
        }
        // The failed one is in there.
        assert_eq!(tables.retain(561, 99).unwrap(), 3);
        assert_eq!(listed(&*tables), [10, 9, 8]);
        assert_eq!(tables.retain(561, 99).unwrap(), 0);
        assert_eq!(tables.retain(i64::MAX, 99).unwrap(), 3);
        assert_eq!(listed(&*tables), [0; 0]);
    }

    /// A run that is started again leaves its lists, and its neighbours in the pack stay.
    #[test]
    fn a_run_that_is_started_again_takes_nobody_with_it() {
        let temp = tempfile::tempdir().unwrap();
        let tables = begin(&EmbeddedOptions::new(temp.path()), at(0, 0)).unwrap();
        let ended = |n: u64| run(JOB, n, RunState::Success, 100 + n as i64);
        let rows: Vec<_> = (1..=3).map(|n| (0, Row::Run(ended(n).into()))).collect();
        tables.apply(&rows, at(1, 1)).unwrap();
        let again = crate::samples::reopened(&ended(1));
        tables.apply(&[(0, Row::Reopened(again.into()))], at(1, 2)).unwrap();
        assert_eq!(tables.retain(1_000, 99).unwrap(), 3, "its entry is stale");
        assert_eq!(listed(&*tables), [0; 0]);
        assert!(tables.run(RunId(1)).unwrap().is_some(), "it is active");
        assert_eq!(tables.run(RunId(2)).unwrap(), None);
    }

    /// One row each in `ledger`, `job_runs` and `by_time`, as it was.
    #[test]
    fn what_a_release_before_wrote_is_read_and_goes() {
        let temp = tempfile::tempdir().unwrap();
        let tables = begin(&EmbeddedOptions::new(temp.path()), at(0, 0)).unwrap();
        let db = tables.db().unwrap();
        let mut writes = Writes::default();
        for n in 1..=3 {
            let (record, interval) = (
                scheduled(JOB, n, RunState::Success, n as i64 * 100),
                fired(JOB, n, n as i64 * 100 - 100, n as i64 * 100),
            );
            writes.put(Table::Runs, keys::run(record.run), frame::encode(&record));
            writes.put(Table::JobRuns, keys::job_run(record.job, record.run), []);
            writes.put(Table::ByTime, keys::by_time(n as i64 * 100, record.run), [0]);
            let key = keys::ledger(interval.job, interval.to_ms, interval.from_ms);
            writes.put(Table::Ledger, key, frame::encode(&interval));
        }
        db.staging.add(writes);
        // The last one is applied again by this release, and one is new.
        let rows = (3..=4).flat_map(|n| {
            let record = scheduled(JOB, n, RunState::Success, n as i64 * 100);
            [(0, Row::Ledger(fired(JOB, n, n as i64 * 100 - 100, n as i64 * 100))), (0, Row::Run(record.into()))]
        });
        tables.apply(&rows.collect::<Vec<_>>(), at(1, 1)).unwrap();
        assert_eq!(listed(&*tables), [4, 3, 2, 1]);
        let token = (!3_u64).to_be_bytes();
        let page = tables.job_runs(JobId(JOB), Some(&token), 99).unwrap();
        assert_eq!(page.items.iter().map(|record| record.run.0).collect::<Vec<_>>(), [2, 1], "a page that it began");
        let ledger = tables.ledger(JobId(JOB), 0, 400, 9).unwrap();
        assert_eq!(ledger, [1, 2, 3, 4].map(|n| fired(JOB, n, n as i64 * 100 - 100, n as i64 * 100)));
        assert_eq!(tables.retain(350, 99).unwrap(), 4, "the third one has two entries");
        assert_eq!(listed(&*tables), [4]);
        assert!((1..=3).all(|n| db.get(Table::JobRuns, &keys::job_run(JobId(JOB), RunId(n))).unwrap().is_none()));
    }
}
