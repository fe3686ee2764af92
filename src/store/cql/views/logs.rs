//! Logs of attempts: chunks keyed by the byte at which they begin. Appends to one attempt follow each other.

use super::super::{
    Core,
    connection::{Connection, RequestKind},
    error,
};
use campanile_ports::StoreError;
use campanile_schema::{ids::RunId, limits};
use scylla::response::PagingState;
use std::collections::BTreeMap;
use tokio::sync::Mutex;

const DOING: &str = "a log is read";
/// Groups of attempts of which one is appended to at a time.
const GROUPS: usize = 64;
/// Attempts of a group whose lengths are remembered; with more all are forgotten, and read again.
const REMEMBERED: usize = 1_024;

/// Bytes so far of attempts that were appended to.
pub struct Logs(Vec<Mutex<BTreeMap<(RunId, u32), u64>>>);

impl Default for Logs {
    fn default() -> Self {
        Self((0..GROUPS).map(|_| Mutex::default()).collect())
    }
}

/// Appends a chunk; what goes beyond the limit of an attempt is dropped and counted.
pub async fn append(core: &Core, run: RunId, attempt: u32, mut chunk: Vec<u8>) -> Result<(), StoreError> {
    let group = (run.0 ^ u64::from(attempt)) as usize % GROUPS;
    let mut lengths = core.logs.0[group].lock().await;
    let length = match lengths.remove(&(run, attempt)) {
        Some(length) => length,
        None => stored(&core.link, run, attempt).await?,
    };
    let room = (limits::LOG_BYTES_PER_ATTEMPT as u64).saturating_sub(length);
    let dropped = (chunk.len() as u64).saturating_sub(room);
    if dropped > 0 {
        metrics::counter!("campanile_store_log_bytes_dropped_total").increment(dropped);
        chunk.truncate(room as usize);
    }
    let end = length + chunk.len() as u64;
    if !chunk.is_empty() {
        let key = (run.0.cast_signed(), attempt.cast_signed(), length.cast_signed());
        let values = (key.0, key.1, key.2, chunk, core.history_ttl_s);
        let written = core.link.execute(RequestKind::View, &core.link.statements.put_log, values).await;
        // How long the log is now is read anew after an error.
        written.map_err(|e| error::written("a log is written", &e))?;
    }
    if lengths.len() >= REMEMBERED {
        lengths.clear();
    }
    lengths.insert((run, attempt), end);
    Ok(())
}

/// Bytes from `offset`, at most `max_bytes`.
pub async fn read(
    link: &Connection,
    run: RunId,
    attempt: u32,
    offset: u64,
    max_bytes: usize,
) -> Result<Vec<u8>, StoreError> {
    let (of, number) = (run.0.cast_signed(), attempt.cast_signed());
    let begin = i64::try_from(offset).unwrap_or(i64::MAX);
    let end = begin.saturating_add(i64::try_from(max_bytes).unwrap_or(i64::MAX));
    let mut bytes = Vec::new();
    let rows = link.rows(RequestKind::View, &link.statements.log_at, (of, number, begin), DOING).await?;
    if let Some((begins, chunk)) = rows.maybe_first_row::<(i64, Vec<u8>)>().map_err(|e| error::damaged(DOING, e))? {
        let skip = usize::try_from(begin - begins).unwrap_or(usize::MAX);
        bytes.extend_from_slice(chunk.get(skip..).unwrap_or_default());
    }
    let mut from = Some(PagingState::start());
    while let Some(begin_page) = from.take().filter(|_| bytes.len() < max_bytes) {
        let values = (of, number, begin, end);
        let (page, next) = link.page(RequestKind::View, &link.statements.log_after, values, begin_page, DOING).await?;
        for row in page.rows::<(i64, Vec<u8>)>().map_err(|e| error::damaged(DOING, e))? {
            let (_, chunk) = row.map_err(|e| error::damaged(DOING, e))?;
            bytes.extend_from_slice(&chunk);
        }
        from = next;
    }
    bytes.truncate(max_bytes);
    Ok(bytes)
}

/// Bytes of an attempt's log that are stored.
async fn stored(link: &Connection, run: RunId, attempt: u32) -> Result<u64, StoreError> {
    let values = (run.0.cast_signed(), attempt.cast_signed());
    let rows = link.rows(RequestKind::View, &link.statements.log_end, values, DOING).await?;
    let last = rows.maybe_first_row::<(i64, Vec<u8>)>().map_err(|e| error::damaged(DOING, e))?;
    Ok(last.map_or(0, |(begins, chunk)| begins.cast_unsigned() + chunk.len() as u64))
}
