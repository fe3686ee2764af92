//! Finds the file of a command's first word, with an answer that says what is wrong.
//!
//! Why not leave it to exec: its ENOENT does not tell a missing program from a missing working directory or a missing
//! interpreter, and says nothing about where it looked.

use super::wire::{Fault, StartFault};
use rustix::fs::{Access, access};
use std::{
    ffi::OsString,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The working directory: the wanted one, or the default.
pub(super) fn directory(wanted: Option<&str>, home: Option<&str>) -> Result<PathBuf, Fault> {
    let Some(wanted) = wanted else {
        let home = home.map(Path::new).filter(|h| h.is_absolute() && usable(h).is_ok());
        return Ok(home.unwrap_or(Path::new("/")).to_owned());
    };
    let path = Path::new(wanted);
    let refused =
        |why: &str| Err(Fault::new(StartFault::CwdMissing, format!("the working directory {wanted:?} {why}")));
    if !path.is_absolute() {
        return refused("is not an absolute path");
    }
    match usable(path) {
        Ok(()) => Ok(path.to_owned()),
        Err(why) => refused(why),
    }
}

fn usable(directory: &Path) -> Result<(), &'static str> {
    match std::fs::metadata(directory) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Err("is closed to the executor's user"),
        Err(_) => Err("does not exist on this executor"),
        Ok(data) if !data.is_dir() => Err("is not a directory"),
        Ok(_) if access(directory, Access::EXEC_OK).is_err() => Err("is closed to the executor's user"),
        Ok(_) => Ok(()),
    }
}

/// This process's own program, even when its file was replaced by a newer version meanwhile.
pub(super) fn own() -> OsString {
    let own = Path::new("/proc/self/exe");
    if own.exists() { own.into() } else { std::env::current_exe().map_or_else(|_| own.into(), Into::into) }
}

/// The program's file: a word with a `/` is a path (seen from the working directory), any other is looked for in `PATH`.
pub(super) fn find(word: &str, path: &str, cwd: &Path) -> Result<PathBuf, Fault> {
    if word.is_empty() {
        return Err(Fault::new(StartFault::Empty, "the command is empty: its first word names the program"));
    }
    if word.contains('/') {
        let file = cwd.join(word);
        return match executable(&file) {
            Ok(()) => Ok(file),
            Err(None) => {
                Err(Fault::new(StartFault::NotFound, format!("the program {word:?} does not exist on this executor")))
            }
            Err(Some(why)) => Err(Fault::new(StartFault::NotExecutable, format!("the program {word:?} {why}"))),
        };
    }
    let mut closed = None;
    for directory in path.split(':') {
        // An empty item means the working directory, as for every shell.
        let file = cwd.join(directory).join(word);
        match executable(&file) {
            Ok(()) => return Ok(file),
            Err(None) => {}
            Err(Some(why)) => closed = closed.or(Some((file, why))),
        }
    }
    Err(match closed {
        Some((file, why)) => Fault::new(StartFault::NotExecutable, format!("the program {:?} {why}", file.display())),
        None => Fault::new(StartFault::NotFound, format!("the program {word:?} is in no directory of PATH={path}")),
    })
}

/// `Err(None)`: no such file.
fn executable(file: &Path) -> Result<(), Option<&'static str>> {
    match std::fs::metadata(file) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Err(Some("is closed to the executor's user")),
        Err(_) => Err(None),
        Ok(data) if data.is_dir() => Err(Some("is a directory")),
        Ok(_) if access(file, Access::EXEC_OK).is_err() => {
            Err(Some("is not executable by the executor's user (chmod +x)"))
        }
        Ok(_) => Ok(()),
    }
}

