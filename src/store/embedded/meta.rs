//! What a directory says about itself: `FORMAT` (what it is), `SESSION` (how often it was started).

use crate::file::{Files, SyncSite, stamped};
use campanile_ports::StoreError;
use campanile_schema::{
    format::{EVENT_FORMAT, FormatRow, Formats, WIRE_FORMAT},
    ids::{ClusterId, SessionId},
    stored::directory::{Directory, Starts},
};
use std::{
    io,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// Newest form of the read model that this release reads, and the one it writes. 2: a scheduled run is two rows (docs/adr/0026).
pub const VIEWS_FORMAT: u32 = 2;

const ADVICE: &str = "The directory cannot be used as it is: restore it from a backup";

/// Reads `FORMAT`; None when the directory was never made a store.
pub fn read_format(files: &dyn Files, dir: &Path) -> Result<Option<FormatRow>, StoreError> {
    Ok(read_directory(files, dir)?.map(|directory| directory.row))
}

/// Like [`read_format`], by one who writes: from here on releases that do not know our form of the read model refuse the directory.
pub fn claim_format(files: &dyn Files, dir: &Path) -> Result<Option<FormatRow>, StoreError> {
    let Some(directory) = read_directory(files, dir)? else { return Ok(None) };
    if directory.views_format < VIEWS_FORMAT {
        write_format(files, dir, &directory.row)
            .map_err(|e| StoreError::WriteFailed(format!("{}: {e}", dir.join("FORMAT").display())))?;
    }
    Ok(Some(directory.row))
}

/// The formats of this release for a directory that an earlier one made, once it could be opened: releases that do not know them refuse it
/// from then on. None: it has them.
pub fn raise_format(files: &dyn Files, dir: &Path, row: &FormatRow) -> Result<Option<FormatRow>, StoreError> {
    let raised = row.formats().newest(Formats::OURS);
    if raised == row.formats() {
        return Ok(None);
    }
    tracing::warn!(
        directory = %dir.display(),
        from = row.event_format,
        to = raised.event,
        "this release writes the directory in a newer event format from now on, and earlier releases will refuse it; to be able to go back, \
         keep a backup that was made before this start (campanile store backup)"
    );
    let row = FormatRow { event_format: raised.event, wire_format: raised.wire, ..row.clone() };
    // Its name too: what is written from now on must not stand behind the old one.
    write_format(files, dir, &row)
        .and_then(|()| files.sync_dir(dir, SyncSite::CreateDirs))
        .map_err(|e| StoreError::WriteFailed(format!("{}: {e}", dir.join("FORMAT").display())))?;
    Ok(Some(row))
}

fn read_directory(files: &dyn Files, dir: &Path) -> Result<Option<Directory>, StoreError> {
    let path = dir.join("FORMAT");
    let Some(directory) = stamped::read::<Directory>(files, &path, ADVICE)? else { return Ok(None) };
    let row = &directory.row;
    row.check().map_err(|e| StoreError::Refused(format!("{}: {e}", path.display())))?;
    if directory.views_format > VIEWS_FORMAT {
        return Err(StoreError::Refused(format!(
            "{}: its read model is written in form {}; this release knows {VIEWS_FORMAT}. Start a release that is at least as new as the one \
             that wrote it",
            path.display(),
            directory.views_format
        )));
    }
    if !row.shards.is_power_of_two() {
        return Err(StoreError::Corrupt(format!("{}: offset 0: {} shards. {ADVICE}", path.display(), row.shards)));
    }
    Ok(Some(directory))
}

/// Writes `FORMAT`: from here on the directory is a store.
pub fn write_format(files: &dyn Files, dir: &Path, row: &FormatRow) -> io::Result<()> {
    write_directory(files, dir, Directory { row: row.clone(), views_format: VIEWS_FORMAT })
}

fn write_directory(files: &dyn Files, dir: &Path, directory: Directory) -> io::Result<()> {
    stamped::write(files, &dir.join("FORMAT"), &directory, SyncSite::FormatFile, None)
}

/// As another release leaves it.
#[cfg(test)]
pub fn write_views_format(files: &dyn Files, dir: &Path, views_format: u32) {
    let directory = read_directory(files, dir).ok().flatten();
    let written = directory.map(|directory| write_directory(files, dir, Directory { views_format, ..directory }));
    assert!(matches!(written, Some(Ok(()))), "{written:?}");
}

/// Of the directory as it is.
#[cfg(test)]
pub fn views_format(files: &dyn Files, dir: &Path) -> Option<u32> {
    read_directory(files, dir).ok().flatten().map(|directory| directory.views_format)
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
