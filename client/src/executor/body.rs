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

/// Starts the body. `ended` has room for one message of each slot.
pub(super) fn start(body: Body, ctx: Context, key: Key, ended: mpsc::Sender<BodyEnd>) -> AbortHandle {
    let end = End { key, ended, report: None };
    tokio::spawn(async move {
        // Moved in whole, so that dropping the task drops it.
        let mut end = end;
        let report = match catch_unwind(AssertUnwindSafe(|| body(ctx))) {
            Ok(future) => CatchPanic(future).await,
            Err(panic) => panicked(&*panic),
        };
        end.report = Some(report);
        drop(end);
    })
    .abort_handle()
}

/// Tells the session when it is dropped, which an aborted task does too.
struct End {
    key: Key,
    ended: mpsc::Sender<BodyEnd>,
    report: Option<Report>,
}

impl Drop for End {
    fn drop(&mut self) {
        // Fails only when the session is gone and nobody wants to know.
        let _ = self.ended.try_send(BodyEnd { key: self.key, report: self.report.take() });
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
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)");
    Report::failed(JobError::new(code::HANDLER_PANIC, format!("the handler panicked: {text}")))
}
