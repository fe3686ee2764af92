//! The node's own session: its row, its heartbeats, and the time until which it may act.
//!
//! A heartbeat is an LWT on the session's row. Until another node fences the session, only the session itself writes
//! that row. A newer version in it is therefore a heartbeat of its own whose answer was lost.

use super::{
    rows::{Nonce, SessionRow, SessionState},
    rules::{Rule, kept},
    store::{Statement, StoreAnswer},
};
use campanile_schema::ids::SessionId;

/// What an answer meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// The row was inserted, or a heartbeat succeeded.
    Counted,
    /// Nobody knows: the row must be read.
    Unknown,
    /// The row was read, and one of the heartbeats that timed out stands there.
    ReadBack,
    /// The row was read, and none of the heartbeats that timed out stands there.
    Missed,
    /// No heartbeat can succeed any more.
    Over,
}

/// A heartbeat without an answer.
#[derive(Clone, Debug)]
struct Sent {
    row: SessionRow,
    at_ms: u64,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct LeasedSession {
    id: SessionId,
    /// What stands in the store, as far as is known. Version 0: not inserted yet.
    row: SessionRow,
    /// End of the right to act, milliseconds of the own clock; 0 before the first heartbeat.
    until_ms: u64,
    /// Heartbeats that may still be applied, by the version that they would make.
    sent: Vec<Sent>,
    nonces: u64,
    /// Set once nothing can succeed any more.
    over: bool,
    /// The end was asked for: the next heartbeat that counts is the last one.
    ending: bool,
}

impl LeasedSession {
    pub fn new(id: SessionId, lease_ms: u64, window: u64, lanes: u16) -> Self {
        let row = SessionRow {
            version: 0,
            nonce: Nonce::default(),
            lease_ms,
            window,
            state: SessionState::Active,
            durable: vec![0; usize::from(lanes)],
            sealed: None,
        };
        Self { id, row, until_ms: 0, sent: Vec::new(), nonces: 0, over: false, ending: false }
    }

    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Tells a write of this session from all others.
    pub fn nonce(&mut self) -> Nonce {
        self.nonces += 1;
        Nonce { session: self.id, count: self.nonces }
    }

    /// Whether the session may acknowledge, send and fire now. To be asked again after each durable write.
    pub fn may_act(&self, now_ms: u64) -> bool {
        #[cfg(feature = "faults")]
        if crate::faults::has_no_deadline() {
            return self.row.version > 0 && !self.ending;
        }
        !self.over && now_ms < self.until_ms
    }

