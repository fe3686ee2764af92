//! Which waiting run goes to which executor.
//!
//! Runs come here when they have a permit of their tenant ([`permit`]). They wait in a queue of their pool and kind ([`queue`]), and
//! [`Dispatch::round`] takes them out in their order and gives each to the best ([`score`]) of those executors that have credit and may
//! take it ([`filter`]). A run is in one of four places:
//!
//! - *queued*: somebody may take it, who has no credit or no room now;
//! - *misfit*: nobody who is registered could ever take it; it is queued again when executors change;
//! - *bound*: it was given to an executor, and the attempt is not durable yet;
//! - not here: its attempt is durable, or it was given up.
//!
//! Invariants: no executor gets more than its credit, its slots and its resources allow; live runs go before backfill, higher
//! priority goes first but for the turns of the others ([`queue`]), tenants of a priority take turns, and runs of a tenant keep their order; a run that nobody can take at the moment
//! holds up only a limited number of others. `tests/dispatch.rs` compares all of it with a simple implementation.
//!
//! It never reads a clock, and sends nothing: the pool actor (`actors/src/pool`) has the sessions, tells when, and carries out.

pub mod executor;
pub mod filter;
pub mod permit;
pub mod queue;
pub mod rules;
pub mod score;
pub mod share;
pub mod target;

pub use executor::{Executor, Holding, Seat};
pub use queue::Queue;

use crate::job::WaitingRun;
use campanile_schema::{
    ids::{ExecutorSession, RunId},
    kinds::ActionKind,
    limits::AGED_LOOKS,
    text::Text,
};
use hashbrown::HashMap;
use rules::{Rule, kept};
use share::Shares;

/// Runs passed over in one round of a class because who could run them has no credit or no room: bounds a round's cost.
const PASSED_OVER_PER_ROUND: usize = 64;

/// Runs that wait together. Kinds of a pool wait apart: executors of one kind must not be blocked by runs of another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    pub pool: Text,
    pub kind: ActionKind,
}

impl Class {
    pub fn of(run: &WaitingRun) -> Self {
        Self { pool: run.pool.clone(), kind: run.need.kind() }
    }
}

/// A run and the executor that gets it.
pub type Match = (ExecutorSession, Box<WaitingRun>);

/// Where a run is, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Whereabouts<'a> {
    /// Among so many of its class.
    Queued {
        kind: ActionKind,
        among: usize,
    },
    Misfit(&'a WaitingRun),
    Bound,
}

/// Runs that have a permit and no attempt yet.
#[derive(Debug, Default)]
pub struct Dispatch {
    queues: HashMap<Class, Queue>,
    misfits: HashMap<RunId, Box<WaitingRun>>,
    bound: HashMap<RunId, Box<WaitingRun>>,
    /// Of all time.
    matches: u64,
    shares: Shares,
    /// Runs of a lower priority stay where they are.
    least_priority: u16,
    no_backfills: bool,
}

impl Dispatch {
    /// A run that is here already stays where it is.
    pub fn enqueue(&mut self, run: Box<WaitingRun>) {
        if self.bound.contains_key(&run.run) || self.misfits.contains_key(&run.run) {
            return;
        }
        self.queues.entry(Class::of(&run)).or_default().push(run);
    }

    /// The run is given up. False: it did not wait here.
    pub fn dequeue(&mut self, run: RunId, pool: &str) -> bool {
        let queued = ActionKind::ALL.iter().any(|kind| {
            let class = Class { pool: pool.into(), kind: *kind };
            self.queues.get_mut(&class).is_some_and(|queue| queue.remove(run))
        });
        self.misfits.remove(&run).is_some() || queued
    }

    /// Takes all runs of a tenant out that wait.
    #[allow(clippy::vec_box)] // They stay boxed all the way.
    pub fn take(&mut self, tenant: &str) -> Vec<Box<WaitingRun>> {
        let mut taken: Vec<Box<WaitingRun>> = self.queues.values_mut().flat_map(|queue| queue.take(tenant)).collect();
        taken.extend(self.misfits.extract_if(|_, run| run.tenant == *tenant).map(|(_, run)| run));
        taken
    }

    /// Only these runs stay; `gone` hears the tenant of each other one that waited.
    pub fn retain(&mut self, stays: impl Fn(RunId) -> bool, mut gone: impl FnMut(&str)) {
        for queue in self.queues.values_mut() {
            queue.retain(&stays, &mut gone);
        }
        self.misfits.retain(|run, waiting| {
            let stay = stays(*run);
            if !stay {
                gone(&waiting.tenant);
            }
            stay
        });
        self.bound.retain(|run, _| stays(*run));
    }

    /// Executors changed: misfits may fit now.
    pub fn retry_misfits(&mut self) {
        let mut runs: Vec<Box<WaitingRun>> = std::mem::take(&mut self.misfits).into_values().collect();
        // As they came.
        runs.sort_unstable_by_key(|run| (run.since_ms, run.run));
        runs.into_iter().for_each(|run| self.enqueue(run));
    }

    /// A match is carried out: until its attempt is durable the run is bound.
    pub fn bind(&mut self, run: Box<WaitingRun>) {
        self.bound.insert(run.run, run);
    }

    pub fn is_bound(&self, run: RunId) -> bool {
        self.bound.contains_key(&run)
    }

