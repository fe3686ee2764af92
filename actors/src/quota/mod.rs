//! Quota actors, one for each tenant: each lends permits to runs. A run holds a permit from the grant until its body
//! has ended. Rate permits are a token bucket. A run without a permit waits here with a reason until a permit is
//! granted; nothing polls.
//!
//! They are virtual: their turns run in the task of the node's pool actor, which asks for permits and uses them
//! (docs/adr/0012-permits-at-the-pool.md).
//!
//! Their state is rebuilt from the shards after a restart: from the requests of queued runs, and from running ones by
//! `adopt`, which may exceed the limit. No permit is granted then until enough runs have ended.
//!
//! In a cluster every node has quota actors of its own. The tenant's home shard lends them what they may use of its
//! limits (`borrow.rs`).

mod borrow;
mod channels;
mod rank;
mod target;
mod target_state;
mod tenant;

pub use borrow::Borrower;
pub(crate) use tenant::PAUSED;

use crate::tenants::TenantGauges;
use campanile_core::{dispatch::target::Verdict, job::WaitingRun};
use campanile_schema::{
    ids::RunId,
    stored::{TenantRecord, target_of},
    wait::WaitCode,
};
use hashbrown::{HashMap, HashSet};
use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};
use target::{TargetUse, UseEnd};
use target_state::TargetState;
use tenant::Quota;

/// The quota actors of all tenants, and of their targets.
pub struct Quotas {
    tenants: Arc<TenantGauges>,
    quotas: Vec<Quota>,
    index: HashMap<String, usize>,
    /// Those that may grant something now.
    touched: Vec<usize>,
    /// All shards have said what they know. Before that a limit may still be on its way, or a pause, or runs that hold
    /// permits: nothing is granted.
    open: bool,
    /// None: the node is alone, and has all there is.
    borrower: Option<Borrower>,
    /// Tenants (their places in `quotas`) that have to ask their home shards for something.
    asking: Vec<usize>,
    /// Tenants (their places in `quotas`) with runs that wait until other runs end.
    lacking: HashSet<usize>,
    /// Tenants (their places in `quotas`) whose next run is one of a backfill.
    backs: BTreeSet<usize>,
    /// Runs that have a permit of a target.
    uses: HashMap<RunId, TargetUse>,
    /// Runs that wait at a target, and its place in `quotas`.
    parked: HashMap<RunId, usize>,
    /// Runs that a target (its place in `quotas`) has let go, and that wait in the order of their tenant.
    returned: HashMap<RunId, usize>,
    /// When permits were granted last, CLOCK_BOOTTIME ms.
    now_ms: i64,
}

impl Quotas {
    pub fn new(tenants: Arc<TenantGauges>, borrower: Option<Borrower>) -> Self {
        Self {
            tenants,
            quotas: Vec::new(),
            index: HashMap::new(),
            touched: Vec::new(),
            open: false,
            borrower,
            asking: Vec::new(),
            lacking: HashSet::new(),
            backs: BTreeSet::new(),
            uses: HashMap::new(),
            parked: HashMap::new(),
            returned: HashMap::new(),
            now_ms: 0,
        }
    }

    /// Runs wait for permits that others give back when they end.
    pub fn lacks_ends(&self) -> bool {
        !self.lacking.is_empty()
    }

    /// A run wants a permit. Returns it when it has one at once: its tenant has no limits.
    pub fn want(&mut self, run: Box<WaitingRun>) -> Option<Box<WaitingRun>> {
        let index = self.of(&run.tenant);
        let granting = self.open && !self.tenants.system_paused.load(Ordering::Relaxed);
        let quota = &mut self.quotas[index];
        if granting && run.target.is_none() && quota.lends_freely() && quota.waiting.is_empty() {
            quota.gauge.waiting.fetch_add(1, Ordering::Relaxed);
            quota.hold(run.run);
            return Some(run);
        }
        let id = run.run;
        quota.want(run);
        // It may have asked, and not said that it ended.
        self.release_target(id, UseEnd::Ended(Verdict::Silent));
        self.touch(index);
        None
    }

