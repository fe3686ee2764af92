//! A random job with a deadline, and the bookkeeping that says what must be missed: from the events of the runs and of the ledger alone.

use crate::support::make::{every, plain};
use campanile_core::{
    job::{Command, Context, Ids, Job, NodeAsked, Reply, apply::created, decide_next},
    outbox::{Bounds, MessageDraft, Outbox, Sending, keys},
    shard::Pause,
};
use campanile_schema::{
    event::{Event, Outcome, SkipReason},
    ids::{Epoch, ExecutorSession, RunId},
    job::{ConcurrencyPolicy, MisfirePolicy},
    payload::Payload,
    record::{AttemptState, RunRecord, RunState, Source},
    rpc::executor::Ended,
    stored::{
        OtherHooks, StoredHook, StoredJob,
        deadline::{DeadlineChange, StoredDeadline, StoredTiming},
        outbox::{MessageKind, OutboxEvent},
    },
};
use std::collections::BTreeMap;

const START: i64 = 1_782_000_000_000;
const MINUTE: i64 = 60_000;
/// Five and a half hours before UTC, always.
const ZONE: &str = "Asia/Kolkata";
const ZONE_MS: i64 = 19_800_000;

/// An open run, as the events have it.
struct Known {
    source: Source,
    /// What it stands for.
    instant_ms: Option<i64>,
    generation: u32,
    /// What it must end by, as far as is known.
    until_ms: Option<i64>,
    /// Seconds from its start, of a node.
    from_start: Option<u64>,
    attempts: u32,
    has_body: bool,
    /// It has missed a deadline in any generation.
    missed: bool,
}

pub struct World {
    job: Job,
    seed: u64,
    counter: u64,
    now_ms: i64,
    paused_since: Option<i64>,
    full: bool,
    outbox: Outbox,
    known: BTreeMap<RunId, Known>,
    /// The oldest instant that made no run: its time, and until when.
    owed: Option<(i64, i64)>,
    ended: Vec<RunRecord>,
    /// Runs of hooks to which the deadline and the end of a generation lead.
    led: BTreeMap<(RunId, u32), u32>,
    /// Deadlines that were missed, count.
    pub missed: u32,
    pub found: Option<String>,
}

fn hook(job: &str) -> StoredHook {
    StoredHook { job: job.into(), params: Payload::default(), compensation: false }
}

/// By arithmetic alone.
fn until(deadline: &StoredDeadline, instant_ms: i64) -> Option<i64> {
    match deadline {
        StoredDeadline::Due { within_sec } => Some(instant_ms + *within_sec as i64 * 1000),
        StoredDeadline::By { second, .. } => {
            let day = 24 * 60 * MINUTE;
            let today = (instant_ms + ZONE_MS).div_euclid(day) * day - ZONE_MS + i64::from(*second) * 1000;
            Some(if today > instant_ms { today } else { today + day })
        }
        StoredDeadline::Start { .. } => None,
    }
}

impl World {
    pub fn new(seed: u64) -> Self {
        let outbox = Outbox::new(1, Bounds::default());
        let mut world = Self {
            job: created(crate::support::make::job_id(), plain(every(60, START)), START),
            seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            counter: 10,
            now_ms: START,
            paused_since: None,
            full: false,
            outbox,
            known: BTreeMap::new(),
            owed: None,
            ended: Vec::new(),
            led: BTreeMap::new(),
            missed: 0,
            found: None,
        };
        let spec = world.definition();
        world.job = created(crate::support::make::job_id(), spec, START);
        world
    }

    fn below(&mut self, count: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % count
    }
    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn deadline(&mut self) -> StoredDeadline {
        let within_sec = 30 + self.below(400);
        match self.below(3) {
            0 => StoredDeadline::By { second: self.below(86_400) as u32, zone: ZONE.into() },
            1 => StoredDeadline::Due { within_sec },
            _ => StoredDeadline::Start { within_sec },
        }
    }

    fn definition(&mut self) -> StoredJob {
        use ConcurrencyPolicy::{Allow, Forbid, QueueOne, Replace};
        use MisfirePolicy::{FireAllMissed, FireOnceNow, Skip};
        let mut spec = plain(every(60, START));
        spec.concurrency = self.one_of(&[Allow, Forbid, Forbid, QueueOne, Replace]);
        spec.misfire = self.one_of(&[Skip, FireOnceNow, FireAllMissed]);
        spec.max_catch_up = 3;
        spec.max_attempts = 3;
        spec.base_delay_ms = 1_000;
        spec.timing = Some(Box::new(StoredTiming { deadline: Some(self.deadline()), min_duration_sec: None }));
        spec.on_failure = vec![hook("failed"); 4];
        let on_deadline = vec![hook("tell"); self.below(5) as usize];
        spec.other_hooks = Some(Box::new(OtherHooks { on_deadline, ..OtherHooks::default() }));
        spec
    }

