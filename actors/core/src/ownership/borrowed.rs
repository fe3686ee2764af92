//! A session's side of a tenant's loans: which runs it may start, and what it still has to report to the quota.
//!
//! Runs that came with a shard count at once, whether the quota has counted them or not. They may exceed the level;
//! then nothing starts until enough of them have ended. Runs of a shard that was handed over count until the quota has
//! moved them.

use super::rules::{Rule, kept};
use campanile_schema::{
    ids::{Epoch, SessionId, ShardId},
    loan::{Level, Request, Wish},
};
use std::collections::{BTreeMap, VecDeque};

/// Shards that one wish names.
const ADOPTED_AT_ONCE: usize = 64;

/// A shard's open runs.
#[derive(Clone, Copy, Debug)]
struct Open {
    epoch: Epoch,
    runs: u32,
    /// Of them, those that came with the shard. Runs that were started here use permits of this session already.
    adopted: u32,
    /// The quota has counted what was adopted.
    counted: bool,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Borrowed {
    session: SessionId,
    level: Level,
    shards: BTreeMap<ShardId, Open>,
    /// Shards that were handed over, whose permits the quota has not moved yet.
    handed: VecDeque<(ShardId, Epoch, u32)>,
    /// Made once, and repeated until the level has another version.
    request: Option<Request>,
}

impl Borrowed {
    pub fn new(session: SessionId) -> Self {
        let (shards, handed) = (BTreeMap::new(), VecDeque::new());
        Self { session, level: Level::default(), shards, handed, request: None }
    }

    /// Permits in use.
    pub fn used(&self) -> u32 {
        let handed: u32 = self.handed.iter().map(|(_, _, runs)| runs).sum();
        self.shards.values().map(|open| open.runs).sum::<u32>() + handed
    }

    /// Permits that the quota lends.
    pub fn permits(&self) -> u32 {
        self.level.permits
    }

    /// Whether a run may start: there is a permit, and no request is on its way that gives permits back.
    pub fn may_start(&self, shard: ShardId) -> bool {
        let promised = match self.request.as_ref().map(|request| &request.wish) {
            Some(Wish::Hold { permits }) => *permits,
            Some(Wish::Adopted { .. } | Wish::HandedOver { .. }) | None => u32::MAX,
        };
        self.shards.contains_key(&shard) && self.used() < self.level.permits.min(promised)
    }

    pub fn started(&mut self, shard: ShardId) {
        if let Some(open) = self.shards.get_mut(&shard) {
            open.runs += 1;
        }
    }

    pub fn ended(&mut self, shard: ShardId) {
        if let Some(open) = self.shards.get_mut(&shard) {
            open.runs = open.runs.saturating_sub(1);
        }
    }

    /// A shard is served from now on, with so many open runs.
    pub fn adopted(&mut self, shard: ShardId, epoch: Epoch, runs: u32) {
        self.shards.insert(shard, Open { epoch, runs, adopted: runs, counted: false });
    }

    /// Whether a shard's permits are settled with the quota, so that it can be handed over.
    pub fn settled(&self, shard: ShardId) -> bool {
        self.shards.get(&shard).is_none_or(|open| open.counted)
    }

    /// Whether there is nothing left to tell the quota of.
    pub fn all_settled(&self) -> bool {
        self.handed.is_empty() && self.shards.values().all(|open| open.counted)
    }

    /// The same owner goes on with a shard at a higher epoch: nothing moved.
    pub fn raised(&mut self, shard: ShardId, epoch: Epoch) {
        if let Some(open) = self.shards.get_mut(&shard) {
            (open.epoch, open.adopted, open.counted) = (epoch, 0, false);
        }
    }

    /// A shard was released to another session.
    pub fn handed_over(&mut self, shard: ShardId) {
        let open = self.shards.remove(&shard);
        // Without runs there is nothing to move.
        if let Some(open) = open.filter(|open| open.runs > 0 && kept(Rule::DrainCountsPermits)) {
            self.handed.push_back((shard, open.epoch, open.runs));
        }
    }

    /// What to ask the quota now; `want`: permits that the session would like to have. Repeated until it is answered.
    pub fn request(&mut self, want: u32) -> Option<&Request> {
        if self.request.is_none() {
            let uncounted = self.shards.iter().filter(|(_, open)| !open.counted).map(|(shard, open)| {
                (*shard, open.epoch, if kept(Rule::CountAsLoaded) { open.adopted } else { open.runs })
            });
            let adopted: Vec<_> = uncounted.take(ADOPTED_AT_ONCE).collect();
            let wish = if !adopted.is_empty() {
                Wish::Adopted { shards: adopted }
            } else if let Some((shard, epoch, runs)) = self.handed.pop_front() {
                // One that is not moved yet makes way for the next.
                self.handed.push_back((shard, epoch, runs));
                Wish::HandedOver { shard, epoch, runs }
            } else {
                Wish::Hold { permits: want.max(self.used()) }
            };
            let nothing = wish == Wish::Hold { permits: self.level.permits };
            self.request = (!nothing).then_some(Request { session: self.session, version: self.level.version, wish });
        }
        self.request.as_ref()
    }

    /// The quota says what the level is.
    pub fn level(&mut self, level: Level) {
        if level.version <= self.level.version {
            return;
        }
        let before = std::mem::replace(&mut self.level, level).permits;
        match self.request.take().map(|request| request.wish) {
            Some(Wish::Adopted { shards }) => {
                for (shard, epoch, _) in shards {
                    if let Some(open) = self.shards.get_mut(&shard).filter(|open| open.epoch == epoch) {
                        open.counted = true;
                    }
                }
            }
            Some(Wish::HandedOver { shard, epoch, runs }) if before.saturating_sub(level.permits) == runs => {
                self.handed.retain(|handed| *handed != (shard, epoch, runs));
            }
            Some(Wish::HandedOver { .. } | Wish::Hold { .. }) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: ShardId = ShardId(5);

    #[test]
    fn an_adopted_run_is_a_debt_until_it_is_counted() {
        let mut borrowed = Borrowed::new(SessionId(1));
        borrowed.adopted(X, Epoch(1), 2);
        let request = borrowed.request(3).unwrap();
        assert_eq!(request.wish, Wish::Adopted { shards: vec![(X, Epoch(1), 2)] });
        assert!(!borrowed.may_start(X));
        assert!(!borrowed.settled(X));
        borrowed.level(Level { version: 1, permits: 2 });
        assert!(!borrowed.may_start(X));
        assert!(borrowed.settled(X));
        assert_eq!(borrowed.request(3).unwrap().wish, Wish::Hold { permits: 3 });
        borrowed.level(Level { version: 2, permits: 3 });
        assert!(borrowed.may_start(X));
    }

    #[test]
    fn permits_of_a_handed_shard_count_until_they_are_moved() {
        let mut borrowed = Borrowed::new(SessionId(1));
        borrowed.adopted(X, Epoch(1), 0);
        borrowed.request(0);
        borrowed.level(Level { version: 1, permits: 4 });
        borrowed.started(X);
        borrowed.started(X);
        borrowed.handed_over(X);
        assert_eq!(borrowed.used(), 2);
        assert_eq!(borrowed.request(4).unwrap().wish, Wish::HandedOver { shard: X, epoch: Epoch(1), runs: 2 });
        borrowed.level(Level { version: 2, permits: 4 });
        assert_eq!(borrowed.used(), 2, "not yet");
        borrowed.request(4);
        borrowed.level(Level { version: 3, permits: 2 });
        assert_eq!(borrowed.used(), 0);
    }
}
