//! What a shard that is served has of messages: what is owed, which travel, and whose keys are known. `outbox` and `taking` work with it.

use super::owed::Owed;
use campanile_core::outbox::{Courier, KeyMemory, Now, keys};
use campanile_schema::{
    ids::{Epoch, JobId, RunId},
    record::Source,
    stored::outbox::MessageId,
};
use std::collections::VecDeque;

/// Messages of a shard that is served.
pub(super) struct Post {
    pub owed: Owed,
    pub courier: Courier,
    pub keys: KeyMemory<(RunId, Source)>,
    /// Messages whose frame is not durable, with its seq.
    pub undurable: VecDeque<(u64, MessageId)>,
    /// There may be something to send or to settle.
    pub due: bool,
    /// `Deliver` calls whose keys are being looked up.
    pub arrived: usize,
}

impl Post {
    pub fn new(owed: Owed, epoch: Epoch, now: Now) -> Self {
        let courier = Courier::load(&owed.outbox, now);
        let due = !owed.outbox.is_empty();
        Self { owed, courier, keys: KeyMemory::new(epoch), undurable: VecDeque::new(), due, arrived: 0 }
    }

    /// A run was made under this key, or came with the shard.
    pub fn made(&mut self, job: JobId, key: &str, run: (RunId, Source)) {
        if keys::is_reserved(key) {
            self.keys.made(job, key, run);
        }
    }

    /// The view shows the run of this key from now on.
    pub fn shown(&mut self, job: JobId, key: &str, boot_ms: i64) {
        if keys::is_reserved(key) {
            self.keys.shown(job, key, boot_ms);
        }
    }

    /// The shard stays here, at another epoch.
    pub fn stays(&mut self, epoch: Epoch) {
        self.keys.raise(epoch);
        self.due = true;
    }
}