    fn violated(&mut self, what: String) {
        self.found.get_or_insert(what);
    }

    fn decide(&mut self, command: &Command) -> Option<Reply> {
        let ids = Ids { first: self.counter + 1, count: command.ids_wanted() };
        self.counter += ids.count;
        let pause = |from_ms| Pause { from_ms, to_ms: None, reason: SkipReason::TenantPaused };
        let context = Context {
            now_ms: self.now_ms,
            ids,
            epoch: Epoch(1),
            pauses: self.paused_since.map(pause).into_iter().collect(),
            queue_full: self.full,
            queue_half: false,
            node_room: 0,
            overloaded: false,
            held: None,
            tzdb: "2026b",
            sampling: None,
        };
        let paused = self.paused_since.is_some() || self.job.holds_runs();
        let (decision, next) = decide_next(&self.job, command, &context).ok()?;
        // The keys of messages depend on their order only: one is numbered after the other.
        let mut sends = decision.sends.into_iter();
        for event in &decision.events {
            self.judge(event, paused, &mut sends);
        }
        if let Some(more) = sends.next() {
            self.violated(format!("nothing asks for {more:?}"));
        }
        self.job = next;
        Some(decision.reply)
    }

    fn judge(&mut self, event: &Event, paused: bool, sends: &mut impl Iterator<Item = MessageDraft>) {
        match event {
            Event::CursorMoved { entries, .. } => {
                for entry in entries {
                    let failed = match entry.outcome {
                        Outcome::Missed => true,
                        Outcome::Skipped => matches!(
                            entry.reason,
                            Some(SkipReason::RunActive | SkipReason::QueueFull | SkipReason::Misfire)
                        ),
                        _ => false,
                    };
                    let deadline = self.job.def.deadline().unwrap();
                    if let Some(until_ms) = until(deadline, entry.first_ms).filter(|_| failed && self.owed.is_none()) {
                        self.owed = Some((entry.first_ms, until_ms));
                    }
                    if let (Outcome::Coalesced, Some(run)) = (entry.outcome, entry.run) {
                        self.expect(run, until(deadline, entry.first_ms));
                    }
                }
            }
            Event::RunCreated { run, source: Source::Schedule, logical_ms, .. } => {
                let until_ms = until(self.job.def.deadline().unwrap(), logical_ms.unwrap());
                self.expect(*run, until_ms);
                self.known.get_mut(run).unwrap().instant_ms = *logical_ms;
            }
            Event::RunCreated { run, source, .. } => {
                self.expect(*run, None);
                self.known.get_mut(run).unwrap().source = *source;
            }
            Event::AttemptStarted { run, at_ms, .. } => {
                let of_job = match self.job.def.deadline() {
                    Some(StoredDeadline::Start { within_sec }) => Some(*within_sec),
                    _ => None,
                };
                let known = self.known.get_mut(run).unwrap();
                (known.has_body, known.attempts) = (true, known.attempts + 1);
                let own = known.from_start.take();
                if let Some(seconds) = own.or(of_job).filter(|_| known.attempts == 1 && known.until_ms.is_none()) {
                    known.until_ms = Some(at_ms + seconds as i64 * 1000);
                }
            }
            Event::AttemptEnded { run, .. } => self.known.get_mut(run).unwrap().has_body = false,
            Event::RunReopened { record, .. } => {
                let missed = record.timing.as_ref().is_some_and(|timing| timing.missed_ms.is_some());
                self.expect(record.run, None);
                let known = self.known.get_mut(&record.run).unwrap();
                (known.source, known.generation, known.missed) = (record.source, record.generation, missed);
                known.instant_ms = record.logical_ms;
            }
            Event::DeadlineChanged { change: DeadlineChange::Missed { run: Some(run), until_ms }, .. } => {
                self.missed(*run, *until_ms, paused, sends);
            }
            Event::DeadlineChanged { change: DeadlineChange::Missed { run: None, until_ms }, .. } => {
                self.missed += 1;
                match self.owed.take() {
                    Some((instant_ms, at_ms)) if at_ms == *until_ms && at_ms <= self.now_ms => {
                        self.sent(sends, None, Some(instant_ms));
                    }
                    other => self.violated(format!("{until_ms} of no run is missed, and {other:?} is owed")),
                }
            }
            Event::DeadlineChanged { change: DeadlineChange::Excused { run }, .. } => {
                let known = &self.known[run];
                if known.has_body || !paused || known.until_ms.is_none_or(|at| at > self.now_ms) {
                    self.violated(format!("run {run} is excused at {}", self.now_ms));
                }
                self.known.get_mut(run).unwrap().until_ms = None;
            }
            Event::RunEnded { record, .. } => self.ended(record, sends),
            _ => {}
        }
    }

