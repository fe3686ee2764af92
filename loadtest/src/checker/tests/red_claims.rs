//! Seeded defects in what a node claims: when a run was made and began, what its body got and handed in, that a queue was full.

use super::{
    green::{Story, story},
    only, red,
    world::{T0, World, rate},
};
use crate::{
    checker::{Verdict, ViolationKind},
    run_dir::lines::{CallEvent, CallerLine, ExecutorEvent, FaultEvent, Verb},
};
use campanile_schema::{
    event::{Outcome, SkipReason},
    ids::JobId,
    job::{ConcurrencyPolicy, Trigger},
    payload::Payload,
    record::{AttemptState, RunState, Source},
    time::Timestamp,
};

fn green(verdict: &Verdict) {
    assert!(verdict.green, "{verdict}");
}

/// Moves the body of a run, by its executor's word.
fn shift(world: &mut World, run: u64, by_ms: i64) {
    world.lines_of(run).for_each(|line| line.t_us += by_ms * 1000);
}

#[test]
fn a_late_start_that_the_node_calls_punctual_is_found() {
    let late = |by_ms: i64| {
        let Story { mut world, plain, .. } = story();
        shift(&mut world, plain, by_ms);
        world.run_mut(plain).ended_at = Some(Timestamp(T0 + 30_530 + by_ms));
        world.run_mut(plain).attempts[0].ended_at = Some(Timestamp(T0 + 30_530 + by_ms));
        world
    };
    // The run's description allows a second.
    green(&late(900).verdict());
    only(&late(1_100).verdict(), ViolationKind::StartedLate);
    // Nobody promised anything.
    let mut world = late(1_100);
    world.meta.as_mut().unwrap().latest_ms = None;
    green(&world.verdict());
    // What was done to its shard then explains it; what was done to another, or was over long before, does not.
    for (shards, until, explained) in [(vec![1], 31_000, true), (vec![2], 31_000, false), (vec![1], 30_001, false)] {
        let mut world = late(1_100);
        world.meta.as_mut().unwrap().shards = Some(4);
        world.fault(FaultEvent::Disturbed, 30_000, None);
        let act = world.faults.last_mut().unwrap();
        (act.until_us, act.shards) = (Some((T0 + until) * 1000), Some(shards));
        let verdict = world.verdict();
        assert_eq!(verdict.green, explained, "{verdict}");
    }
}

/// Its first attempt went to executor-a and did not begin; the second began four seconds late.
#[test]
fn a_late_start_is_explained_only_by_the_executor_that_the_attempt_before_went_to() {
    let with = |stands_still: &str| {
        let mut world = story().world;
        world.job(20, rate(60, 30_000), ConcurrencyPolicy::Allow, |_| {});
        let run = world.run(20, Source::Schedule, Some(30_000), 30_001);
        world.entry(20, 30_000, Outcome::Fired, None, Some(run));
        world.attempt(run, 0, 1, 30_002, 10, AttemptState::NotStarted);
        world.attempt(run, 1, 2, 34_000, 10, AttemptState::Success);
        world.executors.iter_mut().for_each(|(_, lines)| lines.retain(|l| l.run != run || l.token != 1));
        world.fault(FaultEvent::ExecutorFrozen, 29_500, Some(stands_still));
        world.fault(FaultEvent::ExecutorThawed, 33_500, Some(stands_still));
        world.verdict()
    };
    assert!(!with("executor-a").has(ViolationKind::StartedLate), "{}", with("executor-a"));
    assert!(with("executor-b").has(ViolationKind::StartedLate), "{}", with("executor-b"));
}

