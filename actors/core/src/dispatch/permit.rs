//! What may still be given out: a tenant's permits, an executor's credit, and the places for matches of a node.
//!
//! Three accounts, each with one owner. Nothing is taken from one of them that its limit does not allow, and what is taken comes back
//! exactly once. What an account holds above its limit, because runs were adopted with a shard, is a debt: nothing is given until it is
//! paid.

use super::rules::{Rule, kept};
use crate::ownership::borrowed::Borrowed;
use campanile_schema::{
    ids::{Epoch, RunId, ShardId},
    limits,
    rpc::executor::Credit,
};
use hashbrown::HashSet;

/// What an executor takes now, by its own word.
#[derive(Clone, Debug, Default)]
pub struct SessionCredit {
    credit: Credit,
    /// Runs that it was given on this credit.
    used: u32,
    /// CLOCK_BOOTTIME of the node, ms.
    given_ms: i64,
}

impl SessionCredit {
    /// A new statement replaces the one before.
    pub fn give(&mut self, credit: Credit, now_ms: i64) {
        *self = Self { credit, used: 0, given_ms: now_ms };
    }

    /// Nothing goes to it before it gives credit again. The stamp stays: attempts that are under way name it.
    pub fn revoke(&mut self) {
        self.credit.slots = 0;
    }

    pub(super) fn spend(&mut self) {
        if kept(Rule::CreditIsSpent) {
            self.used += 1;
        }
    }

    /// A run that it was given on this credit was not started.
    pub fn refund(&mut self) {
        if kept(Rule::CreditComesBack) {
            self.used = self.used.saturating_sub(1);
        }
    }

    /// What is left of it, with so many of its slots in use. The executor checks the age by its own clock; this only avoids sending in
    /// vain.
    pub fn left(&self, slots: u32, in_use: usize, now_ms: i64) -> u32 {
        if now_ms - self.given_ms > limits::CREDIT_MS && kept(Rule::CreditGrowsVoid) {
            return 0;
        }
        let left = self.credit.slots.saturating_sub(self.used);
        if !kept(Rule::SlotsAreFinite) {
            return left;
        }
        // What was sent after the executor counted its free slots is not in its credit yet; it is in use here.
        left.min(slots.saturating_sub(u32::try_from(in_use).unwrap_or(u32::MAX)))
    }

    /// By the executor's clock; attempts carry it back.
    pub fn stamp_ms(&self) -> u64 {
        self.credit.stamp_ms
    }

    /// 0.0..=1.0, as the executor measures it.
    pub fn load(&self) -> f32 {
        self.credit.load
    }
}

/// Places for runs that are matched and whose attempt is not durable yet.
pub(super) fn places(taken: usize) -> usize {
    if kept(Rule::BindsAreLimited) { limits::BINDS_IN_FLIGHT.saturating_sub(taken) } else { usize::MAX }
}

/// Limits of a tenant as they hold now.
#[derive(Clone, Copy, Debug, Default)]
pub struct TenantLimits {
    /// Runs at once; 0 = no limit.
    pub concurrent: u32,
    /// Runs per second are limited, by [`TenantPermits::rate`].
    pub rated: bool,
}

/// What the tenant's home shard lends to this session of a cluster.
#[derive(Clone, Debug)]
pub struct Loan {
    pub borrowed: Borrowed,
    /// What others leave of the limit.
    pub share: u32,
}

/// A tenant's permits on this node: who holds one, and whether there is one more.
#[derive(Clone, Debug)]
pub struct TenantPermits {
    /// Shards of the cluster, for the shard of a run.
    shards: u16,
    holders: HashSet<RunId>,
    /// In a cluster, once there is a limit to runs at once.
    pub loan: Option<Loan>,
    /// This node's part of the rate, runs per second.
    pub rate: f64,
    /// Rate permits at `refilled_ms` (CLOCK_BOOTTIME).
    tokens: f64,
    refilled_ms: i64,
}

impl TenantPermits {
    pub fn new(shards: u16) -> Self {
        Self { shards, holders: HashSet::new(), loan: None, rate: 0.0, tokens: 0.0, refilled_ms: 0 }
    }

    fn shard(&self, run: RunId) -> ShardId {
        run.shard(self.shards)
    }

    /// Permits in use here.
    pub fn held(&self) -> usize {
        self.holders.len()
    }

