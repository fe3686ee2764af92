//! Retention: what ended long ago goes, oldest first, a bounded number of rows a call.

use super::{Db, keys, packs, points, staging::Table, stretch::Writes, write};
use crate::tables::is_listed_by_fire;
use campanile_ports::StoreError;
use campanile_schema::{ids::RunId, limits, record::RunRecord};
use std::{
    ops::Bound,
    sync::{PoisonError, atomic::Ordering},
};

/// Removes runs that ended before `before_ms` with their keys, list entries and logs, but for those of messages that ended at
/// `messages_from_ms` or later. Ledger rows that are older than all runs that are left vanish too: readers hide them at once, compaction
/// removes them.
pub fn retain(db: &Db, before_ms: i64, max_rows: usize, messages_from_ms: i64) -> Result<u64, StoreError> {
    let max_rows = max_rows.min(limits::RETAIN_ROWS);
    if max_rows == 0 {
        return Ok(0);
    }
    let mut cursor = db.retained.lock().unwrap_or_else(PoisonError::into_inner);
    let end = keys::by_time_end(before_ms);
    if cursor.as_slice() >= end.as_slice() {
        cursor.clear();
    }
    let mut sweep = Sweep::new(db, before_ms, messages_from_ms);
    let mut last = None;
    for entry in db.scan(Table::ByTime, Bound::Included(cursor.clone()), &[]) {
        let (key, value) = entry?;
        if *key >= end[..] || sweep.is_over(max_rows) {
            break;
        }
        last = sweep.entry(&key, &value, max_rows)?.map(|ended| (key.to_vec(), ended)).or(last);
    }
    let over = sweep.is_over(max_rows);
    let Sweep { batch, gone, count, .. } = sweep;
    db.staging.add(batch);
    for run in &gone {
        super::logs::remove(db, *run)?;
    }
    let ledger_from_ms = match last {
        Some((key, ended)) if over => {
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

/// One call of retention.
struct Sweep<'a> {
    db: &'a Db,
    before_ms: i64,
    messages_from_ms: i64,
    batch: Writes,
    gone: Vec<RunId>,
    /// Runs whose entries went, and runs that stay.
    count: usize,
    stayed: usize,
}

impl<'a> Sweep<'a> {
    fn new(db: &'a Db, before_ms: i64, messages_from_ms: i64) -> Self {
        Self { db, before_ms, messages_from_ms, batch: Writes::default(), gone: Vec::new(), count: 0, stayed: 0 }
    }

    fn is_over(&self, max_rows: usize) -> bool {
        self.count >= max_rows || self.stayed >= limits::RETAIN_ROWS
    }

    /// Gives when the last run of the entry ended that was looked at.
    fn entry(&mut self, key: &[u8], value: &[u8], max_rows: usize) -> Result<Option<i64>, StoreError> {
        let pack = packs::of(key, value);
        let (runs, later) = match pack {
            Some(mut runs) => {
                // Those that are not due yet, or too many for this call, stay as a smaller pack.
                let due = runs.partition_point(|(ended, _)| *ended < self.before_ms).min(max_rows - self.count);
                let later = runs.split_off(due);
                (runs, Some(later))
            }
            None => match keys::of_by_time(key) {
                Some(run) => (vec![run], None),
                None => return Ok(None),
            },
        };
        let last = runs.last().map(|(ended, _)| *ended);
        let (mut goes, mut stays) = (Vec::with_capacity(runs.len()), Vec::new());
        for (ended, run) in runs {
            let record = self.db.record(run)?;
            let is_kept = |record: &RunRecord| record.ended_ms == Some(ended) && record.is_of_message();
            if ended >= self.messages_from_ms && record.as_ref().is_some_and(is_kept) {
                stays.push((ended, run));
            } else {
                goes.push((ended, run, record));
            }
        }
        self.stayed += stays.len();
        if goes.is_empty() {
            return Ok(last);
        }
        self.count += goes.len();
        // Before the packs: one of them may have the same key.
        self.batch.remove(Table::ByTime, key);
        match later {
            Some(later) => [stays, later].iter().for_each(|runs| packs::put_one(&mut self.batch, runs)),
            None => self.leave_lists(value, &goes),
        }
        for (ended, run, record) in goes {
            match record {
                // It was reopened meanwhile and has another row by now: only the stale entry goes.
                Some(record) if record.ended_ms != Some(ended) || !record.state.is_final() => continue,
                Some(record) => remove_run(self.db, &mut self.batch, &record)?,
                None => {}
            }
            self.gone.push(run);
        }
        Ok(last)
    }

    /// A run of an entry of its own leaves the lists of its tenant.
    fn leave_lists(&mut self, value: &[u8], goes: &[(i64, RunId, Option<RunRecord>)]) {
        let (lists, tenant) = keys::of_by_time_value(value);
        for list in lists {
            for (ended, run, _) in goes {
                self.batch.remove(write::list(list), keys::tenant_run(tenant, *ended, *run));
            }
        }
    }
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
    use campanile_schema::{frame, ids::JobId, record::RunState};

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

    /// Keys of messages live as long as a repeat of the message may come.
    #[test]
    fn runs_of_messages_stay_as_long_as_they_are_to_be_kept() {
        let temp = tempfile::tempdir().unwrap();
        let tables = begin(&EmbeddedOptions::new(temp.path()), at(0, 0)).unwrap();
        let of_message =
            |n: u64, state| RunRecord { key: Some(format!("\u{1}h{n}/1/0")), ..run(JOB, n, state, n as i64) };
        let success = |n| run(JOB, n, RunState::Success, n as i64);
        // The failed one has an entry of its own, all others share one.
        let records = [
            success(1),
            of_message(2, RunState::Success),
            success(3),
            of_message(4, RunState::Success),
            of_message(5, RunState::Failed),
            success(6),
        ];
        let rows: Vec<_> = records.into_iter().map(|record| (0, Row::Run(record.into()))).collect();
        tables.apply(&rows, at(1, 1)).unwrap();
        tables.keep_messages(4);
        for flushed in [false, true] {
            let went = if flushed { 0 } else { 4 };
            assert_eq!(tables.retain(100, 99).unwrap(), went, "flushed: {flushed}");
            assert_eq!(listed(&*tables), [5, 4]);
            let run_of = |n: u64| tables.find_key(JobId(JOB), &format!("\u{1}h{n}/1/0")).unwrap();
            assert_eq!((run_of(2), run_of(4), run_of(5)), (None, Some(RunId(4)), Some(RunId(5))));
            tables.flush().unwrap();
        }
        tables.keep_messages(6);
        assert_eq!(tables.retain(100, 99).unwrap(), 2);
        assert_eq!(listed(&*tables), [0; 0]);
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
