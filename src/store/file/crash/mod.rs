//! A disk in memory that forgets what was not synced: for the crash tests.
//!
//! Deterministic from a seed. After [`CrashFiles::cut`] (the power goes) each sector that was not synced is there, not
//! there, or torn; a creation, rename or removal whose directory was not synced happened or did not, by coin toss. After
//! [`CrashFiles::kill`] (only the process dies) the cache lives on, synced or not. A sync that failed leaves pages that
//! look written and are not, as the kernel does. Every sync of one named call site can be made to do nothing.

mod disk;

use super::{File, Files, Lock, Open, SyncSite};
use disk::{Disk, Entry, NodeId};
use parking_lot::{Mutex, MutexGuard};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A handle of one life of the machine or the process; a later life makes it useless.
#[derive(Clone)]
pub struct CrashFiles {
    disk: Arc<Mutex<Disk>>,
    life: u64,
}

struct CrashFile {
    files: CrashFiles,
    node: NodeId,
}

struct CrashLock {
    files: CrashFiles,
    path: PathBuf,
}

impl Lock for CrashLock {}

impl Drop for CrashLock {
    fn drop(&mut self) {
        // A lock of an earlier life was dropped with that life.
        if let Ok(mut disk) = self.files.alive() {
            disk.locks.remove(&self.path);
        }
    }
}

impl CrashFiles {
    /// An empty disk.
    pub fn new(seed: u64) -> Self {
        Self { disk: Arc::new(Mutex::new(Disk::new(seed))), life: 0 }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock()
    }

    fn alive(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = self.disk();
        if disk.life != self.life || disk.off { Err(io::Error::other("the power is off")) } else { Ok(disk) }
    }

    /// For a call that changes something: counts towards [`Self::power_off_in`].
    fn changing(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let mut disk = self.alive()?;
        if let Some(left) = &mut disk.changes_left {
            if *left == 0 {
                disk.off = true;
                return Err(io::Error::other("the power is off"));
            }
            *left -= 1;
        }
        Ok(disk)
    }

    /// The power goes and comes back: what survived, for the next life.
    pub fn cut(&self) -> Self {
        let mut disk = self.disk();
        disk.cut();
        Self { disk: Arc::clone(&self.disk), life: disk.begin_life() }
    }

    /// The process dies; what it wrote stays in the cache, for the next life.
    pub fn kill(&self) -> Self {
        let life = self.disk().begin_life();
        Self { disk: Arc::clone(&self.disk), life }
    }

    /// After `changes` more calls that change something, every call fails until the next life.
    pub fn power_off_in(&self, changes: u64) {
        self.disk().changes_left = Some(changes);
    }

    /// All syncs of this site do nothing, for all lives.
    pub fn ignore(&self, site: Option<SyncSite>) {
        self.disk().ignored = site;
    }

    /// The `n`th write from now (0 = the next) finds no space.
    pub fn fail_write_in(&self, n: u64) {
        self.disk().fail_write_in = Some(n);
    }

    /// The `n`th sync from now (0 = the next) fails.
    pub fn fail_sync_in(&self, n: u64) {
        self.disk().fail_sync_in = Some(n);
    }

    /// Whether calls of this life still work.
    pub fn powered(&self) -> bool {
        self.alive().is_ok()
    }

    /// Forgets faults that were asked for and did not happen yet.
    pub fn calm(&self) {
        let mut disk = self.disk();
        disk.fail_write_in = None;
        disk.fail_sync_in = None;
    }

    /// How often a site synced, ignored or not.
    pub fn syncs(&self, site: SyncSite) -> u64 {
        self.disk().syncs.get(&site).copied().unwrap_or(0)
    }

    /// A number below `end` from the disk's seed.
    pub fn draw(&self, end: u64) -> u64 {
        self.disk().random.below(end)
    }

    /// Flips a bit of a file, on disk and in the cache.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> io::Result<()> {
        let mut disk = self.disk();
        let node = disk.file(path)?;
        disk.flip_bit(node, offset, bit);
        Ok(())
    }
}

impl Files for CrashFiles {
    fn make_dirs(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.changing()?;
        disk.make_dirs(path)
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let node = match how {
            Open::Read | Open::Write => self.alive()?.file(path)?,
            Open::Create => self.changing()?.create(path)?,
        };
        Ok(Arc::new(CrashFile { files: self.clone(), node }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.alive()?.entry(path).is_some())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.alive()?.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.changing()?.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.changing()?.remove(path)
    }

    fn sync_dir(&self, dir: &Path, site: SyncSite) -> io::Result<()> {
        self.changing()?.sync_dir(dir, site)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        let mut disk = self.changing()?;
        if disk.entry(path).is_none() {
            disk.create(path)?;
        }
        if matches!(disk.entry(path), Some(Entry::Dir)) {
            return Err(io::Error::other("a directory"));
        }
        let taken = disk.locks.insert(path.to_path_buf());
        Ok(taken.then(|| Box::new(CrashLock { files: self.clone(), path: path.to_path_buf() }) as Box<dyn Lock>))
    }
}

impl File for CrashFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.files.alive()?.read(self.node, buffer, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.files.changing()?.write(self.node, bytes, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.files.alive()?.len(self.node))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.files.changing()?.resize(self.node, len);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.files.changing()?.allocate(self.node, len)
    }

    fn sync_data(&self, site: SyncSite) -> io::Result<()> {
        self.files.changing()?.sync(self.node, site)
    }
}