/// What exec's refusal of a file that exists means.
pub(super) fn refusal(error: &std::io::Error, word: &str, file: &Path) -> Fault {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => match interpreter(file) {
            Some(program) => Fault::new(
                StartFault::NotFound,
                format!(
                    "the interpreter {program:?} named by the first line of {word:?} does not exist on this executor"
                ),
            ),
            None => Fault::new(StartFault::NotFound, format!("the program {word:?} or its loader is missing: {error}")),
        },
        Some(Errno::ACCESS | Errno::PERM) => {
            Fault::new(StartFault::NotExecutable, format!("the program {word:?} may not be started: {error}"))
        }
        Some(Errno::NOEXEC) => Fault::new(
            StartFault::NotExecutable,
            format!("the program {word:?} is no program of this system and has no #! line: {error}"),
        ),
        Some(Errno::TOOBIG) => Fault::new(
            StartFault::TooLarge,
            format!("arguments and environment of {word:?} are larger than the system takes: {error}"),
        ),
        _ if error.kind() == std::io::ErrorKind::InvalidInput => {
            Fault::new(StartFault::EnvInvalid, format!("the command of {word:?} holds a NUL: {error}"))
        }
        _ => Fault::new(StartFault::StartFailed, format!("the system refused to start {word:?}: {error}")),
    }
}

fn interpreter(file: &Path) -> Option<String> {
    let mut head = [0u8; 256];
    let length = std::fs::File::open(file).ok()?.read(&mut head).ok()?;
    let line = head[..length].strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let word = line.trim_ascii().split(|b| *b == b' ' || *b == b'\t').next()?;
    // A carriage return at the end is the usual reason: it shows in the quoted form.
    Some(std::ffi::OsStr::from_bytes(word).to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(directory: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn words_are_found_in_path_and_paths_from_the_working_directory() {
        let dir = tempfile::tempdir().unwrap();
        let tool = file(dir.path(), "tool", "#!/bin/sh\n", 0o755);
        let path = format!("/nowhere:{}", dir.path().display());
        assert_eq!(find("tool", &path, Path::new("/")).unwrap(), tool);
        assert_eq!(find("./tool", "", dir.path()).unwrap(), dir.path().join("./tool"));
        // An empty item of PATH is the working directory.
        assert_eq!(find("tool", "", dir.path()).unwrap(), tool);
    }

    #[test]
    fn every_refusal_has_its_code() {
        let dir = tempfile::tempdir().unwrap();
        let plain = file(dir.path(), "plain", "text", 0o644);
        let here = dir.path().display().to_string();
        let fault = |word: &str, path: &str| find(word, path, Path::new("/")).unwrap_err().fault;
        assert_eq!(fault("", &here), StartFault::Empty);
        assert_eq!(fault("missing", &here), StartFault::NotFound);
        assert_eq!(fault("plain", &here), StartFault::NotExecutable);
        assert_eq!(fault(plain.to_str().unwrap(), ""), StartFault::NotExecutable);
        assert_eq!(fault(&here, ""), StartFault::NotExecutable);
        assert_eq!(fault("/missing/x", ""), StartFault::NotFound);
    }

    #[test]
    fn a_missing_interpreter_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let script = file(dir.path(), "script", "#!/usr/bin/nothing -x\necho\n", 0o755);
        let error = std::process::Command::new(&script).spawn().unwrap_err();
        let fault = refusal(&error, "script", &script);
        assert_eq!(fault.fault, StartFault::NotFound);
        assert!(fault.message.contains("/usr/bin/nothing"), "{}", fault.message);
    }

    #[test]
    fn working_directories() {
        let dir = tempfile::tempdir().unwrap();
        let plain = file(dir.path(), "plain", "", 0o644);
        let here = dir.path().to_str().unwrap();
        assert_eq!(directory(Some(here), None).unwrap(), dir.path());
        assert_eq!(directory(None, Some(here)).unwrap(), dir.path());
        assert_eq!(directory(None, Some("/nonexistent")).unwrap(), Path::new("/"));
        assert_eq!(directory(None, None).unwrap(), Path::new("/"));
        for wrong in ["relative", "/nonexistent", plain.to_str().unwrap()] {
            assert_eq!(directory(Some(wrong), None).unwrap_err().fault, StartFault::CwdMissing, "{wrong}");
        }
    }
}
