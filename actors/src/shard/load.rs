//! Loads a shard: the newest snapshot, then the frames after it, then the effects that its jobs still owe.

use super::{
    Shard, ShardDeps, Slot,
    backfill_index::Backfills,
    calendars::ShardCalendars,
    graphs::{self, Dags},
    name_hash,
    owed::Owed,
    post::Post,
    snapshotting::{Item, Snapshotting},
};
use crate::{
    lending::SessionCounts,
    messages::PoolMsg,
    pauses::{Pause, pause_home},
};
use campanile_core::{
    job::{Effect, Job, Resting, apply, graphs::Graphs, pending::pending},
    outbox::Now,
    shard::ShardState,
    wheel::Wheel,
};
use campanile_ports::{Manifest, Position, SnapshotPart, Snapshots, StoreError, release};
use campanile_schema::{
    event::{Event, PauseScope},
    format::FIRST_FORMAT,
    frame::{Frame, decode, decode_each, encode},
    ids::{Epoch, JobId, ShardId},
    job::JobStatus,
};
use hashbrown::{HashMap, HashSet};
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// A shard read from the store, before its actor starts.
pub struct Loaded {
    pub id: ShardId,
    pub(super) state: ShardState,
    pub(super) owed: Owed,
    pub(super) slots: HashMap<JobId, Slot>,
    /// Open runs of DAGs.
    pub(super) graphs: HashMap<JobId, Graphs>,
    /// Jobs touched by frames, decoded once.
    jobs: HashMap<JobId, Job>,
    snapshots: Snapshotting,
    pub replay_after: Position,
    frames: u64,
    /// Of the first frame that the snapshot does not cover.
    first_hlc: Option<u64>,
}

fn corrupt(what: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(what.to_string())
}

/// Ids and bytes.
fn items(chunk: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
    let item = |bytes| rmp_serde::from_slice(bytes).map(|Item(id, value)| (id, value.into_owned()));
    decode_each("snapshot", chunk, item).map_err(corrupt)
}

impl Loaded {
    /// Reads the newest snapshot of a shard.
    pub async fn from_snapshot(store: &dyn Snapshots, id: ShardId) -> Result<Self, StoreError> {
        let counts = store.load(id, None).await?;
        Self::from_manifest(store, id, counts, release::formats().event).await
    }

    /// Reads the snapshot that a cluster's row names, if it names one. `known`: the newest event format that this build reads.
    pub async fn of_cluster(
        store: &dyn Snapshots,
        id: ShardId,
        number: Option<u64>,
        known: u32,
    ) -> Result<Self, StoreError> {
        let Some(number) = number else { return Ok(Self::empty(id)) };
        let manifest = store.load(id, Some(number)).await?;
        let manifest = manifest.ok_or_else(|| corrupt(format!("shard {id}: snapshot {number} is missing")))?;
        Self::from_manifest(store, id, Some(manifest), known).await
    }

    async fn from_manifest(
        store: &dyn Snapshots,
        id: ShardId,
        counts: Option<Manifest>,
        known: u32,
    ) -> Result<Self, StoreError> {
        let Some(manifest) = counts else { return Ok(Self::empty(id)) };
        let mut chunks = Vec::new();
        for part in &manifest.parts {
            let read = store.read_part(id, part.clone()).await?;
            metrics::counter!("campanile_snapshot_bytes_read_total")
                .increment(read.iter().map(|c| c.len() as u64).sum());
            chunks.extend(read.into_iter().map(|chunk| (part.part, chunk)));
        }
        Self::from_chunks(id, manifest, chunks, known)
    }

    /// One without a snapshot.
    pub fn empty(id: ShardId) -> Self {
        Self {
            id,
            state: ShardState::default(),
            owed: Owed::new(1),
            slots: HashMap::new(),
            graphs: HashMap::new(),
            jobs: HashMap::new(),
            snapshots: Snapshotting::default(),
            replay_after: Position::default(),
            frames: 0,
            first_hlc: None,
        }
    }

