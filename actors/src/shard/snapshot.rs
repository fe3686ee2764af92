//! Snapshots of a shard: hot state of all jobs every time, definitions only when they changed. Captured between two
//! messages; written aside; published when everything captured is durable, so that a snapshot never holds what was not
//! acknowledged.

use super::{
    Shard, graphs,
    snapshotting::{Item, chunks},
};
use crate::messages::ShardMsg;
use campanile_ports::{Manifest, PartRef, Position, SnapshotPart};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    format::FIRST_FORMAT,
    frame::encode,
    limits,
};
use ractor::ActorRef;
use std::borrow::Cow;
use tokio::sync::oneshot;

/// Definition parts after which all definitions are written anew.
const DEFINITION_PARTS: usize = 8;

/// A caller that was refused for want of a snapshot comes back then, seconds: a failed one is tried again after about a minute.
const RETRY_OWED_SEC: f64 = 60.0;

/// So many snapshots an owner can write, as a power of two.
const NUMBERS_PER_EPOCH_BITS: u32 = 20;

impl Shard {
    /// Once a second.
    pub(super) fn housekeep(&mut self, myself: &ActorRef<ShardMsg>) {
        self.passivate_idle();
        self.look_after_loans(myself);
        self.look_after_post();
        self.look_after_dags(myself);
        self.look_after_backfills();
        // Staggered by shard, so that not all write in the same second.
        let stagger = i64::from(self.id.0) * 199 % (limits::SNAPSHOT_AFTER_MS / 2);
        let age = self.snapshots.oldest_ms.map_or(0, |t| self.deps.time.boot_ms() - t);
        if self.snapshots.bytes_since >= self.snapshots.after_bytes(self.id)
            || age >= limits::SNAPSHOT_AFTER_MS + stagger
        {
            self.snapshot(myself);
        }
        self.snapshots.look(self.deps.time.boot_ms());
    }

    /// Whether new jobs and triggers are taken: what a restart or a take-over has to replay must not grow without end.
    pub(super) fn admits(&self) -> Answer<()> {
        if !self.snapshots.overdue {
            return Ok(());
        }
        let hours = self.snapshots.owed_ms(self.deps.time.boot_ms()) / 3_600_000;
        let message = format!(
            "shard {} has had no snapshot for {hours} h and takes no new jobs and triggers until one is written: see 'snapshots cannot be \
             written' in the log of node {}, and give its store the room or the access that it lacks",
            self.id, self.deps.identity.node
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
        state.tzdb = self.deps.identity.tzdb.to_owned();
        let format = self.deps.in_use.event();
        if format > FIRST_FORMAT {
            state.format = state.format.max(format);
        }
        let header = Item(0, encode(&state).into());
        let hot = chunks(std::iter::once(header).chain(self.jobs.iter().map(|(id, slot)| {
            let bytes = match &slot.live {
                None => Cow::from(&*slot.hot),
                Some(live) => live.job.encode_hot().into(),
            };
            Item(id.0, bytes)
        })));
        let owed = self.post.owed.chunks();
        let graphs = self.graph_chunks();
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
        self.snapshots.captured_ms = self.deps.time.boot_ms();
        let (shard, epoch, last_hlc) = (self.id, self.epoch, self.state.hlc);
        let store = self.deps.snapshots.clone();
        let old = self.superseded();
        let deps = self.deps.clone();
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
                    parts.push(store.write_part(shard, number, SnapshotPart::Definitions, definitions).await?);
                }
                let definitions = parts.clone();
                parts.push(store.write_part(shard, number, SnapshotPart::Hot, hot).await?);
                if !owed.is_empty() {
                    parts.push(store.write_part(shard, number, SnapshotPart::Outbox, owed).await?);
                }
                if !graphs.is_empty() {
                    parts.push(store.write_part(shard, number, SnapshotPart::Graphs, graphs).await?);
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
                    deps.snapshot_failures.recovered();
                    (definitions, true)
                }
                Err(error) => {
                    deps.snapshot_failures.failed(&format_args!("shard {shard}: {error}"));
                    metrics::counter!("campanile_snapshot_failures_total").increment(1);
                    (Vec::new(), false)
                }
            };
            let _ = myself.cast(ShardMsg::Snapshotted { number, seq, position: replay_after, definitions, ok });
        });
    }

    /// The open runs of DAGs, of jobs with an actor and without one.
    fn graph_chunks(&self) -> Vec<Vec<u8>> {
        let live = self.active.iter().filter_map(|id| {
            let live = self.jobs.get(id)?.live.as_ref()?;
            (!live.job.graphs.is_empty()).then_some((*id, &live.job.graphs))
        });
        let at_rest = self.dags.at_rest.iter().map(|(id, graphs)| (*id, graphs));
        chunks(graphs::items(live.chain(at_rest)).into_iter().map(|(id, bytes)| Item(id, bytes.into())))
    }

    /// In a cluster: the published snapshot, if older ones may lie about.
    fn superseded(&mut self) -> Option<u64> {
        let published = self.deps.shards.membership()?.owner.published(self.id)?;
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
            if let Some(membership) = self.deps.shards.membership() {
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
            self.snapshots.oldest_ms.get_or_insert(self.deps.time.boot_ms());
        }
        for port in self.snapshots.waiting.drain(..) {
            let _ = port.send(());
        }
    }
}