    /// The first word counts: that of a coalesced instant comes before that of the run.
    fn expect(&mut self, run: RunId, until_ms: Option<i64>) {
        let fresh = Known {
            source: Source::Schedule,
            instant_ms: None,
            generation: 1,
            until_ms,
            from_start: None,
            attempts: 0,
            has_body: false,
            missed: false,
        };
        self.known.entry(run).or_insert(fresh);
    }

    fn missed(&mut self, run: RunId, until_ms: i64, paused: bool, sends: &mut impl Iterator<Item = MessageDraft>) {
        self.missed += 1;
        let Some(known) = self.known.get_mut(&run) else {
            return self.violated(format!("run {run} is not open and misses {until_ms}"));
        };
        let expected = known.until_ms.take();
        known.missed = true;
        if expected != Some(until_ms) || until_ms > self.now_ms {
            let now = self.now_ms;
            return self.violated(format!("run {run} misses {until_ms} instead of {expected:?} at {now}"));
        }
        if paused && !self.known[&run].has_body {
            return self.violated(format!("a pause keeps run {run} from running, and it misses {until_ms}"));
        }
        self.sent(sends, Some(run), None);
    }

    /// Each hook of a deadline is sent, under the key of its instant if it has one.
    fn sent(&mut self, sends: &mut impl Iterator<Item = MessageDraft>, run: Option<RunId>, instant_ms: Option<i64>) {
        for place in 0..self.job.def.hooks_of(campanile_schema::hooks::HookKind::Deadline).len() as u32 {
            let Some(wanted) = sends.next().filter(|of| of.kind == MessageKind::Deadline) else {
                return self.violated(format!("a hook of the deadline of {run:?} is not sent"));
            };
            let index = 1_024 + place;
            let instant_ms = match run.map(|run| &self.known[&run]) {
                Some(Known { source: Source::Schedule, generation: 1, instant_ms, .. }) => *instant_ms,
                Some(_) => None,
                None => instant_ms,
            };
            let key = match (instant_ms, run) {
                (Some(at), _) => format!("\u{1}ddl/{}/{at}/{index}", self.job.id),
                (None, Some(run)) => format!("\u{1}ddr/{run}/{}/{index}", self.known[&run].generation),
                (None, None) => String::new(),
            };
            let generation = run.map_or(1, |run| self.known[&run].generation);
            if let Some(run) = run {
                *self.led.entry((run, generation)).or_default() += 1 + wanted.budget.unwrap();
            }
            let mut sending = Sending::new(&self.outbox, self.now_ms);
            sending.send(wanted).unwrap();
            let [OutboxEvent::Sent(message)] = sending.events.as_slice() else {
                return self.violated("a hook of a deadline is dropped".to_owned());
            };
            if (message.index, keys::of(message)) != (index, key.clone()) {
                return self.violated(format!("a hook has the key {:?} instead of {key:?}", keys::of(message)));
            }
        }
    }

    fn ended(&mut self, record: &RunRecord, sends: &mut impl Iterator<Item = MessageDraft>) {
        let run = record.run;
        let known = self.known.remove(&run).unwrap();
        if let Some(until_ms) = known.until_ms.filter(|at| *at <= self.now_ms) {
            return self.violated(format!("run {run} ends at {} and has not missed {until_ms}", self.now_ms));
        }
        let told = record.timing.as_ref().is_some_and(|timing| timing.missed_ms.is_some());
        if told != known.missed {
            return self.violated(format!("the record of run {run} says {told} of a deadline that it missed"));
        }
        if matches!(record.state, RunState::Failed | RunState::Timeout) {
            for _ in 0..4 {
                let Some(wanted) = sends.next().filter(|of| of.kind == MessageKind::Hook) else {
                    return self.violated(format!("a hook of the end of {run} is not sent"));
                };
                *self.led.entry((run, record.generation)).or_default() += 1 + wanted.budget.unwrap();
            }
        }
        // Of the run of a node the end is sent as well.
        if record.dag.is_some() && sends.next().is_none_or(|of| of.kind != MessageKind::End) {
            return self.violated(format!("the end of {run} is not sent"));
        }
        if self.led.get(&(run, record.generation)).is_some_and(|led| *led > 64) {
            return self.violated(format!("more than 64 runs of hooks follow from run {run}"));
        }
        self.ended.push(record.clone());
    }