    /// From the chunks of a snapshot's parts, in the order in which the manifest names them. Refused when its format is above `known`.
    pub fn from_chunks(
        id: ShardId,
        manifest: Manifest,
        chunks: Vec<(SnapshotPart, Vec<u8>)>,
        known: u32,
    ) -> Result<Self, StoreError> {
        let mut loaded = Self::empty(id);
        let mut definitions: HashMap<u64, Vec<u8>> = HashMap::new();
        let (mut hot, mut owed, mut graphs) = (Vec::new(), Vec::new(), Vec::new());
        for (part, chunk) in chunks {
            match part {
                SnapshotPart::Definitions => definitions.extend(items(&chunk)?),
                SnapshotPart::Hot => hot.extend(items(&chunk)?),
                SnapshotPart::Outbox => owed.extend(items(&chunk)?),
                SnapshotPart::Graphs => graphs.extend(items(&chunk)?),
            }
        }
        let mut hot = hot.into_iter();
        let (_, header) = hot.next().ok_or_else(|| corrupt(format!("snapshot of shard {id} is empty")))?;
        loaded.state = decode("shard state", &header).map_err(corrupt)?;
        if loaded.state.format > known {
            return Err(StoreError::Refused(format!(
                "the snapshot of shard {id} is written in event format {}; this release knows {known}. Start a release that is at least as \
                 new as the one that wrote it",
                loaded.state.format
            )));
        }
        if !owed.is_empty() {
            loaded.owed = Owed::from_items(1, owed)?;
        }
        loaded.graphs = graphs::from_items(graphs)?;
        for (job, hot) in hot {
            let definition = definitions
                .remove(&job)
                .ok_or_else(|| corrupt(format!("job {job} has no definition in the snapshots of shard {id}")))?;
            loaded.slots.insert(JobId(job), Slot::new(definition, hot));
        }
        loaded.replay_after = manifest.replay_after;
        loaded.snapshots = Snapshotting {
            number: manifest.number,
            seq: manifest.shard_seq,
            replay_after: manifest.replay_after,
            hot_bytes: manifest.parts.iter().filter(|p| p.part == SnapshotPart::Hot).map(|p| p.bytes as usize).sum(),
            definitions: manifest.parts.into_iter().filter(|p| p.part == SnapshotPart::Definitions).collect(),
            ..Snapshotting::default()
        };
        Ok(loaded)
    }

    pub fn last_hlc(&self) -> u64 {
        self.state.hlc
    }
    pub fn replayed(&self) -> u64 {
        self.frames
    }

    /// Applies a frame of this shard. Frames that the snapshot covers are passed over; a hole is corruption.
    pub fn replay(&mut self, frame: &Frame) -> Result<(), StoreError> {
        if frame.seq <= self.state.seq {
            return Ok(());
        }
        if frame.seq != self.state.seq + 1 {
            return Err(corrupt(format!(
                "shard {}: frame {} follows frame {}: the journal has a hole; run 'campanile store check'",
                self.id, frame.seq, self.state.seq
            )));
        }
        for event in &frame.events {
            self.state.apply(event);
            self.apply(event)?;
        }
        self.owed.apply(&frame.events);
        self.first_hlc.get_or_insert(frame.hlc);
        if frame.format > FIRST_FORMAT {
            self.state.format = self.state.format.max(frame.format);
        }
        self.state.seq = frame.seq;
        self.state.hlc = frame.hlc + frame.events.len().max(1) as u64 - 1;
        self.frames += 1;
        Ok(())
    }

    fn apply(&mut self, event: &Event) -> Result<(), StoreError> {
        let Some(id) = event.job() else { return Ok(()) };
        if let Event::JobCreated { job, spec, at_ms } = event {
            let job = apply::created(*job, spec.clone(), *at_ms);
            self.slots.insert(id, Slot::new(encode(&*job.def), Vec::new()));
            self.jobs.insert(id, job);
            self.snapshots.changed.insert(id);
            return Ok(());
        }
        if !self.jobs.contains_key(&id) {
            let Some(slot) = self.slots.get(&id) else { return Ok(()) };
            let mut job = Job::decode(id, &slot.def, &slot.hot).map_err(corrupt)?;
            job.graphs = self.graphs.remove(&id).unwrap_or_default();
            self.jobs.insert(id, job);
        }
        if let Some(job) = self.jobs.get_mut(&id) {
            apply::apply(job, event);
            if let (Event::JobReplaced { spec, .. }, Some(slot)) = (event, self.slots.get_mut(&id)) {
                slot.def = encode(spec).into_boxed_slice();
                self.snapshots.changed.insert(id);
            }
            if job.hot.status == JobStatus::Deleted && job.hot.runs.is_empty() {
                self.jobs.remove(&id);
                self.slots.remove(&id);
            }
        }
        Ok(())
    }

