//! Results of attempts on their way to their shards. They wait for the next tick, so that several share one turn and
//! one frame of their shard (docs/adr/0024-ends-wait-for-the-tick.md). While runs wait for an executor or a permit,
//! they are passed on at once.

use crate::{
    messages::{AttemptResult, ShardMsg},
    shard_map::ShardMap,
};
use campanile_schema::ids::ShardId;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// See the module's text.
pub struct WaitingResults {
    shards: Arc<ShardMap>,
    /// Since the last tick.
    waiting: Mutex<HashMap<ShardId, Vec<AttemptResult>>>,
    /// Runs wait for an executor.
    starved: AtomicBool,
    /// Runs wait for permits that come back when others end.
    limited: AtomicBool,
}

impl WaitingResults {
    pub fn new(shards: Arc<ShardMap>) -> Self {
        Self { shards, waiting: Mutex::default(), starved: AtomicBool::new(false), limited: AtomicBool::new(false) }
    }

    /// Attempts have ended. Their shards are told at once while runs wait for what they give back.
    pub fn add(&self, results: Vec<(ShardId, AttemptResult)>) {
        let mut waiting = self.waiting.lock();
        for (shard, result) in results {
            waiting.entry(shard).or_default().push(result);
        }
        drop(waiting);
        if self.is_starved() || self.limited.load(Ordering::Relaxed) {
            self.tell();
        }
    }

    /// Attempts that have ended since the last time, by shard.
    pub fn take(&self) -> HashMap<ShardId, Vec<AttemptResult>> {
        std::mem::take(&mut *self.waiting.lock())
    }

    /// Tells shards of the attempts that have ended, without waiting for the next tick.
    pub fn tell(&self) {
        for (shard, results) in self.take() {
            self.shards.send(shard, ShardMsg::Finish(results));
        }
    }

    /// Runs wait for an executor.
    pub fn is_starved(&self) -> bool {
        self.starved.load(Ordering::Relaxed)
    }

    /// What the pool found when it matched runs to executors.
    pub fn set_wanted(&self, starved: bool, limited: bool) {
        self.limited.store(limited, Ordering::Relaxed);
        self.starved.store(starved, Ordering::Relaxed);
    }
}
