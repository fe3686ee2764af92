//! Windows and blackouts: what they take away is told with the next run, and nothing else is.

use super::{
    only, red,
    world::{T0, World, rate},
};
use crate::checker::ViolationKind;
use campanile_schema::{
    event::{Outcome, SkipReason},
    job::{Blackout, ConcurrencyPolicy, JobSpec, MisfirePolicy, Trigger, Window},
    time::Timestamp,
};

const BLACKOUT: Option<SkipReason> = Some(SkipReason::Blackout);

/// Closed from 15 s to 35 s, and again from 02:41:00, which is 60 s.
fn close(spec: &mut JobSpec) {
    let (from, to) = (Timestamp(T0 + 15_000), Timestamp(T0 + 35_000));
    spec.blackouts = vec![Blackout { from, to, reason: None }];
    let window = serde_json::json!({"effect": "DENY", "from": "03:41", "to": "03:45", "timezone": "Europe/Berlin"});
    spec.windows = vec![serde_json::from_value::<Window>(window).unwrap()];
}

/// Job 1, due each ten seconds; what is to be told of 20 s and 30 s is left to the caller.
fn world(tell: impl FnOnce(&mut World)) -> World {
    let mut w = World::new();
    w.job(1, rate(10, 0), ConcurrencyPolicy::Allow, close);
    w.fire(1, 0, 2);
    w.fire(1, 10_000, 2);
    tell(&mut w);
    w.fire(1, 40_000, 2);
    w.fire(1, 50_000, 2);
    w
}

fn blackout(w: &mut World) {
    w.stretch(1, (20_000, 30_000, 2), Outcome::Skipped, BLACKOUT, None);
}

#[test]
fn what_is_closed_is_told_with_the_next_run_or_not_yet() {
    // 60 s is closed too, and no run comes after it.
    let verdict = world(blackout).verdict();
    assert!(verdict.green, "{verdict}");
    assert_eq!(verdict.counts.due_instants, 7);
}

#[test]
fn a_closed_instant_without_an_outcome_before_a_run_is_found() {
    let verdict = world(|_| {}).verdict();
    red(&verdict, ViolationKind::OutcomeMissing);
    assert_eq!(verdict.found.len(), 2, "{verdict}");
}

#[test]
fn a_run_in_a_blackout_is_found() {
    let fired = world(|w| {
        w.fire(1, 20_000, 2);
        w.entry(1, 30_000, Outcome::Skipped, BLACKOUT, None);
    });
    only(&fired.verdict(), ViolationKind::OutcomeUnjustified);
}

#[test]
fn the_wrong_reason_and_an_open_instant_that_is_said_to_be_closed_are_found() {
    let wrong = world(|w| w.stretch(1, (20_000, 30_000, 2), Outcome::Skipped, Some(SkipReason::Window), None));
    only(&wrong.verdict(), ViolationKind::OutcomeUnjustified);
    let mut open = world(blackout);
    let entry = open.items(1).iter_mut().find(|entry| entry.logical_time.0 == T0 + 40_000).unwrap();
    (entry.outcome, entry.reason, entry.run_id) = (Outcome::Skipped, BLACKOUT, None);
    red(&open.verdict(), ViolationKind::OutcomeUnjustified);
}

/// Due 20 s after each end, and closed when it first is.
fn delayed(second_ms: i64) -> World {
    let mut w = World::new();
    let trigger = Trigger::FixedDelay {
        every_sec: 20,
        start_at: None,
        end_at: Some(Timestamp(T0 + 60_000)),
        misfire_policy: MisfirePolicy::FireOnceNow,
        misfire_threshold_sec: 60,
    };
    w.job(1, trigger, ConcurrencyPolicy::Allow, close);
    // A body ends 24 ms after its instant.
    for at in (second_ms..60_000).step_by(20_024) {
        w.fire(1, at, 2);
    }
    w
}

#[test]
fn a_fixed_delay_waits_for_the_opening_and_no_longer() {
    // Closed at 19 s, 20 s after it was created.
    let verdict = delayed(35_000).verdict();
    assert!(verdict.green, "{verdict}");
    red(&delayed(19_000).verdict(), ViolationKind::OutcomeUndue);
    red(&delayed(41_000).verdict(), ViolationKind::DelaySilent);
}
