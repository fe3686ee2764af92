//! A node of the model: a clock of its own, one session after the other, and what the shell around the protocol does.

use super::{
    checks::{Violation, shard_of},
    network::LATEST_US,
    random::Random,
    shard::{Change, Frame, Memory, QUOTA, State},
    table::Fault,
    world::{Event, LANES, MS, Message, WINDOW, World},
};
use campanile_core::ownership::{
    Output, Ownership, Settings, borrowed::Borrowed, replay::SpanEnd, rows::lane_of, store::Batch,
};
use campanile_schema::ids::{Epoch, SessionId, ShardId};
use std::collections::{BTreeMap, BTreeSet};

/// Leases that nodes are set to, milliseconds: they differ.
const LEASES_MS: [u64; 3] = [700, 1_000, 1_500];

/// Longer than any statement is late here, by the fastest clock.
const KEEP_ENDED_MS: u64 = LATEST_US / MS * 11 / 10 + 100;

pub struct Node {
    pub clock_offset_ms: u64,
    /// Of a thousand: any two are within a tenth of each other.
    pub clock_rate: u64,
    pub lease_ms: u64,
    beat_ms: u64,
    reconcile_ms: u64,
    own: Option<Ownership>,
    /// The session before.
    pub last: Option<SessionId>,
    pub paused_until_us: u64,
    pub draining: bool,
    pub drained_by_us: u64,
    /// Sessions that this process has seen as members.
    pub known: BTreeSet<SessionId>,
    pub ticking: bool,
    pub memory: BTreeMap<ShardId, (Epoch, Memory)>,
    pub borrowed: Borrowed,
    /// Rows that are not acknowledged, with what they stand for.
    rows: BTreeMap<(u16, u64), usize>,
}

impl Node {
    pub fn new(random: &mut Random) -> Self {
        Self {
            clock_offset_ms: random.below(100_000),
            clock_rate: random.within(955, 1_045),
            lease_ms: *random.pick(&LEASES_MS).unwrap(),
            beat_ms: random.within(100, 250),
            reconcile_ms: random.within(80, 400),
            own: None,
            last: None,
            paused_until_us: 0,
            draining: false,
            drained_by_us: 0,
            known: BTreeSet::new(),
            ticking: false,
            memory: BTreeMap::new(),
            borrowed: Borrowed::new(SessionId(0)),
            rows: BTreeMap::new(),
        }
    }

    pub fn own(&self) -> Option<&Ownership> {
        self.own.as_ref()
    }

    pub fn session(&self) -> Option<SessionId> {
        self.own.as_ref().map(Ownership::id)
    }

    pub fn epoch(&self, shard: ShardId) -> Option<Epoch> {
        self.memory.get(&shard).map(|(epoch, _)| *epoch)
    }

    pub fn with<T: Default>(&mut self, act: impl FnOnce(&mut Ownership) -> T) -> T {
        self.own.as_mut().map(act).unwrap_or_default()
    }

    /// The process is gone, or its session is.
    pub fn forget(&mut self) {
        if let Some(own) = self.own.take() {
            self.last = Some(own.id());
        }
        self.draining = false;
        self.known.clear();
        self.memory.clear();
        self.rows.clear();
    }
}

impl World {
    pub fn start(&mut self, node: usize, knowing: bool) {
        if self.nodes[node].own.is_some() {
            return;
        }
        self.sessions += 1;
        let (session, now_ms) = (SessionId(self.sessions), self.local_ms(node));
        let predecessor = self.nodes[node].last.filter(|_| knowing);
        let settings = Settings {
            session,
            lease_ms: self.nodes[node].lease_ms,
            beat_ms: self.nodes[node].beat_ms,
            watch_ms: self.nodes[node].beat_ms,
            reconcile_ms: self.nodes[node].reconcile_ms,
            keep_ended_ms: KEEP_ENDED_MS,
            window: WINDOW,
            lanes: LANES,
            predecessor,
        };
        self.nodes[node].own = Some(Ownership::new(settings, now_ms));
        self.nodes[node].borrowed = Borrowed::new(session);
        self.tell(|world| format!("{} starts", world.name(session)));
        self.newborn(node);
        if !self.nodes[node].ticking {
            self.nodes[node].ticking = true;
            self.after(0, Event::Tick { node });
        }
    }

