//! Sealing a session that was fenced: finding and recording where each of its lanes ends.
//!
//! Each lane is read from the durable position in the session's row up to the first gap. A row of the session's last
//! window may be on a minority of the replicas only, and another reader would miss it. The rows of that window are
//! therefore written again with the same bytes. Then the ends are recorded by LWT, unless they are recorded already;
//! every taker uses the recorded ends.

use super::{
    rows::{Nonce, SessionRow},
    rules::{Rule, kept},
    store::{Batch, Statement, StoreAnswer},
};
use campanile_schema::ids::SessionId;

/// What the seal waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Read {
        lane: u16,
    },
    Rewrite {
        lane: u16,
        rows: Vec<(u64, Batch)>,
    },
    Record,
    /// The recording timed out.
    ReadBack,
}

/// Where a seal stands after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sealing {
    /// The next statement is [`Seal::statement`].
    On,
    /// The sealed positions of the session, by lane, and the version of its row: recorded by this seal, or found.
    Sealed { positions: Vec<u64>, version: u64, ours: bool },
    /// The session's row is gone: nothing names it any more.
    Gone,
}

/// The seal of one session by one taker.
#[derive(Clone, Debug)]
pub struct Seal {
    session: SessionId,
    row: SessionRow,
    ends: Vec<u64>,
    step: Step,
}

impl Seal {
    /// `row`: the session's row, which says that it is over.
    pub fn new(session: SessionId, row: SessionRow) -> Self {
        let step = if row.durable.is_empty() { Step::Record } else { Step::Read { lane: 0 } };
        Self { session, row, ends: Vec::new(), step }
    }

    /// What to ask the store now, and again after [`StoreAnswer::Unknown`].
    pub fn statement(&mut self, nonce: Nonce) -> Statement {
        let session = self.session;
        match &self.step {
            Step::Read { lane } => {
                Statement::ReadLane { session, lane: *lane, after: self.row.durable[usize::from(*lane)] }
            }
            Step::Rewrite { lane, rows } => Statement::Rewrite { session, lane: *lane, rows: rows.clone() },
            Step::Record => {
                let sealed = Some(self.ends.clone());
                let row = SessionRow { version: self.row.version + 1, nonce, sealed, ..self.row.clone() };
                Statement::PutSession { session, expected: Some(self.row.version), row }
            }
            Step::ReadBack => Statement::ReadSession { session },
        }
    }

    /// Whether this seal is at rewriting, and how many rows.
    pub fn rewriting(&self) -> Option<usize> {
        match &self.step {
            Step::Rewrite { rows, .. } => Some(rows.len()),
            Step::Read { .. } | Step::Record | Step::ReadBack => None,
        }
    }

    pub fn answered(&mut self, answer: &StoreAnswer) -> Sealing {
        match (&self.step, answer) {
            (Step::Read { lane }, StoreAnswer::Lane(rows)) => {
                let lane = *lane;
                let from = self.row.durable[usize::from(lane)];
                let end = from + rows.len() as u64;
                self.ends.push(end);
                let window = rows.iter().filter(|(seq, _)| seq + self.row.window > end).cloned();
                let rows: Vec<_> = if kept(Rule::SealRewritesWindow) { window.collect() } else { Vec::new() };
                self.step = if rows.is_empty() { self.after(lane) } else { Step::Rewrite { lane, rows } };
                Sealing::On
            }
            (Step::Rewrite { lane, .. }, StoreAnswer::Done) => {
                self.step = self.after(*lane);
                Sealing::On
            }
            (Step::Record, StoreAnswer::Done) => {
                Sealing::Sealed { positions: self.ends.clone(), version: self.row.version + 1, ours: true }
            }
            (Step::Record | Step::ReadBack, StoreAnswer::Session(Some(row))) => {
                if let Some(positions) = &row.sealed {
                    return Sealing::Sealed { positions: positions.clone(), version: row.version, ours: false };
                }
                self.row = row.clone();
                self.step = Step::Record;
                Sealing::On
            }
            (Step::Record | Step::ReadBack, StoreAnswer::Session(None)) => Sealing::Gone,
            (Step::Record, StoreAnswer::Unknown) => {
                self.step = Step::ReadBack;
                Sealing::On
            }
            // Not done, or not known: once more.
            (
                Step::Read { .. } | Step::Rewrite { .. } | Step::Record | Step::ReadBack,
                StoreAnswer::Done
                | StoreAnswer::Session(_)
                | StoreAnswer::Shard(_)
                | StoreAnswer::Shards(_)
                | StoreAnswer::Lane(_)
                | StoreAnswer::Unknown,
            ) => Sealing::On,
        }
    }

    fn after(&self, lane: u16) -> Step {
        if usize::from(lane) + 1 < self.row.durable.len() { Step::Read { lane: lane + 1 } } else { Step::Record }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ownership::rows::SessionState;

    #[test]
    fn the_last_window_is_written_again_before_the_seal() {
        let (session, nonce) = (SessionId(7), Nonce::default());
        let (state, durable) = (SessionState::Fenced, vec![10]);
        let row = SessionRow { version: 5, nonce, lease_ms: 1, window: 2, state, durable, sealed: None };
        let mut seal = Seal::new(session, row.clone());
        assert_eq!(seal.statement(nonce), Statement::ReadLane { session, lane: 0, after: 10 });
        let rows: Vec<_> = (11..=14).map(|seq| (seq, Batch::from([0].as_slice()))).collect();
        assert_eq!(seal.answered(&StoreAnswer::Lane(rows.clone())), Sealing::On);
        let last = rows[2..].to_vec();
        assert_eq!(seal.statement(nonce), Statement::Rewrite { session, lane: 0, rows: last.clone() });
        assert_eq!(seal.answered(&StoreAnswer::Unknown), Sealing::On);
        assert_eq!(seal.statement(nonce), Statement::Rewrite { session, lane: 0, rows: last }, "the same bytes");
        seal.answered(&StoreAnswer::Done);
        assert!(matches!(seal.statement(nonce), Statement::PutSession { expected: Some(5), .. }));
        let sealed = SessionRow { version: 6, sealed: Some(vec![12]), ..row };
        let found = seal.answered(&StoreAnswer::Session(Some(sealed)));
        assert_eq!(found, Sealing::Sealed { positions: vec![12], version: 6, ours: false }, "what stands there counts");
    }
}
