//! All attempts of a run together are bounded in time: `maxElapsedSec` and `maxRuntimeSec`.

use crate::{
    attempts::{attempt, last, one_run, reopen, start, state},
    priority::a_run_waits_by_its_own_priority,
    support::judge,
};
use campanile_core::job::{
    Command, Effect, decide_next,
    rules::{Rule, break_rule},
};
use campanile_schema::{
    event::StopReason,
    ids::ExecutorSession,
    job::Backoff,
    limits::ATTEMPTS_KEPT,
    record::{AttemptState, RunState},
    stored::StoredJob,
    view::ConfirmDecision,
};

const NOW: i64 = 1_782_000_000_000;

/// No attempt begins after the limit: of what fails by then the run ends as if its attempts were spent, and says why.
fn elapsed(field: &'static str) {
    let limited = |def: &mut StoredJob| {
        (def.max_attempts, def.base_delay_ms, def.retry_jitter_milli) = (9, 20_000, 0);
        def.backoff = Backoff::Fixed;
        let limit = if field == "maxRuntimeSec" { &mut def.max_runtime_sec } else { &mut def.max_elapsed_sec };
        *limit = Some(50);
    };
    let (mut sim, run) = one_run(limited);
    sim.pass(NOW + 3_600_000);
    assert_eq!(state(&sim, run), RunState::Queued, "the time begins with the first attempt");
    let began = sim.now_ms;
    for n in 1..=2 {
        attempt(&mut sim, run, AttemptState::Failed);
        assert_eq!(state(&sim, run), RunState::Queued, "after attempt {n}");
    }
    let token = start(&mut sim, run);
    assert!(sim.now_ms - began >= 40_000);
    sim.finish(run, token, AttemptState::Failed);
    let record = last(&sim);
    assert_eq!((state(&sim, run), record.dead_letter, record.attempts.len()), (RunState::Failed, true, 3));
    let told = record.last_error().unwrap();
    assert!(told.contains(&format!("no further attempt: the next one would begin later than {field}")), "{told}");
    // The next generation has the whole time.
    reopen(&mut sim, true).unwrap();
    attempt(&mut sim, run, AttemptState::Failed);
    assert_eq!(state(&sim, run), RunState::Queued);
    assert_eq!(judge(&sim), Ok(()));
}

fn retries_end_in_time() {
    elapsed("retryPolicy.maxElapsedSec");
    elapsed("maxRuntimeSec");
}

/// The executor is gone, and the run would wait for one for ever.
fn a_run_that_waits_ends_in_time() {
    let (mut sim, run) = one_run(|def| def.max_elapsed_sec = Some(60));
    let token = start(&mut sim, run);
    let began = sim.now_ms;
    sim.command(&Command::Lost { run, token }).unwrap();
    sim.pass(began + 60_000);
    assert_eq!(state(&sim, run), RunState::Queued, "it may begin at the last moment");
    sim.pass(began + 60_010);
    assert_eq!((state(&sim, run), last(&sim).dead_letter), (RunState::Timeout, true));
    assert!(last(&sim).last_error().unwrap().contains("retryPolicy.maxElapsedSec (60 s)"));
    assert_eq!(judge(&sim), Ok(()));
}

/// It is told to stop as by a timeout, and none follows.
fn a_body_is_stopped_when_the_time_is_over() {
    let (mut sim, run) = one_run(|def| {
        (def.max_runtime_sec, def.timeout_sec, def.base_delay_ms) = (Some(60), 50, 1_000);
        (def.retry_jitter_milli, def.max_attempts) = (0, 9);
    });
    let token = start(&mut sim, run);
    let began = sim.now_ms;
    sim.pass(began + 40_000);
    sim.finish(run, token, AttemptState::Failed);
    let retry = sim.job.run(run).unwrap().retry_at_ms.unwrap();
    sim.pass(retry + 10);
    let start_again =
        Command::Start { run, executor: "x".into(), session: ExecutorSession(1), credential: None, credit_stamp_ms: 0 };
    let (decision, _) = decide_next(&sim.job, &start_again, &sim.context(1)).unwrap();
    let told = decision.effects.iter().find_map(|effect| match effect {
        Effect::Assign(assign) => Some(assign.assignment.timeout_sec),
        _ => None,
    });
    assert_eq!(told, Some(19), "its executor stops the body by itself");
    let token = start(&mut sim, run);
    let body_began = sim.now_ms;
    sim.pass(body_began + 19_999);
    assert_eq!(sim.job.run(run).unwrap().stopping, None);
    sim.pass(body_began + 20_010);
    assert_eq!(sim.job.run(run).unwrap().stop_reason(), Some(StopReason::Timeout));
    sim.finish(run, token, AttemptState::Failed);
    assert_eq!((state(&sim, run), last(&sim).dead_letter), (RunState::Timeout, true));
    assert!(last(&sim).last_error().unwrap().contains("maxRuntimeSec (60 s)"));
    // One attempt alone may take the whole of it.
    let (mut sim, run) = one_run(|def| def.max_runtime_sec = Some(60));
    start(&mut sim, run);
    let began = sim.now_ms;
    sim.pass(began + 60_999);
    assert_eq!(sim.job.run(run).unwrap().stopping, None);
    sim.pass(began + 61_010);
    assert_eq!(sim.job.run(run).unwrap().stop_reason(), Some(StopReason::Timeout));
}

