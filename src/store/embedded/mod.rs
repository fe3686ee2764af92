//! The embedded store: one directory, no server.
//!
//! ```text
//! LOCK      held while a process uses the directory
//! FORMAT    what the directory is: format versions, also of the read model, cluster id, number of shards
//! SESSION   how often it was started; never goes back
//! FLUSHED   how far the views' tables are durable
//! log/      the journal: segments, TRIM
//! snap/     a directory per shard: snapshot parts, MANIFEST
//! views/    the read model (rebuildable while the journal reaches back far enough)
//! logs/     output of attempts
//! MOVED     what was in it is in a cluster's store now
//! RESTORING while an archive is being restored into it: nobody may use it yet
//! ```
//!
//! The journal is the truth; snapshots and flushed views allow it to be trimmed; nothing else is on the way of an
//! acknowledgement. What this never does: retry a failed write, or trust the view's own journal.

mod backup;
pub mod check;
mod damage;
mod ended;
mod history;
pub mod log;
pub mod meta;
mod ports;
mod reader;
pub mod recovery;
pub mod restore;
pub mod segment;
mod shrink;
pub mod snapshots;
pub mod views;

#[cfg(test)]
mod tests;

pub use self::history::TableSource;
use self::{
    log::Log,
    recovery::{Expect, TrimMark},
    shrink::Shrinking,
    snapshots::SnapshotFiles,
};
use crate::{
    blocking::Blocking,
    file::{Files, Lock, SyncSite, read_whole, real::RealFiles, stamped},
    progress::Progress,
    tables::Tables,
};
use campanile_ports::{DiskRoom, Opened, Position, StoreError};
use campanile_schema::{
    format::FormatRow,
    ids::{ClusterId, SessionId, ShardId},
    limits,
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Shards of a new directory: one node uses it, and with 256 a trigger cost it half to three quarters more (docs/performance.md).
pub const SHARDS: u16 = 16;

/// How an embedded directory is opened.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The directory; made when missing. Everything the store keeps is in it.
    pub dir: PathBuf,
    /// Number of shards of a new directory: a power of two, at most 4096. An existing directory keeps its own.
    pub shards: u16,
    /// Bytes of a journal segment, at least 16 KiB and more than four times the largest batch. Larger ones mean fewer
    /// files; space is freed by whole segments.
    pub segment_bytes: u64,
    /// Bytes of memory for blocks of the views' tables that were read.
    pub views_cache_bytes: u64,
    /// Bytes that the largest of the views' tables collects in memory before it is written out; the others take less.
    /// All of them together hold about three times this, five times that when the disk cannot follow.
    pub views_memtable_bytes: u64,
    /// Threads that write the views' tables out and compact them. With more than one, one of them asks in a busy loop while
    /// another compacts (fjall 3.1), which costs a core; with one, the views lag a little more behind a compaction.
    pub views_workers: usize,
    /// When the views are lost and the journal no longer reaches back to its beginning, go on without the history that
    /// cannot be rebuilt, instead of refusing to start.
    pub accept_history_loss: bool,
    /// Write a directory of an earlier release in the formats of this one from now on: for a node that serves it. Whoever only reads it, as
    /// a backup of a stopped node, leaves it to its release.
    pub raise_format: bool,
    /// Cluster id of a new directory; None = drawn at random. Only tests name one.
    pub cluster_id: Option<ClusterId>,
}

impl EmbeddedOptions {
    /// The defaults, for a directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            shards: SHARDS,
            segment_bytes: 64 << 20,
            views_cache_bytes: 16 << 20,
            views_memtable_bytes: 32 << 20,
            views_workers: if std::thread::available_parallelism().is_ok_and(|n| n.get() > 2) { 2 } else { 1 },
            accept_history_loss: false,
            raise_format: false,
            cluster_id: None,
        }
    }
}

/// Bytes that the parts of a directory use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DiskUsage {
    pub journal: u64,
    pub snapshots: u64,
    /// Views and logs of attempts.
    pub views: u64,
}

/// The store of one directory. Cheap to clone through its `Arc`.
pub struct EmbeddedStore {
    inner: Arc<Inner>,
    // Gates of their own, so that a page of runs does not wait behind the snapshots of all shards.
    reads: Blocking,
    view_calls: Blocking,
    snapshot_calls: Blocking,
    log_calls: Blocking,
}

struct Inner {
    files: Arc<dyn Files>,
    dir: PathBuf,
    format: FormatRow,
    log: Mutex<Log>,
    /// The session that the log is open for.
    session: AtomicU64,
    /// Held by whoever trims.
    trimmer: Mutex<()>,
    /// Kept beside the log so that asking never waits for an append.
    journal_bytes: AtomicU64,
    snapshots: SnapshotFiles,
    tables: Arc<dyn Tables>,
    /// Held by whoever applies rows: one committer at a time.
    committer: Mutex<()>,
    progress: Mutex<Progress>,
    /// Held by whoever flushes.
    flusher: Mutex<()>,
    flushed: Mutex<Progress>,
    shrinking: Shrinking,
    _lock: Box<dyn Lock>,
}

