//! Rows that were applied and are not on disk yet: of each table some sorted stretches, the newest last. A flush writes them as
//! finished, synced table files (fjall's ingestion), so a row never passes through a memtable and a journal of fjall, which nobody
//! would read.
//!
//! A read sees three layers: what is filling, what is being flushed, and the files; the upper one counts.

use super::{
    Db,
    stretch::{StagedRow, Stretch, Writes},
};
use campanile_actors::ports::StoreError;
use fjall::{Keyspace, Slice};
use parking_lot::{Mutex, RwLock};
use std::{
    ops::{Bound, Deref},
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
    /// Last: its row says that the others are there.
    Meta,
}

impl Table {
    pub const ALL: [Self; 9] = [
        Self::Runs,
        Self::JobRuns,
        Self::Keys,
        Self::Ledger,
        Self::Fires,
        Self::DeadLetters,
        Self::Failed,
        Self::ByTime,
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
            | Self::ByTime => Filters::None,
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
    fn get(&self, table: Table, key: &[u8]) -> Option<Option<Slice>> {
        let layers = self.layers.read();
        layers.newest_first(table).find_map(|stretch| stretch.get(key)).cloned()
    }

    /// Rows from a key on, or up to it, as of now.
    fn rows(&self, table: Table, way: Way, bound: &Bound<Vec<u8>>) -> StagedRows {
        let layers = self.layers.read();
        let stretches = layers.newest_first(table);
        let place = |stretch: &Stretch| match way {
            Way::Rising => stretch.position(bound),
            Way::Falling => stretch.position_behind(bound),
        };
        StagedRows { way, newest_first: stretches.map(|stretch| (stretch.clone(), place(stretch))).collect() }
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

/// In which order rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Rising,
    Falling,
}

impl Way {
    /// Of two keys, which comes first.
    fn first(self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        match self {
            Self::Rising => a.cmp(b),
            Self::Falling => b.cmp(a),
        }
    }
}

/// Staged rows in order, each key once.
struct StagedRows {
    way: Way,
    /// With the place behind which the next row of each stands: rising it is the one there, falling the one before.
    newest_first: Vec<(Arc<Stretch>, usize)>,
}

impl StagedRows {
    fn head(way: Way, stretch: &Stretch, place: usize) -> Option<&StagedRow> {
        match way {
            Way::Rising => stretch.rows.get(place),
            Way::Falling => stretch.rows.get(place.checked_sub(1)?),
        }
    }

    fn peek(&self) -> Option<&StagedRow> {
        let heads = self.newest_first.iter().filter_map(|(stretch, place)| Self::head(self.way, stretch, *place));
        // Of those with one key the first, which is the newest.
        heads.min_by(|(a, _), (b, _)| self.way.first(a, b))
    }
}

impl Iterator for StagedRows {
    type Item = StagedRow;

    fn next(&mut self) -> Option<StagedRow> {
        let row = self.peek()?.clone();
        for (stretch, place) in &mut self.newest_first {
            if Self::head(self.way, stretch, *place).is_some_and(|(key, _)| *key == row.0) {
                match self.way {
                    Way::Rising => *place += 1,
                    Way::Falling => *place -= 1,
                }
            }
        }
        Some(row)
    }
}

impl Db {
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<Slice>, StoreError> {
        // Layers first: a row moves down, never up.
        match self.staging.get(table, key) {
            Some(staged) => Ok(staged),
            None => self.keyspace(table).get(key).map_err(|e| self.failure("read", &e)),
        }
    }

    /// Rows with the prefix from a key on, in order.
    pub fn scan(
        &self,
        table: Table,
        from: Bound<Vec<u8>>,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Slice, Slice), StoreError>> {
        with_prefix(Merge::over(self, table, from), prefix)
    }

    /// Rows with the prefix up to a key, the last one first.
    pub fn scan_back(
        &self,
        table: Table,
        upto: Bound<Vec<u8>>,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Slice, Slice), StoreError>> {
        with_prefix(Merge::back(self, table, upto), prefix)
    }
}

fn with_prefix<D: Deref<Target = Db>>(
    rows: Merge<D>,
    prefix: &[u8],
) -> impl Iterator<Item = Result<(Slice, Slice), StoreError>> {
    let prefix = prefix.to_vec();
    rows.take_while(move |row| row.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix)))
}

/// Rows of all layers, as of when it was made.
pub struct Merge<D> {
    db: D,
    staged: StagedRows,
    files: fjall::Iter,
    /// Read from the files, not given out yet.
    next: Option<(Slice, Slice)>,
}

impl<D: Deref<Target = Db>> Merge<D> {
    /// From a key on to the end of the table.
    pub fn over(db: D, table: Table, from: Bound<Vec<u8>>) -> Self {
        // Layers first: a row moves down, never up.
        let staged = db.staging.rows(table, Way::Rising, &from);
        let files = db.keyspace(table).range((from, Bound::Unbounded));
        Self { db, staged, files, next: None }
    }

    /// From a key back to the beginning of the table.
    pub fn back(db: D, table: Table, upto: Bound<Vec<u8>>) -> Self {
        let staged = db.staging.rows(table, Way::Falling, &upto);
        let files = db.keyspace(table).range((Bound::Unbounded, upto));
        Self { db, staged, files, next: None }
    }

    fn next_of_files(&mut self) -> Option<fjall::Guard> {
        match self.staged.way {
            Way::Rising => self.files.next(),
            Way::Falling => self.files.next_back(),
        }
    }
}

impl<D: Deref<Target = Db>> Iterator for Merge<D> {
    type Item = Result<(Slice, Slice), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.next.is_none() {
                self.next = match self.next_of_files().map(fjall::Guard::into_inner) {
                    None => None,
                    Some(Err(error)) => return Some(Err(self.db.failure("read", &error))),
                    Some(Ok(row)) => Some(row),
                };
            }
            let staged_first = match (self.staged.peek(), &self.next) {
                (None, None) => return None,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some((staged, _)), Some((file, _))) => {
                    if staged == file {
                        self.next = None;
                        true
                    } else {
                        self.staged.way.first(staged, file).is_lt()
                    }
                }
            };
            if !staged_first {
                return self.next.take().map(Ok);
            }
            if let Some((key, Some(value))) = self.staged.next() {
                return Some(Ok((key, value)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{super::open::begin, *};
    use crate::store::{embedded::EmbeddedOptions, samples::at};
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