/// executor-a is killed 100 ms after its attempt began, and the node twice while it waits for the executor's lease of ten seconds, which
/// begins anew each time.
#[test]
fn a_late_start_is_explained_by_a_lease_that_each_start_of_the_node_begins_anew() {
    let with = |first_kill: i64, started: i64| {
        let mut world = story().world;
        world.job(20, rate(60, 30_000), ConcurrencyPolicy::Allow, |_| {});
        let run = world.run(20, Source::Schedule, Some(30_000), 30_001);
        world.entry(20, 30_000, Outcome::Fired, None, Some(run));
        world.attempt(run, 0, 1, 30_002, started - 30_012, AttemptState::Lost);
        world.attempt(run, 1, 2, started, 10, AttemptState::Success);
        world.executors.iter_mut().for_each(|(_, lines)| lines.retain(|l| l.run != run || l.token != 1));
        world.fault(FaultEvent::ExecutorKilled, 30_100, Some("executor-a"));
        for killed in [first_kill, 47_000] {
            world.fault(FaultEvent::NodeKilled, killed, None);
            world.fault(FaultEvent::NodeReady, killed + 500, None);
        }
        world.verdict()
    };
    assert!(!with(38_000, 57_600).has(ViolationKind::StartedLate), "{}", with(38_000, 57_600));
    // The lease was over before the node was killed; or more than a second after the last one.
    assert!(with(40_200, 57_600).has(ViolationKind::StartedLate), "{}", with(40_200, 57_600));
    assert!(with(38_000, 58_600).has(ViolationKind::StartedLate), "{}", with(38_000, 58_600));
}

#[test]
fn a_run_that_was_not_made_when_the_node_says_is_found() {
    let made = |at: i64| {
        let Story { mut world, plain, .. } = story();
        world.run_mut(plain).created_at = Timestamp(T0 + at);
        world.verdict()
    };
    green(&made(30_504));
    // After its body began, and before its instant.
    only(&made(30_600), ViolationKind::CreatedAtUntrue);
    only(&made(30_499), ViolationKind::CreatedAtUntrue);
    // By hand: between the request and its answer.
    for at in [4_990, 5_003] {
        let Story { mut world, triggered, .. } = story();
        world.run_mut(triggered).created_at = Timestamp(T0 + at);
        red(&world.verdict(), ViolationKind::CreatedAtUntrue);
    }
}

#[test]
fn a_body_that_got_other_params_or_secrets_is_found() {
    let with = |got: Option<&str>, over: Option<&str>, secret: Option<&str>| {
        let mut world = story().world;
        world.job(20, Trigger::Manual {}, ConcurrencyPolicy::Allow, |spec| {
            spec.params = Payload("{\"a\":1,\"b\":2}".into());
            spec.secret_params = [("key".to_owned(), "v".to_owned())].into();
        });
        let run = world.trigger(20, "p1", 30_000);
        let (sent, got) = (over.map(|p| Payload(p.into())), got.map(|p| Payload(p.into())));
        world.caller.iter_mut().filter(|l| l.key.as_deref() == Some("p1")).for_each(|l| l.params.clone_from(&sent));
        world.lines_of(run).filter(|l| l.event == ExecutorEvent::Start).for_each(|line| {
            line.params.clone_from(&got);
            line.secrets = secret.map(|v| ("key".to_owned(), v.to_owned())).into_iter().collect();
        });
        world.verdict()
    };
    green(&with(Some("{\"b\":2,\"a\":1}"), None, Some("v")));
    green(&with(Some("{\"a\":1,\"b\":3,\"c\":4}"), Some("{\"b\":3,\"c\":4}"), Some("v")));
    only(&with(None, None, Some("v")), ViolationKind::ParamsWrong);
    only(&with(Some("{\"a\":1,\"b\":2}"), Some("{\"b\":3}"), Some("v")), ViolationKind::ParamsWrong);
    only(&with(Some("{\"b\":3}"), Some("{\"b\":3}"), Some("v")), ViolationKind::ParamsWrong);
    only(&with(Some("{\"a\":1,\"b\":2}"), None, Some("w")), ViolationKind::ParamsWrong);
    only(&with(Some("{\"a\":1,\"b\":2}"), None, None), ViolationKind::ParamsWrong);
}

#[test]
fn a_body_goes_by_the_definition_that_an_edit_put_in_force() {
    let with = |got: &str, edited_at: i64| {
        let mut world = story().world;
        world.job(20, rate(20, 5_000), ConcurrencyPolicy::Allow, |spec| spec.params = Payload("{\"v\":1}".into()));
        let mut spec = world.caller.iter().rev().find_map(|l| l.spec.clone()).unwrap();
        spec.params = Payload("{\"v\":2}".into());
        for at in [5_000, 25_000, 45_000] {
            let run = world.fire(20, at, 2);
            let got = if at == 45_000 { got } else { "{\"v\":1}" };
            let starts = world.lines_of(run).filter(|l| l.event == ExecutorEvent::Start);
            starts.for_each(|l| l.params = Some(Payload(got.into())));
        }
        let sent = CallerLine { spec: Some(spec), ..CallerLine::new(CallEvent::Sent, 900, Verb::Edit) };
        let sent = CallerLine { job: Some(JobId(20)), t_us: (T0 + edited_at) * 1000, ..sent };
        let ack = CallerLine { event: CallEvent::Ack, spec: None, t_us: sent.t_us + 2_000, ..sent.clone() };
        world.caller.extend([sent, ack]);
        world.verdict()
    };
    green(&with("{\"v\":2}", 30_000));
    only(&with("{\"v\":1}", 30_000), ViolationKind::ParamsWrong);
    // Edited while it began: either is right.
    green(&with("{\"v\":1}", 45_001));
    green(&with("{\"v\":2}", 45_001));
}