impl EmbeddedStore {
    /// Opens the directory for this process alone and begins a session.
    pub fn open(options: EmbeddedOptions) -> Result<(Arc<Self>, Opened), StoreError> {
        Self::open_on(Arc::new(RealFiles), &options, &views::FjallSource)
    }

    /// Opens on other files and tables than those of the operating system.
    pub fn open_on(
        files: Arc<dyn Files>,
        options: &EmbeddedOptions,
        source: &dyn TableSource,
    ) -> Result<(Arc<Self>, Opened), StoreError> {
        let lock = take_lock(files.as_ref(), &options.dir)?;
        restore::refuse_marked(files.as_ref(), &options.dir)?;
        Self::open_locked(files, options, source, lock)
    }

    fn open_locked(
        files: Arc<dyn Files>,
        options: &EmbeddedOptions,
        source: &dyn TableSource,
        lock: Box<dyn Lock>,
    ) -> Result<(Arc<Self>, Opened), StoreError> {
        let dir = &options.dir;
        let format = match meta::claim_format(files.as_ref(), dir)? {
            Some(row) => row,
            None => create(files.as_ref(), options)?,
        };
        let session = begin_session(files.as_ref(), dir)?;
        let snapshots = SnapshotFiles::new(Arc::clone(&files), &dir.join("snap"));
        make_shard_dirs(files.as_ref(), dir, format.shards)
            .map_err(|e| StoreError::Unavailable(format!("{}: {e}", dir.display())))?;
        let mark = history::read_mark(files.as_ref(), dir)?;
        let mut floor = mark.as_ref().map(|m| m.position).unwrap_or_default();
        for shard in 0..format.shards {
            if let Some(manifest) = snapshots.inherit(ShardId(shard))? {
                floor = floor.max(manifest.replay_after);
            }
        }
        let expect = Expect { cluster: format.cluster_id, session, floor };
        let log = Log::open(Arc::clone(&files), &dir.join("log"), expect, options.segment_bytes)?;
        let (tables, flushed) = history::open_tables(files.as_ref(), options, source, mark, &log)?;
        // Only now: a directory that cannot be opened stays one of its release.
        let raised = if options.raise_format { meta::raise_format(files.as_ref(), dir, &format)? } else { None };
        let format = raised.unwrap_or(format);
        let inner = Inner {
            files,
            dir: dir.clone(),
            journal_bytes: AtomicU64::new(log.stored_bytes()),
            log: Mutex::new(log),
            session: AtomicU64::new(session.0),
            trimmer: Mutex::new(()),
            snapshots,
            tables,
            committer: Mutex::new(()),
            progress: Mutex::new(flushed.clone()),
            flusher: Mutex::new(()),
            flushed: Mutex::new(flushed),
            shrinking: Shrinking::default(),
            _lock: lock,
            format: format.clone(),
        };
        let store = Self {
            inner: Arc::new(inner),
            reads: Blocking::new(limits::STORE_READ_CALLS),
            view_calls: Blocking::new(limits::STORE_VIEW_CALLS),
            snapshot_calls: Blocking::new(limits::STORE_SNAPSHOT_CALLS),
            log_calls: Blocking::new(limits::STORE_LOG_CALLS),
        };
        Ok((Arc::new(store), Opened { format, session }))
    }

    /// After `WriteFailed`: cuts the journal at its last durable place, makes the cut durable and begins a new session.
    /// Whoever calls it has dropped all shards, and replays them. When this fails the store stays as it is.
    pub fn reopen(&self) -> Result<Opened, StoreError> {
        let inner = &self.inner;
        let mut log = guard(&inner.log);
        let failed =
            |what: &str, e: &io::Error| StoreError::WriteFailed(format!("{}: cannot {what}: {e}", inner.dir.display()));
        let session = SessionId(meta::read_session(inner.files.as_ref(), &inner.dir)?.0 + 1);
        meta::write_session(inner.files.as_ref(), &inner.dir, session).map_err(|e| failed("begin a session", &e))?;
        log.cut(session).map_err(|e| failed("cut the log and go on", &e))?;
        inner.journal_bytes.store(log.stored_bytes(), Ordering::Relaxed);
        drop(log);
        // A backup under way ends, and lets the views go.
        inner.session.store(session.0, Ordering::Release);
        inner.tables.revive()?;
        *guard(&inner.progress) = guard(&inner.flushed).clone();
        Ok(Opened { format: inner.format.clone(), session })
    }

    /// Bytes on disk. Looks at every snapshot file: not for a hot path.
    pub fn disk_usage(&self) -> Result<DiskUsage, StoreError> {
        self.inner.disk_usage()
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }
}

