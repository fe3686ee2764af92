//! A shard with one job, executors and a pool, as small as they can be: keeps every decision, and
//! checks after each what must hold at any time (replay, bytes, outbox, ids, no spinning).

use super::{make::job_id, ops::History};
use campanile_core::{
    cron::tzdb_version,
    job::{
        Command, Context, Decision, Effect, Ids, Job, Reply, Resting,
        apply::{apply, created},
        decide, decide_create, decide_next,
        pending::pending,
    },
    reject::Rejection,
    shard::{Pause, ShardState},
};
use campanile_schema::{
    event::{Event, SkipReason},
    frame::{self, Frame},
    ids::{Epoch, ExecutorSession, RunId, ShardId, Token},
    limits::{RUNS_PER_WAKE, WHEEL_SLOT_MS},
    payload::Payload,
    record::{AttemptState, RunRecord, RunState},
    rpc::executor::Ended,
    stored::StoredJob,
};
use std::collections::{BTreeMap, BTreeSet};

/// One decision with what it knew.
#[derive(Clone, Debug)]
pub struct Step {
    pub now_ms: i64,
    /// All there were of the tenant, oldest first.
    pub pauses: Vec<Pause>,
    pub queue_full: bool,
    pub events: Vec<Event>,
    /// The job wanted no further wake at this time when the decision was made.
    pub quiet: bool,
}

pub struct Sim {
    pub job: Job,
    pub now_ms: i64,
    pub steps: Vec<Step>,
    /// Newest record of each run that has ended.
    pub finals: Vec<RunRecord>,
    pub shard: ShardState,
    /// All there were of the tenant, oldest first.
    pub pauses: Vec<Pause>,
    pub queue_full: bool,
    /// Every (run, token) there was.
    pub tokens: Vec<(RunId, Token)>,
    /// What the pool and the executors hold, by effects alone.
    queue: BTreeSet<RunId>,
    bodies: BTreeMap<RunId, (Token, ExecutorSession)>,
    /// Off while a defect is switched on: then only the checkers judge.
    pub strict: bool,
}

/// Wakes of one job in one stretch of time, at most: more is spinning.
const WAKES: usize = 200_000;

impl Sim {
    pub fn create(def: StoredJob, now_ms: i64, strict: bool) -> Self {
        let mut shard = ShardState { counter: 1, ..ShardState::default() };
        let context = context(now_ms, Ids::default(), Vec::new(), false);
        let (job, decision) = decide_create(job_id(), def, &context);
        shard.apply(&decision.events[0]);
        let step = Step { now_ms, pauses: Vec::new(), queue_full: false, events: decision.events, quiet: false };
        Self {
            job,
            now_ms,
            steps: vec![step],
            finals: Vec::new(),
            shard,
            pauses: Vec::new(),
            queue_full: false,
            tokens: Vec::new(),
            queue: BTreeSet::new(),
            bodies: BTreeMap::new(),
            strict,
        }
    }

    /// A whole history, time going on a little at its end.
    pub fn run(history: &History, strict: bool) -> Self {
        let mut sim = Self::create(history.def.clone(), history.base_ms, strict);
        for op in &history.ops {
            sim.op(op);
        }
        sim.tenant_pause(false);
        sim.queue_full = false;
        sim.pass(sim.now_ms + 1_000);
        sim
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.steps.iter().flat_map(|s| &s.events)
    }

    pub fn tenant_pause(&mut self, on: bool) {
        let lasts = self.pauses.iter_mut().find(|pause| pause.to_ms.is_none());
        match (on, lasts) {
            (true, None) => {
                let reason = SkipReason::TenantPaused;
                self.pauses.push(Pause { from_ms: self.now_ms, to_ms: None, reason });
            }
            (false, Some(pause)) => pause.to_ms = Some(self.now_ms),
            (true, Some(_)) | (false, None) => {}
        }
    }

    pub fn context(&self, ids: u64) -> Context {
        let ids = Ids { first: self.shard.counter + 1, count: ids };
        context(self.now_ms, ids, self.pauses.clone(), self.queue_full)
    }

    /// Decides a command at this time, takes its events and effects.
    pub fn command(&mut self, command: &Command) -> Result<Reply, Rejection> {
        let context = self.context(command.ids_wanted());
        let (decision, next) = decide_next(&self.job, command, &context)?;
        if self.strict {
            assert_eq!(decide(&self.job, command, &context).as_ref(), Ok(&decision), "a decision is pure");
            self.check_decision(&context, &decision, &next);
        }
        for event in &decision.events {
            self.note(event);
        }
        self.job = next;
        for effect in &decision.effects {
            self.take(effect);
        }
        if self.strict {
            self.check_outbox();
        }
        let quiet = self.job.wake_at(self.now_ms).is_none_or(|at| at > self.now_ms);
        self.steps.push(Step {
            now_ms: self.now_ms,
            pauses: self.pauses.clone(),
            queue_full: self.queue_full,
            events: decision.events,
            quiet,
        });
        Ok(decision.reply)
    }

