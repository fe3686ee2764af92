//! When the node held due instants back by itself, because what is behind its decisions could not keep up. No instant is skipped for
//! that: the time does not count to its misfire threshold.

use std::collections::VecDeque;

/// The newest stretches that are remembered; an instant that is older than all of them counts what is left.
const STRETCHES: usize = 16;

/// See the module's text. Times are those by which instants are decided, ms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldTimes {
    /// From when to when, oldest first.
    stretches: VecDeque<(i64, i64)>,
    /// The node holds instants back since then.
    since_ms: Option<i64>,
}

impl HeldTimes {
    /// Whether the node holds instants back now is news.
    pub fn differs(&self, holds: bool) -> bool {
        holds != self.since_ms.is_some()
    }

    /// The node holds instants back from now on, or not any more.
    pub fn look(&mut self, holds: bool, now_ms: i64) {
        match (holds, self.since_ms) {
            (true, None) => self.since_ms = Some(now_ms),
            (false, Some(since_ms)) => {
                self.since_ms = None;
                self.stretches.push_back((since_ms, now_ms));
                if self.stretches.len() > STRETCHES {
                    self.stretches.pop_front();
                }
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// For how long it held instants back between these two times.
    pub fn within(&self, from_ms: i64, to_ms: i64) -> i64 {
        let now = self.since_ms.map(|since_ms| (since_ms, to_ms));
        let all = self.stretches.iter().copied().chain(now);
        all.map(|(from, to)| (to.min(to_ms) - from.max(from_ms)).max(0)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_held_between_both_times_counts() {
        let mut held = HeldTimes::default();
        for (from, to) in [(100, 200), (300, 350)] {
            held.look(true, from);
            held.look(true, from + 10);
            held.look(false, to);
        }
        assert_eq!([held.within(0, 1_000), held.within(150, 1_000), held.within(150, 320)], [150, 100, 70]);
        assert_eq!([held.within(200, 300), held.within(400, 900)], [0, 0]);
        held.look(true, 500);
        assert_eq!(held.within(400, 900), 400, "it lasts");
        for n in 0..100 {
            held.look(false, 1_000 + 20 * n);
            held.look(true, 1_010 + 20 * n);
        }
        assert_eq!(held.stretches.len(), STRETCHES);
    }
}
