//! The span of a call: below the caller's, or the first one of a trace. What the call changes carries it on.

use super::{Answer, CameFrom, Operations, audit::Subject};
use campanile_ports::spans::{Span, SpanKind};
use campanile_schema::{
    operations::{CallEffect, Row},
    trace::TraceContext,
};
use std::{
    future::Future,
    time::{SystemTime, UNIX_EPOCH},
};
use tracing::{Instrument, field::Empty};

impl Operations {
    /// The same for one call of a trace; None: the call belongs to none, and nothing is to be done for it.
    pub(super) fn traced(&self, row: &Row) -> Option<Traced> {
        let caller = self.came_from.trace;
        if caller.is_none() && !self.tracer.is_on() {
            return None;
        }
        let begins = match row.effect {
            // What watches and pages read all day would hide the traces that matter.
            CallEffect::Read => false,
            CallEffect::Once => true,
        };
        let context = self.tracer.of_call(caller, begins)?;
        let came_from = CameFrom { trace: Some(context), ..self.came_from.clone() };
        Some(Traced { ops: self.called_from(came_from), caller, context })
    }
}

/// A call of a trace.
pub(super) struct Traced {
    ops: Operations,
    /// The caller's span.
    caller: Option<TraceContext>,
    /// The call's.
    context: TraceContext,
}

impl std::ops::Deref for Traced {
    type Target = Operations;
    fn deref(&self) -> &Operations {
        &self.ops
    }
}

impl Traced {
    /// Carries the call out and records its span. Lines of the log on the way have the ids.
    pub async fn spanned<T>(
        &self,
        row: &'static Row,
        subject: &Subject,
        call: impl Future<Output = Answer<T>>,
    ) -> Answer<T> {
        let (context, begin_us) = (self.context, now_us());
        let lines =
            tracing::info_span!("call", operation = row.name, trace_id = %context.trace, job = Empty, run = Empty);
        if let Some(job) = subject.job {
            lines.record("job", job.0);
        }
        if let Some(run) = subject.run {
            lines.record("run", run.0);
        }
        let answer = call.instrument(lines).await;
        let span = Span {
            context,
            parent: self.caller.map(|caller| caller.span),
            name: row.name.to_owned(),
            kind: SpanKind::Server,
            begin_us,
            end_us: now_us().max(begin_us),
            error: answer.as_ref().err().map(ToString::to_string),
            attributes: Vec::new(),
        };
        let span = self.described(span, subject);
        self.ops.tracer.record(match answer.as_ref().err() {
            Some(error) => span.with("campanile.error.code", error.code.as_str()),
            None => span,
        });
        answer
    }

    fn described(&self, mut span: Span, subject: &Subject) -> Span {
        if let Some(id) = self.ops.came_from.request_id.as_deref() {
            span = span.with("campanile.request.id", id);
        }
        if let Some(job) = subject.job {
            span = span.with("campanile.job.id", job.0);
        }
        if let Some(run) = subject.run {
            span = span.with("campanile.run.id", run.0);
        }
        span
    }
}

/// Spans are compared with those of other programs, so the machine's clock counts.
fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
