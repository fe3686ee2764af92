//! Which files are read, and their text within limits.

use super::ImportError;
use campanile_schema::limits::IMPORT_FILES;
use std::{
    io::Read,
    path::{Path, PathBuf},
};

/// The files that paths stand for: files as they are named, and of a directory those that end so, in the order of their names, without
/// hidden ones.
pub fn files(paths: &[PathBuf], endings: &[&str]) -> Result<Vec<PathBuf>, ImportError> {
    let mut found = Vec::new();
    for path in paths {
        let data = std::fs::metadata(path).map_err(|error| unreadable(path, error))?;
        if data.is_dir() {
            let before = found.len();
            found.extend(in_directory(path, endings)?);
            if found.len() == before {
                let endings: Vec<String> = endings.iter().map(|ending| format!(".{ending}")).collect();
                return Err(refused(path, format!("no file in it ends in {}", endings.join(", "))));
            }
        } else if data.is_file() {
            found.push(path.clone());
        } else {
            return Err(refused(path, "is neither a file nor a directory".to_owned()));
        }
        if found.len() > IMPORT_FILES {
            return Err(ImportError::TooMany { what: "files", found: found.len(), limit: IMPORT_FILES });
        }
    }
    Ok(found)
}

fn in_directory(path: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, ImportError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| unreadable(path, error))? {
        let file = entry.map_err(|error| unreadable(path, error))?.path();
        let is_hidden = file.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        let fits = file.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known));
        if fits && !is_hidden && file.is_file() {
            found.push(file);
        }
    }
    found.sort();
    Ok(found)
}

/// The text of a file of at most `most` bytes. A byte order mark is left out.
pub fn text(path: &Path, most: u64) -> Result<String, ImportError> {
    let mut bytes = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, error))?;
    if bytes.len() as u64 > most {
        return Err(refused(
            path,
            format!("the file is larger than {most} bytes, which is all that is read of one file"),
        ));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        refused(path, format!("line {line} is not UTF-8: convert the file first"))
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

pub fn open(path: &Path) -> Result<std::fs::File, ImportError> {
    std::fs::File::open(path).map_err(|error| unreadable(path, error))
}

pub fn unreadable(path: &Path, error: std::io::Error) -> ImportError {
    ImportError::Unreadable { path: shown(path), error }
}

pub fn refused(path: &Path, reason: String) -> ImportError {
    ImportError::Refused { path: shown(path), reason }
}

pub fn shown(path: &Path) -> String {
    super::text::shown(&path.display().to_string())
}

/// The last part of a path.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn directories_files_and_what_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.yaml", "a.yml", ".hidden.yaml", "notes.txt"] {
            std::fs::write(dir.path().join(name), "\u{feff}x: 1\n").unwrap();
        }
        let found = files(&[dir.path().to_owned()], &["yaml", "yml"]).unwrap();
        assert_eq!(found.iter().map(|path| file_name(path)).collect::<Vec<_>>(), ["a.yml", "b.yaml"]);
        assert_eq!(text(&found[0], 100).unwrap(), "x: 1\n");
        assert!(text(&found[0], 3).unwrap_err().to_string().contains("larger than 3 bytes"));
        std::fs::write(&found[0], b"a\nb\xff\n").unwrap();
        assert!(text(&found[0], 100).unwrap_err().to_string().contains("line 2 is not UTF-8"));
        let none = files(&[dir.path().to_owned()], &["sql"]).unwrap_err().to_string();
        assert!(none.contains("no file in it ends in .sql"), "{none}");
        let missing = files(&[dir.path().join("missing")], &["sql"]).unwrap_err().to_string();
        assert!(missing.contains("cannot read"), "{missing}");
    }
}
