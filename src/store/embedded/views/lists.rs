//! Pages of runs and of a job's ledger. An entry of a list counts only if the run's own row agrees with it.

use super::{Db, keys, ledger_from, merged::Merged, staging::Table, write};
use crate::tables::{SHORT_RUN_MS, TenantList};
use campanile_ports::{LedgerRow, RunPage, StoreError};
use campanile_schema::{
    ids::{JobId, RunId},
    limits,
    record::RunRecord,
};
use fjall::Slice;
use std::ops::Bound;

/// Behind which entries a page of a job's list begins. The token that callers carry is both: the run as its key has it, and the instant.
struct Mark {
    run: RunId,
    /// Of the last entry from `fires`.
    fired_ms: i64,
}

impl Mark {
    const NEWEST: Self = Self { run: RunId(u64::MAX), fired_ms: i64::MAX };

    fn token(&self) -> Vec<u8> {
        [(!self.run.0).to_be_bytes(), self.fired_ms.to_be_bytes()].concat()
    }

    /// One of a release before has no instant.
    fn of(token: &[u8]) -> Option<Self> {
        let (run, rest) = token.split_first_chunk()?;
        let fired_ms = rest.first_chunk().map_or(i64::MAX, |fired_ms| i64::from_be_bytes(*fired_ms));
        Some(Self { run: RunId(!u64::from_be_bytes(*run)), fired_ms })
    }
}

/// Final runs of a job, newest first: those that a schedule started by the intervals that they closed, the others by entries of their own.
/// Ids rise with time in both.
pub fn job_runs(db: &Db, job: JobId, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError> {
    let mut mark = after.and_then(Mark::of).unwrap_or(Mark::NEWEST);
    let (before, prefix) = (mark.run, job.0.to_be_bytes());
    let hidden = ledger_from(db).saturating_sub(SHORT_RUN_MS);
    let upto = Bound::Excluded(keys::ledger_at(job, mark.fired_ms).to_vec());
    let fires = db
        .scan_back(Table::Fires, upto, &prefix)
        .map(|row| row.and_then(|row| db.fire(&row)))
        .take_while(|entry| entry.as_ref().map_or(true, |(_, at)| at.is_some_and(|at| at >= hidden)))
        .skip_while(|entry| entry.as_ref().is_ok_and(|(run, _)| *run >= before));
    let own = db.scan(Table::JobRuns, Bound::Excluded(keys::job_run(job, before).to_vec()), &prefix);
    let own = own.filter_map(|row| row.map(|(key, _)| Some((keys::run_of_job_run(&key)?, None))).transpose());
    let mut entries = Merged::new(fires, own, |(a, _): &(RunId, _), (b, _)| b.cmp(a));
    let limit = limit.clamp(1, limits::PAGE_SIZE_MAX);
    let mut page = RunPage::default();
    let mut last = Vec::new();
    loop {
        // One more than the page holds: it tells whether there is a next one.
        let some: Vec<_> = entries.by_ref().take(limit + 1 - page.items.len()).collect::<Result<_, _>>()?;
        if some.is_empty() {
            return Ok(page);
        }
        let runs: Vec<RunId> = some.iter().map(|(run, _)| *run).collect();
        for ((run, fired_ms), record) in some.into_iter().zip(db.records(&runs)?) {
            mark = Mark { run, fired_ms: fired_ms.unwrap_or(mark.fired_ms) };
            let Some(record) = record.filter(|record| record.state.is_final()) else { continue };
            if page.items.len() == limit {
                page.next = Some(last);
                return Ok(page);
            }
            last = mark.token();
            page.items.push(record);
        }
    }
}

/// A tenant's list, newest first.
pub fn tenant_runs(
    db: &Db,
    list: TenantList,
    tenant: &str,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<RunPage, StoreError> {
    let counts = |ended: i64, record: &RunRecord| record.ended_ms == Some(ended) && list.holds(record);
    page(db, write::list(list), &keys::tenant(tenant), after, limit, keys::of_tenant_run, counts)
}

/// Intervals of a job that touch `(from, to]`, oldest first.
pub fn ledger(db: &Db, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> Result<Vec<LedgerRow>, StoreError> {
    // Intervals join without gap or overlap, so those that touch are the ones that end after `from` and begin before `to`.
    let hidden = ledger_from(db).saturating_sub(1);
    let first = keys::ledger_at(job, from_ms.max(hidden).saturating_add(1));
    let prefix = job.0.to_be_bytes();
    let part = |table| db.scan(table, Bound::Included(first.to_vec()), &prefix);
    let fires = part(Table::Fires).map(|row| row.and_then(|row| db.fired_interval(&row)));
    let others = part(Table::Ledger).map(|row| row.and_then(|(_, value)| db.decode::<LedgerRow>("ledger row", &value)));
    // In the order of keys: of those with one end the shortest first.
    let order = |a: &LedgerRow, b: &LedgerRow| a.to_ms.cmp(&b.to_ms).then(b.from_ms.cmp(&a.from_ms));
    Merged::new(fires, others, order)
        .take(limit)
        .take_while(|row| row.as_ref().map_or(true, |row| row.from_ms < to_ms))
        .collect()
}

/// Entries with `prefix` after the token of the page before. A token is what follows the prefix in the last key.
fn page(
    db: &Db,
    table: Table,
    prefix: &[u8],
    after: Option<&[u8]>,
    limit: usize,
    entry: impl Fn(&[u8]) -> Option<(i64, RunId)>,
    counts: impl Fn(i64, &RunRecord) -> bool,
) -> Result<RunPage, StoreError> {
    let from = match after {
        Some(token) => Bound::Excluded([prefix, token].concat()),
        None => Bound::Included(prefix.to_vec()),
    };
    let limit = limit.clamp(1, limits::PAGE_SIZE_MAX);
    let mut page = RunPage::default();
    let mut last = Vec::new();
    let mut keys = db.scan(table, from, prefix).map(|row| row.map(|(key, _)| key));
    loop {
        // One more than the page holds: it tells whether there is a next one.
        let some: Vec<Slice> = keys.by_ref().take(limit + 1 - page.items.len()).collect::<Result<_, _>>()?;
        if some.is_empty() {
            return Ok(page);
        }
        let entries: Vec<(&Slice, (i64, RunId))> = some.iter().filter_map(|key| Some((key, entry(key)?))).collect();
        let runs: Vec<RunId> = entries.iter().map(|(_, (_, run))| *run).collect();
        for ((key, (at, _)), record) in entries.into_iter().zip(db.records(&runs)?) {
            let Some(record) = record.filter(|record| counts(at, record)) else { continue };
            if page.items.len() == limit {
                page.next = Some(last);
                return Ok(page);
            }
            last = key[prefix.len()..].to_vec();
            page.items.push(record);
        }
    }
}
