//! When the driver makes a request again by itself: only when the server did not know the statement, and so did nothing.

use scylla::{
    errors::{DbError, RequestAttemptError},
    policies::retry::{RequestInfo, RetryDecision, RetryPolicy, RetrySession},
};

/// Times that one request is made again. Each of them prepares the statement anew, which takes one more exchange.
const RETRIES_MAX: u32 = 64;

/// The driver prepares a statement that the server does not know and asks once more. A server whose memory of statements is full, of
/// ours and of those of other programs, may drop a new one within that moment, at start most of all, when many come at once. Eight
/// times were not enough once, when three nodes started together (`herd-in-take-over` of `make chaos`). All other errors are the
/// caller's: only it can find out what came of a request.
#[derive(Debug)]
pub struct WhenUnprepared;

struct Tries {
    left: u32,
}

impl RetryPolicy for WhenUnprepared {
    fn new_session(&self) -> Box<dyn RetrySession> {
        Box::new(Tries { left: RETRIES_MAX })
    }
}

impl RetrySession for Tries {
    fn decide_should_retry(&mut self, request: RequestInfo) -> RetryDecision {
        match request.error {
            RequestAttemptError::DbError(DbError::Unprepared { .. }, _) if self.left > 0 => {
                self.left -= 1;
                RetryDecision::RetrySameTarget(None)
            }
            _ => RetryDecision::DontRetry,
        }
    }

    fn reset(&mut self) {
        self.left = RETRIES_MAX;
    }
}
