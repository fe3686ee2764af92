//! What goes wrong in the model, and the random course of things.

use super::{
    shard::{BOUNDS, Change, Phase, State},
    world::{NAMES, NODES, Packet, SHARDS, TENANTS, World},
};
use campanile_core::outbox::{Outbox, Sending, moving};
use campanile_schema::{
    ids::{SLOTS, ShardId},
    stored::outbox::{Message, OutboxEvent, OutboxHead},
};

/// Ids that a restore leaves out.
const RESTORED_IDS: u64 = 1_000;
/// Rounds of the quiet end. Messages are asked for less and less often, and a round is long enough for one try each.
const QUIET_ROUNDS: usize = 120;

impl World {
    pub fn crash(&mut self, node: usize) {
        self.note(|| format!("node {node} dies"));
        self.up[node] = false;
        self.arrived[node].clear();
        for live in &mut self.live {
            if live.as_ref().is_some_and(|live| live.node == node) {
                *live = None;
            }
        }
    }

    /// A shard is handed over: all that was decided is durable before.
    pub fn hand_over(&mut self, shard: u16) {
        let Some(node) = self.live[usize::from(shard)].as_ref().map(|live| live.node) else { return };
        while self.live[usize::from(shard)].as_ref().is_some_and(|live| !live.pending.is_empty()) {
            self.make_durable(shard);
        }
        self.live[usize::from(shard)] = None;
        self.claim(shard, (node + 1) % NODES);
    }

    pub fn back_up(&mut self) {
        self.backup = Some((self.store.clone(), self.judge.now.clone()));
        self.note(|| "a backup is made".to_owned());
    }

    /// All is lost, and the backup is what there is. Whatever happened since then happened, and nobody knows.
    pub fn restore(&mut self) {
        let Some((store, timeline)) = self.backup.clone() else { return };
        self.note(|| "the backup is restored".to_owned());
        (self.store, self.judge.now) = (store, timeline);
        self.store.restored_ms = Some(self.now_ms);
        self.undelivered.clear();
        self.stop_all();
        self.live.resize_with(usize::from(self.store.shards), || None);
        let at_ms = self.now_ms;
        for disk in &mut self.store.disks {
            disk.counter += RESTORED_IDS;
            disk.apply(&Change::Out(OutboxEvent::Restored { at_ms }));
            for run in
                disk.runs.values_mut().filter(|run| run.phase == Phase::Open && !run.is_dag() && run.not_idempotent)
            {
                run.phase = Phase::Confirm;
            }
        }
    }

    fn stop_all(&mut self) {
        (0..NODES).for_each(|node| self.crash(node));
        self.up = [true; NODES];
        self.network.clear();
    }

    /// The store is stopped and moved to another number of shards.
    pub fn migrate(&mut self, shards: u16) {
        for shard in 0..self.shards() {
            while self.live[usize::from(shard)].as_ref().is_some_and(|live| !live.pending.is_empty()) {
                self.make_durable(shard);
            }
        }
        self.note(|| format!("the store is moved to {shards} shards"));
        self.stop_all();
        self.moved = true;
        self.backup = None;
        let old = std::mem::take(&mut self.store.disks);
        let outboxes: Vec<(OutboxHead, Vec<_>)> = old.iter().map(State::items).collect();
        let counter = old.iter().map(|disk| disk.counter).max().unwrap_or(0);
        let mut disks: Vec<State> = (0..shards).map(|_| State::new(shards)).collect();
        self.store.shards = shards;
        for (ShardId(shard), head, messages) in moving::migrate(outboxes, shards) {
            disks[usize::from(shard)].outbox = Outbox::from_items(shards, BOUNDS, head, messages);
        }
        for disk in old {
            for (id, job) in disk.jobs {
                disks[usize::from(self.shard_of(id.0 % SLOTS))].jobs.insert(id, job);
            }
            for (id, run) in disk.runs {
                disks[usize::from(self.shard_of(id.0 % SLOTS))].runs.insert(id, run);
            }
            for (id, path) in disk.paths {
                disks[usize::from(self.shard_of(id.0 % SLOTS))].paths.insert(id, path);
            }
        }
        disks.iter_mut().for_each(|disk| disk.counter = counter);
        self.store.disks = disks;
        self.live = (0..shards).map(|_| None).collect();
    }

    /// One random step.
    pub fn step(&mut self) {
        self.now_ms += match self.random.below(1_000) {
            0 => self.random.within(3_600_000, 30 * 3_600_000),
            1..10 => self.random.within(20_000, 70_000),
            10..100 => self.random.within(1_000, 11_000),
            _ => self.random.within(0, 60),
        } as i64;
        let owned = self.owned();
        let shard = self.random.pick(&owned).copied();
        let node = self.random.below(NODES as u64) as usize;
        match self.random.below(100) {
            0..5 => self.trigger_some(),
            5..15 => self.run_some(|world, shard, run| {
                let ok = world.random.percent(50);
                world.end(shard, run, ok);
            }),
            15..20 => self.run_some(Self::advance),
            20..24 => self.run_some(Self::confirm),
            24..25 => self.run_some(Self::reopen),
            25..45 => self.packet(),
            45..52 => self.entry(node, Self::look_up),
            52..62 => self.entry(node, Self::turn),
            62..77 => shard.into_iter().for_each(|shard| self.make_durable(shard)),
            77..89 => shard.into_iter().for_each(|shard| self.tick(shard)),
            89..92 => shard.into_iter().for_each(|shard| self.project(shard)),
            92..96 => self.claim_some(node),
            96..99 => self.trouble(shard, node),
            _ => self.rare(),
        }
    }

