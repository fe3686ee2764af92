//! A directory of days: `2026-02-01.1.history`, and `2026-02-01.2.history` for what was found to be new or changed later.
//!
//! A file has its name only when it is whole and on the disk; before, it is `NAME.partial`, which no reader looks at.

use super::Day;
use campanile_ports::{StoreError, private};
use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

const SUFFIX: &str = ".history";
const LOCK: &str = "LOCK";

/// A file of a day.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DayPart {
    pub day: Day,
    /// From 1.
    pub part: u32,
    pub path: PathBuf,
}

/// See the module's text.
pub struct ArchiveDirectory {
    path: PathBuf,
}

/// While it lives nobody else writes into the directory.
pub struct WriteLock(#[expect(dead_code, reason = "held, never read")] File);

impl ArchiveDirectory {
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its files, oldest day first, parts in order. Files of other names are nobody's business.
    pub fn parts(&self) -> Result<Vec<DayPart>, StoreError> {
        let unreadable = |e: io::Error| StoreError::Refused(format!("{}: cannot be read: {e}", self.path.display()));
        let mut parts = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if let Some((day, part)) = entry.file_name().to_str().and_then(of_name) {
                parts.push(DayPart { day, part, path: entry.path() });
            }
        }
        parts.sort();
        Ok(parts)
    }

    /// Makes the directory when it is missing, and keeps other writers out of it.
    pub fn lock(&self) -> Result<WriteLock, StoreError> {
        let failed = |e: io::Error| StoreError::WriteFailed(format!("{}: cannot be written: {e}", self.path.display()));
        private::make_dir(&self.path).map_err(failed)?;
        private::close(&self.path);
        let lock = private::options().create(true).truncate(false).open(self.path.join(LOCK)).map_err(failed)?;
        lock.try_lock().map_err(|_| {
            StoreError::Refused(format!(
                "{}: somebody else writes into this archive now; try again later",
                self.path.display()
            ))
        })?;
        Ok(WriteLock(lock))
    }

    /// A file that has no name yet. What a killed process left of it is overwritten.
    pub fn begin(&self, day: Day, part: u32) -> Result<(File, Unnamed), StoreError> {
        let path = self.path.join(format!("{day}.{part}{SUFFIX}"));
        let mut partial: OsString = path.clone().into_os_string();
        partial.push(".partial");
        let unnamed = Unnamed { partial: partial.into(), path };
        let opened = private::options().create(true).truncate(true).open(&unnamed.partial);
        let file = opened.map_err(|e| unnamed.failed(&e))?;
        Ok((file, unnamed))
    }
}

fn of_name(name: &str) -> Option<(Day, u32)> {
    let (day, part) = name.strip_suffix(SUFFIX)?.split_once('.')?;
    let part: u32 = part.parse().ok().filter(|part| *part > 0)?;
    Some((day.parse().ok()?, part))
}

/// A file on its way; removed when it does not get its name.
pub struct Unnamed {
    partial: PathBuf,
    path: PathBuf,
}

impl Unnamed {
    pub fn failed(&self, error: &io::Error) -> StoreError {
        StoreError::WriteFailed(format!("{}: cannot be written: {error}", self.path.display()))
    }

    /// Makes it durable, then gives it its name. Takes no other file's name.
    pub fn name(self, file: &File) -> Result<PathBuf, StoreError> {
        let named = || {
            file.sync_all()?;
            #[cfg(feature = "faults")]
            campanile_ports::faults::point("history_name");
            fs::hard_link(&self.partial, &self.path)?;
            File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
        };
        named().map_err(|e| self.failed(&e))?;
        Ok(self.path.clone())
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        // One that stays is overwritten by the next.
        let _ = fs::remove_file(&self.partial);
    }
}
