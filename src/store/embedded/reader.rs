//! Reads the batches of one segment file in order, a bounded buffer at a time, and tells damage from the end.

use super::damage::{cannot_read, corrupt};
use super::segment::{BATCH_HEADER, BatchHeader, PAGE, Salt, batch_is_whole, padded, peek_batch};
use crate::file::File;
use campanile_ports::StoreError;
use campanile_schema::limits;
use std::{io, path::Path, sync::Arc};

/// What stands at the reader's place.
#[derive(Debug)]
pub enum Step {
    /// A whole batch; its payload is in [`SegmentReader::payload`].
    Batch { offset: u64, header: BatchHeader },
    /// Zeros, or the end of the file.
    End { offset: u64 },
    /// Neither.
    Bad { offset: u64, why: &'static str },
}

/// A cursor over a segment's batches.
pub struct SegmentReader {
    file: Arc<dyn File>,
    salt: Salt,
    len: u64,
    offset: u64,
    buffer: Vec<u8>,
    /// Where in the file the buffer begins.
    start: u64,
    payload: std::ops::Range<usize>,
}

impl SegmentReader {
    /// Reads from `offset`, the start of a batch.
    pub fn new(file: Arc<dyn File>, salt: Salt, offset: u64) -> io::Result<Self> {
        let len = file.size()?;
        Ok(Self { file, salt, len, offset, buffer: Vec::new(), start: offset, payload: 0..0 })
    }

    /// Bytes of the file.
    pub fn file_len(&self) -> u64 {
        self.len
    }

    /// Where the next batch is looked for.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next batch where there must be one: what is acknowledged may not be damaged.
    pub fn must_step(&mut self, path: &Path) -> Result<(u64, BatchHeader), StoreError> {
        match self.step().map_err(|e| cannot_read(path, &e))? {
            Step::Batch { offset, header } => Ok((offset, header)),
            Step::End { offset } => Err(corrupt(path, offset, "an acknowledged batch is missing")),
            Step::Bad { offset, why } => {
                Err(corrupt(path, offset, &format!("an acknowledged batch is damaged: {why}")))
            }
        }
    }

    /// The bytes of the next batch as they stand in the file, with their offset; the batch must be whole.
    pub fn raw_step(&mut self) -> io::Result<(u64, Vec<u8>)> {
        match self.step()? {
            Step::Batch { offset, .. } => {
                let begin = (offset - self.start) as usize;
                let end = (self.offset - self.start) as usize;
                Ok((offset, self.buffer[begin..end].to_vec()))
            }
            Step::End { offset } | Step::Bad { offset, .. } => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the batch at offset {offset} changed while it was read"),
            )),
        }
    }

    /// The payload of the batch that [`Self::step`] returned last.
    pub fn payload(&self) -> &[u8] {
        &self.buffer[self.payload.clone()]
    }

    /// The next batch; stays where it is on anything else.
    pub fn step(&mut self) -> io::Result<Step> {
        let offset = self.offset;
        if offset + PAGE > self.len {
            return Ok(if offset >= self.len {
                Step::End { offset }
            } else {
                Step::Bad { offset, why: "the file ends within a page" }
            });
        }
        let head = self.bytes(offset, PAGE as usize)?;
        let Some(header) = peek_batch(head) else {
            return Ok(if head.iter().all(|b| *b == 0) {
                Step::End { offset }
            } else {
                Step::Bad { offset, why: "no batch begins here" }
            });
        };
        match self.whole(offset, &header)? {
            Some(payload) => {
                self.payload = payload;
                self.offset = offset + padded(header.length as usize);
                Ok(Step::Batch { offset, header })
            }
            None => Ok(Step::Bad { offset, why: "the batch's checksum does not match" }),
        }
    }

    /// The first whole batch that begins at a page start at or after `from`.
    pub fn find_batch(&mut self, from: u64) -> io::Result<Option<(u64, BatchHeader)>> {
        let mut offset = from.next_multiple_of(PAGE);
        while offset + PAGE <= self.len {
            let head = self.bytes(offset, BATCH_HEADER)?;
            if let Some(header) = peek_batch(head)
                && self.whole(offset, &header)?.is_some()
            {
                return Ok(Some((offset, header)));
            }
            offset += PAGE;
        }
        Ok(None)
    }

    /// Where in the buffer the payload stands if the batch is whole.
    fn whole(&mut self, offset: u64, header: &BatchHeader) -> io::Result<Option<std::ops::Range<usize>>> {
        let size = padded(header.length as usize);
        if offset + size > self.len {
            return Ok(None);
        }
        let salt = self.salt;
        let bytes = self.bytes(offset, size as usize)?;
        if !batch_is_whole(bytes, header, salt, offset) {
            return Ok(None);
        }
        let begin = (offset - self.start) as usize + BATCH_HEADER;
        Ok(Some(begin..begin + header.length as usize))
    }

    /// `size` bytes at `offset`, which lie within the file.
    fn bytes(&mut self, offset: u64, size: usize) -> io::Result<&[u8]> {
        let held = offset >= self.start && offset + size as u64 <= self.start + self.buffer.len() as u64;
        if !held {
            let want = (self.len - offset).min(limits::JOURNAL_READ_BYTES.max(size) as u64) as usize;
            self.buffer.resize(want, 0);
            self.start = offset;
            let got = self.file.read_at(&mut self.buffer, offset)?;
            if got < want {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter while it was read"));
            }
        }
        let begin = (offset - self.start) as usize;
        Ok(&self.buffer[begin..begin + size])
    }
}
