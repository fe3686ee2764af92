//! What the executor on a connection said of attempts that are not its own. One that does so again and again guesses: its connection is
//! closed, which is logged at most once a minute for each credential.
//!
//! An honest executor does it too, for attempts that were taken from it while it was silent; it held them, so they are few.

use super::writer::Outgoing;
use campanile_core::job::Claimant;
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{RunId, Token},
    limits::{EXECUTOR_FOREIGN_CLAIMS, EXECUTOR_FOREIGN_WINDOW_MS},
    rpc::{encode, method},
    text::Text,
};
use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

const WINDOW: Duration = Duration::from_millis(EXECUTOR_FOREIGN_WINDOW_MS);

/// When which credential was last complained of. Bounded: there are no more credentials than lines of the token file.
#[derive(Default)]
pub(super) struct Complaints(Mutex<HashMap<Text, Instant>>);

impl Complaints {
    /// Whether it is time to say it (again).
    fn is_due(&self, credential: &Text, now: Instant) -> bool {
        let mut told = self.0.lock();
        let due = told.get(credential).is_none_or(|at| now.duration_since(*at) >= WINDOW);
        if due {
            told.insert(credential.clone(), now);
        }
        due
    }
}

/// See the module's text. Of one registration on one connection.
pub(super) struct ForeignClaims {
    most: usize,
    window: Mutex<Window>,
    by: Arc<Claimant>,
    out: mpsc::Sender<Outgoing>,
    complaints: Arc<Complaints>,
}

struct Window {
    since: Instant,
    /// Each attempt once: what an executor logs of one that it has lost comes in many chunks.
    named: HashSet<(RunId, Token)>,
    closed: bool,
}

impl ForeignClaims {
    pub fn new(slots: u32, by: Arc<Claimant>, out: mpsc::Sender<Outgoing>, complaints: Arc<Complaints>) -> Self {
        let window = Mutex::new(Window { since: Instant::now(), named: HashSet::new(), closed: false });
        // Twice its slots: what it ran, and what it ended and nobody had taken yet.
        Self { most: 2 * slots as usize + EXECUTOR_FOREIGN_CLAIMS, window, by, out, complaints }
    }

    /// Counts an attempt that it does not hold; true = once too often: the connection is to be closed.
    fn counts(&self, run: RunId, token: Token, now: Instant) -> bool {
        metrics::counter!("campanile_executor_claims_refused_total").increment(1);
        let mut window = self.window.lock();
        if now.duration_since(window.since) >= WINDOW {
            (window.since, window.named) = (now, HashSet::new());
        }
        if window.closed || !window.named.insert((run, token)) || window.named.len() <= self.most {
            return false;
        }
        window.closed = true;
        window.named = HashSet::new();
        true
    }

    pub async fn refused(&self, attempts: impl IntoIterator<Item = (RunId, Token)>) {
        let now = Instant::now();
        let mut close = false;
        for (run, token) in attempts {
            close |= self.counts(run, token, now);
        }
        if !close {
            return;
        }
        metrics::counter!("campanile_executor_guessers_closed_total").increment(1);
        if self.complaints.is_due(&self.by.credential, now) {
            let (credential, session) = (self.by.credential.as_str(), self.by.session.0);
            tracing::warn!(
                ?credential,
                session,
                "an executor names attempts that it does not hold; its connection is closed"
            );
        }
        let message = format!("more than {} attempts within a minute that this executor does not hold", self.most);
        let mut bytes = Vec::new();
        let told =
            encode::notification(&mut bytes, method::SESSION_ERROR, &ApiError::new(ErrorCode::Forbidden, message));
        if told.is_ok() {
            // The writer may be gone, and the connection with it.
            let _ = self.out.send(Outgoing::Frame { bytes, permit: None }).await;
        }
        let _ = self.out.send(Outgoing::Close).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::ids::ExecutorSession;

    #[test]
    fn guesses_are_counted_by_attempt_and_minute_and_told_once_for_each_credential() {
        let by = Arc::new(Claimant { session: ExecutorSession(1), credential: "a".into(), pools: None });
        let complaints = Arc::new(Complaints::default());
        let claims = ForeignClaims::new(3, by, mpsc::channel(1).0, complaints.clone());
        let (now, most) = (Instant::now(), 2 * 3 + EXECUTOR_FOREIGN_CLAIMS as u64);
        for _ in 0..2 {
            assert!((0..most).all(|n| !claims.counts(RunId(n), Token(n), now)), "the same again counts once");
        }
        let later = now + WINDOW;
        assert!((0..most).all(|n| !claims.counts(RunId(n), Token(n + 1), later)), "a minute later it begins anew");
        assert!(claims.counts(RunId(most), Token(0), later));
        assert!(!claims.counts(RunId(most + 1), Token(0), later), "it is closed once");
        let due = |credential: &str, at| complaints.is_due(&credential.into(), at);
        assert_eq!([due("a", now), due("a", now), due("b", now), due("a", later)], [true, false, true, true]);
    }
}
