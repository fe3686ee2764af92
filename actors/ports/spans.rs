//! The port of traces: spans that have ended, on their way to whoever collects them.
//!
//! A node computes the ids of spans ([`campanile_schema::trace`]), so it holds nothing while a span is open: whoever sees its end
//! records it, with the times that are in the run's record. A switched-off [`Tracer`] costs one comparison.

use campanile_schema::{
    ids::RunId,
    trace::{Sampling, SpanId, SpanOf, TraceContext},
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Which side of a call a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// It asks another process and waits for it.
    Client,
    /// It serves another process.
    Server,
}

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanValue {
    Text(String),
    Number(i64),
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<u64> for SpanValue {
    fn from(number: u64) -> Self {
        Self::Number(number.cast_signed())
    }
}
impl From<u32> for SpanValue {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

/// A span that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Its own place: the id of its trace and its own.
    pub context: TraceContext,
    /// None: it is the first one of its trace.
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: SpanKind,
    /// Since 1970 UTC.
    pub begin_us: i64,
    pub end_us: i64,
    /// It failed, with this message.
    pub error: Option<String>,
    pub attributes: Vec<(&'static str, SpanValue)>,
}

impl Span {
    /// A child of `below`.
    pub fn child(below: TraceContext, of: SpanOf, name: impl Into<String>, begin_us: i64, end_us: i64) -> Self {
        Self {
            context: below.at(of),
            parent: Some(below.span),
            name: name.into(),
            kind: SpanKind::Internal,
            begin_us,
            end_us: end_us.max(begin_us),
            error: None,
            attributes: Vec::new(),
        }
    }

    #[must_use]
    pub fn of_kind(self, kind: SpanKind) -> Self {
        Self { kind, ..self }
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<SpanValue>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    #[must_use]
    pub fn failed(self, error: Option<String>) -> Self {
        Self { error, ..self }
    }
}

/// Takes spans. Never waits: what it cannot take it drops and counts.
pub trait SpanSink: Send + Sync + 'static {
    fn record(&self, span: Span);
    /// Sends what it has, for the end of the process. May wait for seconds.
    fn flush(&self) {}
}

/// Records spans, if it is switched on. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<On>>);

struct On {
    sink: Box<dyn SpanSink>,
    sampling: Sampling,
    calls: AtomicU64,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "Tracer(on)" } else { "Tracer(off)" })
    }
}

impl Tracer {
    pub fn new(sink: impl SpanSink, sampling: Sampling) -> Self {
        Self(Some(Arc::new(On { sink: Box::new(sink), sampling, calls: AtomicU64::new(0) })))
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Which runs of schedules begin a trace; None: it is off.
    pub fn sampling(&self) -> Option<Sampling> {
        self.0.as_ref().map(|on| on.sampling)
    }

    /// Whether spans of this trace are recorded here.
    pub fn records(&self, context: TraceContext) -> bool {
        self.is_on() && context.sampled
    }

    /// The context of what comes below that span: where it is not recorded, the span before it stays the parent.
    pub fn below(&self, context: TraceContext, of: SpanOf) -> TraceContext {
        if self.records(context) { context.at(of) } else { context }
    }

    pub fn record(&self, span: Span) {
        if let Some(on) = self.0.as_ref().filter(|_| span.context.sampled) {
            on.sink.record(span);
        }
    }

    /// The span of a call: below the caller's, or the first one of a trace, which only a share of the calls begins. None: no trace.
    pub fn of_call(&self, caller: Option<TraceContext>, begins: bool) -> Option<TraceContext> {
        let Some(on) = &self.0 else { return caller };
        let number = on.calls.fetch_add(1, Ordering::Relaxed);
        match caller {
            Some(context) if context.sampled => Some(context.at(SpanOf::Call(on.sampling.seed.wrapping_add(number)))),
            Some(context) => Some(context),
            None if begins => on.sampling.begin_call(number),
            None => None,
        }
    }

    /// See [`SpanSink::flush`].
    pub fn flush(&self) {
        if let Some(on) = &self.0 {
            on.sink.flush();
        }
    }
}

/// Attributes of every span about a run.
pub fn of_run(span: Span, run: RunId, job: u64, tenant: &str) -> Span {
    span.with("campanile.run.id", run.0).with("campanile.job.id", job).with("campanile.tenant", tenant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use campanile_schema::trace::ALL;
    use parking_lot::Mutex;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<Span>>>);
    impl SpanSink for Kept {
        fn record(&self, span: Span) {
            self.0.lock().push(span);
        }
    }

    fn context(flags: &str) -> TraceContext {
        format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}").parse().unwrap()
    }

    #[test]
    fn a_tracer_that_is_off_passes_contexts_on_as_they_are() {
        let off = Tracer::default();
        assert_eq!(off.of_call(Some(context("01")), true), Some(context("01")));
        assert_eq!(off.of_call(None, true), None);
        assert_eq!(off.below(context("01"), SpanOf::Run(RunId(1), 1)), context("01"));
        assert_eq!(off.sampling(), None);
    }

    #[test]
    fn a_callers_decision_to_record_is_followed() {
        let kept = Kept::default();
        let none = Tracer::new(kept.clone(), Sampling { seed: 1, share: 0 });
        let span = |context| Span::child(context, SpanOf::Run(RunId(1), 1), "run", 1, 2);
        assert_eq!(none.of_call(None, true), None, "no share of the calls begins a trace");
        let below = none.of_call(Some(context("01")), true).unwrap();
        assert_eq!(below.trace, context("01").trace);
        assert_ne!(below.span, context("01").span);
        none.record(span(below));
        assert_eq!(none.of_call(Some(context("00")), true), Some(context("00")));
        none.record(span(context("00")));
        assert_eq!(kept.0.lock().len(), 1, "a span of a trace that is not recorded is left out");
    }

    #[test]
    fn only_calls_that_may_begin_a_trace_do() {
        let all = Tracer::new(Kept::default(), Sampling { seed: 1, share: ALL });
        assert_eq!(all.of_call(None, false), None);
        let (one, two) = (all.of_call(None, true).unwrap(), all.of_call(None, true).unwrap());
        assert_ne!(one.trace, two.trace);
    }
}
