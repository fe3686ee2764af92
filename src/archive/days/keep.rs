//! Ended runs into the files of their days. Of a day that has files already only what they do not have, or have otherwise, goes into
//! a further one: archiving twice changes nothing.
//!
//! Both sides are in the order of time, so they are compared as they come, with one block of each file in memory.

use super::{
    Day, DayFile, DaySink, DayWriter,
    directory::{ArchiveDirectory, DayPart, Unnamed, WriteLock},
    file::Runs,
    place,
};
use campanile_ports::StoreError;
use campanile_schema::{format::FormatRow, ids::RunId, record::RunRecord};
use campanile_store::archive::record::{DAY_FORMAT, DayHead, LogOf};
use std::{collections::HashSet, fs::File, io::BufWriter, path::PathBuf};

const BUFFER: usize = 1 << 20;

/// What became of a day.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenDay {
    pub day: Day,
    /// The file that was written; None: its files have everything.
    pub file: Option<PathBuf>,
    /// Runs in it.
    pub runs: u64,
    pub bytes: u64,
    /// Runs that older files of the day have as they are.
    pub known: u64,
    /// Why nothing of it was written; the other days were.
    pub error: Option<String>,
}

/// See the module's text. Days come one after the other, oldest first.
pub struct DayKeeper {
    directory: ArchiveDirectory,
    _lock: WriteLock,
    parts: Vec<DayPart>,
    store: FormatRow,
    at_ms: i64,
    open: Option<OpenDay>,
    kept: Vec<WrittenDay>,
}

struct OpenDay {
    kept: WrittenDay,
    part: u32,
    known: DayFiles,
    new: Option<(DayWriter<BufWriter<File>>, Unnamed)>,
    /// Runs of the last rows that were written: their logs follow.
    wanted: HashSet<RunId>,
}

impl DayKeeper {
    /// `store` is what the runs are of: a directory holds days of one store.
    pub fn new(directory: ArchiveDirectory, store: FormatRow, at_ms: i64) -> Result<Self, StoreError> {
        let lock = directory.lock()?;
        let parts = directory.parts()?;
        if let Some(Ok(newest)) = parts.last().map(|newest| DayFile::open(&newest.path))
            && newest.head.store.cluster_id != store.cluster_id
        {
            return Err(StoreError::Refused(format!(
                "{}: has the history of the store {}, and this is the store {}: name another directory",
                directory.path().display(),
                newest.head.store.cluster_id,
                store.cluster_id
            )));
        }
        Ok(Self { directory, _lock: lock, parts, store, at_ms, open: None, kept: Vec::new() })
    }

    /// The last day is finished too; what became of each.
    pub fn end(mut self) -> Vec<WrittenDay> {
        self.finish();
        self.kept
    }

    /// Only the days before the last count: it was not told to its end.
    pub fn give_up(mut self) -> Vec<WrittenDay> {
        self.open = None;
        self.kept
    }

    fn finish(&mut self) {
        let Some(OpenDay { mut kept, new, .. }) = self.open.take() else { return };
        if let Some((writer, unnamed)) = new
            && kept.error.is_none()
        {
            match named(writer, unnamed) {
                Ok((path, bytes)) => (kept.file, kept.bytes) = (Some(path), bytes),
                Err(error) => (kept.error, kept.runs) = (Some(error.to_string()), 0),
            }
        }
        self.kept.push(kept);
    }

    fn begin(&mut self, day: Day) -> OpenDay {
        let parts: Vec<&DayPart> = self.parts.iter().filter(|part| part.day == day).collect();
        let part = parts.last().map_or(0, |last| last.part) + 1;
        let kept = WrittenDay { day, file: None, runs: 0, bytes: 0, known: 0, error: None };
        let (known, error) = match DayFiles::open(&parts) {
            Ok(known) => (known, None),
            Err(error) => (DayFiles::default(), Some(error)),
        };
        let mut open = OpenDay { kept, part, known, new: None, wanted: HashSet::new() };
        if let Some(error) = error {
            open.refuse(&error);
        }
        open
    }
}

