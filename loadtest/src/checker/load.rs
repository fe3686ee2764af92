//! Reads a run directory. Every line must be readable; only a torn last line of a file whose writer may have been killed is
//! forgiven, and counted.

use super::history::{History, Run};
use crate::run_dir::lines::{CallerLine, LedgerLine};
use campanile_schema::view::dag::DagRunView;
use serde::de::DeserializeOwned;
use std::{
    fmt, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

/// The run directory cannot be read at all.
#[derive(Debug)]
pub struct LoadError {
    pub path: PathBuf,
    pub error: String,
}
impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}
impl std::error::Error for LoadError {}

impl History {
    pub fn load(dir: &Path) -> Result<Self, LoadError> {
        let mut history = Self::default();
        let mut names: Vec<PathBuf> = fs::read_dir(dir)
            .map_err(|e| LoadError { path: dir.to_owned(), error: e.to_string() })?
            .filter_map(|entry| entry.ok().map(|e| e.path()))
            .collect();
        names.sort();
        let mut callers = Vec::new();
        let mut ledger = Vec::new();
        for path in &names {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if let Some(stem) = name.strip_suffix(".jsonl") {
                if stem.starts_with("executor-") {
                    let mut lines = Vec::new();
                    history.read(path, |line| lines.push(line))?;
                    history.add_executor(stem, lines);
                } else if stem.starts_with("caller-") {
                    let mut lines: Vec<CallerLine> = Vec::new();
                    history.read(path, |line| lines.push(line))?;
                    callers.push(lines);
                } else if stem == "faults" {
                    let mut lines = Vec::new();
                    history.read(path, |line| lines.push(line))?;
                    history.faults = lines;
                } else if stem == "ledger" {
                    history.read(path, |line: LedgerLine| ledger.push(line))?;
                } else if stem == "dags" {
                    let mut dags = Vec::new();
                    history.read(path, |line: DagRunView| dags.push(line))?;
                    history.dags = dags.into_iter().map(|dag| (dag.run_id.0, dag)).collect();
                } else if stem == "runs" {
                    let mut runs = Vec::new();
                    history.read(path, |line: Run| runs.push(line))?;
                    runs.into_iter().for_each(|run| history.add_run(run));
                }
            } else if name == "meta.json" {
                let text = fs::read(path).map_err(|e| LoadError { path: path.clone(), error: e.to_string() })?;
                match serde_json::from_slice(&text) {
                    Ok(meta) => history.meta = Some(meta),
                    Err(error) => history.damaged.push(format!("meta.json: {error}")),
                }
            }
        }
        for lines in callers {
            history.add_caller(lines);
        }
        for line in ledger {
            history.add_ledger(line);
        }
        history.finish();
        Ok(history)
    }

    fn read<T: DeserializeOwned>(&mut self, path: &Path, mut take: impl FnMut(T)) -> Result<(), LoadError> {
        let failed = |e: std::io::Error| LoadError { path: path.to_owned(), error: e.to_string() };
        let mut reader = BufReader::with_capacity(1 << 20, fs::File::open(path).map_err(failed)?);
        let mut line = Vec::new();
        let mut number = 0_u64;
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                return Ok(());
            }
            number += 1;
            match serde_json::from_slice(&line) {
                Ok(value) => take(value),
                Err(_) if line.last() != Some(&b'\n') => self.torn_lines += 1,
                Err(error) => self.damaged.push(format!("{} line {number}: {error}", path.display())),
            }
        }
    }
}
