//! Seeded defects in what was acknowledged and in the ledger.

use super::{
    green::story,
    only, red,
    world::{T0, World, cron},
};
use crate::{
    checker::ViolationKind,
    run_dir::lines::{CallEvent, CallerLine, FaultEvent, Verb},
};
use campanile_schema::{
    event::{Outcome, SkipReason},
    ids::RunId,
    job::{ConcurrencyPolicy, MisfirePolicy},
    record::{AttemptState, RunState},
    time::Timestamp,
};

fn remove_entry(w: &mut World, job: u64, at: i64) {
    w.items(job).retain(|e| e.logical_time.0 != T0 + at);
}

fn remove_run(w: &mut World, run: u64) {
    w.runs.retain(|r| r.run_id.0 != run);
    w.executors.iter_mut().for_each(|(_, lines)| lines.retain(|l| l.run != run));
}

#[test]
fn an_incomplete_export_proves_nothing() {
    let mut w = story().world;
    w.meta = None;
    red(&w.verdict(), ViolationKind::ExportIncomplete);
    let mut w = story().world;
    w.ledger.retain(|l| l.job.0 != 3);
    red(&w.verdict(), ViolationKind::ExportIncomplete);
    red(&World::new().verdict(), ViolationKind::ExportIncomplete);
}

#[test]
fn a_schedule_that_the_oracle_cannot_follow_is_not_green() {
    let mut w = story().world;
    // Nobody but the node knows its anchor.
    let trigger = campanile_schema::job::Trigger::fixed_rate(5);
    w.job(99, trigger, ConcurrencyPolicy::Forbid, |_| {});
    red(&w.verdict(), ViolationKind::NotCheckable);
}

#[test]
fn a_lost_create_is_found() {
    let mut w = story().world;
    let line = w.ledger.iter_mut().find(|l| l.job.0 == 3).unwrap();
    (line.page, line.error) = (None, Some("404_NOT_FOUND".into()));
    red(&w.verdict(), ViolationKind::CreateLost);
}

#[test]
fn a_lost_trigger_is_found() {
    let mut s = story();
    remove_run(&mut s.world, s.triggered);
    red(&s.world.verdict(), ViolationKind::TriggerLost);
}

#[test]
fn a_doubled_trigger_is_found() {
    let mut s = story();
    let second = s.world.trigger(4, "again", 7_000);
    s.world.run_mut(second).key = Some("k1".into());
    red(&s.world.verdict(), ViolationKind::TriggerDoubled);
    // One run, but not the one that the caller was told.
    let mut s = story();
    let ack = s.world.caller.iter_mut().find(|l| l.run == Some(RunId(s.triggered))).unwrap();
    ack.run = Some(RunId(4711));
    red(&s.world.verdict(), ViolationKind::TriggerDoubled);
}

#[test]
fn a_refused_trigger_that_ran_is_found() {
    let mut s = story();
    let ack = s.world.caller.iter_mut().find(|l| l.run == Some(RunId(s.triggered))).unwrap();
    (ack.event, ack.run, ack.code) = (CallEvent::Refused, None, Some("409_RUN_ACTIVE".into()));
    red(&s.world.verdict(), ViolationKind::TriggerRefusedYetRun);
}

#[test]
fn a_manual_run_that_nobody_asked_for_is_found() {
    let mut s = story();
    s.world.caller.retain(|l: &CallerLine| l.key.as_deref() != Some("k2"));
    red(&s.world.verdict(), ViolationKind::TriggerUnasked);
}

/// Missed instants that fire in turn stay due behind a run that waits for a person; behind nothing, or where they need no
/// turn, they are forgotten.
#[test]
fn a_backlog_waits_for_a_person_and_for_nothing_else() {
    let with = |misfires, policy, state, told: bool| {
        let mut w = story().world;
        w.job(20, cron("*/20 * * * * *", "UTC", misfires, 1), policy, |spec| spec.idempotent = false);
        let run = w.fire(20, 0, 2);
        let waiting = w.run_mut(run);
        (waiting.state, waiting.ended_at) = (state, (state == RunState::Success).then_some(waiting.created_at));
        if state != RunState::Success {
            waiting.attempts.iter_mut().for_each(|a| a.state = AttemptState::Failed);
            w.lines_of(run).filter_map(|l| l.outcome.as_mut()).for_each(|o| *o = AttemptState::Failed);
        }
        let page = w.ledger.iter_mut().find(|l| l.job.0 == 20).and_then(|l| l.page.as_mut()).unwrap();
        page.to = Timestamp(T0 + if told { 60_000 } else { 0 });
        w.verdict()
    };
    let verdict = |policy, state, told| with(MisfirePolicy::FireAllMissed, policy, state, told);
    let (held, forbid, allow) = (RunState::NeedsConfirmation, ConcurrencyPolicy::Forbid, ConcurrencyPolicy::Allow);
    let green = verdict(forbid, held, false);
    assert!(green.green, "{green}");
    red(&verdict(forbid, RunState::Success, false), ViolationKind::OutcomeMissing);
    red(&verdict(allow, held, false), ViolationKind::OutcomeMissing);
    red(&verdict(forbid, held, true), ViolationKind::OutcomeMissing);
    // Nothing is fired in order under the other misfire policies, so nothing is held back.
    for misfires in [MisfirePolicy::FireOnceNow, MisfirePolicy::Skip] {
        red(&with(misfires, forbid, held, false), ViolationKind::OutcomeMissing);
    }
}

