//! A history in which much goes wrong and every promise is kept.

use super::world::{T0, World, cron, rate};
use crate::run_dir::lines::{CallEvent, FaultEvent, Verb};
use campanile_schema::{
    event::{Outcome, SkipReason},
    job::{ConcurrencyPolicy, MisfirePolicy, Trigger},
    record::{AttemptState, RunState, Source},
    time::Timestamp,
};

/// What the red tests spoil. The node is down from 19.0 s to 24.0 s, executor-b dies at 40.0 s.
pub struct Story {
    pub world: World,
    /// Of job 1, at 30.5 s.
    pub plain: u64,
    /// Of job 4, acknowledged.
    pub triggered: u64,
    /// Of job 6, failed once.
    pub retried: u64,
    /// Of job 7, lost with executor-b.
    pub lost: u64,
    /// Of job 12, lost with executor-b, not idempotent, confirmed.
    pub confirmed: u64,
}

pub fn story() -> Story {
    let mut w = World::new();
    let idle = |_: &mut _| {};
    w.fault(FaultEvent::NodeStarted, -5000, None);
    w.fault(FaultEvent::NodeReady, -4000, None);
    w.fault(FaultEvent::NodeKilled, 19_000, None);
    w.fault(FaultEvent::NodeStarted, 19_100, None);
    w.fault(FaultEvent::NodeReady, 24_000, None);
    w.fault(FaultEvent::ExecutorKilled, 40_000, Some("executor-b"));

    w.job(1, rate(10, 500), ConcurrencyPolicy::Forbid, idle);
    let mut plain = 0;
    for n in 0..6 {
        let at = n * 10_000 + 500;
        // The outage makes 20.5 s late.
        let run = w.fire(1, at, if n == 2 { 3_600 } else { 3 });
        plain = if n == 3 { run } else { plain };
    }

    w.job(2, cron("*/5 * * * * *", "UTC", MisfirePolicy::FireAllMissed, 60), ConcurrencyPolicy::Allow, idle);
    for n in 0..=12 {
        w.fire(2, n * 5_000, if n == 4 { 4_050 } else { 2 });
    }

    let once = Trigger::Once {
        at: Some(Timestamp(T0 + 30_123).into()),
        delay_sec: None,
        delay_ms: None,
        timezone: None,
        misfire_policy: MisfirePolicy::Skip,
        misfire_threshold_sec: 5,
    };
    w.job(3, once, ConcurrencyPolicy::Forbid, idle);
    w.fire(3, 30_123, 1);

    w.job(4, Trigger::Manual {}, ConcurrencyPolicy::Allow, idle);
    let triggered = w.trigger(4, "k1", 5_000);
    w.trigger(4, "k2", 6_000);
    // No answer came for k3; it was done all the same.
    w.trigger(4, "k3", 18_990);
    let last = w.caller.last_mut().unwrap();
    (last.event, last.run, last.code) = (CallEvent::Unknown, None, Some("CONNECTION_LOST".into()));

    w.job(5, rate(10, 0), ConcurrencyPolicy::QueueOne, idle);
    w.fire(5, 0, 2);
    w.fire(5, 10_000, 2);
    w.ask(Verb::Pause, 5, 15_000);
    w.ask(Verb::Resume, 5, 45_000);
    w.stretch(5, (20_000, 40_000, 3), Outcome::Skipped, Some(SkipReason::Paused), None);
    w.fire(5, 50_000, 2);
    w.fire(5, 60_000, 2);

    w.job(6, rate(60, 7_000), ConcurrencyPolicy::Forbid, idle);
    let retried = w.run(6, Source::Schedule, Some(7_000), 7_001);
    w.entry(6, 7_000, Outcome::Fired, None, Some(retried));
    w.attempt(retried, 0, 1, 7_002, 10, AttemptState::Failed);
    w.attempt(retried, 1, 2, 8_100, 10, AttemptState::Success);

    w.job(7, rate(60, 39_000), ConcurrencyPolicy::Forbid, idle);
    let lost = w.run(7, Source::Schedule, Some(39_000), 39_001);
    w.entry(7, 39_000, Outcome::Fired, None, Some(lost));
    w.attempt(lost, 1, 1, 39_002, 10_500, AttemptState::Lost);
    w.attempt(lost, 0, 2, 49_900, 10, AttemptState::Success);

    w.job(8, rate(10, 1_000), ConcurrencyPolicy::Replace, idle);
    w.fire(8, 1_000, 2);
    w.fire(8, 11_000, 2);
    w.ask(Verb::Delete, 8, 15_000);

    w.job(9, cron("* * * * * *", "UTC", MisfirePolicy::FireOnceNow, 1), ConcurrencyPolicy::Allow, idle);
    for n in (0..19).chain(25..=60) {
        if n == 25 {
            // 19..24 were due while the node was down; the newest carries them.
            let run = w.run(9, Source::Schedule, Some(24_000), 24_030);
            w.stretch(9, (19_000, 23_000, 5), Outcome::Coalesced, None, Some(run));
            w.entry(9, 24_000, Outcome::Fired, None, Some(run));
            w.attempt(run, 0, 1, 24_040, 10, AttemptState::Success);
        }
        w.fire(9, n * 1_000, 2);
    }

    w.job(
        10,
        Trigger::FixedDelay {
            every_sec: 20,
            start_at: None,
            end_at: Some(Timestamp(T0 + 60_000)),
            misfire_policy: MisfirePolicy::FireOnceNow,
            misfire_threshold_sec: 60,
        },
        ConcurrencyPolicy::Forbid,
        idle,
    );
    // Creation 19.0 s before, then 20 s after each end (a body ends 24 ms after its instant).
    for at in [19_000, 43_024 + 1_000] {
        w.fire(10, at, if at == 19_000 { 5_002 } else { 2 });
    }

    w.job(11, cron("* * * * *", "Europe/Berlin", MisfirePolicy::FireOnceNow, 60), ConcurrencyPolicy::Forbid, idle);
    w.fire(11, 0, 2);
    w.fire(11, 60_000, 2);

    w.job(12, rate(60, 39_500), ConcurrencyPolicy::Forbid, |spec| spec.idempotent = false);
    let confirmed = w.run(12, Source::Schedule, Some(39_500), 39_501);
    w.entry(12, 39_500, Outcome::Fired, None, Some(confirmed));
    w.attempt(confirmed, 1, 1, 39_502, 10_000, AttemptState::Lost);
    w.confirm(12, confirmed, 55_000);
    w.attempt(confirmed, 0, 2, 55_010, 10, AttemptState::Success);

    w.job(13, rate(10, 3_000), ConcurrencyPolicy::Forbid, idle);
    let long = w.run(13, Source::Schedule, Some(3_000), 3_001);
    w.entry(13, 3_000, Outcome::Fired, None, Some(long));
    // Adopted again after the restart of the node: one body, one end.
    w.attempt(long, 0, 1, 3_002, 45_000, AttemptState::Success);
    w.stretch(13, (13_000, 43_000, 4), Outcome::Skipped, Some(SkipReason::RunActive), None);
    w.fire(13, 53_000, 2);

    w.job(14, rate(20, 2_000), ConcurrencyPolicy::Forbid, |spec| spec.retry_policy.max_attempts = 1);
    w.fire(14, 2_000, 2);
    let stuck = w.fire(14, 22_000, 2_020);
    (w.run_mut(stuck).state, w.run_mut(stuck).dead_letter) = (RunState::Failed, true);
    w.run_mut(stuck).attempts[0].state = AttemptState::Failed;
    w.lines_of(stuck).filter_map(|l| l.outcome.as_mut()).for_each(|o| *o = AttemptState::Failed);
    w.fire(14, 42_000, 2);

    Story { world: w, plain, triggered, retried, lost, confirmed }
}

