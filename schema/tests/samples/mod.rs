//! One sample of each stored form, with every optional field set in one of them and left out in another.

#![allow(clippy::unwrap_used, dead_code)]

pub mod audit;
pub mod backfill;
pub mod bulk;
pub mod calendars;
pub mod graph;
pub mod grow;
mod outbox;

use campanile_schema::{
    event::{Event, Interval, LedgerEntry, Next, Outcome, PauseScope, SkipReason, StopReason},
    format::FormatRow,
    frame::{self, Frame},
    ids::{ClusterId, Digest, Epoch, ExecutorSession, JobId, RunId, SessionId, ShardId, Token},
    job::{Action, Dialect, Gap, HttpMethod, JobSpec, Overlap, Trigger},
    loan::{Level, LoanEvent},
    payload::Payload,
    record::{AttemptRecord, AttemptState, RunRecord, RunState, Source},
    stored::{
        Sealed, StoredAction, StoredBlackout, StoredJob, StoredLimits, StoredTrigger, StoredWindow, StoredWindows,
        TargetTerms, TenantRecord, target_key,
    },
    text::Labels,
};
use serde::Serialize;

/// A form's bytes, and its fields to read.
pub struct Sample {
    pub form: &'static str,
    pub name: String,
    pub fields: serde_json::Value,
    pub bytes: Vec<u8>,
}

fn sample<T: Serialize>(form: &'static str, name: &str, value: &T) -> Sample {
    let fields = serde_json::to_value(value).expect("stored forms have JSON");
    Sample { form, name: name.to_owned(), fields, bytes: frame::encode(value) }
}

pub const AT: i64 = 1_782_000_000_000;
pub const JOB: JobId = JobId(7_848);
pub const RUN: RunId = RunId(11_944);

/// A typical job: cron in a zone, a command, three labels.
pub fn typical() -> StoredJob {
    let trigger = StoredTrigger::Cron {
        expr: "30 2 * * 1-5".into(),
        dialect: Dialect::Unix,
        zone: "Europe/Berlin".into(),
        gap: Gap::default(),
        overlap: Overlap::default(),
    };
    let mut spec = JobSpec::new("finance", "daily_billing", Trigger::Manual {});
    spec.action = Some(Action::Command {
        command: vec!["/bin/sh".to_owned(), "-c".to_owned(), "/opt/billing/run --day yesterday".to_owned()],
        env: [("TZ".to_owned(), "UTC".to_owned())].into(),
        cwd: None,
        stdin: None,
        output_cap_kb: 256,
        limits: Default::default(),
        nice: 0,
    });
    for (key, value) in [("team", "billing"), ("stage", "prod"), ("cost-center", "4711")] {
        spec.labels.insert(key.to_owned(), value.to_owned());
    }
    StoredJob::from_spec(&spec, trigger, None)
}

fn plain(name: &str, trigger: StoredTrigger) -> StoredJob {
    StoredJob::from_spec(&JobSpec::new("default", name, Trigger::Manual {}), trigger, None)
}