#[test]
fn a_result_or_an_error_that_no_body_handed_in_is_found() {
    let with = |said: Option<&str>, shown: Option<&str>| {
        let Story { mut world, plain, .. } = story();
        let said = said.map(|p| Payload(p.into()));
        world.lines_of(plain).filter(|l| l.event == ExecutorEvent::End).for_each(|l| l.result.clone_from(&said));
        world.run_mut(plain).result = shown.map(|p| Payload(p.into()));
        world.verdict()
    };
    green(&with(Some("{\"n\": 1}"), Some("{\"n\":1}")));
    only(&with(Some("{\"n\":1}"), Some("{\"n\":2}")), ViolationKind::PayloadChanged);
    only(&with(Some("{\"n\":1}"), None), ViolationKind::PayloadChanged);
    only(&with(None, Some("{}")), ViolationKind::PayloadChanged);
    let Story { mut world, retried, .. } = story();
    world.lines_of(retried).filter(|l| l.token == 1).for_each(|l| l.error = Some("HANDLER_ERROR".into()));
    only(&world.verdict(), ViolationKind::PayloadChanged);
    world.run_mut(retried).attempts[0].error_code = Some("HANDLER_ERROR".into());
    green(&world.verdict());
}

#[test]
fn a_full_queue_that_was_not_full_is_found() {
    let with = |waiting: u64, limit: Option<u32>| {
        let mut world = story().world;
        world.meta.as_mut().unwrap().queued = limit.map(|n| ("crowded".to_owned(), n)).into_iter().collect();
        world.meta.as_mut().unwrap().latest_ms = None;
        let crowded = |spec: &mut campanile_schema::job::JobSpec| spec.tenant_id = "crowded".to_owned();
        world.job(20, rate(60, 30_000), ConcurrencyPolicy::Allow, crowded);
        world.entry(20, 30_000, Outcome::Skipped, Some(SkipReason::QueueFull), None);
        for n in 0..waiting {
            let at = 29_000 + n as i64;
            world.job(21 + n, rate(60, at), ConcurrencyPolicy::Allow, crowded);
            world.fire(21 + n, at, 1);
            let run = world.runs.last().unwrap().run_id.0;
            shift(&mut world, run, 5_000);
            let ended = Some(Timestamp(T0 + at + 5_030));
            (world.run_mut(run).ended_at, world.run_mut(run).attempts[0].ended_at) = (ended, ended);
        }
        world.verdict()
    };
    green(&with(3, Some(3)));
    only(&with(2, Some(3)), ViolationKind::QueueNotFull);
    only(&with(3, None), ViolationKind::QueueNotFull);
}

#[test]
fn a_person_who_is_asked_about_an_idempotent_job_is_found() {
    let Story { mut world, plain, .. } = story();
    let run = world.run_mut(plain);
    (run.state, run.ended_at) = (RunState::NeedsConfirmation, None);
    red(&world.verdict(), ViolationKind::ConfirmationUndue);
}

#[test]
fn a_body_of_a_job_that_nobody_created_is_found() {
    let with = |open: bool| {
        let Story { mut world, plain, .. } = story();
        let mut stray = world.lines_of(plain).find(|l| l.event == ExecutorEvent::Start).unwrap().clone();
        (stray.job, stray.run) = (4711, 4712);
        world.executors[0].1.push(stray);
        if open {
            let sent = CallerLine::new(CallEvent::Sent, 901, Verb::Create);
            let unknown = CallerLine { event: CallEvent::Unknown, ..sent.clone() };
            world.caller.extend([CallerLine { t_us: T0 * 1000, ..sent }, unknown]);
        }
        world.verdict()
    };
    only(&with(false), ViolationKind::BodyOfNobody);
    // A create without an answer may have made it.
    green(&with(true));
}