    fn note(&mut self, event: &Event) {
        self.shard.apply(event);
        if let Event::AttemptStarted { run, token, .. } = event {
            self.tokens.push((*run, *token));
        }
        if let Event::RunEnded { record, .. } | Event::DeadLetterDiscarded { record, .. } = event {
            self.finals.retain(|r| r.run != record.run);
            self.finals.push(RunRecord::clone(record));
        }
        if let Event::RunReopened { record, .. } = event {
            self.finals.retain(|r| r.run != record.run);
        }
    }

    fn take(&mut self, effect: &Effect) {
        match effect {
            Effect::Enqueue(waiting) => {
                self.queue.insert(waiting.run);
            }
            Effect::Dequeue { run, .. } => {
                assert!(self.queue.remove(run) || !self.strict, "{run} left a queue it was not in");
            }
            Effect::Assign(assign) => {
                let assignment = &assign.assignment;
                self.queue.remove(&assignment.run);
                self.bodies.insert(assignment.run, (assignment.token, assign.session));
            }
            Effect::Ended { run, token, .. } => {
                let held = self.bodies.remove(run);
                assert!(!self.strict || held.is_some_and(|h| h.0 == *token), "{run} ended but was not held");
            }
            Effect::Stop { held, .. } => {
                let body = self.bodies.get(&held.run);
                assert!(!self.strict || body.is_some_and(|b| b.0 == held.token), "{} told to stop in vain", held.run);
            }
            Effect::Forget { held, .. } => {
                assert!(!self.bodies.contains_key(&held.run), "{} is forgotten while it is held", held.run);
            }
            Effect::Watch { session, held, .. } => {
                self.bodies.insert(held.run, (held.token, *session));
            }
        }
    }

    /// What a start reads of a job without runs is what the whole job says.
    fn check_resting(&self, job: &Job, hot: &[u8]) {
        let def = frame::encode(&*job.def);
        match Resting::decode(&def, hot).unwrap() {
            Some(resting) => {
                assert!(job.hot.runs.is_empty());
                assert_eq!((&*resting.tenant, &*resting.name), (&*job.def.tenant, &*job.def.name));
                assert!(!self.strict || resting.wake_ms == job.wake_at(self.now_ms), "{resting:?} of {job:?}");
            }
            None => {
                assert!(job.is_active() || job.hot.catch_up_ms.is_some() || job.def.jitter_sec > 0, "{job:?} rests");
            }
        }
    }

    /// What must hold of each decision by itself.
    fn check_decision(&self, context: &Context, decision: &Decision, next: &Job) {
        let mut replayed = self.job.clone();
        for event in &decision.events {
            apply(&mut replayed, event);
        }
        assert_same(&replayed, next, "apply over the events is the job after the decision");
        let bytes = next.encode_hot();
        let decoded = Job::decode(next.id, &frame::encode(&*next.def), &bytes).unwrap();
        assert_same(&decoded, next, "encoding the hot state loses nothing");
        assert_eq!(decoded.encode_hot(), bytes);
        let mut over = self.job.encode_hot().into_boxed_slice();
        next.encode_hot_over(&mut over);
        assert_eq!(*over, *bytes, "the state over the bytes of the one before");
        self.check_resting(next, &bytes);
        let mut used: Vec<u64> = decision.events.iter().filter_map(id_used).collect();
        assert!(used.len() as u64 <= context.ids.count);
        assert!(used.iter().all(|id| (context.ids.first..context.ids.first + context.ids.count).contains(id)));
        used.dedup();
        assert_eq!(used.len(), decision.events.iter().filter_map(id_used).count(), "an id was used twice");
        let frame = Frame {
            shard: ShardId(3),
            epoch: context.epoch,
            seq: 9,
            hlc: 77,
            events: decision.events.clone(),
            format: 1,
        };
        let bytes = frame::encode(&frame);
        let again: Frame = frame::decode("frame", &bytes).unwrap();
        assert_eq!(again, frame);
        assert_eq!(frame::encode(&again), bytes, "frames are byte-exact");
    }

    /// The pool and the executors hold, by effects alone, what the state says; `pending` says the same.
    fn check_outbox(&self) {
        let in_state = |wanted: fn(RunState) -> bool| -> BTreeSet<RunId> {
            self.job.hot.runs.iter().filter(|r| wanted(r.state())).map(|r| r.id()).collect()
        };
        let queued = in_state(|s| s == RunState::Queued);
        let running = in_state(|s| matches!(s, RunState::Running | RunState::SuspectedLost));
        // What a paused job holds asks for nothing.
        let asking = if self.job.holds_runs() { BTreeSet::new() } else { queued };
        assert_eq!(self.queue, asking, "queued by effects and by state");
        assert_eq!(self.bodies.keys().copied().collect::<BTreeSet<_>>(), running, "bodies by effects and by state");
        let (mut enqueued, mut watched, mut stopped) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for effect in pending(&self.job) {
            match effect {
                Effect::Enqueue(waiting) => assert!(enqueued.insert(waiting.run)),
                Effect::Watch { held, .. } => {
                    assert_eq!(self.bodies[&held.run].0, held.token);
                    assert!(watched.insert(held.run));
                }
                Effect::Stop { held, .. } => assert!(stopped.insert(held.run)),
                Effect::Dequeue { .. } | Effect::Assign(_) | Effect::Ended { .. } | Effect::Forget { .. } => {
                    panic!("not owed: {effect:?}")
                }
            }
        }
        assert_eq!((enqueued, watched), (asking, running));
        let stopping = self.job.hot.runs.iter().filter(|r| r.has_body() && r.stopping.is_some());
        assert_eq!(stopped, stopping.map(|r| r.id()).collect());
    }

