//! Rows on their way into the read model: what a batch writes ([`Writes`]), and the rows of one batch or of several in order ([`Stretch`]).

use super::staging::Table;
use byteview::ByteView;
use fjall::Slice;
use std::{
    ops::{Bound, Range},
    sync::Arc,
};

/// A key and what stands there; None = the row goes.
pub(super) type StagedRow = (Slice, Option<Slice>);

/// As keys are compared, with the first eight bytes as a number: for most keys they tell already, and a call for so few bytes takes longer.
fn by_key((a, _): &StagedRow, (b, _): &StagedRow) -> std::cmp::Ordering {
    match (a.first_chunk(), b.first_chunk()) {
        (Some(x), Some(y)) => u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y)).then_with(|| a[8..].cmp(&b[8..])),
        (None, _) | (_, None) => a.cmp(b),
    }
}

/// Rows of one batch, or of several: by key, each key once.
pub(super) struct Stretch {
    pub rows: Vec<StagedRow>,
    /// 0: one batch. Else merged from some of the level below.
    pub level: u8,
}

impl Stretch {
    /// Of rows with one key the last counts.
    pub fn new(mut rows: Vec<StagedRow>, level: u8) -> Self {
        // Stable, and quick where parts are in order already: merging is sorting what stands one after the other.
        rows.sort_by(by_key);
        rows.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Self { rows, level }
    }

    pub fn merged(stretches: &[Arc<Self>], level: u8) -> Self {
        let mut rows = Vec::with_capacity(stretches.iter().map(|stretch| stretch.rows.len()).sum());
        for stretch in stretches {
            rows.extend_from_slice(&stretch.rows);
        }
        Self::new(rows, level)
    }

    pub fn get(&self, key: &[u8]) -> Option<&Option<Slice>> {
        let at = self.rows.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        self.rows.get(at).map(|(_, value)| value)
    }

    /// Where the rows from a key on begin.
    pub fn position(&self, from: &Bound<Vec<u8>>) -> usize {
        match from {
            Bound::Unbounded => 0,
            Bound::Included(from) => self.rows.partition_point(|(key, _)| **key < from[..]),
            Bound::Excluded(from) => self.rows.partition_point(|(key, _)| **key <= from[..]),
        }
    }

    /// Behind the last row up to a key.
    pub fn position_behind(&self, upto: &Bound<Vec<u8>>) -> usize {
        match upto {
            Bound::Unbounded => self.rows.len(),
            Bound::Included(upto) => self.rows.partition_point(|(key, _)| **key <= upto[..]),
            Bound::Excluded(upto) => self.rows.partition_point(|(key, _)| **key < upto[..]),
        }
    }
}

/// What a row takes beside its value: key and pointers, and room for it where stretches are merged.
const ROW_BYTES: usize = 80;

/// Values of a batch that lie in one piece of memory, bytes. By the time rows are merged nothing of them is in the processor's cache, and
/// what counts the users of a value lies beside it: counted for each value alone, that was most of the work of a merge.
const VALUES_TOGETHER: usize = 128 << 10;

/// Values that fit into the row itself, bytes.
const IN_ROW: usize = 20;

/// Writes of one batch, in order; of several to one key the last counts.
#[derive(Default)]
pub struct Writes {
    tables: [Vec<StagedRow>; Table::ALL.len()],
    /// Values one behind the other, and the rows that wait for theirs.
    values: Vec<u8>,
    waiting: Vec<(Table, usize, Range<usize>)>,
    /// Rough size.
    pub(super) bytes: usize,
}

impl Writes {
    pub fn put(&mut self, table: Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        if value.len() <= IN_ROW {
            return self.add(table, key.as_ref(), Some(Slice::from(value)));
        }
        self.write(table, key, |values| values.extend_from_slice(value));
    }

