//! A machine, callers and executors: works, loses power (or its process, or the space on its disk), starts again, and is
//! held against what was acknowledged; several rounds from one seed.

use crate::{
    caller::Caller,
    executor::{Attempts, Executor},
    machine::{Machine, Node, SHARDS},
    random::Random,
    story::Story,
    verify::verify_attempts,
};
use campanile_actors::{
    handles::SessionHandles,
    messages::{PoolMsg, ShardMsg},
    scheduler::Scheduler,
};
use campanile_schema::ids::ShardId;
use campanile_store::{embedded::EmbeddedStore, file::SyncSite};
use std::{
    collections::BTreeMap,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

const CALLERS: u64 = 3;
const EXECUTORS: u64 = 2;
/// Rounds of one seed that end with a disaster.
const ROUNDS: u64 = 5;
/// Steps after which a round ends although the disk that should be full has bothered nobody.
const LONG_ROUND: u64 = 40;
/// How far a step moves the clock at most while everything due is worked off.
const SETTLING_MS: u64 = 100;
/// How long calls may take before a step goes on without them.
const STEP: Duration = Duration::from_millis(3);
/// How long anything may take before the test gives up: generous, for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a whole seed may take: they take less than a second.
const SEED_PATIENCE: Duration = Duration::from_secs(60);

/// What a seed is made to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setting {
    /// All syncs of this site do nothing.
    pub ignored: Option<SyncSite>,
    /// Every round ends with a disk that takes no more writes.
    pub full_disk: bool,
}

/// What came of the seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub seeds: u64,
    pub cuts: u64,
    pub kills: u64,
    pub reopened: u64,
    pub acknowledged: u64,
    pub snapshots: u64,
    pub trims: u64,
}

impl Tally {
    pub fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.cuts += other.cuts;
        self.kills += other.kills;
        self.reopened += other.reopened;
        self.acknowledged += other.acknowledged;
        self.snapshots += other.snapshots;
        self.trims += other.trims;
    }
}

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The power goes between two instructions.
    Cut,
    /// The power goes at the n-th change of the disk.
    CutAt(u64),
    KillAt(u64),
    Kill,
    /// The node stops in order.
    Drain,
    /// The n-th write finds no space.
    Full(u64),
    /// The n-th sync fails.
    SyncFails(u64),
}

struct World {
    random: Random,
    machine: Machine,
    callers: Vec<Caller>,
    executors: Vec<Executor>,
    attempts: Attempts,
    story: Story,
    setting: Setting,
    tally: Tally,
}

/// Runs a seed to its end; tells what broke a promise.
pub async fn run(seed: u64, setting: Setting) -> Result<Tally, String> {
    let story = Story::default();
    let mut random = Random::new(seed);
    let machine = Machine::new(seed, story.clone());
    machine.files.ignore(setting.ignored);
    let attempts = Attempts::default();
    let callers = (0..CALLERS).map(|i| Caller::new(i, random.fork(), machine.clock.clone(), story.clone())).collect();
    let executors = (0..EXECUTORS)
        .map(|i| Executor::new(i, random.fork(), attempts.clone(), machine.clock.clone(), story.clone()))
        .collect();
    let tally = Tally { seeds: 1, ..Tally::default() };
    let mut world = World { random, machine, callers, executors, attempts, story: story.clone(), setting, tally };
    match timeout(SEED_PATIENCE, world.live()).await.unwrap_or_else(|_| Err("it never ends".to_owned())) {
        Ok(()) => {
            world.tally.acknowledged = world.callers.iter().map(|c| c.acknowledged).sum::<u64>()
                + world.executors.iter().map(|e| e.acknowledged).sum::<u64>();
            Ok(world.tally)
        }
        Err(why) => Err(format!("seed {seed}, {setting:?}: {why}\n{}", story.text())),
    }
}

