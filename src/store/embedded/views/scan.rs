//! Rows of a table in order, forwards or backwards, from all layers: what is filling, what is being flushed, and the files. The upper one counts.

use super::{
    Db,
    staging::Table,
    stretch::{StagedRow, Stretch},
};
use campanile_ports::StoreError;
use fjall::Slice;
use std::{
    ops::{Bound, Deref},
    sync::Arc,
};

/// In which order rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanOrder {
    Rising,
    Falling,
}

impl ScanOrder {
    /// Of two keys, which comes first.
    fn first(self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        match self {
            Self::Rising => a.cmp(b),
            Self::Falling => b.cmp(a),
        }
    }
}

/// Staged rows in order, each key once.
pub(super) struct StagedRows {
    way: ScanOrder,
    /// With the place behind which the next row of each stands: rising it is the one there, falling the one before.
    newest_first: Vec<(Arc<Stretch>, usize)>,
}

impl StagedRows {
    /// From stretches, the newest first, those rows that a way from a bound has before it.
    pub(super) fn over<'a>(
        newest_first: impl Iterator<Item = &'a Arc<Stretch>>,
        way: ScanOrder,
        bound: &Bound<Vec<u8>>,
    ) -> Self {
        let place = |stretch: &Stretch| match way {
            ScanOrder::Rising => stretch.position(bound),
            ScanOrder::Falling => stretch.position_behind(bound),
        };
        Self { way, newest_first: newest_first.map(|stretch| (stretch.clone(), place(stretch))).collect() }
    }

    fn head(way: ScanOrder, stretch: &Stretch, place: usize) -> Option<&StagedRow> {
        match way {
            ScanOrder::Rising => stretch.rows.get(place),
            ScanOrder::Falling => stretch.rows.get(place.checked_sub(1)?),
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
                    ScanOrder::Rising => *place += 1,
                    ScanOrder::Falling => *place -= 1,
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
        let staged = db.staging.rows(table, ScanOrder::Rising, &from);
        let files = db.keyspace(table).range((from, Bound::Unbounded));
        Self { db, staged, files, next: None }
    }

    /// From a key back to the beginning of the table.
    pub fn back(db: D, table: Table, upto: Bound<Vec<u8>>) -> Self {
        let staged = db.staging.rows(table, ScanOrder::Falling, &upto);
        let files = db.keyspace(table).range((Bound::Unbounded, upto));
        Self { db, staged, files, next: None }
    }

    fn next_of_files(&mut self) -> Option<fjall::Guard> {
        match self.staged.way {
            ScanOrder::Rising => self.files.next(),
            ScanOrder::Falling => self.files.next_back(),
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
