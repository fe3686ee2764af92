//! The content of an archive in memory: all shards as they were at the cut. It takes as much memory as a node that
//! serves them.

use campanile_actors::at_rest::Loaded;
use campanile_ports::{Manifest, Row, SnapshotPart, StoreError, release, rows::add_rows};
use campanile_schema::{
    frame::decode_batch,
    ids::{RunId, ShardId},
};
use campanile_store::archive::{
    reader::ArchiveReader,
    record::{BatchOf, ChunkOf, Head, LogOf, Record, SnapshotOf, Totals},
};
use std::io::Read;

/// Is handed rows of the read model, with their hybrid times, and logs, in an order in which they may be written.
pub trait Sink {
    fn rows(&mut self, rows: Vec<(u64, Row)>) -> Result<(), StoreError>;
    fn log(&mut self, run: RunId, attempt: u32, bytes: Vec<u8>) -> Result<(), StoreError>;
}

/// See the module's text.
pub struct Image {
    pub head: Head,
    pub totals: Totals,
    /// Bytes of the archive.
    pub bytes: u64,
    /// By their number.
    pub shards: Vec<Loaded>,
}

/// A snapshot whose chunks are still coming.
struct Coming {
    shard: ShardId,
    manifest: Manifest,
    chunks: Vec<(SnapshotPart, Vec<u8>)>,
}

impl Image {
    /// Reads an archive to its end, which alone says that it is whole.
    pub fn read<R: Read>(mut reader: ArchiveReader<R>, sink: &mut dyn Sink) -> Result<Self, StoreError> {
        let head = reader.head().clone();
        let mut shards: Vec<Loaded> = (0..head.store.shards).map(|id| Loaded::empty(ShardId(id))).collect();
        let mut coming: Option<Coming> = None;
        while let Some(record) = reader.record()? {
            if let Record::Chunk(ChunkOf { shard, part, bytes }) = record {
                match &mut coming {
                    Some(snapshot) if snapshot.shard == shard => snapshot.chunks.push((part, bytes)),
                    Some(_) | None => return Err(reader.nonsense("a chunk of no snapshot")),
                }
                continue;
            }
            if let Some(Coming { shard, manifest, chunks }) = coming.take() {
                shards[usize::from(shard.0)] = Loaded::from_chunks(shard, manifest, chunks, release::formats().event)?;
            }
            match record {
                Record::Head(_) => return Err(reader.nonsense("a second head")),
                Record::Snapshot(SnapshotOf { shard, manifest }) => {
                    if shard.0 >= head.store.shards {
                        return Err(reader.nonsense(&format!("shard {shard} of {}", head.store.shards)));
                    }
                    coming = Some(Coming { shard, manifest, chunks: Vec::new() });
                }
                Record::Rows(rows) => sink.rows(rows.into_iter().map(|row| (time_of(&row), row)).collect())?,
                Record::Log(LogOf { run, attempt, bytes }) => sink.log(run, attempt, bytes)?,
                Record::Batch(batch) => replay(&reader, &head, &mut shards, &batch, sink)?,
                Record::Day(_) | Record::Logs(_) | Record::Again(_) => {
                    return Err(reader.nonsense("a record of a day of history"));
                }
                Record::Chunk(_) | Record::Broken(_) | Record::End(_) => {}
            }
        }
        // No archive ends within a snapshot, but for one without a journal.
        if let Some(Coming { shard, manifest, chunks }) = coming {
            shards[usize::from(shard.0)] = Loaded::from_chunks(shard, manifest, chunks, release::formats().event)?;
        }
        for shard in &mut shards {
            shard.settle(head.cut);
        }
        Ok(Self { totals: reader.totals(), bytes: reader.bytes(), head, shards })
    }
}

fn replay<R: Read>(
    reader: &ArchiveReader<R>,
    head: &Head,
    shards: &mut [Loaded],
    batch: &BatchOf,
    sink: &mut dyn Sink,
) -> Result<(), StoreError> {
    if batch.position > head.cut {
        return Err(reader.nonsense("a batch of the journal after the cut"));
    }
    let frames = decode_batch(&batch.bytes).map_err(|e| reader.nonsense(&format!("a batch of the journal: {e}")))?;
    let mut rows = Vec::new();
    for frame in &frames {
        let shard = shards.get_mut(usize::from(frame.shard.0));
        let shard = shard.ok_or_else(|| reader.nonsense(&format!("a frame of shard {}", frame.shard)))?;
        shard.replay(frame)?;
        if batch.position > head.rows_upto {
            add_rows(frame, &mut rows);
        }
    }
    if rows.is_empty() { Ok(()) } else { sink.rows(rows) }
}

/// A hybrid time for a row whose own is not known: not above it.
fn time_of(row: &Row) -> u64 {
    let ms = match row {
        Row::Run(record) | Row::Reopened(record) | Row::DeadLetterDiscarded(record) => record.last_ms(),
        Row::Ledger(row) => row.to_ms,
        Row::Audited(record) => record.at_ms,
        Row::Defined(row) => row.at_ms,
        Row::JobDeleted(_) => 0,
    };
    ms.max(0) as u64 * 1000
}
