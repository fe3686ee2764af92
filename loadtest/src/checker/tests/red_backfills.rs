//! Seeded defects in what backfills ran.

use super::{
    only, red,
    world::{T0, World, rate},
};
use crate::{
    checker::{Verdict, ViolationKind},
    run_dir::lines::Verb,
};
use campanile_schema::{
    event::{Outcome, SkipReason},
    ids::RunId,
    job::ConcurrencyPolicy,
    record::RunState,
    stored::backfill::BackfillMode,
    time::Timestamp,
};

/// Every 10 s since 60 s before the job was created; paused from 12 s to 35 s.
const JOB: u64 = 1;

struct Story {
    world: World,
    /// The runs for -50 s, -40 s, 20 s and 30 s: the first two were due before the job was there.
    runs: Vec<u64>,
}

fn story_of(policy: ConcurrencyPolicy) -> Story {
    let mut w = World::new();
    w.job(JOB, rate(10, -60_000), policy, |_| {});
    for at in [0, 10_000] {
        w.fire(JOB, at, 2);
    }
    w.ask(Verb::Pause, JOB, 12_000);
    w.ask(Verb::Resume, JOB, 35_000);
    w.stretch(JOB, (20_000, 30_000, 2), Outcome::Skipped, Some(SkipReason::Paused), None);
    for at in [40_000, 50_000, 60_000] {
        w.fire(JOB, at, 2);
    }
    w.backfill(JOB, -50_000, 30_000, 55_000);
    // -30 s, -20 s and -10 s, too.
    let runs = [-50_000, -40_000, -30_000, -20_000, -10_000, 20_000, 30_000];
    let runs = runs.iter().enumerate().map(|(n, at)| w.back_run(JOB, *at, 55_010 + n as i64 * 100, 50)).collect();
    Story { world: w, runs }
}

fn story() -> Story {
    story_of(ConcurrencyPolicy::Allow)
}

/// Without a run and its bodies, as if it had never been made.
fn forget(s: &mut Story, run: u64) {
    s.world.runs.retain(|r| r.run_id.0 != run);
    s.world.executors.iter_mut().for_each(|(_, lines)| lines.retain(|line| line.run != run));
}

fn verdict_of(change: impl FnOnce(&mut Story)) -> Verdict {
    let mut s = story();
    change(&mut s);
    s.world.verdict()
}

#[test]
fn a_backfill_that_ran_what_was_missing_is_green() {
    for policy in [ConcurrencyPolicy::Allow, ConcurrencyPolicy::Forbid] {
        let verdict = story_of(policy).world.verdict();
        assert!(verdict.green, "{verdict}");
    }
}

#[test]
fn an_instant_that_was_missing_and_has_no_run_is_found() {
    for n in 0..7 {
        let verdict = verdict_of(|s| forget(s, s.runs[n]));
        only(&verdict, ViolationKind::BackfillMissing);
    }
    // Whoever canceled it is owed nothing.
    let verdict = verdict_of(|s| {
        forget(s, s.runs[6]);
        let asked = s.world.backfill(JOB, -50_000, 30_000, 55_500).to_owned();
        s.world.caller.truncate(s.world.caller.len() - 2);
        s.world.ask(Verb::CancelBackfill, JOB, 55_600);
        s.world.caller.iter_mut().filter(|l| l.verb == Verb::CancelBackfill).for_each(|l| l.backfill = Some(asked));
    });
    assert!(verdict.green, "{verdict}");
}

/// The last run of the backfill ended CANCELED before a body, and the backfill itself was canceled so many ms before or after that.
fn canceled_with_its_backfill(before_ms: i64) -> Verdict {
    verdict_of(|s| {
        let run = s.runs[6];
        s.world.executors.iter_mut().for_each(|(_, lines)| lines.retain(|line| line.run != run));
        let record = s.world.runs.iter_mut().find(|r| r.run_id.0 == run).unwrap();
        let ended_ms = record.created_at.0 + 100;
        (record.state, record.ended_at) = (RunState::Canceled, Some(Timestamp(ended_ms)));
        record.attempts.clear();
        (record.started_at, record.executor_id, record.attempt_count) = (None, None, 0);
        let asked = s.world.backfill(JOB, -50_000, 30_000, 55_500).to_owned();
        s.world.caller.truncate(s.world.caller.len() - 2);
        s.world.ask(Verb::CancelBackfill, JOB, ended_ms - T0 - before_ms);
        s.world.caller.iter_mut().filter(|l| l.verb == Verb::CancelBackfill).for_each(|l| l.backfill = Some(asked));
    })
}

