//! What a body sees of its attempt.

use super::{
    end::EndSignal,
    key::Key,
    log::{AttemptLog, LogsOut},
    stop::{StopFlag, StopReason},
};
use campanile_schema::{
    ids::{JobId, RunId, Token},
    record::Source,
    rpc::executor::Assignment,
    time::Timestamp,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::task::JoinHandle;

/// One attempt, as its body sees it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    assignment: Assignment,
    stop: StopFlag,
    log: AttemptLog,
    grace: Duration,
    end: Weak<EndSignal>,
}

impl Context {
    pub(super) fn new(assignment: Assignment, key: Key, logs: LogsOut, grace: Duration, end: &Arc<EndSignal>) -> Self {
        let (stop, log, end) = (StopFlag::default(), AttemptLog::new(key, logs), Arc::downgrade(end));
        Self(Arc::new(Inner { assignment, stop, log, grace, end }))
    }

    /// All that the node sent.
    pub fn assignment(&self) -> &Assignment {
        &self.0.assignment
    }
    pub fn run_id(&self) -> RunId {
        self.0.assignment.run
    }
    pub fn job_id(&self) -> JobId {
        self.0.assignment.job
    }
    pub fn job_name(&self) -> &str {
        &self.0.assignment.job_name
    }
    pub fn tenant(&self) -> &str {
        &self.0.assignment.tenant
    }
    /// From 1.
    pub fn attempt(&self) -> u32 {
        self.0.assignment.attempt
    }
    /// Rises with each redrive and retry by hand.
    pub fn generation(&self) -> u32 {
        self.0.assignment.generation
    }
    /// The fencing token: a system that a body writes to can refuse lower ones.
    pub fn token(&self) -> Token {
        self.0.assignment.token
    }
    /// What to be idempotent with: `runId/generation`, the same for all attempts.
    pub fn invocation_id(&self) -> String {
        self.0.assignment.invocation_id()
    }
    /// The instant that the run stands for, which may lie in the past; None for runs that stand for none.
    pub fn logical_time(&self) -> Option<Timestamp> {
        self.0.assignment.logical_time
    }
    pub fn source(&self) -> Source {
        self.0.assignment.source
    }
    /// The job's secret params, opened. Never logged by the SDK.
    pub fn secrets(&self) -> &BTreeMap<String, String> {
        &self.0.assignment.secrets
    }
    /// The span that what the body does is a child of, as W3C Trace Context writes it: to be sent as header `traceparent` with its
    /// calls. None: the run belongs to no trace.
    pub fn traceparent(&self) -> Option<&str> {
        self.0.assignment.traceparent.as_deref()
    }

    /// The trace that the run belongs to, 32 hexadecimal digits; for lines of a log.
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent()?.split('-').nth(1)
    }

    /// Writes a line to the run's log. Never waits; a line that finds the buffer full is dropped and counted in the log.
    pub fn log(&self, line: impl AsRef<str>) {
        self.0.log.write(&[line.as_ref().as_bytes(), b"\n"]);
    }
    /// Writes bytes to the run's log as they are, waiting while the buffer is full. For output of commands.
    pub async fn write_log(&self, bytes: &[u8]) {
        self.0.log.write_all(bytes).await;
    }

    /// The body was told to stop.
    pub fn is_canceled(&self) -> bool {
        self.0.stop.get().is_some()
    }
    /// Why the body was told to stop.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.0.stop.get()
    }
    /// Resolves when the body is told to stop. A body that goes on is dropped at its next `await` after [`Self::stop_grace`].
    pub async fn canceled(&self) -> StopReason {
        self.0.stop.wait().await
    }
    /// How long the body may take to end by itself once it was told to stop (`stopGraceSec` of the executor).
    pub fn stop_grace(&self) -> Duration {
        self.0.grace
    }

    /// Runs blocking work on a thread of its own, as `tokio::task::spawn_blocking` does, as a part of this attempt: a thread cannot be
    /// ended from outside, so the attempt ends when the work has returned, even when the body's own future was dropped
    /// before. Until then the run is shown as STOPPING, keeps its slot, and no other attempt of it starts. Work that may take long
    /// should look at [`Self::is_canceled`] now and then.
    ///
    /// Work that is started with `tokio::task::spawn_blocking` itself is not known to the executor and can outlive its attempt.
    pub fn spawn_blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let held = self.0.end.upgrade();
        tokio::task::spawn_blocking(move || {
            let _held = held;
            work()
        })
    }

    pub(super) fn stop(&self, reason: StopReason) {
        self.0.stop.set(reason);
    }
    pub(super) fn take_log(&self, last: bool) -> Option<Vec<u8>> {
        self.0.log.take(last)
    }
}
