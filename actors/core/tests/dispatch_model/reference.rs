//! The simple implementation: lists that are searched from their beginning.

use super::{Violation, ViolationKind};
use campanile_core::{
    dispatch::Class,
    job::{Need, WaitingRun},
};
use campanile_schema::{
    ids::{ExecutorSession, RunId},
    kinds::ActionKind,
    limits::{BINDS_IN_FLIGHT, CREDIT_MS},
    rpc::executor::Register,
};
use std::{cmp::Reverse, collections::BTreeMap};

/// Runs of one class that a round passes over.
const PASSED_OVER: usize = 64;
/// Runs that start by priority before another one has its turn, and runs at which a round looks for such a turn.
const BY_PRIORITY: usize = 16;
const LOOKS: usize = 8;
/// For so long a count of slots is used, ms.
const COUNT_MS: i64 = 100;
/// Loads and resources are sums of few decimal fractions.
const SLACK: f64 = 1e-9;

/// An executor.
pub struct Pump {
    pub session: ExecutorSession,
    pub connected: bool,
    pub register: Register,
    pub credit: u32,
    pub load: f32,
    pub given_ms: i64,
    /// Runs that it got on its credit and that were not refused.
    pub used: u32,
    pub running: Vec<WaitingRun>,
    pub last_match: u64,
}

impl Pump {
    pub fn left(&self, now_ms: i64) -> u32 {
        if !self.connected || now_ms - self.given_ms > CREDIT_MS {
            return 0;
        }
        let free = self.register.slots.saturating_sub(self.running.len() as u32);
        self.credit.saturating_sub(self.used).min(free)
    }

    fn serves(&self, class: &Class) -> bool {
        let kind = match class.kind {
            ActionKind::Handler => self.register.any_handler || !self.register.handlers.is_empty(),
            kind @ (ActionKind::Command | ActionKind::Http) => self.register.kinds.has(kind),
        };
        kind && self.register.pools.iter().any(|pool| *pool == *class.pool)
    }

    fn has_handler(&self, run: &WaitingRun) -> bool {
        match &run.need {
            Need::Handler(name) => self.register.any_handler || self.register.handlers.iter().any(|own| own == name),
            Need::Command | Need::Http => true,
        }
    }

    /// Whether its limits, with what it runs already, allow the run.
    fn has_room(&self, run: &WaitingRun, running: &[WaitingRun]) -> bool {
        let fits = |limit: f64, of: fn(&WaitingRun) -> f64| {
            limit == 0.0 || running.iter().map(of).sum::<f64>() + of(run) <= limit + SLACK
        };
        fits(self.register.cpu, |run| run.cpu)
            && fits(self.register.memory_mb as f64, |run| run.memory_mb as f64)
            && fits(self.register.storage_mb as f64, |run| run.storage_mb as f64)
    }

    fn could_run(&self, run: &WaitingRun) -> bool {
        self.has_handler(run) && self.has_room(run, &[])
    }

    fn load(&self) -> f64 {
        self.running.len() as f64 / f64::from(self.register.slots) + f64::from(self.load)
    }

    /// What no match may do, whatever else was to be matched.
    fn may_take(&self, run: &WaitingRun, now_ms: i64) -> Result<(), Violation> {
        let found = |kind| Err(Violation::of(kind, format!("{:?} got {run:?}", self.register)));
        if !self.serves(&Class::of(run)) || !self.has_handler(run) {
            return found(ViolationKind::Unfit);
        }
        if !self.has_room(run, &self.running) {
            return found(ViolationKind::Room);
        }
        if self.left(now_ms) == 0 {
            return found(ViolationKind::Credit);
        }
        Ok(())
    }

    pub fn release(&mut self, run: RunId) {
        self.running.retain(|held| held.run != run);
    }
}

/// A run in a queue. One that is given up keeps its turn.
struct Entry {
    run: WaitingRun,
    given_up: bool,
}

/// Tenants of one rank in the order of their turns; those without a run are not among them.
struct Rank {
    key: (bool, Reverse<u16>),
    /// When the last of its runs left.
    left: usize,
    tenants: Vec<(String, Vec<Entry>)>,
}

/// The runs of one class.
struct Line {
    class: Class,
    ranks: Vec<Rank>,
    /// Runs that have left, and whether each that has started did so for its age.
    left: usize,
    started: Vec<bool>,
    least_priority: u16,
}

