//! The trace that a call or a run belongs to: the context of W3C Trace Context (`traceparent`), as callers send it, as runs keep
//! it, and as executors get it.
//!
//! Ids of spans are computed from ids that are stored anyway, so that whichever node ends a run, an attempt or a call names the
//! same span, and nobody has to remember spans that are open.
//!
//! Never here: clocks and randomness. Who begins a trace brings a number for it.

use crate::{
    ids::{RunId, Token},
    text::Text,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, str::FromStr};

/// The header of HTTP, and the name in RPC.
pub const TRACEPARENT: &str = "traceparent";
/// The flag that says that the caller records its spans.
const SAMPLED: u8 = 1;
/// The largest share of runs, and the unit of shares: parts of a million.
pub const ALL: u32 = 1_000_000;

/// A trace. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(pub u128);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A span of a trace. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(pub u64);

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A place in a trace: what comes next is a child of the span. It is written as `traceparent` of version 00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    pub trace: TraceId,
    pub span: SpanId,
    /// Spans are recorded. Without it the context is only passed on.
    pub sampled: bool,
}

/// Why a text is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not of the form 00-TRACE-SPAN-FLAGS with 32, 16 and 2 hexadecimal digits in lower case, and ids other than 0"
)]
pub struct BadTraceparent;

/// `digits` hexadecimal digits in lower case.
fn hex(text: &str, digits: usize) -> Result<u128, BadTraceparent> {
    let fine = text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if fine { u128::from_str_radix(text, 16).map_err(|_| BadTraceparent) } else { Err(BadTraceparent) }
}

impl FromStr for TraceContext {
    type Err = BadTraceparent;

    /// As W3C Trace Context asks: of a later version, what begins like version 00 is read.
    fn from_str(text: &str) -> Result<Self, BadTraceparent> {
        let mut parts = text.splitn(5, '-');
        let mut next = |digits| hex(parts.next().unwrap_or_default(), digits);
        let (version, trace, span, flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
        let longer = parts.next().is_some();
        let fine = trace != 0 && span != 0 && version != 0xff && !(longer && version == 0);
        if !fine {
            return Err(BadTraceparent);
        }
        let span = u64::try_from(span).map_err(|_| BadTraceparent)?;
        let sampled = flags & u128::from(SAMPLED) != 0;
        Ok(Self { trace: TraceId(trace), span: SpanId(span), sampled })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = if self.sampled { SAMPLED } else { 0 };
        write!(f, "00-{}-{}-{flags:02x}", self.trace, self.span)
    }
}

impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(from)?;
        text.parse().map_err(|why| serde::de::Error::custom(format!("traceparent: {why}")))
    }
}

/// A stored context. One that this release cannot read is left out: a run is worth more than its trace.
pub mod kept {
    use super::TraceContext;
    use crate::text::Text;
    use serde::{Deserialize, Deserializer};

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TraceContext>, D::Error> {
        Ok(Option::<Text>::deserialize(from)?.and_then(|text| text.parse().ok()))
    }
}

/// Mixes a number so that all bits of the result depend on all bits of it (the finalizer of SplitMix64).
fn mixed(mut n: u64) -> u64 {
    n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// Which span of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanOf {
    /// A call, by a number that its node does not use again.
    Call(u64),
    /// A due instant that made the run, without a caller.
    Schedule(RunId),
    /// A generation of a run, from its beginning to its end.
    Run(RunId, u32),
    /// The time in which a run waited for its attempt of this token.
    Wait(RunId, Token),
    /// From the decision to the moment when the store has it.
    Append(RunId, u64),
    Attempt(RunId, Token),
    /// From the decision to start an attempt to the moment when its assignment was sent.
    Dispatch(RunId, Token),
    /// What the executor does for an attempt.
    Body(RunId, Token),
}

impl SpanOf {
    /// The numbers that make it differ from the other spans of its trace.
    fn numbers(self) -> [u64; 3] {
        match self {
            Self::Call(number) => [8, number, 0],
            Self::Schedule(run) => [1, run.0, 0],
            Self::Run(run, generation) => [2, run.0, generation.into()],
            Self::Wait(run, token) => [3, run.0, token.0],
            Self::Append(run, seq) => [4, run.0, seq],
            Self::Attempt(run, token) => [5, run.0, token.0],
            Self::Dispatch(run, token) => [6, run.0, token.0],
            Self::Body(run, token) => [7, run.0, token.0],
        }
    }
}

impl TraceContext {
    /// A trace that begins with its first span; the number is never used again for another trace.
    pub fn root(number: u128, sampled: bool) -> Self {
        let (high, low) = ((number >> 64) as u64, number as u64);
        let trace = (u128::from(mixed(high ^ mixed(low))) << 64) | u128::from(mixed(low.wrapping_add(1)));
        let trace = TraceId(trace.max(1));
        Self { trace, span: SpanId(mixed(low ^ mixed(high)).max(1)), sampled }
    }