#[test]
fn a_history_that_keeps_every_promise_is_green() {
    let verdict = story().world.verdict();
    assert!(verdict.green, "{verdict}");
    assert_eq!(verdict.counts.jobs, 14);
    assert_eq!(verdict.counts.jobs_deleted, 1);
    assert_eq!(verdict.counts.triggers_acknowledged, 2);
    assert_eq!(verdict.counts.calls_unknown, 1);
    assert_eq!(verdict.counts.restarts_explained, 3);
    assert_eq!(verdict.counts.longest_outage_ms, 5_000);
    assert_eq!(verdict.counts.outcomes.get("COALESCED"), Some(&5));
    assert_eq!(verdict.counts.outcomes.get("SKIPPED"), Some(&7));
}

#[test]
fn instants_inside_the_window_of_an_acknowledgement_may_go_either_way() {
    // The pause of job 5 takes until 20.001 s to be acknowledged, so 20.0 s may have fired before it.
    for fired in [true, false] {
        let mut w = story().world;
        let ack = w.caller.iter_mut().find(|l| l.verb == Verb::Pause && l.event == CallEvent::Ack).unwrap();
        ack.t_us = (T0 + 20_001) * 1000;
        if fired {
            let at = w.items(5).iter().position(|e| e.outcome == Outcome::Skipped).unwrap();
            let mut rest = w.items(5).split_off(at);
            rest[0].logical_time = Timestamp(T0 + 30_000);
            rest[0].count = 2;
            w.fire(5, 20_000, 1);
            w.items(5).extend(rest);
        }
        let verdict = w.verdict();
        assert!(verdict.green, "{verdict}");
    }
}
