//! The audit trail, newest first. It is few rows in many hours, so several partitions are asked at once.

use super::{
    super::{Core, connection::RequestKind, error},
    places::{EVERY_TENANT, audit_bucket},
    read::{DOING, buckets, decode},
};
use campanile_ports::{AuditFilling, AuditPage, AuditQuery, StoreError};
use campanile_schema::{limits, stored::audit::AuditRecord};
use futures_util::future::try_join_all;

/// Partitions that are asked at once.
const BUCKETS_AT_ONCE: usize = 8;
/// Rows that one request asks for, at most.
const ROWS: usize = 1_000;

/// Time and id of a record, as rows have them.
type RecordKey = (i64, i64);

pub async fn list(
    core: &Core,
    query: &AuditQuery,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<AuditPage, StoreError> {
    let list = query.tenant.as_deref().unwrap_or(EVERY_TENANT);
    let (at_ms, id) = AuditFilling::before(query, after);
    // No id is that high, so that this one is above all of them.
    let before = (at_ms, i64::try_from(id).unwrap_or(i64::MAX));
    let limit = limit.clamp(1, limits::PAGE_SIZE_MAX);
    let mut filling = AuditFilling::new(query, limit, limits::AUDIT_LOOKS);
    let mut hours = buckets(core, &core.link.statements.read_audit_buckets, list).await?;
    hours.retain(|hour| (audit_bucket(query.from_ms)..=audit_bucket(before.0)).contains(hour));
    hours.reverse();
    let rows = (limit + 1).min(ROWS);
    for some in hours.chunks(BUCKETS_AT_ONCE) {
        let first = try_join_all(some.iter().map(|hour| records(core, list, *hour, before, rows))).await?;
        for (hour, mut found) in some.iter().zip(first) {
            loop {
                let (count, last) = (found.len(), found.last().map(|(place, _)| *place));
                for (_, record) in found {
                    if record.at_ms < query.from_ms || !filling.look(record) {
                        return Ok(filling.end());
                    }
                }
                match last.filter(|_| count == rows) {
                    Some(last) => found = records(core, list, *hour, last, rows).await?,
                    None => break,
                }
            }
        }
    }
    Ok(filling.end())
}

/// Of one hour, those before a place.
async fn records(
    core: &Core,
    list: &str,
    hour: i64,
    before: RecordKey,
    rows: usize,
) -> Result<Vec<(RecordKey, AuditRecord)>, StoreError> {
    let values = (list, hour, before.0, before.1, i32::try_from(rows).unwrap_or(i32::MAX));
    let found = core.link.rows(RequestKind::View, &core.link.statements.read_audit, values, DOING).await?;
    let found = found.rows::<(i64, i64, Vec<u8>)>().map_err(|e| error::damaged(DOING, e))?;
    let record = |row: Result<(i64, i64, Vec<u8>), _>| {
        let (at_ms, id, bytes) = row.map_err(|e| error::damaged(DOING, e))?;
        Ok(((at_ms, id), decode("audit record", &bytes)?))
    };
    found.map(record).collect()
}