    /// As the shard does: whatever wants to be woken is, and nothing is late after that.
    fn pass(&mut self, ms: i64) {
        self.now_ms += ms;
        for _ in 0..64 {
            if self.found.is_some() || self.job.wake_at(self.now_ms).is_none_or(|at| at > self.now_ms) {
                break;
            }
            self.decide(&Command::Wake);
        }
        let late = self.known.iter().find(|(_, known)| known.until_ms.is_some_and(|at| at <= self.now_ms));
        if let Some(late) = late.map(|(run, known)| format!("run {run} was to end by {:?}", known.until_ms)) {
            self.violated(format!("{late}, and at {} nobody has looked", self.now_ms));
        }
        if let Some(owed) = self.owed.filter(|(_, until_ms)| *until_ms <= self.now_ms) {
            self.violated(format!("{owed:?} is owed, and at {} nobody has looked", self.now_ms));
        }
    }

    fn some_run(&mut self, is_it: impl Fn(RunState) -> bool) -> Option<RunId> {
        let runs: Vec<RunId> =
            (self.job.hot.runs.iter()).filter(|open| is_it(open.state())).map(|open| open.id()).collect();
        if runs.is_empty() { None } else { Some(self.one_of(&runs)) }
    }

    fn start(&mut self) {
        let Some(run) = self.some_run(|state| state == RunState::Queued) else { return };
        let (executor, session) = ("executor-1".into(), ExecutorSession(7));
        self.decide(&Command::Start { run, executor, session, credential: None, credit_stamp_ms: 0 });
    }

    fn finish(&mut self) {
        let Some(run) = self.some_run(|state| state == RunState::Running) else { return };
        let state =
            self.one_of(&[AttemptState::Success, AttemptState::Failed, AttemptState::Failed, AttemptState::Timeout]);
        let ended = Ended {
            run,
            job: self.job.id,
            token: self.job.run(run).unwrap().token().unwrap(),
            state,
            error_code: None,
            error_message: None,
            result: None,
            cpu_ms: None,
            max_rss_kb: None,
            permanent: false,
        };
        self.decide(&Command::Finish(Box::new(ended)));
    }

    /// The run of a DAG's node, in its first generation or a later one.
    fn node(&mut self) {
        self.counter += 1;
        let (scheduled, generation) = (self.chance(2), if self.chance(3) { 2 } else { 1 });
        let deadline = if self.chance(2) { Some(self.deadline()) } else { None };
        let instant_ms = self.now_ms - self.below(100) as i64 * 1000;
        let (def, own) = (self.job.def.deadline().cloned(), deadline.clone());
        let asked = NodeAsked {
            key: format!("\u{1}n{}/0", self.counter),
            dag: RunId(self.counter),
            node: 0,
            generation,
            params: Payload::default(),
            timeout_sec: None,
            logical_ms: Some(instant_ms),
            depth: 1,
            confirm: false,
            marked: false,
            back: false,
            record: None,
            trace: None,
            budget: None,
            deadline,
            scheduled,
        };
        let Some(Reply::Run(view)) = self.decide(&Command::StartNode(Box::new(asked))) else { return };
        let known = self.known.get_mut(&view.run_id).unwrap();
        match own.as_ref().or(def.as_ref()).unwrap() {
            StoredDeadline::Start { within_sec } => known.from_start = own.is_some().then_some(*within_sec),
            counts if scheduled && generation == 1 => known.until_ms = until(counts, instant_ms),
            StoredDeadline::Due { .. } | StoredDeadline::By { .. } => {}
        }
        self.pass(0);
    }

    fn retry(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let at = self.below(self.ended.len() as u64) as usize;
        let record = Box::new(self.ended[at].clone());
        if self.decide(&Command::Reopen { record, redrive: false, reason: None, force: true }).is_some() {
            self.ended.swap_remove(at);
        }
    }

    pub fn step(&mut self) {
        match self.below(24) {
            0..=5 => {
                let ms = 1 + self.below(40_000) as i64;
                self.pass(ms);
            }
            // An outage.
            6 => {
                let ms = self.below(30 * 60_000) as i64;
                self.pass(ms);
            }
            7 if self.chance(4) => {
                let ms = self.below(26 * 3_600_000) as i64;
                self.pass(ms);
            }
            7..=11 => self.start(),
            12..=16 => self.finish(),
            17 => {
                drop(self.decide(&Command::Trigger { key: None, params: None, reason: None, by: None, sealed: None }))
            }
            18 => self.node(),
            19 => self.retry(),
            20 => {
                let pauses = self.job.hot.status == campanile_schema::job::JobStatus::Enabled && self.chance(2);
                self.decide(&if pauses { Command::Pause { reason: None } } else { Command::Resume });
            }
            21 => {
                self.paused_since = if self.paused_since.is_none() { Some(self.now_ms) } else { None };
                self.pass(0);
            }
            22 => self.full = self.chance(3),
            _ => {
                if let Some(run) = self.some_run(|state| state == RunState::Queued) {
                    self.decide(&Command::Cancel { run, reason: None });
                }
            }
        }
    }
}