/// A person may decide long after the time was over.
fn a_rerun_has_the_whole_time() {
    let (mut sim, run) = one_run(|def| (def.max_runtime_sec, def.not_idempotent) = (Some(60), true));
    let token = start(&mut sim, run);
    sim.command(&Command::Lost { run, token }).unwrap();
    sim.pass(NOW + 86_400_000);
    assert_eq!(state(&sim, run), RunState::NeedsConfirmation, "it waits for a person, whatever the time");
    sim.command(&Command::Confirm { run, decision: ConfirmDecision::Rerun, reason: None }).unwrap();
    let confirmed = sim.now_ms;
    sim.pass(confirmed + 59_000);
    assert_eq!(state(&sim, run), RunState::Queued);
    sim.pass(confirmed + 60_010);
    assert_eq!(state(&sim, run), RunState::Timeout);
    assert_eq!(judge(&sim), Ok(()));
}

/// Refused attempts do not count, and the record forgets attempts.
fn the_time_counts_from_the_first_attempt_of_many() {
    let (mut sim, run) = one_run(|def| {
        (def.max_attempts, def.base_delay_ms, def.retry_jitter_milli) = (99, 1_000, 0);
        (def.backoff, def.max_elapsed_sec) = (Backoff::Fixed, Some(60));
    });
    let token = start(&mut sim, run);
    sim.finish(run, token, AttemptState::NotStarted);
    sim.pass(NOW + 600_000);
    assert_eq!(state(&sim, run), RunState::Queued, "no attempt has begun");
    let mut attempts = 0;
    while !state(&sim, run).is_final() && attempts < 99 {
        attempt(&mut sim, run, AttemptState::Failed);
        attempts += 1;
    }
    assert!(attempts > ATTEMPTS_KEPT && attempts < 62, "{attempts} attempts");
    assert_eq!(judge(&sim), Ok(()));
}

#[test]
fn all_attempts_together_are_bounded_in_time() {
    retries_end_in_time();
    a_run_that_waits_ends_in_time();
    a_body_is_stopped_when_the_time_is_over();
    a_rerun_has_the_whole_time();
    the_time_counts_from_the_first_attempt_of_many();
}

#[test]
fn each_clause_that_is_broken_is_found() {
    let checks: [(Rule, fn()); 8] = [
        (Rule::RetriesEndInTime, retries_end_in_time),
        (Rule::WaitingEndsInTime, a_run_that_waits_ends_in_time),
        (Rule::BodyStopsInTime, a_body_is_stopped_when_the_time_is_over),
        (Rule::TimeIsOfGeneration, retries_end_in_time),
        (Rule::RerunHasTheWholeTime, a_rerun_has_the_whole_time),
        (Rule::FirstAttemptIsRemembered, the_time_counts_from_the_first_attempt_of_many),
        (Rule::OwnPriorityCounts, a_run_waits_by_its_own_priority),
        (Rule::OwnPriorityMovesIt, a_run_waits_by_its_own_priority),
    ];
    assert_eq!(checks.map(|(rule, _)| rule), Rule::ALL);
    for (rule, check) in checks {
        break_rule(Some(rule));
        let found = std::panic::catch_unwind(check).is_err();
        break_rule(None);
        assert!(found, "{rule:?} is broken, and nothing shows it");
    }
}
