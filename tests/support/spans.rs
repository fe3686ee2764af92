//! Keeps the spans that a node records.

use campanile_ports::spans::{Span, SpanSink, Tracer};
use campanile_schema::trace::{Sampling, SpanId, TraceContext, TraceId};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// The example of W3C Trace Context: a caller's span.
pub const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

pub fn caller() -> TraceContext {
    CALLER.parse().unwrap()
}

/// See the module's text. Nodes can share it.
#[derive(Clone, Default)]
pub struct Spans(Arc<Mutex<Vec<Span>>>);

impl SpanSink for Spans {
    fn record(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }
}

impl Spans {
    /// `share`: of a million runs and calls without a caller's span.
    pub fn tracer(&self, share: u32) -> Tracer {
        Tracer::new(self.clone(), Sampling { seed: 7, share })
    }

    pub fn all(&self) -> Vec<Span> {
        self.0.lock().unwrap().clone()
    }

    pub fn of(&self, trace: TraceId) -> Vec<Span> {
        self.all().into_iter().filter(|span| span.context.trace == trace).collect()
    }

    /// Name of each span of a trace with the name of its parent, in order. `CALLER` is the caller's span, and `-` no span.
    pub fn tree(&self, trace: TraceId) -> Vec<(String, String)> {
        let spans = self.of(trace);
        let mut names: BTreeMap<SpanId, String> =
            spans.iter().map(|span| (span.context.span, span.name.clone())).collect();
        names.insert(caller().span, "CALLER".to_owned());
        let parent = |span: &Span| match span.parent {
            None => "-".to_owned(),
            Some(parent) => names.get(&parent).cloned().unwrap_or_else(|| format!("unknown {parent}")),
        };
        let mut tree: Vec<_> = spans.iter().map(|span| (span.name.clone(), parent(span))).collect();
        tree.sort();
        tree
    }
}

/// A tree as [`Spans::tree`] gives it.
pub fn tree(spans: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut tree: Vec<_> = spans.iter().map(|(name, parent)| ((*name).to_owned(), (*parent).to_owned())).collect();
    tree.sort();
    tree
}