    /// End of the right to act as it is known now; 0: it may not act.
    pub fn acts_until_ms(&self) -> u64 {
        #[cfg(feature = "faults")]
        if crate::faults::has_no_deadline() && self.may_act(0) {
            return u64::MAX;
        }
        if self.over { 0 } else { self.until_ms }
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    /// By lane: the durable position that stands in the store for certain.
    pub fn stated(&self) -> &[u64] {
        &self.row.durable
    }

    /// Takes nothing new from now on; the next heartbeat says so.
    pub fn drain(&mut self) {
        self.row.state = SessionState::Draining;
    }

    pub fn is_draining(&self) -> bool {
        self.row.state == SessionState::Draining
    }

    /// Nothing is owned any more: the next heartbeat ends the session, with the positions that are durable as sealed.
    pub fn end(&mut self) {
        self.ending = true;
        self.until_ms = 0;
    }

    pub fn is_ending(&self) -> bool {
        self.ending
    }

    /// Gives the session up: it never acts again. Others, or the next session of this process, fence and seal it.
    pub fn give_up(&mut self) {
        self.over = true;
    }

    /// The insert has not succeeded within a lease. If it did and nobody told, others may already have fenced the session, and
    /// removed its row: a second insert would make a session that they take for over. To be asked before each heartbeat.
    pub fn is_stillborn(&self, now_ms: u64) -> bool {
        let first = self.sent.first().filter(|_| self.row.version == 0 && kept(Rule::InsertWithinLease));
        first.is_some_and(|first| now_ms >= first.at_ms + self.row.lease_ms)
    }

    /// The next heartbeat. One at a time: not before the last one's answer, or the read that follows [`Beat::Unknown`].
    pub fn beat(&mut self, now_ms: u64, durable: Vec<u64>) -> Statement {
        let expected = (self.row.version > 0).then_some(self.row.version);
        let nonce = self.nonce();
        let mut row = SessionRow { version: self.row.version + 1, nonce, durable, ..self.row.clone() };
        if self.ending {
            row.state = SessionState::Ended;
            row.sealed = Some(row.durable.clone());
        }
        self.sent.push(Sent { row: row.clone(), at_ms: now_ms });
        Statement::PutSession { session: self.id, expected, row }
    }

    pub fn read(&self) -> Statement {
        Statement::ReadSession { session: self.id }
    }

    /// Takes the answer of a heartbeat, or of the read after an unknown one.
    pub fn answered(&mut self, answer: &StoreAnswer) -> Beat {
        match answer {
            StoreAnswer::Done => {
                self.sent.last().map(|sent| sent.row.clone()).map_or(Beat::Unknown, |row| self.stands(&row))
            }
            StoreAnswer::Session(Some(row)) => match self.stands(row) {
                Beat::Counted => Beat::ReadBack,
                other => other,
            },
            // Before the insert there is nothing; later, others removed the row of a session that is over.
            StoreAnswer::Session(None) if self.row.version == 0 => Beat::Missed,
            StoreAnswer::Session(None) => self.ended(),
            StoreAnswer::Unknown => {
                if !kept(Rule::HeartbeatReadBack)
                    && let Some(sent) = self.sent.last()
                {
                    self.until_ms = self.until_ms.max(sent.at_ms + self.row.lease_ms);
                }
                Beat::Unknown
            }
            StoreAnswer::Shard(_) | StoreAnswer::Shards(_) | StoreAnswer::Lane(_) => Beat::Unknown,
        }
    }

    /// This row stands in the store.
    fn stands(&mut self, row: &SessionRow) -> Beat {
        if row.state.is_over() {
            return self.ended();
        }
        let at_ms = self.sent.iter().find(|sent| sent.row.nonce == row.nonce).map(|sent| sent.at_ms);
        let draining = self.is_draining();
        self.row = row.clone();
        if draining {
            self.row.state = SessionState::Draining;
        }
        // Those that expected an older version can never be applied.
        self.sent.retain(|sent| sent.row.version > row.version);
        let Some(at_ms) = at_ms else { return Beat::Missed };
        if !self.ending {
            self.until_ms = self.until_ms.max(at_ms + self.row.lease_ms);
        }
        Beat::Counted
    }

    fn ended(&mut self) -> Beat {
        #[cfg(feature = "faults")]
        if crate::faults::has_no_deadline() && !self.ending {
            return Beat::Missed;
        }
        self.over = true;
        Beat::Over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(statement: &Statement) -> SessionRow {
        match statement {
            Statement::PutSession { row, .. } => row.clone(),
            other => panic!("no heartbeat: {other:?}"),
        }
    }

    #[test]
    fn the_lease_counts_from_the_sending() {
        let mut session = LeasedSession::new(SessionId(1), 1_000, 4, 1);
        let _ = session.beat(100, vec![0]);
        assert!(!session.may_act(100));
        assert_eq!(session.answered(&StoreAnswer::Done), Beat::Counted);
        assert!(session.may_act(1_099));
        assert!(!session.may_act(1_100));
    }

    #[test]
    fn a_heartbeat_whose_answer_was_lost_counts_from_its_own_sending() {
        let mut session = LeasedSession::new(SessionId(1), 1_000, 4, 1);
        let _ = session.beat(0, vec![0]);
        session.answered(&StoreAnswer::Done);
        let lost = session.beat(400, vec![3]);
        assert_eq!(session.answered(&StoreAnswer::Unknown), Beat::Unknown);
        assert!(!session.may_act(1_000), "nobody knows whether it was applied");
        let _ = session.beat(900, vec![5]);
        assert_eq!(session.answered(&StoreAnswer::Session(Some(row_of(&lost)))), Beat::ReadBack);
        assert!(session.may_act(1_399));
        assert!(!session.may_act(1_400));
        assert_eq!(session.stated(), [3]);
    }

    #[test]
    fn a_session_that_is_not_inserted_in_time_is_given_up() {
        let mut session = LeasedSession::new(SessionId(1), 1_000, 4, 1);
        let _ = session.beat(100, vec![0]);
        session.answered(&StoreAnswer::Unknown);
        assert_eq!(session.answered(&StoreAnswer::Session(None)), Beat::Missed);
        let _ = session.beat(600, vec![0]);
        assert!(!session.is_stillborn(1_099));
        assert!(session.is_stillborn(1_100));
    }

    #[test]
    fn a_fenced_and_a_removed_row_end_it() {
        let fresh = || {
            let mut session = LeasedSession::new(SessionId(1), 1_000, 4, 1);
            let first = session.beat(0, vec![0]);
            session.answered(&StoreAnswer::Done);
            (session, row_of(&first))
        };
        let (mut session, first) = fresh();
        let fenced = SessionRow { version: 2, state: SessionState::Fenced, ..first };
        assert_eq!(session.answered(&StoreAnswer::Session(Some(fenced))), Beat::Over);
        let (mut session, _) = fresh();
        assert_eq!(session.answered(&StoreAnswer::Session(None)), Beat::Over);
        assert!(!session.may_act(2));
    }
}
