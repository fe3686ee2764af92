//! Makes an empty directory a store that stands where another one was: as if its journal had been trimmed up to the cut.
//!
//! Until all is there the directory holds the file `RESTORING`: nobody opens it, and the next restore begins anew.

use super::{
    EmbeddedOptions, EmbeddedStore, history, make_shard_dirs, meta,
    recovery::TrimMark,
    segment::{LogPosition, PAGE, SegmentHeader, encode_header, file_name},
    take_lock,
    views::FjallSource,
};
use crate::{
    embedded::TableSource,
    file::{Files, Lock, Open, SyncSite, read_whole, real::RealFiles, stamped},
    progress::Progress,
};
use campanile_ports::{Opened, Position, StoreError, private};
use campanile_schema::{
    format::FormatRow,
    ids::SessionId,
    limits::{RESTORED_SESSIONS, STORE_SMALL_FILE_BYTES},
};
use std::{fs, io, path::Path, sync::Arc};

const MARKER: &str = "RESTORING";

/// Segments before it were never there.
const FIRST_SEGMENT: u64 = 2;

/// Holds where a directory's content went.
const MOVED: &str = "MOVED";

/// Refuses a directory whose restore has not come to its end, or whose content is elsewhere.
pub(super) fn refuse_marked(files: &dyn Files, dir: &Path) -> Result<(), StoreError> {
    let there = |name: &str| {
        let found = files.exists(&dir.join(name));
        found.map_err(|e| StoreError::Unavailable(format!("cannot read {}: {e}", dir.display())))
    };
    if there(MARKER)? {
        return Err(StoreError::Refused(format!(
            "{}: a restore into this directory did not come to its end. Run `campanile store restore` again; it begins anew",
            dir.display()
        )));
    }
    if there(MOVED)? {
        let whereto = read_whole(files, &dir.join(MOVED), STORE_SMALL_FILE_BYTES).unwrap_or_default();
        return Err(StoreError::Refused(format!(
            "{}: what is in it was moved to {}, and would fire twice. To go back to the time before, remove the file {MOVED}",
            dir.display(),
            String::from_utf8_lossy(&whereto).trim_end()
        )));
    }
    Ok(())
}

/// Nobody starts the directory any more.
pub fn mark_moved(dir: &Path, whereto: &str) -> Result<(), StoreError> {
    let path = dir.join(MOVED);
    let done = private::put_file(dir, MOVED, format!("{whereto}\n").as_bytes());
    done.map_err(|e| StoreError::WriteFailed(format!("cannot write {}: {e}", path.display())))
}

/// A directory that is being filled.
pub struct NewDirectory {
    pub store: Arc<EmbeddedStore>,
    pub opened: Opened,
    options: EmbeddedOptions,
}

impl NewDirectory {
    /// Begins one. `was`: the format of the store that the archive is of; the number of shards is that of `options`, the cluster's id
    /// stays. Its session is above all that the other store may have begun after the backup.
    pub fn begin(mut options: EmbeddedOptions, was: &FormatRow, cut: Position) -> Result<Self, StoreError> {
        options.cluster_id = Some(was.cluster_id);
        let dir = options.dir.clone();
        let files = RealFiles;
        refuse_full(&dir)?;
        let lock = take_lock(&files, &dir)?;
        let session = SessionId(cut.session.0 + RESTORED_SESSIONS);
        prepare(&files, &options, cut, session, &*lock)
            .map_err(|e| StoreError::WriteFailed(format!("cannot make a store in {}: {e}", dir.display())))?;
        FjallSource.begin(&options, cut)?;
        let (store, opened) = EmbeddedStore::open_locked(Arc::new(files), &options, &FjallSource, lock)?;
        Ok(Self { store, opened, options })
    }

    /// All is there, durably: the directory is a store.
    pub fn finish(self) -> Result<(), StoreError> {
        let dir = &self.options.dir;
        let done = fs::remove_file(dir.join(MARKER)).and_then(|()| RealFiles.sync_dir(dir, SyncSite::CreateDirs));
        done.map_err(|e| StoreError::WriteFailed(format!("{}: cannot end the restore: {e}", dir.display())))
    }

    /// It cannot be finished: the directory is empty again, as far as it can be emptied.
    pub fn give_up(self) {
        let dir = self.options.dir.clone();
        drop(self);
        // What stays is marked, and goes with the next restore.
        let _ = empty(&dir).and_then(|()| fs::remove_file(dir.join(MARKER)));
    }
}

/// Only what an unfinished restore left may be there.
fn refuse_full(dir: &Path) -> Result<(), StoreError> {
    let names: Vec<String> = match fs::read_dir(dir) {
        Ok(entries) => entries.filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned())).collect(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(StoreError::Unavailable(format!("cannot read {}: {e}", dir.display()))),
    };
    if names.iter().any(|name| name == MARKER) {
        return Ok(());
    }
    match names.iter().find(|name| *name != "LOCK") {
        None => Ok(()),
        Some(name) => Err(StoreError::Refused(format!(
            "{}: not empty (there is '{name}'). Name an empty directory, or one that does not exist",
            dir.display()
        ))),
    }
}

/// Removes everything but the lock, and the marker last.
fn empty(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "LOCK" || name == MARKER {
            continue;
        }
        if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
    }
    Ok(())
}

fn prepare(
    files: &dyn Files,
    options: &EmbeddedOptions,
    cut: Position,
    session: SessionId,
    _held: &dyn Lock,
) -> io::Result<()> {
    let dir = &options.dir;
    private::options().create(true).truncate(true).open(dir.join(MARKER))?.sync_all()?;
    files.sync_dir(dir, SyncSite::CreateDirs)?;
    empty(dir)?;
    let format = meta::new_format(options.shards, options.cluster_id).map_err(io::Error::other)?;
    let log = dir.join("log");
    files.make_dirs(&log)?;
    make_shard_dirs(files, dir, options.shards)?;
    let mut trim = TrimMark::BEGINNING;
    if cut > Position::default() {
        trim = TrimMark { first_segment: FIRST_SEGMENT, upto: cut };
        let header = SegmentHeader {
            number: FIRST_SEGMENT,
            session,
            previous_end: LogPosition { segment: FIRST_SEGMENT - 1, offset: PAGE },
            previous: cut,
        };
        let file = files.open(&log.join(file_name(FIRST_SEGMENT)), Open::Create)?;
        file.write_at(&encode_header(&header, format.cluster_id), 0)?;
        file.sync_data(SyncSite::SegmentHeader)?;
        files.sync_dir(&log, SyncSite::SegmentDir)?;
    }
    stamped::write(files, &log.join("TRIM"), &trim, SyncSite::TrimFile, Some(SyncSite::TrimDir))?;
    history::write_mark(files, dir, &Progress { position: cut, applied: Vec::new() })?;
    meta::write_session(files, dir, session)?;
    files.sync_dir(dir, SyncSite::CreateDirs)?;
    meta::write_format(files, dir, &format)
}
