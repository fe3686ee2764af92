//! Jobs that decide, and messages between them: the world of `dag_jobs`.

use crate::support::make::plain;
use campanile_core::{
    graph::{
        run::GraphRun,
        step::{EndState, GraphCommand, NodeEnd},
    },
    job::{
        Command, Context, Ids, Job, NodeAsked, OpenRun, Reply,
        apply::{apply, created},
        dag::owed,
        decide_next,
    },
    outbox::{MessageDraft, body, keys},
    reject::Rejection,
};
use campanile_schema::{
    event::Event,
    graph::{EdgeSpec, GraphSpec, NodeSpec, StoredGraph, state::NodeState},
    ids::{Epoch, ExecutorSession, JobId, RunId, make_id},
    payload::Payload,
    peer::shard::GraphAction,
    record::{AttemptState, RunRecord, RunState, Source},
    rpc::executor::Ended,
    stored::{StoredAction, StoredJob, StoredTrigger, outbox::MessageKind},
};
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub const DAG: &str = "dag";

/// What can be wrong in what carries messages between jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flaw {
    /// Nobody looks for the run of a key.
    KeyUnknown,
    /// A message without room is never sent.
    OwedUnsent,
    /// The record of a run that has ended is not found.
    RecordLost,
}

thread_local! {
    pub static FLAW: Cell<Option<Flaw>> = const { Cell::new(None) };
}

fn has(flaw: Flaw) -> bool {
    FLAW.get() == Some(flaw)
}

pub struct World {
    pub jobs: BTreeMap<String, Job>,
    pub counter: u64,
    pub now_ms: i64,
    pub seed: u64,
    /// Messages that were decided. Some are delivered more than once.
    pub messages: Vec<MessageDraft>,
    /// All that told of an end.
    pub told: Vec<MessageDraft>,
    /// Runs as they ended, each generation.
    pub ends: BTreeMap<(RunId, u32), RunRecord>,
    pub newest: BTreeMap<RunId, RunRecord>,
    /// When bodies began and ended, by job.
    pub bodies: BTreeMap<String, Vec<(i64, i64)>>,
    /// Jobs whose bodies fail.
    pub failing: BTreeSet<String>,
}

pub fn graph(edges: &[(&str, &str)], names: &[&str]) -> GraphSpec {
    let nodes = names.iter().map(|name| NodeSpec::new(name, name)).collect();
    GraphSpec::new(nodes, edges.iter().map(|(from, to)| EdgeSpec::new(from, to)).collect())
}

impl World {
    pub fn new(graph: &GraphSpec, seed: u64) -> Self {
        let mut world = Self {
            jobs: BTreeMap::new(),
            counter: 10,
            now_ms: 1_782_000_000_000,
            seed,
            messages: Vec::new(),
            told: Vec::new(),
            ends: BTreeMap::new(),
            newest: BTreeMap::new(),
            bodies: BTreeMap::new(),
            failing: BTreeSet::new(),
        };
        let mut dag = named(DAG);
        dag.action = Some(StoredAction::Dag(Arc::new(StoredGraph::from(graph))));
        world.make(dag);
        graph.nodes.iter().for_each(|node| world.make(named(&node.job)));
        world
    }

    pub fn make(&mut self, spec: StoredJob) {
        self.counter += 1;
        let (id, name) = (JobId(make_id(self.counter, self.jobs.len() as u64)), spec.name.to_string());
        self.jobs.insert(name, created(id, spec, self.now_ms));
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
    pub fn below(&mut self, count: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % count
    }

    /// Decides, and keeps what follows. Replay of the events gives the same job.
    pub fn decide(&mut self, name: &str, command: &Command) -> Result<Reply, Rejection> {
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
            node_room: 1_000,
            overloaded: false,
            held: None,
            tzdb: "2026b",
            sampling: None,
        };
        let job = &self.jobs[name];
        let (decision, next) = decide_next(job, command, &context)?;
        let mut replayed = job.clone();
        decision.events.iter().for_each(|event| apply(&mut replayed, event));
        assert_eq!(replayed.hot, next.hot, "replay of {command:?}");
        let graphs = |job: &Job| job.graphs.iter().map(|(run, open)| (*run, (*open.run).clone())).collect::<Vec<_>>();
        assert!(graphs(&replayed) == graphs(&next), "replay of {command:?}");
        for event in &decision.events {
            if let Event::RunEnded { record, .. } = event {
                self.ends.insert((record.run, record.generation), (**record).clone());
                self.newest.insert(record.run, (**record).clone());
            }
        }
        self.told.extend(decision.sends.iter().filter(|sent| sent.kind == MessageKind::End).cloned());
        self.messages.extend(decision.sends);
        self.jobs.insert(name.to_owned(), next);
        Ok(decision.reply)
    }