impl World {
    async fn live(&mut self) -> Result<(), String> {
        let mut node = self.machine.start(&mut self.random, &mut self.tally.cuts).await?;
        for _ in 0..ROUNDS {
            if !self.verify(&mut node, false).await? {
                node = self.next_life(node).await?;
                continue;
            }
            let ending = self.draw_ending();
            self.story.tell(format!("a round that ends with {ending:?}"));
            self.work(&mut node, ending).await?;
            node = self.after(node, ending).await?;
            // While it was off.
            self.machine.clock.advance_ms(if self.random.one_in(3) { self.random.below(40_000) } else { 0 });
        }
        // One more cut, which nobody disturbs.
        loop {
            node.leave();
            self.tally.cuts += 1;
            self.machine.cut()?;
            node = self.machine.start(&mut self.random, &mut self.tally.cuts).await?;
            if self.settle(&mut node).await? {
                node.leave();
                return Ok(());
            }
        }
    }

    fn draw_ending(&mut self) -> Ending {
        let n = self.random.below(90);
        if self.setting.full_disk {
            let n = n / 4;
            return if self.random.one_in(3) { Ending::SyncFails(n) } else { Ending::Full(n) };
        }
        match self.random.below(20) {
            0..=5 => Ending::Cut,
            6..=11 => Ending::CutAt(n),
            12..=13 => Ending::KillAt(n),
            14 => Ending::Kill,
            15 => Ending::Drain,
            16..=17 => Ending::Full(n),
            _ => Ending::SyncFails(n),
        }
    }

    fn arm(&self, ending: Ending) {
        match ending {
            Ending::CutAt(n) | Ending::KillAt(n) => self.machine.files.power_off_in(n),
            Ending::Full(n) => self.machine.files.fail_write_in(n),
            Ending::SyncFails(n) => self.machine.files.fail_sync_in(n),
            Ending::Cut | Ending::Kill | Ending::Drain => {}
        }
    }

    /// Callers and executors at work, the clock moving, until the round ends.
    async fn work(&mut self, node: &mut Node, ending: Ending) -> Result<(), String> {
        let (stop, stopped) = watch::channel(false);
        let (steps, stepped) = watch::channel(0);
        let (progress, mut progressed) = watch::channel(0);
        let callers: Vec<JoinHandle<(Caller, Result<(), String>)>> = self
            .callers
            .drain(..)
            .map(|c| tokio::spawn(c.work(node.scheduler.clone(), stopped.clone(), progress.clone())))
            .collect();
        let executors: Vec<JoinHandle<(Executor, Result<(), String>)>> = self
            .executors
            .drain(..)
            .map(|e| tokio::spawn(e.work(node.scheduler.clone(), stepped.clone(), progress.clone())))
            .collect();
        let armed_at = self.random.below(4);
        // How much is written in a step depends on the machine: where the disk must fill, work goes on until it has.
        let count = armed_at + if self.setting.full_disk { LONG_ROUND } else { self.random.between(1, 8) };
        let mut target = 0;
        for step in 0..count {
            if step == armed_at {
                self.arm(ending);
            }
            if node.has_failed() || !self.machine.files.powered() {
                break;
            }
            self.step(node);
            steps.send_modify(|n| *n += 1);
            target += self.random.below(10);
            // Without progress (a call waits for time to pass) the next step comes anyway.
            let _ = timeout(STEP, progressed.wait_for(|n| *n >= target)).await;
        }
        match ending {
            Ending::Cut => {
                self.tally.cuts += 1;
                self.machine.cut()?;
            }
            Ending::Kill => {
                self.tally.kills += 1;
                self.machine.kill()?;
            }
            Ending::Drain => node.drain().await,
            Ending::CutAt(_) | Ending::KillAt(_) => {}
            Ending::Full(_) | Ending::SyncFails(_) => {}
        }
        let _ = stop.send(true);
        drop(steps);
        if !matches!(ending, Ending::Full(_) | Ending::SyncFails(_)) {
            node.leave();
        }
        for caller in callers {
            let (caller, result) = joined("a caller", node, caller).await?;
            self.callers.push(caller);
            result?;
        }
        for executor in executors {
            let (executor, result) = joined("an executor", node, executor).await?;
            self.executors.push(executor);
            result?;
        }
        Ok(())
    }

