//! Reads an archive, a block at a time, and refuses what is not whole, with the place.

use super::{
    block::{HEADER, Header, MAGIC},
    record::{ARCHIVE_FORMAT, Head, Record, Totals},
};
use campanile_actors::ports::StoreError;
use campanile_schema::{ids::SLOTS, limits::ARCHIVE_BLOCK_BYTES};
use sha2::{Digest, Sha256};
use std::io::{self, Read};

const ADVICE: &str = "Nothing of it was used. Take another archive, or make a new one with `campanile store backup`";

/// See the module's text.
pub struct ArchiveReader<R> {
    blocks: Blocks<R>,
    head: Head,
}

/// The blocks after the magic.
struct Blocks<R> {
    input: R,
    /// In messages.
    name: String,
    hash: Sha256,
    /// Of the block before.
    crc: u32,
    offset: u64,
    seen: Totals,
    ended: bool,
}

impl<R: Read> ArchiveReader<R> {
    /// Reads the head; `name` stands in messages.
    pub fn open(mut input: R, name: impl Into<String>) -> Result<Self, StoreError> {
        let name = name.into();
        let mut magic = [0; MAGIC.len()];
        let got = fill(&mut input, &mut magic).map_err(|e| unreadable(&name, &e))?;
        if got < magic.len() || magic != MAGIC {
            return Err(damaged(&name, 0, "this is not an archive of `campanile store backup`"));
        }
        let mut hash = Sha256::new();
        hash.update(magic);
        let offset = MAGIC.len() as u64;
        let mut blocks = Blocks { input, name, hash, crc: 0, offset, seen: Totals::default(), ended: false };
        let Some(Record::Head(head)) = blocks.record()? else {
            return Err(damaged(&blocks.name, offset, "an archive begins with its head"));
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
            return Err(damaged(name, offset, "the number of shards is no power of two, or too large"));
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
        damaged(&self.blocks.name, self.blocks.offset, why)
    }
}

impl<R: Read> Blocks<R> {
    fn record(&mut self) -> Result<Option<Record>, StoreError> {
        if self.ended {
            return Ok(None);
        }
        let at = self.offset;
        let mut bytes = [0; HEADER];
        self.take(&mut bytes, at)?;
        let header = Header::read(&bytes);
        if header.stored as usize > ARCHIVE_BLOCK_BYTES || header.length as usize > ARCHIVE_BLOCK_BYTES {
            return Err(damaged(&self.name, at, "a block longer than any is"));
        }
        let mut stored = vec![0; header.stored as usize];
        self.take(&mut stored, at)?;
        let whole = self.hash.clone();
        self.hash.update(bytes);
        self.hash.update(&stored);
        let (content, crc) = header.open(&bytes, stored, self.crc).map_err(|why| damaged(&self.name, at, why))?;
        self.crc = crc;
        let record = Record::read(header.kind, &content).map_err(|why| damaged(&self.name, at, &why))?;
        match &record {
            Record::Head(_) | Record::Chunk(_) => {}
            Record::Snapshot(_) => self.seen.snapshots += 1,
            Record::Rows(rows) => self.seen.rows += rows.len() as u64,
            Record::Log(_) => self.seen.logs += 1,
            Record::Batch(_) => self.seen.batches += 1,
            Record::Broken(why) => {
                return Err(damaged(&self.name, at, &format!("the backup did not come to its end: {why}")));
            }
            Record::End(end) => {
                if end.sha256 != whole.finalize().as_slice() || end.totals != self.seen {
                    return Err(damaged(&self.name, at, "the end does not fit what stands before it"));
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
        if got > 0 { Err(damaged(&self.name, self.offset, "bytes after the end")) } else { Ok(()) }
    }

    fn take(&mut self, bytes: &mut [u8], block: u64) -> Result<(), StoreError> {
        let got = fill(&mut self.input, bytes).map_err(|e| unreadable(&self.name, &e))?;
        self.offset += got as u64;
        if got < bytes.len() {
            let why = format!("it ends here, in the block that begins at {block}, and has no end: it was cut off");
            return Err(damaged(&self.name, self.offset, &why));
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

fn unreadable(name: &str, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("{name}: cannot be read: {error}"))
}

fn damaged(name: &str, offset: u64, why: &str) -> StoreError {
    StoreError::Corrupt(format!("{name}: offset {offset}: {why}. {ADVICE}"))
}
