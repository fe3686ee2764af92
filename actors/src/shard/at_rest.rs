//! Shards that no node serves: they are read from an archive, changed as a restore needs it, and written as a whole
//! into another store.
//!
//! This module never acts on effects: those that a restored shard owes follow from its state when a node serves it.

use super::{
    Slot, graphs,
    load::Loaded,
    owed::Owed,
    snapshotting::{Item, chunks},
};
use campanile_core::{
    bulk,
    calendar::book::{self, CalendarBook, StoredCalendars},
    cron::tzdb_version,
    job::{Command, Context, Ids, Job, decide_next},
    shard::{KeptCreate, ShardState},
};
use campanile_ports::{Manifest, Position, Row, SnapshotPart, Snapshots, StoreError, rows::add_rows};
use campanile_schema::{
    event::{Event, PauseScope},
    format::{FIRST_FORMAT, MESSAGES_FORMAT},
    frame::{Frame, encode},
    ids::{Digest, Epoch, JobId, ShardId, shard_of_slot, slot_of},
    limits::RESTORED_IDS,
};
use std::{borrow::Cow, sync::Arc};

/// What a restore does with what may have happened after the backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Instants after the backup are misfires: each job's policy says what becomes of them.
    Backup,
    /// Instants up to now are skipped, and the ledger says why.
    Now,
    /// Nobody said: the whole system is paused.
    Undecided,
}

impl Loaded {
    pub fn state(&self) -> &ShardState {
        &self.state
    }

    /// Its jobs, by id. Call it after [`Loaded::settle`].
    pub fn jobs(&self) -> impl Iterator<Item = Result<Job, StoreError>> + '_ {
        let mut ids: Vec<JobId> = self.slots.keys().copied().collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| {
            let slot = self.slots.get(&id)?;
            Some(Job::decode(id, &slot.def, &slot.hot).map_err(|e| StoreError::Corrupt(format!("job {id}: {e}"))))
        })
    }

    /// Makes it fit to be served in another place than the one that the backup was made of. Gives the rows that follow from it.
    pub fn restore(&mut self, since: Since, now_ms: i64, epoch: Epoch) -> Result<Vec<(u64, Row)>, StoreError> {
        let tzdb = tzdb_version();
        let zones_changed = self.state.tzdb != tzdb;
        tzdb.clone_into(&mut self.state.tzdb);
        // What was given out after the backup is never given out again: ids of runs, and tokens that fence attempts.
        self.state.counter += RESTORED_IDS;
        let now_us = now_ms.saturating_mul(1000);
        // The next start takes this for the last time that was known, and an old backup for no jump of the clock.
        self.state.hlc = self.state.hlc.max(now_us.max(0) as u64);
        let skip = match since {
            Since::Now => true,
            Since::Backup => false,
            Since::Undecided => {
                let version = now_us.max(0) as u64;
                let before = self.state.pauses.get(&PauseScope::System).map_or(0, |pause| pause.1);
                let version = version.max(before + 1);
                // All that was due since the backup is undecided, so all of it is due in this pause.
                self.state.apply(&Event::PauseSet { scope: PauseScope::System, paused: true, version, at_ms: Some(0) });
                false
            }
        };
        // No frame says so: the snapshot that is written next holds it.
        self.owed.restored(now_ms);
        self.state.format = self.state.format.max(MESSAGES_FORMAT);
        for change in bulk::restored(&self.state.bulks, now_ms) {
            self.state.apply(&Event::BulkChanged { change });
        }
        let command = Command::Restored { skip };
        let mut rows = Vec::new();
        let jobs: Vec<Job> = self.jobs().collect::<Result<_, _>>()?;
        let book = Arc::new(CalendarBook::of(&self.state.calendars));
        for mut job in jobs {
            job.take_calendars(&book);
            if zones_changed || job.def.calendar.is_some() {
                job.refresh_next_due();
            }
            let context = Context {
                now_ms,
                ids: Ids { first: self.state.counter + 1, count: command.ids_wanted() },
                epoch,
                pauses: self.state.pauses_since(&job.def.tenant, job.hot.cursor_ms),
                queue_full: false,
                queue_half: false,
                node_room: 0,
                overloaded: false,
                held: None,
                tzdb,
                sampling: None,
            };
            let (decision, job) = decide_next(&job, &command, &context)
                .map_err(|refused| StoreError::Corrupt(format!("job {}: {}", job.id, refused.message)))?;
            debug_assert!(decision.sends.is_empty(), "a restore ends no run");
            if !decision.events.is_empty() {
                self.decided(decision.events, now_us, epoch, &mut rows);
            }
            if let Some(slot) = self.slots.get_mut(&job.id) {
                job.encode_hot_over(&mut slot.hot);
            }
        }
        Ok(rows)
    }

    /// What the snapshot will hold already: a frame that no journal needs.
    fn decided(&mut self, events: Vec<Event>, now_us: i64, epoch: Epoch, rows: &mut Vec<(u64, Row)>) {
        let state = &mut self.state;
        for event in &events {
            state.apply(event);
        }
        let (seq, hlc) = (state.seq + 1, state.next_hlc(now_us));
        let frame = Frame { shard: self.id, epoch, seq, hlc, events, format: FIRST_FORMAT };
        state.seq = frame.seq;
        state.hlc = frame.hlc + frame.events.len().max(1) as u64 - 1;
        add_rows(&frame, rows);
    }

    /// The same jobs, tenants, pauses and keys in another number of shards.
    pub fn reshard(mut all: Vec<Self>, shards: u16) -> Vec<Self> {
        for shard in &mut all {
            bulk::moved(&mut shard.state.bulks);
        }
        if all.len() == usize::from(shards) {
            return all;
        }
        let mut new: Vec<Self> = (0..shards).map(|id| Self::empty(ShardId(id))).collect();
        let mut pauses = std::collections::BTreeMap::new();
        let mut pause_times = std::collections::BTreeMap::new();
        let mut calendars = StoredCalendars::new();
        let (mut counter, mut seq, mut hlc, mut format) = (0, 0, 0, 0);
        let mut owed = Vec::with_capacity(all.len());
        for old in all {
            owed.push(old.owed);
            counter = old.state.counter.max(counter);
            seq = old.state.seq.max(seq);
            hlc = old.state.hlc.max(hlc);
            format = old.state.format.max(format);
            for (scope, pause) in old.state.pauses {
                let known: &mut (bool, u64) = pauses.entry(scope.clone()).or_default();
                if pause.1 > known.1 {
                    *known = pause;
                    match old.state.pause_times.get(&scope) {
                        Some(times) => pause_times.insert(scope, times.clone()),
                        None => pause_times.remove(&scope),
                    };
                }
            }
            merge_calendars(&mut calendars, old.state.calendars);
            for (name, tenant) in old.state.tenants {
                let home = shard_of_slot(slot_of(&name, ""), shards);
                new[usize::from(home.0)].state.tenants.insert(name, tenant);
            }
            for (id, bulk) in old.state.bulks {
                new[usize::from(id.shard(shards).0)].state.bulks.insert(id, bulk);
            }
            for (key, kept) in old.state.creates {
                keep_create(&mut new, shards, key, kept);
            }
            for (id, slot) in old.slots {
                new[usize::from(id.shard(shards).0)].slots.insert(id, slot);
            }
            for (id, graphs) in old.graphs {
                new[usize::from(id.shard(shards).0)].graphs.insert(id, graphs);
            }
            for shard in &mut new {
                if shard.state.tzdb.is_empty() {
                    shard.state.tzdb.clone_from(&old.state.tzdb);
                }
            }
        }
        for (shard, owed) in new.iter_mut().zip(Owed::reshard(owed, shards)) {
            shard.owed = owed;
            // Above what any of the old ones used.
            shard.state.counter = counter;
            shard.state.seq = seq;
            shard.state.hlc = hlc;
            shard.state.format = format;
            shard.state.pauses.clone_from(&pauses);
            shard.state.pause_times.clone_from(&pause_times);
            shard.state.calendars.clone_from(&calendars);
        }
        new
    }

    /// Writes all of it as snapshot `number`, published. Replay begins after `replay_after`.
    pub async fn write(
        &self,
        store: &dyn Snapshots,
        number: u64,
        epoch: Epoch,
        replay_after: Position,
    ) -> Result<Manifest, StoreError> {
        let mut parts = Vec::with_capacity(2);
        let definitions = chunks(self.slots.iter().map(|(id, slot): (_, &Slot)| Item(id.0, Cow::from(&*slot.def))));
        if !definitions.is_empty() {
            parts.push(store.write_part(self.id, number, SnapshotPart::Definitions, definitions).await?);
        }
        let header = Item(0, encode(&self.state).into());
        let jobs = self.slots.iter().map(|(id, slot)| Item(id.0, Cow::from(&*slot.hot)));
        let hot = chunks(std::iter::once(header).chain(jobs));
        parts.push(store.write_part(self.id, number, SnapshotPart::Hot, hot).await?);
        let owed = self.owed.chunks();
        if !owed.is_empty() {
            parts.push(store.write_part(self.id, number, SnapshotPart::Outbox, owed).await?);
        }
        let graphs = graphs::items(self.graphs.iter().map(|(job, graphs)| (*job, graphs)));
        if !graphs.is_empty() {
            let graphs = chunks(graphs.into_iter().map(|(id, bytes)| Item(id, bytes.into())));
            parts.push(store.write_part(self.id, number, SnapshotPart::Graphs, graphs).await?);
        }
        let shard_seq = self.state.seq;
        let manifest = Manifest { number, epoch, shard_seq, replay_after, last_hlc: self.state.hlc, parts };
        store.publish(self.id, manifest.clone()).await?;
        Ok(manifest)
    }
}