    /// Replay is over: jobs become bytes again. `last`: up to where the journal was read.
    pub fn settle(&mut self, last: Position) {
        // Where a batch stands, never the beginning of the new session: a snapshot names it, and the next start wants to
        // find it in the journal, which may end before this session appends anything.
        self.replay_after = self.replay_after.max(last);
        for (id, job) in self.jobs.drain() {
            if let Some(slot) = self.slots.get_mut(&id) {
                job.encode_hot_over(&mut slot.hot);
            }
            if !job.graphs.is_empty() {
                self.graphs.insert(id, job.graphs);
            }
        }
        self.jobs.shrink_to_fit();
    }
}

impl Shard {
    pub(super) fn start(deps: Arc<ShardDeps>, epoch: Epoch, loaded: Loaded) -> Self {
        let now = deps.time.now_ms();
        let durable_position = loaded.replay_after;
        let mut snapshots = loaded.snapshots;
        let mut order: Vec<JobId> = loaded.slots.keys().copied().collect();
        order.sort_unstable();
        if loaded.frames > 0 {
            let now_ms = deps.time.boot_ms();
            snapshots.oldest_ms = Some(now_ms);
            // Before the restart or the take-over, as far as there were frames.
            let span_us = loaded.first_hlc.map_or(0, |first| loaded.state.hlc.saturating_sub(first));
            snapshots.owed_since_ms = Some(now_ms - (span_us / 1000).cast_signed());
        }
        // Shards fill at the same pace; so they do not all write in the same second.
        snapshots.bytes_since =
            snapshots.after_bytes(loaded.id) / usize::from(deps.identity.shards) * usize::from(loaded.id.0);
        let calendars = ShardCalendars::of(&loaded.state.calendars);
        Self {
            id: loaded.id,
            epoch,
            stopping: false,
            durable_seq: loaded.state.seq,
            state: loaded.state,
            session_counts: SessionCounts::default(),
            jobs: loaded.slots,
            order,
            names: HashMap::new(),
            name_collisions: Vec::new(),
            open_runs: HashMap::new(),
            keys: HashMap::new(),
            recent: HashMap::new(),
            wheel: Wheel::new(now),
            postponed: HashSet::new(),
            active: HashSet::new(),
            open: None,
            frame_events: 0,
            asking: Vec::new(),
            awaiting: VecDeque::new(),
            unprojected: VecDeque::new(),
            durable_position,
            auditing: None,
            watchers: HashMap::new(),
            post: Post::new(
                loaded.owed.of(deps.identity.shards),
                epoch,
                Now { wall_ms: now, boot_ms: deps.time.boot_ms() },
            ),
            dags: Dags::new(loaded.graphs, deps.time.boot_ms()),
            backfills: Backfills::default(),
            calendars,
            snapshots,
            deps,
        }
    }