    pub fn trigger(&mut self) -> RunId {
        let trigger = Command::Trigger { key: None, params: None, reason: None, by: None, sealed: None };
        match self.decide(DAG, &trigger).unwrap() {
            Reply::Run(view) => view.run_id,
            other => panic!("{other:?}"),
        }
    }

    /// Only what is stored is left: the jobs' bytes, the states of open DAG runs, and the messages.
    pub fn crash(&mut self) {
        for job in self.jobs.values_mut() {
            let mut read = Job::decode(job.id, &campanile_schema::frame::encode(&*job.def), &job.encode_hot()).unwrap();
            for (run, open) in &job.graphs {
                let state = Arc::new(GraphRun::from_stored(open.run.graph().clone(), &open.run.to_stored()));
                let mut open = open.clone();
                open.run = state;
                read.graphs.insert(*run, open);
            }
            *job = read;
        }
        // There was no room for some messages to nodes. What is owed says which.
        let all = self.chance(2);
        self.messages.retain(|message| all || message.kind == MessageKind::End);
        if !has(Flaw::OwedUnsent) {
            self.messages.extend(owed(&self.jobs[DAG], true));
        }
    }

    pub fn deliver(&mut self) {
        let at = self.below(self.messages.len() as u64) as usize;
        let message = if self.chance(4) { self.messages[at].clone() } else { self.messages.swap_remove(at) };
        match message.kind {
            MessageKind::Start | MessageKind::Cancel => self.deliver_to_node(&message),
            MessageKind::End => {
                let record = &self.ends[&(message.run, message.generation)];
                let end = node_end(record);
                let step = Box::new(GraphCommand::End(end));
                let run = RunId(record.dag.unwrap().0);
                self.decide(DAG, &Command::Graph { run, step }).unwrap();
            }
            MessageKind::Hook | MessageKind::Compensation | MessageKind::Deadline => panic!("no job has hooks"),
        }
    }

    pub fn deliver_to_node(&mut self, message: &MessageDraft) {
        let dag = &self.jobs[DAG];
        let (Some(open), Some(run)) = (dag.graphs.get(&message.run), dag.run(message.run)) else { return };
        let node = open.run.node(message.index);
        if node.generation() != message.generation || !node.state().has_run() {
            return;
        }
        let start = open.start_body(&run.record, message.index).unwrap();
        let key = keys::node(message.run, message.index);
        let known = |record: &&RunRecord| record.key.as_deref() == Some(&*key);
        let name = start.job.to_string();
        let is_open = self.jobs[&name].hot.runs.iter().any(|open| known(&&*open.record));
        let record = self.newest.values().find(known).filter(|_| !is_open && !has(Flaw::RecordLost));
        let record = record.cloned().map(Box::new);
        let key = if has(Flaw::KeyUnknown) { format!("{key}-{}", self.counter) } else { key };
        let asked = Box::new(NodeAsked {
            key,
            dag: message.run,
            node: message.index,
            generation: message.generation,
            params: start.params,
            timeout_sec: start.timeout_sec,
            logical_ms: start.logical_ms,
            depth: message.depth + 1,
            confirm: false,
            marked: false,
            back: false,
            record,
            trace: None,
            budget: None,
            deadline: start.deadline,
            scheduled: run.record.source == Source::Schedule,
        });
        let starts = message.kind == MessageKind::Start;
        let command = if starts { Command::StartNode(asked) } else { Command::CancelNode(asked) };
        let step = match self.decide(&name, &command).unwrap() {
            Reply::Run(view) => {
                GraphCommand::Taken { node: message.index, generation: view.generation, run: view.run_id }
            }
            Reply::Final(record) => GraphCommand::End(node_end(&record)),
            other => panic!("{other:?}"),
        };
        self.decide(DAG, &Command::Graph { run: message.run, step: Box::new(step) }).unwrap();
    }

