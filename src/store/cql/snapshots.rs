//! The port `Snapshots`. A part is named before its chunks are written, so that what a node left unfinished is found and deleted; a manifest is
//! written when all parts are there; which manifest counts is said by the shard's row, never here.

use super::{
    CqlStore,
    connection::{Connection, RequestKind},
    error,
    rows::small,
};
use campanile_ports::{Manifest, PartRef, PortFuture, Position, SnapshotPart, Snapshots, StoreError};
use campanile_schema::ids::{Epoch, SessionId, ShardId};
use futures_util::future::try_join_all;
use scylla::response::PagingState;

/// Chunks of a part in one partition: 16 MiB. Part of what is stored.
const CHUNKS_PER_BUCKET: u32 = 256;

/// `number, part, chunks, bytes, crc`.
type PartColumns = (i64, String, i32, i64, i64);
/// `number, epoch, shard_seq, replay_session, replay_lane, replay_seq, last_hlc, parts`.
type ManifestColumns = (i64, i64, i64, i64, i32, i64, i64, Option<Vec<PartColumns>>);

fn part_name(part: SnapshotPart) -> &'static str {
    match part {
        SnapshotPart::Hot => "HOT",
        SnapshotPart::Definitions => "DEFINITIONS",
        SnapshotPart::Outbox => "OUTBOX",
        SnapshotPart::Graphs => "GRAPHS",
    }
}

fn part_of(name: &str) -> Result<SnapshotPart, StoreError> {
    match name {
        "HOT" => Ok(SnapshotPart::Hot),
        "DEFINITIONS" => Ok(SnapshotPart::Definitions),
        "OUTBOX" => Ok(SnapshotPart::Outbox),
        "GRAPHS" => Ok(SnapshotPart::Graphs),
        other => Err(StoreError::Corrupt(format!("a part of a snapshot is named '{other}'"))),
    }
}

fn crc(chunks: &[Vec<u8>]) -> u32 {
    chunks.iter().fold(0, |crc, chunk| crc32c::crc32c_append(crc, chunk))
}

fn written(error: &scylla::errors::ExecutionError) -> StoreError {
    error::written("a snapshot is written", error)
}

impl Snapshots for CqlStore {
    fn write_part(
        &self,
        shard: ShardId,
        number: u64,
        part: SnapshotPart,
        chunks: Vec<Vec<u8>>,
    ) -> PortFuture<'_, PartRef> {
        self.spawn(move |core| async move { write_part(&core.link, shard, number, part, &chunks).await })
    }

    fn publish(&self, shard: ShardId, manifest: Manifest) -> PortFuture<'_, ()> {
        self.spawn(move |core| async move { publish(&core.link, shard, &manifest).await })
    }

    fn load(&self, shard: ShardId, number: Option<u64>) -> PortFuture<'_, Option<Manifest>> {
        self.spawn(move |core| async move {
            let Some(number) = number else {
                return Err(StoreError::Refused(format!("shard {shard}: its row names the snapshot that counts")));
            };
            load(&core.link, shard, number).await
        })
    }

    fn forget(&self, shard: ShardId, manifest: Manifest) -> PortFuture<'_, ()> {
        self.spawn(move |core| async move { forget(&core.link, shard, &manifest).await })
    }

    fn read_part(&self, shard: ShardId, part: PartRef) -> PortFuture<'_, Vec<Vec<u8>>> {
        self.spawn(move |core| async move { read_part(&core.link, shard, &part).await })
    }
}

async fn write_part(
    link: &Connection,
    shard: ShardId,
    number: u64,
    part: SnapshotPart,
    chunks: &[Vec<u8>],
) -> Result<PartRef, StoreError> {
    let published = load(link, shard, number).await?;
    if published.is_some_and(|m| m.parts.iter().any(|p| p.number == number && p.part == part)) {
        return Err(StoreError::Refused(format!("shard {shard}: part {number} is published")));
    }
    let count =
        u32::try_from(chunks.len()).map_err(|_| StoreError::Refused(format!("a part of {} chunks", chunks.len())))?;
    let (of, at, name) = (i32::from(shard.0), number.cast_signed(), part_name(part));
    let values = (of, at, name, count.cast_signed());
    link.execute(RequestKind::Snapshot, &link.statements.put_part, values).await.map_err(|e| written(&e))?;
    let write = |(index, bytes): (u32, &Vec<u8>)| {
        let bucket = (index / CHUNKS_PER_BUCKET).cast_signed();
        let values = (of, at, name, bucket, index.cast_signed(), bytes.clone());
        async move { link.execute(RequestKind::Snapshot, &link.statements.put_chunk, values).await.map_err(|e| written(&e)) }
    };
    try_join_all((0..).zip(chunks).map(write)).await?;
    let bytes = chunks.iter().map(|chunk| chunk.len() as u64).sum();
    Ok(PartRef { number, part, chunks: count, bytes, crc: crc(chunks) })
}

