//! Rows that were applied and are not on disk yet: sorted maps, one for each table. A flush writes them as finished, synced table
//! files (fjall's ingestion), so a row never passes through a memtable and a journal of fjall, which nobody would read.
//!
//! A read sees three layers: what is filling, what is being flushed, and the files; the upper one counts.

use super::{
    Db,
    open::{in_background, to_foreground},
};
use campanile_actors::ports::StoreError;
use fjall::{Keyspace, Slice};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::BTreeMap,
    ops::{Bound, Deref},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use thread_priority::{ThreadId, thread_native_id};

/// The tables of the read model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Runs,
    JobRuns,
    Keys,
    Ledger,
    DeadLetters,
    Failed,
    ByTime,
    /// Last: its row says that the others are there.
    Meta,
}

impl Table {
    pub const ALL: [Self; 8] = [
        Self::Runs,
        Self::JobRuns,
        Self::Keys,
        Self::Ledger,
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
            Self::DeadLetters => "dead_letters",
            Self::Failed => "failed",
            Self::ByTime => "by_time",
            Self::Meta => "meta",
        }
    }
}

/// Rows by key; None = the row goes.
type Rows = BTreeMap<Slice, Option<Slice>>;
type Layer = [Rows; Table::ALL.len()];

/// Writes of one batch, in order; of several to one key the last counts.
#[derive(Default)]
pub struct Writes {
    tables: [Vec<(Slice, Option<Slice>)>; Table::ALL.len()],
    bytes: usize,
}

impl Writes {
    pub fn put(&mut self, table: Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.add(table, key.as_ref(), Some(value.as_ref()));
    }

    pub fn remove(&mut self, table: Table, key: impl AsRef<[u8]>) {
        self.add(table, key.as_ref(), None);
    }

    fn add(&mut self, table: Table, key: &[u8], value: Option<&[u8]>) {
        self.bytes += ROW_BYTES + value.map_or(0, <[u8]>::len);
        self.tables[table as usize].push((Slice::from(key), value.map(Slice::from)));
    }
}

/// See the module's text.
#[derive(Default)]
pub struct Staging {
    layers: RwLock<Layers>,
    /// Rough size of the filling layer.
    bytes: AtomicUsize,
    flushing: Mutex<()>,
    /// Thread of the flush under way.
    flusher: Mutex<Option<ThreadId>>,
}

#[derive(Default)]
struct Layers {
    filling: Layer,
    /// Of a flush that is under way, or that failed and is tried again.
    flushing: Option<Arc<Layer>>,
}

/// What a row takes beside its value: key, pointers, its share of a tree's node.
const ROW_BYTES: usize = 80;
const ROWS_PER_LOCK: usize = 512;

impl Staging {
    /// Adds the writes of a batch, table by table: should a flush come between, files are ahead of the position in `meta`, which
    /// is written last, and the rows are applied again after a crash.
    pub fn add(&self, writes: Writes) {
        self.bytes.fetch_add(writes.bytes, Ordering::Relaxed);
        for (table, rows) in writes.tables.into_iter().enumerate() {
            let mut rows = rows.into_iter();
            // A few at a time: readers wait no longer than for these.
            while rows.len() > 0 {
                self.layers.write().filling[table].extend(rows.by_ref().take(ROWS_PER_LOCK));
            }
        }
    }

    /// Rough size of what the next flush writes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Some(None): the row is removed. None: the files know.
    fn get(&self, table: Table, key: &[u8]) -> Option<Option<Slice>> {
        let layers = self.layers.read();
        let found = layers.filling[table as usize].get(key);
        found.or_else(|| layers.flushing.as_ref()?[table as usize].get(key)).cloned()
    }

