//! Three nodes, a store and a network, moved by one queue of events. Everything follows from the plan's seed.

use super::{
    ahead::Begun,
    checks::{Truth, Violation},
    node::Node,
    random::Random,
    shard::{Frame, State},
    store::Store,
    table::{Fault, Table},
};
use campanile_core::ownership::{
    Rule,
    replay::SpanEnd,
    rows::{SnapshotPointer, Span},
    store::{Statement, StoreAnswer, Ticket},
};
use campanile_schema::{
    ids::{Epoch, SessionId, ShardId},
    loan::{Level, Request},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

pub const NODES: usize = 3;
pub const SHARDS: u16 = 4;
pub const LANES: u16 = 2;
/// Rows ahead of a lane's first gap.
pub const WINDOW: u64 = 3;
pub const MS: u64 = 1_000;

/// Which history to play.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub seed: u64,
    pub steps: u64,
    pub broken: Option<Rule>,
    /// Faults, by their number, that do not happen: for shrinking.
    pub without: BTreeSet<u64>,
    /// Keep the story.
    pub told: bool,
}

/// What goes wrong more often than elsewhere: every seed has its weather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    Mixed,
    /// Three times as many LWTs are lost, late or doubled.
    BadLwts,
    /// Nodes stop and crash much more often.
    Storm,
    /// Members see each other wrongly, and drain often.
    Fog,
}

