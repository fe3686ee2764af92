//! Decides which assignments must not start. This is the executor's part of fencing off owners that were replaced.
//!
//! Pure: the clock is an argument.

use super::report::code;
use campanile_schema::{
    ids::{Epoch, RunId, ShardId, Token},
    limits::CREDIT_MS,
    rpc::executor::{Assignment, Registered},
};
use hashbrown::HashMap;

/// Why an assignment is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub code: &'static str,
    pub message: &'static str,
}

/// Highest epochs and tokens seen.
#[derive(Debug, Default)]
pub(super) struct Fence {
    epochs: HashMap<(u64, ShardId), Epoch>,
    /// Tokens of the present and the previous stretch of time. An older one needs no remembering: an assignment that is
    /// older than a credit's life is refused for that.
    tokens: [HashMap<RunId, Token>; 2],
    stretch_began_ms: u64,
}

impl Fence {
    /// Epochs that a node names at registration. Returns how many rose.
    pub(super) fn learn(&mut self, registered: &Registered) {
        for (shard, epoch) in &registered.epochs {
            self.raise(registered.cluster_id, *shard, *epoch);
        }
    }

    fn raise(&mut self, cluster: u64, shard: ShardId, epoch: Epoch) -> bool {
        match self.epochs.insert((cluster, shard), epoch) {
            Some(before) if before > epoch => {
                self.epochs.insert((cluster, shard), before);
                false
            }
            Some(before) => before < epoch,
            None => true,
        }
    }

    /// Refuses, or remembers. `Ok(true)`: the epoch is newer than any seen of this shard, so its owner wants to be told what
    /// the executor holds.
    pub(super) fn admit(&mut self, a: &Assignment, now_ms: u64) -> Result<bool, Refusal> {
        if now_ms.saturating_sub(a.credit_stamp_ms) > CREDIT_MS as u64 {
            return Err(Refusal { code: code::CREDIT_VOID, message: "the credit was older than its life" });
        }
        if self.epochs.get(&(a.cluster_id, a.shard)).is_some_and(|highest| a.epoch < *highest) {
            return Err(Refusal { code: code::OLD_EPOCH, message: "the shard has a newer owner" });
        }
        self.turn(now_ms);
        if self.tokens.iter().any(|seen| seen.get(&a.run).is_some_and(|highest| a.token <= *highest)) {
            return Err(Refusal { code: code::OLD_TOKEN, message: "a newer attempt of this run was seen" });
        }
        self.tokens[0].insert(a.run, a.token);
        Ok(self.raise(a.cluster_id, a.shard, a.epoch))
    }

    fn turn(&mut self, now_ms: u64) {
        // Twice the life of a credit, so that the two stretches together always cover one.
        if now_ms.saturating_sub(self.stretch_began_ms) > 2 * CREDIT_MS as u64 {
            self.stretch_began_ms = now_ms;
            self.tokens.swap(0, 1);
            self.tokens[0].clear();
        }
    }
}
