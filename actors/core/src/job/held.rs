//! When the node held due instants back by itself, because what is behind its decisions could not keep up. No instant is skipped for
//! that: the time does not count to its misfire threshold.

use std::collections::VecDeque;

/// The newest stretches that are remembered; an instant that is older than all of them counts what is left.
const STRETCHES: usize = 16;
/// Stretches with no more than this between them may become one, ms: a node at its limit goes over it and back all the time.
const JOINED_MS: i64 = 60_000;

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
                    self.make_room();
                }
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// The two closest stretches become one, or the oldest is forgotten.
    fn make_room(&mut self) {
        let gap = |at: usize| self.stretches[at + 1].0 - self.stretches[at].1;
        let closest = (0..self.stretches.len().saturating_sub(1)).map(|at| (gap(at), at)).min();
        match closest {
            Some((gap, at)) if gap <= JOINED_MS => {
                if let Some((_, to)) = self.stretches.remove(at + 1) {
                    self.stretches[at].1 = to;
                }
            }
            Some(_) | None => {
                self.stretches.pop_front();
            }
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

    #[test]
    fn a_node_that_goes_over_its_limit_and_back_forgets_nothing() {
        let mut held = HeldTimes::default();
        for at in (0..300_000).step_by(500) {
            held.look(true, at);
            held.look(false, at + 400);
        }
        assert!(held.within(0, 300_000) >= 240_000, "{held:?}");
        // What lies far apart is not joined: the oldest is forgotten.
        let mut held = HeldTimes::default();
        for at in (0..10_000_000).step_by(100_000) {
            held.look(true, at);
            held.look(false, at + 10);
        }
        assert_eq!(held.within(0, 10_000_000), 10 * STRETCHES as i64);
    }
}
