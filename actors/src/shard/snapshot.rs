//! Snapshots of a shard: hot state of all jobs every time, definitions only when they changed. Captured between two
//! messages; written aside; published when everything captured is durable, so that a snapshot never holds what was not
//! acknowledged.

use super::Shard;
use crate::messages::{Answer, ShardMsg};
use campanile_core::mix::mix;
use campanile_ports::{Manifest, Part, PartRef, Position};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    format::FIRST_FORMAT,
    frame::{encode, encode_into},
    ids::{JobId, ShardId},
    limits,
};
use hashbrown::HashSet;
use ractor::ActorRef;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tokio::sync::oneshot;

/// Definition parts after which all definitions are written anew.
const DEFINITION_PARTS: usize = 8;

/// A caller that was refused for want of a snapshot comes back then, seconds: a failed one is tried again after about a minute.
const RETRY_OWED_SEC: f64 = 60.0;

/// So many snapshots an owner can write, as a power of two.
const NUMBERS_PER_EPOCH_BITS: u32 = 20;

/// Where a shard's snapshots stand.
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

/// One item of a chunk.
#[derive(Serialize, Deserialize)]
pub(super) struct Item<'a>(pub u64, #[serde(borrow, with = "serde_bytes")] pub Cow<'a, [u8]>);

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

impl Shard {
    /// Once a second.
    pub(super) fn housekeep(&mut self, myself: &ActorRef<ShardMsg>) {
        self.passivate_idle();
        self.look_after_loans(myself);
        self.look_after_post();
        // Staggered by shard, so that not all write in the same second.
        let stagger = i64::from(self.id.0) * 199 % (limits::SNAPSHOT_AFTER_MS / 2);
        let age = self.snapshots.oldest_ms.map_or(0, |t| self.directory.time.boot_ms() - t);
        if self.snapshots.bytes_since >= self.snapshots.after_bytes(self.id)
            || age >= limits::SNAPSHOT_AFTER_MS + stagger
        {
            self.snapshot(myself);
        }
        self.snapshots.look(self.directory.time.boot_ms());
    }

    /// Whether new jobs and triggers are taken: what a restart or a take-over has to replay must not grow without end.
    pub(super) fn admits(&self) -> Answer<()> {
        if !self.snapshots.overdue {
            return Ok(());
        }
        let hours = self.snapshots.owed_ms(self.directory.time.boot_ms()) / 3_600_000;
        let message = format!(
            "shard {} has had no snapshot for {hours} h and takes no new jobs and triggers until one is written: see 'snapshots cannot be \
             written' in the log of node {}, and give its store the room or the access that it lacks",
            self.id, self.directory.node
        );
        Err(ApiError::new(ErrorCode::NotReady, message).retry_after(RETRY_OWED_SEC))
    }

    /// Journal rows after this position may hold frames that no snapshot covers.
    pub(super) fn needs_after(&self) -> Option<Position> {
        (self.snapshots.seq < self.state.seq).then_some(self.snapshots.replay_after)
    }

    /// Snapshot now if anything is not covered; answers when it is published.
    pub(super) fn flush(&mut self, myself: &ActorRef<ShardMsg>, port: oneshot::Sender<()>) {
        if self.snapshots.seq >= self.state.seq {
            let _ = port.send(());
            return;
        }
        self.snapshots.waiting.push(port);
        self.snapshot(myself);
    }

