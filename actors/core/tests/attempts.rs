//! Runs and attempts: over random histories, and by examples. The rules are in `support::attempts`.

use crate::support::{
    attempts, config, judge,
    make::plain,
    ops::{Op, history},
    sim::{Sim, ended},
};
use campanile_core::{
    job::{Command, Effect, Reply, decide_next},
    retry,
};
use campanile_schema::{
    error::ErrorCode,
    event::{Event, StopReason},
    ids::{ExecutorSession, RunId, Token},
    job::{Backoff, ConcurrencyPolicy},
    limits::{ATTEMPTS_KEPT, ERROR_CODE_BYTES, ERROR_MESSAGE_BYTES, RESULT_BYTES, UNCOUNTED_ATTEMPTS},
    payload::Payload,
    record::{AttemptState, RunRecord, RunState},
    rpc::executor::Ended,
    stored::{StoredJob, StoredTrigger},
    view::ConfirmDecision,
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn at_most_one_outcome_of_a_run_and_generation(history in history()) {
        let sim = Sim::run(&history, true);
        prop_assert_eq!(attempts::check(&sim.steps), Ok(()));
    }

    /// base x 2^(n-1), at most max, times 1 ± jitter; the same on every node.
    #[test]
    fn backoff_stays_in_its_bounds(
        exponential in any::<bool>(),
        base in 0u64..100_000,
        max in 0u64..10_000_000,
        jitter in 0u32..=1000,
        run in any::<u64>(),
        tried in 1u32..101,
    ) {
        let mut def = plain(StoredTrigger::Manual {});
        def.backoff = if exponential { Backoff::Exponential } else { Backoff::Fixed };
        (def.base_delay_ms, def.max_delay_ms, def.retry_jitter_milli) = (base, max, jitter);
        let factor = if exponential { 2f64.powi(tried as i32 - 1) } else { 1.0 };
        let middle = (base as f64 * factor).min(max as f64);
        let spread = middle * f64::from(jitter) / 1000.0;
        let delay = retry::delay_ms(&def, RunId(run), tried);
        prop_assert!(delay as f64 >= middle - spread - 1.0);
        prop_assert!(delay as f64 <= middle + spread + 1.0);
        prop_assert_eq!(delay, retry::delay_ms(&def, RunId(run), tried));
    }
}

const NOW: i64 = 1_782_000_000_000;

/// A job with one run that is queued.
pub fn one_run(change: impl FnOnce(&mut StoredJob)) -> (Sim, RunId) {
    let mut def = plain(StoredTrigger::Manual {});
    change(&mut def);
    let mut sim = Sim::create(def, NOW, true);
    sim.op(&Op::Trigger { key: Some(0), params: false });
    let run = sim.job.hot.runs[0].id();
    (sim, run)
}

pub fn start(sim: &mut Sim, run: RunId) -> Token {
    let session = ExecutorSession(1);
    let executor = "x".to_owned();
    sim.command(&Command::Start { run, executor: executor.into(), session, credential: None, credit_stamp_ms: 0 })
        .unwrap();
    sim.job.run(run).unwrap().token().unwrap()
}

/// Starts it, ends it so, and lets its retry fall due.
pub fn attempt(sim: &mut Sim, run: RunId, state: AttemptState) {
    let token = start(sim, run);
    assert_eq!(sim.finish(run, token, state), Reply::Done);
    if let Some(retry) = sim.job.run(run).and_then(|r| r.retry_at_ms) {
        sim.pass(retry + 10);
    }
}

pub fn state(sim: &Sim, run: RunId) -> RunState {
    let last = || sim.finals.iter().find(|r| r.run == run).unwrap().state;
    sim.job.run(run).map_or_else(last, |r| r.state())
}

pub fn last(sim: &Sim) -> &RunRecord {
    sim.finals.last().unwrap()
}

pub fn reopen(sim: &mut Sim, redrive: bool) -> Result<Reply, ErrorCode> {
    let record = Box::new(last(sim).clone());
    sim.command(&Command::Reopen { record, redrive, reason: None, force: false }).map_err(|r| r.code)
}

