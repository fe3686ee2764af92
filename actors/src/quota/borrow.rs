//! A node's side of the loans of its tenants: what it reports to the home shards of tenants, and what it does with
//! their answers.

use super::{Quotas, tenant::Quota};
use crate::{
    lending::{Counts, TenantReport, TenantShare},
    tenants::home_of,
};
use campanile_core::{dispatch::permit::Loan, ownership::borrowed::Borrowed};
use campanile_schema::{
    channel::is_of_channels,
    ids::{Epoch, SessionId, ShardId},
    stored::TenantRecord,
};
use hashbrown::HashMap;
use std::{collections::BTreeMap, sync::atomic::Ordering};

/// Between two questions about a tenant, ms.
const ASK_GAP_MS: i64 = 25;
/// The same after an answer that was less than what was wanted: each question is an event of the home shard.
const ASK_AGAIN_MS: i64 = 200;
/// Tenants in one message to a home shard.
const REPORTS_AT_ONCE: usize = 256;

/// The session that borrows.
pub struct Borrower {
    session: SessionId,
    /// Of the cluster.
    pub(super) shards: u16,
    /// Served here, all of their runs known.
    served: BTreeMap<ShardId, Epoch>,
}

impl Borrower {
    pub fn new(session: SessionId, shards: u16) -> Self {
        Self { session, shards, served: BTreeMap::new() }
    }

    /// A tenant has a limit to its runs at once: those that have a permit are a debt until the home shard has counted them.
    pub(super) fn begin(&self, quota: &mut Quota) {
        if quota.permits.loan.is_some() || quota.limit.max_concurrent_runs == 0 {
            return;
        }
        let mut running: HashMap<ShardId, u32> = HashMap::new();
        for run in quota.permits.holders() {
            *running.entry(run.shard(self.shards)).or_default() += 1;
        }
        let mut borrowed = Borrowed::new(self.session);
        for (shard, epoch) in &self.served {
            borrowed.adopted(*shard, *epoch, running.get(shard).copied().unwrap_or(0));
        }
        quota.permits.loan = Some(Loan { borrowed, share: quota.limit.max_concurrent_runs });
    }
}

impl Quota {
    /// Permits that would do for what runs and waits, as far as the others leave them.
    fn needed(&self, loan: &Loan) -> u32 {
        let used = loan.borrowed.used();
        (used.saturating_add(self.could_start() as u32)).min(loan.share).max(used)
    }

    /// Whether something is to be asked at once.
    fn must_ask(&self) -> bool {
        if !self.known || self.has_rate() && self.permits.rate <= 0.0 {
            return self.has_waiting();
        }
        let limited = self.permits.loan.as_ref().filter(|_| self.limit.max_concurrent_runs > 0);
        limited.is_some_and(|loan| {
            let (level, used) = (loan.borrowed.permits(), loan.borrowed.used());
            let others_wait = level > loan.share && level > used;
            !loan.borrowed.all_settled() || self.needed(loan) > level || others_wait
        })
    }

    fn report(&mut self) -> TenantReport {
        let used = self.permits.held() as u64;
        let counts = Counts {
            jobs: self.gauge.jobs.load(Ordering::Relaxed).max(0) as u64,
            running: used,
            waiting: self.gauge.waiting.load(Ordering::Relaxed).max(0) as u64,
            wanted: used + self.could_start() as u64,
            breaker: self.gauge.breaker.load(Ordering::Relaxed),
        };
        let needed = self.permits.loan.as_ref().map_or(0, |loan| self.needed(loan));
        let limited = self.limit.max_concurrent_runs > 0;
        let request = self.permits.loan.as_mut().filter(|_| limited).and_then(|loan| {
            let level = loan.borrowed.permits();
            // Somewhat more, so that not every run has to ask; and what is over goes back when it is much, or others want it.
            let easy = (needed + needed / 4 + 1).min(loan.share).max(needed);
            let keeps = easy <= level && level <= loan.share && u64::from(easy) * 4 > u64::from(level) * 3;
            loan.borrowed.request(if keeps { level } else { easy }).cloned()
        });
        TenantReport { tenant: self.name.clone(), counts, request }
    }
}

