//! Pages of runs and of a job's ledger. An entry of a list counts only if the run's own row agrees with it.

use super::{Db, keys, ledger_from, staging::Table, write};
use crate::store::tables::TenantList;
use campanile_actors::ports::{LedgerRow, RunPage, StoreError};
use campanile_schema::{
    ids::{JobId, RunId},
    limits,
    record::RunRecord,
};
use fjall::Slice;
use std::ops::Bound;

/// Final runs of a job, newest first.
pub fn job_runs(db: &Db, job: JobId, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError> {
    let entry = |key: &[u8]| keys::run_of_job_run(key).map(|run| (0, run));
    page(db, Table::JobRuns, &job.0.to_be_bytes(), after, limit, entry, |_, record| record.state.is_final())
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
    let mut rows = Vec::new();
    for entry in db.scan(Table::Ledger, Bound::Included(first.to_vec()), &prefix) {
        let (_, value) = entry?;
        if rows.len() >= limit.min(limits::PAGE_SIZE_MAX) {
            break;
        }
        let row: LedgerRow = db.decode("ledger row", &value)?;
        if row.from_ms >= to_ms {
            break;
        }
        rows.push(row);
    }
    Ok(rows)
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
