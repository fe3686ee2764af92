//! What must hold at any time, seen from outside of the nodes.

use super::{
    shard::{Change, Frame, LIMIT, QUOTA},
    world::{SHARDS, World},
};
use campanile_schema::ids::{SessionId, ShardId};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    TwoOwners {
        shard: ShardId,
        sessions: [SessionId; 2],
    },
    LostAcknowledged {
        shard: ShardId,
        what: String,
    },
    Hole {
        shard: ShardId,
        what: String,
    },
    /// Two different frames of a shard with one seq both counted.
    Forked {
        shard: ShardId,
        seq: u64,
    },
    TooManyRuns {
        open: usize,
    },
    NotServed {
        shard: ShardId,
    },
    PermitsNotFreed {
        session: SessionId,
    },
}

/// A violation without its particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    TwoOwners,
    LostAcknowledged,
    Hole,
    Forked,
    TooManyRuns,
    NotServed,
    PermitsNotFreed,
}

impl Violation {
    pub fn kind(&self) -> ViolationKind {
        match self {
            Self::TwoOwners { .. } => ViolationKind::TwoOwners,
            Self::LostAcknowledged { .. } => ViolationKind::LostAcknowledged,
            Self::Hole { .. } => ViolationKind::Hole,
            Self::Forked { .. } => ViolationKind::Forked,
            Self::TooManyRuns { .. } => ViolationKind::TooManyRuns,
            Self::NotServed { .. } => ViolationKind::NotServed,
            Self::PermitsNotFreed { .. } => ViolationKind::PermitsNotFreed,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoOwners { shard, sessions: [a, b] } => {
                write!(f, "sessions {a} and {b} both act for shard {shard}")
            }
            Self::LostAcknowledged { shard, what } => write!(f, "shard {shard} lost what was acknowledged: {what}"),
            Self::Hole { shard, what } => write!(f, "the replay of shard {shard} met a hole: {what}"),
            Self::Forked { shard, seq } => write!(f, "shard {shard} has two frames {seq}"),
            Self::TooManyRuns { open } => write!(f, "{open} runs are open; the limit is {LIMIT}"),
            Self::NotServed { shard } => write!(f, "shard {shard} is not served again"),
            Self::PermitsNotFreed { session } => write!(f, "session {session} is over and keeps its permits"),
        }
    }
}

/// What was promised.
#[derive(Default)]
pub struct Truth {
    pub values: BTreeMap<ShardId, BTreeSet<u64>>,
    /// Highest frame acknowledged.
    pub seq: BTreeMap<ShardId, u64>,
    /// Runs whose bodies may be running.
    pub open: BTreeSet<u64>,
    /// Which row holds a frame that counts.
    counted: BTreeMap<(ShardId, u64), usize>,
    /// Shards of which a row was acknowledged since the world is calm.
    pub written_again: BTreeSet<ShardId>,
}

/// The shard of a run.
pub fn shard_of(run: u64) -> ShardId {
    ShardId((run % u64::from(SHARDS)) as u16)
}

/// Late statements have come, leases have ended, and there was time for three take-overs one after the other.
const SOON_US: u64 = 20_000_000;

impl World {
    /// Never two acting owners of one shard.
    pub fn check_owners(&mut self) {
        for shard in (0..SHARDS).map(ShardId) {
            let acting = (0..self.nodes.len()).filter(|node| self.acts(*node, shard));
            let sessions: Vec<_> = acting.filter_map(|node| self.nodes[node].session()).collect();
            if let [a, b, ..] = sessions[..] {
                self.violated(Violation::TwoOwners { shard, sessions: [a, b] });
            }
        }
    }

    /// Whether a node may act for a shard now, by its own clock.
    pub fn acts(&self, node: usize, shard: ShardId) -> bool {
        let now_ms = self.local_ms(node);
        self.nodes[node].own().is_some_and(|own| own.serves(shard) && own.may_act(now_ms))
    }

    /// A node acknowledges a frame, which is an act.
    pub fn check_acknowledged(&mut self, node: usize, batch: usize, frame: &Frame) {
        let Frame { shard, seq, .. } = *frame;
        let other = (0..self.nodes.len()).find(|other| *other != node && self.acts(*other, shard));
        if let (Some(a), Some(b)) = (self.nodes[node].session(), other.and_then(|other| self.nodes[other].session())) {
            self.violated(Violation::TwoOwners { shard, sessions: [a, b] });
        }
        self.counts(shard, seq, batch);
        let known = self.truth.seq.entry(shard).or_default();
        *known = seq.max(*known);
        for change in &frame.changes {
            match change {
                Change::Value(value) => {
                    self.truth.values.entry(shard).or_default().insert(*value);
                }
                Change::Started(run) => {
                    self.truth.open.insert(*run);
                }
                Change::Ended(run) => {
                    self.truth.open.remove(run);
                }
                Change::Loan(_) => {}
            }
        }
        self.check_runs();
    }

    pub fn check_runs(&mut self) {
        let open = self.truth.open.len();
        if open > LIMIT as usize {
            self.violated(Violation::TooManyRuns { open });
        }
    }

    /// This row's frame is part of the shard's history.
    pub fn counts(&mut self, shard: ShardId, seq: u64, batch: usize) {
        if *self.truth.counted.entry((shard, seq)).or_insert(batch) != batch {
            self.violated(Violation::Forked { shard, seq });
        }
    }

    /// A taker has loaded a shard that is its own: nothing that was acknowledged is missing.
    pub fn check_loaded(&mut self, shard: ShardId, last: u64, values: &BTreeSet<u64>) {
        let acknowledged = self.truth.seq.get(&shard).copied().unwrap_or(0);
        if last < acknowledged {
            let what = format!("frames behind {last}; {acknowledged} was acknowledged");
            self.violated(Violation::LostAcknowledged { shard, what });
        }
        let missing = self.truth.values.get(&shard).and_then(|known| known.difference(values).next().copied());
        if let Some(value) = missing {
            self.violated(Violation::LostAcknowledged { shard, what: format!("value {value}") });
        }
    }

    /// Faults stop: soon every shard is owned, serves and writes again, and no session that is over holds permits.
    pub fn rest(&mut self) {
        self.become_calm();
        let end_us = self.now_us + SOON_US;
        while self.violation.is_none() {
            let Some(violation) = self.unrest() else { return };
            if self.now_us > end_us {
                self.violated(violation);
                return;
            }
            for _ in 0..20 {
                self.step();
            }
        }
    }

    fn unrest(&self) -> Option<Violation> {
        for shard in (0..SHARDS).map(ShardId) {
            let served = (0..self.nodes.len()).any(|node| self.acts(node, shard));
            if !served || !self.truth.written_again.contains(&shard) {
                return Some(Violation::NotServed { shard });
            }
        }
        let quota = (0..self.nodes.len()).find(|node| self.acts(*node, QUOTA))?;
        let mut lent = self.nodes[quota].memory.get(&QUOTA)?.1.state.loans.sessions();
        let over = lent.find(|session| !self.store.lives(*session));
        over.map(|session| Violation::PermitsNotFreed { session })
    }
}
