//! Tells executors at which nodes runs wait for their credit, so that they take credit from nodes that do not need it.
//!
//! An executor is told at once that runs wait, and with a later tick that none do: under load runs wait and start in
//! every turn, and credit must not move back and forth with each of them.

use super::{PoolState, session::ExecutorSessionState};
use crate::messages::ToExecutor;
use campanile_core::dispatch::filter;
use campanile_schema::rpc::executor::Hint;

impl PoolState {
    /// After runs were matched: what waits now.
    pub(super) fn hint(&mut self, now_ms: i64) {
        for class in self.dispatch.starved() {
            for session in self.sessions.values_mut() {
                // One with credit left lacks what these runs need; more credit would not help.
                session.waited_for =
                    session.waited_for || filter::serves(&session.executor, class) && session.credit_left(now_ms) == 0;
            }
        }
        for session in self.sessions.values_mut() {
            if session.hinted.is_none() || session.waited_for {
                session.tell_hint(session.waited_for);
            }
        }
    }

    /// With each tick: who is not waited for any more.
    pub(super) fn end_hints(&mut self) {
        for session in self.sessions.values_mut() {
            let waited_for = std::mem::take(&mut session.waited_for);
            session.tell_hint(waited_for);
        }
    }
}

impl ExecutorSessionState {
    fn tell_hint(&mut self, waiting: bool) {
        if self.hinted == Some(waiting) {
            return;
        }
        // With a full outbox, later; without one it registers anew, and is told then.
        if let Some(outbox) = &self.outbox
            && outbox.try_send(ToExecutor::Hint(Hint { waiting })).is_ok()
        {
            self.hinted = Some(waiting);
        }
    }
}
