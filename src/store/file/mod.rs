//! All access of the embedded store to its directory goes through [`Files`], so that the crash tests can use a disk
//! that loses everything that was not synced.
//!
//! Every sync names its call site ([`SyncSite`]): the crash tests switch off each site in turn and must notice.

#[cfg(any(test, feature = "faults"))]
pub mod crash;
pub mod real;
pub mod stamped;

use std::{io, path::Path, sync::Arc};

/// Where a sync is called. One test per site shows that the crash tests fail without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SyncSite {
    /// The directory tree, before `FORMAT` makes it a store.
    CreateDirs,
    /// The file `FORMAT`. Its rename is made durable by that of `SESSION`, which follows.
    FormatFile,
    /// The file `SESSION`, before the session is used.
    SessionFile,
    /// Its rename.
    SessionDir,
    /// Header of a new segment, before a batch stands in it.
    SegmentHeader,
    /// Name of a new segment, before a batch in it is acknowledged.
    SegmentDir,
    /// A batch, before it is acknowledged.
    Batch,
    /// What recovery kept and what it cut.
    LogCut,
    /// Names that an earlier process changed and perhaps did not sync, before anything rests on them.
    Inherited,
    /// The file `TRIM`, before segments are removed.
    TrimFile,
    /// Its rename.
    TrimDir,
    /// Chunks of a snapshot's part.
    SnapshotPart,
    /// Names of parts, before a manifest names them.
    SnapshotPartDir,
    /// A manifest.
    ManifestFile,
    /// Its rename, before the journal may be trimmed.
    ManifestDir,
    /// The file `FLUSHED`.
    FlushedFile,
    /// Its rename, before the journal may be trimmed.
    FlushedDir,
}

impl SyncSite {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::CreateDirs,
        Self::FormatFile,
        Self::SessionFile,
        Self::SessionDir,
        Self::SegmentHeader,
        Self::SegmentDir,
        Self::Batch,
        Self::LogCut,
        Self::Inherited,
        Self::TrimFile,
        Self::TrimDir,
        Self::SnapshotPart,
        Self::SnapshotPartDir,
        Self::ManifestFile,
        Self::ManifestDir,
        Self::FlushedFile,
        Self::FlushedDir,
    ];
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// An existing file, to read.
    Read,
    /// An existing file, to read and write.
    Write,
    /// A new or emptied file, to read and write.
    Create,
}

/// An open file. All calls may be made from several threads; positions are explicit.
pub trait File: Send + Sync {
    /// Fills `buffer` from `offset` as far as the file reaches; returns how many bytes.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`, extending the file when needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Bytes of the file.
    fn size(&self) -> io::Result<u64>;
    /// Cuts or extends (with zeros) to `len`.
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// Reserves space for `len` bytes and makes the file at least that long, so that later writes find room.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Makes content and length durable (`fdatasync`).
    fn sync_data(&self, site: SyncSite) -> io::Result<()>;
}

/// Held until dropped; the operating system drops it with the process.
pub trait Lock: Send + Sync {}

/// The files of one machine.
pub trait Files: Send + Sync + 'static {
    /// Makes a directory and those above it; an existing one is fine.
    fn make_dirs(&self, path: &Path) -> io::Result<()>;
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>>;
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Names in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Replaces `to`. Durable once the directory is synced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in `dir` durable.
    fn sync_dir(&self, dir: &Path, site: SyncSite) -> io::Result<()>;
    /// Takes an exclusive lock on the file `path` (made when missing); None when another process holds it.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>>;
}

/// Reads a whole file of at most `max` bytes.
pub fn read_whole(files: &dyn Files, path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = files.open(path, Open::Read)?;
    let len = file.size()?;
    if len > max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{len} bytes long, at most {max} expected")));
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    let got = file.read_at(&mut bytes, 0)?;
    bytes.truncate(got);
    Ok(bytes)
}