async fn publish(link: &Connection, shard: ShardId, manifest: &Manifest) -> Result<(), StoreError> {
    match load(link, shard, manifest.number).await? {
        Some(there) if there == *manifest => return Ok(()),
        Some(_) => {
            let number = manifest.number;
            return Err(StoreError::Refused(format!(
                "shard {shard}: snapshot {number} is published, and is another one"
            )));
        }
        None => {}
    }
    let columns = |p: &PartRef| {
        let (chunks, bytes) = (p.chunks.cast_signed(), p.bytes.cast_signed());
        (p.number.cast_signed(), part_name(p.part).to_owned(), chunks, bytes, i64::from(p.crc))
    };
    let parts: Vec<PartColumns> = manifest.parts.iter().map(columns).collect();
    let Position { session, lane, seq } = manifest.replay_after;
    let values = (
        i32::from(shard.0),
        manifest.number.cast_signed(),
        manifest.epoch.0.cast_signed(),
        manifest.shard_seq.cast_signed(),
        session.0.cast_signed(),
        i32::from(lane),
        seq.cast_signed(),
        manifest.last_hlc.cast_signed(),
        parts,
    );
    link.execute(RequestKind::Snapshot, &link.statements.put_manifest, values)
        .await
        .map(|_| ())
        .map_err(|e| written(&e))
}

async fn load(link: &Connection, shard: ShardId, number: u64) -> Result<Option<Manifest>, StoreError> {
    const DOING: &str = "a snapshot's manifest is read";
    let values = (i32::from(shard.0), number.cast_signed());
    let rows = link.rows(RequestKind::Snapshot, &link.statements.read_manifest, values, DOING).await?;
    let Some(columns) = rows.maybe_first_row::<ManifestColumns>().map_err(|e| error::damaged(DOING, e))? else {
        return Ok(None);
    };
    let (number, epoch, shard_seq, session, lane, seq, last_hlc, parts) = columns;
    let part = |(number, name, chunks, bytes, crc): PartColumns| {
        Ok(PartRef {
            number: number.cast_unsigned(),
            part: part_of(&name)?,
            chunks: chunks.cast_unsigned(),
            bytes: bytes.cast_unsigned(),
            crc: u32::try_from(crc).map_err(|e| error::damaged(DOING, e))?,
        })
    };
    Ok(Some(Manifest {
        number: number.cast_unsigned(),
        epoch: Epoch(epoch.cast_unsigned()),
        shard_seq: shard_seq.cast_unsigned(),
        replay_after: Position {
            session: SessionId(session.cast_unsigned()),
            lane: small(lane)?,
            seq: seq.cast_unsigned(),
        },
        last_hlc: last_hlc.cast_unsigned(),
        parts: parts.unwrap_or_default().into_iter().map(part).collect::<Result<_, StoreError>>()?,
    }))
}

/// Chunks go before what names them, so that a deletion that breaks off is made whole by the next one.
async fn forget(link: &Connection, shard: ShardId, manifest: &Manifest) -> Result<(), StoreError> {
    const DOING: &str = "parts of snapshots are listed";
    let of = i32::from(shard.0);
    let upto = (of, manifest.number.cast_signed());
    let rows = link.rows(RequestKind::Snapshot, &link.statements.read_parts, upto, DOING).await?;
    for row in rows.rows::<(i64, String, i32)>().map_err(|e| error::damaged(DOING, e))? {
        let (number, name, chunks) = row.map_err(|e| error::damaged(DOING, e))?;
        let part = part_of(&name)?;
        if manifest.parts.iter().any(|p| p.number.cast_signed() == number && p.part == part) {
            continue;
        }
        let buckets = chunks.cast_unsigned().div_ceil(CHUNKS_PER_BUCKET);
        let delete = |bucket: u32| {
            let values = (of, number, part_name(part), bucket.cast_signed());
            async move { link.execute(RequestKind::Snapshot, &link.statements.delete_chunks, values).await }
        };
        try_join_all((0..buckets).map(delete)).await.map_err(|e| written(&e))?;
        let values = (of, number, part_name(part));
        link.execute(RequestKind::Snapshot, &link.statements.delete_part, values).await.map_err(|e| written(&e))?;
    }
    link.execute(RequestKind::Snapshot, &link.statements.delete_manifests, upto)
        .await
        .map(|_| ())
        .map_err(|e| written(&e))
}

async fn read_part(link: &Connection, shard: ShardId, part: &PartRef) -> Result<Vec<Vec<u8>>, StoreError> {
    const DOING: &str = "a part of a snapshot is read";
    let mut chunks = Vec::new();
    for bucket in 0..part.chunks.div_ceil(CHUNKS_PER_BUCKET) {
        let key = (i32::from(shard.0), part.number.cast_signed(), part_name(part.part), bucket.cast_signed());
        let mut from = Some(PagingState::start());
        while let Some(begin) = from.take() {
            let (page, next) =
                link.page(RequestKind::Snapshot, &link.statements.read_chunks, key, begin, DOING).await?;
            for row in page.rows::<(i32, Vec<u8>)>().map_err(|e| error::damaged(DOING, e))? {
                let (index, bytes) = row.map_err(|e| error::damaged(DOING, e))?;
                // Beyond its end lies what an earlier try with more chunks left.
                if index.cast_unsigned() < part.chunks {
                    chunks.push(bytes);
                }
            }
            from = next;
        }
    }
    let bytes: u64 = chunks.iter().map(|chunk| chunk.len() as u64).sum();
    if chunks.len() != part.chunks as usize || bytes != part.bytes || crc(&chunks) != part.crc {
        let (number, name) = (part.number, part_name(part.part));
        return Err(StoreError::Corrupt(format!(
            "shard {shard}: the part {name} of snapshot {number} is not whole: {} chunks and {bytes} bytes, of {} and {}",
            chunks.len(),
            part.chunks,
            part.bytes
        )));
    }
    Ok(chunks)
}
