//! Writes a history by hand, as the lines of its files, so that a test can spoil exactly one of them.

use crate::{
    checker::{History, Run, Verdict, check},
    run_dir::lines::{
        BackfillLine, CallEvent, CallerLine, ExecutorEvent, ExecutorLine, FaultEvent, FaultLine, LedgerLine, Meta, Verb,
    },
};
use campanile_schema::{
    event::{Outcome, SkipReason},
    ids::{BackfillId, JobId, RunId, Token},
    job::{Backoff, ConcurrencyPolicy, JobSpec, MisfirePolicy, RetryPolicy, Trigger},
    record::{AttemptRecord, AttemptState, RunRecord, RunState, Source},
    stored::backfill::BackfillMode,
    time::Timestamp,
    view::{LedgerEntryView, LedgerView, RunView},
};

/// 2026-02-02T02:40:00Z, a whole minute, milliseconds.
pub const T0: i64 = 1_770_000_000_000;

/// The lines of all files.
#[derive(Default)]
pub struct World {
    pub executors: Vec<(String, Vec<ExecutorLine>)>,
    pub caller: Vec<CallerLine>,
    pub faults: Vec<FaultLine>,
    pub ledger: Vec<LedgerLine>,
    pub runs: Vec<RunView>,
    pub meta: Option<Meta>,
    next_run: u64,
    next_call: u64,
}

pub fn rate(every_sec: u64, anchor: i64) -> Trigger {
    Trigger::FixedRate {
        every_sec,
        anchor_at: Some(Timestamp(T0 + anchor)),
        start_at: None,
        end_at: Some(Timestamp(T0 + 60_000)),
        jitter_sec: 0,
        misfire_policy: MisfirePolicy::FireOnceNow,
        misfire_threshold_sec: 60,
        max_catch_up: 1000,
    }
}

pub fn cron(expr: &str, zone: &str, misfire_policy: MisfirePolicy, misfire_threshold_sec: u32) -> Trigger {
    serde_json::from_value(serde_json::json!({
        "type":"CRON","expr":expr,"timezone":zone,"misfirePolicy":misfire_policy.as_str(),
        "misfireThresholdSec":misfire_threshold_sec,"endAt":Timestamp(T0 + 60_000)
    }))
    .unwrap()
}

impl World {
    pub fn new() -> Self {
        let up = |t: i64| ExecutorLine { t_us: (T0 + t) * 1000, ..ExecutorLine::up() };
        Self {
            executors: vec![("executor-a".into(), vec![up(-2000)]), ("executor-b".into(), vec![up(-2000)])],
            meta: Some(Meta {
                until_ms: T0 + 65_000,
                complete: true,
                drained: true,
                latest_ms: Some(1_000),
                queued: Default::default(),
                shards: None,
                lease_ms: 10_000,
                quotas: [("tight".to_owned(), 2)].into(),
                rates: Default::default(),
                uses_all: false,
            }),
            next_run: 1000,
            ..Self::default()
        }
    }

    pub fn history(&self) -> History {
        let mut history = History { meta: self.meta.clone(), faults: self.faults.clone(), ..History::default() };
        for (name, lines) in &self.executors {
            history.add_executor(name, lines.clone());
        }
        history.add_caller(self.caller.clone());
        for line in &self.ledger {
            history.add_ledger(line.clone());
        }
        for run in &self.runs {
            history.add_run(serde_json::from_value::<Run>(serde_json::to_value(run).unwrap()).unwrap());
        }
        history.finish();
        history
    }

    pub fn verdict(&self) -> Verdict {
        check(&self.history())
    }

    /// A call sent and acknowledged 2 ms later; the line of its acknowledgement.
    fn call(&mut self, verb: Verb, at: i64, line: CallerLine) -> &mut CallerLine {
        let call = self.next_call;
        self.next_call += 1;
        let sent_us = (T0 + at) * 1000;
        self.caller.push(CallerLine { event: CallEvent::Sent, t_us: sent_us, call, verb, run: None, ..line.clone() });
        self.caller.push(CallerLine { event: CallEvent::Ack, t_us: sent_us + 2_000, call, verb, spec: None, ..line });
        self.caller.last_mut().unwrap()
    }