impl Line {
    fn rank(&mut self, run: &WaitingRun) -> &mut Rank {
        let key = (run.backfill, Reverse(run.priority));
        if !self.ranks.iter().any(|rank| rank.key == key) {
            self.ranks.push(Rank { key, left: 0, tenants: Vec::new() });
            self.ranks.sort_by_key(|rank| rank.key);
        }
        self.ranks.iter_mut().find(|rank| rank.key == key).unwrap()
    }

    fn push(&mut self, run: WaitingRun) {
        let entry = Entry { run: run.clone(), given_up: false };
        let rank = self.rank(&run);
        match rank.tenants.iter_mut().find(|(tenant, _)| *tenant == *run.tenant) {
            Some((_, runs)) => runs.push(entry),
            None => rank.tenants.push((run.tenant.to_string(), vec![entry])),
        }
    }

    fn give_back(&mut self, run: WaitingRun) {
        let entry = Entry { run: run.clone(), given_up: false };
        let rank = self.rank(&run);
        match rank.tenants.iter_mut().find(|(tenant, _)| *tenant == *run.tenant) {
            Some((_, runs)) => runs.insert(0, entry),
            None => rank.tenants.insert(0, (run.tenant.to_string(), vec![entry])),
        }
    }

    /// Whether the last so many that started all went by priority, and live runs of several priorities are in line.
    fn is_turn_of_aged(&self) -> bool {
        let by_priority = self.started.iter().rev().take_while(|aged| !**aged).count();
        let leaves = |rank: &&Rank| !rank.key.0 && rank.key.1.0 >= self.least_priority && !rank.tenants.is_empty();
        let live = self.ranks.iter().filter(leaves).count();
        by_priority >= BY_PRIORITY && live > 1
    }

    fn pop_aged(&mut self, parts: &Parts) -> Option<WaitingRun> {
        let leaves = |rank: &&Rank| !rank.key.0 && rank.key.1.0 >= self.least_priority && !rank.tenants.is_empty();
        let live = self.ranks.iter().filter(leaves);
        let key = live.min_by_key(|rank| rank.left).map(|rank| rank.key)?;
        self.pop_of(parts, |rank| rank.key == key)
    }

    fn pop(&mut self, parts: &Parts) -> Option<WaitingRun> {
        self.pop_of(parts, |_| true)
    }

    fn pop_of(&mut self, parts: &Parts, chosen: impl Fn(&Rank) -> bool) -> Option<WaitingRun> {
        let least = self.least_priority;
        for rank in self.ranks.iter_mut().filter(|rank| rank.key.1.0 >= least && chosen(rank)) {
            while !rank.tenants.is_empty() {
                // The first of those with the least part.
                let of = |at: &usize| parts.of(&rank.tenants[*at].0);
                let next = (0..rank.tenants.len()).min_by(|a, b| of(a).total_cmp(&of(b))).unwrap();
                let (tenant, mut runs) = rank.tenants.remove(next);
                let first = runs.remove(0);
                if !runs.is_empty() {
                    rank.tenants.push((tenant, runs));
                }
                if !first.given_up {
                    self.left += 1;
                    rank.left = self.left;
                    return Some(first.run);
                }
            }
        }
        None
    }

    fn entries(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.ranks.iter_mut().flat_map(|rank| &mut rank.tenants).flat_map(|(_, runs)| runs)
    }

    fn waiting(&self) -> impl Iterator<Item = &WaitingRun> {
        let entries = self.ranks.iter().flat_map(|rank| &rank.tenants).flat_map(|(_, runs)| runs);
        entries.filter(|entry| !entry.given_up).map(|entry| &entry.run)
    }

    /// Takes out those that are chosen, given up or not, and gives those that waited.
    fn take(&mut self, chosen: impl Fn(&WaitingRun) -> bool) -> Vec<WaitingRun> {
        let taken = self.waiting().filter(|run| chosen(run)).cloned().collect();
        for rank in &mut self.ranks {
            for (_, runs) in &mut rank.tenants {
                runs.retain(|entry| !chosen(&entry.run));
            }
            rank.tenants.retain(|(_, runs)| !runs.is_empty());
        }
        taken
    }
}

/// Where a run is.
#[derive(Debug, PartialEq)]
pub enum Spot<'a> {
    Queued(ActionKind, usize),
    Misfit(&'a WaitingRun),
    Bound,
}

