//! What a directory says about itself: `FORMAT` (what it is), `SESSION` (how often it was started).

use crate::store::file::{Files, SyncSite, stamped};
use campanile_actors::ports::StoreError;
use campanile_schema::{
    format::{EVENT_FORMAT, FormatRow, WIRE_FORMAT},
    ids::{ClusterId, SessionId},
};
use serde::{Deserialize, Serialize};
use std::{
    io,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// The file `SESSION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Starts {
    starts: SessionId,
}

const ADVICE: &str = "The directory cannot be used as it is: restore it from a backup";

/// Reads `FORMAT`; None when the directory was never made a store.
pub fn read_format(files: &dyn Files, dir: &Path) -> Result<Option<FormatRow>, StoreError> {
    let row: Option<FormatRow> = stamped::read(files, &dir.join("FORMAT"), ADVICE)?;
    if let Some(row) = &row {
        row.check().map_err(|e| StoreError::Refused(format!("{}: {e}", dir.join("FORMAT").display())))?;
        if !row.shards.is_power_of_two() {
            let path = dir.join("FORMAT");
            return Err(StoreError::Corrupt(format!("{}: offset 0: {} shards. {ADVICE}", path.display(), row.shards)));
        }
    }
    Ok(row)
}

/// Writes `FORMAT`: from here on the directory is a store.
pub fn write_format(files: &dyn Files, dir: &Path, row: &FormatRow) -> io::Result<()> {
    stamped::write(files, &dir.join("FORMAT"), row, SyncSite::FormatFile, None)
}

/// A format row for a new directory.
pub fn new_format(shards: u16, cluster: Option<ClusterId>) -> Result<FormatRow, StoreError> {
    if !shards.is_power_of_two() || u64::from(shards) > campanile_schema::ids::SLOTS {
        return Err(StoreError::Refused(format!(
            "shards = {shards}: must be a power of two, at most {}",
            campanile_schema::ids::SLOTS
        )));
    }
    let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(FormatRow {
        event_format: EVENT_FORMAT,
        wire_format: WIRE_FORMAT,
        cluster_id: match cluster {
            Some(id) => id,
            None => draw_cluster()?,
        },
        shards,
        created_ms: i64::try_from(created.as_millis()).unwrap_or(i64::MAX),
    })
}

fn draw_cluster() -> Result<ClusterId, StoreError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|e| StoreError::Unavailable(format!("the operating system gives no random numbers: {e}")))?;
    // JSON carries numbers below 2^53.
    Ok(ClusterId(u64::from_le_bytes(bytes) >> 11))
}

/// Number of starts so far.
pub fn read_session(files: &dyn Files, dir: &Path) -> Result<SessionId, StoreError> {
    let path = dir.join("SESSION");
    let starts: Option<Starts> = stamped::read(files, &path, ADVICE)?;
    starts
        .map(|s| s.starts)
        .ok_or_else(|| StoreError::Corrupt(format!("{}: offset 0: the file is missing. {ADVICE}", path.display())))
}

/// Makes a session's number durable; only then may it be used.
pub fn write_session(files: &dyn Files, dir: &Path, session: SessionId) -> io::Result<()> {
    let starts = Starts { starts: session };
    stamped::write(files, &dir.join("SESSION"), &starts, SyncSite::SessionFile, Some(SyncSite::SessionDir))
}