impl DaySink for DayKeeper {
    fn rows(&mut self, rows: Vec<RunRecord>) -> Result<(), StoreError> {
        let Some(day) = rows.first().and_then(|first| first.ended_ms).map(Day::of_ms) else { return Ok(()) };
        if self.open.as_ref().is_none_or(|open| open.kept.day != day) {
            self.finish();
            #[cfg(feature = "faults")]
            campanile_ports::faults::point("history_day");
            self.open = Some(self.begin(day));
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let head = || DayHead {
            day_format: DAY_FORMAT,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            store: self.store.clone(),
            from_ms: day.begin_ms(),
            to_ms: day.end_ms(),
            at_ms: self.at_ms,
        };
        // What cannot be kept of one day is told, and the next one is tried.
        if open.kept.error.is_none()
            && let Err(error) = open.rows(rows, &self.directory, head)
        {
            open.refuse(&error);
        }
        Ok(())
    }

    fn logs(&mut self, logs: Vec<LogOf>) -> Result<(), StoreError> {
        if let Some(open) = &mut self.open
            && let Err(error) = open.logs(logs)
        {
            open.refuse(&error);
        }
        Ok(())
    }
}

impl OpenDay {
    fn refuse(&mut self, error: &StoreError) {
        self.kept.error = Some(error.to_string());
        self.kept.runs = 0;
        self.new = None;
        self.wanted.clear();
    }

    fn rows(
        &mut self,
        rows: Vec<RunRecord>,
        directory: &ArchiveDirectory,
        head: impl FnOnce() -> DayHead,
    ) -> Result<(), StoreError> {
        let mut missing = Vec::new();
        for record in rows {
            if self.known.has(&record)? {
                self.kept.known += 1;
            } else {
                missing.push(record);
            }
        }
        self.wanted = missing.iter().map(|record| record.run).collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.kept.runs += missing.len() as u64;
        let (writer, _) = match &mut self.new {
            Some(new) => new,
            None => {
                let (file, unnamed) = directory.begin(self.kept.day, self.part)?;
                let writer = DayWriter::begin(BufWriter::with_capacity(BUFFER, file), head())?;
                self.new.insert((writer, unnamed))
            }
        };
        writer.rows(missing)
    }

    fn logs(&mut self, mut logs: Vec<LogOf>) -> Result<(), StoreError> {
        logs.retain(|log| self.wanted.contains(&log.run));
        match &mut self.new {
            Some((writer, _)) if !logs.is_empty() => writer.logs(logs),
            Some(_) | None => Ok(()),
        }
    }
}

fn named(writer: DayWriter<BufWriter<File>>, unnamed: Unnamed) -> Result<(PathBuf, u64), StoreError> {
    let (out, _) = writer.end()?;
    let file = out.into_inner().map_err(|e| unnamed.failed(e.error()))?;
    let bytes = file.metadata().map_err(|e| unnamed.failed(&e))?.len();
    unnamed.name(&file).map(|path| (path, bytes))
}

/// What the files of a day have: all parts, read beside what is to be kept.
#[derive(Default)]
struct DayFiles {
    parts: Vec<Runs<DayFile>>,
}

impl DayFiles {
    fn open(parts: &[&DayPart]) -> Result<Self, StoreError> {
        let open = |part: &&DayPart| DayFile::open(&part.path).map(DayFile::oldest_first);
        Ok(Self { parts: parts.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// Whether the newest part that has the run has it so.
    fn has(&mut self, record: &RunRecord) -> Result<bool, StoreError> {
        let mut newest = None;
        for part in &mut self.parts {
            newest = part.find(place(record))?.or(newest);
        }
        Ok(newest.as_ref() == Some(record))
    }
}
