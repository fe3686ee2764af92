//! Watches another session: for how long it has shown no new heartbeat, and therefore when it may be fenced.
//!
//! This is safe whatever the watcher missed. The count begins when the watcher receives a reply that shows the
//! heartbeat, and the heartbeat was sent before that. The fence is conditional on exactly that version of the row.

use super::{
    rows::{Nonce, SessionRow, SessionState},
    rules::{Rule, kept},
    store::Statement,
};
use campanile_schema::ids::SessionId;

/// Two machines' clocks run within a tenth of each other: a watcher waits for so many tenths of the lease.
const TENTHS_OF_LEASE: u64 = 11;

/// What a reply showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchVerdict {
    /// It lives, or not enough time has passed.
    Wait,
    /// It may be fenced now, and only now: the statement is to be sent at once.
    Silent,
    /// It is over already.
    Over,
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    row: Option<SessionRow>,
    /// Time of the last reply, milliseconds of the own clock; None after a read that failed.
    last_ms: Option<u64>,
    /// How long the value has been seen, milliseconds of the own clock.
    counted_ms: u64,
    /// The process of that session is known to be gone (this one holds its lock, on the same boot): no need to wait.
    gone: bool,
}

impl Watch {
    /// Of the session that this process held before it was started again.
    pub fn of_predecessor() -> Self {
        Self { gone: true, ..Self::default() }
    }

    /// A read of the session's row showed this. `own_lease_ms` is the watcher's setting: it must not matter.
    pub fn replied(&mut self, now_ms: u64, row: &SessionRow, own_lease_ms: u64) -> WatchVerdict {
        if row.state.is_over() {
            return WatchVerdict::Over;
        }
        let same = self.row.as_ref().is_some_and(|seen| seen.version == row.version && seen.nonce == row.nonce);
        if same {
            self.counted_ms += self.last_ms.map_or(0, |last| now_ms.saturating_sub(last));
        } else {
            self.row = Some(row.clone());
            self.counted_ms = 0;
        }
        self.last_ms = Some(now_ms);
        let lease_ms = if kept(Rule::LeaseOfTheRow) { row.lease_ms } else { own_lease_ms };
        let tenths = if kept(Rule::TenthForClocks) { TENTHS_OF_LEASE } else { 10 };
        let mut wait_ms = (lease_ms * tenths).div_ceil(10);
        if !kept(Rule::FenceAfterLease) {
            wait_ms /= 2;
        }
        if self.gone || self.counted_ms >= wait_ms { WatchVerdict::Silent } else { WatchVerdict::Wait }
    }

    /// A read of the row failed: until the next reply time does not count.
    pub fn failed(&mut self) {
        if kept(Rule::FailedReadsDoNotCount) {
            self.last_ms = None;
        }
    }

    /// The LWT that ends the session, if its row is still the one that was seen last.
    pub fn fence(&self, session: SessionId, nonce: Nonce) -> Option<Statement> {
        let seen = self.row.as_ref()?;
        let row = SessionRow { version: seen.version + 1, nonce, state: SessionState::Fenced, ..seen.clone() };
        Some(Statement::PutSession { session, expected: Some(seen.version), row })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(version: u64) -> SessionRow {
        let nonce = Nonce { session: SessionId(1), count: version };
        let (durable, state) = (vec![0], SessionState::Active);
        SessionRow { version, nonce, lease_ms: 1_000, window: 4, state, durable, sealed: None }
    }

    #[test]
    fn silence_is_the_rows_lease_and_a_tenth() {
        let mut watch = Watch::default();
        assert_eq!(watch.replied(500, &row(1), 10), WatchVerdict::Wait);
        assert_eq!(watch.replied(1_599, &row(1), 10), WatchVerdict::Wait);
        assert_eq!(watch.replied(1_600, &row(1), 10), WatchVerdict::Silent);
        assert_eq!(watch.replied(1_700, &row(2), 10), WatchVerdict::Wait, "a heartbeat");
        assert_eq!(watch.replied(2_799, &row(2), 10), WatchVerdict::Wait);
    }

    #[test]
    fn time_of_failed_reads_does_not_count() {
        let mut watch = Watch::default();
        watch.replied(0, &row(1), 10);
        watch.replied(600, &row(1), 10);
        watch.failed();
        assert_eq!(watch.replied(60_000, &row(1), 10), WatchVerdict::Wait);
        assert_eq!(watch.replied(60_500, &row(1), 10), WatchVerdict::Silent);
    }

    #[test]
    fn a_process_that_is_gone_is_not_waited_for() {
        let mut watch = Watch::of_predecessor();
        assert_eq!(watch.replied(0, &row(1), 10), WatchVerdict::Silent);
        let over = SessionRow { state: SessionState::Ended, ..row(2) };
        assert_eq!(watch.replied(1, &over, 10), WatchVerdict::Over);
    }
}
