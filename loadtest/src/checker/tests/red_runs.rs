//! Seeded defects in runs, attempts and what executors saw.

use super::{
    green::{Story, story},
    only, red,
    world::T0,
};
use crate::{
    checker::ViolationKind,
    run_dir::lines::{ExecutorEvent, FaultEvent, Verb},
};
use campanile_schema::{
    record::{AttemptState, RunState},
    time::Timestamp,
};

/// Moves one body line of a run in time, microseconds.
fn shift(s: &mut Story, run: u64, event: ExecutorEvent, by_us: i64) {
    s.world.lines_of(run).filter(|l| l.event == event).for_each(|l| l.t_us += by_us);
}

#[test]
fn a_fired_instant_without_its_run_is_found() {
    let mut s = story();
    s.world.runs.retain(|r| r.run_id.0 != s.plain);
    let verdict = s.world.verdict();
    red(&verdict, ViolationKind::RunMissing);
    red(&verdict, ViolationKind::StartUnknown);
    let mut s = story();
    s.world.items(1).iter_mut().for_each(|e| e.run_id = None);
    red(&s.world.verdict(), ViolationKind::RunMissing);
}

#[test]
fn two_runs_of_one_instant_are_found() {
    let mut s = story();
    let mut again = s.world.run_mut(s.plain).clone();
    again.run_id.0 += 100_000;
    again.attempts.clear();
    s.world.runs.push(again);
    let verdict = s.world.verdict();
    red(&verdict, ViolationKind::RunDoubled);
    red(&verdict, ViolationKind::RunWithoutInstant);
    let mut s = story();
    let again = s.world.run_mut(s.plain).clone();
    s.world.runs.push(again);
    only(&s.world.verdict(), ViolationKind::RunDoubled);
}

#[test]
fn a_run_that_never_ended_is_found() {
    for state in [RunState::Pending, RunState::Queued, RunState::Running, RunState::RetryWait, RunState::SuspectedLost]
    {
        let mut s = story();
        let run = s.world.run_mut(s.plain);
        (run.state, run.ended_at) = (state, None);
        red(&s.world.verdict(), ViolationKind::RunNotEnded);
    }
    // A person has to decide: that is a reason, also for what is held behind it.
    let mut s = story();
    s.world.caller.iter_mut().filter_map(|l| l.spec.as_mut()).for_each(|spec| {
        if spec.name == "job-1" {
            spec.idempotent = false;
        }
    });
    let run = s.world.run_mut(s.plain);
    (run.state, run.ended_at) = (RunState::NeedsConfirmation, None);
    let held = s.world.runs.iter_mut().find(|r| r.job_id.0 == 1 && r.run_id.0 != s.plain).unwrap();
    (held.state, held.ended_at) = (RunState::Pending, None);
    assert!(s.world.verdict().green);
    // A job that is paused at the end holds its runs; one that was resumed does not.
    for (resumed, state) in [
        (false, RunState::Queued),
        (false, RunState::Pending),
        (true, RunState::Queued),
        (true, RunState::Pending),
        (false, RunState::Running),
    ] {
        let mut s = story();
        s.world.ask(Verb::Pause, 4, 58_000);
        if resumed {
            s.world.ask(Verb::Resume, 4, 59_000);
        }
        let held = s.world.runs.iter_mut().find(|r| r.job_id.0 == 4).unwrap();
        (held.state, held.ended_at) = (state, None);
        let verdict = s.world.verdict();
        let wrong = resumed || state == RunState::Running;
        assert_eq!(verdict.has(ViolationKind::RunNotEnded), wrong, "resumed: {resumed}, {state}: {verdict}");
    }
}

#[test]
fn two_accepted_outcomes_of_one_generation_are_found() {
    let mut s = story();
    s.world.run_mut(s.retried).attempts[0].state = AttemptState::Success;
    s.world.lines_of(s.retried).filter_map(|l| l.outcome.as_mut()).for_each(|o| *o = AttemptState::Success);
    let verdict = s.world.verdict();
    red(&verdict, ViolationKind::AcceptedTwice);
    red(&verdict, ViolationKind::DoubleStartUnexplained);
    // Started again on purpose: the next generation.
    s.world.run_mut(s.retried).attempts[1].generation = 2;
    assert!(s.world.verdict().green, "{}", s.world.verdict());
}

