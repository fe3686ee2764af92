//! Random jobs that are hooks of each other, their runs, ends, cancels and retries, with messages that arrive late and twice. What must be
//! started is computed anew from the definitions, by a bookkeeping that never asks `campanile_core::hooks`. Each clause is broken once,
//! and that is seen.

use crate::support::make::plain;
use campanile_core::{
    hooks::{self, Rule, rules::break_rule},
    job::{Command, Context, Ids, Job, Reply, Taken, apply::created, decide_next},
    outbox::{Bounds, Outbox, Sending, body, keys},
};
use campanile_schema::{
    error::ErrorCode,
    event::Event,
    frame::decode,
    hooks::HookKind,
    ids::{Epoch, ExecutorSession, JobId, RunId, make_id},
    limits::{HOOK_BUDGET, MESSAGE_DEPTH},
    payload::Payload,
    peer::outbox::{HookBody, NodeBody},
    record::{AttemptState, RunRecord, RunState, Source},
    rpc::executor::Ended,
    stored::{
        OtherHooks, StoredHook, StoredJob, StoredTrigger,
        outbox::{Message, MessageKind, OutboxEvent},
    },
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

const JOBS: u64 = 5;
const SEEDS: u64 = 120;
const STEPS: usize = 400;

/// One end of a run to which no hook has led, or that a person has started again: what follows from it has one budget.
type Line = (RunId, u32);

struct World {
    jobs: BTreeMap<String, Job>,
    seed: u64,
    counter: u64,
    now_ms: i64,
    outbox: Outbox,
    /// Messages, some of which were delivered already, with the run that sent them as it ended.
    messages: Vec<(Message, RunRecord)>,
    keys: BTreeSet<(String, String)>,
    ended: BTreeMap<RunId, RunRecord>,
    lines: BTreeMap<RunId, Line>,
    /// Runs of hooks that followed, by line.
    followed: BTreeMap<Line, u32>,
    /// Runs whose compensation was sent, or dropped.
    undone: BTreeSet<RunId>,
    dropped: u32,
    found: Option<String>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            jobs: BTreeMap::new(),
            seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            counter: 10,
            now_ms: 1_782_000_000_000,
            outbox: Outbox::new(1, Bounds::default()),
            messages: Vec::new(),
            keys: BTreeSet::new(),
            ended: BTreeMap::new(),
            lines: BTreeMap::new(),
            followed: BTreeMap::new(),
            undone: BTreeSet::new(),
            dropped: 0,
            found: None,
        };
        for n in 0..JOBS {
            let spec = world.definition(n);
            world.counter += 1;
            let id = JobId(make_id(world.counter, n));
            world.jobs.insert(name(n), created(id, spec, world.now_ms));
        }
        world
    }

    fn below(&mut self, count: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % count
    }
    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn some_hooks(&mut self, of: u64, undo: bool) -> Vec<StoredHook> {
        let count = self.below(4);
        let hook = |world: &mut Self| {
            let job = (of + 1 + world.below(JOBS - 1)) % JOBS;
            StoredHook { job: name(job).into(), params: Payload::default(), compensation: undo && world.chance(3) }
        };
        (0..count).map(|_| hook(self)).collect()
    }

    fn definition(&mut self, n: u64) -> StoredJob {
        let mut spec = plain(StoredTrigger::Manual {});
        spec.name = name(n).into();
        spec.concurrency = campanile_schema::job::ConcurrencyPolicy::Allow;
        (spec.max_attempts, spec.no_dead_letter) = (1, self.chance(3));
        spec.on_failure = self.some_hooks(n, true);
        let others = OtherHooks {
            on_success: self.some_hooks(n, false),
            on_timeout: self.some_hooks(n, true),
            on_dead_letter: self.some_hooks(n, true),
            on_deadline: Vec::new(),
        };
        spec.other_hooks = Some(Box::new(others));
        spec
    }

    fn violated(&mut self, what: String) {
        self.found.get_or_insert(what);
    }

    fn decide(&mut self, job: &str, command: &Command) -> Result<Reply, ErrorCode> {
        self.now_ms += 10;
        let ids = Ids { first: self.counter + 1, count: command.ids_wanted() };
        self.counter += ids.count;
        let context = Context {
            now_ms: self.now_ms,
            ids,
            epoch: Epoch(1),
            pauses: Vec::new(),
            queue_full: false,
            queue_half: false,
            node_room: 0,
            overloaded: false,
            held: None,
            tzdb: "2026b",
            sampling: None,
        };
        let (decision, next) = decide_next(&self.jobs[job], command, &context).map_err(|refused| refused.code)?;
        self.jobs.insert(job.to_owned(), next);
        let mut sending = Sending::new(&self.outbox, self.now_ms);
        decision.sends.into_iter().for_each(|wanted| sending.send(wanted).unwrap());
        let sent = sending.events;
        sent.iter().for_each(|event| self.outbox.apply(event));
        // What the outbox holds is tested elsewhere: here it has room.
        let ids = self.outbox.owed().map(|message| message.id).collect();
        self.outbox.apply(&OutboxEvent::Settled { ids });
        for event in &decision.events {
            if let Event::RunEnded { record, .. } = event {
                self.judge(job, record, &sent);
                self.ended.insert(record.run, (**record).clone());
            }
        }
        Ok(decision.reply)
    }

    /// What the end of a run must start, by its job's definition and by nothing else.
    fn expected(&self, job: &str, record: &RunRecord) -> Vec<(u32, String, bool)> {
        let def = &self.jobs[job].def;
        let others = def.other_hooks.clone().unwrap_or_default();
        let failed = matches!(record.state, RunState::Failed | RunState::Timeout);
        let lists = [
            (failed, 0, &def.on_failure),
            (record.state == RunState::Success, 256, &others.on_success),
            (record.state == RunState::Timeout, 512, &others.on_timeout),
            (failed && !def.no_dead_letter, 768, &others.on_dead_letter),
        ];
        let undone = self.undone.contains(&record.run);
        let of = |first: u32, list: &[StoredHook]| {
            let numbered = (first..).zip(list.to_vec());
            numbered.map(|(number, hook)| (number, hook.job.to_string(), hook.compensation)).collect::<Vec<_>>()
        };
        let all = lists.into_iter().filter(|(starts, ..)| *starts).flat_map(|(_, first, list)| of(first, list));
        all.filter(|(_, _, undoes)| !(*undoes && undone)).collect()
    }

    fn judge(&mut self, job: &str, record: &RunRecord, sent: &[OutboxEvent]) {
        let expected = self.expected(job, record);
        let mut got = Vec::new();
        for event in sent {
            let (OutboxEvent::Sent(message) | OutboxEvent::Dropped { message, .. }) = event else { continue };
            let undoes = message.kind == MessageKind::Compensation;
            got.push((message.index, message.job.clone().unwrap().to_string(), undoes));
            if undoes {
                // Also one that is dropped: a person may send it again.
                self.undone.insert(record.run);
            }
            if let OutboxEvent::Sent(message) = event {
                self.messages.push((message.clone(), record.clone()));
            } else {
                self.dropped += 1;
            }
        }
        if got != expected {
            self.violated(format!("{} of {job} starts {got:?} instead of {expected:?}", record.state));
        }
        if record.compensated != self.undone.contains(&record.run) {
            self.violated(format!("run {} does not know whether it was undone", record.run));
        }
    }

    fn trigger(&mut self) {
        let job = name(self.below(JOBS));
        let trigger = Command::Trigger { key: None, params: None, reason: None, by: None, sealed: None };
        if let Ok(Reply::Run(view)) = self.decide(&job, &trigger) {
            self.lines.insert(view.run_id, (view.run_id, 1));
        }
    }

    /// A message arrives. It stays, and may arrive once more.
    fn deliver(&mut self) {
        if self.messages.is_empty() {
            return;
        }
        let at = self.below(self.messages.len() as u64) as usize;
        let again = self.chance(4);
        let (message, record) = if again { self.messages[at].clone() } else { self.messages.swap_remove(at) };
        let target = message.job.clone().unwrap().to_string();
        let key = keys::of(&message);
        // `outbox::take`, in short.
        if message.depth > MESSAGE_DEPTH || !self.keys.insert((target.clone(), key.clone())) {
            return;
        }
        let HookBody { params, reason, budget, .. } =
            decode("hook", &body::hook(&message, Some(&record), None)).unwrap();
        let source = keys::source(message.kind).unwrap();
        let depth = message.depth;
        let taken = Taken {
            key,
            source,
            params,
            reason,
            depth,
            confirm: false,
            marked: false,
            trace: None,
            budget,
            sealed: None,
        };
        match self.decide(&target, &Command::Take(Box::new(taken))) {
            Ok(Reply::Run(view)) => self.made(&message, &record, view.run_id, view.source),
            // The job has too many open runs: it comes again.
            Err(ErrorCode::JobQueueFull) => {
                self.keys.remove(&(target, keys::of(&message)));
                self.messages.push((message, record));
            }
            other => panic!("{other:?}"),
        }
    }

    fn made(&mut self, message: &Message, of: &RunRecord, run: RunId, source: Source) {
        let mut line = self.lines[&message.run];
        if message.generation > 1 {
            // A person has started the sender again.
            line = (message.run, message.generation);
        }
        self.lines.insert(run, line);
        let followed = self.followed.entry(line).or_default();
        *followed += 1;
        if *followed > HOOK_BUDGET {
            self.violated(format!("more than {HOOK_BUDGET} runs follow from {line:?}"));
        }
        let def = &self.jobs.values().find(|job| job.id == of.job).unwrap().def;
        let kind = HookKind::ALL[(message.index / 256) as usize];
        let undoes = def.hooks_of(kind)[(message.index % 256) as usize].compensation;
        if undoes != (source == Source::Compensation) {
            self.violated(format!("run {run} has the source {source}"));
        }
    }

    /// An open run ends somehow.
    fn end_one(&mut self) {
        let open: Vec<(String, RunId)> = (self.jobs.iter())
            .flat_map(|(name, job)| job.hot.runs.iter().map(|open| (name.clone(), open.id())))
            .collect();
        if open.is_empty() {
            return;
        }
        let (job, run) = open[self.below(open.len() as u64) as usize].clone();
        if self.chance(8) {
            self.decide(&job, &Command::Cancel { run, reason: None }).unwrap();
            return;
        }
        let (executor, session) = ("executor-1".into(), ExecutorSession(7));
        let start = Command::Start { run, executor, session, credential: None, credit_stamp_ms: 0 };
        self.decide(&job, &start).unwrap();
        let state = [AttemptState::Success, AttemptState::Failed, AttemptState::Timeout][self.below(3) as usize];
        let of = &self.jobs[&job];
        let ended = Ended {
            run,
            job: of.id,
            token: of.run(run).unwrap().token().unwrap(),
            state,
            error_code: None,
            error_message: None,
            result: None,
            cpu_ms: None,
            max_rss_kb: None,
            permanent: false,
        };
        self.decide(&job, &Command::Finish(Box::new(ended))).unwrap();
    }

    fn retry(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let at = self.below(self.ended.len() as u64) as usize;
        let record = self.ended.values().nth(at).unwrap().clone();
        let job = self.jobs.iter().find(|(_, job)| job.id == record.job).unwrap().0.clone();
        let (run, force) = (record.run, self.chance(2));
        let asks = self.undone.contains(&run) && !force;
        let reopen = Command::Reopen { record: Box::new(record), redrive: false, reason: None, force };
        match self.decide(&job, &reopen) {
            Err(ErrorCode::Compensated) if asks => {}
            Ok(_) if asks => self.violated(format!("run {run} goes on although it was undone")),
            Err(ErrorCode::Compensated) => self.violated(format!("run {run} was not undone, or it was forced")),
            Ok(_) => drop(self.ended.remove(&run)),
            // Open again already.
            Err(_) => {}
        }
    }

    fn step(&mut self) {
        match self.below(16) {
            0 => self.trigger(),
            1 => self.retry(),
            2..=8 => self.deliver(),
            _ => self.end_one(),
        }
    }
}

