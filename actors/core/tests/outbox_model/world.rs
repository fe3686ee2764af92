//! The world: who owns what, what is durable, and how decisions become durable.

use super::{
    checks::{FailureFacts, Judge, ViolationKind, effect},
    shard::{BOUNDS, Change, Frame, JobRow, Live, Phase, Reply, State},
};
use crate::ownership_model::random::Random;
use campanile_core::outbox::{
    Courier, KeyMemory, Now,
    rules::{Rule, kept},
};
use campanile_schema::{
    ids::{Epoch, JobId, RunId, make_id, shard_of_slot, slot_of},
    limits::{DELIVER_ANSWER_MS, SETTLE_BATCH},
    peer::outbox::Deliver,
    record::Source,
    stored::outbox::{Message, OutboxEvent},
};
use std::collections::BTreeMap;

pub const SHARDS: u16 = 4;
pub const NODES: usize = 2;
/// `Deliver` calls that a node of the model has under way.
pub const PLACES: usize = 2;
/// Of the model's shards.
pub const MAILBOX: usize = 6;
pub const START_MS: i64 = 1_800_000_000_000;
/// The hook of this number makes its receiver panic.
pub const POISON: u32 = 9;
/// More than the parts that a tenant may have: else the limits of all are never reached.
pub const TENANTS: [&str; 3] = ["acme", "globex", "initech"];
pub const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// A key row of the read model.
#[derive(Clone, Debug)]
pub struct KeyRow {
    pub run: RunId,
    pub source: Source,
    pub ended_ms: Option<i64>,
}

#[derive(Clone, Debug)]
pub enum Packet {
    Deliver { number: u64, deliver: Deliver },
    Answer { reply: Reply },
}

/// A `Deliver` that arrived at a node and was not answered yet.
#[derive(Clone, Debug)]
pub struct Arrived {
    pub number: u64,
    pub deliver: Deliver,
    /// What the view said, by key.
    pub looked_up: BTreeMap<(JobId, String), campanile_core::outbox::LookUp<(RunId, Source)>>,
}

/// All that survives a crash.
#[derive(Clone, Debug)]
pub struct Store {
    pub shards: u16,
    pub disks: Vec<State>,
    pub keys: BTreeMap<(JobId, String), KeyRow>,
    pub restored_ms: Option<i64>,
}