#[test]
fn a_success_without_a_start_is_excused_by_its_own_executors_death_only() {
    // Executor-b dies at 40.0 s.
    let with = |executor: usize, at: i64| {
        let mut world = story().world;
        world.job(20, rate(60, at), ConcurrencyPolicy::Allow, |_| {});
        let run = world.run(20, campanile_schema::record::Source::Schedule, Some(at), at + 1);
        world.entry(20, at, Outcome::Fired, None, Some(run));
        world.attempt(run, executor, 1, at + 2, 10, AttemptState::Success);
        world.executors.iter_mut().for_each(|(_, lines)| lines.retain(|l| l.run != run));
        world.verdict()
    };
    green(&with(1, 39_900));
    only(&with(0, 39_900), ViolationKind::SuccessWithoutStart);
    only(&with(1, 38_500), ViolationKind::SuccessWithoutStart);
    only(&with(1, 40_100), ViolationKind::SuccessWithoutStart);
}

#[test]
fn a_job_with_a_fixed_delay_that_is_silent_at_first_or_after_a_pause_is_found() {
    let with = |first: i64, pause: Option<(i64, i64)>, second: i64| {
        let mut world = story().world;
        let trigger = Trigger::FixedDelay {
            every_sec: 10,
            start_at: None,
            end_at: Some(Timestamp(T0 + 59_000)),
            misfire_policy: campanile_schema::job::MisfirePolicy::FireOnceNow,
            misfire_threshold_sec: 60,
        };
        world.job(20, trigger, ConcurrencyPolicy::Forbid, |_| {});
        world.fire(20, first, 2);
        if let Some((from, to)) = pause {
            world.ask(Verb::Pause, 20, from);
            world.ask(Verb::Resume, 20, to);
        }
        let mut at = second;
        while at <= 59_000 {
            world.fire(20, at, 2);
            at += 10_030;
        }
        world.verdict()
    };
    // The outage from 19 s to 24 s covers the second.
    green(&with(9_002, None, 24_500));
    only(&with(12_000, None, 24_500), ViolationKind::DelaySilent);
    green(&with(9_002, Some((15_000, 28_000)), 38_010));
    only(&with(9_002, Some((15_000, 28_000)), 42_000), ViolationKind::DelaySilent);
}

#[test]
fn runs_out_of_their_order_are_found() {
    // QUEUE_ONE: the run of the second instant begins before that of the first.
    let with = |swapped: bool| {
        let mut world = story().world;
        world.job(20, rate(10, 26_000), ConcurrencyPolicy::QueueOne, |_| {});
        let runs = [26_000, 36_000, 46_000, 56_000].map(|at| world.fire(20, at, 2));
        if swapped {
            // It waits behind the one that came after it.
            shift(&mut world, runs[0], 10_100);
            let ended = Some(Timestamp(T0 + 36_200));
            (world.run_mut(runs[0]).ended_at, world.run_mut(runs[0]).attempts[0].ended_at) = (ended, ended);
            world.meta.as_mut().unwrap().latest_ms = None;
        }
        world.verdict()
    };
    green(&with(false));
    only(&with(true), ViolationKind::OrderBroken);
    // Made in another order than due.
    let mut world = story().world;
    world.job(20, rate(10, 26_000), ConcurrencyPolicy::Allow, |_| {});
    let runs = [26_000, 36_000, 46_000, 56_000].map(|at| world.fire(20, at, 2));
    world.run_mut(runs[0]).created_at = Timestamp(T0 + 36_500);
    red(&world.verdict(), ViolationKind::OrderBroken);
    // Clocks may differ while its shard moves: not while another one does, and not before or after.
    world.meta.as_mut().unwrap().shards = Some(4);
    for (shard, from, until, excused) in
        [(0, 36_100, 37_000, true), (1, 36_100, 37_000, false), (0, 36_501, 37_000, false), (0, 30_000, 36_001, false)]
    {
        world.faults.retain(|fault| fault.event != FaultEvent::Disturbed);
        world.fault(FaultEvent::Disturbed, from, None);
        let act = world.faults.last_mut().unwrap();
        (act.until_us, act.shards) = (Some((T0 + until) * 1000), Some(vec![shard]));
        let verdict = world.verdict();
        assert_eq!(verdict.has(ViolationKind::OrderBroken), !excused, "{verdict}");
    }
}
