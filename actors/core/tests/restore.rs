//! What a restore from a backup decides about a job.

use crate::support::make::{every, job_id, plain};
use campanile_core::{
    job::{Command, Context, Ids, Job, apply::created, decide_next},
    shard::Pause,
};
use campanile_schema::{
    event::{Event, Outcome, SkipReason},
    ids::{Epoch, ExecutorSession},
    job::ConcurrencyPolicy,
    record::{AttemptState, RunState},
    stored::StoredTrigger,
};

const CREATED: i64 = 1_000_000;

fn context(now_ms: i64, first: u64) -> Context {
    let ids = Ids { first, count: 1_000 };
    Context {
        now_ms,
        ids,
        epoch: Epoch(9),
        pauses: Vec::new(),
        queue_full: false,
        queue_half: false,
        node_room: 1_000,
        overloaded: false,
        held: None,
        tzdb: "2026b",
        sampling: None,
    }
}

/// Decides, and gives the events with the job after them.
fn after(job: &Job, command: &Command, ctx: &Context) -> (Vec<Event>, Job) {
    let (decision, job) = decide_next(job, command, ctx).unwrap();
    (decision.events, job)
}

fn manual(not_idempotent: bool) -> Job {
    let mut def = plain(StoredTrigger::Manual {});
    (def.not_idempotent, def.concurrency) = (not_idempotent, ConcurrencyPolicy::QueueOne);
    created(job_id(), def, CREATED)
}

fn triggered(job: &Job, first: u64) -> Job {
    let command = Command::Trigger { key: None, params: None, reason: None, by: None, sealed: None };
    after(job, &command, &context(CREATED + 10, first)).1
}

#[test]
fn instants_up_to_now_are_skipped_and_the_next_one_fires() {
    let job = created(job_id(), plain(every(10, 0)), CREATED);
    let (events, job) = after(&job, &Command::Restored { skip: true }, &context(CREATED + 35_000, 5));
    let [Event::CursorMoved { interval, entries, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((interval.from_ms, interval.to_ms), (CREATED, CREATED + 35_000));
    let told: Vec<_> = entries.iter().map(|e| (e.count, e.outcome, e.reason)).collect();
    assert_eq!(told, [(3, Outcome::Skipped, Some(SkipReason::Restored))]);
    assert_eq!(job.hot.next_due_ms, Some(CREATED + 40_000));
    assert!(job.hot.runs.is_empty(), "nothing fires by it");
}

#[test]
fn without_skipping_the_cursor_stays_for_the_misfire_policy() {
    let job = created(job_id(), plain(every(10, 0)), CREATED);
    let (events, job) = after(&job, &Command::Restored { skip: false }, &context(CREATED + 35_000, 5));
    assert_eq!((events.len(), job.hot.cursor_ms), (0, CREATED));
}

#[test]
fn a_pause_keeps_its_own_reason_and_nothing_due_writes_nothing() {
    let job = created(job_id(), plain(every(10, 0)), CREATED);
    let (events, _) = after(&job, &Command::Restored { skip: true }, &context(CREATED + 5_000, 5));
    assert_eq!(events, []);
    let (_, paused) = after(&job, &Command::Pause { reason: None }, &context(CREATED + 1_000, 5));
    let (events, _) = after(&paused, &Command::Restored { skip: true }, &context(CREATED + 15_000, 50));
    let Event::CursorMoved { entries, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!(entries[0].reason, Some(SkipReason::Paused));
    let tenant = Pause { from_ms: CREATED, to_ms: None, reason: SkipReason::TenantPaused };
    let tenant = Context { pauses: vec![tenant], ..context(CREATED + 15_000, 50) };
    let (events, _) = after(&job, &Command::Restored { skip: true }, &tenant);
    let Event::CursorMoved { entries, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!(entries[0].reason, Some(SkipReason::TenantPaused));
    // Each instant has the reason of its own time: 10 s is before the pause, 20 s in it, 30 s after it.
    let over = Pause { from_ms: CREATED + 15_000, to_ms: Some(CREATED + 25_000), reason: SkipReason::SystemPaused };
    let tenant = Context { pauses: vec![over], ..context(CREATED + 35_000, 50) };
    let (events, job) = after(&job, &Command::Restored { skip: true }, &tenant);
    let reasons = events.iter().filter_map(|event| match event {
        Event::CursorMoved { entries, .. } => Some(entries.iter().map(|entry| (entry.count, entry.reason.unwrap()))),
        _ => None,
    });
    let (restored, paused) = (SkipReason::Restored, SkipReason::SystemPaused);
    assert_eq!(reasons.flatten().collect::<Vec<_>>(), [(1, restored), (1, paused), (1, restored)]);
    assert_eq!(job.hot.cursor_ms, CREATED + 35_000);
}

#[test]
fn runs_that_waited_go_to_a_person_only_if_the_job_is_not_idempotent() {
    for not_idempotent in [false, true] {
        // One is QUEUED, the second held back by it.
        let job = triggered(&triggered(&manual(not_idempotent), 10), 20);
        let states: Vec<RunState> = job.hot.runs.iter().map(|r| r.state()).collect();
        assert_eq!(states, [RunState::Queued, RunState::Pending]);
        let (events, job) = after(&job, &Command::Restored { skip: true }, &context(CREATED + 9_000, 1 << 32));
        let states: Vec<RunState> = job.hot.runs.iter().map(|r| r.state()).collect();
        if not_idempotent {
            assert_eq!(states, [RunState::NeedsConfirmation; 2]);
            let tokens: Vec<u64> = job.hot.runs.iter().map(|r| r.record.attempts[0].token.0).collect();
            assert_eq!(tokens, [1 << 32, (1 << 32) + 1], "above all that were given out");
            assert!(job.hot.runs.iter().all(|r| r.record.attempts[0].state == AttemptState::Lost));
        } else {
            assert_eq!((states, events.len()), (vec![RunState::Queued, RunState::Pending], 0));
        }
    }
}

#[test]
fn a_body_that_ran_at_the_backup_is_left_to_its_lease() {
    let job = triggered(&manual(true), 10);
    let run = job.hot.runs[0].id();
    let session = ExecutorSession(7);
    let start = Command::Start { run, executor: "x".into(), session, credential: None, credit_stamp_ms: 0 };
    let (_, job) = after(&job, &start, &context(CREATED + 20, 30));
    let (events, job) = after(&job, &Command::Restored { skip: true }, &context(CREATED + 9_000, 1 << 32));
    assert_eq!((events.len(), job.hot.runs[0].state()), (0, RunState::Running));
}