    /// The run was given up.
    pub fn dequeue(&mut self, tenant: &str, run: RunId) {
        let index = self.of(tenant);
        self.quotas[index].unwant(run);
        self.leave_target(run);
        self.release_target(run, UseEnd::NotStarted);
        self.give_back(index, run);
    }

    /// The run has a permit and could not be started because of a pause: it gives the permit back, and is the first to get one afterwards. Not in
    /// this turn: its tenant's pause may be on the way to here.
    pub fn again(&mut self, run: Box<WaitingRun>) {
        let index = self.of(&run.tenant);
        self.release_target(run.run, UseEnd::NotStarted);
        self.quotas[index].again(run);
    }

    /// The body ended or is given up.
    pub fn ended(&mut self, tenant: &str, run: RunId, verdict: Verdict) {
        let index = self.of(tenant);
        self.release_target(run, UseEnd::Ended(verdict));
        self.give_back(index, run);
    }

    /// After a restart: a body that runs already holds its permit, above the limit if need be.
    pub fn adopt(&mut self, tenant: &str, run: RunId, target: Option<&str>) {
        let index = self.of(tenant);
        self.quotas[index].hold(run);
        if let Some(target) = target {
            self.adopt_target(tenant, target, run);
        }
    }

    pub fn set(&mut self, limit: TenantRecord) {
        let index = self.of(&limit.tenant);
        let quota = &mut self.quotas[index];
        quota.gauge.set_limits(&limit);
        if self.borrower.is_none() {
            quota.permits.start_rate(limit.max_triggers_per_sec);
        }
        quota.limit = limit;
        quota.set_health();
        quota.known = true;
        quota.told_since_asked = true;
        if let Some(borrower) = &self.borrower {
            borrower.begin(quota);
        }
        self.touch(index);
    }

    pub fn pause(&mut self, tenant: &str, paused: bool) {
        let index = self.of(tenant);
        let quota = &mut self.quotas[index];
        quota.paused = paused;
        quota.gauge.paused.store(paused, Ordering::Relaxed);
        self.touch(index);
    }

    /// Rate permits may have come, or the system's pause is over. The first one opens: the node sends none before all shards are up.
    pub fn tick(&mut self) {
        self.open = true;
        for index in 0..self.quotas.len() {
            if self.quotas[index].has_waiting() {
                self.touch(index);
            }
        }
    }

    /// Gives the runs that have a permit now; `now_ms` is CLOCK_BOOTTIME.
    #[allow(clippy::vec_box)] // They stay boxed all the way.
    pub fn grant(&mut self, now_ms: i64) -> Vec<Box<WaitingRun>> {
        let mut granted = Vec::new();
        let granting = self.open && !self.tenants.system_paused.load(Ordering::Relaxed);
        self.now_ms = now_ms;
        // Runs that a target lets go touch their tenant.
        while !self.touched.is_empty() {
            let mut touched = std::mem::take(&mut self.touched);
            if !self.parked.is_empty() {
                // Targets first: a run that one lets go has its place in the order of its tenant.
                touched.sort_by_key(|index| self.quotas[*index].target.is_none());
            }
            for index in touched {
                let quota = &mut self.quotas[index];
                quota.touched = false;
                quota.refill(now_ms);
                if granting && quota.target.is_some() {
                    self.unpark(index);
                } else if granting {
                    self.grant_in_order(index, &mut granted, 0);
                }
                self.note(index);
            }
        }
        granted
    }

    #[allow(clippy::vec_box)] // They stay boxed all the way.
    fn grant_in_order(&mut self, index: usize, granted: &mut Vec<Box<WaitingRun>>, mut back: usize) {
        while let Some(place) = self.quotas[index].grant(granted, &mut back) {
            self.start_or_park(index, place, granted, &mut back);
        }
    }

    /// Whether runs of backfills wait, and no live run of their tenants does.
    pub fn has_back(&self) -> bool {
        !self.backs.is_empty()
    }

