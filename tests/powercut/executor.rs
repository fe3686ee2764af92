//! An executor without bodies: it takes what its credit allows, ends attempts when it pleases, announces itself after each
//! registration and sends results again until they are durable or refused. What it saw is held against the promises.

use crate::{clock::TestClock, random::Random, story::Story};
use campanile_actors::{messages::ToExecutor, scheduler::Scheduler};
use campanile_core::job::Claimant;
use campanile_schema::{
    ids::{Epoch, ExecutorSession, JobId, RunId, Token},
    kinds::Kinds,
    record::{AttemptState, Source},
    rpc::executor::{Assignment, Credit, Ended, Finish, FinishOutcome, Held, Register},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{mpsc, watch};

/// Slots of an executor.
const SLOTS: u32 = 6;
/// Results in one message.
const RESULTS: usize = 5;

/// An attempt that a node gave out.
#[derive(Clone, Debug)]
pub struct Given {
    pub job: JobId,
    pub attempt: u32,
    pub generation: u32,
    pub epoch: Epoch,
    /// Of a scheduled run: its instant.
    pub instant_ms: Option<i64>,
    /// The result that was called durable.
    pub durable: Option<AttemptState>,
}

/// All attempts of all executors, by run and token.
#[derive(Clone, Default)]
pub struct Attempts(Arc<Mutex<BTreeMap<RunId, BTreeMap<Token, Given>>>>);

impl Attempts {
    fn guard(&self) -> MutexGuard<'_, BTreeMap<RunId, BTreeMap<Token, Given>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn all(&self) -> BTreeMap<RunId, BTreeMap<Token, Given>> {
        self.guard().clone()
    }

    fn given(&self, a: &Assignment) -> Result<(), String> {
        let given = Given {
            job: a.job,
            attempt: a.attempt,
            generation: a.generation,
            epoch: a.epoch,
            instant_ms: a.logical_time.filter(|_| a.source == Source::Schedule).map(|t| t.0),
            durable: None,
        };
        match self.guard().entry(a.run).or_default().insert(a.token, given) {
            None => Ok(()),
            Some(before) => Err(format!("run {}: token {} was given out twice: {before:?} and {a:?}", a.run, a.token)),
        }
    }

    /// True when it counts as an acknowledged call.
    fn answered(&self, ended: &Ended, outcome: FinishOutcome) -> Result<bool, String> {
        if outcome != FinishOutcome::Durable {
            return Ok(false);
        }
        let mut runs = self.guard();
        let given = runs.get_mut(&ended.run).and_then(|r| r.get_mut(&ended.token));
        let given = given.ok_or_else(|| format!("a result of nobody's attempt was taken: {ended:?}"))?;
        match given.durable.replace(ended.state) {
            None => Ok(true),
            Some(before) => Err(format!("two results of one attempt were taken: {before} and {ended:?}")),
        }
    }
}

/// Tokens of a run rise with its attempts, over all lives; after an accepted success its generation is over.
pub fn check_order(run: RunId, tokens: &BTreeMap<Token, Given>) -> Result<(), String> {
    let mut before: Option<(&Token, &Given)> = None;
    for (token, given) in tokens {
        if let Some((t, b)) = before {
            if given.attempt <= b.attempt || given.generation < b.generation || given.epoch < b.epoch {
                return Err(format!("run {run}: attempt {token} {given:?} has a higher token than {t} {b:?}"));
            }
            if b.generation == given.generation && b.durable == Some(AttemptState::Success) {
                return Err(format!(
                    "run {run}: {t} {b:?} succeeded, and {token} {given:?} of its generation followed"
                ));
            }
        }
        before = Some((token, given));
    }
    Ok(())
}

pub struct Executor {
    id: String,
    session: ExecutorSession,
    random: Random,
    /// Running "bodies".
    held: Vec<Held>,
    /// Results that nobody called durable yet.
    results: Vec<Ended>,
    attempts: Attempts,
    clock: Arc<TestClock>,
    story: Story,
    pub acknowledged: u64,
}

impl Executor {
    pub fn new(index: u64, mut random: Random, attempts: Attempts, clock: Arc<TestClock>, story: Story) -> Self {
        let session = ExecutorSession(random.below(1 << 50));
        let id = format!("executor-{index}");
        Self { id, session, random, held: Vec::new(), results: Vec::new(), attempts, clock, story, acknowledged: 0 }
    }

    /// Works until it is told to stop or the node goes. `steps` changes when the clock was moved.
    pub async fn work(
        mut self,
        node: Scheduler,
        mut steps: watch::Receiver<u64>,
        progress: watch::Sender<u64>,
    ) -> (Self, Result<(), String>) {
        let result = self.live(&node, &mut steps, &progress).await;
        (self, result)
    }