#[test]
fn too_many_attempts_are_found() {
    let mut s = story();
    for n in 0..3 {
        s.world.attempt(s.retried, 0, 3 + n, 9_000 + 100 * n as i64, 10, AttemptState::Failed);
    }
    s.world.run_mut(s.retried).attempts.remove(1);
    s.world.executors[1].1.retain(|l| l.run != s.retried);
    red(&s.world.verdict(), ViolationKind::AttemptsExceeded);
}

#[test]
fn a_start_that_the_record_does_not_know_is_found() {
    let mut s = story();
    s.world.lines_of(s.plain).for_each(|l| l.token = 9);
    let verdict = s.world.verdict();
    red(&verdict, ViolationKind::StartUnknown);
    red(&verdict, ViolationKind::SuccessWithoutStart);
    let mut s = story();
    s.world.lines_of(s.plain).for_each(|l| l.logical = Some(T0 + 20_500));
    red(&s.world.verdict(), ViolationKind::StartUnknown);
    let mut s = story();
    s.world.lines_of(s.plain).for_each(|l| l.job = 2);
    red(&s.world.verdict(), ViolationKind::StartUnknown);
}

#[test]
fn an_early_start_is_found() {
    let mut s = story();
    // One microsecond before its instant is too early.
    let run = s.plain;
    s.world.run_mut(run).created_at = Timestamp(T0 + 30_500);
    s.world.lines_of(run).filter(|l| l.event == ExecutorEvent::Start).for_each(|l| l.t_us = (T0 + 30_500) * 1000 - 1);
    red(&s.world.verdict(), ViolationKind::StartEarly);
    s.world.lines_of(run).filter(|l| l.event == ExecutorEvent::Start).for_each(|l| l.t_us = (T0 + 30_500) * 1000);
    assert!(s.world.verdict().green);
}

#[test]
fn a_success_that_nobody_ran_is_found() {
    let mut s = story();
    s.world.executors.iter_mut().for_each(|(_, lines)| lines.retain(|l| l.run != s.plain));
    only(&s.world.verdict(), ViolationKind::SuccessWithoutStart);
}

#[test]
fn a_changed_result_is_found() {
    let mut s = story();
    s.world.lines_of(s.plain).filter_map(|l| l.outcome.as_mut()).for_each(|o| *o = AttemptState::Failed);
    only(&s.world.verdict(), ViolationKind::ResultChanged);
    let mut s = story();
    s.world.run_mut(s.retried).attempts[0].state = AttemptState::NotStarted;
    only(&s.world.verdict(), ViolationKind::ResultChanged);
}

#[test]
fn a_reused_token_is_found() {
    let mut s = story();
    s.world.run_mut(s.retried).attempts[1].token = 1;
    s.world.lines_of(s.retried).for_each(|l| l.token = 1);
    red(&s.world.verdict(), ViolationKind::TokenReused);
}

#[test]
fn a_token_that_falls_is_found() {
    let mut s = story();
    s.world.run_mut(s.retried).attempts[0].token = 5;
    s.world.lines_of(s.retried).filter(|l| l.token == 1).for_each(|l| l.token = 5);
    only(&s.world.verdict(), ViolationKind::TokenNotHigher);
}

#[test]
fn a_second_start_while_the_first_attempt_lasts_is_found() {
    let mut s = story();
    s.world.run_mut(s.retried).attempts[0].ended_at = None;
    only(&s.world.verdict(), ViolationKind::DoubleStartUnexplained);
    let mut s = story();
    s.world.run_mut(s.retried).attempts[0].ended_at = Some(Timestamp(T0 + 9_000));
    let verdict = s.world.verdict();
    red(&verdict, ViolationKind::DoubleStartUnexplained);
    red(&verdict, ViolationKind::StaleAccepted);
}