/// The slots in use by tenant and pool, counted now and then while tenants compete.
#[derive(Default)]
struct Parts {
    counted_ms: Option<i64>,
    used: Vec<(String, String)>,
    slots: Vec<(String, u32)>,
}

impl Parts {
    fn count(&mut self, needed: bool, pumps: &[Pump], now_ms: i64) {
        if !needed {
            *self = Self::default();
        } else if self.counted_ms.is_none_or(|counted| now_ms - counted >= COUNT_MS) {
            let of = |run: &WaitingRun| (run.tenant.to_string(), run.pool.to_string());
            self.counted_ms = Some(now_ms);
            self.used = pumps.iter().flat_map(|pump| &pump.running).map(of).collect();
            let pools = |pump: &Pump| {
                pump.register.pools.clone().into_iter().map(|pool| (pool, pump.register.slots)).collect::<Vec<_>>()
            };
            self.slots = pumps.iter().flat_map(pools).collect();
        }
    }

    /// The largest part that the tenant has of a pool.
    fn of(&self, tenant: &str) -> f64 {
        let part = |pool: &str| {
            let used = self.used.iter().filter(|(of, in_pool)| of == tenant && in_pool == pool).count();
            let slots: u32 = self.slots.iter().filter(|(of, _)| of == pool).map(|(_, slots)| slots).sum();
            used as f64 / f64::from(slots.max(1))
        };
        self.used.iter().filter(|(of, _)| of == tenant).map(|(_, pool)| part(pool)).fold(0.0, f64::max)
    }
}

#[derive(Default)]
pub struct Reference {
    /// Runs of a lower priority wait.
    pub least_priority: u16,
    parts: Parts,
    lines: Vec<Line>,
    pub misfits: Vec<WaitingRun>,
    pub bound: Vec<WaitingRun>,
    matches: u64,
}

impl Reference {
    fn line(&mut self, class: &Class) -> &mut Line {
        if !self.lines.iter().any(|line| line.class == *class) {
            self.lines.push(Line {
                class: class.clone(),
                ranks: Vec::new(),
                left: 0,
                started: Vec::new(),
                least_priority: 0,
            });
        }
        self.lines.iter_mut().find(|line| line.class == *class).unwrap()
    }

    pub fn enqueue(&mut self, run: WaitingRun) {
        let known = [&self.bound, &self.misfits].iter().any(|runs| runs.iter().any(|other| other.run == run.run));
        let line = self.line(&Class::of(&run));
        if !known && !line.waiting().any(|other| other.run == run.run) {
            line.push(run);
        }
    }

    pub fn dequeue(&mut self, run: RunId, pool: &str) -> bool {
        let before = self.waiting();
        self.misfits.retain(|other| other.run != run);
        let lines = self.lines.iter_mut().filter(|line| *line.class.pool == *pool);
        for entry in lines.flat_map(Line::entries).filter(|entry| entry.run.run == run) {
            entry.given_up = true;
        }
        self.waiting() < before
    }

    pub fn take(&mut self, chosen: impl Fn(&WaitingRun) -> bool) -> Vec<WaitingRun> {
        let mut taken: Vec<WaitingRun> = self.lines.iter_mut().flat_map(|line| line.take(&chosen)).collect();
        taken.extend(self.misfits.extract_if(.., |run| chosen(run)));
        taken.sort_by_key(|run| run.since_ms);
        taken
    }

    pub fn retry_misfits(&mut self) {
        let mut runs = std::mem::take(&mut self.misfits);
        runs.sort_by_key(|run| run.since_ms);
        runs.into_iter().for_each(|run| self.enqueue(run));
    }

    pub fn unbind(&mut self, run: RunId) -> Option<WaitingRun> {
        let at = self.bound.iter().position(|bound| bound.run == run)?;
        Some(self.bound.remove(at))
    }

    pub fn waiting(&self) -> usize {
        self.lines.iter().map(|line| line.waiting().count()).sum::<usize>() + self.misfits.len()
    }

