//! The span of a body: below the span of its attempt, which the node names.

use campanile_schema::{
    rpc::executor::{Assignment, Ended},
    trace::{SpanOf, TraceContext},
};
use std::time::SystemTime;

/// A body of a trace that has ended. See [`ExecutorBuilder::on_body_end`](super::ExecutorBuilder::on_body_end).
#[derive(Clone, Copy, Debug)]
pub struct BodyEnded<'a> {
    /// The span of the attempt.
    pub attempt: TraceContext,
    /// Of this machine's clock.
    pub begin: SystemTime,
    pub end: SystemTime,
    /// What ran.
    pub assignment: &'a Assignment,
    /// What the node is told.
    pub ended: &'a Ended,
}

/// A body of a trace that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodySpan {
    attempt: TraceContext,
    begin: SystemTime,
}

impl BodySpan {
    /// What the body does becomes a child of its span from here on. None: its run belongs to no trace that is recorded.
    pub(super) fn begin(assignment: &mut Assignment) -> Option<Self> {
        let attempt: TraceContext = assignment.traceparent.as_deref()?.parse().ok()?;
        if !attempt.sampled {
            return None;
        }
        let of = SpanOf::Body(assignment.run, assignment.token);
        assignment.traceparent = Some(attempt.at(of).to_string());
        Some(Self { attempt, begin: SystemTime::now() })
    }

    pub(super) fn end<'a>(self, assignment: &'a Assignment, ended: &'a Ended) -> BodyEnded<'a> {
        BodyEnded { attempt: self.attempt, begin: self.begin, end: SystemTime::now(), assignment, ended }
    }
}
