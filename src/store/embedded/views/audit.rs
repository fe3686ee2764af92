//! The audit trail. Each record stands under its time, and again under its tenant, both newest first: records are few and small, and
//! neither list has to read another.

use super::{Db, keys, scan::Merge, staging::Table, stretch::Writes};
use campanile_ports::{AuditFilling, AuditPage, AuditQuery, StoreError};
use campanile_schema::{frame, limits, stored::audit::AuditRecord};
use std::{ops::Bound, sync::Arc};

/// What the table's two lists begin with.
const OF_ALL: u8 = 0;
const OF_TENANT: u8 = 1;

/// What all records of a list begin with; None: that of all records.
fn list_of(tenant: Option<&str>) -> Vec<u8> {
    match tenant {
        None => vec![OF_ALL],
        Some(tenant) => [&[OF_TENANT], keys::tenant(tenant).as_slice()].concat(),
    }
}

pub fn put(writes: &mut Writes, record: &AuditRecord) {
    let value = frame::encode(record);
    if let Some(tenant) = &record.tenant {
        writes.put(Table::Audit, keys::newest_first(&list_of(Some(tenant)), record.at_ms, record.id), &value);
    }
    writes.put(Table::Audit, keys::newest_first(&list_of(None), record.at_ms, record.id), &value);
}

pub fn list(db: &Db, query: &AuditQuery, after: Option<&[u8]>, limit: usize) -> Result<AuditPage, StoreError> {
    let (list, (at_ms, id)) = (list_of(query.tenant.as_deref()), AuditFilling::before(query, after));
    let mut filling = AuditFilling::new(query, limit.min(limits::PAGE_SIZE_MAX), limits::AUDIT_LOOKS);
    // Of a query's end everything is before it, also what has the highest id.
    let first = keys::newest_first(&list, at_ms, id);
    let first = if after.is_some() { Bound::Excluded(first) } else { Bound::Included(first) };
    for row in db.scan(Table::Audit, first, &list) {
        let record: AuditRecord = db.decode("audit record", &row?.1)?;
        if record.at_ms < query.from_ms || !filling.look(record) {
            break;
        }
    }
    Ok(filling.end())
}

/// Removes the oldest from before `before_ms`.
pub fn retain(db: &Db, before_ms: i64, max_rows: usize) -> Result<u64, StoreError> {
    let (mut writes, mut gone) = (Writes::default(), 0);
    for row in db.scan_back(Table::Audit, Bound::Excluded(vec![OF_TENANT]), &[OF_ALL]).take(max_rows) {
        let (key, value) = row?;
        let record: AuditRecord = db.decode("audit record", &value)?;
        if record.at_ms >= before_ms {
            break;
        }
        if let Some(tenant) = &record.tenant {
            writes.remove(Table::Audit, keys::newest_first(&list_of(Some(tenant)), record.at_ms, record.id));
        }
        writes.remove(Table::Audit, key);
        gone += 1;
    }
    db.staging.add(writes);
    Ok(gone)
}

/// Every record, as of the call.
pub fn all(db: &Arc<Db>) -> impl Iterator<Item = Result<AuditRecord, StoreError>> + Send + use<> {
    let of_all = |row: &Result<(fjall::Slice, fjall::Slice), _>| {
        row.as_ref().map_or(true, |(key, _)| key.first() == Some(&OF_ALL))
    };
    let rows = Merge::over(db.clone(), Table::Audit, Bound::Unbounded).take_while(of_all);
    let db = db.clone();
    rows.map(move |row| db.decode("audit record", &row?.1))
}
