//! A random history of runs and executors, played to matching and to its reference.

use super::{
    Random, Violation, ViolationKind,
    reference::{Pump, Reference, Spot},
};
use campanile_core::{
    dispatch::{Class, Dispatch, Executor, Match, Seat, Whereabouts},
    job::{Need, WaitingRun},
};
use campanile_schema::{
    ids::{ExecutorSession, JobId, RunId, Token},
    kinds::{ActionKind, Kinds},
    rpc::executor::{Credit, Held, Register},
};
use std::collections::BTreeMap;

const TENANTS: [&str; 4] = ["acme", "globex", "initech", "a tenant whose name is longer than a short text"];
const POOLS: [&str; 2] = ["default", "gpu"];
const HANDLERS: [&str; 3] = ["bill", "mail", "rare"];
const EXECUTORS: usize = 6;
/// Runs of one burst: more than a round passes over.
const BURST: u64 = 90;
/// Waiting runs after which no more come.
const CROWD: usize = 300;

struct World {
    random: Random,
    now_ms: i64,
    last_run: u64,
    dispatch: Dispatch,
    executors: Vec<Executor>,
    reference: Reference,
    pumps: Vec<Pump>,
    /// Runs that are somewhere, and the pool that they wait for.
    known: BTreeMap<RunId, String>,
    matched: Vec<Match>,
}