    /// Time passes, and what a session does by the clock is done.
    fn step(&mut self, node: &Node) {
        let ms = if self.random.one_in(8) { self.random.below(6_000) } else { self.random.below(900) };
        self.step_by(node, ms);
    }

    fn step_by(&mut self, node: &Node, ms: u64) {
        self.machine.clock.advance_ms(ms);
        let Some(session) = &node.session else { return };
        let handles = &session.handles;
        let fires = handles.identity.time.tick();
        for shard in (0..SHARDS).map(ShardId) {
            if fires {
                handles.shards.send(shard, ShardMsg::Tick(Vec::new()));
            }
            if self.random.one_in(8) {
                handles.shards.send(shard, ShardMsg::Housekeep);
            }
            if self.random.one_in(8) {
                self.tally.snapshots += 1;
                let (port, _) = oneshot::channel();
                handles.shards.send(shard, ShardMsg::Flush(port));
            }
        }
        handles.pool.send(PoolMsg::QuotaTick);
        handles.pool.send(PoolMsg::Tick);
        if self.random.one_in(3) {
            self.tally.trims += 1;
            tokio::spawn(session.maintain());
        }
    }

    /// The node after the disaster.
    async fn after(&mut self, mut node: Node, ending: Ending) -> Result<Node, String> {
        match ending {
            Ending::Cut | Ending::Kill => self.started().await,
            Ending::CutAt(_) => {
                self.tally.cuts += 1;
                self.machine.cut()?;
                self.started().await
            }
            Ending::KillAt(_) | Ending::Drain => {
                self.tally.kills += 1;
                self.machine.kill()?;
                self.started().await
            }
            Ending::Full(_) | Ending::SyncFails(_) => {
                self.machine.files.calm();
                // What was on its way to the disk may have met the fault.
                let quiet = node.session.as_ref().map(|s| quiet(s.handles.clone()));
                if let Some(quiet) = quiet
                    && attended(&mut node, quiet).await.is_ok()
                    && !node.has_failed()
                {
                    // It hit something that is tried again, or nothing yet.
                    return Ok(node);
                }
                if self.machine.reopen(&mut node, &mut self.random, ending != Ending::SyncFails(0)).await? {
                    self.tally.reopened += 1;
                    Ok(node)
                } else {
                    self.next_life(node).await
                }
            }
        }
    }

    async fn started(&mut self) -> Result<Node, String> {
        self.machine.start(&mut self.random, &mut self.tally.cuts).await
    }

    /// The power went when nobody looked.
    async fn next_life(&mut self, mut node: Node) -> Result<Node, String> {
        node.leave();
        self.tally.cuts += 1;
        self.machine.cut()?;
        self.started().await
    }

    /// False: the power went meanwhile.
    async fn verify(&mut self, node: &mut Node, all: bool) -> Result<bool, String> {
        if let Some(handles) = node.session.as_ref().map(|s| s.handles.clone()) {
            // A session that goes on shows its newest rows a moment later; what it is held against is what it shows then.
            let shown = attended(node, quiet(handles)).await;
            if !self.unless_off(shown)? {
                return Ok(false);
            }
        }
        let (scheduler, store) = (node.scheduler.clone(), node.store.clone());
        let (callers, attempts) = (&mut self.callers, &self.attempts);
        let done = attended(node, async move {
            for caller in &mut *callers {
                if !caller.verify(&scheduler, &store, all).await? {
                    return Ok(false);
                }
            }
            let jobs = callers.iter().flat_map(|c| &c.jobs);
            let fired: BTreeMap<_, _> = jobs.flat_map(|j| &j.fired).map(|(run, at)| (*run, *at)).collect();
            verify_attempts(&scheduler, attempts, &fired, all).await
        })
        .await;
        self.unless_off(done)
    }