impl Quotas {
    /// All runs of a shard are known: it may have permits from now on.
    pub fn shard_served(&mut self, shard: ShardId, epoch: Epoch) {
        let Some(borrower) = &mut self.borrower else { return };
        let known = borrower.served.insert(shard, epoch).is_some();
        for index in 0..self.quotas.len() {
            if self.quotas[index].permits.take_over(shard, epoch, known) {
                self.touch(index);
            }
        }
    }

    /// The runs of a shard are another node's: nothing of them stays here.
    pub fn shard_gone(&mut self, shard: ShardId) {
        let Some(borrower) = &mut self.borrower else { return };
        borrower.served.remove(&shard);
        let shards = borrower.shards;
        for index in 0..self.quotas.len() {
            let quota = &mut self.quotas[index];
            let gone: Vec<_> = quota.places.keys().copied().filter(|run| run.shard(shards) == shard).collect();
            gone.into_iter().for_each(|run| quota.unwant(run));
            quota.permits.hand_over(shard);
            quota.show_running();
            self.touch(index);
        }
        self.shard_leaves_targets(shard, shards);
    }

    /// Whether all that came with a shard is counted by the tenants' home shards, so that it may be handed over.
    pub fn settled(&self, shard: ShardId) -> bool {
        self.quotas.iter().filter_map(|quota| quota.permits.loan.as_ref()).all(|loan| loan.borrowed.settled(shard))
    }

    /// What is to be told to home shards that are `free` to be asked. `all`: of every tenant of the node; else of those that have
    /// something to ask.
    pub fn reports(
        &mut self,
        all: bool,
        now_ms: i64,
        free: impl Fn(ShardId) -> bool,
    ) -> HashMap<ShardId, Vec<TenantReport>> {
        let Some(shards) = self.borrower.as_ref().map(|borrower| borrower.shards) else { return HashMap::new() };
        let asking = std::mem::take(&mut self.asking);
        let looked_at = if all {
            for tenant in self.tenants.names() {
                self.of(&tenant);
            }
            (0..self.quotas.len()).collect()
        } else {
            asking
        };
        let mut reports: HashMap<ShardId, Vec<TenantReport>> = HashMap::new();
        for index in looked_at {
            let quota = &mut self.quotas[index];
            quota.asking = false;
            // The answer would be that it has no limits.
            if is_of_channels(&quota.name) {
                continue;
            }
            let must_ask = quota.must_ask();
            if !all && !must_ask {
                continue;
            }
            let home = home_of(&quota.name, shards);
            let batch = reports.entry(home).or_default();
            if free(home) && batch.len() < REPORTS_AT_ONCE && (all || quota.ask_at_ms <= now_ms) {
                quota.ask_at_ms = now_ms + ASK_GAP_MS;
                quota.told_since_asked = false;
                batch.push(quota.report());
            } else if must_ask {
                quota.asking = true;
                self.asking.push(index);
            }
        }
        reports.retain(|_, batch| !batch.is_empty());
        reports
    }

    /// Whether a tenant has something to ask after it was looked at.
    pub(super) fn note_asking(&mut self, index: usize) {
        let quota = &mut self.quotas[index];
        if self.borrower.is_some() && !quota.asking && quota.must_ask() {
            quota.asking = true;
            self.asking.push(index);
        }
    }

    /// The home shard has answered how much of the tenant's limits this session may use.
    pub fn take_share(&mut self, granted: TenantShare, now_ms: i64) {
        let index = self.of(&granted.tenant);
        let quota = &mut self.quotas[index];
        let limits =
            granted.limits.unwrap_or_else(|| TenantRecord { tenant: granted.tenant, ..TenantRecord::default() });
        // One that was set meanwhile is newer than this answer. Versions alone do not tell: they begin again after a deletion.
        if !quota.known || !quota.told_since_asked || limits.version >= quota.limit.version {
            quota.gauge.set_limits(&limits);
            (quota.limit, quota.known) = (limits, true);
            quota.set_health();
        }
        quota.permits.rate = granted.rate;
        quota.gauge.set_elsewhere(granted.elsewhere);
        if let Some(borrower) = &self.borrower {
            borrower.begin(quota);
        }
        if let Some(loan) = &mut quota.permits.loan {
            loan.share = granted.share;
            loan.borrowed.level(granted.level);
        }
        if quota.permits.loan.as_ref().is_some_and(|loan| quota.needed(loan) > loan.borrowed.permits()) {
            // There are no more for the moment.
            quota.ask_at_ms = now_ms + ASK_AGAIN_MS;
        }
        self.touch(index);
    }
}