/// Every shard holds all calendars; one that was away may have fewer versions.
fn merge_calendars(all: &mut StoredCalendars, of_shard: StoredCalendars) {
    for (tenant, named) in of_shard {
        for (name, versions) in named {
            versions.iter().for_each(|version| book::keep(all, &tenant, &name, version));
        }
    }
}

/// Two shards know a key: its own, and that of the job that it made.
fn keep_create(new: &mut [Loaded], shards: u16, key: Digest, kept: KeptCreate) {
    let own = shard_of_slot(key.slot(), shards);
    let without = KeptCreate { job: None, ..kept };
    new[usize::from(own.0)].state.creates.entry(key).or_insert(without);
    if let Some(job) = kept.job {
        new[usize::from(job.shard(shards).0)].state.creates.insert(key, kept);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use campanile_core::shard::Pause;
    use campanile_schema::event::SkipReason;

    /// What a restore finds due was due after the backup, so all of it belongs to the pause in which a person decides about it.
    #[test]
    fn a_restore_that_nobody_decided_about_holds_all_that_was_due_since_the_backup() {
        let mut shard = Loaded::empty(ShardId(0));
        shard.restore(Since::Undecided, 5_000, Epoch(3)).unwrap();
        let reason = SkipReason::SystemPaused;
        assert_eq!(shard.state.pauses_since("acme", 1_000), [Pause { from_ms: 0, to_ms: None, reason }]);
        // Its times are those of the pause in every number of shards.
        for shard in Loaded::reshard(vec![shard, Loaded::empty(ShardId(1))], 3) {
            assert_eq!(shard.state.pauses_since("acme", 1_000), [Pause { from_ms: 0, to_ms: None, reason }]);
        }
    }
}
