//! Which keys of messages have made a run. A key is known from memory while its run is open or the view has not shown it for a minute,
//! and from a look-up in the view, which is made outside the shard's turn and so is older than the decision that uses it.
//!
//! There is no gap between the two. A look-up that counts is younger than [`KEY_LOOK_UP_MS`], and of this epoch. A run that it did not
//! see came to the view after it, so memory has kept its key since then, which it does for [`KEY_KEPT_MS`], twice as long. Memory is
//! of one epoch: an earlier owner's look-up says nothing, because what was made and shown between the two owners stands in neither.

use super::rules::{Rule, kept};
use campanile_schema::{
    ids::{Epoch, JobId},
    limits::{KEY_KEPT_MS, KEY_LOOK_UP_MS},
};
use std::collections::BTreeMap;

/// The run of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState<R> {
    Found(R),
    Absent,
    /// The view must be asked.
    Unknown,
}

/// What the view said of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookUp<R> {
    pub epoch: Epoch,
    /// When the view was asked, by the boot clock.
    pub boot_ms: i64,
    pub found: Option<R>,
}

/// Keys of one shard that its present owner has seen make a run.
#[derive(Clone, Debug)]
pub struct KeyMemory<R> {
    epoch: Epoch,
    /// The run, and since when the view shows it.
    keys: BTreeMap<(JobId, String), (R, Option<i64>)>,
}

impl<R: Copy> KeyMemory<R> {
    /// Of an owner that has just loaded the shard: [`Self::made`] tells it of the runs that the view may not show yet.
    pub fn new(epoch: Epoch) -> Self {
        Self { epoch, keys: BTreeMap::new() }
    }

    /// The same owner has the shard at another epoch. Nobody else had it meanwhile, but a look-up does not tell that of its own.
    pub fn raise(&mut self, epoch: Epoch) {
        self.epoch = epoch;
    }

    pub fn made(&mut self, job: JobId, key: &str, run: R) {
        self.keys.insert((job, key.to_owned()), (run, None));
    }

    /// The view shows the run of this key from now on.
    pub fn shown(&mut self, job: JobId, key: &str, boot_ms: i64) {
        if let Some((_, since)) = self.keys.get_mut(&(job, key.to_owned())) {
            since.get_or_insert(boot_ms);
        }
    }

    /// Forgets the keys that the view has shown for long enough.
    pub fn forget(&mut self, boot_ms: i64) {
        let for_ms = if kept(Rule::KeyOutlivesLookUp) { KEY_KEPT_MS } else { 0 };
        self.keys.retain(|_, (_, since)| since.is_none_or(|since| boot_ms - since < for_ms));
    }

    /// What is known of a key, with what the view said, if it was asked.
    pub fn find(&self, job: JobId, key: &str, looked_up: Option<LookUp<R>>, boot_ms: i64) -> KeyState<R> {
        if let Some((run, _)) = self.keys.get(&(job, key.to_owned())) {
            return KeyState::Found(*run);
        }
        let Some(LookUp { epoch, boot_ms: asked_ms, found }) = looked_up else { return KeyState::Unknown };
        let fresh = boot_ms - asked_ms <= KEY_LOOK_UP_MS || !kept(Rule::LookUpIsFresh);
        match found {
            Some(run) => KeyState::Found(run),
            None if fresh && (epoch == self.epoch || !kept(Rule::LookUpOfThisEpoch)) => KeyState::Absent,
            None => KeyState::Unknown,
        }
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
