//! Reads an archive, a block at a time, and refuses what is not whole, with the place.

use super::{
    block::{HEADER, Header, MAGIC},
    record::{ARCHIVE_FORMAT, Head, Record, Totals},
};
use campanile_ports::StoreError;
use campanile_schema::{ids::SLOTS, limits::ARCHIVE_BLOCK_BYTES};
use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// What is read, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Backup,
    Days,
}

impl Subject {
    fn what(self) -> &'static str {
        match self {
            Self::Backup => "this is not an archive of `campanile store backup`",
            Self::Days => "this is no day of history",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Backup => {
                "Nothing of it was used. Take another archive, or make a new one with `campanile store backup`"
            }
            Self::Days => {
                "Other days are read as ever. Take the file from a copy, or move it away: `campanile history archive` writes the day \
                 again for as long as the node has it"
            }
        }
    }
}

/// See the module's text.
pub struct ArchiveReader<R> {
    blocks: Blocks<R>,
    head: Head,
}

/// The blocks after the magic.
pub struct Blocks<R> {
    input: R,
    /// In messages.
    name: String,
    subject: Subject,
    hash: Sha256,
    /// Of the block before.
    crc: u32,
    offset: u64,
    seen: Totals,
    ended: bool,
}

impl<R: Read> ArchiveReader<R> {
    /// Reads the head; `name` stands in messages.
    pub fn open(input: R, name: impl Into<String>) -> Result<Self, StoreError> {
        let mut blocks = Blocks::begin(input, name.into(), Subject::Backup)?;
        let head = match blocks.record()? {
            Some(Record::Head(head)) => head,
            Some(Record::Day(_)) => {
                return Err(StoreError::Refused(format!(
                    "{}: this is a day of history and no backup; `campanile history verify` reads it",
                    blocks.name
                )));
            }
            Some(_) | None => return Err(blocks.damaged("an archive begins with its head")),
        };
        let name = &blocks.name;
        if head.archive_format != ARCHIVE_FORMAT {
            return Err(StoreError::Refused(format!(
                "{}: an archive of form {}, this release reads form {ARCHIVE_FORMAT}; use release {} or newer",
                name, head.archive_format, head.release
            )));
        }
        head.store.check().map_err(|e| StoreError::Refused(format!("{name}: {e}")))?;
        if !head.store.shards.is_power_of_two() || u64::from(head.store.shards) > SLOTS {
            return Err(blocks.damaged("the number of shards is no power of two, or too large"));
        }
        Ok(Self { blocks, head })
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    /// What was read so far; of the whole archive after the last record.
    pub fn totals(&self) -> Totals {
        self.blocks.seen
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.blocks.offset
    }

    /// The next record; None after the end, which was then found to fit what was read.
    pub fn record(&mut self) -> Result<Option<Record>, StoreError> {
        self.blocks.record()
    }

    /// Something that was read does not make sense.
    pub fn nonsense(&self, why: &str) -> StoreError {
        self.blocks.damaged(why)
    }
}

impl<R: Read> Blocks<R> {
    /// Reads the magic.
    pub fn begin(mut input: R, name: String, subject: Subject) -> Result<Self, StoreError> {
        let mut magic = [0; MAGIC.len()];
        let got = fill(&mut input, &mut magic).map_err(|e| unreadable(&name, &e))?;
        if got < magic.len() || magic != MAGIC {
            return Err(damaged(&name, 0, subject.what(), subject));
        }
        let mut hash = Sha256::new();
        hash.update(magic);
        let offset = MAGIC.len() as u64;
        Ok(Self { input, name, subject, hash, crc: 0, offset, seen: Totals::default(), ended: false })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn bytes(&self) -> u64 {
        self.offset
    }

    pub fn totals(&self) -> Totals {
        self.seen
    }

    pub fn damaged(&self, why: &str) -> StoreError {
        self.damaged_at(self.offset, why)
    }

    fn damaged_at(&self, offset: u64, why: &str) -> StoreError {
        damaged(&self.name, offset, why, self.subject)
    }

    /// The next record; None after the end, which was then found to fit what was read.
    pub fn record(&mut self) -> Result<Option<Record>, StoreError> {
        if self.ended {
            return Ok(None);
        }
        let at = self.offset;
        let mut bytes = [0; HEADER];
        self.take(&mut bytes, at)?;
        let header = Header::read(&bytes);
        if header.stored as usize > ARCHIVE_BLOCK_BYTES || header.length as usize > ARCHIVE_BLOCK_BYTES {
            return Err(self.damaged_at(at, "a block longer than any is"));
        }
        let mut stored = vec![0; header.stored as usize];
        self.take(&mut stored, at)?;
        let whole = self.hash.clone();
        self.hash.update(bytes);
        self.hash.update(&stored);
        let (content, crc) = header.open(&bytes, stored, self.crc).map_err(|why| self.damaged_at(at, why))?;
        self.crc = crc;
        let record = Record::read(header.kind, &content).map_err(|why| self.damaged_at(at, &why))?;
        match &record {
            Record::Head(_) | Record::Chunk(_) | Record::Day(_) | Record::Again(_) => {}
            Record::Snapshot(_) => self.seen.snapshots += 1,
            Record::Rows(rows) => self.seen.rows += rows.len() as u64,
            Record::Log(_) => self.seen.logs += 1,
            Record::Logs(logs) => self.seen.logs += logs.len() as u64,
            Record::Batch(_) => self.seen.batches += 1,
            Record::Broken(why) => {
                return Err(self.damaged_at(at, &format!("the backup did not come to its end: {why}")));
            }
            Record::End(end) => {
                if end.sha256 != whole.finalize().as_slice() || end.totals != self.seen {
                    return Err(self.damaged_at(at, "the end does not fit what stands before it"));
                }
                self.nothing_follows()?;
                self.ended = true;
                return Ok(None);
            }
        }
        Ok(Some(record))
    }

    fn nothing_follows(&mut self) -> Result<(), StoreError> {
        let got = fill(&mut self.input, &mut [0]).map_err(|e| unreadable(&self.name, &e))?;
        if got > 0 { Err(self.damaged_at(self.offset, "bytes after the end")) } else { Ok(()) }
    }

    fn take(&mut self, bytes: &mut [u8], block: u64) -> Result<(), StoreError> {
        let got = fill(&mut self.input, bytes).map_err(|e| unreadable(&self.name, &e))?;
        self.offset += got as u64;
        if got < bytes.len() {
            let why = format!("it ends here, in the block that begins at {block}, and has no end: it was cut off");
            return Err(self.damaged_at(self.offset, &why));
        }
        Ok(())
    }
}

/// Reads until the buffer is full or nothing comes any more.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

pub fn unreadable(name: &str, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("{name}: cannot be read: {error}"))
}

pub fn damaged(name: &str, offset: u64, why: &str, subject: Subject) -> StoreError {
    StoreError::Corrupt(format!("{name}: offset {offset}: {why}. {}", subject.advice()))
}
