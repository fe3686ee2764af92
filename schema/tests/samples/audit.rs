//! Samples of the audit trail.

use super::{AT, JOB, RUN, Sample, sample};
use campanile_schema::{
    event::Event,
    record::Source,
    stored::audit::{AuditRecord, CallOrigin},
    trace::TraceContext,
};

pub fn origin() -> CallOrigin {
    let (who, address) = (Some("olga".into()), Some("192.0.2.7".into()));
    CallOrigin { who, address, request: Some("1f2e3d4c-17".into()), trace: None }
}

/// The example of W3C Trace Context.
pub fn trace() -> TraceContext {
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap()
}

/// Of a caller with a trace, and of a run that nobody called for.
pub fn traced_origins() -> [(&'static str, CallOrigin); 3] {
    let called = CallOrigin { trace: Some(trace()), ..origin() };
    [("every field", origin()), ("in a trace", called), ("only a trace", CallOrigin::in_trace(trace()))]
}

/// A change of a job, which names what every change names.
pub fn paused() -> AuditRecord {
    AuditRecord {
        id: 9_007_199_254_740_993,
        at_ms: AT,
        origin: origin(),
        operation: "job.pause".into(),
        tenant: Some("finance".into()),
        job: Some(JOB),
        reason: Some("too loud".into()),
        count: 1,
        ..AuditRecord::default()
    }
}

pub fn records() -> Vec<(&'static str, AuditRecord)> {
    let everything = AuditRecord { run: Some(RUN), target: Some("node-1".into()), count: 3, ..paused() };
    let unknown = CallOrigin { who: None, ..origin() };
    let refused = AuditRecord {
        id: 7,
        at_ms: AT,
        origin: unknown,
        operation: "job.list".into(),
        refused: Some("401_UNAUTHENTICATED".into()),
        count: 40_000,
        ..AuditRecord::default()
    };
    vec![("a change", paused()), ("every field of a change", everything), ("refusals", refused)]
}

/// Of a caller: the form that this release writes.
fn triggered() -> Event {
    Event::RunCreated {
        job: JOB,
        run: RUN,
        source: Source::Manual,
        logical_ms: Some(AT),
        key: Some("run-11944".to_owned()),
        params: None,
        reason: None,
        by: Some(origin().into()),
        held: false,
        at_ms: AT,
        interval: None,
        late: false,
        dag: None,
        depth: 0,
        marked: false,
        timeout_sec: None,
        backfill: None,
        budget: None,
        sealed: None,
    }
}

pub fn samples() -> Vec<Sample> {
    let mut samples: Vec<Sample> = records().iter().map(|(name, record)| sample("audit", name, record)).collect();
    samples.push(sample("event", "RunCreated, by a caller", &triggered()));
    samples
}
