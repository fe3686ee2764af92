//! Runs that have a permit and wait for an executor, in the order in which they get one: live runs before backfill,
//! then higher priority first. Within a priority tenants take turns, and of the next few the one with the least part of the
//! node's slots ([`super::share`]) goes first, so that neither many runs nor long bodies of one tenant delay the others.
//!
//! A low priority waits, but not for ever. When [`STARTS_BY_PRIORITY`] runs have started by priority, the next turn is that of the live
//! priority that has gone without a run for longest. So of `p` live priorities that wait, each gets one of
//! `(STARTS_BY_PRIORITY + 1) x (p - 1)` runs at least, as far as executors can take its runs. Runs of backfills have no such turn.

use super::{
    rules::{Rule, kept},
    share::Shares,
};
use crate::job::WaitingRun;
use campanile_schema::{ids::RunId, limits::STARTS_BY_PRIORITY};
use hashbrown::{HashMap, hash_map::Entry as Place};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Lane and priority.
type Rank = (bool, Reverse<u16>);

/// A run in its rank. It waits as long as the queue has the entry's number for it: a run that was given up may come again, perhaps changed,
/// before the turn of its first entry.
#[derive(Debug)]
struct Entry {
    number: u64,
    run: Box<WaitingRun>,
}

/// Tenants of one rank take turns; a turn is one run.
#[derive(Debug, Default)]
struct Turns {
    /// Those with a run.
    order: VecDeque<Arc<str>>,
    /// Number of the last run of this rank that left the queue.
    left: u64,
    runs: HashMap<Arc<str>, VecDeque<Entry>>,
}

/// Waiting runs of one class.
#[derive(Debug, Default)]
pub struct Queue {
    ranks: BTreeMap<Rank, Turns>,
    /// Runs that wait, and the number of the entry by which each of them does. The entry of a run that was given up stays in its rank until its
    /// turn comes.
    members: HashMap<RunId, u64>,
    /// Number of the last entry.
    entries: u64,
    /// Runs that have left the queue.
    left: u64,
    /// Runs that have started by priority since another one had its turn.
    by_priority: u32,
    /// Runs of a lower priority do not leave.
    least_priority: u16,
    /// Runs of backfills do not leave.
    no_backfills: bool,
    /// Those that were given up since the last sweep, at most so many of them are still in a rank.
    given_up: usize,
}

/// Tenants whose shares are compared for one turn.
const TENANTS_LOOKED_AT: usize = 8;
/// Ranks and tenants that keep their tables while nothing of theirs waits: runs come and go all the time.
const RANKS_KEPT: usize = 8;
const TENANTS_KEPT: usize = 1_024;
/// Runs that were given up and are kept beside as many as wait.
const GIVEN_UP_KEPT: usize = 1_024;

/// Which runs go before it.
fn rank(run: &WaitingRun) -> Rank {
    let backfill = run.backfill && kept(Rule::LiveFirst);
    (backfill, Reverse(if kept(Rule::PriorityFirst) { run.priority } else { 0 }))
}

/// Whether runs of the rank leave, if only those of so much priority do.
fn leaves_by(rank: &Rank, (least, no_backfills): (u16, bool)) -> bool {
    (rank.1.0 >= least || !kept(Rule::LowPriorityWaits)) && !(rank.0 && no_backfills)
}

/// Takes a run out of the members if it is this entry by which it waits.
fn leaves(members: &mut HashMap<RunId, u64>, entry: &Entry) -> bool {
    match members.remove(&entry.run.run) {
        Some(number) if number == entry.number || !kept(Rule::NewestEntryCounts) => true,
        Some(newer) => {
            members.insert(entry.run.run, newer);
            false
        }
        None => false,
    }
}

/// The tenant of a rank whose turn it is. Those that were looked at and have more go behind the others, if there are others.
fn next_tenant(order: &mut VecDeque<Arc<str>>, shares: &Shares) -> Option<Arc<str>> {
    let looked_at = order.len().min(TENANTS_LOOKED_AT);
    if looked_at < 2 || !kept(Rule::SlotsAreShared) {
        return order.pop_front();
    }
    let share = |at: &usize| shares.of(&order[*at]);
    let least = (0..looked_at).min_by(|one, other| share(one).total_cmp(&share(other)))?;
    let tenant = order.remove(least);
    if order.len() >= looked_at {
        order.rotate_left(looked_at - 1);
    }
    tenant
}