    /// The names of jobs with a run that waits for an executor, or that one has.
    pub fn with(&self, state: RunState) -> Vec<String> {
        let has = |job: &Job| job.hot.runs.iter().any(|open| open.state() == state && !open.graph);
        self.jobs.iter().filter(|(_, job)| has(job)).map(|(name, _)| name.clone()).collect()
    }

    pub fn work(&mut self, name: &str) {
        let first = |job: &Job, state| job.hot.runs.iter().find(|open| open.state() == state).map(OpenRun::id);
        if let Some(run) = first(&self.jobs[name], RunState::Queued) {
            let (executor, session) = ("executor-1".into(), ExecutorSession(7));
            let start = Command::Start { run, executor, session, credential: None, credit_stamp_ms: 0 };
            self.decide(name, &start).unwrap();
            let began = self.now_ms;
            let state = if self.failing.contains(name) { AttemptState::Failed } else { AttemptState::Success };
            let job = &self.jobs[name];
            let ended = Ended {
                run,
                job: job.id,
                token: job.run(run).unwrap().token().unwrap(),
                state,
                error_code: None,
                error_message: None,
                result: Some(Payload("{\"rows\":3}".to_owned())),
                cpu_ms: None,
                max_rss_kb: None,
                permanent: false,
            };
            self.decide(name, &Command::Finish(Box::new(ended))).unwrap();
            self.bodies.entry(name.to_owned()).or_default().push((began, self.now_ms));
        }
    }

    /// Until nothing is left to do, in an order of chance.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            let queued = self.with(RunState::Queued);
            if self.messages.is_empty() && queued.is_empty() {
                return;
            }
            if self.chance(20) {
                self.crash();
            }
            if !queued.is_empty() && (self.messages.is_empty() || self.chance(2)) {
                let at = self.below(queued.len() as u64) as usize;
                self.work(&queued[at]);
            } else if !self.messages.is_empty() {
                self.deliver();
            }
        }
        panic!("it does not end: {:?}", self.messages);
    }

    pub fn state(&self, run: RunId) -> RunState {
        self.jobs[DAG].run(run).map_or_else(|| self.newest[&run].state, OpenRun::state)
    }
    pub fn nodes(&self, run: RunId) -> Vec<NodeState> {
        match self.jobs[DAG].graphs.get(&run) {
            Some(open) => open.run.nodes().iter().map(|node| node.state()).collect(),
            None => self.newest[&run].graph.as_ref().unwrap().state.nodes.iter().map(|node| node.state).collect(),
        }
    }
    pub fn count(&self, name: &str) -> usize {
        self.bodies.get(name).map_or(0, Vec::len)
    }

    /// Changes a run that has ended.
    pub fn change(&mut self, run: RunId, action: GraphAction) -> Result<Reply, Rejection> {
        let record = Some(Box::new(self.newest[&run].clone()));
        self.decide(DAG, &Command::ChangeGraph { run, record, action: Box::new(action) })
    }
}

fn named(name: &str) -> StoredJob {
    let mut spec = plain(StoredTrigger::Manual {});
    (spec.name, spec.max_attempts) = (name.into(), 1);
    spec
}

fn node_end(record: &RunRecord) -> NodeEnd {
    let end = body::end(record).unwrap();
    let state = match end.state {
        RunState::Success => EndState::Success,
        RunState::Canceled => EndState::Canceled,
        _ => EndState::Failed,
    };
    NodeEnd { node: end.node, generation: end.generation, run: end.run, state, result: end.result }
}
