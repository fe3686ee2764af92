//! Look-ups of one row.

use super::{Db, keys, staging::Table};
use campanile_ports::StoreError;
use campanile_schema::ids::{JobId, RunId};

/// The run of a caller's key.
pub fn find_key(db: &Db, job: JobId, key: &str) -> Result<Option<RunId>, StoreError> {
    let value = db.get(Table::Keys, &keys::caller_key(job, key))?;
    value.map(|v| run_id(db, &v)).transpose()
}

/// A run id as `keys` stores it.
pub fn run_id(db: &Db, value: &[u8]) -> Result<RunId, StoreError> {
    let bytes: [u8; 8] = value
        .try_into()
        .map_err(|_| StoreError::Corrupt(format!("{}: a run id of {} bytes", db.dir.display(), value.len())))?;
    Ok(RunId(u64::from_be_bytes(bytes)))
}