    /// Where each run is that is somewhere.
    pub fn spots(&self) -> BTreeMap<RunId, Spot<'_>> {
        let mut spots: BTreeMap<RunId, Spot<'_>> = self.bound.iter().map(|run| (run.run, Spot::Bound)).collect();
        spots.extend(self.misfits.iter().map(|run| (run.run, Spot::Misfit(run))));
        for line in &self.lines {
            let among = line.waiting().count();
            spots.extend(line.waiting().map(|run| (run.run, Spot::Queued(line.class.kind, among))));
        }
        spots
    }

    /// A round: the classes in this order; `matched`: what the real one did.
    pub fn round(
        &mut self,
        classes: &[Class],
        pumps: &mut [Pump],
        now_ms: i64,
        matched: &[(ExecutorSession, Box<WaitingRun>)],
    ) -> Result<(), Violation> {
        let several = self.lines.iter().flat_map(|line| &line.ranks).any(|rank| rank.tenants.len() > 1);
        self.parts.count(several, pumps, now_ms);
        let mut matched = matched.iter();
        for class in classes {
            self.round_of(class, pumps, now_ms, &mut matched)?;
        }
        match matched.next() {
            Some((_, run)) => {
                Err(Violation::of(ViolationKind::Extra, format!("{run:?} was matched, and no more were to be")))
            }
            None => Ok(()),
        }
    }

    fn round_of<'m>(
        &mut self,
        class: &Class,
        pumps: &mut [Pump],
        now_ms: i64,
        matched: &mut (impl Iterator<Item = &'m (ExecutorSession, Box<WaitingRun>)> + Clone),
    ) -> Result<(), Violation> {
        let (mut passed_over, mut looks) = (Vec::new(), 0);
        loop {
            let ready = pumps.iter().any(|pump| pump.serves(class) && pump.left(now_ms) > 0);
            if !ready || passed_over.len() == PASSED_OVER || self.bound.len() == BINDS_IN_FLIGHT {
                break;
            }
            let least = self.least_priority;
            self.line(class).least_priority = least;
            let is_turn = looks < LOOKS && self.line(class).is_turn_of_aged();
            looks += usize::from(is_turn);
            let parts = std::mem::take(&mut self.parts);
            let of_age = if is_turn { self.line(class).pop_aged(&parts) } else { None };
            let aged = of_age.is_some();
            let next = of_age.or_else(|| self.line(class).pop(&parts));
            self.parts = parts;
            let Some(run) = next else { break };
            let could = |pump: &Pump| pump.serves(class) && pump.could_run(&run);
            let can = |pump: &Pump| could(pump) && pump.left(now_ms) > 0 && pump.has_room(&run, &pump.running);
            let order = |pump: &Pump| (pump.load(), pump.last_match);
            let best = pumps.iter().filter(|pump| can(pump)).map(order).min_by(|a, b| a.partial_cmp(b).unwrap());
            let Some(best) = best else {
                if pumps.iter().any(could) {
                    passed_over.push(run);
                } else {
                    self.misfits.push(run);
                }
                continue;
            };
            let Some((session, given)) = matched.next() else {
                return Err(Violation::of(ViolationKind::Missing, format!("{run:?} was to be matched")));
            };
            let pump = pumps.iter_mut().find(|pump| pump.session == *session).unwrap();
            pump.may_take(given, now_ms)?;
            if **given != run {
                return Err(Violation::of(
                    ViolationKind::Order,
                    format!("{given:?} was matched, and {run:?} was to be"),
                ));
            }
            if order(pump) != best {
                return Err(Violation::of(
                    ViolationKind::Score,
                    format!("{:?} got a run, and {best:?} was to", order(pump)),
                ));
            }
            self.matches += 1;
            (pump.used, pump.last_match) = (pump.used + 1, self.matches);
            pump.running.push(run.clone());
            let run_of = (run.tenant.to_string(), run.pool.to_string());
            self.bound.push(run);
            self.line(class).started.push(aged);
            if self.parts.counted_ms.is_some() {
                self.parts.used.push((run_of.0, run_of.1));
            }
        }
        for run in passed_over.into_iter().rev() {
            self.line(class).give_back(run);
        }
        // What no match may do is told before that one was not to be at all.
        match matched.clone().next() {
            Some((session, run)) if Class::of(run) == *class => {
                let pump = pumps.iter().find(|pump| pump.session == *session).unwrap();
                pump.may_take(run, now_ms)?;
                Err(Violation::of(
                    ViolationKind::Extra,
                    format!("{run:?} was matched, and no more of its class were to be"),
                ))
            }
            Some(_) | None => Ok(()),
        }
    }
}
