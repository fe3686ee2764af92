//! Packets that came before. Each process numbers what it sends; of the last numbers of each it is known which were here. What is
//! older than the window, in number or by its time, is refused, so that memory is bounded.

use campanile_schema::limits::{GOSSIP_CLOCK_MS, GOSSIP_REPLAY_SENDERS, GOSSIP_REPLAY_WINDOW};
use std::collections::HashMap;

const WORDS: usize = GOSSIP_REPLAY_WINDOW / 64;

struct Window {
    /// No number was above it.
    highest: u64,
    /// A bit for each of the last numbers, by the number modulo the window.
    seen: [u64; WORDS],
    heard_ms: u64,
}

impl Window {
    fn bit(number: u64) -> (usize, u64) {
        let place = (number % GOSSIP_REPLAY_WINDOW as u64) as usize;
        (place / 64, 1 << (place % 64))
    }

    fn first_time(&mut self, number: u64) -> bool {
        if number > self.highest {
            let forgotten = (self.highest + 1..=number).rev().take(GOSSIP_REPLAY_WINDOW);
            for (word, mask) in forgotten.map(Self::bit) {
                self.seen[word] &= !mask;
            }
            self.highest = number;
        } else if self.highest - number >= GOSSIP_REPLAY_WINDOW as u64 {
            return false;
        }
        let (word, mask) = Self::bit(number);
        let first = self.seen[word] & mask == 0;
        self.seen[word] |= mask;
        first
    }
}

/// Node, generation, process.
type Sender = (u64, u64, u32);

/// Of every process that was heard lately.
#[derive(Default)]
pub(super) struct Replay {
    senders: HashMap<Sender, Window>,
}

impl Replay {
    /// False: it came before, or so long ago that nobody knows.
    pub fn first_time(&mut self, sender: Sender, number: u64, now_ms: u64) -> bool {
        if !self.senders.contains_key(&sender) {
            self.make_room(now_ms);
        }
        let fresh = || Window { highest: 0, seen: [0; WORDS], heard_ms: now_ms };
        let window = self.senders.entry(sender).or_insert_with(fresh);
        window.heard_ms = now_ms;
        window.first_time(number)
    }

    /// What a silent process sent is too old by its time before its window is forgotten, unless there are more processes than any
    /// cluster has.
    fn make_room(&mut self, now_ms: u64) {
        let old = 2 * GOSSIP_CLOCK_MS.unsigned_abs();
        if self.senders.len() >= GOSSIP_REPLAY_SENDERS {
            self.senders.retain(|_, window| now_ms.saturating_sub(window.heard_ms) <= old);
        }
        if self.senders.len() >= GOSSIP_REPLAY_SENDERS
            && let Some(oldest) = self.senders.iter().min_by_key(|(_, window)| window.heard_ms).map(|(key, _)| *key)
        {
            self.senders.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_once_in_any_order() {
        let mut replay = Replay::default();
        let sender = (1, 1, 1);
        let mut numbers: Vec<u64> = (1..=5_000).collect();
        for pair in numbers.chunks_mut(7) {
            pair.reverse();
        }
        for number in &numbers {
            assert!(replay.first_time(sender, *number, 0), "{number}");
            assert!(!replay.first_time(sender, *number, 0), "{number} twice");
        }
        assert!(!replay.first_time(sender, 1, 0), "older than the window");
        assert!(replay.first_time(sender, 1_000_000, 0), "a leap");
        assert!(replay.first_time(sender, 999_999, 0));
        assert!(!replay.first_time(sender, 5_000, 0));
        assert!(replay.first_time((1, 2, 9), 1, 0), "another process begins anew");
    }

    #[test]
    fn it_stays_small_and_keeps_who_speaks() {
        let mut replay = Replay::default();
        for process in 0..3 * GOSSIP_REPLAY_SENDERS as u32 {
            assert!(replay.first_time((1, 1, process), 1, u64::from(process)));
        }
        assert!(replay.senders.len() <= GOSSIP_REPLAY_SENDERS);
        assert!(!replay.first_time((1, 1, 3 * GOSSIP_REPLAY_SENDERS as u32 - 1), 1, 0));
    }
}
