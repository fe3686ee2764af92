//! Rows that were applied and are not on disk yet: of each table some sorted stretches, the newest last. A flush writes them as
//! finished, synced table files (fjall's ingestion), so a row never passes through a memtable and a journal of fjall, which nobody
//! would read.
//!
//! A read sees three layers (`scan`): what is filling, what is being flushed, and the files; the upper one counts.

use super::{
    Db,
    scan::{ScanOrder, StagedRows},
    stretch::{StagedRow, Stretch, Writes},
};
use campanile_ports::StoreError;
use fjall::{Keyspace, Slice};
use parking_lot::{Mutex, RwLock};
use std::{
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The tables of the read model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Runs,
    JobRuns,
    Keys,
    Ledger,
    /// The part of the ledger from which lists of jobs follow.
    Fires,
    DeadLetters,
    Failed,
    ByTime,
    Audit,
    /// Versions of definitions.
    Definitions,
    /// Last: its row says that the others are there.
    Meta,
}

impl Table {
    pub const ALL: [Self; 11] = [
        Self::Runs,
        Self::JobRuns,
        Self::Keys,
        Self::Ledger,
        Self::Fires,
        Self::DeadLetters,
        Self::Failed,
        Self::ByTime,
        Self::Audit,
        Self::Definitions,
        Self::Meta,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::JobRuns => "job_runs",
            Self::Keys => "keys",
            Self::Ledger => "ledger",
            Self::Fires => "fires",
            Self::DeadLetters => "dead_letters",
            Self::Failed => "failed",
            Self::ByTime => "by_time",
            Self::Audit => "audit",
            Self::Definitions => "definitions",
            Self::Meta => "meta",
        }
    }
}

/// What tells, before a table file is read, that a key is not in it. Decided when a table is made; those of before keep theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filters {
    None,
    /// Bloom filters, ten bits a key.
    Usual,
}

impl Table {
    pub fn filters(self) -> Filters {
        match self {
            // Single keys, most of which are not there.
            Self::Keys | Self::Meta => Filters::Usual,
            // A run that is asked for is there, and as ids rise with time hardly two files could have it. With fifty million
            // runs a filter is half a MiB, which would be read for each.
            Self::Runs
            // Read by ranges, for which no filter helps.
            | Self::JobRuns
            | Self::Ledger
            | Self::Fires
            | Self::DeadLetters
            | Self::Failed
            | Self::ByTime
            | Self::Audit
            | Self::Definitions => Filters::None,
        }
    }
}

/// A row is merged as many times as this goes into the batches of a flush, and a reader looks into at most so many stretches of each level.
const STRETCHES_MERGED: usize = 16;

/// By table; newest last.
type Layer = [Vec<Arc<Stretch>>; Table::ALL.len()];

/// See the module's text.
#[derive(Default)]
pub struct Staging {
    layers: RwLock<Layers>,
    /// Held by whoever adds to the filling layer, or takes it.
    filler: Mutex<()>,
    /// Rough size of the filling layer.
    bytes: AtomicUsize,
    flushing: Mutex<()>,
    /// Of each table the first and the last row of the flush before, which the next one writes again. Without them flushes whose keys only
    /// rise, as those of times do, would not overlap; such files are never merged, and there would be one more of them with each flush, for ever.
    seams: Mutex<[Vec<StagedRow>; Table::ALL.len()]>,
}

#[derive(Default)]
struct Layers {
    filling: Layer,
    /// Of a flush that is under way, or that failed and is tried again.
    flushing: Option<Arc<Layer>>,
}

impl Staging {
    /// Adds the writes of a batch: a reader sees all of them or none.
    pub fn add(&self, writes: Writes) {
        let _one_at_a_time = self.filler.lock();
        self.bytes.fetch_add(writes.bytes, Ordering::Relaxed);
        let new = writes.into_tables().map(|rows| (!rows.is_empty()).then(|| Arc::new(Stretch::new(rows, 0))));
        {
            let mut layers = self.layers.write();
            for (table, stretch) in layers.filling.iter_mut().zip(new) {
                table.extend(stretch);
            }
        }
        for table in Table::ALL {
            self.merge_full(table);
        }
    }

