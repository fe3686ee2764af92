//! How a body learns that it must stop.

use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;

/// Why a body must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The node asked for it: the run was canceled or replaced.
    Canceled,
    /// The job's `timeoutSec` is over.
    Timeout,
    /// No node answered for so long that the lease is about to end, and the job says `onLostContact: STOP`.
    LostContact,
    /// The executor shuts down and its time for that is over.
    Shutdown,
}

/// Set once; waited for by the body.
#[derive(Debug, Default)]
pub(super) struct StopFlag {
    reason: AtomicU8,
    changed: Notify,
}

impl StopFlag {
    /// The first reason stands.
    pub(super) fn set(&self, reason: StopReason) {
        let code = match reason {
            StopReason::Canceled => 1,
            StopReason::Timeout => 2,
            StopReason::LostContact => 3,
            StopReason::Shutdown => 4,
        };
        let _ = self.reason.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
        self.changed.notify_waiters();
    }

    pub(super) fn get(&self) -> Option<StopReason> {
        match self.reason.load(Ordering::Acquire) {
            1 => Some(StopReason::Canceled),
            2 => Some(StopReason::Timeout),
            3 => Some(StopReason::LostContact),
            4 => Some(StopReason::Shutdown),
            _ => None,
        }
    }

    pub(super) async fn wait(&self) -> StopReason {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change between the two is not missed.
            changed.as_mut().enable();
            if let Some(reason) = self.get() {
                return reason;
            }
            changed.await;
        }
    }
}
