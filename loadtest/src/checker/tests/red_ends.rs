//! Seeded defects in how runs and attempts end: without a cause, before their time, too early for good, or again without a delay.

use super::{
    green::{Story, story},
    only, red,
    world::{T0, World, rate},
};
use crate::{
    checker::{Verdict, ViolationKind},
    run_dir::lines::{CallEvent, CallerLine, FaultEvent, Verb},
};
use campanile_schema::{
    event::{Outcome, SkipReason},
    ids::{JobId, RunId},
    job::ConcurrencyPolicy,
    record::{AttemptState, RunState, Source},
    time::Timestamp,
    view::ConfirmDecision,
};

fn green(verdict: &Verdict) {
    assert!(verdict.green, "{verdict}");
}

/// A call about a run, acknowledged after 2 ms.
fn about(world: &mut World, verb: Verb, job: u64, run: u64, at: i64) {
    let call = 950 + world.caller.len() as u64;
    let sent = CallerLine { t_us: (T0 + at) * 1000, ..CallerLine::new(CallEvent::Sent, call, verb) };
    let sent = CallerLine { job: Some(JobId(job)), run: Some(RunId(run)), ..sent };
    let ack = CallerLine { event: CallEvent::Ack, t_us: sent.t_us + 2_000, ..sent.clone() };
    world.caller.extend([sent, ack]);
}

/// The run of an instant of a new job (20, under `policy`), which ended so at 30.1 s without a body.
fn bodiless(policy: ConcurrencyPolicy, state: RunState) -> (World, u64) {
    let mut world = story().world;
    world.job(20, rate(60, 30_000), policy, |_| {});
    let run = world.run(20, Source::Schedule, Some(30_000), 30_001);
    world.entry(20, 30_000, Outcome::Fired, None, Some(run));
    let view = world.run_mut(run);
    (view.state, view.ended_at) = (state, Some(Timestamp(T0 + 30_100)));
    view.dead_letter = matches!(state, RunState::Failed | RunState::Timeout);
    (world, run)
}

#[test]
fn a_run_that_ended_without_a_body_and_without_a_cause_is_found() {
    for state in [RunState::Canceled, RunState::Skipped, RunState::Timeout, RunState::Failed, RunState::Success] {
        only(&bodiless(ConcurrencyPolicy::Allow, state).0.verdict(), ViolationKind::EndedWithoutCause);
    }
    // A cancel, a delete, or a newer run under REPLACE is a cause of CANCELED.
    let (mut world, run) = bodiless(ConcurrencyPolicy::Allow, RunState::Canceled);
    about(&mut world, Verb::Cancel, 20, run, 30_050);
    green(&world.verdict());
    let (mut world, run) = bodiless(ConcurrencyPolicy::Allow, RunState::Canceled);
    about(&mut world, Verb::Cancel, 20, run, 30_200);
    only(&world.verdict(), ViolationKind::EndedWithoutCause);
    let (mut world, _) = bodiless(ConcurrencyPolicy::Allow, RunState::Canceled);
    world.ask(Verb::Delete, 20, 30_050);
    green(&world.verdict());
    for (policy, caused) in [(ConcurrencyPolicy::Replace, true), (ConcurrencyPolicy::Allow, false)] {
        let (mut world, _) = bodiless(policy, RunState::Canceled);
        world.trigger(20, "newer", 30_098);
        assert_eq!(world.verdict().has(ViolationKind::EndedWithoutCause), !caused, "{}", world.verdict());
    }
    // A person's word is one of FAILED and SUCCESS.
    for (state, decision) in
        [(RunState::Failed, ConfirmDecision::Failed), (RunState::Success, ConfirmDecision::Succeeded)]
    {
        let (mut world, run) = bodiless(ConcurrencyPolicy::Allow, state);
        about(&mut world, Verb::Confirm, 20, run, 30_050);
        world.caller.iter_mut().filter(|l| l.verb == Verb::Confirm).for_each(|l| l.decision = Some(decision));
        world
            .caller
            .iter_mut()
            .filter_map(|l| l.spec.as_mut())
            .filter(|s| s.name == "job-20")
            .for_each(|s| s.idempotent = false);
        green(&world.verdict());
    }
}