    /// Without power nothing has to work.
    fn unless_off(&self, done: Result<bool, String>) -> Result<bool, String> {
        match done {
            Ok(true) => Ok(true),
            Ok(false) | Err(_) if !self.machine.files.powered() => Ok(false),
            Ok(false) => Err("a call had no answer although nothing was wrong".to_owned()),
            Err(why) => Err(why),
        }
    }

    /// The last life: every instant gets its outcome, and all that was ever acknowledged is there. False: the power went.
    async fn settle(&mut self, node: &mut Node) -> Result<bool, String> {
        if !self.verify(node, true).await? {
            return Ok(false);
        }
        let scheduler = node.scheduler.clone();
        let callers = &mut self.callers;
        let resumed = attended(node, async move {
            for caller in callers {
                if !caller.pause_tenant(&scheduler, false).await? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await;
        if !self.unless_off(resumed)? {
            return Ok(false);
        }
        let (steps, stepped) = watch::channel(0);
        let (progress, _) = watch::channel(0);
        let executors: Vec<JoinHandle<(Executor, Result<(), String>)>> = self
            .executors
            .drain(..)
            .map(|e| tokio::spawn(e.work(node.scheduler.clone(), stepped.clone(), progress.clone())))
            .collect();
        let settled = self.catch_up(node, &steps).await;
        if settled != Ok(true) {
            node.leave();
        }
        drop(steps);
        for executor in executors {
            let (executor, result) = joined("an executor", node, executor).await?;
            self.executors.push(executor);
            result?;
        }
        Ok(self.unless_off(settled)? && self.verify(node, true).await?)
    }

    async fn catch_up(&mut self, node: &mut Node, steps: &watch::Sender<u64>) -> Result<bool, String> {
        let mark = self.machine.clock.now_ms();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if node.has_failed() || !self.machine.files.powered() {
                return Ok(false);
            }
            let (scheduler, store) = (node.scheduler.clone(), node.store.clone());
            let left = attended(node, still_due(&mut self.callers, &scheduler, &store, mark)).await?;
            let Some(left) = left else { return Ok(true) };
            if Instant::now() > deadline {
                return Err(format!("instants are forgotten: {left}"));
            }
            // Slower than work is done: what is due now must end behind what becomes due meanwhile.
            let ms = self.random.below(SETTLING_MS);
            self.step_by(node, ms);
            steps.send_modify(|n| *n += 1);
            tokio::task::yield_now().await;
        }
    }
}

/// Calls to a node; it is left when its session cannot go on, so that nobody waits for it.
async fn attended<T>(node: &mut Node, calls: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::select! {
        done = timeout(PATIENCE, calls) => done.unwrap_or_else(|_| Err("a call was never answered".to_owned())),
        why = node.failure() => {
            node.leave();
            Err(format!("the session failed: {why}"))
        }
    }
}

/// Waits until everything decided is durable and in the read model.
async fn quiet(handles: Arc<SessionHandles>) -> Result<bool, String> {
    while handles.client.journal.in_flight() + handles.client.projector.lag_events() > 0 {
        tokio::time::sleep(STEP).await;
    }
    Ok(true)
}

async fn still_due(
    callers: &mut [Caller],
    node: &Scheduler,
    store: &EmbeddedStore,
    mark_ms: i64,
) -> Result<Option<String>, String> {
    for caller in callers {
        if let Some(left) = caller.still_due(node, store, mark_ms).await? {
            return Ok(Some(left));
        }
    }
    Ok(None)
}

/// Waits for somebody who was told to stop. When the session cannot go on it is left, so that its callers hear of it; a call
/// that is never answered is a bug of its own.
async fn joined<T>(what: &str, node: &mut Node, mut handle: JoinHandle<T>) -> Result<T, String> {
    let join = async {
        tokio::select! {
            done = &mut handle => return done,
            _ = node.failure() => node.leave(),
        }
        handle.await
    };
    match timeout(PATIENCE, join).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(e)) => Err(format!("{what} failed: {e}")),
        Err(_) => Err(format!("{what} waits for an answer that never comes")),
    }
}
