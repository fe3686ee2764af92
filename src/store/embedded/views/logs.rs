//! Output of attempts, chunk by chunk, each keyed by the byte at which it begins.

use super::{Db, keys};
use campanile_ports::StoreError;
use campanile_schema::{ids::RunId, limits};

/// Appends a chunk; what goes beyond the limit of an attempt is dropped and counted.
pub fn append(db: &Db, run: RunId, attempt: u32, chunk: &[u8]) -> Result<(), StoreError> {
    let offset = length(db, run, attempt)?;
    let room = (limits::LOG_BYTES_PER_ATTEMPT as u64).saturating_sub(offset);
    let kept = &chunk[..chunk.len().min(room as usize)];
    if kept.len() < chunk.len() {
        metrics::counter!("campanile_store_log_bytes_dropped_total").increment((chunk.len() - kept.len()) as u64);
    }
    if kept.is_empty() {
        return Ok(());
    }
    db.chunks.insert(keys::log_chunk(run, attempt, offset), kept).map_err(|e| db.failure("write", &e))
}

/// Bytes from `offset`, at most `max_bytes`.
pub fn read(db: &Db, run: RunId, attempt: u32, offset: u64, max_bytes: usize) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    for entry in db.chunks.prefix(keys::attempt_logs(run, attempt)) {
        let (key, chunk) = entry.into_inner().map_err(|e| db.failure("read", &e))?;
        let begin = keys::log_offset(&key).unwrap_or(0);
        let skip = usize::try_from(offset.saturating_sub(begin)).unwrap_or(usize::MAX);
        if let Some(rest) = chunk.get(skip..) {
            let take = rest.len().min(max_bytes - bytes.len());
            bytes.extend_from_slice(&rest[..take]);
        }
        if bytes.len() >= max_bytes {
            break;
        }
    }
    Ok(bytes)
}

/// Removes all chunks of a run.
pub fn remove(db: &Db, run: RunId) -> Result<(), StoreError> {
    let mut batch = db.logs.batch();
    for entry in db.chunks.prefix(keys::run_logs(run)) {
        batch.remove(&db.chunks, entry.key().map_err(|e| db.failure("read", &e))?);
    }
    batch.commit().map_err(|e| db.failure("write", &e))
}

/// Bytes of an attempt's log so far.
fn length(db: &Db, run: RunId, attempt: u32) -> Result<u64, StoreError> {
    let Some(entry) = db.chunks.prefix(keys::attempt_logs(run, attempt)).next_back() else {
        return Ok(0);
    };
    let (key, chunk) = entry.into_inner().map_err(|e| db.failure("read", &e))?;
    Ok(keys::log_offset(&key).unwrap_or(0) + chunk.len() as u64)
}
