//! Writes the directory into an archive while a node uses it.
//!
//! What it takes, in this order, so that together it is what a crash at the cut would leave: the newest snapshots, the rows of the read
//! model, and the journal up to what was durable after both were taken. What was acknowledged before the backup began is below
//! the cut. Nothing that it still has to read is trimmed or swept meanwhile; appends never wait for it.

use super::{EmbeddedStore, Inner, damage::cannot_read, guard, log::Slice, reader::SegmentReader, segment::PAGE};
use crate::{
    archive::{ArchiveWriter, Totals},
    file::Open,
    tables::Stored,
};
use campanile_ports::{Manifest, Position, StoreError};
use campanile_schema::ids::{SessionId, ShardId};
use std::{io::Write, sync::atomic::Ordering};

/// While it lives, nothing is trimmed from the journal and no snapshot's part is removed.
struct Pin<'a>(&'a Inner);

impl<'a> Pin<'a> {
    fn new(inner: &'a Inner) -> Self {
        // Whoever trims now ends first.
        let _trimming = guard(&inner.trimmer);
        inner.snapshots.pins().fetch_add(1, Ordering::AcqRel);
        Self(inner)
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.snapshots.pins().fetch_sub(1, Ordering::AcqRel);
    }
}

impl EmbeddedStore {
    /// Writes an archive to `out`. Takes long; runs on a thread of the caller's. On an error the archive has no end, and says why as
    /// far as it can.
    pub fn backup(&self, out: &mut dyn Write, at_ms: i64) -> Result<Totals, StoreError> {
        let inner = &*self.inner;
        let _pin = Pin::new(inner);
        let session = SessionId(inner.session.load(Ordering::Acquire));
        let mut manifests = Vec::new();
        for shard in (0..inner.format.shards).map(ShardId) {
            if let Some(manifest) = inner.snapshots.load(shard)? {
                manifests.push((shard, manifest));
            }
        }
        // So that few rows are only in memory, where they would have to be copied.
        inner.tables.flush()?;
        let committing = guard(&inner.committer);
        let (rows_upto, mut rows) = (inner.tables.position()?, inner.tables.rows()?);
        drop(committing);
        let after = replay_after(inner.format.shards, &manifests).min(rows_upto);
        #[cfg_attr(not(feature = "faults"), expect(unused_mut, reason = "a mutation changes it"))]
        let mut slice = guard(&inner.log).slice();
        #[cfg(feature = "faults")]
        if campanile_ports::faults::mutation("backup_early_cut") {
            slice.upto = after;
        }
        let mut writer = ArchiveWriter::begin(out, inner.format.clone(), at_ms, slice.upto, rows_upto)?;
        let write = || -> Result<(), StoreError> {
            for (shard, manifest) in manifests {
                inner.still(session)?;
                inner.snapshot(shard, manifest, &mut writer)?;
                #[cfg(feature = "faults")]
                campanile_ports::faults::point("backup");
            }
            for row in &mut rows {
                inner.still(session)?;
                match row? {
                    Stored::Row(row) => writer.row(row)?,
                    Stored::Log { run, attempt, bytes } => writer.log(run, attempt, bytes)?,
                }
            }
            inner.journal(&slice, after, session, &mut writer)
        };
        match write() {
            Ok(()) => writer.end(),
            Err(error) => {
                writer.give_up(&error.to_string());
                Err(error)
            }
        }
    }
}

/// Where replay begins: at the beginning if a shard has no snapshot.
fn replay_after(shards: u16, manifests: &[(ShardId, Manifest)]) -> Position {
    if manifests.len() < usize::from(shards) {
        return Position::default();
    }
    manifests.iter().map(|(_, m)| m.replay_after).min().unwrap_or_default()
}

impl Inner {
    /// A failed write begins a new session, which wants the views for itself.
    pub(super) fn still(&self, session: SessionId) -> Result<(), StoreError> {
        if self.session.load(Ordering::Acquire) == session.0 {
            return Ok(());
        }
        Err(StoreError::Unavailable(
            "the store was opened anew meanwhile, after a failed write; begin again".to_owned(),
        ))
    }

    fn snapshot(&self, shard: ShardId, manifest: Manifest, writer: &mut ArchiveWriter<'_>) -> Result<(), StoreError> {
        let parts = manifest.parts.clone();
        writer.snapshot(shard, manifest)?;
        for part in parts {
            for chunk in self.snapshots.read_part(shard, &part)? {
                writer.chunk(shard, part.part, chunk)?;
            }
        }
        Ok(())
    }

    fn journal(
        &self,
        slice: &Slice,
        after: Position,
        session: SessionId,
        writer: &mut ArchiveWriter<'_>,
    ) -> Result<(), StoreError> {
        for segment in &slice.segments {
            let file = self.files.open(&segment.path, Open::Read).map_err(|e| cannot_read(&segment.path, &e))?;
            let reader = SegmentReader::new(file, segment.salt, PAGE);
            let mut reader = reader.map_err(|e| cannot_read(&segment.path, &e))?;
            while reader.offset() < segment.end {
                self.still(session)?;
                let (_, header) = reader.must_step(&segment.path)?;
                if header.position > slice.upto {
                    return Ok(());
                }
                if header.position > after {
                    writer.batch(header.position, reader.payload().to_vec())?;
                }
            }
        }
        Ok(())
    }
}