    fn line(job: u64) -> CallerLine {
        CallerLine { job: Some(JobId(job)), ..CallerLine::new(CallEvent::Sent, 0, Verb::Create) }
    }

    /// Creates a job at T0 - 1 s, with an empty ledger.
    pub fn job(&mut self, id: u64, trigger: Trigger, policy: ConcurrencyPolicy, change: impl FnOnce(&mut JobSpec)) {
        let mut spec = JobSpec::new("default", &format!("job-{id}"), trigger);
        spec.concurrency_policy = policy;
        spec.retry_policy = RetryPolicy {
            max_attempts: 3,
            backoff: Backoff::Fixed,
            base_delay_sec: 1.0,
            max_delay_sec: 5.0,
            jitter: 0.2,
            max_elapsed_sec: None,
        };
        change(&mut spec);
        self.call(Verb::Create, -1000, CallerLine { spec: Some(spec), ..Self::line(id) });
        let page = LedgerView {
            job_id: JobId(id),
            from: Timestamp(T0 - 1001),
            to: Timestamp(T0 + 65_000),
            items: Vec::new(),
            truncated: false,
        };
        self.ledger.push(LedgerLine { job: JobId(id), page: Some(page), error: None });
    }

    pub fn ask(&mut self, verb: Verb, job: u64, at: i64) {
        self.call(verb, at, Self::line(job));
    }

    /// Backfill 900 of a job's missing instants `from..=to`, two at a time.
    pub fn backfill(&mut self, job: u64, from: i64, to: i64, at: i64) -> &mut BackfillLine {
        let (from_ms, to_ms, mode) = (T0 + from, T0 + to, BackfillMode::Missing);
        let asked = BackfillLine { id: Some(900), mode, from_ms, to_ms, parallelism: 2, unknown_run: false };
        let line = CallerLine { backfill: Some(asked), ..Self::line(job) };
        self.call(Verb::Backfill, at, line).backfill.as_mut().unwrap()
    }

    /// A run of backfill 900 with its one successful body.
    pub fn back_run(&mut self, job: u64, logical: i64, at: i64, took: i64) -> u64 {
        let run = self.run(job, Source::Backfill, Some(logical), at);
        self.run_mut(run).backfill_id = Some(BackfillId(900));
        self.attempt(run, 0, 1, at + 1, took, AttemptState::Success);
        run
    }

    pub fn confirm(&mut self, job: u64, run: u64, at: i64) {
        let line = self.call(Verb::Confirm, at, Self::line(job));
        line.run = Some(RunId(run));
    }

    /// A trigger with its run; the run's id.
    pub fn trigger(&mut self, job: u64, key: &str, at: i64) -> u64 {
        let run = self.run(job, Source::Manual, None, at + 1);
        self.run_mut(run).key = Some(key.to_owned());
        self.attempt(run, 0, 1, at + 2, 10, AttemptState::Success);
        let line = self.call(Verb::Trigger, at, CallerLine { key: Some(key.to_owned()), ..Self::line(job) });
        line.run = Some(RunId(run));
        run
    }

    pub fn items(&mut self, job: u64) -> &mut Vec<LedgerEntryView> {
        &mut self.ledger.iter_mut().find(|l| l.job.0 == job).and_then(|l| l.page.as_mut()).unwrap().items
    }

    pub fn entry(&mut self, job: u64, at: i64, outcome: Outcome, reason: Option<SkipReason>, run: Option<u64>) {
        self.stretch(job, (at, at, 1), outcome, reason, run);
    }

    /// `(first, last, count)` with one outcome.
    pub fn stretch(
        &mut self,
        job: u64,
        span: (i64, i64, u64),
        outcome: Outcome,
        reason: Option<SkipReason>,
        run: Option<u64>,
    ) {
        let (first, last, count) = span;
        self.items(job).push(LedgerEntryView {
            logical_time: Timestamp(T0 + first),
            until: (last > first).then_some(Timestamp(T0 + last)),
            count,
            outcome,
            reason,
            run_id: run.map(RunId),
        });
    }

