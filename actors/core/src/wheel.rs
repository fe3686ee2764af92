//! A hierarchical timing wheel: which jobs of a shard want to be woken. O(1) per entry, 16 bytes each, six levels of 64
//! slots over 10 ms ticks (the last reaches 21 years; what lies beyond is looked at again then).
//!
//! Entries are hints: the shard compares with the job's own wake time when one pops. Never early, late by one tick at most.
//! Idea: Varghese and Lauck; the layout by differing bits is the one of tokio's timer.

use campanile_schema::{ids::JobId, limits::WHEEL_SLOT_MS};

const LEVELS: usize = 6;
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const FAR: u64 = (1 << (BITS * LEVELS as u32)) - 1;

#[derive(Clone, Copy, Debug)]
struct Entry {
    tick: u64,
    job: JobId,
}

#[derive(Debug, Default)]
struct Level {
    occupied: u64,
    slots: Vec<Vec<Entry>>,
}

/// See the module's text.
#[derive(Debug)]
pub struct Wheel {
    levels: Vec<Level>,
    /// Everything up to this tick has popped.
    now: u64,
    len: usize,
}

fn tick_of(at_ms: i64) -> u64 {
    // Rounded up: an entry pops when its instant has passed.
    (at_ms.max(0) as u64).div_ceil(WHEEL_SLOT_MS as u64)
}

impl Wheel {
    pub fn new(now_ms: i64) -> Self {
        let level = || Level { occupied: 0, slots: vec![Vec::new(); SLOTS] };
        Self {
            levels: (0..LEVELS).map(|_| level()).collect(),
            now: now_ms.max(0) as u64 / WHEEL_SLOT_MS as u64,
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Wakes `job` at `at_ms`, or at the next tick when that has passed.
    pub fn insert(&mut self, at_ms: i64, job: JobId) {
        self.len += 1;
        self.place(Entry { tick: tick_of(at_ms), job });
    }

    fn place(&mut self, entry: Entry) {
        let tick = entry.tick.max(self.now + 1).min(self.now.saturating_add(FAR));
        let differing = (tick ^ self.now) | 1;
        let level = (((63 - differing.leading_zeros()) / BITS) as usize).min(LEVELS - 1);
        let slot = (tick >> (BITS * level as u32)) as usize % SLOTS;
        self.levels[level].occupied |= 1 << slot;
        self.levels[level].slots[slot].push(entry);
    }

    /// The next non-empty slot: its level, index and first tick.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        self.levels.iter().enumerate().find_map(|(n, level)| {
            if level.occupied == 0 {
                return None;
            }
            let shift = BITS * n as u32;
            let here = (self.now >> shift) as usize % SLOTS;
            let ahead = level.occupied.rotate_right(here as u32).trailing_zeros() as usize;
            let slot = (here + ahead) % SLOTS;
            let span = 1u64 << (shift + BITS);
            let mut first = (self.now & !(span - 1)) + ((slot as u64) << shift);
            if first < self.now {
                first += span;
            }
            Some((n, slot, first.max(self.now)))
        })
    }

    /// When [`Self::advance`] has something to do next, ms; a lower bound for far entries.
    pub fn next_ms(&self) -> Option<i64> {
        self.next_slot().map(|(_, _, tick)| (tick * WHEEL_SLOT_MS as u64) as i64)
    }

    /// Moves to `now_ms`; gives every job whose instant has passed to `due`. Time never goes back here.
    pub fn advance(&mut self, now_ms: i64, mut due: impl FnMut(JobId)) {
        let target = now_ms.max(0) as u64 / WHEEL_SLOT_MS as u64;
        while let Some((level, slot, first)) = self.next_slot() {
            if first > target {
                break;
            }
            self.now = first;
            self.levels[level].occupied &= !(1 << slot);
            for entry in std::mem::take(&mut self.levels[level].slots[slot]) {
                if entry.tick <= target {
                    self.len -= 1;
                    due(entry.job);
                } else {
                    self.place(entry);
                }
            }
        }
        self.now = self.now.max(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each entry pops exactly once, in the first advance at or after its instant (rounded up to a tick).
        #[test]
        fn pops_once_and_never_early(
            start in 0i64..2_000_000_000_000,
            entries in proptest::collection::vec(0i64..10_000_000_000, 1..60),
            steps in proptest::collection::vec(1i64..400_000_000, 1..80),
        ) {
            let mut wheel = Wheel::new(start);
            for (n, offset) in entries.iter().enumerate() {
                wheel.insert(start + offset, JobId(n as u64));
            }
            let mut popped = vec![None; entries.len()];
            let mut now = start;
            for step in steps {
                let before = now;
                now += step;
                wheel.advance(now, |job| {
                    assert!(popped[job.0 as usize].is_none(), "popped twice");
                    popped[job.0 as usize] = Some((before, now));
                });
                for (n, offset) in entries.iter().enumerate() {
                    let due = start + offset;
                    match popped[n] {
                        Some((_, at)) => prop_assert!(at >= due, "early"),
                        None => prop_assert!(now < due + 2 * WHEEL_SLOT_MS, "late: due {due} now {now}"),
                    }
                }
            }
        }

        /// `next_ms` never lies beyond the first entry.
        #[test]
        fn next_is_a_lower_bound(start in 0i64..2_000_000_000_000, entries in proptest::collection::vec(0i64..100_000_000, 1..40)) {
            let mut wheel = Wheel::new(start);
            for (n, offset) in entries.iter().enumerate() {
                wheel.insert(start + offset, JobId(n as u64));
            }
            let first = start + entries.iter().min().copied().unwrap_or(0);
            prop_assert!(wheel.next_ms().is_some_and(|at| at <= first + 2 * WHEEL_SLOT_MS));
        }
    }
}