/// The next run of a rank, which gets this number of those that have left.
fn next_of(
    turns: &mut Turns,
    members: &mut HashMap<RunId, u64>,
    shares: &Shares,
    left: u64,
) -> Option<Box<WaitingRun>> {
    while let Some(tenant) = next_tenant(&mut turns.order, shares) {
        let Some(runs) = turns.runs.get_mut(&tenant) else { continue };
        let next = runs.pop_front();
        if !runs.is_empty() {
            if kept(Rule::TenantsTakeTurns) {
                turns.order.push_back(tenant);
            } else {
                turns.order.push_front(tenant);
            }
        } else if turns.runs.len() > TENANTS_KEPT {
            turns.runs.remove(&tenant);
        }
        match next {
            Some(entry) if leaves(members, &entry) || !kept(Rule::GivenUpStaysOut) => {
                turns.left = left;
                return Some(entry.run);
            }
            // Given up meanwhile.
            Some(_) | None => {}
        }
    }
    None
}

impl Queue {
    pub fn len(&self) -> usize {
        self.members.len()
    }
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
    pub fn contains(&self, run: RunId) -> bool {
        self.members.contains_key(&run)
    }

    /// False when it waits already.
    pub fn push(&mut self, run: Box<WaitingRun>) -> bool {
        let Place::Vacant(place) = self.members.entry(run.run) else { return false };
        self.entries += 1;
        let entry = Entry { number: *place.insert(self.entries), run };
        let (turns, tenant) = self.turns(&entry.run);
        let runs = turns.runs.entry(tenant.clone()).or_default();
        if runs.is_empty() {
            turns.order.push_back(tenant);
        }
        if kept(Rule::FirstComeFirst) {
            runs.push_back(entry);
        } else {
            runs.push_front(entry);
        }
        true
    }

    /// Gives back a run that found no executor for the moment: it is the first of its tenant again.
    pub fn give_back(&mut self, run: Box<WaitingRun>) {
        self.entries += 1;
        self.members.insert(run.run, self.entries);
        let entry = Entry { number: self.entries, run };
        let (turns, tenant) = self.turns(&entry.run);
        let runs = turns.runs.entry(tenant.clone()).or_default();
        if runs.is_empty() {
            turns.order.push_front(tenant);
        }
        runs.push_front(entry);
    }

    /// A run's rank, and its tenant there.
    fn turns(&mut self, run: &WaitingRun) -> (&mut Turns, Arc<str>) {
        let turns = self.ranks.entry(rank(run)).or_default();
        let known = turns.runs.get_key_value(run.tenant.as_str()).map(|(tenant, _)| tenant.clone());
        (turns, known.unwrap_or_else(|| run.tenant.as_str().into()))
    }

    pub fn pop(&mut self, shares: &Shares) -> Option<Box<WaitingRun>> {
        if self.ranks.len() > RANKS_KEPT {
            self.ranks.retain(|_, turns| !turns.order.is_empty());
        }
        let least = (self.least_priority, self.no_backfills);
        let mut ranks = self.ranks.iter_mut().filter(|(rank, _)| leaves_by(rank, least)).map(|(_, turns)| turns);
        let run = ranks.find_map(|turns| next_of(turns, &mut self.members, shares, self.left + 1));
        self.left += u64::from(run.is_some());
        run
    }

    /// Runs of a lower priority than this do not leave from now on.
    pub fn hold_below(&mut self, priority: u16) {
        self.least_priority = priority;
    }
    /// Whether runs of backfills do not leave from now on.
    pub fn hold_backfills(&mut self, hold: bool) {
        self.no_backfills = hold;
    }

