//! The handle by which others send to the node's pool actor. The quota actors have their turns in its task.

use crate::messages::PoolMsg;
use campanile_core::job::Effect;
use ractor::ActorRef;
use std::sync::{
    OnceLock,
    atomic::{AtomicI64, Ordering},
};

/// See the module's text. Before the pool is set, and after it has ended, what is sent to it is dropped.
#[derive(Default)]
pub struct PoolHandle {
    pool: OnceLock<ActorRef<PoolMsg>>,
    /// Shards of the start that have not yet told quotas and pool all that they bring with them.
    starting: AtomicI64,
}

impl PoolHandle {
    pub fn set(&self, pool: ActorRef<PoolMsg>) {
        let _ = self.pool.set(pool);
    }

    pub fn send(&self, message: PoolMsg) {
        if let Some(pool) = self.pool.get() {
            let _ = pool.cast(message);
        }
    }

    /// Lets effects go. In their order: a permit that ended comes back before the next one is asked for.
    pub fn release(&self, effects: Vec<Effect>) {
        if !effects.is_empty() {
            self.send(PoolMsg::Effects(effects));
        }
    }

    /// So many shards are about to be served: until all of them are up, no permit is lent.
    pub fn expect_shards(&self, count: usize) {
        self.starting.fetch_add(count as i64, Ordering::AcqRel);
    }

    /// A shard of the start has sent all that it brought with it.
    pub fn shard_is_up(&self) {
        self.starting.fetch_sub(1, Ordering::AcqRel);
        // Behind the last of all that, permits may be lent.
        self.tick_quotas();
    }

    /// Lets quotas grant what may go now; not before they know all limits, pauses and permits in use.
    pub fn tick_quotas(&self) {
        if self.starting.load(Ordering::Acquire) <= 0 {
            self.send(PoolMsg::QuotaTick);
        }
    }

    pub fn stop(&self) {
        if let Some(pool) = self.pool.get() {
            pool.stop(None);
        }
    }
}