#[test]
fn a_time_out_before_its_time_that_excuses_a_second_start_is_found() {
    let with = |timeout_sec: u64, state: AttemptState| {
        let Story { mut world, retried, .. } = story();
        world
            .caller
            .iter_mut()
            .filter_map(|l| l.spec.as_mut())
            .filter(|spec| spec.name == "job-6")
            .for_each(|spec| spec.timeout_sec = timeout_sec);
        let attempt = &mut world.run_mut(retried).attempts[0];
        (attempt.state, attempt.ended_at) = (state, Some(Timestamp(T0 + 7_020)));
        world
    };
    only(&with(3600, AttemptState::Timeout).verdict(), ViolationKind::AttemptEndInvented);
    green(&with(0, AttemptState::Timeout).verdict());
    only(&with(3600, AttemptState::Canceled).verdict(), ViolationKind::AttemptEndInvented);
    let mut world = with(3600, AttemptState::Canceled);
    let run = story().retried;
    about(&mut world, Verb::Cancel, 6, run, 7_010);
    // Asked for, but then it must not go on.
    red(&world.verdict(), ViolationKind::StartedAfterCancel);
}

#[test]
fn the_time_of_an_attempt_begins_when_it_is_durable_and_not_with_a_late_body() {
    let with = |timeout_sec: u64| {
        let Story { mut world, retried, .. } = story();
        let of_job = |spec: &&mut campanile_schema::job::JobSpec| spec.name == "job-6";
        world
            .caller
            .iter_mut()
            .filter_map(|l| l.spec.as_mut())
            .filter(of_job)
            .for_each(|s| s.timeout_sec = timeout_sec);
        let attempt = &mut world.run_mut(retried).attempts[0];
        // Its body began at 7,000 ms or later.
        (attempt.started_at, attempt.ended_at) = (Timestamp(T0 + 6_000), Some(Timestamp(T0 + 7_020)));
        attempt.state = AttemptState::Timeout;
        world
    };
    green(&with(1).verdict());
    only(&with(2).verdict(), ViolationKind::AttemptEndInvented);
}

#[test]
fn an_attempt_that_nobody_had_and_that_failed_or_was_lost_is_found() {
    for (state, kind) in [
        (AttemptState::Failed, ViolationKind::EndedWithoutCause),
        (AttemptState::Timeout, ViolationKind::AttemptEndInvented),
        (AttemptState::Lost, ViolationKind::LostWithoutCause),
        (AttemptState::Running, ViolationKind::EndedWithoutCause),
    ] {
        let Story { mut world, retried, .. } = story();
        world.run_mut(retried).attempts[0].state = state;
        world.executors.iter_mut().for_each(|(_, lines)| lines.retain(|l| l.run != retried || l.token != 1));
        red(&world.verdict(), kind);
        if state != AttemptState::Lost {
            continue;
        }
        // What was done to its shard meanwhile may have kept it from its executor; what was done to another has not.
        world.meta.as_mut().unwrap().shards = Some(4);
        for (shard, from, until, explained) in
            [(2, 6_500, 7_500, true), (1, 6_500, 7_500, false), (2, 8_900, 9_000, false)]
        {
            world.faults.retain(|fault| fault.event != FaultEvent::Disturbed);
            world.fault(FaultEvent::Disturbed, from, None);
            let act = world.faults.last_mut().unwrap();
            (act.until_us, act.shards) = (Some((T0 + until) * 1000), Some(vec![shard]));
            let verdict = world.verdict();
            assert_eq!(verdict.has(kind), !explained, "{shard} from {from} until {until}: {verdict}");
        }
    }
}

