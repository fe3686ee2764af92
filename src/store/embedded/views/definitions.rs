//! Versions of definitions, newest first within a job. A bounded number of each job, and none of a job that was deleted.

use super::{Db, keys, scan::Merge, staging::Table, stretch::Writes};
use campanile_ports::{DefinitionRow, Row, StoreError};
use campanile_schema::{frame, ids::JobId, limits};
use std::{ops::Bound, sync::Arc};

/// Versions rise by one, so the one that is too many is known.
pub fn put(writes: &mut Writes, row: &DefinitionRow) {
    writes.put(Table::Definitions, keys::definition(row.job, row.version), frame::encode(row));
    if let Some(gone) = row.version.checked_sub(limits::DEFINITIONS_KEPT) {
        writes.remove(Table::Definitions, keys::definition(row.job, gone));
    }
}

pub fn list(db: &Db, job: JobId, before: Option<u64>, limit: usize) -> Result<Vec<DefinitionRow>, StoreError> {
    let first = Bound::Excluded(keys::definition(job, before.unwrap_or(u64::MAX)).to_vec());
    let prefix = job.0.to_be_bytes();
    let rows = db.scan(Table::Definitions, first, &prefix);
    rows.take(limit.min(limits::PAGE_SIZE_MAX)).map(|row| db.decode("definition", &row?.1)).collect()
}

/// The job was deleted: what is stored of it goes, and what stands before it in its batch.
pub fn forget(db: &Db, writes: &mut Writes, earlier: &[(u64, Row)], job: JobId) -> Result<(), StoreError> {
    let prefix = job.0.to_be_bytes();
    for row in db.scan(Table::Definitions, Bound::Included(prefix.to_vec()), &prefix) {
        writes.remove(Table::Definitions, row?.0);
    }
    for (_, row) in earlier {
        if let Row::Defined(row) = row
            && row.job == job
        {
            writes.remove(Table::Definitions, keys::definition(job, row.version));
        }
    }
    Ok(())
}

/// Every version, as of the call.
pub fn all(db: &Arc<Db>) -> impl Iterator<Item = Result<DefinitionRow, StoreError>> + Send + use<> {
    let rows = Merge::over(db.clone(), Table::Definitions, Bound::Unbounded);
    let db = db.clone();
    rows.map(move |row| db.decode("definition", &row?.1))
}
