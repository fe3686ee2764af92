//! What becomes of statements and messages on their way.

use super::{
    ahead::Found,
    random::Random,
    shard::{QUOTA, State},
    store::{NEVER, QUORUM, REPLICAS},
    table::Fault,
    world::{Event, MS, Message, Weather, World},
};
use campanile_core::ownership::{
    Rule,
    replay::Replay,
    rows::{SnapshotPointer, Span},
    store::{Statement, StoreAnswer, Ticket},
};
use campanile_schema::ids::{Epoch, SessionId, ShardId};

/// After so long a sender hears of a timeout.
const TIMEOUT_US: u64 = 200 * MS;
/// A statement that timed out may be executed until so long after it was sent.
pub const LATEST_US: u64 = 1_800 * MS;

impl World {
    fn latency_us(&mut self) -> u64 {
        self.random.within(MS / 2, 12 * MS)
    }

    /// When a store that gets a statement now executes it.
    fn executed_us(&mut self, arrives_us: u64) -> u64 {
        let stalled = arrives_us < self.stalled_until_us;
        if stalled { self.stalled_until_us + self.random.below(20 * MS) } else { arrives_us }
    }

    pub fn send(&mut self, session: SessionId, ticket: Ticket, statement: Statement) {
        self.tell(|world| format!("{} asks {}", world.name(session), super::story::statement(&statement)));
        match &statement {
            Statement::Append { lane, seq, batch } => {
                let at_us = self.replicate();
                self.store.write(session, *lane, *seq, batch, at_us);
                self.acknowledge_write(session, ticket, at_us);
            }
            Statement::Rewrite { session: of, lane, rows } => {
                let mut slowest = [0; REPLICAS];
                for (seq, batch) in rows {
                    let at_us = self.replicate();
                    self.store.write(*of, *lane, *seq, batch, at_us);
                    for (slow, at) in slowest.iter_mut().zip(quorum_last(at_us)) {
                        *slow = at.max(*slow);
                    }
                }
                self.acknowledge_write(session, ticket, slowest);
            }
            Statement::PutSession { .. } | Statement::PutShard { .. } | Statement::DropSession { .. } => {
                self.send_lwt(session, ticket, statement);
            }
            Statement::ReadSession { .. }
            | Statement::ReadShard { .. }
            | Statement::ReadShards
            | Statement::ReadLane { .. }
            | Statement::DeleteRows { .. } => self.send_read(session, ticket, statement),
        }
    }

    /// Times at which a plain write is on each replica.
    fn replicate(&mut self) -> [u64; REPLICAS] {
        let mut at_us = [0; REPLICAS];
        for at in &mut at_us {
            let arrives_us = self.now_us + self.latency_us();
            *at = self.executed_us(arrives_us);
        }
        let Some(mut chance) = self.chance() else { return at_us };
        let later = |chance: &mut Random, now_us: u64| {
            if chance.percent(50) { NEVER } else { now_us + chance.within(TIMEOUT_US, LATEST_US) }
        };
        match chance.below(100) {
            0..=9 => {
                self.fault(Fault::WritePartial);
                let only = chance.below(REPLICAS as u64) as usize;
                for (replica, at) in at_us.iter_mut().enumerate().filter(|(replica, _)| *replica != only) {
                    let _ = replica;
                    *at = later(&mut chance, self.now_us);
                }
            }
            10..=13 => {
                self.fault(Fault::WriteLate);
                for at in &mut at_us {
                    *at = later(&mut chance, self.now_us);
                }
            }
            _ => {}
        }
        at_us
    }

    /// The writer hears when a quorum has it, or of a timeout.
    fn acknowledge_write(&mut self, session: SessionId, ticket: Ticket, at_us: [u64; REPLICAS]) {
        let quorum_us = quorum_last(at_us)[0];
        let back_us = quorum_us.saturating_add(self.latency_us());
        let limit_us = self.now_us + TIMEOUT_US;
        let (at, answer) =
            if back_us <= limit_us { (back_us, StoreAnswer::Done) } else { (limit_us, StoreAnswer::Unknown) };
        self.after(at - self.now_us, Event::Answer { session, ticket, answer });
    }

    fn send_lwt(&mut self, session: SessionId, ticket: Ticket, statement: Statement) {
        let latency_us = self.latency_us();
        let first_us = self.executed_us(self.now_us + latency_us) - self.now_us;
        let execute = |until_us| Event::Execute { session, ticket, statement: statement.clone(), until_us };
        let (answered, heard) = (execute(Some(self.now_us + TIMEOUT_US)), execute(None));
        let timeout = Event::Answer { session, ticket, answer: StoreAnswer::Unknown };
        let mut chance = self.chance();
        let of = if self.plan.weather() == Weather::BadLwts { 34 } else { 100 };
        match chance.as_mut().map_or(99, |chance| chance.below(of)) {
            0..=2 => {
                self.fault(Fault::LwtLost);
                self.after(TIMEOUT_US, timeout);
            }
            3..=6 => {
                self.fault(Fault::LwtAnswerLost);
                self.after(first_us, heard);
                self.after(TIMEOUT_US, timeout);
            }
            7..=11 => {
                self.fault(Fault::LwtLate);
                let late_us = chance.map_or(0, |mut chance| chance.within(TIMEOUT_US, LATEST_US));
                self.after(late_us, heard);
                self.after(TIMEOUT_US, timeout);
            }
            12..=15 => {
                self.fault(Fault::LwtDoubled);
                let second_us = chance.map_or(0, |mut chance| {
                    let soon = chance.percent(70);
                    chance.within(MS, if soon { 60 * MS } else { LATEST_US })
                });
                if second_us < 60 * MS {
                    self.after(first_us, heard);
                    self.after(first_us + second_us, answered);
                } else {
                    self.after(first_us, answered);
                    self.after(first_us + second_us, heard);
                }
            }
            _ => self.after(first_us, answered),
        }
    }