#[test]
fn a_run_that_was_canceled_with_its_backfill_has_a_cause_and_one_canceled_before_has_none() {
    let verdict = canceled_with_its_backfill(20);
    assert!(verdict.green, "{verdict}");
    only(&canceled_with_its_backfill(-500), ViolationKind::EndedWithoutCause);
}

#[test]
fn a_second_run_of_one_instant_is_found() {
    let verdict = verdict_of(|s| {
        s.world.back_run(JOB, -40_000, 57_000, 50);
    });
    only(&verdict, ViolationKind::BackfillDoubled);
    // A second backfill of the same stretch does not excuse it; one of all instants does.
    for (mode, is_green) in [(BackfillMode::Missing, false), (BackfillMode::All, true)] {
        let verdict = verdict_of(|s| {
            let asked = s.world.backfill(JOB, -40_000, -40_000, 56_500);
            (asked.id, asked.mode) = (Some(901), mode);
            let sent = s.world.caller.iter_mut().rev().nth(1).unwrap();
            sent.backfill.as_mut().unwrap().mode = mode;
            s.world.back_run(JOB, -40_000, 57_000, 50);
        });
        assert_eq!(verdict.green, is_green, "{mode} {verdict}");
    }
}

#[test]
fn a_run_that_nobody_asked_for_is_found() {
    // It had run by itself.
    let verdict = verdict_of(|s| {
        s.world.back_run(JOB, 10_000, 57_000, 50);
    });
    only(&verdict, ViolationKind::BackfillUnasked);
    // It is outside of the stretch.
    let verdict = verdict_of(|s| {
        s.world.back_run(JOB, -60_000, 57_000, 50);
    });
    only(&verdict, ViolationKind::BackfillUnasked);
    // It is no instant of the schedule.
    let verdict = verdict_of(|s| {
        s.world.back_run(JOB, -45_000, 57_000, 50);
    });
    only(&verdict, ViolationKind::BackfillUnasked);
    // Nobody asked for anything.
    let verdict = verdict_of(|s| s.world.caller.retain(|line| line.verb != Verb::Backfill));
    red(&verdict, ViolationKind::BackfillUnasked);
    // The run was there before it was asked for.
    let verdict = verdict_of(|s| {
        let run = s.runs[0];
        s.world.runs.iter_mut().filter(|r| r.run_id == RunId(run)).for_each(|r| r.created_at = Timestamp(T0 + 50_000));
    });
    red(&verdict, ViolationKind::BackfillUnasked);
}

#[test]
fn more_bodies_at_once_than_were_asked_for_are_found() {
    // 100 ms apart, so long that three overlap.
    let long = |s: &mut Story| {
        for run in s.runs.clone() {
            s.world.lines_of(run).filter(|l| l.outcome.is_some()).for_each(|l| l.t_us += 180_000);
            let view = s.world.run_mut(run);
            let end = view.attempts[0].ended_at.map(|at| Timestamp(at.0 + 180));
            (view.attempts[0].ended_at, view.ended_at) = (end, end);
        }
    };
    red(&verdict_of(long), ViolationKind::BackfillTooMany);
    // Two at a time are what was asked for, and are too many where the policy allows one.
    let two = |s: &mut Story| {
        let run = s.runs[0];
        s.world.lines_of(run).filter(|l| l.outcome.is_some()).for_each(|l| l.t_us += 80_000);
        let view = s.world.run_mut(run);
        let end = view.attempts[0].ended_at.map(|at| Timestamp(at.0 + 80));
        (view.attempts[0].ended_at, view.ended_at) = (end, end);
    };
    let verdict = verdict_of(two);
    assert!(verdict.green, "{verdict}");
    let mut s = story_of(ConcurrencyPolicy::Forbid);
    two(&mut s);
    red(&s.world.verdict(), ViolationKind::BackfillTooMany);
}
