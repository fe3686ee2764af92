//! The trace of an assignment: what its body does is a child of the attempt.

use super::PoolDeps;
use campanile_ports::spans::{Span, of_run};
use campanile_schema::{
    rpc::executor::Assignment,
    trace::{SpanOf, TraceContext},
};

/// Names the attempt's span to the executor, and records the time from the decision until now, when the assignment is put into
/// the executor's outbox. A trace that this node does not record goes on as it came.
pub(super) fn assigned(deps: &PoolDeps, assignment: &mut Assignment, decided_ms: i64) {
    let tracer = &deps.identity.tracer;
    let Some(context) = assignment.traceparent.as_deref().and_then(|text| text.parse::<TraceContext>().ok()) else {
        return;
    };
    if !tracer.records(context) {
        return;
    }
    let (run, token) = (assignment.run, assignment.token);
    let below = context.at(SpanOf::Attempt(run, token));
    let span =
        Span::child(below, SpanOf::Dispatch(run, token), "dispatch", decided_ms * 1_000, deps.identity.time.now_us());
    tracer.record(of_run(span, run, assignment.job.0, &assignment.tenant));
    assignment.traceparent = Some(below.to_string());
}
