//! A lane of the session's journal: the rows in flight, and up to which row all are durable.
//!
//! A row is written again with the same bytes until it is durable or the session is over. Rows behind a gap may be
//! durable, but a reader of the lane stops at the gap, so they are not acknowledged before the gap is filled.

use super::{
    rules::{Rule, kept},
    store::{Batch, Statement},
};
use std::collections::BTreeMap;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Lane {
    lane: u16,
    window: u64,
    /// Seq of the next new row, from 1.
    next: u64,
    /// Every row below is durable.
    gap: u64,
    /// Rows not acknowledged: None once they are durable behind a gap.
    open: BTreeMap<u64, Option<Batch>>,
}

impl Lane {
    pub fn new(lane: u16, window: u64) -> Self {
        Self { lane, window, next: 1, gap: 1, open: BTreeMap::new() }
    }

    pub fn index(&self) -> u16 {
        self.lane
    }

    /// Seq of the next new row.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Highest seq up to which every row is durable.
    pub fn durable(&self) -> u64 {
        self.gap - 1
    }

    /// Highest seq up to which rows may be acknowledged.
    pub fn acknowledged(&self) -> u64 {
        if kept(Rule::AcknowledgeToTheGap) {
            return self.durable();
        }
        self.open.iter().filter(|(_, row)| row.is_none()).map(|(seq, _)| *seq).max().unwrap_or(self.durable())
    }

    /// Whether the window lets another row go.
    pub fn has_room(&self) -> bool {
        if kept(Rule::WindowByDistance) {
            return self.next - self.gap < self.window;
        }
        let flying = self.open.values().filter(|row| row.is_some()).count() as u64;
        flying < self.window
    }

    /// Takes the next row. Only with room.
    pub fn append(&mut self, batch: Batch) -> (u64, Statement) {
        let seq = self.next;
        self.next += 1;
        self.open.insert(seq, Some(batch.clone()));
        (seq, Statement::Append { lane: self.lane, seq, batch })
    }

    /// A row is durable.
    pub fn written(&mut self, seq: u64) {
        if let Some(row) = self.open.get_mut(&seq) {
            *row = None;
        }
        while let Some(None) = self.open.get(&self.gap) {
            self.open.remove(&self.gap);
            self.gap += 1;
        }
    }

    /// Nobody knows whether a row is durable: it is written again, with the same bytes.
    pub fn again(&self, seq: u64) -> Option<Statement> {
        let batch = self.open.get(&seq)?.clone()?;
        Some(Statement::Append { lane: self.lane, seq, batch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_a_distance_from_the_first_gap() {
        let mut lane = Lane::new(0, 3);
        let batch = |n: u8| Batch::from([n].as_slice());
        for n in 1..=3 {
            assert!(lane.has_room());
            assert_eq!(lane.append(batch(n)).0, u64::from(n));
        }
        lane.written(2);
        lane.written(3);
        assert_eq!((lane.has_room(), lane.durable(), lane.acknowledged()), (false, 0, 0), "1 is the gap");
        assert_eq!(lane.again(1), Some(Statement::Append { lane: 0, seq: 1, batch: batch(1) }));
        assert_eq!(lane.again(2), None);
        lane.written(1);
        assert_eq!((lane.has_room(), lane.durable(), lane.next()), (true, 3, 4));
    }
}