    /// Wakes the job until it wants no wake at this time.
    pub fn settle(&mut self) {
        for _ in 0..WAKES {
            if self.job.wake_at(self.now_ms).is_none_or(|at| at > self.now_ms) {
                return;
            }
            self.command(&Command::Wake).unwrap();
            if self.steps.last().unwrap().events.is_empty() {
                let at = self.job.wake_at(self.now_ms);
                let spins = at.is_some_and(|at| at <= self.now_ms);
                assert!(
                    !spins || !self.strict,
                    "a wake at {} did nothing and wants to be woken at {at:?}",
                    self.now_ms
                );
                return;
            }
        }
        panic!("woken {WAKES} times at one instant");
    }

    /// Time goes on to `until_ms`; the shard wakes the job as a wheel does: at the tick after the one it asked for.
    pub fn pass(&mut self, until_ms: i64) {
        self.settle();
        for _ in 0..WAKES {
            let Some(at) = self.job.wake_at(self.now_ms).filter(|at| *at <= until_ms) else {
                self.now_ms = self.now_ms.max(until_ms);
                self.settle();
                return;
            };
            let tick = at.div_euclid(WHEEL_SLOT_MS) * WHEEL_SLOT_MS + WHEEL_SLOT_MS;
            self.now_ms = self.now_ms.max(tick);
            self.settle();
            if !self.strict && self.job.wake_at(self.now_ms).is_some_and(|at| at <= self.now_ms) {
                // A defect makes it spin: not what is looked for here.
                self.now_ms += 1_000;
            }
        }
        panic!("woken {WAKES} times before {until_ms}");
    }

    /// Drops what the pool holds, to see that it is missed.
    pub fn lose_queue(&mut self) {
        self.queue.clear();
    }

    pub fn crash(&mut self) {
        let mut job: Option<Job> = None;
        for event in self.events() {
            match (&mut job, event) {
                (Some(job), event) => apply(job, event),
                (none, Event::JobCreated { job: id, spec, at_ms }) => *none = Some(created(*id, spec.clone(), *at_ms)),
                (None, event) => panic!("the history begins with {event:?}"),
            }
        }
        let job = job.unwrap();
        assert_same(&job, &self.job, "replay of the whole history is the job");
        self.job = Job::decode(job.id, &frame::encode(&*job.def), &job.encode_hot()).unwrap();
        self.queue.clear();
        self.bodies.clear();
        for effect in pending(&self.job) {
            self.take(&effect);
        }
        if self.strict {
            self.check_outbox();
        }
    }
}

/// An executor's word.
pub fn ended(job: campanile_schema::ids::JobId, run: RunId, token: Token, state: AttemptState) -> Ended {
    let failed = state != AttemptState::Success;
    Ended {
        run,
        job,
        token,
        state,
        error_code: failed.then(|| "EXIT_1".to_owned()),
        error_message: failed.then(|| "exit code 1".to_owned()),
        result: (!failed).then(|| Payload(r#"{"rows":3}"#.to_owned())),
        cpu_ms: Some(12),
        max_rss_kb: None,
        permanent: false,
    }
}

pub fn context(now_ms: i64, ids: Ids, pauses: Vec<Pause>, queue_full: bool) -> Context {
    assert!(ids.count <= RUNS_PER_WAKE);
    Context {
        now_ms,
        ids,
        epoch: Epoch(7),
        pauses,
        queue_full,
        queue_half: queue_full,
        node_room: 1_000,
        overloaded: false,
        held: None,
        tzdb: tzdb_version(),
        sampling: None,
    }
}

/// The counter that an event takes.
pub fn id_used(event: &Event) -> Option<u64> {
    if let Event::RunCreated { run, .. } = event {
        return Some(run.counter());
    }
    if let Event::AttemptStarted { token, .. } = event { Some(token.0) } else { None }
}

pub fn assert_same(left: &Job, right: &Job, what: &str) {
    assert_eq!((left.id, &left.def, &left.hot), (right.id, &right.def, &right.hot), "{what}");
    let (a, b) = (left.schedule.next(left.hot.cursor_ms, None), right.schedule.next(left.hot.cursor_ms, None));
    assert_eq!(a, b, "{what}: schedule");
}