#[test]
fn a_forgotten_instant_is_found() {
    let mut s = story();
    remove_entry(&mut s.world, 1, 30_500);
    remove_run(&mut s.world, s.plain);
    let verdict = s.world.verdict();
    red(&verdict, ViolationKind::OutcomeMissing);
    assert_eq!(verdict.found.len(), 1, "{verdict}");
    // In a stretch that counts one too few.
    let mut w = story().world;
    let entry = w.items(9).iter_mut().find(|e| e.outcome == Outcome::Coalesced).unwrap();
    entry.count = 4;
    red(&w.verdict(), ViolationKind::OutcomeMissing);
    // A FIXED_DELAY job that falls silent.
    let mut w = story().world;
    let run = w.runs.iter().rfind(|r| r.job_id.0 == 10).unwrap().run_id.0;
    remove_entry(&mut w, 10, 44_024);
    remove_run(&mut w, run);
    only(&w.verdict(), ViolationKind::DelaySilent);
}

#[test]
fn two_outcomes_of_one_instant_are_found() {
    let mut w = story().world;
    w.entry(1, 50_500, Outcome::Skipped, Some(SkipReason::RunActive), None);
    red(&w.verdict(), ViolationKind::OutcomeDoubled);
}

#[test]
fn an_outcome_that_was_not_due_is_found() {
    let mut s = story();
    s.world.fire(3, 31_000, 2);
    red(&s.world.verdict(), ViolationKind::OutcomeUndue);
    // Before the job existed.
    let mut s = story();
    s.world.items(1).insert(
        0,
        campanile_schema::view::LedgerEntryView {
            logical_time: Timestamp(T0 - 9_500),
            until: None,
            count: 1,
            outcome: Outcome::Skipped,
            reason: Some(SkipReason::Misfire),
            run_id: None,
        },
    );
    red(&s.world.verdict(), ViolationKind::OutcomeUndue);
    // FIXED_DELAY sooner than its delay.
    let mut s = story();
    let last = s.world.runs.iter_mut().rfind(|r| r.job_id.0 == 10).unwrap();
    last.logical_time = Some(Timestamp(T0 + 44_000));
    red(&s.world.verdict(), ViolationKind::OutcomeUndue);
}

#[test]
fn pages_that_do_not_join_are_found() {
    let mut w = story().world;
    let at = w.ledger.iter().position(|l| l.job.0 == 1).unwrap();
    let mut second = w.ledger[at].clone();
    let first = w.ledger[at].page.as_mut().unwrap();
    first.to = Timestamp(T0 + 35_000);
    let rest = first.items.split_off(4);
    let page = second.page.as_mut().unwrap();
    page.from = Timestamp(T0 + 35_000);
    page.items = rest;
    w.ledger.insert(at + 1, second);
    assert!(w.verdict().green, "{}", w.verdict());
    w.ledger[at + 1].page.as_mut().unwrap().from = Timestamp(T0 + 36_000);
    red(&w.verdict(), ViolationKind::LedgerNotJoined);
    // Entries out of order.
    let mut w = story().world;
    w.items(1).swap(1, 2);
    red(&w.verdict(), ViolationKind::LedgerNotJoined);
}

/// It may make an instant late or a misfire.
#[test]
fn a_disturbance_is_no_cause_of_a_skip_for_an_active_run() {
    let mut w = story().world;
    let entry = w.items(1).iter_mut().find(|e| e.logical_time.0 == T0 + 30_500).unwrap();
    let run = entry.run_id.take().unwrap();
    (entry.outcome, entry.reason) = (Outcome::Skipped, Some(SkipReason::RunActive));
    remove_run(&mut w, run.0);
    w.fault(FaultEvent::Disturbed, 30_000, None);
    w.faults.last_mut().unwrap().until_us = Some((T0 + 31_000) * 1000);
    red(&w.verdict(), ViolationKind::OutcomeUnjustified);
}