    /// Gives so many runs of backfills a permit, for which there are free slots. Who finds none gives it back ([`Self::found_no_slot`]).
    #[allow(clippy::vec_box)] // They stay boxed all the way.
    pub fn grant_back(&mut self, now_ms: i64, most: usize) -> Vec<Box<WaitingRun>> {
        let mut granted = Vec::new();
        if !self.open || self.tenants.system_paused.load(Ordering::Relaxed) {
            return granted;
        }
        self.now_ms = now_ms;
        for index in self.backs.clone() {
            let quota = &mut self.quotas[index];
            quota.refill(now_ms);
            let room = most.saturating_sub(granted.len());
            self.grant_in_order(index, &mut granted, room);
            self.note(index);
        }
        granted
    }

    /// A run of a backfill that has a permit has found no executor.
    pub fn found_no_slot(&mut self, run: Box<WaitingRun>) {
        let index = self.of(&run.tenant);
        self.release_target(run.run, UseEnd::NotStarted);
        self.quotas[index].found_no_slot(run);
        self.note(index);
    }

    /// A tenant's runs have come or gone.
    fn note(&mut self, index: usize) {
        if self.quotas[index].has_back_only() && self.quotas[index].target.is_none() {
            self.backs.insert(index);
        } else {
            self.backs.remove(&index);
        }
        self.note_lacking(index);
        self.note_asking(index);
    }

    /// Whether a run that waits here without a permit is of a backfill, and its priority.
    pub fn lane_of(&self, run: RunId) -> Option<(bool, u16)> {
        self.quotas.iter().find_map(|quota| quota.places.get(&run)).map(|place| (place.0, place.1.0))
    }

    /// Why a run has no permit; None = it does not wait here.
    pub fn why(&self, tenant: &str, run: RunId) -> Option<String> {
        let quota = &self.quotas[*self.index.get(tenant)?];
        let system_paused = self.tenants.system_paused.load(Ordering::Relaxed);
        let parked = if quota.paused || system_paused { None } else { self.why_parked(run) };
        let why = parked.or_else(|| quota.why(run, system_paused))?;
        let starting = || WaitCode::Starting.because("the node does not know yet which permits are in use");
        Some(if self.open { why } else { starting() })
    }

    fn of(&mut self, tenant: &str) -> usize {
        if let Some(index) = self.index.get(tenant) {
            return *index;
        }
        let target = target_of(tenant).map(|(tenant, _)| Box::new(TargetState::new(self.of(tenant))));
        let index = self.quotas.len();
        let shards = self.borrower.as_ref().map_or(1, |borrower| borrower.shards);
        let mut quota = Quota::new(tenant, self.tenants.gauge(tenant), shards, self.borrower.is_none());
        quota.target = target;
        self.quotas.push(quota);
        self.index.insert(tenant.to_owned(), index);
        index
    }

    fn give_back(&mut self, index: usize, run: RunId) {
        let quota = &mut self.quotas[index];
        quota.release(run);
        if quota.waiting.is_empty() {
            self.lacking.remove(&index);
        } else {
            self.touch(index);
        }
    }

    fn note_lacking(&mut self, index: usize) {
        if self.quotas[index].lacks_ends() {
            self.lacking.insert(index);
        } else {
            self.lacking.remove(&index);
        }
    }

    fn touch(&mut self, index: usize) {
        if !std::mem::replace(&mut self.quotas[index].touched, true) {
            self.touched.push(index);
        }
    }
}

