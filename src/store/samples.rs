//! Rows and frames for the stores' tests, and a session on a store.
#![allow(clippy::unwrap_used)]

use crate::tables::Tables;
use campanile_actors::{
    maintenance::Retention,
    session::{self, NodeSession, SessionParts},
};
use campanile_ports::{
    DefinitionRow, Journal, LedgerRow, LocalViews, Opened, PortFuture, Position, Row, SecretOwner, Secrets, Snapshots,
    StoreError, ViewBatch, clock::SystemClock,
};
use campanile_schema::{
    event::{Event, LedgerEntry, Outcome},
    frame::{self, Frame},
    ids::{Epoch, JobId, RunId, SessionId, ShardId, Token},
    job::{JobSpec, Trigger},
    operations::JobReplace,
    record::{AttemptRecord, AttemptState, RunRecord, RunState, Source},
    stored::{
        Sealed, StoredJob, StoredTrigger,
        audit::{AuditRecord, CallOrigin},
    },
};
use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a port's answer.
pub fn wait<T>(future: PortFuture<'_, T>) -> Result<T, StoreError> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

pub fn at(session: u64, seq: u64) -> Position {
    Position { session: SessionId(session), lane: 0, seq }
}

/// A final run of a job.
pub fn run(job: u64, run: u64, state: RunState, ended_ms: i64) -> RunRecord {
    RunRecord {
        run: RunId(run),
        job: JobId(job),
        tenant: "finance".into(),
        state,
        source: Source::Manual,
        logical_ms: None,
        key: Some(format!("key-{run}")),
        generation: 1,
        created_ms: ended_ms - 20,
        started_ms: Some(ended_ms - 10),
        ended_ms: Some(ended_ms),
        params: None,
        result: None,
        reason: None,
        by: None,
        dead_letter: state == RunState::Failed,
        attempts: vec![AttemptRecord {
            attempt: 1,
            generation: 1,
            state: if state == RunState::Success { AttemptState::Success } else { AttemptState::Failed },
            token: Token(run * 10),
            executor: "executor-1".into(),
            started_ms: ended_ms - 10,
            ended_ms: Some(ended_ms),
            error_code: None,
            error_message: None,
            cpu_ms: Some(3),
            max_rss_kb: None,
            permanent: false,
        }],
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
    }
}

/// The run, active again under its next generation.
pub fn reopened(record: &RunRecord) -> RunRecord {
    RunRecord {
        state: RunState::Queued,
        generation: record.generation + 1,
        ended_ms: None,
        dead_letter: false,
        ..record.clone()
    }
}

pub fn ledger(job: u64, from_ms: i64, to_ms: i64) -> LedgerRow {
    LedgerRow {
        job: JobId(job),
        from_ms,
        to_ms,
        version: 1,
        tzdb: "2026b".into(),
        entries: vec![LedgerEntry {
            first_ms: to_ms,
            last_ms: to_ms,
            count: 1,
            outcome: Outcome::Fired,
            reason: None,
            run: None,
        }],
    }
}

/// A version of a job's definition.
pub fn defined(job: u64, version: u64) -> DefinitionRow {
    let spec = JobSpec {
        description: Some(format!("version {version}")),
        ..JobSpec::new("finance", "close", Trigger::Manual {})
    };
    DefinitionRow {
        job: JobId(job),
        version,
        at_ms: version as i64,
        spec: StoredJob::from_spec(&spec, StoredTrigger::Manual {}, None).into(),
        by: Some(CallOrigin { who: Some("olga".into()), ..CallOrigin::default() }),
        operation: Some(JobReplace::NAME.into()),
        reason: None,
    }
}

/// A record of the audit trail.
pub fn audited(at_ms: i64, id: u64, tenant: Option<&str>, operation: &str) -> AuditRecord {
    AuditRecord {
        id,
        at_ms,
        origin: CallOrigin { who: Some("olga".into()), address: Some("192.0.2.7".into()), ..CallOrigin::default() },
        operation: operation.into(),
        tenant: tenant.map(Into::into),
        job: Some(JobId(4)),
        count: 1,
        ..AuditRecord::default()
    }
}

/// An interval at whose end a run was fired.
pub fn fired(job: u64, run: u64, from_ms: i64, to_ms: i64) -> LedgerRow {
    let mut row = ledger(job, from_ms, to_ms);
    row.entries[0].run = Some(RunId(run));
    row
}

/// A run that a schedule started, at its end.
pub fn scheduled(job: u64, id: u64, state: RunState, ended_ms: i64) -> RunRecord {
    RunRecord { source: Source::Schedule, logical_ms: Some(ended_ms - 30), key: None, ..run(job, id, state, ended_ms) }
}

/// Hybrid times rise from batch to batch, as those of events do.
/// Applies runs that ended at these times, ms: those at 50 of a hundred failed.
pub fn end_at(tables: &dyn Tables, seq: u64, ends: &[u64]) {
    let row = |ended: &u64| {
        let ended_ms = *ended as i64;
        let record = if ended % 100 == 50 {
            run(4, *ended, RunState::Failed, ended_ms)
        } else {
            scheduled(4, *ended, RunState::Success, ended_ms)
        };
        (0, Row::Run(record.into()))
    };
    tables.apply(&ends.iter().map(row).collect::<Vec<_>>(), at(1, seq)).unwrap();
}

pub fn batch(position: Position, applied: &[(u16, u64)], rows: Vec<Row>) -> ViewBatch {
    let begin = position.seq * 1_000;
    ViewBatch {
        rows: (begin..).zip(rows).collect(),
        applied: applied.iter().map(|(shard, seq)| (ShardId(*shard), *seq)).collect(),
        position,
    }
}

/// A frame of one small event.
pub fn frame_of(shard: u16, seq: u64) -> Frame {
    Frame {
        shard: ShardId(shard),
        epoch: Epoch(1),
        seq,
        hlc: 1_000_000 + seq * 10,
        events: vec![Event::JobResumed { job: JobId(u64::from(shard)), at_ms: seq as i64, bulk: None }],
        format: 1,
    }
}

/// `frames` frames of a shard, one after the other, as the journal stores them.
pub fn journal_batch(shard: u16, first_seq: u64, frames: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for seq in first_seq..first_seq + frames {
        frame::encode_into(&mut bytes, &frame_of(shard, seq));
    }
    bytes
}

/// No key: secret params are refused.
struct NoSecrets;
impl Secrets for NoSecrets {
    fn seal(&self, _: SecretOwner<'_>, _: &BTreeMap<String, String>) -> Option<Sealed> {
        None
    }
    fn open(&self, _: SecretOwner<'_>, _: &Sealed) -> Result<BTreeMap<String, String>, String> {
        Err("no key".to_owned())
    }
}

/// A session on a store, as a node alone has it.
pub async fn session<S: Journal + Snapshots + LocalViews>(
    store: &Arc<S>,
    opened: Opened,
    retention: Retention,
) -> NodeSession {
    let parts = SessionParts {
        node: "test".to_owned(),
        opened,
        journal: store.clone(),
        snapshots: store.clone(),
        views: store.clone(),
        secrets: Arc::new(NoSecrets),
        clock: Arc::new(SystemClock),
        boot_id: "1".to_owned(),
        saved_clock: None,
        linger_us: 0,
        retention,
        tracer: campanile_ports::spans::Tracer::default(),
        failures: tokio::sync::mpsc::unbounded_channel().0,
    };
    session::start(parts).await.unwrap()
}