impl Inner {
    fn disk_usage(&self) -> Result<DiskUsage, StoreError> {
        let snapshots = self
            .snapshots
            .disk_bytes(self.format.shards)
            .map_err(|e| StoreError::Unavailable(format!("{}: {e}", self.dir.join("snap").display())))?;
        Ok(DiskUsage {
            journal: self.journal_bytes.load(Ordering::Relaxed),
            snapshots,
            views: self.tables.disk_bytes(),
        })
    }

    /// What it takes, with what its file system has. That is asked of the operating system, whatever the files are.
    fn room(&self) -> Result<DiskRoom, StoreError> {
        let DiskUsage { journal, snapshots, views } = self.disk_usage()?;
        let disk = rustix::fs::statvfs(&self.dir)
            .map_err(|e| StoreError::Unavailable(format!("{}: {e}", self.dir.display())))?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Ok(DiskRoom { journal, snapshots, history: views, free: bytes(disk.f_bavail), size: bytes(disk.f_blocks) })
    }
}

/// A lock of ours guards plain data, which is whole even after a panic elsewhere.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Makes the directory and takes its lock.
pub(crate) fn take_lock(files: &dyn Files, dir: &Path) -> Result<Box<dyn Lock>, StoreError> {
    let path = dir.join("LOCK");
    files
        .make_dirs(dir)
        .and_then(|()| files.lock(&path))
        .map_err(|e| StoreError::Unavailable(format!("cannot lock {}: {e}", path.display())))?
        .ok_or_else(|| {
            let holder = holder(files, &path).map(|pid| format!(" (process {pid})")).unwrap_or_default();
            StoreError::Refused(format!(
                "{}: another process uses this directory{holder}. Stop it, or name another directory; one directory \
                 serves one process",
                dir.display()
            ))
        })
}

/// Who wrote its process id into a lock file; only a hint for a person.
fn holder(files: &dyn Files, lock: &Path) -> Option<u32> {
    let bytes = read_whole(files, lock, limits::STORE_SMALL_FILE_BYTES).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// Makes an empty directory a store. `FORMAT` comes last: without it nothing here counts.
fn create(files: &dyn Files, options: &EmbeddedOptions) -> Result<FormatRow, StoreError> {
    let dir = &options.dir;
    let log = dir.join("log");
    let row = meta::new_format(options.shards, options.cluster_id)?;
    let held = match files.list(&log) {
        Ok(names) => names.iter().any(|n| segment::number_of(n, "seg").is_some()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => {
            return Err(StoreError::Unavailable(format!("cannot read {}: {e}", log.display())));
        }
    };
    if held {
        return Err(StoreError::Corrupt(format!(
            "{}: offset 0: the file is missing, but a journal is there. Restore the directory from a backup",
            dir.join("FORMAT").display()
        )));
    }
    let make = || -> io::Result<()> {
        files.make_dirs(&log)?;
        make_shard_dirs(files, dir, row.shards)?;
        stamped::write(files, &log.join("TRIM"), &TrimMark::BEGINNING, SyncSite::TrimFile, Some(SyncSite::TrimDir))?;
        history::write_mark(files, dir, &Progress::default())?;
        meta::write_session(files, dir, SessionId(0))?;
        files.sync_dir(dir, SyncSite::CreateDirs)?;
        for above in dir.ancestors().skip(1).filter(|p| !p.as_os_str().is_empty()) {
            match files.sync_dir(above, SyncSite::CreateDirs) {
                // One that we may not even read is not one that we made.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => break,
                done @ (Ok(()) | Err(_)) => done?,
            }
        }
        meta::write_format(files, dir, &row)
    };
    make().map_err(|e| StoreError::WriteFailed(format!("cannot make a store in {}: {e}", dir.display())))?;
    Ok(row)
}

/// The shards' snapshot directories, so that no snapshot has to make one.
fn make_shard_dirs(files: &dyn Files, dir: &Path, shards: u16) -> io::Result<()> {
    let snap = dir.join("snap");
    for shard in 0..shards {
        let path = snap.join(shard.to_string());
        if !files.exists(&path)? {
            files.make_dirs(&path)?;
        }
    }
    // Also when all were there: whoever made them may have died before it synced.
    files.sync_dir(&snap, SyncSite::CreateDirs)
}

fn begin_session(files: &dyn Files, dir: &Path) -> Result<SessionId, StoreError> {
    let session = SessionId(meta::read_session(files, dir)?.0 + 1);
    meta::write_session(files, dir, session)
        .map_err(|e| StoreError::WriteFailed(format!("{}: cannot begin a session: {e}", dir.display())))?;
    Ok(session)
}

/// Where the views stand after a flush: what `flushed` answers.
fn position_of(progress: &Mutex<Progress>) -> Position {
    guard(progress).position
}
