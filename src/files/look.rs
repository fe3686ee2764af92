//! A directory as it is now: which files, how large, how old.

use campanile_schema::limits::APPLY_FILES;
use std::{collections::BTreeMap, io, path::Path, time::SystemTime};

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub kind: FileKind,
    bytes: u64,
    changed: Option<SystemTime>,
    #[cfg(unix)]
    file: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Manifest,
    Crontab,
}

/// Files by their names.
pub(super) type Looked = BTreeMap<String, Stamp>;

pub(super) fn look(dir: &Path) -> io::Result<Looked> {
    use std::os::unix::fs::MetadataExt;
    let mut found = Looked::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let Some(kind) = kind(&name) else { continue };
        // Followed: a mounted configuration is made of links.
        let Ok(about) = std::fs::metadata(entry.path()) else { continue };
        if about.is_file() {
            let stamp = Stamp { kind, bytes: about.len(), changed: about.modified().ok(), file: about.ino() };
            found.insert(name, stamp);
        }
        if found.len() > APPLY_FILES {
            return Err(io::Error::other(format!("more than {APPLY_FILES} manifests and crontabs")));
        }
    }
    Ok(found)
}

fn kind(name: &str) -> Option<FileKind> {
    if name.starts_with('.') {
        return None;
    }
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("yaml" | "yml" | "json") => Some(FileKind::Manifest),
        Some("cron" | "crontab") => Some(FileKind::Crontab),
        Some(_) => None,
        None => (name == "crontab").then_some(FileKind::Crontab),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_are_told_by_their_names() {
        for (name, expected) in [
            ("a.yaml", Some(FileKind::Manifest)),
            ("a.b.yml", Some(FileKind::Manifest)),
            ("a.json", Some(FileKind::Manifest)),
            ("nightly.cron", Some(FileKind::Crontab)),
            ("nightly.crontab", Some(FileKind::Crontab)),
            ("crontab", Some(FileKind::Crontab)),
            (".a.yaml", None),
            ("a.yaml~", None),
            ("a.yaml.swp", None),
            ("README", None),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn a_change_of_a_file_shows() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.yaml");
        std::fs::write(&file, "x").unwrap();
        std::fs::create_dir(dir.path().join("b.yaml")).unwrap();
        let before = look(dir.path()).unwrap();
        assert_eq!((before.len(), look(dir.path()).unwrap()), (1, before.clone()));
        // Same length, another file: as editors write.
        std::fs::write(dir.path().join("new"), "y").unwrap();
        std::fs::rename(dir.path().join("new"), &file).unwrap();
        assert_ne!(look(dir.path()).unwrap(), before);
        assert!(look(&dir.path().join("nowhere")).is_err());
    }
}