    /// The value is what `write` appends.
    pub fn write(&mut self, table: Table, key: impl AsRef<[u8]>, write: impl FnOnce(&mut Vec<u8>)) {
        if self.values.capacity() == 0 {
            self.values.reserve(VALUES_TOGETHER + VALUES_TOGETHER / 8);
        }
        let begin = self.values.len();
        write(&mut self.values);
        let range = begin..self.values.len();
        self.bytes += range.len();
        self.waiting.push((table, self.tables[table as usize].len(), range));
        self.add(table, key.as_ref(), Some(Slice::from(&[])));
        if self.values.len() >= VALUES_TOGETHER {
            self.hand_out();
        }
    }

    /// Makes room for so many rows of a table.
    pub fn reserve(&mut self, table: Table, rows: usize) {
        self.tables[table as usize].reserve_exact(rows);
    }

    pub fn remove(&mut self, table: Table, key: impl AsRef<[u8]>) {
        self.add(table, key.as_ref(), None);
    }

    fn add(&mut self, table: Table, key: &[u8], value: Option<Slice>) {
        self.bytes += ROW_BYTES + value.as_ref().map_or(0, |value| value.len());
        self.tables[table as usize].push((Slice::from(key), value));
    }

    /// Gives rows their values.
    fn hand_out(&mut self) {
        let values = ByteView::from(&self.values[..]);
        self.values.clear();
        for (table, row, range) in self.waiting.drain(..) {
            self.tables[table as usize][row].1 = Some(values.slice(range).into());
        }
    }

    pub(super) fn into_tables(mut self) -> [Vec<StagedRow>; Table::ALL.len()] {
        self.hand_out();
        self.tables
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{super::open::begin, *};
    use crate::{embedded::EmbeddedOptions, samples::at};
    use campanile_core::mix::mix;

    /// Values of one batch in several pieces, and beside them short ones, empty ones, and several to one key.
    #[test]
    fn each_row_has_its_value_wherever_it_lies() {
        let temp = tempfile::tempdir().unwrap();
        let tables = begin(&EmbeddedOptions::new(temp.path()), at(0, 0)).unwrap();
        let db = tables.db().unwrap();
        let length = |row: u32| [0, 1, IN_ROW, IN_ROW + 1, 300, 5_000][row as usize % 6];
        let value = |row: u32| vec![row as u8; length(row)];
        let mut writes = Writes::default();
        for row in 0..300_u32 {
            writes.put(Table::Keys, row.to_be_bytes(), b"one that does not count, whatever it holds");
            match row % 2 {
                0 => writes.put(Table::Keys, row.to_be_bytes(), value(row)),
                _ => writes.write(Table::Keys, row.to_be_bytes(), |bytes| bytes.extend_from_slice(&value(row))),
            }
        }
        assert!(writes.bytes > 2 * VALUES_TOGETHER, "more than two pieces");
        db.staging.add(writes);
        let is_right = |row: u32| db.get(Table::Keys, &row.to_be_bytes()).unwrap().as_deref() == Some(&value(row)[..]);
        assert!((0..300).all(is_right), "staged");
        // The second flush writes the seam of the first again.
        for _ in 0..2 {
            db.staging.flush(&db).unwrap();
            assert!((0..300).all(is_right), "flushed");
            let mut writes = Writes::default();
            writes.put(Table::Keys, 150_u32.to_be_bytes(), value(150));
            db.staging.add(writes);
        }
    }

    #[test]
    fn keys_are_in_the_order_of_their_bytes() {
        let mut rows: Vec<StagedRow> = (0..2_000)
            .map(|n| (mix(n).to_be_bytes().repeat(3), mix(n + 1_000_000) as usize % 24))
            // Few values to a byte, so that many keys begin alike.
            .map(|(bytes, length)| bytes.iter().map(|byte| byte % 3).take(length).collect::<Vec<u8>>())
            .map(|key| (Slice::from(key), None))
            .collect();
        let mut keys: Vec<Vec<u8>> = rows.iter().map(|(key, _)| key.to_vec()).collect();
        keys.sort();
        rows.sort_by(by_key);
        assert!(rows.iter().map(|(key, _)| &**key).eq(keys.iter().map(Vec::as_slice)));
    }
}