    /// After a start: look-ups, wakes, and the effects that were lost with the process.
    pub(super) fn take_up(&mut self) {
        let now = self.now_ms();
        let zones_changed = self.state.tzdb != self.deps.identity.tzdb && !self.state.tzdb.is_empty();
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        let mut effects = Vec::new();
        for id in ids {
            if !zones_changed && self.take_up_resting(id) {
                continue;
            }
            let Some(mut job) = self.materialize(id) else { continue };
            if job.def.calendar.is_some() {
                self.calendars.note(id);
            }
            if zones_changed || job.def.calendar.is_some() {
                job.refresh_next_due();
                if let Some(slot) = self.jobs.get_mut(&id) {
                    job.encode_hot_over(&mut slot.hot);
                }
            }
            if job.hot.status != JobStatus::Deleted {
                self.add_name(&job.def.tenant, &job.def.name, id);
                self.deps.tenants.gauge(&job.def.tenant).jobs.fetch_add(1, Ordering::Relaxed);
            }
            for open in &job.hot.runs {
                self.open_runs.insert(open.id(), id);
                if let Some(key) = &open.record.key {
                    self.keys.insert((id, key.clone()), open.id());
                    self.post.made(id, key, (open.id(), open.record.source));
                }
            }
            self.dags.loaded(&job);
            if let Some(backfill) = &job.hot.backfill {
                self.backfills.found(id, backfill.id, backfill.is_open());
            }
            effects.extend(pending(&job));
            metrics::gauge!("retry_queue_depth").increment(crate::measure::retries(&job));
            self.schedule(id, job.wake_at(now));
        }
        self.state.tzdb = self.deps.identity.tzdb.to_owned();
        for tenant in self.state.tenants.values() {
            // Known at once, and not when the pool has heard of it.
            self.deps.tenants.gauge(&tenant.tenant).set_limits(tenant);
            self.deps.pool.send(PoolMsg::SetQuota(tenant.clone()));
        }
        for (scope, (paused, version)) in &self.state.pauses {
            let pause = Pause { scope: scope.clone(), paused: *paused, version: *version };
            tell_of_pause(&self.deps, &pause);
            if pause_home(scope, self.deps.identity.shards) == self.id {
                // Who served it before may have died before all shards held it.
                self.deps.pauses.owe(pause, self.deps.identity.shards, Duration::ZERO);
            }
        }
        self.owe_calendars();
        for bulk in self.state.bulks.values().filter(|bulk| !bulk.state.is_final()) {
            // Who carried it on before may have died in the middle of a page.
            self.deps.bulks.note(bulk.id, self.id);
        }
        self.tell_pool_of_attempts(effects);
        self.deps.pool.shard_is_up();
        self.publish_wake();
    }

    fn tell_pool_of_attempts(&self, effects: Vec<Effect>) {
        let (deps, served) = (self.deps.clone(), PoolMsg::ShardServed(self.id, self.epoch));
        let tell = move || {
            deps.pool.release(effects);
            deps.pool.send(served);
        };
        #[cfg(feature = "faults")]
        if let Some(late) = campanile_ports::faults::late_attempts() {
            tokio::spawn(async move {
                tokio::time::sleep(late).await;
                tell();
            });
            return;
        }
        tell();
    }

    /// The same of a job without open runs, without reading all of it; false: it has some, or cannot be read like this.
    fn take_up_resting(&mut self, id: JobId) -> bool {
        let Some(slot) = self.jobs.get(&id).filter(|slot| slot.live.is_none()) else { return false };
        let Ok(Some(resting)) = Resting::decode(&slot.def, &slot.hot) else { return false };
        let (hash, wake_ms) = (name_hash(&resting.tenant, &resting.name), resting.wake_ms);
        self.deps.tenants.gauge(&resting.tenant).jobs.fetch_add(1, Ordering::Relaxed);
        let backfill = resting.backfill;
        self.add_name_hash(hash, id);
        self.schedule(id, wake_ms);
        if let Some(backfill) = backfill {
            self.backfills.found(id, backfill, false);
        }
        true
    }
}

/// Every shard holds every pause, so every node hears of it, also of those that came before it.
pub(super) fn tell_of_pause(deps: &ShardDeps, pause: &Pause) {
    let Pause { scope, paused, version } = pause;
    if !deps.pauses.is_newest(scope, *version) {
        return;
    }
    match scope {
        PauseScope::Tenant(tenant) => {
            deps.tenants.gauge(tenant).paused.store(*paused, Ordering::Relaxed);
            deps.pool.send(PoolMsg::PauseTenant(tenant.clone(), *paused));
        }
        PauseScope::System => deps.tenants.system_paused.store(*paused, Ordering::Relaxed),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_snapshot_of_a_later_format_is_refused_in_words() {
        let snapshot = |format| {
            let header = Item(0, encode(&ShardState { format, ..ShardState::default() }).into());
            let manifest = Manifest {
                number: 1,
                epoch: Epoch(1),
                shard_seq: 0,
                replay_after: Position::default(),
                last_hlc: 0,
                parts: Vec::new(),
            };
            Loaded::from_chunks(ShardId(3), manifest, vec![(SnapshotPart::Hot, encode(&header))], 2)
                .map(|loaded| loaded.id)
        };
        assert_eq!(snapshot(0).unwrap(), ShardId(3), "of a release that did not name it");
        assert_eq!(snapshot(2).unwrap(), ShardId(3));
        let Err(StoreError::Refused(why)) = snapshot(3) else { panic!("read") };
        assert!(why.contains("shard 3 is written in event format 3; this release knows 2"), "{why}");
    }
}
