//! Files that only their owner can read: what a node, an executor or the command line writes holds definitions, params, logs and
//! keys. Directories get the mode 700, files 600, whatever the umask of whoever starts the program.
//!
//! The file mode creation mask does it for what libraries write; our own code asks for the modes as well, so that they hold in
//! programs that use this library. Commands of jobs get the mask back that the program was started with.

use rustix::fs::Mode;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
    sync::OnceLock,
};

/// The mask that the program was started with.
static INHERITED: OnceLock<u32> = OnceLock::new();
const OTHERS: u32 = 0o077;
const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;

/// From here on nothing that this process makes is for others.
pub fn begin() {
    INHERITED.get_or_init(|| rustix::process::umask(Mode::from_raw_mode(OTHERS)).bits());
}

/// For [`restore`], as an argument of a process that runs other people's programs.
pub fn inherited() -> Option<String> {
    INHERITED.get().map(|mask| format!("{mask:03o}"))
}

/// The mask of the program that started this process.
pub fn restore(mask: &str) {
    if let Ok(mask) = u32::from_str_radix(mask, 8) {
        rustix::process::umask(Mode::from_raw_mode(mask & 0o777));
    }
}

/// To be opened for writing; made for its owner only.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(FILE);
    options
}

/// Makes a directory and those above it that are missing.
pub fn make_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(DIRECTORY).create(path)
}

/// Closes a directory of ours to others, with all that is in it, as earlier releases left it open. What cannot be changed stays.
pub fn close(path: &Path) {
    let Ok(metadata) = fs::metadata(path) else { return };
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if is_ours && metadata.mode() & OTHERS != 0 {
        // The directory itself last: a run that is cut off in between is done again.
        close_inside(path);
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(metadata.mode() & 0o700));
    }
}

fn close_inside(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        // Links are not followed.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            close_inside(&entry.path());
        }
        if (metadata.is_dir() || metadata.is_file()) && metadata.mode() & OTHERS != 0 {
            let _ = fs::set_permissions(entry.path(), fs::Permissions::from_mode(metadata.mode() & 0o700));
        }
    }
}

/// Puts a small file in place, whole or not at all, and durably: its bytes, and its name.
pub fn put_file(dir: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    let partial = dir.join(format!("{name}.new"));
    let mut file = options().create(true).truncate(true).open(&partial)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(partial, dir.join(name))?;
    sync_dir(dir)
}

/// Removes a file, durably: it is not there again after a power cut. One that is not there is no error.
pub fn remove_file(dir: &Path, name: &str) -> io::Result<()> {
    match fs::remove_file(dir.join(name)) {
        Ok(()) => sync_dir(dir),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes the names in a directory durable.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Makes the name of a file durable.
pub fn sync_name(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(dir) if dir.as_os_str().is_empty() => sync_dir(Path::new(".")),
        Some(dir) => sync_dir(dir),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "private_traced.rs"]
mod traced;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        make_dir(&inner).unwrap();
        put_file(&inner, "f", b"x").unwrap();
        put_file(&inner, "f", b"y").unwrap();
        assert_eq!(fs::read(inner.join("f")).unwrap(), b"y");
        assert_eq!((mode(&dir.path().join("a")), mode(&inner), mode(&inner.join("f"))), (0o700, 0o700, 0o600));
    }

    #[test]
    fn what_an_earlier_release_made_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::write(&outside, "").unwrap();
        let top = dir.path().join("data");
        fs::create_dir_all(top.join("log")).unwrap();
        fs::write(top.join("log/1"), "").unwrap();
        std::os::unix::fs::symlink(&outside, top.join("link")).unwrap();
        for (path, open) in [(&outside, 0o644), (&top.join("log/1"), 0o644), (&top.join("log"), 0o755), (&top, 0o755)] {
            fs::set_permissions(path, fs::Permissions::from_mode(open)).unwrap();
        }
        close(&top);
        assert_eq!((mode(&top), mode(&top.join("log")), mode(&top.join("log/1"))), (0o700, 0o700, 0o600));
        assert_eq!(mode(&outside), 0o644);
    }
}
