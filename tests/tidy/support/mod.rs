//! The repository as files in memory, so that every rule can also be shown a small tree with a defect in it.
//!
//! A rule takes a [`Tree`] and gives one line for each thing that is wrong. It never writes, and needs neither git nor a network.
#![allow(clippy::unwrap_used)]

pub mod docs;
pub mod forms;
pub mod imports;
pub mod manifests;
pub mod sources;
pub mod table;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// What a rule found, one line each.
pub type Found = Vec<String>;

/// Directories that are made, not written. Hidden ones are passed over too, except [`KEPT_HIDDEN`].
const MADE: [&str; 5] = ["target", "node_modules", "__pycache__", "dist", "campanile-data"];
const KEPT_HIDDEN: &str = ".ci";
/// Larger files are data, bytes.
const LARGEST: u64 = 2 << 20;

/// Text files by their path from the root, with `/` between.
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// This repository.
    pub fn here() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let mut files = BTreeMap::new();
        walk(&root, &root, &mut files);
        assert!(files.contains_key("Cargo.toml"), "nothing was read in {}", root.display());
        Self { files }
    }

    /// A tree for showing a rule its defect.
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect() }
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Files with this ending, `.rs` for example.
    pub fn ending<'t>(&'t self, ending: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.all().filter(move |(path, _)| path.ends_with(ending))
    }

    /// A file, or a directory with files.
    pub fn exists(&self, path: &str) -> bool {
        let directory = format!("{}/", path.trim_end_matches('/'));
        self.files.contains_key(path) || self.files.keys().any(|known| known.starts_with(&directory))
    }
}

fn walk(root: &Path, directory: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        // In a second work tree it is a file that names the first: not ours.
        if name == ".git" {
            continue;
        }
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() && !MADE.contains(&name.as_str()) && (!name.starts_with('.') || name == KEPT_HIDDEN) {
            walk(root, &path, files);
        } else if kind.is_file()
            // In a linked work tree a file that names its repository.
            && name != ".git"
            && entry.metadata().is_ok_and(|facts| facts.len() <= LARGEST)
            && let Some(text) = text_of(&path)
        {
            let parts = path.strip_prefix(root).unwrap().components();
            let parts: Vec<_> = parts.map(|part| part.as_os_str().to_str().unwrap()).collect();
            files.insert(parts.join("/"), text);
        }
    }
}

/// None: it is no text. Pictures are known by their names, because documents show them.
fn text_of(path: &Path) -> Option<String> {
    let is_picture = path.extension().is_some_and(|ending| ending == "jpg");
    if is_picture { Some(String::new()) } else { fs::read_to_string(path).ok() }
}

/// Lines with their numbers, as people count them.
pub fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// The line without its comment, roughly: a `//` inside a text counts as one too.
pub fn code_of(line: &str) -> &str {
    line.find("//").map_or(line, |at| &line[..at])
}

/// Whether `word` stands in the text with no letter, digit or `_` around it.
pub fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let after = text[at + word.len()..].chars().next();
        !text[..at].ends_with(part) && !after.is_some_and(part)
    })
}
