//! One session of a node as a whole. Inputs are time, hints, answers of the store, and what the shards did. Outputs are
//! statements for the store, and which shards to load, serve, stop and acknowledge. A node whose session is over begins
//! a new one.

mod inputs;
mod journal;
mod outputs;
mod reconcile;
mod sessions;
mod shards;
mod transition;

pub use inputs::{Hints, Settings};
pub use outputs::{Output, Refused};
pub use transition::Transition;

use super::{
    hold::{Hold, Phase},
    lanes::Lane,
    replay::SpanEnd,
    rows::ShardRow,
    seal::Seal,
    session::LeasedSession,
    store::{Statement, StoreAnswer, Ticket},
    watch::Watch,
};
use campanile_schema::ids::{Epoch, SessionId, ShardId};
use std::collections::{BTreeMap, BTreeSet};

/// What a ticket was for.
#[derive(Clone, Debug)]
enum Purpose {
    Beat,
    BeatRead,
    /// `had_row`: the session was known to have had a row when this read was sent.
    Watch {
        session: SessionId,
        had_row: bool,
    },
    Fence(SessionId),
    Seal(SessionId),
    Rows {
        claims: u64,
        quiet: bool,
    },
    Row(ShardId),
    PeerReleased(ShardId),
    Successor(ShardId),
    Append {
        lane: u16,
        seq: u64,
    },
    Deletion,
}

/// A session that can never act again.
#[derive(Clone, Debug)]
struct EndedSession {
    /// By lane; empty if it left no row.
    sealed: Vec<u64>,
    /// Version of its row; None once the row is gone.
    version: Option<u64>,
    /// Rows that were asked for later know all of its claims.
    known: Ticket,
    /// When that became known, milliseconds.
    known_ms: u64,
}

/// See the module's text.
pub struct Ownership {
    settings: Settings,
    session: LeasedSession,
    hints: Hints,
    lanes: Vec<Lane>,
    /// By lane: what was acknowledged.
    acknowledged: Vec<u64>,
    /// By lane: rows that were deleted.
    deleted: Vec<u64>,
    holds: BTreeMap<ShardId, Hold>,
    /// By shard: stored position of the projection, as far as the shell has told.
    projected: BTreeMap<ShardId, u64>,
    watches: BTreeMap<SessionId, Watch>,
    /// Sessions whose row is being read, or whose fence is on its way.
    watch_reads: BTreeSet<SessionId>,
    seals: BTreeMap<SessionId, Seal>,
    ended: BTreeMap<SessionId, EndedSession>,
    /// As they were read last, by this ticket.
    rows: Vec<(ShardId, ShardRow)>,
    rows_ticket: Ticket,
    reading_rows: bool,
    beating: bool,
    /// Whether it might act after the last input.
    acted: bool,
    told_over: bool,
    next_beat_ms: u64,
    next_watch_ms: u64,
    next_reconcile_ms: u64,
    /// Claims sent so far: rows that were read before the last one do not show it.
    claims: u64,
    tickets: u64,
    asked: BTreeMap<Ticket, Purpose>,
    out: Vec<Output>,
}

impl Ownership {
    pub fn new(settings: Settings, now_ms: u64) -> Self {
        let Settings { session, lease_ms, window, lanes, .. } = settings;
        let predecessor = settings.predecessor.map(|session| (session, Watch::of_predecessor()));
        Self {
            session: LeasedSession::new(session, lease_ms, window, lanes),
            hints: Hints::default(),
            lanes: (0..lanes).map(|lane| Lane::new(lane, window)).collect(),
            acknowledged: vec![0; usize::from(lanes)],
            deleted: vec![0; usize::from(lanes)],
            holds: BTreeMap::new(),
            projected: BTreeMap::new(),
            watches: predecessor.into_iter().collect(),
            watch_reads: BTreeSet::new(),
            seals: BTreeMap::new(),
            ended: BTreeMap::new(),
            rows: Vec::new(),
            rows_ticket: Ticket(0),
            reading_rows: false,
            beating: false,
            acted: false,
            told_over: false,
            next_beat_ms: now_ms,
            next_watch_ms: now_ms,
            next_reconcile_ms: now_ms,
            claims: 0,
            tickets: 0,
            asked: BTreeMap::new(),
            out: Vec::new(),
            settings,
        }
    }

    pub fn id(&self) -> SessionId {
        self.settings.session
    }

    /// Whether this session may acknowledge, send and fire now.
    pub fn may_act(&self, now_ms: u64) -> bool {
        self.session.may_act(now_ms)
    }

    /// CLOCK_BOOTTIME, milliseconds, until which [`Ownership::may_act`] holds if nothing else happens; 0: it does not.
    pub fn acts_until_ms(&self) -> u64 {
        self.session.acts_until_ms()
    }

    pub fn is_over(&self) -> bool {
        self.session.is_over()
    }

    /// Whether decisions on a shard are made here. They are acted on only while [`Ownership::may_act`].
    pub fn serves(&self, shard: ShardId) -> bool {
        self.holds.get(&shard).is_some_and(Hold::serves)
    }

    /// The epoch at which a shard is held here.
    pub fn epoch(&self, shard: ShardId) -> Option<Epoch> {
        self.holds.get(&shard).map(Hold::epoch)
    }

    /// Number of the snapshot that a held shard's row names.
    pub fn published(&self, shard: ShardId) -> Option<u64> {
        self.holds.get(&shard)?.row.snapshot.map(|pointer| pointer.number)
    }

