//! What a connection is in the middle of, and how it is closed for another one: all that the list of idle connections knows of it.

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The head of a request is coming, since then.
    Head(Instant),
    /// A request is being answered.
    Busy,
    /// Nothing has come since the last answer; it may be closed for another connection in this turn.
    Idle(u64),
    Closed,
}

pub(super) struct State {
    pub phase: Phase,
    /// When something came or went last.
    pub moved: Instant,
}

/// One connection.
pub(super) struct Connection {
    pub state: Mutex<State>,
    /// Of the transport, which ends the connection.
    pub waker: AtomicWaker,
}

impl Default for Connection {
    fn default() -> Self {
        let now = Instant::now();
        Self { state: Mutex::new(State { phase: Phase::Head(now), moved: now }), waker: AtomicWaker::new() }
    }
}

impl Connection {
    /// Gives its place to another one.
    pub fn close(&self) {
        self.state.lock().phase = Phase::Closed;
        self.waker.wake();
    }
}
