//! Makes the spans of a trace from the events of a decision, and records them when the decision is durable. It is called only
//! while the node records spans.
//!
//! | span | from | to | child of |
//! |---|---|---|---|
//! | `schedule JOB` | the due instant | its run is durable | nothing: it is the first one |
//! | `run JOB` | the run's creation | its end is durable | call, `schedule`, or the run that sent the message |
//! | `append EVENT` | the decision | the store has it | run, or attempt |
//! | `wait` | the run's creation, or the attempt before | the attempt's start | run |
//! | `attempt N` | the attempt's start | its end | run |
//!
//! The pool adds `dispatch`, and the executor `body`; both are children of the attempt. Everything is taken from the events and
//! the record of the run, so a trace is whole also when another node owned the shard at its beginning.

use super::{Shard, ShardDeps};
use campanile_core::job::Job;
use campanile_ports::spans::{Span, SpanKind, of_run};
use campanile_schema::{
    event::Event,
    ids::{JobId, RunId, Token},
    record::{AttemptRecord, AttemptState, RunRecord, RunState, Source},
    trace::{SpanOf, TraceContext},
};

/// A span; some end when their decision is durable.
pub(super) struct Begun {
    span: Span,
    ends_durable: bool,
}

fn ended(span: Span) -> Begun {
    Begun { span, ends_durable: false }
}

fn until_durable(span: Span) -> Begun {
    Begun { span, ends_durable: true }
}

fn record(deps: &ShardDeps, spans: Vec<Begun>) {
    let now_us = deps.time.now_us();
    for Begun { mut span, ends_durable } in spans {
        if ends_durable {
            span.end_us = now_us.max(span.begin_us);
        }
        deps.identity.tracer.record(span);
    }
}

/// What the spans of one event need.
struct Of<'a> {
    job: JobId,
    name: &'a str,
    record: &'a RunRecord,
    /// The span that the run is a child of.
    trace: TraceContext,
    seq: u64,
}

impl Of<'_> {
    fn run_context(&self) -> TraceContext {
        self.trace.at(SpanOf::Run(self.record.run, self.record.generation))
    }

    fn about(&self, span: Span) -> Span {
        of_run(span, self.record.run, self.job.0, &self.record.tenant)
    }

    fn append(&self, below: TraceContext, event: &'static str, at_ms: i64) -> Begun {
        let at_us = at_ms * 1_000;
        let span =
            Span::child(below, SpanOf::Append(self.record.run, self.seq), format!("append {event}"), at_us, at_us);
        until_durable(self.about(span))
    }

    fn created(&self, spans: &mut Vec<Begun>) {
        let record = self.record;
        if record.source == Source::Schedule {
            let begin_ms = record.logical_ms.map_or(record.created_ms, |due| due.min(record.created_ms));
            let name = format!("schedule {}", self.name);
            let of = SpanOf::Schedule(record.run);
            let span = Span::child(self.trace, of, name, begin_ms * 1_000, record.created_ms * 1_000);
            let span = Span { context: self.trace, parent: None, ..span };
            spans.push(until_durable(self.about(span)));
        }
        spans.push(self.append(self.run_context(), "RunCreated", record.created_ms));
    }

    fn started(&self, attempt: &AttemptRecord, spans: &mut Vec<Begun>) {
        let (run, token) = (self.record.run, attempt.token);
        if let Some(since_ms) = waits_since(self.record, attempt) {
            let (begin_us, end_us) = (since_ms * 1_000, attempt.started_ms * 1_000);
            let span = Span::child(self.run_context(), SpanOf::Wait(run, token), "wait", begin_us, end_us);
            spans.push(ended(self.about(span)));
        }
        let below = self.run_context().at(SpanOf::Attempt(run, token));
        spans.push(self.append(below, "AttemptStarted", attempt.started_ms));
    }

    fn attempt_ended(&self, attempt: &AttemptRecord, end: &AttemptEnd<'_>) -> Begun {
        let of = SpanOf::Attempt(self.record.run, attempt.token);
        let (begin_us, end_us) = (attempt.started_ms * 1_000, end.at_ms * 1_000);
        let span = Span::child(self.run_context(), of, format!("attempt {}", attempt.attempt), begin_us, end_us);
        let span = span
            .of_kind(SpanKind::Client)
            .with("campanile.attempt", attempt.attempt)
            .with("campanile.attempt.state", end.state.as_str())
            .with("campanile.executor", attempt.executor.as_str());
        let is_good = end.state == AttemptState::Success;
        let error = (!is_good).then(|| end.error.unwrap_or(end.state.as_str()).to_owned());
        ended(self.about(span).failed(error))
    }

    fn run_ended(&self, spans: &mut Vec<Begun>) {
        let record = self.record;
        let ended_ms = record.last_ms();
        if let Some(last) = record.attempts.last().filter(|last| last.ended_ms == record.ended_ms) {
            let end = AttemptEnd { at_ms: ended_ms, state: last.state, error: last.error_message.as_deref() };
            spans.push(self.attempt_ended(last, &end));
        }
        spans.push(self.append(self.run_context(), "RunEnded", ended_ms));
        let of = SpanOf::Run(record.run, record.generation);
        let begin_us = began_ms(record) * 1_000;
        let span = Span::child(self.trace, of, format!("run {}", self.name), begin_us, ended_ms * 1_000);
        let span = self
            .about(span)
            .with("campanile.job.name", self.name)
            .with("campanile.run.state", record.state.as_str())
            .with("campanile.run.source", record.source.as_str())
            .with("campanile.run.generation", record.generation);
        let is_bad = matches!(record.state, RunState::Failed | RunState::Timeout);
        let error = is_bad.then(|| record.last_error().unwrap_or(record.state.as_str()).to_owned());
        spans.push(until_durable(span.failed(error)));
    }
}

