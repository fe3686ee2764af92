//! Files of the operating system.

use super::{File, Files, Lock, Open, SyncSite};
use campanile_ports::private;
use rustix::fs::{FallocateFlags, FlockOperation};
use std::{
    fs, io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
};

/// The real thing.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles;

struct RealFile(fs::File);

struct RealLock {
    _file: fs::File,
}

impl Lock for RealLock {}

impl Files for RealFiles {
    fn make_dirs(&self, path: &Path) -> io::Result<()> {
        private::make_dir(path)
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.mode(0o600);
        match how {
            Open::Read => options.read(true),
            Open::Write => options.read(true).write(true),
            Open::Create => options.read(true).write(true).create(true).truncate(true),
        };
        Ok(Arc::new(RealFile(options.open(path)?)))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            // A name that is not UTF-8 is not ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path, _site: SyncSite) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        let file = private::options().read(true).create(true).truncate(false).open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                if let Some(dir) = path.parent() {
                    private::close(dir);
                }
                // For whoever finds it taken. It holds without it, so a full disk may refuse it.
                let _ = file.set_len(0).and_then(|()| file.write_all_at(std::process::id().to_string().as_bytes(), 0));
                Ok(Some(Box::new(RealLock { _file: file })))
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, len) {
            Ok(()) => Ok(()),
            // A file system that cannot reserve: the length alone is still worth having, as appends then change no metadata.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                if self.size()? < len {
                    self.truncate(len)?;
                }
                Ok(())
            }
            Err(e) => Err(e.into()),
        }
    }

    fn sync_data(&self, _site: SyncSite) -> io::Result<()> {
        self.0.sync_data()
    }
}
