//! A shard of the model: what it holds, how that changes, and what its owner keeps in memory.

use campanile_core::outbox::{Bounds, Courier, KeyMemory, Outbox};
use campanile_schema::{
    ids::{Epoch, JobId, RunId, SLOTS},
    limits::DELIVER_BYTES,
    peer::outbox::Delivered,
    record::Source,
    stored::outbox::{MessageKind, OutboxEvent, OutboxHead},
};
use std::collections::{BTreeMap, VecDeque};

/// Small, so that they are reached.
pub const BOUNDS: Bounds =
    Bounds { messages: 12, bytes: 2 * DELIVER_BYTES, hooks: 8, hooks_to_one: 4, tenant_part: 2, ends: 3 };

#[derive(Clone, Debug)]
pub struct JobRow {
    pub id: JobId,
    pub tenant: String,
    pub name: String,
    pub created_ms: i64,
    pub not_idempotent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Open,
    /// Waits for a person.
    Confirm,
    Ended {
        ok: bool,
        at_ms: i64,
    },
}

#[derive(Clone, Debug)]
pub struct Run {
    pub id: RunId,
    pub job: JobId,
    pub tenant: String,
    pub key: Option<String>,
    pub source: Source,
    pub generation: u32,
    pub phase: Phase,
    pub created_ms: i64,
    pub marked: bool,
    pub depth: u32,
    /// The effect that it is; the path of what it sends.
    pub path: String,
    pub parent: Option<RunId>,
    /// Of a DAG run: nodes, and whether each was started and has ended.
    pub nodes: Vec<(bool, bool)>,
    pub shown: bool,
    /// Its compensation was sent: it is not sent again, also when the key of it is gone.
    pub compensated: bool,
    pub not_idempotent: bool,
    /// A person has said that its body ran.
    pub confirmed_as_ended: bool,
}

impl Run {
    pub fn is_dag(&self) -> bool {
        !self.nodes.is_empty()
    }
}

/// A change of a shard, as events are.
#[derive(Clone, Debug)]
pub enum Change {
    JobMade(JobRow),
    JobGone(JobRow),
    RunMade(Box<Run>),
    RunEnded {
        run: RunId,
        ok: bool,
        at_ms: i64,
    },
    Reopened(RunId),
    Confirmed(RunId),
    NodeStarted {
        run: RunId,
        node: u32,
    },
    /// By the child's path.
    NodeEnded {
        run: RunId,
        effect: String,
    },
    /// An effect that this decision asks for.
    Decides(String),
    Out(OutboxEvent),
}

#[derive(Clone, Debug)]
pub struct State {
    pub jobs: BTreeMap<JobId, JobRow>,
    pub runs: BTreeMap<RunId, Run>,
    /// Paths of the runs that this shard has sent messages of: they name effects.
    pub paths: BTreeMap<RunId, String>,
    pub outbox: Outbox,
    pub counter: u64,
}

impl State {
    pub fn new(shards: u16) -> Self {
        Self {
            jobs: BTreeMap::new(),
            runs: BTreeMap::new(),
            paths: BTreeMap::new(),
            outbox: Outbox::new(shards, BOUNDS),
            counter: 0,
        }
    }

    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::JobMade(job) => {
                self.counter = self.counter.max(job.id.0 / SLOTS);
                self.jobs.insert(job.id, job.clone());
            }
            Change::JobGone(job) => {
                self.jobs.remove(&job.id);
            }
            Change::RunMade(run) => {
                self.counter = self.counter.max(run.id.0 / SLOTS);
                self.paths.insert(run.id, run.path.clone());
                self.runs.insert(run.id, (**run).clone());
            }
            Change::RunEnded { run, ok, at_ms } => {
                if let Some(run) = self.runs.get_mut(run) {
                    run.confirmed_as_ended = run.phase == Phase::Confirm;
                    run.phase = Phase::Ended { ok: *ok, at_ms: *at_ms };
                }
            }
            Change::Reopened(run) => {
                if let Some(run) = self.runs.get_mut(run) {
                    run.phase = Phase::Open;
                    run.generation += 1;
                }
            }
            Change::Confirmed(run) => {
                if let Some(run) = self.runs.get_mut(run) {
                    run.phase = Phase::Open;
                }
            }
            Change::NodeStarted { run, node } => {
                if let Some(node) = self.runs.get_mut(run).and_then(|run| run.nodes.get_mut(*node as usize)) {
                    node.0 = true;
                }
            }
            Change::NodeEnded { run, effect } => {
                let node = effect.rsplit('/').nth(1).and_then(|node| node.strip_prefix('n')?.parse::<usize>().ok());
                if let (Some(run), Some(node)) = (self.runs.get_mut(run), node)
                    && let Some(node) = run.nodes.get_mut(node)
                {
                    node.1 = true;
                }
            }
            Change::Decides(_) => {}
            Change::Out(event) => {
                self.outbox.apply(event);
                if let OutboxEvent::Sent(message) = event
                    && message.kind == MessageKind::Compensation
                    && let Some(run) = self.runs.get_mut(&message.run)
                {
                    run.compensated = true;
                }
            }
        }
    }

    /// Children that are open or whose end is not settled.
    pub fn children(&self) -> usize {
        let open = self.runs.values().filter(|run| run.parent.is_some() && !matches!(run.phase, Phase::Ended { .. }));
        open.count() + self.outbox.usage().ends()
    }
    pub fn job(&self, tenant: &str, name: &str) -> Option<&JobRow> {
        self.jobs.values().find(|job| job.tenant == tenant && job.name == name)
    }
    pub fn items(&self) -> (OutboxHead, Vec<campanile_schema::stored::outbox::Message>) {
        (self.outbox.head().clone(), self.outbox.owed().map(|message| (**message).clone()).collect())
    }
}

/// An answer that waits until what it rests on is durable.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The shard that answers.
    pub said_by: u16,
    pub from: u16,
    pub number: u64,
    pub said: Delivered,
}

/// Changes of one decision, and the answers that wait for them.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    pub changes: Vec<Change>,
    pub replies: Vec<Reply>,
}

/// What the owner of a shard has in memory.
#[derive(Debug)]
pub struct Live {
    pub node: usize,
    pub epoch: Epoch,
    pub state: State,
    pub pending: VecDeque<Frame>,
    pub courier: Courier,
    pub keys: KeyMemory<(RunId, Source)>,
    /// `Deliver` calls without an answer: to which shard, which one, since when.
    pub asked: Vec<(u16, u64, i64)>,
}