#[cfg(test)]
mod target_tests;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::lending::{Counts, TenantShare};
    use campanile_core::job::Need;
    use campanile_schema::{
        ids::{JobId, SessionId},
        loan::Level,
    };

    const TENANT: &str = "t";

    fn waiting(run: u64, priority: u16) -> Box<WaitingRun> {
        Box::new(WaitingRun {
            run: RunId(run),
            job: JobId(1),
            tenant: TENANT.into(),
            pool: "p".into(),
            priority,
            backfill: false,
            need: Need::Command,
            cpu: 0.0,
            memory_mb: 0,
            storage_mb: 0,
            since_ms: 0,
            target: None,
            retry: false,
        })
    }

    fn limited(max_concurrent_runs: u32, max_triggers_per_sec: f64) -> TenantRecord {
        TenantRecord { tenant: TENANT.to_owned(), max_concurrent_runs, max_triggers_per_sec, ..TenantRecord::default() }
    }

    fn ids(runs: &[Box<WaitingRun>]) -> Vec<u64> {
        runs.iter().map(|w| w.run.0).collect()
    }

    #[test]
    fn nothing_is_lent_before_all_shards_are_up_and_then_by_priority() {
        let tenants = Arc::new(TenantGauges::default());
        let mut quotas = Quotas::new(tenants.clone(), None);
        assert!(quotas.want(waiting(1, 0)).is_none());
        assert!(quotas.want(waiting(2, 9)).is_none());
        assert!(quotas.grant(0).is_empty());
        assert!(quotas.why(TENANT, RunId(1)).is_some_and(|why| why.starts_with("STARTING")));
        quotas.tick();
        assert_eq!(ids(&quotas.grant(0)), [2, 1]);
        assert_eq!(quotas.why(TENANT, RunId(1)), None, "it does not wait here any more");
        assert_eq!(tenants.gauge(TENANT).running.load(Ordering::Relaxed), 2);
        // Without limits nobody waits for the next settling.
        assert_eq!(quotas.want(waiting(3, 0)).map(|w| w.run.0), Some(3));
    }

    #[test]
    fn a_limit_holds_also_over_adopted_runs_and_what_ends_makes_room() {
        let mut quotas = Quotas::new(Arc::default(), None);
        quotas.set(limited(2, 0.0));
        quotas.adopt(TENANT, RunId(1), None);
        quotas.adopt(TENANT, RunId(2), None);
        quotas.adopt(TENANT, RunId(3), None);
        quotas.tick();
        assert!(quotas.want(waiting(4, 0)).is_none());
        assert!(quotas.want(waiting(5, 0)).is_none());
        quotas.ended(TENANT, RunId(1), Verdict::Worked);
        assert!(quotas.grant(0).is_empty(), "above the limit: a debt comes first");
        quotas.ended(TENANT, RunId(2), Verdict::Worked);
        assert_eq!(ids(&quotas.grant(0)), [4]);
        assert!(quotas.why(TENANT, RunId(5)).is_some_and(|why| why.starts_with("TENANT_CONCURRENCY: 2 of 2")));
    }

    #[test]
    fn a_run_of_a_backfill_takes_a_permit_only_for_a_free_slot_and_gives_it_back_without_one() {
        let tenants = Arc::new(TenantGauges::default());
        let mut quotas = Quotas::new(tenants.clone(), None);
        quotas.set(limited(2, 2.0));
        quotas.tick();
        let back = |run| Box::new(WaitingRun { backfill: true, ..*waiting(run, 900) });
        assert!((1..=3).all(|run| quotas.want(back(run)).is_none()));
        assert!(quotas.grant(1_000_000).is_empty(), "there may be no slot");
        assert!(quotas.has_back());
        assert!(quotas.why(TENANT, RunId(1)).is_some_and(|why| why.starts_with("BACKFILL_YIELDS")));
        assert!(quotas.grant_back(1_000_000, 0).is_empty());
        let granted = quotas.grant_back(1_000_000, 2);
        assert_eq!(ids(&granted), [1, 2]);
        granted.into_iter().for_each(|run| quotas.found_no_slot(run));
        assert_eq!(tenants.gauge(TENANT).running.load(Ordering::Relaxed), 0);
        // A live run comes, and both permits and the rate are there for it.
        assert!(quotas.want(waiting(4, 0)).is_none());
        assert!(quotas.want(waiting(5, 0)).is_none());
        assert_eq!(ids(&quotas.grant(1_000_000)), [4, 5]);
        assert!(quotas.grant_back(1_000_000, 8).is_empty());
        quotas.ended(TENANT, RunId(4), Verdict::Worked);
        assert_eq!(ids(&quotas.grant_back(1_001_000, 8)), [3], "who found no slot waits behind the others");
    }

    #[test]
    fn runs_lack_ends_while_they_wait_for_permits_of_others_and_no_longer() {
        let mut quotas = Quotas::new(Arc::default(), None);
        quotas.set(limited(1, 0.0));
        quotas.tick();
        assert!(quotas.want(waiting(1, 0)).is_none());
        assert!(quotas.want(waiting(2, 0)).is_none());
        assert_eq!((ids(&quotas.grant(0)), quotas.lacks_ends()), (vec![1], true));
        quotas.pause(TENANT, true);
        quotas.grant(0);
        assert!(!quotas.lacks_ends(), "no end helps a tenant that is paused");
        quotas.pause(TENANT, false);
        quotas.grant(0);
        assert!(quotas.lacks_ends());
        quotas.dequeue(TENANT, RunId(2));
        assert!(!quotas.lacks_ends(), "it was given up");
        assert!(quotas.want(waiting(3, 0)).is_none());
        quotas.ended(TENANT, RunId(1), Verdict::Worked);
        assert_eq!((ids(&quotas.grant(0)), quotas.lacks_ends()), (vec![3], false));
        quotas.set(limited(0, 1.0));
        assert!(quotas.want(waiting(4, 0)).is_none());
        assert!(quotas.want(waiting(5, 0)).is_none());
        quotas.grant(0);
        assert!(!quotas.lacks_ends(), "a rate comes with time");
    }

    #[test]
    fn a_run_that_is_made_and_given_up_in_one_go_takes_no_permit() {
        let tenants = Arc::new(TenantGauges::default());
        let mut quotas = Quotas::new(tenants.clone(), None);
        quotas.set(limited(1, 0.0));
        quotas.tick();
        assert!(quotas.want(waiting(1, 0)).is_none());
        assert!(quotas.want(waiting(2, 0)).is_none());
        quotas.dequeue(TENANT, RunId(1));
        assert_eq!(ids(&quotas.grant(0)), [2]);
        // Given up first, wanted again later (a retry): it asks.
        quotas.dequeue(TENANT, RunId(2));
        assert!(quotas.want(waiting(2, 0)).is_none());
        assert_eq!(ids(&quotas.grant(0)), [2]);
        assert_eq!(tenants.gauge(TENANT).running.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn rate_permits_come_with_time_and_a_pause_keeps_them() {
        let mut quotas = Quotas::new(Arc::default(), None);
        quotas.set(limited(0, 2.0));
        quotas.tick();
        assert!((1..=5).all(|run| quotas.want(waiting(run, 0)).is_none()));
        assert_eq!(ids(&quotas.grant(1_000_000)), [1, 2]);
        quotas.tick();
        assert!(quotas.grant(1_000_100).is_empty());
        assert!(quotas.why(TENANT, RunId(3)).is_some_and(|why| why.starts_with("TENANT_RATE")));
        quotas.pause(TENANT, true);
        assert!(quotas.grant(1_000_600).is_empty());
        assert!(quotas.why(TENANT, RunId(3)).is_some_and(|why| why.starts_with("TENANT_PAUSED")));
        quotas.pause(TENANT, false);
        assert_eq!(ids(&quotas.grant(1_000_601)), [3]);
    }

    #[test]
    fn limits_that_were_deleted_do_not_hold_and_an_older_answer_changes_nothing() {
        let tenants = Arc::new(TenantGauges::default());
        let mut quotas = Quotas::new(tenants.clone(), Some(Borrower::new(SessionId(1), 16)));
        let most = || tenants.gauge(TENANT).max_jobs.load(Ordering::Relaxed);
        let limits = |max_jobs, version| TenantRecord {
            tenant: TENANT.to_owned(),
            max_jobs,
            version,
            ..TenantRecord::default()
        };
        let answer = |limits| TenantShare {
            tenant: TENANT.to_owned(),
            limits,
            level: Level::default(),
            share: 0,
            rate: 0.0,
            elsewhere: Counts::default(),
        };
        quotas.set(limits(7, 5));
        quotas.take_share(answer(None), 0);
        assert_eq!(most(), 7, "this was asked before they were set");
        assert!(!quotas.reports(true, 0, |_| true).is_empty());
        quotas.take_share(answer(None), 0);
        assert_eq!(most(), 0, "they were deleted, and the word of it was lost");
        quotas.set(limits(7, 5));
        quotas.reports(true, 1_000, |_| true);
        quotas.take_share(answer(Some(limits(3, 1))), 1_000);
        assert_eq!(most(), 3, "deleted and set anew: versions begin again");
    }
}