    /// Shards that are being given to another session.
    pub fn leaving(&self) -> Vec<(ShardId, SessionId)> {
        let to = |(shard, hold): (&ShardId, &Hold)| match hold.phase {
            Phase::Stopping { successor, .. } | Phase::Checking { successor } | Phase::Releasing { successor } => {
                Some((*shard, successor))
            }
            Phase::Claiming | Phase::Loading | Phase::Serving | Phase::Reclaiming => None,
        };
        self.holds.iter().filter_map(to).collect()
    }

    /// Whether claims are under way of shards that another session owned to its end; what is handed over has this one's name in its row.
    pub fn takes_over(&self) -> bool {
        let left =
            |hold: &Hold| hold.phase == Phase::Claiming && hold.row.owner.is_some_and(|owner| owner != self.id());
        self.holds.values().any(left)
    }

    /// All shard rows as they were read last, and the sessions that were known to be over before that read was sent.
    pub fn rows(&self) -> (&[(ShardId, ShardRow)], Vec<SessionId>) {
        let before = self.ended.iter().filter(|(_, ended)| ended.known < self.rows_ticket);
        (&self.rows, before.map(|(session, _)| *session).collect())
    }

    /// What is to be done now.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.out)
    }

    /// Time has passed; to be called every few milliseconds.
    pub fn tick(&mut self, now_ms: u64) {
        if !self.session.is_over() {
            self.sessions_tick(now_ms);
            self.reconcile_tick(now_ms);
        }
        self.settle(now_ms);
    }

    /// Membership, placement or the rows have changed. To be called after each [`Output::RowsRead`]: what is held goes only by hints,
    /// never by rows that came after them.
    pub fn hint(&mut self, now_ms: u64, hints: Hints) {
        self.hints = hints;
        if self.session.is_over() {
            return;
        }
        self.next_reconcile_ms = self.next_reconcile_ms.min(now_ms + self.reconcile_ms());
        let held: Vec<ShardId> = self.holds.keys().copied().collect();
        held.into_iter().for_each(|shard| self.begin_move(shard));
        for (shard, row) in self.rows.clone() {
            self.take(now_ms, shard, &row);
        }
    }

    /// Gives every shard away and ends the session.
    pub fn drain(&mut self) {
        self.session.drain();
    }

    /// A row cannot be written: the session stops at once and for ever.
    pub fn give_up(&mut self, now_ms: u64) {
        self.session.give_up();
        self.settle(now_ms);
    }

    /// The store has answered.
    pub fn answered(&mut self, now_ms: u64, ticket: Ticket, answer: StoreAnswer) {
        let Some(purpose) = self.asked.remove(&ticket) else { return };
        if self.session.is_over() {
            return;
        }
        match purpose {
            Purpose::Beat => self.beat_answered(now_ms, &answer, false),
            Purpose::BeatRead => self.beat_answered(now_ms, &answer, true),
            Purpose::Watch { session, had_row } => self.watch_answered(now_ms, session, had_row, &answer),
            Purpose::Fence(session) => self.fence_answered(now_ms, session, &answer),
            Purpose::Seal(session) => self.seal_answered(now_ms, session, &answer),
            Purpose::Rows { claims, quiet } => {
                self.reading_rows = false;
                if let StoreAnswer::Shards(rows) = answer {
                    self.rows_answered(now_ms, ticket, rows, quiet && claims == self.claims);
                }
            }
            Purpose::Row(shard) => self.row_answered(now_ms, shard, &answer),
            Purpose::PeerReleased(shard) => {
                if let StoreAnswer::Shard(row) = answer {
                    self.own_name(now_ms, shard, &row);
                }
            }
            Purpose::Successor(shard) => self.successor_answered(shard, &answer),
            Purpose::Append { lane, seq } => self.append_answered(lane, seq, &answer),
            Purpose::Deletion => {}
        }
        self.settle(now_ms);
    }

    /// A peer says that it released a shard to this session. A hint: the row decides.
    pub fn peer_released(&mut self, shard: ShardId) {
        if !self.session.is_over() && !self.holds.contains_key(&shard) {
            self.ask(Purpose::PeerReleased(shard), Statement::ReadShard { shard });
        }
    }

    /// A shard's state is in memory: `last` is its highest frame, `ends` what [`super::replay::Replay`] found.
    pub fn loaded(&mut self, shard: ShardId, epoch: Epoch, last: u64, ends: Vec<SpanEnd>) {
        let loading = |hold: &&mut Hold| hold.phase == Phase::Loading && hold.epoch() == epoch;
        let Some(hold) = self.holds.get_mut(&shard).filter(loading) else { return };
        (hold.base, hold.ends, hold.phase) = (last, ends, Phase::Serving);
        self.took(Transition::Loaded);
        self.out.push(Output::Serve { shard, epoch });
    }

    /// What follows from any input: acknowledgements, steps of hand-overs, publications, the end.
    fn settle(&mut self, now_ms: u64) {
        self.acknowledge(now_ms);
        let acting = self.session.may_act(now_ms);
        if acting != self.acted {
            self.acted = acting;
            self.took(if acting { Transition::ActingBegan } else { Transition::ActingEnded });
        }
        if !self.session.is_over() {
            self.settle_shards();
        } else if !self.told_over {
            self.told_over = true;
            self.out.push(Output::Over);
        }
    }

    fn ask(&mut self, purpose: Purpose, statement: Statement) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.asked.insert(ticket, purpose);
        self.out.push(Output::Store { ticket, statement });
        ticket
    }

    fn took(&mut self, transition: Transition) {
        self.out.push(Output::Took(transition));
    }
}