    pub fn tick(&mut self, node: usize) {
        let jitter = self.random.below(10 * MS);
        self.after(30 * MS + jitter, Event::Tick { node });
        if self.nodes[node].own.is_none() {
            return;
        }
        let now_ms = self.local_ms(node);
        if self.random.percent(30) {
            let hints = self.hints(node);
            self.nodes[node].with(|own| own.hint(now_ms, hints));
        }
        let late = self.nodes[node].draining && self.now_us >= self.nodes[node].drained_by_us;
        self.nodes[node].with(|own| if late { own.give_up(now_ms) } else { own.tick(now_ms) });
        self.outputs(node);
        if let Some(session) = self.nodes[node].session() {
            self.read_ahead(session);
        }
        self.stop_settled(node);
        self.ask_quota(node);
    }

    fn stop_settled(&mut self, node: usize) {
        let now_ms = self.local_ms(node);
        let this = &mut self.nodes[node];
        let settled = |shard: &ShardId, memory: &Memory| memory.stopping && this.borrowed.settled(*shard);
        let ready: Vec<_> = this.memory.iter().filter(|(shard, (_, m))| settled(shard, m)).map(|(s, _)| *s).collect();
        for shard in ready {
            if let Some((_, memory)) = self.nodes[node].memory.get_mut(&shard) {
                (memory.stopping, memory.serving) = (false, false);
            }
            self.nodes[node].with(|own| own.stopped(now_ms, shard));
            self.outputs(node);
        }
    }

    /// Does what the protocol asks for.
    pub fn outputs(&mut self, node: usize) {
        let Some(session) = self.nodes[node].session() else { return };
        for output in self.nodes[node].with(Ownership::outputs) {
            match output {
                Output::Store { ticket, statement } => self.send(session, ticket, statement),
                Output::Acknowledge { lane, upto } => self.acknowledge(node, lane, upto),
                Output::Load { shard, epoch, spans, snapshot } => {
                    let delay_us = self.random.within(MS, 30 * MS);
                    self.after(delay_us, Event::Load { session, shard, epoch, spans, snapshot });
                }
                Output::Serve { shard, epoch } => self.serve(node, shard, epoch),
                Output::Stop { shard } => {
                    if let Some((_, memory)) = self.nodes[node].memory.get_mut(&shard) {
                        memory.stopping = true;
                    }
                }
                Output::Released { shard, successor } => {
                    self.tell(|world| format!("{} has released shard {shard}", world.name(session)));
                    self.nodes[node].memory.remove(&shard);
                    self.nodes[node].borrowed.handed_over(shard);
                    let chance = self.chance().is_some_and(|mut chance| chance.percent(25));
                    if chance {
                        self.fault(Fault::NoticeLost);
                    } else {
                        let delay_us = self.random.within(MS, 40 * MS);
                        self.after(delay_us, Event::Message { to: successor, message: Message::Released(shard) });
                    }
                }
                Output::Lost { shard } => {
                    self.nodes[node].memory.remove(&shard);
                }
                Output::RowsRead => self.free_permits(node),
                Output::Took(transition) => {
                    self.tell(|world| format!("{}: {transition:?}", world.name(session)));
                    self.table.took(transition);
                }
                Output::Over => {
                    self.nodes[node].forget();
                    let (delay_us, knowing) = (self.random.within(5 * MS, 300 * MS), self.random.percent(50));
                    self.after(delay_us, Event::Start { node, knowing });
                }
            }
        }
    }