    /// Rows with the prefix from a key on.
    fn range(&self, table: Table, from: &Bound<Vec<u8>>, prefix: &[u8]) -> Rows {
        let layers = self.layers.read();
        let bounds = (from.as_ref().map(Vec::as_slice), Bound::Unbounded);
        let rows = |layer: &Layer| -> Vec<(Slice, Option<Slice>)> {
            let rows = layer[table as usize].range::<[u8], _>(bounds);
            rows.take_while(|(key, _)| key.starts_with(prefix)).map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        let mut found: Rows = layers.flushing.iter().flat_map(|layer| rows(layer)).collect();
        found.extend(rows(&layers.filling));
        found
    }

    /// Writes what is there now as table files; durable when this returns. After a failure the rows are still read from here, and the
    /// next flush tries again.
    pub fn flush(&self, db: &Db) -> Result<(), StoreError> {
        let _one_at_a_time = self.flushing.lock();
        if let Some(failed) = self.layers.read().flushing.clone() {
            self.write_files(db, &failed)?;
        }
        let layer = {
            let mut layers = self.layers.write();
            if layers.filling.iter().all(Rows::is_empty) {
                return Ok(());
            }
            self.bytes.store(0, Ordering::Relaxed);
            let layer = Arc::new(std::mem::take(&mut layers.filling));
            layers.flushing = Some(layer.clone());
            layer
        };
        self.write_files(db, &layer)
    }

    /// The flush under way gets its share of processor time from now on. With none to spare it would never end, and those who wait for
    /// it would wait for ever.
    pub fn hurry(&self) {
        // Held, so that the thread cannot end meanwhile.
        let flusher = self.flusher.lock();
        if let Some(thread) = *flusher {
            to_foreground(thread);
        }
    }

    /// Flushes in time that nobody else wants, until somebody is in a hurry.
    pub fn flush_idly(&self, db: &Db) -> Result<(), StoreError> {
        in_background(|| {
            *self.flusher.lock() = Some(thread_native_id());
            let flushed = catch_unwind(AssertUnwindSafe(|| self.flush(db)));
            *self.flusher.lock() = None;
            flushed.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// A flush failed and none is under way.
    pub fn has_failed(&self) -> bool {
        let idle = self.flushing.try_lock();
        idle.is_some() && self.layers.read().flushing.is_some()
    }

    fn write_files(&self, db: &Db, layer: &Layer) -> Result<(), StoreError> {
        for table in Table::ALL {
            ingest(db.keyspace(table), &layer[table as usize]).map_err(|e| db.failure("flush", &e))?;
        }
        // The caller holds the rows: they are freed after the lock.
        self.layers.write().flushing = None;
        Ok(())
    }
}

/// A row that is replaced while it is flushed is in the layer above, so files never show an older one than the reader saw.
fn ingest(keyspace: &Keyspace, rows: &Rows) -> fjall::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut ingestion = keyspace.start_ingestion()?;
    for (key, value) in rows {
        match value {
            Some(value) => ingestion.write(key.clone(), value.clone())?,
            None => ingestion.write_tombstone(key.clone())?,
        }
    }
    ingestion.finish()
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
        let merged = Merge::over(self, table, from, prefix);
        let prefix = prefix.to_vec();
        merged.take_while(move |row| row.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix)))
    }
}

/// Rows of all layers, as of when it was made.
pub struct Merge<D> {
    db: D,
    staged: std::iter::Peekable<std::collections::btree_map::IntoIter<Slice, Option<Slice>>>,
    files: fjall::Iter,
    /// Read from the files, not given out yet.
    next: Option<(Slice, Slice)>,
}

impl<D: Deref<Target = Db>> Merge<D> {
    /// From a key on to the end of the table; of what is staged only rows with the prefix.
    pub fn over(db: D, table: Table, from: Bound<Vec<u8>>, prefix: &[u8]) -> Self {
        // Layers first: a row moves down, never up.
        let staged = db.staging.range(table, &from, prefix).into_iter().peekable();
        let files = db.keyspace(table).range((from, Bound::Unbounded));
        Self { db, staged, files, next: None }
    }
}

impl<D: Deref<Target = Db>> Iterator for Merge<D> {
    type Item = Result<(Slice, Slice), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.next.is_none() {
                self.next = match self.files.next().map(fjall::Guard::into_inner) {
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
                        staged < file
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