#[test]
fn dead_letter_and_redrive_have_a_fresh_budget_and_go_on_numbering() {
    let (mut sim, run) = one_run(|_| {});
    for _ in 0..3 {
        attempt(&mut sim, run, AttemptState::Failed);
    }
    assert_eq!((state(&sim, run), last(&sim).dead_letter), (RunState::Failed, true));
    reopen(&mut sim, true).unwrap();
    assert!(!sim.job.run(run).unwrap().record.dead_letter);
    for _ in 0..2 {
        attempt(&mut sim, run, AttemptState::Failed);
        assert_eq!(state(&sim, run), RunState::Queued);
    }
    attempt(&mut sim, run, AttemptState::Success);
    let record = last(&sim);
    let told: Vec<_> = record.attempts.iter().map(|a| (a.generation, a.attempt)).collect();
    assert_eq!(told, [(1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (2, 6)]);
    assert!(record.attempts.windows(2).all(|a| a[0].token < a[1].token), "tokens rise over generations");
    assert_eq!((record.generation, record.state, record.dead_letter), (2, RunState::Success, false));
    assert_eq!(reopen(&mut sim, true), Err(ErrorCode::IllegalState), "it is no dead letter any more");
    assert_eq!(judge(&sim), Ok(()));
}

/// The record keeps the newest attempts only; the budget counts all.
#[test]
fn the_budget_ends_beyond_the_attempts_that_are_kept() {
    let (mut sim, run) = one_run(|def| (def.max_attempts, def.base_delay_ms) = (25, 0));
    for n in 1..=25 {
        assert_eq!(state(&sim, run), RunState::Queued, "before attempt {n}");
        attempt(&mut sim, run, AttemptState::NotStarted);
        attempt(&mut sim, run, AttemptState::Failed);
    }
    assert_eq!(state(&sim, run), RunState::Failed);
    assert_eq!((last(&sim).attempts.len(), last(&sim).attempts.last().unwrap().attempt), (ATTEMPTS_KEPT, 50));
}

#[test]
fn not_started_does_not_count_and_does_not_spin() {
    let (mut sim, run) = one_run(|def| def.max_attempts = 1);
    let mut waited = 0;
    for _ in 0..10 {
        let token = start(&mut sim, run);
        sim.finish(run, token, AttemptState::NotStarted);
        if let Some(retry) = sim.job.run(run).unwrap().retry_at_ms {
            assert_eq!(retry, sim.now_ms + 1_000);
            waited += 1;
            sim.pass(retry + 10);
        }
    }
    assert_eq!((waited, state(&sim, run)), (7, RunState::Queued));
    attempt(&mut sim, run, AttemptState::Failed);
    assert_eq!(state(&sim, run), RunState::Failed);
}

/// Its executor knows that trying again is in vain: neither a retry nor a question, whatever is left of the budget.
#[test]
fn a_permanent_failure_ends_the_run() {
    for not_idempotent in [false, true] {
        let (mut sim, run) = one_run(|def| (def.not_idempotent, def.max_attempts) = (not_idempotent, 5));
        let token = start(&mut sim, run);
        let permanent = Ended { permanent: true, ..ended(sim.job.id, run, token, AttemptState::Failed) };
        assert_eq!(sim.command(&Command::Finish(Box::new(permanent))).unwrap(), Reply::Done);
        assert_eq!((state(&sim, run), last(&sim).dead_letter), (RunState::Failed, true));
        assert!(last(&sim).attempts[0].permanent, "the record says why");
        // A retry by hand has a fresh budget.
        reopen(&mut sim, true).unwrap();
        attempt(&mut sim, run, AttemptState::Success);
        assert_eq!((state(&sim, run), judge(&sim)), (RunState::Success, Ok(())));
    }
}

/// What was stopped from outside says nothing about the next attempt.
#[test]
fn only_a_failure_of_the_body_can_be_permanent() {
    for how in [AttemptState::Timeout, AttemptState::Canceled, AttemptState::NotStarted] {
        let (mut sim, run) = one_run(|def| def.max_attempts = 5);
        let token = start(&mut sim, run);
        let stopped = Ended { permanent: true, ..ended(sim.job.id, run, token, how) };
        sim.command(&Command::Finish(Box::new(stopped))).unwrap();
        assert!(!state(&sim, run).is_final(), "{how:?}");
    }
}

#[test]
fn what_is_not_idempotent_waits_for_a_person() {
    for (attempts, how, asked) in [
        (3, AttemptState::Failed, true),
        (3, AttemptState::Timeout, true),
        (3, AttemptState::Canceled, true),
        (3, AttemptState::Lost, true),
        // The budget is spent: a failure is a failure, but nobody knows what a lost body did.
        (1, AttemptState::Failed, false),
        (1, AttemptState::Lost, true),
        // No body began.
        (1, AttemptState::NotStarted, false),
    ] {
        let (mut sim, run) = one_run(|def| (def.not_idempotent, def.max_attempts) = (true, attempts));
        attempt(&mut sim, run, how);
        assert_eq!(state(&sim, run) == RunState::NeedsConfirmation, asked, "{how} of {attempts}");
    }
    for (decision, then) in [
        (ConfirmDecision::Rerun, RunState::Queued),
        (ConfirmDecision::Succeeded, RunState::Success),
        (ConfirmDecision::Failed, RunState::Failed),
    ] {
        let (mut sim, run) = one_run(|def| def.not_idempotent = true);
        let token = start(&mut sim, run);
        sim.command(&Command::Lost { run, token }).unwrap();
        sim.pass(NOW + 86_400_000);
        assert_eq!(state(&sim, run), RunState::NeedsConfirmation, "it waits for ever");
        sim.command(&Command::Confirm { run, decision, reason: None }).unwrap();
        assert_eq!(state(&sim, run), then);
        if then == RunState::Failed {
            assert!(last(&sim).dead_letter);
        }
    }
}

#[test]
fn a_timeout_stops_the_body_and_counts() {
    let (mut sim, run) = one_run(|def| (def.timeout_sec, def.max_attempts) = (5, 2));
    for (n, executor_says) in [(1, AttemptState::Timeout), (2, AttemptState::Failed)] {
        let token = start(&mut sim, run);
        let started = sim.now_ms;
        sim.pass(started + 5_999);
        assert_eq!(sim.job.run(run).unwrap().stopping, None, "the executor ends it itself first");
        sim.pass(started + 6_010);
        assert_eq!(sim.job.run(run).unwrap().stop_reason(), Some(StopReason::Timeout));
        let told = sim.steps.len();
        sim.pass(started + 60_000);
        assert_eq!(sim.steps.len(), told, "told once");
        sim.finish(run, token, executor_says);
        if n == 1 {
            let retry = sim.job.run(run).unwrap().retry_at_ms.unwrap();
            sim.pass(retry + 10);
        }
    }
    assert_eq!((state(&sim, run), last(&sim).dead_letter), (RunState::Timeout, true));
    // The executor is lost while it should stop: that was a timeout too.
    let (mut sim, run) = one_run(|def| (def.timeout_sec, def.max_attempts) = (5, 1));
    let token = start(&mut sim, run);
    sim.pass(NOW + 7_000);
    sim.command(&Command::Lost { run, token }).unwrap();
    assert_eq!(state(&sim, run), RunState::Timeout);
}

#[test]
fn cancel_races() {
    use AttemptState as A;
    // What the executor says after the cancel; a success that was under way stands.
    for (says, then) in [
        (A::Success, RunState::Success),
        (A::Canceled, RunState::Canceled),
        (A::Failed, RunState::Canceled),
        (A::Timeout, RunState::Canceled),
        (A::NotStarted, RunState::Canceled),
    ] {
        let (mut sim, run) = one_run(|_| {});
        let token = start(&mut sim, run);
        sim.op(&Op::Cancel { pick: 0 });
        sim.op(&Op::Cancel { pick: 0 });
        sim.finish(run, token, says);
        assert_eq!(state(&sim, run), then, "{says}");
        assert_eq!(sim.finish(run, token, A::Success), Reply::Stale, "the second word is not taken");
    }
    let (mut sim, run) = one_run(|_| {});
    let token = start(&mut sim, run);
    sim.op(&Op::Cancel { pick: 0 });
    sim.command(&Command::Lost { run, token }).unwrap();
    assert_eq!(state(&sim, run), RunState::Canceled);
    // Canceled before it was sent: the executor's credit is not used.
    let (mut sim, run) = one_run(|_| {});
    sim.op(&Op::Cancel { pick: 0 });
    let start =
        Command::Start { run, executor: "x".into(), session: ExecutorSession(1), credential: None, credit_stamp_ms: 0 };
    assert_eq!(sim.command(&start).map_err(|r| r.code), Err(ErrorCode::IllegalState));
}

/// A stop that was lost on its way is told again when the executor announces the attempt.
#[test]
fn a_lost_stop_is_told_again() {
    let (mut sim, run) = one_run(|_| {});
    let token = start(&mut sim, run);
    sim.op(&Op::Cancel { pick: 0 });
    for (session, reply) in [(ExecutorSession(1), Reply::Unchanged), (ExecutorSession(2), Reply::Done)] {
        let heard = Command::Heard { run, token, session };
        let (decision, _) = decide_next(&sim.job, &heard, &sim.context(0)).unwrap();
        assert_eq!(decision.reply, reply);
        let stops = decision.effects.iter().filter(|e| matches!(e, Effect::Stop { session: s, .. } if *s == session));
        assert_eq!(stops.count(), 1);
    }
}

#[test]
fn a_result_after_a_loss_is_stale() {
    let (mut sim, run) = one_run(|_| {});
    let old = start(&mut sim, run);
    sim.command(&Command::Suspect { run, token: old }).unwrap();
    sim.command(&Command::Lost { run, token: old }).unwrap();
    let new = start(&mut sim, run);
    assert!(new > old);
    assert_eq!(sim.finish(run, old, AttemptState::Success), Reply::Stale);
    assert_eq!(state(&sim, run), RunState::Running);
    assert_eq!(sim.finish(run, new, AttemptState::Success), Reply::Done);
    let outcomes = sim.events().filter(|e| matches!(e, Event::RunEnded { .. })).count();
    assert_eq!((outcomes, state(&sim, run)), (1, RunState::Success));
}

/// REPLACE: the new run's body starts when the old one's has ended, by word or by loss.
#[test]
fn replace_waits_for_the_old_body() {
    for lost in [false, true] {
        let (mut sim, old) = one_run(|def| def.concurrency = ConcurrencyPolicy::Replace);
        let token = start(&mut sim, old);
        sim.op(&Op::Trigger { key: Some(1), params: false });
        let new = sim.job.hot.runs[1].id();
        assert_eq!(sim.job.run(old).unwrap().stop_reason(), Some(StopReason::Replace));
        assert_eq!(state(&sim, new), RunState::Pending);
        if lost {
            sim.command(&Command::Lost { run: old, token }).unwrap();
        } else {
            sim.finish(old, token, AttemptState::Canceled);
        }
        assert_eq!((state(&sim, old), state(&sim, new)), (RunState::Canceled, RunState::Queued));
        assert_eq!(judge(&sim), Ok(()));
    }
}

/// An edit moves what waits for an executor to the new pool.
#[test]
fn an_edit_moves_queued_runs() {
    let (sim, run) = one_run(|_| {});
    let mut def = (*sim.job.def).clone();
    for (pool, moved) in [("default", 0), ("other", 1)] {
        def.pool = pool.into();
        let replace = Command::Replace { version: 1, spec: Box::new(def.clone()) };
        let (decision, _) = decide_next(&sim.job, &replace, &sim.context(8)).unwrap();
        let out = decision.effects.iter().filter(|e| matches!(e, Effect::Dequeue { pool, .. } if pool == "default"));
        let into =
            decision.effects.iter().filter(|e| matches!(e, Effect::Enqueue(w) if w.pool == "other" && w.run == run));
        assert_eq!((out.count(), into.count()), (moved, moved));
    }
}

#[test]
fn an_executors_words_are_clipped() {
    let (mut sim, run) = one_run(|_| {});
    let token = start(&mut sim, run);
    let mut end = ended(sim.job.id, run, token, AttemptState::Failed);
    end.error_message = Some("ä".repeat(ERROR_MESSAGE_BYTES));
    end.error_code = Some("x".repeat(ERROR_CODE_BYTES + 1));
    sim.command(&Command::Finish(Box::new(end))).unwrap();
    let attempt = &sim.job.run(run).unwrap().record.attempts[0];
    assert_eq!(attempt.error_message.as_ref().unwrap().len(), ERROR_MESSAGE_BYTES);
    assert_eq!(attempt.error_code.as_ref().unwrap().len(), ERROR_CODE_BYTES);
}

/// The work is done, so the run is a success; that its answer is not kept is said where the answer would be looked for.
#[test]
fn a_result_that_is_too_large_is_not_kept_and_the_run_says_so() {
    for (bytes, kept) in [(RESULT_BYTES, true), (RESULT_BYTES + 1, false)] {
        let (mut sim, run) = one_run(|_| {});
        let token = start(&mut sim, run);
        let mut ended = ended(sim.job.id, run, token, AttemptState::Success);
        ended.result = Some(Payload(format!("\"{}\"", "x".repeat(bytes - 2))));
        assert_eq!(sim.command(&Command::Finish(Box::new(ended))).unwrap(), Reply::Done);
        let record = last(&sim);
        assert_eq!((record.state, record.result.is_some()), (RunState::Success, kept), "{bytes}");
        let code = record.attempts[0].error_code.as_deref();
        assert_eq!(code, (!kept).then_some("RESULT_TOO_LARGE"));
        assert_eq!(record.last_error().is_some_and(|e| e.contains("16385 bytes is not kept")), !kept);
    }
}

/// A deploy, or the loss of an executor, is no failure of the body: up to a limit it takes nothing of `maxAttempts`.
#[test]
fn attempts_that_their_executor_ended_do_not_count() {
    let how = |sim: &mut Sim, run: RunId, token: Token, n: u32| {
        if n.is_multiple_of(2) {
            sim.command(&Command::Lost { run, token }).unwrap();
        } else {
            let code = if n == 1 { "EXECUTOR_SHUTDOWN" } else { "LOST_CONTACT" };
            let failed = ended(sim.job.id, run, token, AttemptState::Failed);
            let failed = Ended { error_code: Some(code.to_owned()), ..failed };
            sim.command(&Command::Finish(Box::new(failed))).unwrap();
        }
    };
    let (mut sim, run) = one_run(|def| def.max_attempts = 1);
    for n in 0..UNCOUNTED_ATTEMPTS {
        let token = start(&mut sim, run);
        how(&mut sim, run, token, n);
        assert_eq!(state(&sim, run), RunState::Queued, "after {n}: at once, without a delay");
        let said = sim.job.run(run).unwrap().record.attempts[n as usize].error_message.clone().unwrap();
        assert!(said.contains(&format!("not counted against maxAttempts: {} of at most", n + 1)), "{said}");
    }
    let token = start(&mut sim, run);
    how(&mut sim, run, token, 0);
    assert_eq!(
        (state(&sim, run), last(&sim).dead_letter),
        (RunState::Failed, true),
        "a body that kills executors ends"
    );
    assert_eq!(judge(&sim), Ok(()));

    // The next generation has them anew; what is not idempotent asks, as ever.
    sim.op(&Op::Reopen { pick: 0, redrive: true });
    let token = start(&mut sim, run);
    how(&mut sim, run, token, 1);
    assert_eq!(state(&sim, run), RunState::Queued);
    let (mut sim, run) = one_run(|def| (def.max_attempts, def.not_idempotent) = (1, true));
    let token = start(&mut sim, run);
    how(&mut sim, run, token, 1);
    assert_eq!(state(&sim, run), RunState::Failed);
}

/// A body that cannot be killed holds its run, whatever is due, until a person says that it has ended.
#[test]
fn a_body_that_does_not_end_holds_the_run_until_a_person_says_so() {
    use ConfirmDecision as D;
    let confirm = |run| Command::Confirm { run, decision: D::Ended, reason: Some("its host is off".to_owned()) };
    for (cancel, after) in [(true, RunState::Canceled), (false, RunState::RetryWait)] {
        let (mut sim, run) = one_run(|def| (def.timeout_sec, def.max_attempts) = (5, 2));
        let token = start(&mut sim, run);
        assert_eq!(sim.command(&confirm(run)).map_err(|r| r.code), Err(ErrorCode::IllegalState), "it is not STOPPING");
        let since = if cancel {
            sim.op(&Op::Cancel { pick: 0 });
            sim.now_ms
        } else {
            sim.pass(NOW + 7_000);
            sim.now_ms
        };
        sim.pass(NOW + 3_600_000);
        let view = sim.job.run_view(sim.job.run(run).unwrap());
        let stopping = view.stopping.clone().unwrap();
        assert_eq!((view.label(), stopping.reason == StopReason::Cancel), ("STOPPING", cancel));
        assert!(stopping.since.unwrap().ms() <= since);
        assert!(stopping.since.unwrap().ms() >= NOW);
        assert!(view.wait_reason.unwrap().starts_with("STOPPING"));
        for decision in [D::Rerun, D::Succeeded, D::Failed] {
            let other = Command::Confirm { run, decision, reason: None };
            assert_eq!(sim.command(&other).map_err(|r| r.code), Err(ErrorCode::IllegalState));
        }
        let (decision, _) = decide_next(&sim.job, &confirm(run), &sim.context(0)).unwrap();
        let forget = |e: &Effect| matches!(e, Effect::Forget { held, .. } if held.run == run && held.token == token);
        assert!(decision.effects.iter().any(forget), "its executor frees the slot");
        sim.command(&confirm(run)).unwrap();
        assert_eq!(state(&sim, run), after);
        assert_eq!(sim.finish(run, token, AttemptState::Success), Reply::Stale, "the body's own word comes too late");
        assert_eq!(judge(&sim), Ok(()));
    }
}
