//! Writes an archive, a block at a time: no more of it is in memory.

use super::{
    block::{self, MAGIC, Packing},
    record::{ARCHIVE_FORMAT, BatchOf, ChunkOf, EndOf, Head, LogOf, Record, SnapshotOf, Totals},
};
use campanile_ports::{Manifest, Position, Row, SnapshotPart, StoreError};
use campanile_schema::{
    format::FormatRow,
    ids::{RunId, ShardId},
    limits::{ARCHIVE_BLOCK_BYTES, ARCHIVE_ROWS},
};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

/// See the module's text.
pub struct ArchiveWriter<'a> {
    blocks: BlockWriter<&'a mut dyn Write>,
    rows: Vec<Row>,
}

impl<'a> ArchiveWriter<'a> {
    /// Begins one.
    pub fn begin(
        out: &'a mut dyn Write,
        store: FormatRow,
        at_ms: i64,
        cut: Position,
        rows_upto: Position,
    ) -> Result<Self, StoreError> {
        let mut writer = Self { blocks: BlockWriter::begin(out, Packing::Lz4), rows: Vec::new() };
        let release = env!("CARGO_PKG_VERSION").to_owned();
        writer.blocks.put(&Record::Head(Head {
            archive_format: ARCHIVE_FORMAT,
            release,
            store,
            at_ms,
            cut,
            rows_upto,
        }))?;
        Ok(writer)
    }

    pub fn snapshot(&mut self, shard: ShardId, manifest: Manifest) -> Result<(), StoreError> {
        self.blocks.totals.snapshots += 1;
        self.blocks.put(&Record::Snapshot(SnapshotOf { shard, manifest }))
    }

    /// Of the snapshot that was begun last.
    pub fn chunk(&mut self, shard: ShardId, part: SnapshotPart, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.blocks.put(&Record::Chunk(ChunkOf { shard, part, bytes }))
    }

    pub fn row(&mut self, row: Row) -> Result<(), StoreError> {
        self.rows.push(row);
        if self.rows.len() >= ARCHIVE_ROWS { self.flush_rows() } else { Ok(()) }
    }

    fn flush_rows(&mut self) -> Result<(), StoreError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.blocks.totals.rows += self.rows.len() as u64;
        let rows = std::mem::take(&mut self.rows);
        self.blocks.put(&Record::Rows(rows))
    }

    /// Chunks of one attempt in their order.
    pub fn log(&mut self, run: RunId, attempt: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.flush_rows()?;
        self.blocks.totals.logs += 1;
        self.blocks.put(&Record::Log(LogOf { run, attempt, bytes }))
    }

    /// A batch of the journal; those of all sessions in order.
    pub fn batch(&mut self, position: Position, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.flush_rows()?;
        self.blocks.totals.batches += 1;
        self.blocks.put(&Record::Batch(BatchOf { position, bytes }))
    }

    /// It cannot be ended: readers are told why.
    pub fn give_up(self, why: &str) {
        self.blocks.give_up(why);
    }

    pub fn end(mut self) -> Result<Totals, StoreError> {
        self.flush_rows()?;
        self.blocks.end().map(|(_, totals)| totals)
    }
}

/// Writes blocks, each following the one before.
pub struct BlockWriter<W: Write> {
    out: W,
    packing: Packing,
    hash: Sha256,
    /// Of the block before.
    crc: u32,
    buffer: Vec<u8>,
    pub totals: Totals,
}

impl<W: Write> BlockWriter<W> {
    pub fn begin(out: W, packing: Packing) -> Self {
        Self { out, packing, hash: Sha256::new(), crc: 0, buffer: MAGIC.to_vec(), totals: Totals::default() }
    }

    pub fn put(&mut self, record: &Record) -> Result<(), StoreError> {
        let content = record.bytes();
        if content.len() > ARCHIVE_BLOCK_BYTES {
            return Err(StoreError::Refused(format!(
                "a record of {} bytes; an archive holds at most {ARCHIVE_BLOCK_BYTES} in one",
                content.len()
            )));
        }
        self.crc = block::encode(&mut self.buffer, record.kind(), &content, self.crc, self.packing);
        self.hash.update(&self.buffer);
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|e| failed(&e))
    }

    /// It cannot be ended: readers are told why.
    pub fn give_up(mut self, why: &str) {
        // Whoever reads finds no end anyway.
        let _ = self.put(&Record::Broken(why.to_owned())).and_then(|()| self.out.flush().map_err(|e| failed(&e)));
    }

    /// Gives what was written to, flushed.
    pub fn end(mut self) -> Result<(W, Totals), StoreError> {
        let sha256 = self.hash.clone().finalize().to_vec();
        let totals = self.totals;
        self.put(&Record::End(EndOf { totals, sha256 }))?;
        self.out.flush().map_err(|e| failed(&e))?;
        Ok((self.out, totals))
    }
}

fn failed(error: &io::Error) -> StoreError {
    StoreError::WriteFailed(format!("the archive cannot be written: {error}"))
}
