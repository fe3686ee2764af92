//! Seeded defects in what was limited, stopped or superseded, and in a ledger that does not say what ran.

use super::{
    green::story,
    only, red,
    world::{T0, World, rate},
};
use crate::{
    checker::{Verdict, ViolationKind},
    run_dir::lines::FaultEvent,
};
use campanile_schema::{
    event::{Outcome, SkipReason},
    job::ConcurrencyPolicy,
    record::{AttemptState, Source},
    time::Timestamp,
};

fn green(verdict: &Verdict) {
    assert!(verdict.green, "{verdict}");
}

/// Jobs of the tenant that may have two bodies at once, each with one body from `at` for `took`, on executor-a.
fn tight(bodies: &[(i64, i64)]) -> World {
    let mut w = story().world;
    for (n, (at, took)) in bodies.iter().copied().enumerate() {
        let job = 30 + n as u64;
        w.job(job, rate(60, at), ConcurrencyPolicy::Allow, |spec| spec.tenant_id = "tight".to_owned());
        let run = w.run(job, Source::Schedule, Some(at), at + 1);
        w.entry(job, at, Outcome::Fired, None, Some(run));
        w.attempt(run, 0, 1, at + 2, took, AttemptState::Success);
    }
    w
}

#[test]
fn a_quota_that_is_exceeded_by_one_is_found() {
    green(&tight(&[(1_000, 2_000), (2_000, 3_000), (3_100, 500), (3_700, 2_000)]).verdict());
    let over = tight(&[(1_000, 2_000), (2_000, 3_000), (2_900, 500)]);
    only(&over.verdict(), ViolationKind::QuotaExceeded);
    // Nobody was told of a limit: nothing is judged.
    let mut w = tight(&[(1_000, 2_000), (2_000, 3_000), (2_900, 500)]);
    w.meta.as_mut().unwrap().quotas.clear();
    green(&w.verdict());
}

#[test]
fn a_rate_that_every_node_has_alone_is_found() {
    // Bodies of one tenant, each so long after the one before, milliseconds.
    let every = |ms: i64| {
        let mut w = tight(&(0..70).map(|n| (25_000 + n * ms, 1)).collect::<Vec<_>>());
        let meta = w.meta.as_mut().unwrap();
        (meta.quotas, meta.rates) = (Default::default(), [("tight".to_owned(), 2.0)].into());
        w.verdict()
    };
    green(&every(480));
    // Sixty within twenty seconds are forgiven, not sixty-one.
    green(&every(335));
    only(&every(330), ViolationKind::RateExceeded);
}

#[test]
fn bodies_that_a_restart_took_back_do_not_count_and_new_ones_do() {
    // The node is down from 19 s to 24 s.
    green(&tight(&[(17_000, 12_000), (18_000, 12_000), (25_000, 2_000), (26_000, 2_000)]).verdict());
    let over = tight(&[(17_000, 12_000), (25_000, 4_000), (26_000, 4_000), (27_000, 500)]);
    only(&over.verdict(), ViolationKind::QuotaExceeded);
}

/// Executor-a stands still and its lease ends; its body goes on afterwards, beside two others.
#[test]
fn a_body_whose_lease_was_lost_has_no_permit_any_more() {
    let stood_still = |frozen: bool, state: AttemptState| {
        let mut w = tight(&[(43_000, 4_000), (44_000, 4_000)]);
        w.job(40, rate(60, 30_000), ConcurrencyPolicy::Allow, |spec| spec.tenant_id = "tight".to_owned());
        let run = w.run(40, Source::Schedule, Some(30_000), 30_001);
        w.entry(40, 30_000, Outcome::Fired, None, Some(run));
        w.attempt(run, 0, 1, 30_002, 15_000, AttemptState::Success);
        if state == AttemptState::Lost {
            let attempt = &mut w.run_mut(run).attempts[0];
            (attempt.state, attempt.ended_at) = (state, Some(Timestamp(T0 + 41_000)));
            w.attempt(run, 0, 2, 48_900, 100, AttemptState::Success);
        }
        if frozen {
            w.fault(FaultEvent::ExecutorFrozen, 30_500, Some("executor-a"));
            w.fault(FaultEvent::ExecutorThawed, 42_500, Some("executor-a"));
        }
        w.verdict()
    };
    green(&stood_still(true, AttemptState::Lost));
    only(&stood_still(true, AttemptState::Success), ViolationKind::QuotaExceeded);
    only(&stood_still(false, AttemptState::Lost), ViolationKind::LostWithoutCause);
}

