//! The end of a body, told once, when nothing of the body runs any more.

use super::{key::Key, report::Report};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// A body is no longer running.
#[derive(Debug)]
pub(super) struct BodyEnd {
    pub key: Key,
    /// None: the task was aborted.
    pub report: Option<Report>,
}

/// Tells the session when the last one that holds it drops it: the body's task, which an aborted one does too, and blocking work that
/// the body began.
#[derive(Debug)]
pub(super) struct EndSignal {
    key: Key,
    ended: mpsc::Sender<BodyEnd>,
    report: Mutex<Option<Report>>,
}

impl EndSignal {
    /// `ended` has room for the bodies of all slots.
    pub(super) fn new(key: Key, ended: mpsc::Sender<BodyEnd>) -> Arc<Self> {
        Arc::new(Self { key, ended, report: Mutex::new(None) })
    }

    /// What the body reports. It is told when the end is dropped.
    pub(super) fn say(&self, report: Report) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}

impl Drop for EndSignal {
    fn drop(&mut self) {
        let report = self.report.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // Fails only when the session is gone and nobody wants to know.
        let _ = self.ended.try_send(BodyEnd { key: self.key, report });
    }
}