#[test]
fn an_outcome_without_good_cause_is_found() {
    // (job, instant, outcome, reason) in place of what fired there.
    let cases = [
        (1, 30_500, Outcome::Skipped, Some(SkipReason::Paused)),
        (1, 30_500, Outcome::Skipped, Some(SkipReason::RunActive)),
        (1, 30_500, Outcome::Skipped, Some(SkipReason::OneQueued)),
        (1, 30_500, Outcome::Skipped, Some(SkipReason::Quarantined)),
        (1, 30_500, Outcome::Skipped, None),
        (3, 30_123, Outcome::Missed, Some(SkipReason::Misfire)),
        (3, 30_123, Outcome::DstSkipped, None),
        (9, 40_000, Outcome::Coalesced, None),
    ];
    for (job, at, outcome, reason) in cases {
        let mut w = story().world;
        let entry = w.items(job).iter_mut().find(|e| e.logical_time.0 == T0 + at).unwrap();
        let run = entry.run_id.take();
        (entry.outcome, entry.reason) = (outcome, reason);
        if outcome == Outcome::Coalesced {
            entry.run_id = run;
        } else if let Some(run) = run {
            remove_run(&mut w, run.0);
        }
        let verdict = w.verdict();
        red(&verdict, ViolationKind::OutcomeUnjustified);
    }
    // Late, and called in time; in time, and called late.
    let mut w = story().world;
    w.items(1).iter_mut().find(|e| e.outcome == Outcome::FiredLate).unwrap().outcome = Outcome::Fired;
    red(&w.verdict(), ViolationKind::OutcomeUnjustified);
    let mut w = story().world;
    w.items(1).iter_mut().find(|e| e.outcome == Outcome::Fired).unwrap().outcome = Outcome::FiredLate;
    red(&w.verdict(), ViolationKind::OutcomeUnjustified);
}

/// What an outage left behind and still waits for its turn when a pause comes is skipped with it; nothing else is.
#[test]
fn a_backlog_is_skipped_by_a_pause_in_one_piece_and_only_behind_an_outage() {
    let with = |misfires, pauses: &[i64], waited: &[i64], missed: &[i64]| {
        let mut w = story().world;
        w.job(21, cron("*/2 * * * * *", "UTC", misfires, 1), ConcurrencyPolicy::Forbid, |_| {});
        for at in (0..=60_000).step_by(2_000) {
            if waited.contains(&at) || pauses.iter().any(|pause| (*pause..pause + 6_000).contains(&at)) {
                w.entry(21, at, Outcome::Skipped, Some(SkipReason::Paused), None);
            } else if missed.contains(&at) {
                w.entry(21, at, Outcome::Missed, Some(SkipReason::CatchUpCap), None);
            } else {
                let back = 24_100;
                w.fire(21, at, if (19_000..24_000).contains(&at) { back - at } else { 2 });
            }
        }
        for pause in pauses {
            w.ask(Verb::Pause, 21, *pause);
            w.ask(Verb::Resume, 21, pause + 6_500);
        }
        w.verdict()
    };
    let all = MisfirePolicy::FireAllMissed;
    for missed in [&[][..], &[20_000]] {
        let green = with(all, &[24_500], &[22_000, 24_000], missed);
        assert!(green.green, "{green}");
    }
    // The other policies decide at once what was missed.
    red(&with(MisfirePolicy::FireOnceNow, &[24_500], &[22_000, 24_000], &[]), ViolationKind::OutcomeUnjustified);
    // A later one had its turn.
    red(&with(all, &[24_500], &[20_000], &[]), ViolationKind::OutcomeUnjustified);
    // The node was up.
    red(&with(all, &[40_500], &[38_000, 40_000], &[]), ViolationKind::OutcomeUnjustified);
    // The pause before had taken all that waited.
    red(&with(all, &[24_500, 32_500], &[22_000, 24_000, 32_000], &[]), ViolationKind::OutcomeUnjustified);
}

#[test]
fn a_fire_after_an_acknowledged_pause_or_delete_is_found() {
    let mut w = story().world;
    let at = w.items(5).iter().position(|e| e.outcome == Outcome::Skipped).unwrap();
    let rest = w.items(5).split_off(at + 1);
    let stretch = w.items(5).last_mut().unwrap();
    (stretch.until, stretch.count) = (Some(Timestamp(T0 + 30_000)), 2);
    w.fire(5, 40_000, 2);
    w.items(5).extend(rest);
    let verdict = w.verdict();
    red(&verdict, ViolationKind::StartedWhilePaused);
    red(&verdict, ViolationKind::OutcomeUnjustified);
    let mut w = story().world;
    w.fire(8, 21_000, 3_100);
    red(&w.verdict(), ViolationKind::StartedAfterDelete);
    // The same instants before the acknowledgement are fine.
    let mut w = story().world;
    w.caller.iter_mut().filter(|l| l.verb == Verb::Delete).for_each(|l| l.t_us += 10_000_000);
    w.fire(8, 21_000, 3_100);
    assert!(w.verdict().green, "{}", w.verdict());
}
