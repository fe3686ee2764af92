//! A store in memory: for tests and simulation. Same meaning as the embedded one, plus faults on command ([`faults`]).
//!
//! It outlives "restarts" ([`MemoryStore::restart`]): what a real store would have kept is kept, and the views go back to
//! their last flush.

pub mod faults;
mod ports;
pub mod shared;
pub mod tables;
pub mod weather;

#[cfg(test)]
mod owning;
#[cfg(test)]
mod tests;

use self::{
    faults::{Fault, Op, Script},
    tables::MemoryTables,
};
use crate::progress::Progress;
use campanile_ports::{DiskRoom, Manifest, Opened, Position, SnapshotPart, StoreError};
use campanile_schema::{
    format::{EVENT_FORMAT, FormatRow, WIRE_FORMAT},
    ids::{ClusterId, SessionId, ShardId},
};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::BTreeMap, sync::Arc};

/// Journal, snapshots and views in memory.
pub struct MemoryStore {
    format: FormatRow,
    state: Mutex<State>,
    script: Mutex<Script>,
    tables: Arc<MemoryTables>,
    /// See [`MemoryStore::pretend_room`].
    room: Mutex<Option<DiskRoom>>,
}

#[derive(Default)]
struct State {
    session: SessionId,
    journal: Vec<(Position, Vec<u8>)>,
    next: BTreeMap<u16, u64>,
    /// An append whose outcome the caller does not know; it may be repeated with the same bytes.
    unknown: Option<(u16, u64)>,
    failed: bool,
    parts: BTreeMap<(ShardId, u64, SnapshotPart), Vec<Vec<u8>>>,
    /// Published manifests of a shard: the one before, which a stale read answers, and the one that counts.
    manifests: BTreeMap<ShardId, (Option<Manifest>, Manifest)>,
    progress: Progress,
    flushed: Progress,
}

impl MemoryStore {
    /// An empty store with the first session begun.
    pub fn open(shards: u16, cluster: ClusterId) -> (Arc<Self>, Opened) {
        let format = FormatRow {
            event_format: EVENT_FORMAT,
            wire_format: WIRE_FORMAT,
            cluster_id: cluster,
            shards,
            created_ms: 0,
        };
        let store = Arc::new(Self {
            format,
            state: Mutex::new(State::default()),
            script: Mutex::new(Script::default()),
            tables: Arc::new(MemoryTables::default()),
            room: Mutex::default(),
        });
        let opened = store.restart();
        (store, opened)
    }

    /// As if the process had died and started again: a new session, the views as their last flush left them.
    pub fn restart(&self) -> Opened {
        self.tables.revert_to_last_flush();
        self.reopen()
    }

    /// After `WriteFailed`: a new session; what was acknowledged is there, what failed is not.
    pub fn reopen(&self) -> Opened {
        let mut state = self.state();
        state.session = SessionId(state.session.0 + 1);
        state.next.clear();
        state.unknown = None;
        state.failed = false;
        state.progress = state.flushed.clone();
        Opened { format: self.format.clone(), session: state.session }
    }

    /// The `nth` call of `op` from now (0 = the next) meets `fault`.
    pub fn inject(&self, op: Op, nth: u64, fault: Fault) {
        self.script().add(op, nth, fault);
    }

    /// So many calls of `op` were made.
    pub fn calls(&self, op: Op) -> u64 {
        self.script().calls(op)
    }

    /// From now on all goes well.
    pub fn forget_faults(&self) {
        *self.script() = Script::default();
    }

    /// As if it had a disk, with so much room.
    pub fn pretend_room(&self, room: DiskRoom) {
        *self.room.lock() = Some(room);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock()
    }

    /// Does `call` as the script wants it for this call of `op`. `stale` answers a stale read.
    fn play<T>(
        &self,
        op: Op,
        call: impl FnOnce() -> Result<T, StoreError>,
        stale: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let fault = self.script().next(op);
        match fault {
            None => call(),
            Some(Fault::Unavailable) => Err(StoreError::Unavailable(format!("injected: {op:?}"))),
            Some(Fault::NotApplied) => Err(StoreError::Unknown(format!("injected, not applied: {op:?}"))),
            Some(Fault::AppliedUnknown) => {
                call()?;
                Err(StoreError::Unknown(format!("injected, applied: {op:?}")))
            }
            Some(Fault::WriteFailed) => {
                self.state().failed |= op == Op::Append;
                Err(StoreError::WriteFailed(format!("injected: {op:?}")))
            }
            Some(Fault::Stale) => stale(),
        }
    }
}

impl State {
    fn append(&mut self, lane: u16, seq: u64, batch: &[u8]) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::WriteFailed("an earlier append of this session failed".into()));
        }
        let position = Position { session: self.session, lane, seq };
        let due = self.next.get(&lane).copied().unwrap_or(1);
        if self.unknown == Some((lane, seq)) && due == seq + 1 {
            // The same row again: it is there already.
            if !self.journal.iter().any(|(p, b)| *p == position && b == batch) {
                return Err(StoreError::Refused("a row was repeated with other bytes".into()));
            }
            self.unknown = None;
            return Ok(());
        }
        if seq != due {
            return Err(StoreError::Refused(format!("lane {lane}: seq {seq} was appended where {due} is due")));
        }
        self.next.insert(lane, seq + 1);
        self.journal.push((position, batch.to_vec()));
        Ok(())
    }

    /// Index of the first batch that `after` does not cover: a position is a place in the log.
    fn place_after(&self, after: Position) -> usize {
        let covered = |p: &Position| {
            p.session < after.session || (p.session == after.session && p.lane == after.lane && p.seq <= after.seq)
        };
        self.journal.iter().rposition(|(p, _)| covered(p)).map_or(0, |at| at + 1)
    }

    fn read_after(&self, after: Position, max_bytes: usize) -> Vec<(Position, Vec<u8>)> {
        let mut bytes = 0;
        self.journal[self.place_after(after)..]
            .iter()
            .take_while(|(p, batch)| {
                let more = bytes == 0 || bytes < max_bytes;
                bytes += batch.len();
                p.session < self.session && more
            })
            .cloned()
            .collect()
    }

    fn trim(&mut self, upto: Position) {
        let place = self.place_after(upto.min(self.flushed.position));
        self.journal.drain(..place);
    }
}