    /// Whether a run that waits is of a backfill, and its priority. It looks through all of them.
    pub fn lane_of(&self, run: RunId) -> Option<(bool, u16)> {
        let number = self.members.get(&run)?;
        let mut entries = self.ranks.values().flat_map(|turns| turns.runs.values()).flatten();
        entries.find(|entry| entry.number == *number).map(|entry| (entry.run.backfill, entry.run.priority))
    }

    /// Whether runs of several tenants of one rank wait.
    pub fn has_several_tenants(&self) -> bool {
        self.ranks.values().any(|turns| turns.order.len() > 1)
    }

    /// Whether the next turn is not that of the highest priority.
    pub fn is_turn_of_aged(&self) -> bool {
        let lanes = |back: &bool| !back || !kept(Rule::BackLaneDoesNotAge);
        let waits = |(rank, turns): &(&Rank, &Turns)| {
            lanes(&rank.0) && leaves_by(rank, (self.least_priority, self.no_backfills)) && !turns.order.is_empty()
        };
        self.by_priority >= STARTS_BY_PRIORITY
            && self.ranks.len() > 1
            && self.ranks.iter().filter(waits).count() > 1
            && kept(Rule::LowPriorityAges)
    }

    /// The next run of the live priority that has gone without for longest.
    pub fn pop_aged(&mut self, shares: &Shares) -> Option<Box<WaitingRun>> {
        let least = (self.least_priority, self.no_backfills);
        let ages = |rank: &Rank| leaves_by(rank, least) && (!rank.0 || !kept(Rule::BackLaneDoesNotAge));
        let live = self.ranks.iter_mut().filter(|(rank, _)| ages(rank));
        let waiting = live.map(|(_, turns)| turns).filter(|turns| !turns.order.is_empty());
        let run = next_of(waiting.min_by_key(|turns| turns.left)?, &mut self.members, shares, self.left + 1);
        self.left += u64::from(run.is_some());
        run
    }

    /// A run that has left starts; `aged`: see [`Self::pop_aged`].
    pub fn started(&mut self, aged: bool) {
        self.by_priority = if aged { 0 } else { self.by_priority.saturating_add(1) };
    }

    /// Only these runs stay; `gone` hears the tenant of each other one.
    pub fn retain(&mut self, stays: impl Fn(RunId) -> bool, mut gone: impl FnMut(&str)) {
        for turns in self.ranks.values_mut() {
            for (tenant, runs) in &mut turns.runs {
                runs.retain(|entry| {
                    let stay = stays(entry.run.run);
                    if !stay && leaves(&mut self.members, entry) {
                        gone(tenant);
                    }
                    stay
                });
            }
            turns.runs.retain(|_, runs| !runs.is_empty());
            turns.order.retain(|tenant| turns.runs.contains_key(tenant));
        }
    }

    /// Takes all runs of a tenant out.
    #[allow(clippy::vec_box)] // They stay boxed all the way.
    pub fn take(&mut self, tenant: &str) -> Vec<Box<WaitingRun>> {
        let mut taken = Vec::new();
        for turns in self.ranks.values_mut() {
            let Some(runs) = turns.runs.remove(tenant) else { continue };
            turns.order.retain(|other| **other != *tenant);
            let waiting = runs.into_iter().filter(|entry| leaves(&mut self.members, entry));
            taken.extend(waiting.map(|entry| entry.run));
        }
        taken
    }

    /// True when it waited here.
    pub fn remove(&mut self, run: RunId) -> bool {
        let waited = self.members.remove(&run).is_some();
        if waited {
            self.given_up += 1;
            // Who is given up stays until its turn comes, which it may never do without executors. So now and then all of them go: never more
            // are kept than wait, and each costs about one look.
            if self.given_up > self.members.len() + GIVEN_UP_KEPT {
                self.sweep();
            }
        }
        waited
    }