    async fn live(
        &mut self,
        node: &Scheduler,
        steps: &mut watch::Receiver<u64>,
        progress: &watch::Sender<u64>,
    ) -> Result<(), String> {
        let Some(mut inbox) = self.connect(node).await else { return Ok(()) };
        loop {
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.take(message)?,
                    None => return Ok(()),
                },
                changed = steps.changed() => {
                    // The sender goes when the round ends.
                    if changed.is_err() {
                        return Ok(());
                    }
                    if self.random.one_in(60) {
                        self.story.tell(format!("{} dies", self.id));
                        self.held.clear();
                        self.results.clear();
                        self.session = ExecutorSession(self.random.below(1 << 50));
                        match self.connect(node).await {
                            Some(again) => inbox = again,
                            None => return Ok(()),
                        }
                    }
                    node.executor_heartbeat(self.session);
                    node.executor_credit(self.session, self.credit());
                    self.finish(node).await?;
                    progress.send_modify(|n| *n += 1);
                }
            }
        }
    }

    fn credit(&self) -> Credit {
        let taken = (self.held.len() + self.results.len()) as u32;
        Credit { stamp_ms: self.clock.boot_ms(), slots: SLOTS.saturating_sub(taken), ..Credit::default() }
    }

    fn claimant(&self) -> Arc<Claimant> {
        Arc::new(Claimant { session: self.session, credential: "executor".into(), pools: None })
    }

    /// Registers and tells what it holds. None: the node is not there.
    async fn connect(&mut self, node: &Scheduler) -> Option<mpsc::Receiver<ToExecutor>> {
        let (outbox, inbox) = mpsc::channel(64);
        let register = Register {
            executor_id: self.id.clone(),
            session: self.session,
            pools: vec!["default".to_owned()],
            slots: SLOTS,
            handlers: Vec::new(),
            any_handler: true,
            kinds: Kinds::NONE,
            labels: BTreeMap::new(),
            cpu: 0.0,
            memory_mb: 0,
            storage_mb: 0,
            stop_grace_sec: None,
        };
        node.executor_register(register, self.claimant(), outbox).await.ok()?;
        let mut held = self.held.clone();
        held.extend(self.results.iter().map(|e| Held { run: e.run, job: e.job, token: e.token }));
        let announced = node.executor_announce(self.session, held).await.ok()?;
        self.held.retain(|h| !announced.stop.contains(h));
        node.executor_credit(self.session, self.credit());
        Some(inbox)
    }

    fn take(&mut self, message: ToExecutor) -> Result<(), String> {
        match message {
            ToExecutor::Assign(items) => {
                for a in items {
                    self.attempts.given(&a)?;
                    let held = Held { run: a.run, job: a.job, token: a.token };
                    if self.random.one_in(12) {
                        self.end(held, AttemptState::NotStarted);
                    } else {
                        self.held.push(held);
                    }
                }
            }
            ToExecutor::Epochs(_) | ToExecutor::Hint(_) | ToExecutor::Forget(_) => {}
            ToExecutor::Stop(stop) => {
                for held in stop {
                    if self.held.contains(&held) {
                        self.held.retain(|h| *h != held);
                        self.end(held, AttemptState::Canceled);
                    }
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, held: Held, state: AttemptState) {
        self.results.push(Ended {
            run: held.run,
            job: held.job,
            token: held.token,
            state,
            error_code: None,
            error_message: (state == AttemptState::Failed).then(|| "failed on purpose".to_owned()),
            result: None,
            cpu_ms: None,
            max_rss_kb: None,
            permanent: false,
        });
    }

    async fn finish(&mut self, node: &Scheduler) -> Result<(), String> {
        for _ in 0..self.random.below(4) {
            if self.held.is_empty() {
                break;
            }
            let held = self.held.swap_remove(self.random.below(self.held.len() as u64) as usize);
            let state = match self.random.below(10) {
                0..=6 => AttemptState::Success,
                7..=8 => AttemptState::Failed,
                _ => AttemptState::Timeout,
            };
            self.end(held, state);
        }
        let items: Vec<Ended> = self.results.iter().take(RESULTS).cloned().collect();
        if items.is_empty() {
            return Ok(());
        }
        let Ok(answer) = node.executor_finish(&self.claimant(), Finish { items: items.clone(), credit: None }).await
        else {
            return Ok(());
        };
        for (ended, outcome) in items.iter().zip(&answer.outcomes) {
            self.story
                .tell(format!("{}: run {} token {} {}: {outcome:?}", self.id, ended.run, ended.token, ended.state));
            self.acknowledged += u64::from(self.attempts.answered(ended, *outcome)?);
            if *outcome != FinishOutcome::Again {
                self.results.retain(|e| (e.run, e.token) != (ended.run, ended.token));
            }
        }
        Ok(())
    }
}