pub struct World {
    pub random: Random,
    pub now_ms: i64,
    pub store: Store,
    pub epochs: Vec<u64>,
    pub live: Vec<Option<Live>>,
    pub up: [bool; NODES],
    /// Nodes of an earlier release, which do not know compensations.
    pub old: [bool; NODES],
    pub arrived: Vec<Vec<Arrived>>,
    pub network: Vec<Packet>,
    pub judge: Judge,
    pub tries: BTreeMap<String, u32>,
    /// Undelivered messages that a person may send again.
    pub undelivered: Vec<Message>,
    pub backup: Option<(Store, super::checks::Timeline)>,
    pub retention_ms: i64,
    /// The store was moved to another number of shards.
    pub moved: bool,
    pub trace: Option<Vec<String>>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut world = Self {
            random: Random::new(seed),
            now_ms: START_MS,
            store: Store {
                shards: SHARDS,
                disks: (0..SHARDS).map(|_| State::new(SHARDS)).collect(),
                keys: BTreeMap::new(),
                restored_ms: None,
            },
            epochs: vec![0; usize::from(SHARDS) * 2],
            live: (0..SHARDS).map(|_| None).collect(),
            up: [true; NODES],
            old: [false; NODES],
            arrived: vec![Vec::new(); NODES],
            network: Vec::new(),
            judge: Judge::default(),
            tries: BTreeMap::new(),
            undelivered: Vec::new(),
            backup: None,
            retention_ms: 3_600_000,
            moved: false,
            trace: None,
        };
        for tenant in TENANTS {
            for (n, name) in NAMES.into_iter().enumerate() {
                let slot = slot_of(tenant, name);
                let shard = shard_of_slot(slot, SHARDS);
                let disk = &mut world.store.disks[usize::from(shard.0)];
                let job = JobRow {
                    id: JobId(make_id(disk.counter + 1, slot)),
                    tenant: tenant.to_owned(),
                    name: name.to_owned(),
                    created_ms: START_MS - 1,
                    not_idempotent: n % 2 == 0,
                };
                disk.apply(&Change::JobMade(job));
            }
        }
        world
    }

    pub fn now(&self) -> Now {
        Now { wall_ms: self.now_ms, boot_ms: self.now_ms }
    }
    pub fn shards(&self) -> u16 {
        self.store.shards
    }
    pub fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            let ms = self.now_ms - START_MS;
            trace.push(format!("{ms:>10} ms  {}", what()));
        }
    }
    /// Owned shards.
    pub fn owned(&self) -> Vec<u16> {
        (0..self.shards()).filter(|shard| self.live[usize::from(*shard)].is_some()).collect()
    }
    pub fn shard_of(&self, slot: u64) -> u16 {
        shard_of_slot(slot, self.shards()).0
    }

    /// A node takes a shard that nobody has.
    pub fn claim(&mut self, shard: u16, node: usize) {
        let at = usize::from(shard);
        if self.live[at].is_some() || !self.up[node] {
            return;
        }
        self.epochs[at] += 1;
        let epoch = Epoch(self.epochs[at]);
        self.note(|| format!("node {node} takes shard {shard}, epoch {}", epoch.0));
        let state = self.store.disks[at].clone();
        let mut keys = KeyMemory::new(epoch);
        let unshown = state.runs.values().filter(|run| !run.shown || matches!(run.phase, Phase::Open | Phase::Confirm));
        for run in unshown.filter(|_| kept(Rule::UnshownKeysRebuilt)) {
            if let Some(key) = &run.key {
                keys.made(run.job, key, (run.id, run.source));
            }
        }
        let courier = Courier::load(&state.outbox, self.now());
        let pending = std::collections::VecDeque::new();
        self.live[at] = Some(Live { node, epoch, state, pending, courier, keys, asked: Vec::new() });
    }

    /// Decides: the changes count in memory at once, and for others when they are durable.
    pub fn decide(&mut self, shard: u16, changes: Vec<Change>) {
        let Some(live) = &mut self.live[usize::from(shard)] else { return };
        let mut apart = Vec::new();
        for change in &changes {
            live.state.apply(change);
            match change {
                Change::RunMade(run) => {
                    if let Some(key) = &run.key {
                        live.keys.made(run.job, key, (run.id, run.source));
                    }
                }
                Change::Out(OutboxEvent::Sent(message)) if !kept(Rule::SendWhenDurable) => {
                    let now = Now { wall_ms: self.now_ms, boot_ms: self.now_ms };
                    live.courier.durable(message, self.store.shards, now);
                }
                Change::Out(event) => live.courier.applied(event),
                _ => {}
            }
        }
        let mut frame = Frame { changes, replies: Vec::new() };
        if !kept(Rule::SentInTheFrame) {
            let is_sent = |change: &Change| matches!(change, Change::Out(OutboxEvent::Sent(_)));
            apart = frame.changes.extract_if(.., |change| is_sent(change)).collect();
        }
        live.pending.push_back(frame);
        if !apart.is_empty() {
            live.pending.push_back(Frame { changes: apart, replies: Vec::new() });
        }
        self.look_at_room(shard);
    }

    fn look_at_room(&mut self, shard: u16) {
        let Some(live) = &self.live[usize::from(shard)] else { return };
        let usage = live.state.outbox.usage();
        let to_one = (0..self.shards()).map(|to| usage.hooks_to(campanile_schema::ids::ShardId(to))).max();
        let tenant = TENANTS.iter().map(|tenant| usage.of_tenant(tenant)).max();
        // After a migration the messages of several shards are one shard's.
        let most = |bound: usize| bound * usize::from(SHARDS);
        let over = |used: usize, bound: usize| used > if self.moved { most(bound) } else { bound };
        let found = [
            ("messages", over(usage.messages(), BOUNDS.messages)),
            ("bytes", over(usage.bytes(), BOUNDS.bytes)),
            ("hooks", over(usage.hooks(), BOUNDS.hooks)),
            ("hooks for one shard", over(to_one.unwrap_or(0), BOUNDS.hooks_to_one)),
            ("messages of a tenant", over(tenant.unwrap_or(0), BOUNDS.messages / BOUNDS.tenant_part)),
            ("children", over(live.state.children(), BOUNDS.ends)),
        ];
        for (what, _) in found.into_iter().filter(|(_, over)| *over) {
            self.judge.violated(ViolationKind::Bounds, format!("shard {shard} has too many {what}"));
        }
    }

    /// The oldest frame of a shard becomes durable.
    pub fn make_durable(&mut self, shard: u16) {
        let (at, now) = (usize::from(shard), self.now());
        let Some(live) = &mut self.live[at] else { return };
        let Some(frame) = live.pending.pop_front() else { return };
        for change in &frame.changes {
            self.store.disks[at].apply(change);
            if let Change::Out(OutboxEvent::Sent(message)) = change {
                live.courier.durable(message, self.store.shards, now);
            }
        }
        for change in &frame.changes {
            self.judge_change(shard, change);
        }
        self.network.extend(frame.replies.into_iter().map(|reply| Packet::Answer { reply }));
    }

    pub fn path(&self, shard: u16, run: RunId) -> String {
        self.store.disks[usize::from(shard)].paths.get(&run).cloned().unwrap_or_else(|| format!("run {run}"))
    }

    fn judge_change(&mut self, shard: u16, change: &Change) {
        match change {
            Change::RunMade(run) => {
                let is_child = run.parent.is_some();
                if is_child || matches!(run.source, Source::Event | Source::Compensation) {
                    let path = run.path.clone();
                    self.judge.made(&path, false);
                }
                let tenant = self.tenant_of(&run.path);
                if tenant.is_some_and(|tenant| tenant != run.tenant) {
                    self.judge.violated(ViolationKind::Foreign, format!("{} is of tenant {}", run.path, run.tenant));
                }
            }
            Change::NodeEnded { effect, .. } => self.judge.made(effect, true),
            Change::JobGone(job) => self.judge.deleted(&job.tenant, &job.name),
            Change::Decides(effect) => self.judge.decided(effect),
            Change::JobMade(_) | Change::Confirmed(_) | Change::Reopened(_) => {}
            Change::NodeStarted { .. } => {}
            // A body whose end is lost reports it again: it has run once.
            Change::RunEnded { run, .. } => self.judge_body(shard, *run),
            Change::Out(OutboxEvent::Sent(message)) => {
                let effect = effect(&self.path(shard, message.run), message);
                self.judge.sent(&effect);
            }
            Change::Out(OutboxEvent::Dropped { message, .. }) => {
                let effect = effect(&self.path(shard, message.run), message);
                self.judge.dropped(&effect);
            }
            Change::Out(_) => {}
        }
    }

    fn judge_body(&mut self, shard: u16, run: RunId) {
        let disk = &self.store.disks[usize::from(shard)];
        let Some(run) = disk.runs.get(&run).filter(|run| run.generation == 1 && run.source != Source::Manual) else {
            return;
        };
        if !run.confirmed_as_ended && run.not_idempotent {
            let path = run.path.clone();
            self.judge.body(&path);
        }
    }

    /// The tenant in whose name a path began: `tenant:run/...`.
    fn tenant_of(&self, path: &str) -> Option<String> {
        path.split_once(':').map(|(tenant, _)| tenant.to_owned())
    }

    /// Calls that were not answered in time, what is to be settled, and what is to be sent.
    pub fn tick(&mut self, shard: u16) {
        let (at, now) = (usize::from(shard), self.now());
        let Some(live) = &mut self.live[at] else { return };
        let late = |(_, _, since): &(u16, u64, i64)| now.boot_ms - since >= DELIVER_ANSWER_MS as i64;
        let (silent, asked): (Vec<_>, Vec<_>) = live.asked.drain(..).partition(late);
        live.asked = asked;
        for (to, number, _) in silent {
            live.courier.unanswered(campanile_schema::ids::ShardId(to), number, now);
        }
        let events = live.courier.events(&live.state.outbox, now);
        for event in &events {
            self.judge_event(shard, event);
        }
        if !events.is_empty() {
            self.decide(shard, events.into_iter().map(Change::Out).collect());
        }
        self.send(shard);
    }

    fn judge_event(&mut self, shard: u16, event: &OutboxEvent) {
        let Some(live) = &self.live[usize::from(shard)] else { return };
        let owed = |id| live.state.outbox.get(id).map(|message| (**message).clone());
        let restored_ms = live.state.outbox.head().restored_ms;
        match event {
            OutboxEvent::Settled { ids } => {
                if ids.len() > SETTLE_BATCH {
                    self.judge.violated(ViolationKind::Bounds, "a Settled event names more than a batch");
                }
                for message in ids.iter().filter_map(|id| owed(*id)) {
                    let effect = effect(&self.path(shard, message.run), &message);
                    self.judge.settled(&effect);
                }
            }
            OutboxEvent::Failed { id, why, .. } => {
                let Some(message) = owed(*id) else { return };
                let effect = effect(&self.path(shard, message.run), &message);
                let tries = self.tries.get(&effect).copied().unwrap_or(0);
                let is_poison = message.index == POISON;
                let facts = FailureFacts { now_ms: self.now_ms, restored_ms, tries, is_poison };
                self.note(|| format!("shard {shard} gives up {effect}: {why:?}"));
                self.judge.failed(&effect, &message, *why, facts);
                if *why == campanile_schema::stored::outbox::Failure::Undelivered {
                    self.undelivered.push(message);
                }
            }
            OutboxEvent::Sent(_)
            | OutboxEvent::Dropped { .. }
            | OutboxEvent::Restored { .. }
            | OutboxEvent::Cleared { .. } => {}
        }
    }
}
