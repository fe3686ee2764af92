//! Versions of definitions, newest first within a job.

use super::{
    super::{Core, connection::RequestKind, error},
    places::definitions_range,
    read::{DOING, decode},
};
use campanile_ports::{DefinitionRow, StoreError};
use campanile_schema::{ids::JobId, limits};

pub async fn list(
    core: &Core,
    job: JobId,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<DefinitionRow>, StoreError> {
    let before = before.map_or(i64::MAX, u64::cast_signed);
    let limit = i32::try_from(limit.min(limits::PAGE_SIZE_MAX)).unwrap_or(i32::MAX);
    let values = (core.shard_of(job), definitions_range(job), job.0.cast_signed(), before, limit);
    let rows = core.link.rows(RequestKind::View, &core.link.statements.read_definitions, values, DOING).await?;
    let rows = rows.rows::<(&[u8],)>().map_err(|e| error::damaged(DOING, e))?;
    rows.map(|row| decode("definition", row.map_err(|e| error::damaged(DOING, e))?.0)).collect()
}