    fn snapshot(&mut self, myself: &ActorRef<ShardMsg>) {
        if self.snapshots.under_way || self.snapshots.seq >= self.state.seq {
            return;
        }
        self.snapshots.under_way = true;
        // Its seq is captured, so all of it must be.
        self.seal(myself);
        // Above those of other owners too, which may have been writing one when they lost the shard.
        let number = (self.snapshots.number + 1).max(self.epoch.0 << NUMBERS_PER_EPOCH_BITS);
        let seq = self.state.seq;
        // No frame of ours above `seq` can stand at or before what is durable now.
        let replay_after = self.durable_position;
        let full = self.snapshots.definitions.len() >= DEFINITION_PARTS || self.snapshots.number == 0;
        let now = self.now_ms();
        self.state.forget_creates(now);
        let mut state = self.state.clone();
        state.tzdb = self.directory.tzdb.to_owned();
        let format = self.directory.in_use.event();
        state.format = if format == FIRST_FORMAT { 0 } else { format };
        let header = Item(0, encode(&state).into());
        let hot = chunks(std::iter::once(header).chain(self.jobs.iter().map(|(id, slot)| {
            let bytes = match &slot.live {
                None => Cow::from(&*slot.hot),
                Some(live) => live.job.encode_hot().into(),
            };
            Item(id.0, bytes)
        })));
        let owed = self.post.owed.chunks();
        self.snapshots.hot_bytes = hot.iter().map(Vec::len).sum();
        let changed = std::mem::take(&mut self.snapshots.changed);
        let definitions = chunks(
            self.jobs
                .iter()
                .filter(|(id, _)| full || changed.contains(*id))
                .map(|(id, slot)| Item(id.0, Cow::from(&*slot.def))),
        );
        self.snapshots.bytes_since = 0;
        self.snapshots.oldest_ms = None;
        let before = if full { Vec::new() } else { self.snapshots.definitions.clone() };
        self.snapshots.captured_ms = self.directory.time.boot_ms();
        let (shard, epoch, last_hlc) = (self.id, self.epoch, self.state.hlc);
        let store = self.directory.snapshots.clone();
        let old = self.superseded();
        let directory = self.directory.clone();
        let myself = myself.clone();
        let (durable, when_durable) = oneshot::channel();
        self.when_durable(move || {
            let _ = durable.send(());
        });
        tokio::task::spawn_blocking(move || {
            let written = tokio::runtime::Handle::current().block_on(async {
                // Not durable: the session ended, and this capture with it.
                when_durable
                    .await
                    .map_err(|_| campanile_ports::StoreError::Unavailable("the session ended".to_owned()))?;
                #[cfg(feature = "faults")]
                campanile_ports::faults::point("snapshot");
                let mut parts = before;
                if !definitions.is_empty() {
                    parts.push(store.write_part(shard, number, Part::Definitions, definitions).await?);
                }
                let definitions = parts.clone();
                parts.push(store.write_part(shard, number, Part::Hot, hot).await?);
                if !owed.is_empty() {
                    parts.push(store.write_part(shard, number, Part::Outbox, owed).await?);
                }
                let manifest = Manifest { number, epoch, shard_seq: seq, replay_after, last_hlc, parts };
                store.publish(shard, manifest).await?;
                if let Some(manifest) = old
                    && let Some(manifest) = store.load(shard, Some(manifest)).await?
                {
                    store.forget(shard, manifest).await?;
                }
                Ok::<_, campanile_ports::StoreError>(definitions)
            });
            let (definitions, ok) = match written {
                Ok(definitions) => {
                    directory.snapshot_failures.well();
                    (definitions, true)
                }
                Err(error) => {
                    directory.snapshot_failures.met(&format_args!("shard {shard}: {error}"));
                    metrics::counter!("campanile_snapshot_failures_total").increment(1);
                    (Vec::new(), false)
                }
            };
            let _ = myself.cast(ShardMsg::Snapshotted { number, seq, position: replay_after, definitions, ok });
        });
    }

    /// In a cluster: the published snapshot, if older ones may lie about.
    fn superseded(&mut self) -> Option<u64> {
        let published = self.directory.membership.as_ref()?.owner.published(self.id)?;
        if self.snapshots.forgotten == published {
            return None;
        }
        self.snapshots.forgotten = published;
        Some(published)
    }

    pub(super) fn snapshotted(
        &mut self,
        number: u64,
        seq: u64,
        position: Position,
        definitions: Vec<PartRef>,
        ok: bool,
    ) {
        self.snapshots.under_way = false;
        // A failed one used its number: parts of it may lie about.
        self.snapshots.number = number;
        if ok {
            metrics::counter!("campanile_snapshots_total").increment(1);
            if let Some(membership) = &self.directory.membership {
                // It counts when the shard's row names it.
                membership.owner.snapshot_written(self.id, number, seq);
            }
            self.snapshots.seq = seq;
            // What it lacks was written after it was captured.
            self.snapshots.owed_since_ms = (self.state.seq > seq).then_some(self.snapshots.captured_ms);
            self.snapshots.overdue = false;
            self.snapshots.replay_after = position;
            self.snapshots.definitions = definitions;
        } else {
            // Everything counts as changed: the next one is full.
            self.snapshots.changed.extend(self.jobs.keys().copied());
            self.snapshots.oldest_ms.get_or_insert(self.directory.time.boot_ms());
        }
        for port in self.snapshots.waiting.drain(..) {
            let _ = port.send(());
        }
    }
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