impl Plan {
    pub fn weather(&self) -> Weather {
        match self.seed % 4 {
            0 => Weather::Mixed,
            1 => Weather::BadLwts,
            2 => Weather::Storm,
            _ => Weather::Fog,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Message {
    Released(ShardId),
    Request(Request),
    Level(Level),
}

#[derive(Clone, Debug)]
pub enum Event {
    Tick { node: usize },
    Work,
    Fault,
    Start { node: usize, knowing: bool },
    Pause { node: usize, length_us: u64 },
    Execute { session: SessionId, ticket: Ticket, statement: Statement, until_us: Option<u64> },
    Answer { session: SessionId, ticket: Ticket, answer: StoreAnswer },
    Message { to: SessionId, message: Message },
    Load { session: SessionId, shard: ShardId, epoch: Epoch, spans: Vec<Span>, snapshot: Option<SnapshotPointer> },
    Loaded { session: SessionId, shard: ShardId, epoch: Epoch, last: u64, ends: Vec<SpanEnd>, state: Box<State> },
    Snapshot { session: SessionId, shard: ShardId, epoch: Epoch, number: u64, seq: u64 },
    Projected { session: SessionId, shard: ShardId, seq: u64 },
}

pub struct World {
    pub plan: Plan,
    pub now_us: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    pub random: Random,
    pub store: Store,
    pub nodes: Vec<Node>,
    /// What the bytes of a journal row stand for.
    pub batches: Vec<Vec<Frame>>,
    pub snapshots: BTreeMap<u64, State>,
    pub projected: BTreeMap<ShardId, u64>,
    pub truth: Truth,
    pub table: Table,
    pub violation: Option<Violation>,
    pub story: Vec<String>,
    /// No more faults: what is left must become whole again.
    pub calm: bool,
    pub stalled_until_us: u64,
    pub projection_stalled_until_us: u64,
    /// Faults so far: each has a number.
    pub faults: u64,
    pub sessions: u64,
    pub numbers: u64,
    /// What sessions have read of shards that are not theirs yet.
    pub ahead: BTreeMap<(SessionId, ShardId), Begun>,
    pub ahead_random: Random,
}

impl World {
    pub fn new(plan: Plan) -> Self {
        let mut random = Random::new(plan.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x00ca_3b11);
        let nodes = (0..NODES).map(|_| Node::new(&mut random)).collect();
        let mut world = Self {
            now_us: 0,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            random,
            store: Store::new(SHARDS, plan.broken),
            nodes,
            batches: Vec::new(),
            snapshots: BTreeMap::new(),
            projected: BTreeMap::new(),
            truth: Truth::default(),
            table: Table::default(),
            violation: None,
            story: Vec::new(),
            calm: false,
            stalled_until_us: 0,
            projection_stalled_until_us: 0,
            faults: 0,
            sessions: 0,
            numbers: 0,
            ahead: BTreeMap::new(),
            ahead_random: Random::new(!plan.seed),
            plan,
        };
        for node in 0..NODES {
            world.after(node as u64 * 7 * MS, Event::Start { node, knowing: false });
        }
        world.after(50 * MS, Event::Work);
        let first_us = world.random.within(10 * MS, 1_500 * MS);
        world.after(first_us, Event::Fault);
        world
    }

    pub fn after(&mut self, delay_us: u64, event: Event) {
        self.numbers += 1;
        self.queue.push(Reverse((self.now_us + delay_us, self.numbers)));
        self.events.insert(self.numbers, event);
    }

    pub fn tell(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.plan.told {
            let line = format!("{:>9.1} ms  {}", self.now_us as f64 / 1000.0, line(self));
            self.story.push(line);
        }
    }

    pub fn violated(&mut self, violation: Violation) {
        if self.violation.is_none() {
            self.tell(|_| format!("VIOLATED: {violation}"));
            self.violation = Some(violation);
        }
    }

    /// A fault with a number of its own, unless the plan leaves it out: random numbers that no other fault shares.
    pub fn chance(&mut self) -> Option<Random> {
        self.faults += 1;
        if self.calm || self.plan.without.contains(&self.faults) {
            return None;
        }
        Some(Random::new(self.plan.seed ^ self.faults.wrapping_mul(0x9fb2_1c65_1e98_df25)))
    }

    pub fn fault(&mut self, fault: Fault) {
        self.table.fault(fault);
    }

    /// The node that holds this session now.
    pub fn node_of(&self, session: SessionId) -> Option<usize> {
        self.nodes.iter().position(|node| node.session() == Some(session))
    }

    /// Plays until the steps are done, then lets everything come to rest.
    pub fn play(&mut self) {
        while self.table.steps < self.plan.steps && self.violation.is_none() {
            self.step();
        }
        self.rest();
    }

    pub fn step(&mut self) {
        if self.violation.is_some() {
            return;
        }
        let Some(Reverse((at_us, number))) = self.queue.pop() else { return };
        let Some(event) = self.events.remove(&number) else { return };
        self.now_us = at_us;
        self.table.steps += 1;
        self.happen(event);
        self.check_owners();
    }

    fn happen(&mut self, event: Event) {
        let to = match &event {
            Event::Tick { node } => Some(*node),
            Event::Answer { session, .. }
            | Event::Message { to: session, .. }
            | Event::Loaded { session, .. }
            | Event::Snapshot { session, .. }
            | Event::Projected { session, .. } => self.node_of(*session),
            Event::Work
            | Event::Fault
            | Event::Pause { .. }
            | Event::Start { .. }
            | Event::Execute { .. }
            | Event::Load { .. } => None,
        };
        // What comes to a paused process waits, and then comes in any order.
        if let Some(paused_us) = to.map(|to| self.nodes[to].paused_until_us).filter(|until| *until > self.now_us) {
            let jitter = self.random.below(5 * MS);
            self.after(paused_us - self.now_us + jitter, event);
            return;
        }
        match event {
            Event::Tick { node } => self.tick(node),
            Event::Work => self.work(),
            Event::Fault => self.strike(),
            Event::Start { node, knowing } => self.start(node, knowing),
            Event::Pause { node, length_us } => self.pause(node, length_us, Fault::LongPause),
            Event::Execute { session, ticket, statement, until_us } => {
                self.execute(session, ticket, &statement, until_us);
            }
            Event::Load { session, shard, epoch, spans, snapshot } => self.load(session, shard, epoch, spans, snapshot),
            Event::Answer { session, ticket, answer } => {
                let Some(node) = to else { return };
                self.tell(|world| format!("{} hears {}", world.name(session), super::story::answer(&answer)));
                let now_ms = self.local_ms(node);
                self.nodes[node].with(|own| own.answered(now_ms, ticket, answer));
                self.outputs(node);
            }
            Event::Message { message, .. } => {
                let Some(node) = to else { return };
                self.message(node, message);
            }
            Event::Loaded { shard, epoch, last, ends, state, .. } => {
                let Some(node) = to else { return };
                self.loaded(node, shard, epoch, last, ends, *state);
            }
            Event::Snapshot { shard, epoch, number, seq, .. } => {
                let Some(node) = to else { return };
                let now_ms = self.local_ms(node);
                let held = self.nodes[node].epoch(shard) == Some(epoch);
                if held {
                    self.nodes[node].with(|own| own.snapshot_written(now_ms, shard, number, seq));
                    self.outputs(node);
                }
            }
            Event::Projected { shard, seq, .. } => {
                let stored = self.projected.entry(shard).or_default();
                *stored = seq.max(*stored);
                if let Some(node) = to {
                    self.nodes[node].with(|own| own.projected(shard, seq));
                }
            }
        }
    }

    /// A node's own clock, milliseconds.
    pub fn local_ms(&self, node: usize) -> u64 {
        let node = &self.nodes[node];
        node.clock_offset_ms + self.now_us * node.clock_rate / 1_000 / MS
    }

    pub fn name(&self, session: SessionId) -> String {
        match self.node_of(session) {
            Some(node) => format!("{}(session {session})", ['A', 'B', 'C'][node]),
            None => format!("-(session {session})"),
        }
    }
}