#[test]
fn a_result_under_a_superseded_token_is_found() {
    let taken_at = |at: i64| {
        let mut s = story();
        let first = &mut s.world.run_mut(s.lost).attempts[0];
        (first.state, first.ended_at) = (AttemptState::Success, Some(Timestamp(T0 + at)));
        s.world.run_mut(s.lost).attempts[1].state = AttemptState::Lost;
        s.world.verdict()
    };
    // The second attempt began at 49.9 s.
    red(&taken_at(49_905), ViolationKind::StaleAccepted);
    assert!(!taken_at(49_900).has(ViolationKind::StaleAccepted));
}

#[test]
fn a_run_made_after_an_acknowledgement_is_found_whatever_its_instant() {
    // Job 5 was paused at 15.002 s, job 8 deleted: the instants are older, the runs are not.
    for (job, instant, kind) in
        [(5, 10_000, ViolationKind::StartedWhilePaused), (8, 11_000, ViolationKind::StartedAfterDelete)]
    {
        let made_at = |at: i64| {
            let mut w = story().world;
            let of_instant =
                |job_id: u64, logical: Option<Timestamp>| job_id == job && logical == Some(Timestamp(T0 + instant));
            w.runs
                .iter_mut()
                .filter(|r| of_instant(r.job_id.0, r.logical_time))
                .for_each(|r| r.created_at = Timestamp(T0 + at));
            // Its body began after that, by the executor's word; how late it may begin is not the question here.
            let run = w.runs.iter().find(|r| of_instant(r.job_id.0, r.logical_time)).unwrap().run_id.0;
            w.lines_of(run).for_each(|line| line.t_us += (at - instant) * 1000);
            let view = w.run_mut(run);
            let later = |t: Timestamp| Timestamp(t.0 + at - instant);
            view.ended_at = view.ended_at.map(later);
            let attempt = &mut view.attempts[0];
            (attempt.started_at, attempt.ended_at) = (later(attempt.started_at), attempt.ended_at.map(later));
            w.meta.as_mut().unwrap().latest_ms = None;
            w.items(job)
                .iter_mut()
                .filter(|e| e.logical_time.0 == T0 + instant)
                .for_each(|e| e.outcome = Outcome::FiredLate);
            w.verdict()
        };
        green(&made_at(15_001));
        only(&made_at(15_003), kind);
    }
}

#[test]
fn an_instant_that_was_skipped_and_ran_is_found() {
    for (outcome, reason) in [
        (Outcome::Skipped, Some(SkipReason::RunActive)),
        (Outcome::Missed, Some(SkipReason::CatchUpCap)),
        (Outcome::DstSkipped, None),
    ] {
        let mut s = story();
        let entry = s.world.items(1).iter_mut().find(|e| e.logical_time.0 == T0 + 30_500).unwrap();
        (entry.outcome, entry.reason, entry.run_id) = (outcome, reason, None);
        red(&s.world.verdict(), ViolationKind::SkippedYetRan);
    }
    // A run by hand at that moment is none of the ledger's.
    let mut s = story();
    let entry = s.world.items(5).iter_mut().find(|e| e.outcome == Outcome::Skipped).unwrap().clone();
    let by_hand = s.world.trigger(4, "k9", 30_000);
    s.world.run_mut(by_hand).logical_time = Some(entry.logical_time);
    s.world.lines_of(by_hand).for_each(|l| l.logical = Some(entry.logical_time.0));
    green(&s.world.verdict());
}

#[test]
fn what_callers_of_a_whole_run_never_did_is_named() {
    let mut w = story().world;
    green(&w.verdict());
    w.meta.as_mut().unwrap().uses_all = true;
    let verdict = w.verdict();
    only(&verdict, ViolationKind::NeverUsed);
    let named: Vec<&str> = verdict.found[0].kept.iter().map(|v| v.text.as_str()).collect();
    let is_named = |text: &str| named.contains(&text);
    assert!(is_named("no call ResumeSystem was accepted"), "{named:?}");
    assert!(is_named("Secret was never met"), "{named:?}");
    assert!(!is_named("no call Create was accepted"), "{named:?}");
    assert!(!is_named("no call Trigger was accepted"), "{named:?}");
}
