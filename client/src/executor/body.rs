//! Runs one body in its own task: a panic is a failure, and every end is told, even that of a task that was aborted.

use super::{
    context::Context,
    end::EndSignal,
    handler::{Body, BodyFuture},
    report::{Report, panic_error},
};
use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Poll, ready},
};
use tokio::task::AbortHandle;
use tracing::{Instrument, field::Empty};

/// Starts the body.
pub(super) fn start(body: Body, ctx: Context, end: Arc<EndSignal>) -> AbortHandle {
    // What the body logs has the ids.
    let lines = tracing::info_span!("attempt", run = %ctx.run_id(), job = %ctx.job_id(), attempt = ctx.attempt(), trace_id = Empty);
    if let Some(trace) = ctx.trace_id() {
        lines.record("trace_id", trace);
    }
    let running = async move {
        // Moved in whole, so that dropping the task drops it.
        let end = end;
        let report = match catch_unwind(AssertUnwindSafe(|| body(ctx))) {
            Ok(future) => CatchPanic(future).await,
            Err(panic) => panicked(&*panic),
        };
        end.say(report);
        drop(end);
    };
    tokio::spawn(running.instrument(lines)).abort_handle()
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
