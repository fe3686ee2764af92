//! A file of a day, read a block at a time and in any order. In memory is where its blocks begin.

use super::{place, stream::check_head};
use campanile_ports::{Row, StoreError};
use campanile_schema::{ids::RunId, limits::ARCHIVE_BLOCK_BYTES, record::RunRecord};
use campanile_store::archive::{
    block::{HEADER, Header, MAGIC},
    reader::{Subject, damaged, unreadable},
    record::{DayHead, LogOf, Record, Totals},
};
use std::{borrow::Borrow, fs::File, os::unix::fs::FileExt, path::Path, sync::Arc, vec};

/// See the module's text.
pub struct DayFile {
    file: File,
    name: String,
    pub head: DayHead,
    pub bytes: u64,
    blocks: Vec<Block>,
}

#[derive(Clone, Copy)]
struct Block {
    offset: u64,
    kind: u8,
    /// Checksum of the block before.
    before: u32,
}

impl DayFile {
    /// Looks at the beginning of every block. A file that was cut off, or that has holes, is refused; whether a block's content is what
    /// was written shows when it is read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| unreadable(&name, &e))?;
        let bytes = file.metadata().map_err(|e| unreadable(&name, &e))?.len();
        let wrong = |offset, why: &str| damaged(&name, offset, why, Subject::Days);
        let mut magic = [0; MAGIC.len()];
        if bytes < MAGIC.len() as u64 || file.read_exact_at(&mut magic, 0).is_err() || magic != MAGIC {
            return Err(wrong(0, "this is no day of history"));
        }
        let mut blocks = Vec::new();
        let (mut offset, mut before) = (MAGIC.len() as u64, 0);
        while offset < bytes {
            let mut header = [0; HEADER];
            if bytes - offset < HEADER as u64 {
                return Err(wrong(offset, "the file ends within a block: it was cut off"));
            }
            file.read_exact_at(&mut header, offset).map_err(|e| unreadable(&name, &e))?;
            let read = Header::read(&header);
            if read.stored as usize > ARCHIVE_BLOCK_BYTES || read.length as usize > ARCHIVE_BLOCK_BYTES {
                return Err(wrong(offset, "a block longer than any is"));
            }
            blocks.push(Block { offset, kind: read.kind, before });
            before = read.crc;
            offset += HEADER as u64 + u64::from(read.stored);
        }
        if offset != bytes || blocks.last().is_none_or(|block| block.kind != Record::END) {
            return Err(wrong(bytes, "the file has no end: it was cut off"));
        }
        let Record::Day(head) = open_block(&file, &name, blocks[0])? else {
            return Err(wrong(MAGIC.len() as u64, "it begins as no day of history does: is it a backup?"));
        };
        check_head(&head, &name)?;
        Ok(Self { file, name, head, bytes, blocks })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its end says that it holds.
    pub fn totals(&self) -> Result<Totals, StoreError> {
        let end = self.blocks.last().copied();
        match end.map(|end| open_block(&self.file, &self.name, end)).transpose()? {
            Some(Record::End(end)) => Ok(end.totals),
            Some(_) | None => Err(damaged(&self.name, self.bytes, "its end cannot be read", Subject::Days)),
        }
    }

    /// Runs in it that were started again, with their generation.
    pub fn again(&self) -> Result<Vec<(RunId, u32)>, StoreError> {
        let mut all = Vec::new();
        for block in self.blocks.iter().filter(|block| block.kind == Record::AGAIN) {
            if let Record::Again(again) = open_block(&self.file, &self.name, *block)? {
                all.extend(again);
            }
        }
        Ok(all)
    }

    /// Its runs, the last that ended first.
    pub fn newest_first(&self) -> Runs<&Self> {
        Runs::of(self, true)
    }

    /// Its runs by when they ended.
    pub fn oldest_first(self) -> Runs<Self> {
        Runs::of(self, false)
    }

    /// What the attempts of a run said, in order. Logs stand behind the block that has their run.
    pub fn logs(&self, run: RunId) -> Result<Vec<LogOf>, StoreError> {
        let (mut found, mut here) = (Vec::new(), false);
        for block in &self.blocks {
            if block.kind == Record::ROWS {
                if here {
                    break;
                }
                here = self.rows(*block)?.iter().any(|record| record.run == run);
            } else if here
                && block.kind == Record::LOGS
                && let Record::Logs(logs) = open_block(&self.file, &self.name, *block)?
            {
                found.extend(logs.into_iter().filter(|log| log.run == run));
            }
        }
        Ok(found)
    }

    fn rows(&self, block: Block) -> Result<Vec<RunRecord>, StoreError> {
        let run = |row| match row {
            Row::Run(record) => Some(Arc::unwrap_or_clone(record)),
            Row::Reopened(_)
            | Row::DeadLetterDiscarded(_)
            | Row::Ledger(_)
            | Row::JobDeleted(_)
            | Row::Audited(_)
            | Row::Defined(_) => None,
        };
        match open_block(&self.file, &self.name, block)? {
            Record::Rows(rows) => Ok(rows.into_iter().filter_map(run).collect()),
            _ => Err(damaged(&self.name, block.offset, "not the block that its beginning names", Subject::Days)),
        }
    }
}

fn open_block(file: &File, name: &str, block: Block) -> Result<Record, StoreError> {
    let mut bytes = [0; HEADER];
    file.read_exact_at(&mut bytes, block.offset).map_err(|e| unreadable(name, &e))?;
    let header = Header::read(&bytes);
    let mut stored = vec![0; header.stored as usize];
    file.read_exact_at(&mut stored, block.offset + HEADER as u64).map_err(|e| unreadable(name, &e))?;
    let wrong = |why: &str| damaged(name, block.offset, why, Subject::Days);
    let (content, _) = header.open(&bytes, stored, block.before).map_err(wrong)?;
    Record::read(header.kind, &content).map_err(|why| wrong(&why))
}

/// Runs of a file in order, of which one block is in memory. After an error it goes on behind the block that is damaged.
pub struct Runs<F> {
    file: F,
    blocks: vec::IntoIter<Block>,
    rows: vec::IntoIter<RunRecord>,
    newest_first: bool,
    next: Option<RunRecord>,
}

impl<F: Borrow<DayFile>> Runs<F> {
    fn of(file: F, newest_first: bool) -> Self {
        let mut blocks = file.borrow().blocks.clone();
        blocks.retain(|block| block.kind == Record::ROWS);
        if newest_first {
            blocks.reverse();
        }
        Self { file, blocks: blocks.into_iter(), rows: Vec::new().into_iter(), newest_first, next: None }
    }

    /// The next one, which stays.
    pub fn peek(&mut self) -> Result<Option<&RunRecord>, StoreError> {
        while self.next.is_none() {
            self.next = self.rows.next();
            if self.next.is_none() {
                let Some(block) = self.blocks.next() else { return Ok(None) };
                let mut rows = self.file.borrow().rows(block)?;
                if self.newest_first {
                    rows.reverse();
                }
                self.rows = rows.into_iter();
            }
        }
        Ok(self.next.as_ref())
    }

    pub fn take(&mut self) -> Option<RunRecord> {
        self.next.take()
    }

    /// Of runs by when they ended: the one of a place that comes behind all that were asked for before.
    pub fn find(&mut self, at: (i64, u64)) -> Result<Option<RunRecord>, StoreError> {
        while let Some(record) = self.peek()? {
            if place(record) >= at {
                return Ok(if place(record) == at { self.take() } else { None });
            }
            self.next = None;
        }
        Ok(None)
    }
}