/// Plays so many steps; the first thing that is wrong ends it.
pub fn play(seed: u64, steps: u64) -> Result<(), Violation> {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step()?;
        if world.random.chance(60) {
            world.round()?;
        }
        world.compare()?;
    }
    Ok(())
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            random: Random::new(seed),
            now_ms: 1_000_000,
            last_run: 0,
            dispatch: Dispatch::default(),
            executors: Vec::new(),
            reference: Reference::default(),
            pumps: Vec::new(),
            known: BTreeMap::new(),
            matched: Vec::new(),
        };
        for number in 0..EXECUTORS {
            let register = world.register(number as u64);
            world.executors.push(Executor { register: Some(register.clone()), ..Executor::default() });
            world.pumps.push(Pump {
                session: register.session,
                connected: true,
                register,
                credit: 0,
                load: 0.0,
                given_ms: 0,
                used: 0,
                running: Vec::new(),
                last_match: 0,
            });
        }
        world
    }

    fn register(&mut self, number: u64) -> Register {
        let random = &mut self.random;
        let some = |of: &[&str], random: &mut Random| {
            of.iter().filter(|_| random.chance(60)).map(|name| (*name).to_owned()).collect::<Vec<String>>()
        };
        let mut pools = some(&POOLS, random);
        if pools.is_empty() {
            pools.push(POOLS[0].to_owned());
        }
        Register {
            executor_id: format!("x{number}"),
            session: ExecutorSession(number),
            pools,
            slots: 1 + random.below(8) as u32,
            handlers: some(&HANDLERS, random),
            any_handler: random.chance(10),
            kinds: Kinds::NONE
                .and_if(random.chance(50), ActionKind::Command)
                .and_if(random.chance(30), ActionKind::Http),
            labels: BTreeMap::new(),
            cpu: random.one_of(&[0.0, 0.0, 1.0, 0.5]),
            memory_mb: random.one_of(&[0, 0, 200]),
            storage_mb: random.one_of(&[0, 0, 0, 50]),
            stop_grace_sec: None,
        }
    }

    fn run(&mut self, id: u64, need: Need) -> WaitingRun {
        let random = &mut self.random;
        self.last_run += 1;
        WaitingRun {
            run: RunId(id),
            job: JobId(id),
            tenant: random.one_of(&TENANTS).into(),
            pool: random.one_of(&[POOLS[0], POOLS[0], POOLS[1]]).into(),
            priority: random.one_of(&[100, 100, 500]),
            backfill: random.chance(15),
            need,
            cpu: random.one_of(&[0.0, 0.1, 0.1, 0.7]),
            memory_mb: random.one_of(&[64, 64, 150, 300]),
            storage_mb: random.one_of(&[0, 0, 20, 60]),
            // Each its own, so that what is sorted by it has one order.
            since_ms: self.last_run as i64,
            target: None,
            retry: false,
        }
    }

    fn need(&mut self) -> Need {
        match self.random.below(6) {
            0 => Need::Command,
            1 => Need::Http,
            _ => Need::Handler(self.random.one_of(&HANDLERS).into()),
        }
    }

    fn enqueue(&mut self, run: WaitingRun) {
        self.known.insert(run.run, run.pool.to_string());
        self.dispatch.enqueue(Box::new(run.clone()));
        self.reference.enqueue(run);
    }

    /// A run that is somewhere.
    fn some_run(&mut self) -> Option<(RunId, String)> {
        let at = self.random.index(self.known.len())?;
        self.known.iter().nth(at).map(|(run, pool)| (*run, pool.clone()))
    }

    fn step(&mut self) -> Result<(), Violation> {
        match self.random.below(100) {
            0..32 => self.runs_come(),
            32..40 => return self.run_is_given_up(false),
            40..46 => return self.run_is_given_up(true),
            46..64 => self.credit_comes(),
            64..67 => self.registers_anew(),
            67..69 => self.connection_changes(),
            69..81 => self.attempt_ends(),
            81..85 => self.start_is_refused(),
            85..91 => self.start_is_durable(),
            91..93 => return self.tenant_is_paused(),
            93..95 => self.shard_is_gone(),
            95..96 => {
                let least = self.random.one_of(&[0, 0, 200]);
                self.dispatch.hold_below(least);
                self.reference.least_priority = least;
            }
            _ => self.now_ms += self.random.below(1_500) as i64,
        }
        Ok(())
    }

    fn runs_come(&mut self) {
        if self.reference.waiting() > CROWD {
            return;
        }
        let is_burst = self.random.chance(2);
        let count = if is_burst { BURST } else { 1 + self.random.below(3) };
        for _ in 0..count {
            let need = if is_burst { Need::Handler("rare".into()) } else { self.need() };
            let mut run = self.run(self.last_run + 1, need);
            if is_burst {
                (run.pool, run.backfill, run.priority) = (POOLS[0].into(), false, 500);
                (run.cpu, run.memory_mb, run.storage_mb) = (0.1, 64, 0);
            }
            self.enqueue(run);
        }
    }

    /// ... and perhaps comes again, as a run does whose job was edited meanwhile.
    fn run_is_given_up(&mut self, comes_again: bool) -> Result<(), Violation> {
        let Some((run, pool)) = self.some_run() else { return Ok(()) };
        let waited = (self.dispatch.dequeue(run, &pool), self.reference.dequeue(run, &pool));
        if waited.0 != waited.1 {
            return Err(Violation::of(ViolationKind::Place, format!("whether {run:?} was given up: {waited:?}")));
        }
        if comes_again {
            let need = self.need();
            let again = self.run(run.0, need);
            self.enqueue(again);
        }
        Ok(())
    }

    fn credit_comes(&mut self) {
        let at = self.random.below(EXECUTORS as u64) as usize;
        let pump = &mut self.pumps[at];
        // It may count slots as free that are taken by runs on their way to it.
        let slots = self.random.below(u64::from(pump.register.slots) + 3) as u32;
        let load = self.random.one_of(&[0.0, 0.0, 0.25]);
        let credit = Credit { slots, load, ..Credit::default() };
        self.executors[at].credit.give(credit, self.now_ms);
        (pump.credit, pump.load, pump.given_ms, pump.used) = (slots, load, self.now_ms, 0);
    }

    fn registers_anew(&mut self) {
        let at = self.random.below(EXECUTORS as u64);
        let register = self.register(at);
        let (executor, pump) = (&mut self.executors[at as usize], &mut self.pumps[at as usize]);
        executor.register = Some(register.clone());
        executor.credit.revoke();
        (pump.register, pump.credit) = (register, 0);
        self.dispatch.retry_misfits();
        self.reference.retry_misfits();
    }

    fn connection_changes(&mut self) {
        let at = self.random.below(EXECUTORS as u64) as usize;
        self.pumps[at].connected = !self.pumps[at].connected;
    }

    fn attempt_ends(&mut self) {
        let at = self.random.below(EXECUTORS as u64) as usize;
        let Some(run) = self.random.index(self.pumps[at].running.len()) else { return };
        let run = self.pumps[at].running[run].run;
        self.executors[at].release(run, None);
        self.pumps[at].release(run);
        self.dispatch.unbind(run);
        self.reference.unbind(run);
    }

    /// The job does not start the attempt; the run may ask again at once.
    fn start_is_refused(&mut self) {
        let Some(at) = self.random.index(self.reference.bound.len()) else { return };
        let run = self.reference.bound[at].run;
        let Some(at) = self.pumps.iter().position(|pump| pump.running.iter().any(|held| held.run == run)) else {
            return;
        };
        self.executors[at].credit.refund();
        self.executors[at].release(run, Some(Token(0)));
        let pump = &mut self.pumps[at];
        pump.used = pump.used.saturating_sub(1);
        pump.release(run);
        self.dispatch.unbind(run);
        if let Some(run) = self.reference.unbind(run)
            && self.random.chance(50)
        {
            self.enqueue(run);
        }
    }

    fn start_is_durable(&mut self) {
        let Some(at) = self.random.index(self.reference.bound.len()) else { return };
        let WaitingRun { run, job, .. } = self.reference.bound[at];
        self.dispatch.unbind(run);
        self.reference.unbind(run);
        let holding = self.executors.iter_mut().find_map(|executor| executor.running.get_mut(&run));
        if let Some(holding) = holding {
            holding.held = Held { run, job, token: Token(1) };
        }
    }

    fn tenant_is_paused(&mut self) -> Result<(), Violation> {
        let tenant = self.random.one_of(&TENANTS);
        let mut taken: Vec<WaitingRun> = self.dispatch.take(tenant).into_iter().map(|run| *run).collect();
        taken.sort_by_key(|run| run.since_ms);
        let expected = self.reference.take(|run| run.tenant == *tenant);
        if taken != expected {
            return Err(Violation::of(ViolationKind::Place, format!("taken out: {taken:?}, not {expected:?}")));
        }
        for run in taken {
            if self.random.chance(50) {
                self.enqueue(run);
            }
        }
        Ok(())
    }

    fn shard_is_gone(&mut self) {
        let gone = self.random.below(5);
        let stays = |run: RunId| run.0 % 5 != gone;
        self.dispatch.retain(stays, |_| ());
        self.reference.take(|run| !stays(run.run));
        self.reference.bound.retain(|run| stays(run.run));
        for (executor, pump) in self.executors.iter_mut().zip(&mut self.pumps) {
            executor.running.retain(|run, _| stays(*run));
            pump.running.retain(|run| stays(run.run));
        }
    }

    fn round(&mut self) -> Result<(), Violation> {
        let now_ms = self.now_ms;
        // Classes have no order among each other, but one that stays while nothing comes.
        let classes: Vec<Class> = self.dispatch.starved().cloned().collect();
        let left = |(executor, pump): (&Executor, &Pump)| {
            if pump.connected { executor.credit_left(now_ms) } else { 0 }
        };
        let lefts: Vec<u32> = self.executors.iter().zip(&self.pumps).map(left).collect();
        let sessions = self.pumps.iter().map(|pump| pump.session);
        let mut seats: Vec<Seat<'_>> = self
            .executors
            .iter_mut()
            .zip(sessions.zip(lefts))
            .map(|(executor, (session, left))| Seat { session, executor, left })
            .collect();
        self.dispatch.round(&mut seats, &mut self.matched, now_ms);
        self.reference.round(&classes, &mut self.pumps, now_ms, &self.matched)?;
        for (_, run) in self.matched.drain(..) {
            self.dispatch.bind(run);
        }
        Ok(())
    }

    fn compare(&mut self) -> Result<(), Violation> {
        for (executor, pump) in self.executors.iter().zip(&self.pumps).filter(|(_, pump)| pump.connected) {
            let (left, expected) = (executor.credit_left(self.now_ms), pump.left(self.now_ms));
            // One that has too much gets a run too many: that is found when it does.
            if left < expected {
                return Err(Violation::of(
                    ViolationKind::Left,
                    format!("{left} of {expected} are left: {:?}", pump.register),
                ));
            }
        }
        let spots = self.reference.spots();
        for (run, pool) in &self.known {
            let spot = self.dispatch.find(*run, pool).map(|found| match found {
                Whereabouts::Queued { kind, among } => Spot::Queued(kind, among),
                Whereabouts::Misfit(waiting) => Spot::Misfit(waiting),
                Whereabouts::Bound => Spot::Bound,
            });
            let expected = spots.get(run);
            if spot.as_ref() != expected {
                return Err(Violation::of(ViolationKind::Place, format!("{run:?} is {spot:?}, not {expected:?}")));
            }
        }
        let waiting: usize = self.dispatch.waiting().map(|(_, runs)| runs).sum();
        let expected = self.reference.waiting();
        if waiting != expected {
            return Err(Violation::of(ViolationKind::Place, format!("{waiting} runs wait, not {expected}")));
        }
        self.known.retain(|run, _| spots.contains_key(run));
        Ok(())
    }
}
