//! The handle of a running executor: its status, and how to drain it.

use std::time::Duration;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// What an executor is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Nodes that it is registered with.
    pub registered: usize,
    pub running: usize,
    /// Results that no node has called durable or refused yet.
    pub unacknowledged: usize,
    /// Bodies that have ended since the start.
    pub ended: u64,
    /// Why the latest connection failed or was refused.
    pub last_error: Option<String>,
}

/// A request to a running executor.
pub(super) enum Control {
    Drain { limit: Duration },
}

/// A running executor. Dropping it stops everything at once, as a crash would; [`ExecutorHandle::drain`] ends it well.
#[derive(Debug)]
pub struct ExecutorHandle {
    pub(super) control: mpsc::Sender<Control>,
    pub(super) status: watch::Receiver<Status>,
    pub(super) task: JoinHandle<Status>,
}

impl ExecutorHandle {
    /// Takes no more runs, lets those that run finish, hands in their results, and ends. After `limit` bodies are told to stop
    /// and their attempts fail with `EXECUTOR_SHUTDOWN`. What is left in the answer was not handed in.
    pub async fn drain(mut self, limit: Duration) -> Status {
        if self.control.send(Control::Drain { limit }).await.is_err() {
            return self.status.borrow().clone();
        }
        match (&mut self.task).await {
            Ok(status) => status,
            Err(_) => self.status.borrow().clone(),
        }
    }

    /// What it is doing now.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Waits until `wanted` holds; the status then, or None when the executor has ended.
    pub async fn wait_until(&self, wanted: impl FnMut(&Status) -> bool) -> Option<Status> {
        let mut status = self.status.clone();
        status.wait_for(wanted).await.ok().map(|status| status.clone())
    }

    /// Waits until at least one node has registered it.
    pub async fn ready(&self) -> Option<Status> {
        self.wait_until(|status| status.registered > 0).await
    }
}

impl Drop for ExecutorHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}