#[test]
fn a_retry_that_was_not_made_is_found() {
    let with = |attempts: u32, permanent: bool| {
        let mut world = story().world;
        world.job(20, rate(60, 30_000), ConcurrencyPolicy::Allow, |_| {});
        let run = world.run(20, Source::Schedule, Some(30_000), 30_001);
        world.entry(20, 30_000, Outcome::Fired, None, Some(run));
        for n in 0..attempts {
            world.attempt(run, 0, u64::from(n) + 1, 30_002 + i64::from(n) * 1_050, 10, AttemptState::Failed);
        }
        let view = world.run_mut(run);
        (view.state, view.dead_letter) = (RunState::Failed, true);
        view.attempts.last_mut().unwrap().permanent = permanent;
        (world, run)
    };
    green(&with(3, false).0.verdict());
    only(&with(1, false).0.verdict(), ViolationKind::RetryMissing);
    only(&with(2, false).0.verdict(), ViolationKind::RetryMissing);
    // The node alone says that it was in vain; then its body says so.
    let (mut world, run) = with(1, true);
    only(&world.verdict(), ViolationKind::RetryMissing);
    world.lines_of(run).for_each(|line| line.permanent = line.outcome.is_some());
    green(&world.verdict());
    // A dead letter that is missing, was put away, or is undue.
    let (mut world, run) = with(3, false);
    world.run_mut(run).dead_letter = false;
    only(&world.verdict(), ViolationKind::DeadLetterWrong);
    about(&mut world, Verb::Discard, 20, run, 40_000);
    green(&world.verdict());
    let Story { mut world, plain, .. } = story();
    world.run_mut(plain).dead_letter = true;
    only(&world.verdict(), ViolationKind::DeadLetterWrong);
}

#[test]
fn a_delay_between_attempts_that_is_not_kept_is_found() {
    // The first attempt fails at 7.012 s; the delay is a second, give or take a fifth.
    let with = |second: i64| {
        let Story { mut world, retried, .. } = story();
        let by_us = (second - 8_100) * 1000;
        world.lines_of(retried).filter(|l| l.token == 2).for_each(|l| l.t_us += by_us);
        let run = world.run_mut(retried);
        run.attempts[1].started_at = Timestamp(T0 + second);
        run.attempts[1].ended_at = Some(Timestamp(T0 + second + 11));
        run.ended_at = Some(Timestamp(T0 + second + 11));
        world.verdict()
    };
    green(&with(7_815));
    only(&with(7_800), ViolationKind::BackoffNotKept);
    // A second of lateness is allowed besides.
    green(&with(9_200));
    only(&with(9_300), ViolationKind::BackoffNotKept);
}

#[test]
fn a_failed_run_that_is_not_idempotent_and_starts_again_unasked_is_found() {
    let Story { mut world, retried, .. } = story();
    world
        .caller
        .iter_mut()
        .filter_map(|l| l.spec.as_mut())
        .filter(|s| s.name == "job-6")
        .for_each(|s| s.idempotent = false);
    only(&world.verdict(), ViolationKind::NotIdempotentAgain);
    about(&mut world, Verb::Confirm, 6, retried, 7_500);
    green(&world.verdict());
}

#[test]
fn generations_that_nobody_asked_for_or_that_are_gone_are_found() {
    let Story { mut world, plain, .. } = story();
    world.run_mut(plain).generation = 2;
    world.run_mut(plain).attempts[0].generation = 2;
    world.lines_of(plain).for_each(|line| line.generation = 2);
    only(&world.verdict(), ViolationKind::ReopenUnasked);
    about(&mut world, Verb::Retry, 1, plain, 30_000);
    green(&world.verdict());
    // A try without an answer may have been done too, and only such a one.
    world.run_mut(plain).generation = 3;
    world.run_mut(plain).attempts[0].generation = 3;
    world.lines_of(plain).for_each(|line| line.generation = 3);
    only(&world.verdict(), ViolationKind::ReopenUnasked);
    let told = world.caller.iter().rfind(|l| l.verb == Verb::Retry).unwrap();
    let unanswered = CallerLine { event: CallEvent::Unknown, t_us: told.t_us - 1, ..told.clone() };
    world.caller.push(unanswered);
    green(&world.verdict());
    world.caller.iter_mut().filter(|l| l.verb == Verb::Retry).for_each(|l| l.generation = Some(4));
    red(&world.verdict(), ViolationKind::ReopenLost);
}

