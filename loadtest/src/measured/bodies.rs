//! What executors have written of bodies, read while they write.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use crate::run_dir::lines::{ExecutorEvent, ExecutorLine};

/// At most so much of a file is read at once, bytes.
const READ_BYTES: u64 = 8 << 20;

fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("executor-") && name.ends_with(".jsonl") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Counts lines while their files grow.
#[derive(Debug, Default)]
pub struct Growing(BTreeMap<PathBuf, (u64, u64)>);

impl Growing {
    /// Bodies that have ended, about: each writes two lines, and each executor one at its start.
    pub fn ended(&mut self, dir: &Path) -> io::Result<u64> {
        for path in files(dir)? {
            let (at, lines) = self.0.entry(path.clone()).or_default();
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(*at))?;
            let mut more = Vec::new();
            *at += file.take(READ_BYTES).read_to_end(&mut more)? as u64;
            *lines += more.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
        Ok(self.0.values().map(|(_, lines)| lines.saturating_sub(1) / 2).sum())
    }
}

/// From the first body to the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub first_start_us: i64,
    pub last_end_us: i64,
    /// Bodies that have ended, however often their runs began.
    pub ended: u64,
}

/// All bodies of a run directory.
pub fn span(dir: &Path) -> io::Result<Span> {
    let mut span = Span { first_start_us: i64::MAX, ..Span::default() };
    for path in files(dir)? {
        for line in BufReader::with_capacity(1 << 20, File::open(&path)?).lines() {
            // A torn last line is the checker's to judge.
            let Ok(line) = serde_json::from_str::<ExecutorLine>(&line?) else { continue };
            match line.event {
                ExecutorEvent::Start => span.first_start_us = span.first_start_us.min(line.t_us),
                ExecutorEvent::End => {
                    span.ended += 1;
                    span.last_end_us = span.last_end_us.max(line.t_us);
                }
                ExecutorEvent::Up | ExecutorEvent::Refused => {}
            }
        }
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    #[test]
    fn bodies_are_counted_while_their_files_grow() {
        let dir = tempfile::tempdir().unwrap();
        let line = |event: ExecutorEvent, t_us: i64| {
            serde_json::to_string(&ExecutorLine { event, t_us, ..ExecutorLine::up() }).unwrap() + "\n"
        };
        let mut file = File::create(dir.path().join("executor-1.jsonl")).unwrap();
        fs::write(dir.path().join("caller-1.jsonl"), "\n\n\n\n").unwrap();
        let mut growing = Growing::default();
        for text in [line(ExecutorEvent::Up, 1), line(ExecutorEvent::Start, 20), line(ExecutorEvent::End, 30)] {
            file.write_all(text.as_bytes()).unwrap();
        }
        assert_eq!(growing.ended(dir.path()).unwrap(), 1);
        for text in [line(ExecutorEvent::Start, 10), line(ExecutorEvent::End, 25)] {
            file.write_all(text.as_bytes()).unwrap();
        }
        assert_eq!(growing.ended(dir.path()).unwrap(), 2);
        assert_eq!(span(dir.path()).unwrap(), Span { first_start_us: 10, last_end_us: 30, ended: 2 });
    }
}