    /// Keeps the number of stretches that a reader looks into small. The caller holds `filler`.
    fn merge_full(&self, table: Table) {
        loop {
            let stretches = self.layers.read().filling[table as usize].clone();
            let Some(level) = stretches.last().map(|last| last.level) else { return };
            let first = stretches.partition_point(|stretch| stretch.level > level);
            if stretches.len() - first < STRETCHES_MERGED {
                return;
            }
            // Readers see the parts until the whole is there.
            let merged = Arc::new(Stretch::merged(&stretches[first..], level + 1));
            let stretches = &mut self.layers.write().filling[table as usize];
            stretches.truncate(first);
            stretches.push(merged);
        }
    }

    /// Rough size of what the next flush writes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Some(None): the row is removed. None: the files know.
    pub(super) fn get(&self, table: Table, key: &[u8]) -> Option<Option<Slice>> {
        let layers = self.layers.read();
        layers.newest_first(table).find_map(|stretch| stretch.get(key)).cloned()
    }

    /// Rows from a key on, or up to it, as of now.
    pub(super) fn rows(&self, table: Table, way: ScanOrder, bound: &Bound<Vec<u8>>) -> StagedRows {
        StagedRows::over(self.layers.read().newest_first(table), way, bound)
    }

    /// Writes what is there now as table files; durable when this returns. After a failure the rows are still read from here, and the
    /// next flush tries again.
    pub fn flush(&self, db: &Db) -> Result<(), StoreError> {
        let _one_at_a_time = self.flushing.lock();
        if let Some(failed) = self.layers.read().flushing.clone() {
            self.write_files(db, &failed)?;
        }
        let layer = {
            let _nobody_adds = self.filler.lock();
            let mut layers = self.layers.write();
            if layers.filling.iter().all(Vec::is_empty) {
                return Ok(());
            }
            self.bytes.store(0, Ordering::Relaxed);
            let layer = Arc::new(std::mem::take(&mut layers.filling));
            layers.flushing = Some(layer.clone());
            layer
        };
        self.write_files(db, &layer)
    }

    /// A flush failed and none is under way.
    pub fn has_failed(&self) -> bool {
        let idle = self.flushing.try_lock();
        idle.is_some() && self.layers.read().flushing.is_some()
    }

    fn write_files(&self, db: &Db, layer: &Layer) -> Result<(), StoreError> {
        let mut seams = self.seams.lock();
        for table in Table::ALL {
            let (stretches, seam) = (&layer[table as usize], &mut seams[table as usize]);
            if !stretches.is_empty() {
                let new = Stretch::merged(stretches, 0).rows;
                // Copied, or a row would hold what its neighbours had.
                let alone = |(key, value): &StagedRow| (key.clone(), value.as_ref().map(|value| Slice::from(&**value)));
                let next = new.first().into_iter().chain(new.last()).map(alone).collect();
                ingest(db.keyspace(table), new, std::mem::replace(seam, next)).map_err(|e| db.failure("flush", &e))?;
            }
        }
        // The caller holds the rows: they are freed after the lock.
        self.layers.write().flushing = None;
        Ok(())
    }
}

/// A row that is replaced while it is flushed is in the layer above, so files never show an older one than the reader saw.
fn ingest(keyspace: &Keyspace, mut rows: Vec<StagedRow>, seam: Vec<StagedRow>) -> fjall::Result<()> {
    for row in seam {
        if let Err(at) = rows.binary_search_by(|(key, _)| key.cmp(&row.0)) {
            rows.insert(at, row);
        }
    }
    let mut ingestion = keyspace.start_ingestion()?;
    for (key, value) in rows {
        match value {
            Some(value) => ingestion.write(key, value)?,
            None => ingestion.write_tombstone(key)?,
        }
    }
    ingestion.finish()
}