    /// The id of a span of this trace.
    pub fn id(&self, of: SpanOf) -> SpanId {
        let seed = (self.trace.0 >> 64) as u64 ^ self.trace.0 as u64;
        SpanId(
            of.numbers()
                .into_iter()
                .fold(seed, |seed, n| mixed(seed ^ mixed(n.wrapping_add(0x9e37_79b9_7f4a_7c15))))
                .max(1),
        )
    }

    /// The context below that span.
    #[must_use]
    pub fn at(&self, of: SpanOf) -> Self {
        Self { span: self.id(of), ..*self }
    }
}

/// Which runs that nobody called for, and which calls without a context, begin a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Random, so that two nodes and two starts do not use an id twice.
    pub seed: u64,
    /// So many of [`ALL`].
    pub share: u32,
}

impl Sampling {
    /// The trace of a new run; None for those that are left out.
    pub fn begin(self, run: RunId) -> Option<TraceContext> {
        let context = self.drawn(self.seed, run.0)?;
        Some(context.at(SpanOf::Schedule(run)))
    }

    /// The trace of a call, by its number; None for those that are left out.
    pub fn begin_call(self, number: u64) -> Option<TraceContext> {
        let context = self.drawn(!self.seed, number)?;
        Some(context.at(SpanOf::Call(number)))
    }

    fn drawn(self, seed: u64, number: u64) -> Option<TraceContext> {
        let is_in = mixed(seed ^ mixed(number)) % u64::from(ALL) < u64::from(self.share);
        is_in.then(|| TraceContext::root((u128::from(seed) << 64) | u128::from(number), true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_is_read_and_written_as_it_was() {
        let context: TraceContext = EXAMPLE.parse().unwrap();
        assert!(context.sampled);
        assert_eq!(context.to_string(), EXAMPLE);
        let unsampled = EXAMPLE.replace("-01", "-00");
        assert_eq!(unsampled.parse::<TraceContext>().unwrap().to_string(), unsampled);
        let later = format!("cc{}-more", EXAMPLE.strip_prefix("00").unwrap());
        assert_eq!(later.parse::<TraceContext>(), Ok(context), "of a later version the known part counts");
    }

    #[test]
    fn what_is_no_traceparent_is_refused() {
        let zeros = format!("00-{:032}-b7ad6b7169203331-01", 0);
        let no_span = format!("00-0af7651916cd43dd8448eb211c80319c-{:016}-01", 0);
        let long = format!("{EXAMPLE}-more");
        let upper = EXAMPLE.to_uppercase();
        for wrong in ["", "00", &EXAMPLE[..54], &zeros, &no_span, &long, &upper, &EXAMPLE.replacen("00", "ff", 1)] {
            assert_eq!(wrong.parse::<TraceContext>(), Err(BadTraceparent), "{wrong}");
        }
    }

    #[test]
    fn spans_of_a_trace_differ_and_everybody_computes_the_same() {
        let context: TraceContext = EXAMPLE.parse().unwrap();
        let (run, other) = (RunId(4_097), RunId(8_193));
        let mut spans = BTreeSet::new();
        for of in [
            SpanOf::Call(run.0),
            SpanOf::Schedule(run),
            SpanOf::Run(run, 1),
            SpanOf::Run(run, 2),
            SpanOf::Run(other, 1),
            SpanOf::Wait(run, Token(1)),
            SpanOf::Append(run, 1),
            SpanOf::Append(run, 2),
            SpanOf::Attempt(run, Token(1)),
            SpanOf::Attempt(run, Token(2)),
            SpanOf::Dispatch(run, Token(1)),
            SpanOf::Body(run, Token(1)),
        ] {
            assert!(spans.insert(context.id(of)), "{of:?}");
            assert_eq!(context.at(of).id(of), context.id(of), "only trace and place count");
        }
        // Nodes of two releases work on one trace: these ids never change.
        assert_eq!(context.id(SpanOf::Run(run, 1)).to_string(), "71a9f1d45a3e6b3e");
    }

    #[test]
    fn the_share_of_runs_that_begin_a_trace_is_the_one_asked_for() {
        let traced = |share| (0..20_000).filter(|n| Sampling { seed: 7, share }.begin(RunId(*n)).is_some()).count();
        assert_eq!(traced(0), 0);
        assert_eq!(traced(ALL), 20_000);
        let some = traced(ALL / 100);
        assert!((120..=280).contains(&some), "{some} of 20000 at 1 %");
    }

    #[test]
    fn two_seeds_make_two_traces_of_one_run() {
        let trace = |seed| Sampling { seed, share: ALL }.begin(RunId(5)).unwrap().trace;
        assert_ne!(trace(1), trace(2));
        assert_eq!(trace(1), trace(1));
    }

    #[test]
    fn a_stored_context_that_cannot_be_read_is_left_out() {
        #[derive(Deserialize)]
        struct Holder {
            #[serde(default, deserialize_with = "kept::deserialize")]
            trace: Option<TraceContext>,
        }
        let read = |text: &str| serde_json::from_str::<Holder>(text).unwrap().trace;
        assert_eq!(read(&format!("{{\"trace\": \"{EXAMPLE}\"}}")), EXAMPLE.parse().ok());
        assert_eq!(read("{\"trace\": \"later form\"}"), None);
        assert_eq!(read("{}"), None);
    }
}
