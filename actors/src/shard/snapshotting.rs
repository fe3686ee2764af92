//! Where a shard's snapshots stand: what is covered, when the next one is due, and how its chunks are packed.

use campanile_core::mix::mix;
use campanile_ports::{PartRef, Position};
pub(super) use campanile_schema::stored::snapshot::Item;
use campanile_schema::{
    frame::encode_into,
    ids::{JobId, ShardId},
    limits,
};
use hashbrown::HashSet;
use tokio::sync::oneshot;

/// See the module's text.
#[derive(Default)]
pub(super) struct Snapshotting {
    /// Number and covered seq of the newest published one.
    pub number: u64,
    pub seq: u64,
    pub replay_after: Position,
    pub definitions: Vec<PartRef>,
    /// Jobs whose definition changed since the last capture.
    pub changed: HashSet<JobId>,
    /// Hot state of the newest captured one.
    pub hot_bytes: usize,
    /// Frames not covered yet.
    pub bytes_since: usize,
    /// CLOCK_BOOTTIME ms of the oldest frame not covered.
    pub oldest_ms: Option<i64>,
    /// CLOCK_BOOTTIME ms since when something is not covered, however often a snapshot of it failed meanwhile. Time in which nobody served
    /// the shard does not count: it makes a replay no longer.
    pub owed_since_ms: Option<i64>,
    /// Owed for longer than there may be: nothing new is taken.
    pub overdue: bool,
    pub under_way: bool,
    /// When the one under way was captured, CLOCK_BOOTTIME ms.
    pub captured_ms: i64,
    /// In a cluster: what is older than this one was deleted.
    pub forgotten: u64,
    pub waiting: Vec<oneshot::Sender<()>>,
}

impl Snapshotting {
    /// A frame was written that no snapshot covers.
    pub(super) fn owe(&mut self, bytes: usize, now_ms: i64) {
        self.bytes_since += bytes;
        self.oldest_ms.get_or_insert(now_ms);
        self.owed_since_ms.get_or_insert(now_ms);
    }

    /// For so long a snapshot has been owed, ms. A shard with nothing new owes none.
    pub(super) fn owed_ms(&self, now_ms: i64) -> i64 {
        self.owed_since_ms.map_or(0, |since| now_ms - since)
    }

    /// A machine that slept for a day owes a snapshot too, and the one that is begun now pays: only when that fails or hangs is it overdue.
    pub(super) fn look(&mut self, now_ms: i64) {
        if !self.under_way || now_ms - self.captured_ms >= limits::SNAPSHOT_AFTER_MS {
            self.overdue = self.owed_ms(now_ms) >= limits::SNAPSHOT_OWED_MS;
        }
    }

    /// Frames after which it is time for the next one. A snapshot holds every job of the shard, busy or not: with many jobs the snapshots
    /// would else be more work than the triggers. What a restart replays stays within a multiple of what it reads anyway. Up to a quarter
    /// more or less, other for each shard and snapshot: shards with the same load would else all be written in the same second.
    pub(super) fn after_bytes(&self, shard: ShardId) -> usize {
        let bytes = limits::SNAPSHOT_AFTER_BYTES.max(self.hot_bytes * limits::FRAMES_PER_SNAPSHOT);
        let spread = mix(self.number << 16 | u64::from(shard.0)) % 512;
        bytes / 1024 * (768 + spread as usize)
    }
}

/// Packs items into chunks; an item is never split.
pub(super) fn chunks<'a>(items: impl Iterator<Item = Item<'a>>) -> Vec<Vec<u8>> {
    let mut chunks = Vec::new();
    let mut chunk = Vec::new();
    for item in items {
        encode_into(&mut chunk, &item);
        if chunk.len() >= limits::SNAPSHOT_CHUNK_BYTES {
            // The next one will be about as long.
            let next = Vec::with_capacity(chunk.len() + chunk.len() / 8);
            chunks.push(std::mem::replace(&mut chunk, next));
        }
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_owed_from_the_first_frame_on_that_is_not_covered() {
        let mut shard = Snapshotting::default();
        assert_eq!(shard.owed_ms(7 * limits::SNAPSHOT_OWED_MS), 0, "nothing new");
        shard.owe(10, 1_000);
        shard.owe(10, 5_000);
        assert_eq!((shard.owed_ms(6_000), shard.bytes_since), (5_000, 20));
    }

    #[test]
    fn one_that_is_being_written_is_waited_for_before_it_is_overdue() {
        let now_ms = 2 * limits::SNAPSHOT_OWED_MS;
        let mut shard = Snapshotting::default();
        shard.owe(10, 1_000);
        (shard.under_way, shard.captured_ms) = (true, now_ms);
        shard.look(now_ms + 1_000);
        assert!(!shard.overdue, "as after a sleep");
        shard.look(now_ms + limits::SNAPSHOT_AFTER_MS);
        assert!(shard.overdue, "it hangs");
        shard.under_way = false;
        shard.owed_since_ms = Some(now_ms);
        shard.look(now_ms + 1_000);
        assert!(!shard.overdue);
        shard.look(now_ms + limits::SNAPSHOT_OWED_MS);
        assert!(shard.overdue);
    }

    #[test]
    fn the_more_a_snapshot_holds_the_more_frames_come_before_the_next_one() {
        let holds = |hot_bytes| {
            let of = |shard| Snapshotting { hot_bytes, ..Snapshotting::default() }.after_bytes(ShardId(shard));
            (0..256).map(of).sum::<usize>() / 256
        };
        let about = |bytes: usize, wanted: usize| (wanted * 95 / 100..=wanted * 105 / 100).contains(&bytes);
        assert!(about(holds(0), limits::SNAPSHOT_AFTER_BYTES), "{}", holds(0));
        assert_eq!(holds(1 << 20), holds(0), "few jobs: as ever");
        assert!(about(holds(20 << 20), 40 << 20), "{}", holds(20 << 20));
    }

    #[test]
    fn shards_with_the_same_load_are_not_written_in_the_same_second() {
        // At 50,000/s a sixteenth of 35 MB a second; shards of 62,500 jobs.
        const BYTES_PER_S: usize = 2_200_000;
        let second = |shard| {
            let of = Snapshotting { hot_bytes: 12 << 20, number: 1 << 20, ..Snapshotting::default() };
            of.after_bytes(ShardId(shard)) / BYTES_PER_S
        };
        let mut seconds: Vec<usize> = (0..16).map(second).collect();
        seconds.sort_unstable();
        let most = seconds.chunk_by(|a, b| a == b).map(<[usize]>::len).max();
        assert!(most.is_some_and(|most| most <= 6), "{seconds:?}");
    }
}