#[test]
fn a_lease_lost_without_cause_is_found() {
    let mut s = story();
    s.world.faults.retain(|f| f.event != FaultEvent::ExecutorKilled);
    red(&s.world.verdict(), ViolationKind::LostWithoutCause);
    // Killed, but only after the attempt was given up.
    let mut s = story();
    s.world.faults.iter_mut().filter(|f| f.event == FaultEvent::ExecutorKilled).for_each(|f| f.t_us += 20_000_000);
    red(&s.world.verdict(), ViolationKind::LostWithoutCause);
    // Alive, but the node was down for longer than a lease.
    let mut s = story();
    s.world.faults.retain(|f| f.event != FaultEvent::ExecutorKilled);
    s.world.fault(FaultEvent::NodeKilled, 39_600, None);
    s.world.fault(FaultEvent::NodeReady, 49_000, None);
    assert!(!s.world.verdict().has(ViolationKind::LostWithoutCause), "{}", s.world.verdict());
    // Down for a moment; it was told meanwhile how the attempt ended, or so it may be only when it came back from a backup.
    let mut s = story();
    s.world.faults.retain(|f| f.event != FaultEvent::ExecutorKilled);
    s.world.fault(FaultEvent::NodeKilled, 41_000, None);
    s.world.fault(FaultEvent::NodeReady, 42_000, None);
    for run in [s.lost, s.confirmed] {
        let mut end = s.world.lines_of(run).find(|l| l.token == 1).unwrap().clone();
        (end.event, end.outcome) = (ExecutorEvent::End, Some(AttemptState::Success));
        end.t_us = (T0 + 41_500) * 1000;
        s.world.executors[1].1.push(end);
    }
    red(&s.world.verdict(), ViolationKind::LostWithoutCause);
    s.world.fault(FaultEvent::NodeRestored, 41_800, None);
    assert!(!s.world.verdict().has(ViolationKind::LostWithoutCause), "{}", s.world.verdict());
    s.world.lines_of(s.lost).filter(|l| l.event == ExecutorEvent::End && l.token == 1).for_each(|l| l.t_us -= 600_000);
    red(&s.world.verdict(), ViolationKind::LostWithoutCause);
}

/// Executor-b lost the leases of jobs 7 and 12: that it was not heard, for a lease, before the loss, while the bodies ran and in the
/// shards of both explains that, and nothing less.
#[test]
fn a_lease_that_nobody_heard_is_explained_for_that_executor_time_and_shard_only() {
    let explained = |event: FaultEvent, executor: &str, (from, until): (i64, i64), shards: &[u16]| {
        let mut w = story().world;
        w.faults.retain(|f| f.event != FaultEvent::ExecutorKilled);
        w.meta.as_mut().unwrap().shards = Some(4);
        w.fault(event, from, Some(executor));
        let act = w.faults.last_mut().unwrap();
        (act.until_us, act.shards) = (Some((T0 + until) * 1000), Some(shards.to_vec()));
        !w.verdict().has(ViolationKind::LostWithoutCause)
    };
    let unheard = FaultEvent::ExecutorUnheard;
    assert!(explained(unheard, "executor-b", (39_100, 52_000), &[0, 3]));
    assert!(!explained(unheard, "executor-a", (39_100, 52_000), &[0, 3]), "another executor");
    assert!(!explained(unheard, "executor-b", (39_100, 52_000), &[3]), "one of the shards only");
    assert!(!explained(unheard, "executor-b", (39_100, 42_000), &[0, 3]), "shorter than a lease");
    assert!(!explained(unheard, "executor-b", (45_000, 60_000), &[0, 3]), "too late");
    assert!(!explained(unheard, "executor-b", (20_000, 38_000), &[0, 3]), "before the body began");
    assert!(!explained(FaultEvent::Disturbed, "executor-b", (39_100, 52_000), &[0, 3]), "another excuse");
}

#[test]
fn a_second_start_of_what_is_not_idempotent_is_found() {
    let mut s = story();
    s.world.caller.retain(|l| l.run.is_none_or(|r| r.0 != s.confirmed));
    s.world.caller.retain(|l| l.verb != crate::run_dir::lines::Verb::Confirm);
    only(&s.world.verdict(), ViolationKind::NotIdempotentAgain);
}

#[test]
fn overlapping_bodies_are_found() {
    let mut s = story();
    // Job 1 is FORBID: its body of 30.5 s runs into 40.5 s.
    let run = s.plain;
    shift(&mut s, run, ExecutorEvent::End, 10_000_000);
    only(&s.world.verdict(), ViolationKind::BodiesOverlap);
    // A lost lease excuses it.
    let mut s = story();
    let run = s.lost;
    let next = s.world.fire(7, 45_000, 2);
    s.world.items(7).retain(|e| e.run_id.is_none_or(|r| r.0 != next));
    s.world.runs.retain(|r| r.run_id.0 != next);
    assert!(!s.world.verdict().has(ViolationKind::BodiesOverlap));
    s.world.run_mut(run).attempts[0].state = AttemptState::Canceled;
    s.world.faults.retain(|f| f.event != FaultEvent::ExecutorKilled);
    red(&s.world.verdict(), ViolationKind::BodiesOverlap);
}