impl Layers {
    fn newest_first(&self, table: Table) -> impl Iterator<Item = &Arc<Stretch>> {
        let table = table as usize;
        let flushing = self.flushing.iter().flat_map(move |layer| layer[table].iter().rev());
        self.filling[table].iter().rev().chain(flushing)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{super::open::begin, *};
    use crate::{embedded::EmbeddedOptions, samples::at};
    use campanile_core::mix::mix;
    use std::collections::BTreeMap;

    /// Batches of puts and removes over few keys, with flushes between, beside a map that does the same.
    #[test]
    fn rows_are_those_of_a_map_through_batches_merges_and_flushes() {
        const KEYS: u64 = 60;
        let temp = tempfile::tempdir().unwrap();
        let tables = begin(&EmbeddedOptions::new(temp.path()), at(0, 0)).unwrap();
        let db = tables.db().unwrap();
        let mut map: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut seed: u64 = 0;
        let mut random = |below: u64| {
            seed += 1;
            mix(seed) % below
        };
        let mut most_stretches = 0;
        for batch in 0..400 {
            let mut writes = Writes::default();
            for _ in 0..=random(12) {
                let key = [b'k', random(KEYS) as u8];
                if random(4) == 0 {
                    writes.remove(Table::Keys, key);
                    map.remove(&key[..]);
                } else {
                    let value = batch.to_string().into_bytes();
                    writes.put(Table::Keys, key, &value);
                    map.insert(key.to_vec(), value);
                }
            }
            db.staging.add(writes);
            if random(70) == 0 {
                db.staging.flush(&db).unwrap();
            }
            most_stretches = most_stretches.max(db.staging.layers.read().filling[Table::Keys as usize].len());
            for key in 0..KEYS as u8 {
                let found = db.get(Table::Keys, &[b'k', key]).unwrap();
                assert_eq!(found.as_deref(), map.get(&[b'k', key][..]).map(Vec::as_slice), "batch {batch}");
            }
            let from = vec![b'k', random(KEYS) as u8];
            for from in [Bound::Unbounded, Bound::Included(from.clone()), Bound::Excluded(from)] {
                let scanned = db.scan(Table::Keys, from.clone(), b"k").map(Result::unwrap);
                let scanned: Vec<(Vec<u8>, Vec<u8>)> = scanned.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
                let wanted = map.range((from, Bound::Unbounded)).map(|(k, v)| (k.clone(), v.clone()));
                assert_eq!(scanned, wanted.collect::<Vec<_>>(), "batch {batch}");
            }
            let upto = vec![b'k', random(KEYS) as u8];
            for upto in [Bound::Unbounded, Bound::Included(upto.clone()), Bound::Excluded(upto)] {
                let scanned = db.scan_back(Table::Keys, upto.clone(), b"k").map(Result::unwrap);
                let scanned: Vec<(Vec<u8>, Vec<u8>)> = scanned.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
                let wanted = map.range((Bound::Unbounded, upto)).rev().map(|(k, v)| (k.clone(), v.clone()));
                assert_eq!(scanned, wanted.collect::<Vec<_>>(), "batch {batch}, falling");
            }
        }
        assert!((STRETCHES_MERGED..3 * STRETCHES_MERGED).contains(&most_stretches), "{most_stretches} stretches");
    }

    /// Of times, of ids of one shard, and of a job's runs, which are listed newest first.
    #[test]
    fn files_of_keys_that_only_rise_or_fall_are_merged() {
        const FLUSHES: u32 = 60;
        let temp = tempfile::tempdir().unwrap();
        let tables = begin(&EmbeddedOptions::new(temp.path()), at(0, 0)).unwrap();
        let db = tables.db().unwrap();
        for flush in 0..FLUSHES {
            let mut writes = Writes::default();
            for row in (flush * 10..).take(10) {
                writes.put(Table::ByTime, row.to_be_bytes(), "");
                writes.put(Table::JobRuns, (!row).to_be_bytes(), "");
            }
            db.staging.add(writes);
            db.staging.flush(&db).unwrap();
        }
        for table in [Table::ByTime, Table::JobRuns] {
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
            let keyspace = db.keyspace(table);
            // Merged in the background.
            while keyspace.table_count() > 2 * usize::from(super::super::open::FLUSHES_MERGED) {
                assert!(std::time::Instant::now() < deadline, "{table:?}: {} files", keyspace.table_count());
                std::thread::yield_now();
            }
            assert_eq!(keyspace.iter().count(), FLUSHES as usize * 10);
        }
    }
}