struct AttemptEnd<'a> {
    at_ms: i64,
    state: AttemptState,
    error: Option<&'a str>,
}

/// Since when the run waited for this attempt; None: it was opened again, and nobody kept when.
fn waits_since(record: &RunRecord, attempt: &AttemptRecord) -> Option<i64> {
    let before = record.attempts.iter().rev().find(|before| before.attempt < attempt.attempt);
    match before {
        Some(before) if before.generation == attempt.generation => before.ended_ms,
        None if attempt.attempt == 1 => Some(record.created_ms),
        Some(_) | None => None,
    }
}

/// When this generation of the run began, as far as its record tells.
fn began_ms(record: &RunRecord) -> i64 {
    if record.generation == 1 {
        return record.created_ms;
    }
    let first = record.attempts.iter().find(|attempt| attempt.generation == record.generation);
    first.map(|attempt| attempt.started_ms).or(record.ended_ms).unwrap_or(record.created_ms)
}

impl Shard {
    /// The context of what a run sends: a child of the run where this node records its span.
    pub(super) fn below(&self, record: &RunRecord) -> Option<TraceContext> {
        let of = SpanOf::Run(record.run, record.generation);
        record.trace().map(|trace| self.deps.identity.tracer.below(trace, of))
    }

    /// The spans that end with a decision. Its events were applied.
    pub(super) fn spans_of(&self, events: &[Event], seq: u64) -> Vec<Begun> {
        let mut spans = Vec::new();
        for event in events {
            match event {
                Event::RunCreated { job, run, by: Some(by), .. } if by.trace.is_some() => {
                    self.with_run(*job, *run, seq, |of| of.created(&mut spans));
                }
                Event::AttemptStarted { job, run, token, .. } => self.with_run(*job, *run, seq, |of| {
                    if let Some(attempt) = attempt_of(of.record, *token) {
                        of.started(attempt, &mut spans);
                    }
                }),
                Event::AttemptEnded { job, run, token, state, error_message, at_ms, .. } => {
                    let end = AttemptEnd { at_ms: *at_ms, state: *state, error: error_message.as_deref() };
                    self.with_run(*job, *run, seq, |of| {
                        if let Some(attempt) = attempt_of(of.record, *token) {
                            spans.push(of.attempt_ended(attempt, &end));
                            spans.push(of.append(of.run_context(), "AttemptEnded", *at_ms));
                        }
                    });
                }
                Event::RunEnded { job, record } => {
                    if let Some(trace) = self.recorded(record) {
                        let name = self.live(*job).map_or("", |job| job.def.name.as_str());
                        Of { job: *job, name, record, trace, seq }.run_ended(&mut spans);
                    }
                }
                Event::RunCreated { .. }
                | Event::TenantSet { .. }
                | Event::TenantDeleted { .. }
                | Event::PauseSet { .. }
                | Event::Lent { .. }
                | Event::CreateKept { .. }
                | Event::JobCreated { .. }
                | Event::JobReplaced { .. }
                | Event::JobPaused { .. }
                | Event::JobResumed { .. }
                | Event::JobDeleted { .. }
                | Event::JobQuarantined { .. }
                | Event::CursorMoved { .. }
                | Event::RunReleased { .. }
                | Event::RetryDue { .. }
                | Event::AttemptSuspected { .. }
                | Event::AttemptHeard { .. }
                | Event::AttemptStopping { .. }
                | Event::RunConfirmed { .. }
                | Event::RunPrioritized { .. }
                | Event::RunReopened { .. }
                | Event::DeadLetterDiscarded { .. }
                | Event::Outbox { .. }
                | Event::HookFailed { .. }
                | Event::GraphChanged { .. }
                | Event::BackfillChanged { .. }
                | Event::BulkChanged { .. }
                | Event::CalendarSet { .. }
                | Event::Audited { .. } => {}
            }
        }
        spans
    }

    /// Records them when all that was enqueued so far is durable.
    pub(super) fn record_when_durable(&mut self, spans: Vec<Begun>) {
        if !spans.is_empty() {
            let deps = self.deps.clone();
            self.behind_durable(move || record(&deps, spans));
        }
    }

    /// The job of a decision: it is active while its turn is put into the log.
    fn live(&self, job: JobId) -> Option<&Job> {
        self.jobs.get(&job)?.live.as_ref().map(|live| &live.job)
    }

    fn recorded(&self, record: &RunRecord) -> Option<TraceContext> {
        record.trace().filter(|trace| self.deps.identity.tracer.records(*trace))
    }

    /// Calls `then` with an open run whose trace is recorded.
    fn with_run(&self, job: JobId, run: RunId, seq: u64, then: impl FnOnce(&Of<'_>)) {
        let Some(known) = self.live(job) else { return };
        let Some(open) = known.run(run) else { return };
        if let Some(trace) = self.recorded(&open.record) {
            then(&Of { job, name: known.def.name.as_str(), record: &open.record, trace, seq });
        }
    }
}

fn attempt_of(record: &RunRecord, token: Token) -> Option<&AttemptRecord> {
    record.attempts.iter().rev().find(|attempt| attempt.token == token)
}