    /// A successful run without attempts yet; its id.
    pub fn run(&mut self, job: u64, source: Source, logical: Option<i64>, created: i64) -> u64 {
        self.next_run += 1;
        let record = RunRecord {
            run: RunId(self.next_run),
            job: JobId(job),
            tenant: "default".into(),
            state: RunState::Success,
            source,
            logical_ms: logical.map(|l| T0 + l),
            key: None,
            generation: 1,
            created_ms: T0 + created,
            started_ms: Some(T0 + created),
            ended_ms: Some(T0 + created),
            params: None,
            result: None,
            reason: None,
            by: None,
            dead_letter: false,
            attempts: Vec::new(),
            dag: None,
            depth: 0,
            marked: false,
            failed_hooks: Vec::new(),
            timeout_sec: None,
            graph: None,
            backfill: None,
            budget: None,
            compensated: false,
            priority: None,
            timing: None,
            sealed: None,
        };
        self.runs.push(RunView::from(&record));
        self.next_run
    }

    pub fn run_mut(&mut self, run: u64) -> &mut RunView {
        self.runs.iter_mut().find(|r| r.run_id.0 == run).unwrap()
    }

    /// An attempt: in the record, and as a body of an executor.
    pub fn attempt(&mut self, run: u64, executor: usize, token: u64, at: i64, took: i64, state: AttemptState) {
        let view = self.run_mut(run);
        let attempt = view.attempts.len() as u32 + 1;
        let record = AttemptRecord {
            attempt,
            generation: 1,
            state,
            token: Token(token),
            executor: ["executor-a", "executor-b"][executor].into(),
            started_ms: T0 + at,
            ended_ms: Some(T0 + at + took + 1),
            error_code: None,
            error_message: None,
            cpu_ms: None,
            max_rss_kb: None,
            permanent: false,
        };
        view.attempts.push((&record).into());
        view.attempt_count = attempt;
        view.ended_at = Some(Timestamp(T0 + at + took + 1));
        let start = ExecutorLine {
            event: ExecutorEvent::Start,
            t_us: (T0 + at) * 1000 + 300,
            run,
            job: view.job_id.0,
            token,
            attempt,
            generation: 1,
            epoch: 1,
            shard: 0,
            logical: view.logical_time.map(|l| l.0),
            ..ExecutorLine::up()
        };
        let end = ExecutorLine {
            event: ExecutorEvent::End,
            t_us: (T0 + at + took) * 1000 + 500,
            outcome: Some(state),
            ..start.clone()
        };
        let lines = &mut self.executors[executor].1;
        lines.push(start);
        if state != AttemptState::Lost {
            lines.push(end);
        }
    }

    /// An instant that fired: its entry, its run and its one successful body of 20 ms.
    pub fn fire(&mut self, job: u64, logical: i64, late: i64) -> u64 {
        let run = self.run(job, Source::Schedule, Some(logical), logical + late);
        let outcome = if late > 1000 { Outcome::FiredLate } else { Outcome::Fired };
        self.entry(job, logical, outcome, None, Some(run));
        self.attempt(run, (logical / 1000) as usize % 2, 1, logical + late + 1, 20, AttemptState::Success);
        run
    }

    pub fn fault(&mut self, event: FaultEvent, at: i64, executor: Option<&str>) {
        let executor = executor.map(str::to_owned);
        self.faults.push(FaultLine { t_us: (T0 + at) * 1000, executor, ..FaultLine::now(event, None) });
    }

    /// Body lines of a run, over all executors.
    pub fn lines_of(&mut self, run: u64) -> impl Iterator<Item = &mut ExecutorLine> {
        self.executors.iter_mut().flat_map(|(_, lines)| lines).filter(move |l| l.run == run)
    }
}