    /// The attempt is durable, or there is none.
    pub fn unbind(&mut self, run: RunId) -> Option<Box<WaitingRun>> {
        self.bound.remove(&run)
    }

    /// Whether runs are queued.
    pub fn is_starved(&self) -> bool {
        self.queues.values().any(|queue| !queue.is_empty())
    }

    /// Classes with runs that are queued.
    pub fn starved(&self) -> impl Iterator<Item = &Class> {
        self.queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(class, _)| class)
    }

    /// Runs that wait, by pool; a pool may come several times.
    pub fn waiting(&self) -> impl Iterator<Item = (&str, usize)> {
        let queued = self.queues.iter().map(|(class, queue)| (class.pool.as_str(), queue.len()));
        queued.chain(self.misfits.values().map(|run| (run.pool.as_str(), 1)))
    }

    /// Whether the run waits, in whichever pool.
    pub fn waits(&self, run: RunId) -> bool {
        self.misfits.contains_key(&run) || self.queues.values().any(|queue| queue.contains(run))
    }

    /// Where a run of the pool is; None: not here.
    pub fn find(&self, run: RunId, pool: &str) -> Option<Whereabouts<'_>> {
        if let Some(waiting) = self.misfits.get(&run) {
            return Some(Whereabouts::Misfit(waiting));
        }
        if self.bound.contains_key(&run) {
            return Some(Whereabouts::Bound);
        }
        ActionKind::ALL.iter().find_map(|kind| {
            let queue = self.queues.get(&Class { pool: pool.into(), kind: *kind })?;
            queue.contains(run).then(|| Whereabouts::Queued { kind: *kind, among: queue.len() })
        })
    }

    /// Runs of a lower priority than this are not matched from now on.
    pub fn hold_below(&mut self, priority: u16) {
        self.least_priority = priority;
    }
    /// Whether runs of backfills are not matched from now on.
    pub fn hold_backfills(&mut self, hold: bool) {
        self.no_backfills = hold;
    }

    /// Whether a run that is queued is of a backfill, and its priority.
    pub fn lane_of(&self, run: RunId) -> Option<(bool, u16)> {
        self.queues.values().find_map(|queue| queue.lane_of(run))
    }

    /// Gives runs that are queued to executors, as many as these may take. The order of the seats changes; of equal executors the first gets
    /// a run; `now_ms`: CLOCK_BOOTTIME. The caller carries each match out, and calls [`Self::bind`] for it, before the next round.
    pub fn round(&mut self, seats: &mut [Seat<'_>], matched: &mut Vec<Match>, now_ms: i64) {
        let places = permit::places(self.bound.len());
        self.shares.count(self.queues.values().any(Queue::has_several_tenants), seats, now_ms);
        for (class, queue) in self.queues.iter_mut().filter(|(_, queue)| !queue.is_empty()) {
            let of_class = partition(seats, |seat| filter::serves(seat.executor, class));
            let counts = (&mut self.matches, &mut self.shares);
            queue.hold_below(self.least_priority);
            queue.hold_backfills(self.no_backfills);
            let misfits = round_of(queue, &mut seats[..of_class], places, counts, matched);
            self.misfits.extend(misfits.into_iter().map(|run| (run.run, run)));
        }
    }
}

/// One class's part of a round. Gives runs that none of the seats could ever take.
#[allow(clippy::vec_box)] // They stay boxed all the way.
fn round_of(
    queue: &mut Queue,
    seats: &mut [Seat<'_>],
    places: usize,
    (matches, shares): (&mut u64, &mut Shares),
    matched: &mut Vec<Match>,
) -> Vec<Box<WaitingRun>> {
    let (mut misfits, mut passed_over) = (Vec::new(), Vec::new());
    let most_passed_over = if kept(Rule::PassedOverIsLimited) { PASSED_OVER_PER_ROUND } else { usize::MAX };
    // Those that may get runs stand before the others.
    let mut ready = partition(seats, |seat| seat.left > 0);
    let mut looks = 0;
    while ready > 0 && passed_over.len() < most_passed_over && matched.len() < places {
        let is_turn = looks < AGED_LOOKS && queue.is_turn_of_aged();
        looks += usize::from(is_turn);
        let aged = if is_turn { queue.pop_aged(shares) } else { None };
        let is_aged = aged.is_some();
        let Some(run) = aged.or_else(|| queue.pop(shares)) else { break };
        if let Some(index) = score::best(&seats[..ready], &run) {
            let seat = &mut seats[index];
            *matches += 1;
            seat.take(&run, *matches);
            shares.took(&run);
            matched.push((seat.session, run));
            queue.started(is_aged);
            if seat.left == 0 {
                ready -= 1;
                seats.swap(index, ready);
            }
        } else if seats.iter().any(|seat| filter::can_run(seat.executor, &run)) {
            // Somebody can, but has no credit or no room now.
            passed_over.push(run);
        } else {
            misfits.push(run);
        }
    }
    if !kept(Rule::GivenBackInOrder) {
        passed_over.reverse();
    }
    for run in passed_over.into_iter().rev() {
        queue.give_back(run);
    }
    misfits
}

/// Puts those that have the property before the others; gives their number.
fn partition<'a>(seats: &mut [Seat<'a>], has: impl Fn(&Seat<'a>) -> bool) -> usize {
    let mut found = 0;
    for index in 0..seats.len() {
        if has(&seats[index]) {
            seats.swap(found, index);
            found += 1;
        }
    }
    found
}