/// No field has its default.
pub fn full() -> StoredJob {
    let mut job = typical();
    job.trigger = StoredTrigger::Cron {
        expr: "0 0 2 ? * MON".into(),
        dialect: Dialect::Quartz,
        zone: "America/New_York".into(),
        gap: Gap::Skip,
        overlap: Overlap::Both,
    };
    (job.start_ms, job.end_ms, job.jitter_sec) = (Some(AT), Some(AT + 1), 30);
    (job.misfire, job.misfire_threshold_sec, job.max_catch_up) = ("SKIP".parse().expect("known"), 300, 5);
    (job.concurrency, job.backoff) = ("REPLACE".parse().expect("known"), "FIXED".parse().expect("known"));
    (job.max_attempts, job.base_delay_ms, job.max_delay_ms) = (7, 1_500, 60_000);
    (job.retry_jitter_milli, job.timeout_sec, job.priority) = (0, 60, 900);
    (job.not_idempotent, job.no_dead_letter) = (true, true);
    job.on_lost_contact = "STOP".parse().expect("known");
    job.pool = "billing".into();
    job.action = Some(StoredAction::Command {
        command: vec!["/bin/true".to_owned()],
        env: [("A".to_owned(), "b".to_owned())].into(),
        cwd: Some("/tmp".to_owned()),
        stdin: Some("in".to_owned()),
        output_cap_kb: 0,
        limits: Default::default(),
        nice: 0,
    });
    job.params = Payload(r#"{"day":"2026-02-23"}"#.to_owned());
    job.secrets = Some(Sealed {
        names: vec!["password".to_owned()],
        key_id: "k1".to_owned(),
        nonce: (0..24).collect(),
        ciphertext: vec![0xde, 0xad, 0xbe, 0xef],
    });
    job.resources = Some((1.5, 2_048, 10));
    job
}

pub fn jobs() -> Vec<(&'static str, StoredJob)> {
    let mut in_time = plain("in_time", StoredTrigger::Manual {});
    (in_time.max_elapsed_sec, in_time.max_runtime_sec) = (Some(600), Some(900));
    let mut handler = plain("handler", StoredTrigger::Manual {});
    handler.action = Some(StoredAction::Handler { name: "other".into() });
    let mut limited = plain("limited", StoredTrigger::Manual {});
    limited.action = Some(StoredAction::Command {
        command: vec!["/bin/true".to_owned()],
        env: [].into(),
        cwd: None,
        stdin: None,
        output_cap_kb: 256,
        limits: StoredLimits {
            cpu_sec: Some(60),
            memory_mb: Some(512),
            open_files: Some(64),
            file_size_mb: Some(10),
            processes: Some(20),
        },
        nice: 10,
    });
    let mut request = plain("request", StoredTrigger::Manual {});
    request.action = Some(StoredAction::Http {
        method: HttpMethod::Put,
        url: "https://example.org/{{runId}}".to_owned(),
        headers: [("X-Team".to_owned(), "pay".to_owned())].into(),
        body: Some(Payload(r#"{"n":"{{params.n}}"}"#.to_owned())),
        expect_status: (200, 204),
        timeout_sec: 10,
        max_redirects: 1,
    });
    let mut plain_request = plain("plain request", StoredTrigger::Manual {});
    plain_request.action = Some(StoredAction::Http {
        method: HttpMethod::Get,
        url: "http://example.org".to_owned(),
        headers: [].into(),
        body: None,
        expect_status: (200, 299),
        timeout_sec: 30,
        max_redirects: 0,
    });
    let mut described = plain("described", StoredTrigger::Manual {});
    described.display_name = Some("\u{6bcf}\u{65e5}\u{8ba1}\u{8d39}".into());
    described.description = Some("Closes the books.\nAsk before you stop it.".into());
    described.owner = Some("finance@example.org".into());
    described.annotations = Labels::from(&[("runbook".to_owned(), "https://example.org/r".to_owned())].into());
    let mut aimed = plain("aimed", StoredTrigger::Manual {});
    aimed.target = Some("ledger-db".into());
    let mut windowed = plain("windowed", StoredTrigger::FixedRate { every_ms: 30_000, anchor_ms: AT });
    let berlin = StoredWindow { deny: false, days: 0x1f, from: 540, to: 1_020, zone: "Europe/Berlin".into() };
    let all_day = StoredWindow { deny: true, days: 0x7f, from: 0, to: 1_440, zone: "UTC".into() };
    windowed.windows = Some(Box::new(StoredWindows {
        windows: vec![berlin, all_day],
        blackouts: vec![
            StoredBlackout { from_ms: AT, to_ms: AT + 60_000, reason: Some("year end".into()) },
            StoredBlackout { from_ms: AT, to_ms: AT + 60_000, reason: None },
        ],
    }));
    let mut only_windows = windowed.clone();
    only_windows.windows.as_mut().unwrap().blackouts.clear();
    let mut only_blackouts = windowed.clone();
    only_blackouts.windows.as_mut().unwrap().windows.clear();
    vec![
        ("cron, typical", typical()),
        ("cron, no default", full()),
        ("fixed rate", plain("rate", StoredTrigger::FixedRate { every_ms: 30_000, anchor_ms: AT })),
        ("fixed delay", plain("delay", StoredTrigger::FixedDelay { every_ms: 30_000 })),
        ("once", plain("once", StoredTrigger::Once { at_ms: AT })),
        ("manual", plain("manual", StoredTrigger::Manual {})),
        ("manual, handler", handler),
        ("manual, command with limits", limited),
        ("manual, request", request),
        ("manual, request of defaults", plain_request),
        ("manual, texts for people", described),
        ("manual, bounded in time", in_time),
        ("manual, with a target", aimed),
        ("fixed rate, windows and blackouts", windowed),
        ("fixed rate, windows", only_windows),
        ("fixed rate, blackouts", only_blackouts),
    ]
}

fn attempt(number: u32, state: AttemptState) -> AttemptRecord {
    AttemptRecord {
        attempt: number,
        generation: 1,
        state,
        token: Token(40 + u64::from(number)),
        executor: "executor-1".into(),
        started_ms: AT + 20,
        ended_ms: None,
        error_code: None,
        error_message: None,
        cpu_ms: None,
        max_rss_kb: None,
        permanent: false,
    }
}

pub fn runs() -> Vec<(&'static str, RunRecord)> {
    let short = RunRecord {
        run: RUN,
        job: JOB,
        tenant: "finance".into(),
        state: RunState::Running,
        source: Source::Schedule,
        logical_ms: Some(AT),
        key: None,
        generation: 1,
        created_ms: AT + 4,
        started_ms: Some(AT + 20),
        ended_ms: None,
        params: None,
        result: None,
        reason: None,
        by: None,
        dead_letter: false,
        attempts: vec![attempt(1, AttemptState::Running)],
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
    };
    let mut failed = attempt(2, AttemptState::Failed);
    (failed.generation, failed.ended_ms) = (2, Some(AT + 90));
    (failed.error_code, failed.error_message) = (Some("EXIT_1".to_owned()), Some("exit code 1".to_owned()));
    (failed.cpu_ms, failed.max_rss_kb) = (Some(12), Some(34_567));
    let full = RunRecord {
        state: RunState::Failed,
        source: Source::Manual,
        key: Some("manual_20260224_001".to_owned()),
        generation: 2,
        ended_ms: Some(AT + 90),
        params: Some(Payload(r#"{"b":2}"#.to_owned())),
        result: Some(Payload("[1]".to_owned())),
        reason: Some("re-run after fix".to_owned()),
        dead_letter: true,
        attempts: vec![attempt(1, AttemptState::Lost), failed],
        dag: Some((3, 4)),
        ..short.clone()
    };
    let mut hopeless = full.clone();
    hopeless.attempts[1].permanent = true;
    let triggered = RunRecord { by: Some(audit::origin().into()), ..full.clone() };
    let urgent = RunRecord { priority: Some(900), ..short.clone() };
    vec![
        ("running", short),
        ("every field", full),
        ("failed for good", hopeless),
        ("triggered by a caller", triggered),
        ("with a priority of its own", urgent),
    ]
}

fn interval() -> Interval {
    Interval { from_ms: AT - 86_400_000, to_ms: AT, version: 3, tzdb: "2026b".into() }
}

pub fn entry(outcome: Outcome, reason: Option<SkipReason>, run: Option<RunId>) -> LedgerEntry {
    LedgerEntry { first_ms: AT - 7_200_000, last_ms: AT, count: 3, outcome, reason, run }
}

/// Every event, optional fields set and left out.
pub fn events() -> Vec<Event> {
    let (job, run, at_ms) = (JOB, RUN, AT);
    let record = runs()[1].1.clone();
    let ended = |state, next| Event::AttemptEnded {
        job,
        run,
        token: Token(41),
        state,
        error_code: None,
        error_message: None,
        cpu_ms: None,
        max_rss_kb: None,
        at_ms,
        next,
        uncounted: false,
    };
    let created = |source, interval| Event::RunCreated {
        job,
        run,
        source,
        logical_ms: Some(at_ms),
        key: None,
        params: None,
        reason: None,
        by: None,
        held: false,
        at_ms: at_ms + 4,
        interval,
        late: false,
        dag: None,
        depth: 0,
        marked: false,
        timeout_sec: None,
        backfill: None,
        budget: None,
    };
    vec![
        Event::TenantSet { tenant: tenant() },
        Event::TenantDeleted { tenant: "finance".to_owned() },
        Event::PauseSet { scope: PauseScope::System, paused: true, version: 2, at_ms: None },
        Event::PauseSet { scope: PauseScope::Tenant("finance".to_owned()), paused: false, version: 3, at_ms: None },
        Event::PauseSet { scope: PauseScope::System, paused: true, version: 4, at_ms: Some(1_782_000_000_000) },
        Event::Lent {
            tenant: "finance".to_owned(),
            changes: vec![
                LoanEvent::Counted { shard: ShardId(7), epoch: Epoch(3), session: SessionId(12) },
                LoanEvent::Set { session: SessionId(12), level: Level { version: 5, permits: 40 } },
                LoanEvent::Freed { session: SessionId(11) },
            ],
        },
        Event::JobCreated { job, spec: plain("manual", StoredTrigger::Manual {}).into(), at_ms },
        Event::CreateKept { key: Digest([7; 16]), print: Digest([200; 16]), job: None, at_ms },
        Event::CreateKept { key: Digest([7; 16]), print: Digest([200; 16]), job: Some(job), at_ms },
        Event::JobReplaced { job, spec: plain("manual", StoredTrigger::Manual {}).into(), version: 2, at_ms },
        Event::JobPaused { job, at_ms, reason: None, bulk: None },
        Event::JobPaused { job, at_ms, reason: Some("too loud".to_owned()), bulk: None },
        Event::JobResumed { job, at_ms, bulk: None },
        Event::JobDeleted { job, at_ms },
        Event::JobQuarantined { job, at_ms, reason: "three panics".to_owned() },
        Event::CursorMoved { job, interval: interval(), entries: Vec::new() },
        Event::CursorMoved {
            job,
            interval: interval(),
            entries: vec![
                entry(Outcome::Skipped, Some(SkipReason::Misfire), None),
                entry(Outcome::Coalesced, None, Some(run)),
                entry(Outcome::Missed, Some(SkipReason::CatchUpCap), None),
                entry(Outcome::DstSkipped, None, None),
            ],
        },
        created(Source::Schedule, Some(interval())),
        Event::RunCreated {
            job,
            run,
            source: Source::Manual,
            logical_ms: None,
            key: Some("manual_20260224_001".to_owned()),
            params: Some(Payload(r#"{"b":2}"#.to_owned())),
            reason: Some("re-run after fix".to_owned()),
            by: None,
            held: true,
            at_ms,
            interval: None,
            late: true,
            dag: Some((3, 4)),
            depth: 0,
            marked: false,
            timeout_sec: None,
            backfill: None,
            budget: None,
        },
        Event::RunReleased { job, run, at_ms },
        Event::RetryDue { job, run, at_ms },
        Event::AttemptStarted {
            job,
            run,
            attempt: 1,
            token: Token(41),
            executor: "executor-1".into(),
            session: ExecutorSession(9_007_199_254_740_991),
            credential: None,
            at_ms,
        },
        Event::AttemptSuspected { job, run, at_ms },
        Event::AttemptHeard { job, run, session: ExecutorSession(6), credential: None, at_ms },
        Event::AttemptStopping { job, run, why: StopReason::Replace, at_ms },
        ended(AttemptState::Lost, Next::Requeue),
        ended(AttemptState::Failed, Next::Confirm),
        Event::AttemptEnded {
            job,
            run,
            token: Token(41),
            state: AttemptState::Failed,
            error_code: Some("EXIT_1".to_owned()),
            error_message: Some("exit code 1".to_owned()),
            cpu_ms: Some(12),
            max_rss_kb: Some(34_567),
            at_ms,
            next: Next::RetryAt(at_ms + 10_000),
            uncounted: false,
        },
        Event::AttemptEnded {
            job,
            run,
            token: Token(41),
            state: AttemptState::Lost,
            error_code: Some("EXECUTOR_LOST".to_owned()),
            error_message: None,
            cpu_ms: None,
            max_rss_kb: None,
            at_ms,
            next: Next::Requeue,
            uncounted: true,
        },
        Event::RunConfirmed { job, run, at_ms },
        Event::RunPrioritized { job, run, priority: 900, at_ms },
        Event::RunEnded { job, record: record.clone().into() },
        Event::RunReopened { job, record: record.clone().into(), at_ms },
        Event::DeadLetterDiscarded { job, record: record.clone().into(), at_ms },
        Event::HookFailed { job, run, failed: outbox::failed_hook(), record: Some(record.into()) },
        Event::Audited { record: audit::paused().into() },
    ]
}

/// Attempts whose credential is named: the form that this release writes.
pub fn of_credentials() -> Vec<Event> {
    let (job, run, session, at_ms) = (JobId(7_848), RunId(11_944), ExecutorSession(6), AT);
    let credential = Some("blue-executors".into());
    let (attempt, token, executor) = (1, Token(41), "executor-1".into());
    vec![
        Event::AttemptStarted { job, run, attempt, token, executor, session, credential: credential.clone(), at_ms },
        Event::AttemptHeard { job, run, session, credential, at_ms },
        outbox::event(),
    ]
}

pub fn tenant() -> TenantRecord {
    TenantRecord {
        tenant: "finance".to_owned(),
        max_concurrent_runs: 100,
        max_triggers_per_sec: 2.5,
        max_jobs: 10_000,
        max_queued_runs: 5_000,
        version: 4,
        target: None,
    }
}

/// Settings of a target.
pub fn target() -> TenantRecord {
    let terms = TargetTerms { retry_percent: 10, failure_percent: 50, min_attempts: 10, open_sec: 30 };
    TenantRecord {
        tenant: target_key("finance", "ledger-db"),
        max_concurrent_runs: 8,
        max_triggers_per_sec: 2.5,
        version: 1,
        target: Some(terms),
        ..TenantRecord::default()
    }
}

pub fn samples() -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    for event in events() {
        let text = format!("{event:?}");
        samples.push(sample("event", text.split([' ', '{']).next().unwrap_or_default(), &event));
    }
    for event in of_credentials() {
        let text = format!("{event:?}");
        let name = format!("{}, of a credential", text.split([' ', '{']).next().unwrap_or_default());
        samples.push(sample("event", &name, &event));
    }
    let fire = events().into_iter().filter(|e| matches!(e, Event::RunCreated { .. } | Event::AttemptStarted { .. }));
    let (hlc, events) = (AT as u64 * 1_000, fire.collect());
    let frame = Frame { shard: ShardId(17), epoch: Epoch(3), seq: 1_000, hlc, events, format: 1 };
    samples.push(sample("frame", "fire and start", &frame));
    samples.extend(runs().iter().map(|(name, run)| sample("run", name, run)));
    samples.extend(jobs().iter().map(|(name, job)| sample("job", name, job)));
    samples.push(sample("tenant", "every field", &tenant()));
    let (cluster_id, created_ms) = (ClusterId(1_234_567_890_123), AT);
    let row = FormatRow { event_format: 1, wire_format: 1, cluster_id, shards: 256, created_ms };
    samples.push(sample("format", "first", &row));
    samples.extend(outbox::samples());
    samples.extend(graph::graphs().iter().map(|(name, graph)| sample("graph", name, graph)));
    samples.extend(audit::samples());
    samples.extend(graph::stored());
    samples.extend(graph::changes().iter().map(|change| sample("graph change", graph::change_name(change), change)));
    samples.extend(backfill::samples());
    samples.extend(bulk::samples());
    samples.push(sample("node body", "in the lane of backfills", &graph::node_body_of_backfill()));
    samples.push(sample("tenant", "of a target", &target()));
    samples.extend(calendars::samples());
    samples.push(sample("event", "TenantSet, of a target", &Event::TenantSet { tenant: target() }));
    samples
}