    /// Writes one row with frames of shards of one lane.
    pub fn write(&mut self, node: usize, changes: &[(ShardId, Vec<Change>)]) -> bool {
        let now_ms = self.local_ms(node);
        let Some(lane) = changes.first().map(|(shard, _)| lane_of(*shard, LANES)) else { return false };
        let mut frames = Vec::new();
        for (shard, changes) in changes {
            let Some((epoch, memory)) = self.nodes[node].memory.get(shard) else { return false };
            frames.push(Frame { shard: *shard, epoch: *epoch, seq: memory.seq + 1, changes: changes.clone() });
        }
        let heads: Vec<_> = frames.iter().map(|frame| (frame.shard, frame.seq)).collect();
        let batch = self.batches.len();
        let bytes = Batch::from((batch as u64).to_le_bytes().as_slice());
        let row = self.nodes[node].own.as_mut().and_then(|own| own.append(now_ms, lane, &heads, bytes).ok());
        if let Some(row) = row {
            self.nodes[node].rows.insert((lane, row), batch);
            for frame in &frames {
                if let Some((_, memory)) = self.nodes[node].memory.get_mut(&frame.shard) {
                    memory.seq = frame.seq;
                    frame.changes.iter().for_each(|change| memory.state.apply(*change));
                }
            }
            let name = self.nodes[node].session();
            self.tell(|world| {
                let name = name.map(|session| world.name(session)).unwrap_or_default();
                format!("{name} appends row {row} of lane {lane}: (shard, frame) {heads:?}")
            });
            self.batches.push(frames);
        }
        self.outputs(node);
        row.is_some()
    }

    fn acknowledge(&mut self, node: usize, lane: u16, upto: u64) {
        let session = self.nodes[node].session().unwrap_or_default();
        self.tell(|world| format!("{} acknowledges lane {lane} up to row {upto}", world.name(session)));
        let done: Vec<_> = self.nodes[node].rows.range((lane, 0)..=(lane, upto)).map(|(at, b)| (*at, *b)).collect();
        for (at, batch) in done {
            self.nodes[node].rows.remove(&at);
            self.table.acknowledged += 1;
            for frame in self.batches[batch].clone() {
                self.check_acknowledged(node, batch, &frame);
                if self.calm {
                    self.truth.written_again.insert(frame.shard);
                }
                let ended = frame.changes.iter().filter(|change| matches!(change, Change::Ended(_)));
                for _ in ended {
                    self.nodes[node].borrowed.ended(frame.shard);
                }
                if let Some((_, memory)) = self.nodes[node].memory.get_mut(&frame.shard) {
                    memory.acknowledged = frame.seq;
                }
                if frame.shard == QUOTA {
                    self.reply(node);
                }
            }
        }
    }

    pub fn loaded(&mut self, node: usize, shard: ShardId, epoch: Epoch, last: u64, ends: Vec<SpanEnd>, state: State) {
        if self.nodes[node].own().and_then(|own| own.epoch(shard)) != Some(epoch) {
            return;
        }
        self.table.loads += 1;
        let session = self.nodes[node].session().unwrap_or_default();
        self.tell(|world| format!("{} has loaded shard {shard} up to frame {last}", world.name(session)));
        let runs = state.open.len() as u32;
        if self.is_owner(session, shard, epoch) {
            self.truth.open.retain(|run| shard_of(*run) != shard);
            self.truth.open.extend(&state.open);
            self.check_runs();
        }
        self.nodes[node].memory.insert(shard, (epoch, Memory::new(state, last)));
        self.nodes[node].borrowed.adopted(shard, epoch, runs);
        self.nodes[node].with(|own| own.loaded(shard, epoch, last, ends));
        self.outputs(node);
    }

    fn serve(&mut self, node: usize, shard: ShardId, epoch: Epoch) {
        let this = &mut self.nodes[node];
        let Some((known, memory)) = this.memory.get_mut(&shard) else { return };
        (memory.serving, memory.stopping) = (true, false);
        if *known != epoch {
            *known = epoch;
            this.borrowed.raised(shard, epoch);
        }
    }

    /// Whether a session owns a shard in the store at this epoch, and may.
    pub fn is_owner(&self, session: SessionId, shard: ShardId, epoch: Epoch) -> bool {
        let row = &self.store.shards[&shard];
        row.owner == Some(session) && row.epoch == epoch && self.store.lives(session)
    }

    /// A load met a hole. Not every hole is one: a session that is over may find that its successor has trimmed.
    pub fn hole(&mut self, session: SessionId, shard: ShardId, epoch: Epoch, what: String) {
        if self.is_owner(session, shard, epoch) {
            self.violated(Violation::Hole { shard, what });
        }
    }
}