    pub fn holders(&self) -> impl Iterator<Item = RunId> {
        self.holders.iter().copied()
    }

    /// Whether a run may have a permit.
    pub fn may_start(&self, run: RunId, limits: TenantLimits) -> bool {
        let permit = match &self.loan {
            _ if limits.concurrent == 0 || !kept(Rule::PermitsAreLimited) => true,
            None => self.is_below(limits.concurrent),
            Some(loan) => loan.borrowed.used() < loan.share && loan.borrowed.may_start(self.shard(run)),
        };
        permit && self.has_rate(limits)
    }

    /// The same, as if the limit were this node's alone: a defect for the proofs.
    #[cfg(feature = "faults")]
    pub fn may_start_alone(&self, limits: TenantLimits) -> bool {
        (limits.concurrent == 0 || self.is_below(limits.concurrent)) && self.has_rate(limits)
    }

    fn is_below(&self, concurrent: u32) -> bool {
        self.holders.len() < concurrent as usize
    }

    fn has_rate(&self, limits: TenantLimits) -> bool {
        !limits.rated || self.tokens >= 1.0
    }

    /// Permits that are left. In a cluster a shard whose runs are not counted yet may have none of them.
    pub fn room(&self, limits: TenantLimits) -> usize {
        let permits = match &self.loan {
            _ if limits.concurrent == 0 => usize::MAX,
            None => (limits.concurrent as usize).saturating_sub(self.holders.len()),
            Some(loan) => loan.share.min(loan.borrowed.permits()).saturating_sub(loan.borrowed.used()) as usize,
        };
        if limits.rated { permits.min(self.tokens.max(0.0) as usize) } else { permits }
    }

    /// The run gets a permit.
    pub fn start(&mut self, run: RunId, limits: TenantLimits) {
        self.hold(run);
        if limits.rated && kept(Rule::RateIsSpent) {
            self.tokens -= 1.0;
        }
    }

    /// The run has a permit, whether there is one or not: its body runs.
    pub fn hold(&mut self, run: RunId) {
        let shard = self.shard(run);
        if (self.holders.insert(run) || !kept(Rule::PermitHasOneHolder))
            && let Some(loan) = &mut self.loan
        {
            loan.borrowed.started(shard);
        }
    }

    /// The run gives its permit back, if it has one.
    pub fn release(&mut self, run: RunId) {
        let shard = self.shard(run);
        if self.holders.remove(&run)
            && let Some(loan) = &mut self.loan
        {
            loan.borrowed.ended(shard);
        }
    }

    /// The run was not started after all: its permits are there again.
    pub fn give_back(&mut self, run: RunId, limits: TenantLimits) {
        if self.holders.contains(&run) && limits.rated {
            self.tokens += 1.0;
        }
        self.release(run);
    }

    /// The shard is served here from now on, with the runs that are known; `again`: it was before, and goes on at a higher epoch.
    /// False: nothing is lent to this session, so nobody counts them.
    pub fn take_over(&mut self, shard: ShardId, epoch: Epoch, again: bool) -> bool {
        let Some(loan) = &mut self.loan else { return false };
        if again {
            loan.borrowed.raised(shard, epoch);
        } else {
            let runs = self.holders.iter().filter(|run| run.shard(self.shards) == shard).count();
            loan.borrowed.adopted(shard, epoch, runs as u32);
        }
        true
    }

    /// Another session has the shard: what its runs hold is counted there.
    pub fn hand_over(&mut self, shard: ShardId) {
        let shards = self.shards;
        self.holders.retain(|run| run.shard(shards) != shard);
        if let Some(loan) = &mut self.loan {
            loan.borrowed.handed_over(shard);
        }
    }

    /// A bucket starts full, so that the first second is not refused.
    pub fn start_rate(&mut self, rate: f64) {
        self.rate = rate;
        self.tokens = rate.max(1.0);
    }

    /// Rate permits come with time; `now_ms` is CLOCK_BOOTTIME.
    pub fn refill(&mut self, now_ms: i64, limits: TenantLimits) {
        if limits.rated {
            let seconds = (now_ms - self.refilled_ms).clamp(0, 60_000) as f64 / 1000.0;
            let tokens = self.tokens + seconds * self.rate;
            self.tokens = if kept(Rule::BucketIsFinite) { tokens.min(self.rate.max(1.0)) } else { tokens };
        }
        self.refilled_ms = now_ms;
    }
}
