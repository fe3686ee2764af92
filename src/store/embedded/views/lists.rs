//! Pages of runs and of a job's ledger. An entry of a list counts only if the run's own row agrees with it.

use super::{Db, keys, ledger_from, staging::Table, write};
use crate::store::tables::TenantList;
use campanile_actors::ports::{LedgerRow, RunPage, StoreError};
use campanile_schema::{ids::JobId, limits, record::RunRecord};
use std::ops::Bound;

/// Final runs of a job, newest first.
pub fn job_runs(db: &Db, job: JobId, after: Option<&[u8]>, limit: usize) -> Result<RunPage, StoreError> {
    let prefix = job.0.to_be_bytes();
    page(db, Table::JobRuns, &prefix, after, limit, |key| {
        let Some(run) = keys::run_of_job_run(key) else {
            return Ok(None);
        };
        Ok(db.record(run)?.filter(|r| r.state.is_final()))
    })
}

/// A tenant's list, newest first.
pub fn tenant_runs(
    db: &Db,
    list: TenantList,
    tenant: &str,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<RunPage, StoreError> {
    let prefix = keys::tenant(tenant);
    page(db, write::list(list), &prefix, after, limit, |key| {
        let Some((ended, run)) = keys::of_tenant_run(key) else {
            return Ok(None);
        };
        Ok(db.record(run)?.filter(|r| r.ended_ms == Some(ended) && list.holds(r)))
    })
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
    record: impl Fn(&[u8]) -> Result<Option<RunRecord>, StoreError>,
) -> Result<RunPage, StoreError> {
    let from = match after {
        Some(token) => Bound::Excluded([prefix, token].concat()),
        None => Bound::Included(prefix.to_vec()),
    };
    let limit = limit.clamp(1, limits::PAGE_SIZE_MAX);
    let mut page = RunPage::default();
    let mut last = Vec::new();
    for entry in db.scan(table, from, prefix) {
        let (key, _) = entry?;
        let Some(record) = record(&key)? else {
            continue;
        };
        if page.items.len() == limit {
            page.next = Some(last);
            break;
        }
        last = key[prefix.len()..].to_vec();
        page.items.push(record);
    }
    Ok(page)
}