fn name(n: u64) -> String {
    format!("job-{n}")
}

/// What goes wrong in a history, and how many hooks it dropped.
fn history(seed: u64) -> (Option<String>, u32) {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        world.step();
        if world.found.is_some() {
            break;
        }
    }
    (world.found, world.dropped)
}

#[test]
fn each_end_starts_its_hooks_within_the_budget_and_undoes_once() {
    let mut dropped = 0;
    for seed in 0..SEEDS {
        let (found, of) = history(seed);
        assert_eq!(found, None, "seed {seed}");
        dropped += of;
    }
    assert!(dropped > 0, "no history used a budget up");
}

#[test]
fn each_clause_that_is_broken_is_found() {
    for rule in Rule::ALL.into_iter().filter(|rule| !matches!(rule, Rule::NodesShare | Rule::DeadlineShares)) {
        break_rule(Some(rule));
        let found = (0..SEEDS).find_map(|seed| history(seed).0.map(|what| (seed, what)));
        break_rule(None);
        let (seed, what) = found.unwrap_or_else(|| panic!("{rule:?} is broken, and nothing shows it"));
        assert_eq!(history(seed).0, None, "{rule:?} was found as: {what}");
    }
}

/// Budgets of the runs of the nodes of a DAG run that has a budget of 20.
fn budgets_of_nodes(nodes: usize) -> u32 {
    // As they are stored.
    let run = json!({"r": 4_097, "j": 9, "t": "acme", "s": 2, "o": 4, "c": 1, "hb": 20});
    let run: RunRecord = serde_json::from_value(run).unwrap();
    let of_node = |place: u32| {
        let start =
            json!({"i": 1, "f": 1, "t": 2, "k": 0, "n": "acme", "r": 4_097, "j": "a", "b": 10, "a": 2, "x": place});
        let start: Message = serde_json::from_value(start).unwrap();
        let bytes = body::node(&start, Payload::default(), (None, None), (&run, nodes), None);
        decode::<NodeBody>("node", &bytes).unwrap().budget.unwrap()
    };
    (0..nodes as u32).map(of_node).sum()
}

#[test]
fn the_nodes_of_a_dag_run_share_what_a_hook_left_it() {
    let shared = || budgets_of_nodes(6) <= 20;
    assert!(shared());
    break_rule(Some(Rule::NodesShare));
    let broken = shared();
    break_rule(None);
    assert!(!broken);
    assert_eq!(hooks::of_node(None, 6), None, "of a root they are roots");
}