/// A pause holds by the instant: one that was due before it fires, though it may be decided in it.
#[test]
fn what_was_due_before_a_pause_is_not_skipped_by_it() {
    let skipped = |pause: i64| {
        let mut world = story().world;
        world.job(20, rate(10, 26_000), ConcurrencyPolicy::Allow, |spec| spec.tenant_id = "still".to_owned());
        // The first pause begins a millisecond after an instant whose run is made when it has been acknowledged.
        let pauses = [(26_001, Verb::PauseTenant), (26_500, Verb::ResumeTenant)];
        let pauses = pauses.into_iter().chain([(pause, Verb::PauseTenant), (pause + 3_000, Verb::ResumeTenant)]);
        for (n, (at, verb)) in pauses.enumerate() {
            let sent = CallerLine { t_us: (T0 + at) * 1000, ..CallerLine::new(CallEvent::Sent, 970 + n as u64, verb) };
            let sent = CallerLine { tenant: Some("still".to_owned()), ..sent };
            let ack = CallerLine { event: CallEvent::Ack, t_us: sent.t_us + 2_000, ..sent.clone() };
            world.caller.extend([sent, ack]);
        }
        world.fire(20, 26_000, 10);
        world.entry(20, 36_000, Outcome::Skipped, Some(SkipReason::TenantPaused), None);
        world.fire(20, 46_000, 2);
        world.fire(20, 56_000, 2);
        world
    };
    green(&skipped(35_999).verdict());
    only(&skipped(36_002).verdict(), ViolationKind::OutcomeUnjustified);
    only(&skipped(32_990).verdict(), ViolationKind::OutcomeUnjustified);
    // The clocks of a cluster may have been set wrong.
    let mut world = skipped(36_002);
    world.fault(FaultEvent::Disturbed, 20_000, None);
    assert!(!world.verdict().has(ViolationKind::OutcomeUnjustified), "{}", world.verdict());
}

#[test]
fn tenants_and_systems_that_are_paused_start_nothing() {
    let paused = |verbs: (Verb, Verb), reason, told: bool| {
        let mut world = story().world;
        world.job(20, rate(10, 26_000), ConcurrencyPolicy::Allow, |spec| spec.tenant_id = "still".to_owned());
        world.fire(20, 26_000, 2);
        for (n, (verb, at)) in [(verbs.0, 30_000), (verbs.1, 40_000), (verbs.1, 50_000)].into_iter().enumerate() {
            let sent = CallerLine { t_us: (T0 + at) * 1000, ..CallerLine::new(CallEvent::Sent, 970 + n as u64, verb) };
            let sent = CallerLine { tenant: Some("still".to_owned()), ..sent };
            let ack = CallerLine { event: CallEvent::Ack, t_us: sent.t_us + 2_000, ..sent.clone() };
            world.caller.extend([sent, ack]);
        }
        if told {
            world.entry(20, 36_000, Outcome::Skipped, Some(reason), None);
        } else {
            world.fire(20, 36_000, 2);
        }
        world.fire(20, 46_000, 2);
        world.fire(20, 56_000, 2);
        world.verdict()
    };
    let (of_tenant, of_system) = ((Verb::PauseTenant, Verb::ResumeTenant), (Verb::PauseSystem, Verb::ResumeSystem));
    green(&paused(of_tenant, SkipReason::TenantPaused, true));
    only(&paused(of_tenant, SkipReason::SystemPaused, true), ViolationKind::OutcomeUnjustified);
    red(&paused(of_tenant, SkipReason::TenantPaused, false), ViolationKind::StartedWhilePaused);
    // The other jobs fire meanwhile, which a system that is paused does not.
    let verdict = paused(of_system, SkipReason::SystemPaused, true);
    red(&verdict, ViolationKind::StartedWhilePaused);
    assert!(verdict.found.iter().all(|f| f.example.job != Some(20)), "{verdict}");
}