    fn trouble(&mut self, shard: Option<u16>, node: usize) {
        match self.random.below(8) {
            0 => self.crash(node),
            1 | 2 => self.up[node] = true,
            3 => shard.into_iter().for_each(|shard| self.hand_over(shard)),
            4 => self.retain(),
            5 => self.old[node] = !self.old[node],
            6 | 7 => self.jobs_come_and_go(),
            _ => {}
        }
    }

    fn rare(&mut self) {
        match self.random.below(12) {
            0..3 => self.back_up(),
            3 => self.restore(),
            4 => {
                let shards = if self.shards() == SHARDS { 2 * SHARDS } else { SHARDS };
                self.migrate(shards);
            }
            5..8 => self.send_by_hand(),
            _ => {}
        }
    }

    fn jobs_come_and_go(&mut self) {
        let tenant = TENANTS[self.random.below(TENANTS.len() as u64) as usize];
        let name = NAMES[self.random.below(NAMES.len() as u64) as usize];
        if self.random.percent(40) {
            self.delete(tenant, name);
        } else {
            for name in NAMES {
                self.create(tenant, name);
            }
        }
    }

    fn run_some(&mut self, what: impl FnOnce(&mut Self, u16, campanile_schema::ids::RunId)) {
        let runs = self.runs(|run| !matches!(run.phase, Phase::Ended { ok: true, .. }));
        if let Some((shard, run)) = self.random.pick(&runs).copied() {
            what(self, shard, run);
        }
    }

    /// A packet arrives, twice, or not, in any order.
    fn packet(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let n = self.random.below(self.network.len() as u64) as usize;
        let packet = self.network.swap_remove(n);
        match self.random.below(20) {
            0 | 1 => {}
            2 | 3 => {
                self.arrive(packet.clone());
                self.network.push(packet);
            }
            _ => self.arrive(packet),
        }
    }

    fn entry(&mut self, node: usize, what: impl FnOnce(&mut Self, usize, usize)) {
        let n = self.arrived[node].len() as u64;
        if n > 0 {
            let n = self.random.below(n) as usize;
            what(self, node, n);
        }
    }

    fn claim_some(&mut self, node: usize) {
        let free: Vec<u16> = (0..self.shards()).filter(|shard| self.live[usize::from(*shard)].is_none()).collect();
        if let Some(shard) = self.random.pick(&free).copied() {
            self.claim(shard, node);
        }
    }

    /// A person sends an undelivered message again.
    pub fn send_by_hand(&mut self) {
        let Some(message) = self.undelivered.pop() else { return };
        let shard = self.shard_of(u64::from(message.from));
        let Some(live) = &self.live[usize::from(shard)] else { return };
        if let Ok(again) = moving::by_hand(&message, live.state.outbox.head(), self.now_ms) {
            let mut sending = Sending::new(&live.state.outbox, self.now_ms);
            let _ = sending.send_again(again, live.state.children());
            let events = sending.events;
            self.note(|| format!("{message:?} is sent by hand"));
            self.decide(shard, events.into_iter().map(Change::Out).collect());
        }
    }

    /// Everybody lives and answers, until nothing is left to do.
    pub fn quiet(&mut self) {
        self.up = [true; NODES];
        self.old = [false; NODES];
        self.network.clear();
        for _ in 0..QUIET_ROUNDS {
            self.round();
            if self.judge.found.is_some() || self.is_quiet() {
                break;
            }
        }
        let mut owed = Vec::new();
        for (shard, disk) in (0..).zip(&self.store.disks) {
            let effect = |message: &Message| super::checks::effect(&self.path(shard, message.run), message);
            owed.extend(disk.outbox.owed().map(|message| effect(message)));
        }
        self.judge.at_the_end(&owed);
    }

    pub fn round(&mut self) {
        self.now_ms += 31_000;
        for shard in 0..self.shards() {
            self.claim(shard, usize::from(shard) % NODES);
            self.project(shard);
        }
        for (shard, run) in self.runs(|run| matches!(run.phase, Phase::Open | Phase::Confirm)) {
            self.confirm(shard, run);
            self.advance(shard, run);
            self.end(shard, run, true);
        }
        // Frames, sends, arrivals and answers.
        for _ in 0..4 {
            // The shards of a node share its places in turn.
            let first = self.random.below(u64::from(self.shards())) as u16;
            for shard in (first..self.shards()).chain(0..first) {
                self.tick(shard);
                while self.live[usize::from(shard)].as_ref().is_some_and(|live| !live.pending.is_empty()) {
                    self.make_durable(shard);
                }
            }
            let packets: Vec<Packet> = std::mem::take(&mut self.network);
            packets.into_iter().for_each(|packet| self.arrive(packet));
            for node in 0..NODES {
                for n in (0..self.arrived[node].len()).rev() {
                    self.look_up(node, n);
                    self.turn(node, n);
                }
            }
            self.now_ms += 1_000;
        }
    }

    fn is_quiet(&self) -> bool {
        self.store.disks.iter().all(|disk| disk.outbox.is_empty())
            && self.live.iter().flatten().all(|live| live.pending.is_empty())
    }
}

/// What a seed brings: so many random steps, and then the quiet end.
pub fn play(seed: u64, steps: u64, traced: bool) -> World {
    let mut world = World::new(seed);
    world.trace = traced.then(Vec::new);
    for shard in 0..SHARDS {
        world.claim(shard, usize::from(shard) % NODES);
    }
    for _ in 0..steps {
        world.step();
        if world.judge.found.is_some() {
            return world;
        }
    }
    world.quiet();
    world
}