    fn send_read(&mut self, session: SessionId, ticket: Ticket, statement: Statement) {
        let latency_us = self.latency_us();
        let at_us = self.executed_us(self.now_us + latency_us) - self.now_us;
        if self.chance().is_some_and(|mut chance| chance.percent(4)) {
            self.fault(Fault::ReadLost);
            self.after(TIMEOUT_US, Event::Answer { session, ticket, answer: StoreAnswer::Unknown });
            return;
        }
        let until_us = Some(self.now_us + TIMEOUT_US);
        self.after(at_us, Event::Execute { session, ticket, statement, until_us });
    }

    /// The store executes a statement. `until_us`: when its sender hears of a timeout; None: it hears nothing of this one.
    pub fn execute(&mut self, session: SessionId, ticket: Ticket, statement: &Statement, until_us: Option<u64>) {
        let answer = if let Statement::ReadLane { session, lane, after } = statement {
            let rows = self.store.read(*session, *lane, after + 1, NEVER, self.now_us, &mut self.random);
            StoreAnswer::Lane(rows)
        } else {
            self.store.execute(statement)
        };
        self.tell(|world| {
            let statement = super::story::statement(statement);
            format!("store: {statement} of {}: {}", world.name(session), super::story::answer(&answer))
        });
        let Some(until_us) = until_us else { return };
        let back_us = self.now_us + self.latency_us();
        if back_us <= until_us {
            self.after(back_us - self.now_us, Event::Answer { session, ticket, answer });
        } else {
            let wait_us = until_us.saturating_sub(self.now_us);
            self.after(wait_us, Event::Answer { session, ticket, answer: StoreAnswer::Unknown });
        }
    }

    /// A taker reads a shard's snapshot and spans.
    pub fn load(
        &mut self,
        session: SessionId,
        shard: ShardId,
        epoch: Epoch,
        spans: Vec<Span>,
        snapshot: Option<SnapshotPointer>,
    ) {
        if self.node_of(session).is_none() {
            return;
        }
        let lost = self.chance().is_some_and(|mut chance| chance.percent(4));
        if lost || self.now_us < self.stalled_until_us {
            let again_us = TIMEOUT_US.max(self.stalled_until_us.saturating_sub(self.now_us));
            self.after(again_us, Event::Load { session, shard, epoch, spans, snapshot });
            return;
        }
        let mut state = snapshot.map_or_else(State::new, |pointer| self.snapshots[&pointer.number].clone());
        let from = snapshot.map_or(0, |pointer| pointer.seq);
        let projected = self.projected.get(&shard).copied().unwrap_or(0);
        let mut replay = Replay::new(&spans, snapshot, projected);
        for span in &spans {
            let to = span.to.unwrap_or(NEVER);
            let rows = self.store.read(span.session, span.lane, span.from, to, self.now_us, &mut self.random);
            for (row, batch) in rows {
                let batch = u64::from_le_bytes(batch[..8].try_into().unwrap()) as usize;
                let frames: Vec<_> = self.batches[batch].iter().filter(|f| f.shard == shard).cloned().collect();
                let seqs: Vec<u64> = frames.iter().map(|frame| frame.seq).collect();
                if let Err(hole) = replay.row(span.session, span.lane, row, &seqs) {
                    self.hole(session, shard, epoch, hole.to_string());
                    return;
                }
                for frame in frames.iter().filter(|frame| frame.seq > from) {
                    frame.changes.iter().for_each(|change| state.apply(*change));
                    if self.is_owner(session, shard, epoch) {
                        self.counts(shard, frame.seq, batch);
                    }
                }
            }
        }
        let (last, ends) = match replay.end() {
            Ok(whole) => whole,
            Err(hole) => return self.hole(session, shard, epoch, hole.to_string()),
        };
        if self.is_owner(session, shard, epoch) {
            self.check_loaded(shard, last, &state.values);
            let found = Found { last, ends: &ends, state: &state };
            self.check_ahead((session, shard, epoch), &spans, snapshot, &found);
        }
        if self.plan.broken == Some(Rule::LoansAreEvents) && shard == QUOTA {
            state.loans = State::new().loans;
        }
        let delay_us = self.latency_us();
        let state = Box::new(state);
        self.after(delay_us, Event::Loaded { session, shard, epoch, last, ends, state });
    }

    /// Sends a message of the quota: it may be lost or come twice.
    pub fn post(&mut self, to: SessionId, message: Message) {
        let mut delay_us = self.random.within(MS, 15 * MS);
        if let Some(mut chance) = self.chance() {
            if chance.percent(4) {
                return self.fault(Fault::RequestLost);
            }
            if chance.percent(4) {
                self.fault(Fault::RequestDoubled);
                let again_us = chance.within(MS, 3_000 * MS);
                self.after(again_us, Event::Message { to, message: message.clone() });
            }
            if chance.percent(4) {
                delay_us += chance.within(MS, 3_000 * MS);
            }
        }
        self.after(delay_us, Event::Message { to, message });
    }
}

/// When a quorum of replicas has it.
fn quorum_last(mut at_us: [u64; REPLICAS]) -> [u64; REPLICAS] {
    at_us.sort_unstable();
    [at_us[QUORUM - 1]; REPLICAS]
}