    fn sweep(&mut self) {
        let members = &self.members;
        self.ranks.retain(|_, turns| {
            turns.runs.retain(|_, runs| {
                runs.retain(|entry| members.get(&entry.run.run) == Some(&entry.number));
                !runs.is_empty()
            });
            turns.order.retain(|tenant| turns.runs.contains_key(tenant));
            !turns.order.is_empty()
        });
        self.given_up = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Need;
    use campanile_schema::ids::JobId;

    fn run(id: u64, tenant: &str, priority: u16, backfill: bool) -> Box<WaitingRun> {
        Box::new(WaitingRun {
            run: RunId(id),
            job: JobId(id),
            tenant: tenant.into(),
            pool: "default".into(),
            priority,
            backfill,
            need: Need::Command,
            cpu: 0.0,
            memory_mb: 0,
            storage_mb: 0,
            since_ms: 0,
            target: None,
            retry: false,
        })
    }

    #[test]
    fn live_first_then_priority_then_turns_of_tenants() {
        let mut queue = Queue::default();
        for id in 0..5 {
            queue.push(run(id, "loud", 100, false));
        }
        queue.push(run(10, "quiet", 100, false));
        queue.push(run(11, "quiet", 500, false));
        queue.push(run(12, "quiet", 900, true));
        assert!(!queue.push(run(12, "quiet", 900, true)), "a run waits once");
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop(&Shares::default())).map(|w| w.run.0).collect();
        assert_eq!(order, [11, 0, 10, 1, 2, 3, 4, 12]);
    }

    #[test]
    fn runs_that_are_given_up_take_no_room_although_nobody_takes_runs() {
        let mut queue = Queue::default();
        queue.push(run(0, "patient", 100, false));
        for id in 1..50_000 {
            // As REPLACE does it: the one before is given up when the next one comes.
            queue.push(run(id, &format!("t{}", id % 5_000), (id % 500) as u16, false));
            if id > 1 {
                assert!(queue.remove(RunId(id - 1)));
            }
        }
        let kept: usize = queue.ranks.values().flat_map(|turns| turns.runs.values()).map(VecDeque::len).sum();
        assert_eq!(queue.len(), 2);
        assert!(kept <= 2 * GIVEN_UP_KEPT, "{kept} are kept for 2 that wait");
        assert!(queue.ranks.len() <= 2 * GIVEN_UP_KEPT);
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop(&Shares::default())).map(|w| w.run.0).collect();
        assert_eq!(order.len(), 2);
        assert!(order.contains(&0) && order.contains(&49_999));
    }

    #[test]
    fn a_paused_tenants_runs_are_taken_out_and_nobody_elses() {
        let mut queue = Queue::default();
        for id in 0..6 {
            queue.push(run(id, if id % 2 == 0 { "paused" } else { "other" }, 100 + id as u16, false));
        }
        queue.remove(RunId(2));
        let mut taken: Vec<u64> = queue.take("paused").iter().map(|run| run.run.0).collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 4]);
        assert_eq!(queue.len(), 3);
        assert!(queue.push(run(4, "paused", 104, false)), "it may come back");
        let order: Vec<u64> = std::iter::from_fn(|| queue.pop(&Shares::default())).map(|w| w.run.0).collect();
        assert_eq!(order, [5, 4, 3, 1]);
    }

    #[test]
    fn a_run_that_comes_again_changed_waits_by_its_new_form() {
        let mut queue = Queue::default();
        queue.push(run(1, "t", 100, false));
        queue.push(run(2, "t", 100, false));
        queue.remove(RunId(1));
        assert!(queue.push(run(1, "t", 50, false)));
        assert_eq!(queue.len(), 2);
        let order: Vec<(u64, u16)> =
            std::iter::from_fn(|| queue.pop(&Shares::default())).map(|w| (w.run.0, w.priority)).collect();
        assert_eq!(order, [(2, 100), (1, 50)]);
    }

    #[test]
    fn a_dequeued_run_is_not_given_out_and_may_come_back() {
        let mut queue = Queue::default();
        queue.push(run(1, "t", 100, false));
        queue.push(run(2, "t", 100, false));
        assert!(queue.remove(RunId(1)));
        assert!(!queue.remove(RunId(1)));
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.pop(&Shares::default()).map(|w| w.run.0), Some(2));
        assert!(queue.pop(&Shares::default()).is_none());
    }
}
