//! Backfills of a job, and what happens to them.

use super::{AT, JOB, RUN, Sample, runs, sample};
use campanile_schema::{
    event::Event,
    ids::BackfillId,
    record::{RunRecord, Source},
    stored::backfill::{
        BackfillChange, BackfillCounts, BackfillMode, BackfillPlan, BackfillState, PassedInstants, StoredBackfill,
    },
};

pub const ID: BackfillId = BackfillId(16_040);

pub fn passed() -> PassedInstants {
    PassedInstants { existing: 3, unknown: 4, differing: 5, gone: 6 }
}

pub fn plan() -> BackfillPlan {
    BackfillPlan { instants: 100, missing: 80, failed: Some(2), to_run: 80, passed: passed(), usual_ms: Some(1_500) }
}

/// One of the shortest kind, and one with every field.
pub fn stored() -> Vec<(&'static str, StoredBackfill)> {
    let short = StoredBackfill {
        id: ID,
        state: BackfillState::Running,
        mode: BackfillMode::Missing,
        from_ms: AT - 86_400_000,
        to_ms: AT,
        cursor_ms: AT - 86_400_001,
        parallelism: 8,
        unknown_run: false,
        first: false,
        hooks: false,
        plan: BackfillPlan::default(),
        counts: BackfillCounts::default(),
        created_ms: AT + 4,
        ended_ms: None,
        reason: None,
        by: None,
        why: None,
    };
    let counts = BackfillCounts { started: 9, succeeded: 4, failed: 3, canceled: 2, busy_ms: 70_000, passed: passed() };
    let full = StoredBackfill {
        state: BackfillState::Canceled,
        mode: BackfillMode::Replay,
        cursor_ms: AT - 5,
        unknown_run: true,
        first: true,
        hooks: true,
        plan: plan(),
        counts,
        ended_ms: Some(AT + 90),
        reason: Some("lost".into()),
        by: Some("ada".into()),
        why: Some("enough".into()),
        ..short.clone()
    };
    vec![("short", short), ("every field", full)]
}

/// Each change, optional fields set and left out.
pub fn changes() -> Vec<(&'static str, BackfillChange)> {
    let why = || Some("later".into());
    let (_, backfill) = stored().remove(0);
    let none = PassedInstants::default();
    vec![
        ("", BackfillChange::Created { backfill: Box::new(backfill) }),
        ("", BackfillChange::Moved { upto_ms: AT, passed: passed() }),
        ("short", BackfillChange::Moved { upto_ms: AT, passed: none }),
        ("", BackfillChange::Held { run: RUN }),
        ("", BackfillChange::Paused { why: why() }),
        ("short", BackfillChange::Paused { why: None }),
        ("", BackfillChange::Resumed),
        ("", BackfillChange::Canceling { why: why() }),
        ("short", BackfillChange::Canceling { why: None }),
        ("", BackfillChange::Ended { state: BackfillState::Done }),
    ]
}

/// A backfill went on.
pub fn event() -> Event {
    Event::BackfillChanged { job: JOB, change: BackfillChange::Resumed, at_ms: AT }
}

/// Runs of backfills as they are stored.
pub fn samples() -> Vec<Sample> {
    let of = RunRecord { source: Source::Backfill, backfill: Some(ID), ..runs()[0].1.clone() };
    let made = Event::RunCreated {
        job: JOB,
        run: RUN,
        source: Source::Backfill,
        logical_ms: Some(AT),
        key: Some(format!("\u{1}bbf/{AT}")),
        params: None,
        reason: None,
        by: None,
        held: false,
        at_ms: AT + 4,
        interval: None,
        late: false,
        dag: None,
        depth: 0,
        marked: false,
        timeout_sec: None,
        backfill: Some(ID),
        budget: None,
        sealed: None,
    };
    vec![
        sample("event", "BackfillChanged", &event()),
        sample("event", "RunCreated, by a backfill", &made),
        sample("run", "of a backfill", &of),
    ]
}
