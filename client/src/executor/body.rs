//! Runs one body in its own task: a panic is a failure, and every end is told, even that of a task that was aborted.

use super::{
    attempts::Key,
    context::Context,
    handler::{Body, BodyFuture, JobError, Report, code},
};
use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, ready},
};
use tokio::{sync::mpsc, task::AbortHandle};

/// A body is no longer running.
#[derive(Debug)]
pub(super) struct BodyEnd {
    pub key: Key,
    /// None: the task was aborted.
    pub report: Option<Report>,
}

/// Starts the body.
pub(super) fn start(body: Body, ctx: Context, end: Arc<End>) -> AbortHandle {
    tokio::spawn(async move {
        // Moved in whole, so that dropping the task drops it.
        let end = end;
        let report = match catch_unwind(AssertUnwindSafe(|| body(ctx))) {
            Ok(future) => CatchPanic(future).await,
            Err(panic) => panicked(&*panic),
        };
        *end.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        drop(end);
    })
    .abort_handle()
}

/// Tells the session when the last one that holds it drops it: the body's task, which an aborted one does too, and blocking work that
/// the body began.
#[derive(Debug)]
pub(super) struct End {
    key: Key,
    ended: mpsc::Sender<BodyEnd>,
    report: Mutex<Option<Report>>,
}

impl End {
    /// `ended` has room for the bodies of all slots.
    pub(super) fn new(key: Key, ended: mpsc::Sender<BodyEnd>) -> Arc<Self> {
        Arc::new(Self { key, ended, report: Mutex::new(None) })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let report = self.report.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // Fails only when the session is gone and nobody wants to know.
        let _ = self.ended.try_send(BodyEnd { key: self.key, report });
    }
}

struct CatchPanic(BodyFuture);

impl Future for CatchPanic {
    type Output = Report;
    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Report> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(poll) => Poll::Ready(ready!(poll)),
            Err(panic) => Poll::Ready(panicked(&*panic)),
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Report {
    Report::failed(panic_error(panic))
}

pub(super) fn panic_error(panic: &(dyn Any + Send)) -> JobError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)");
    JobError::new(code::HANDLER_PANIC, format!("the handler panicked: {text}"))
}
