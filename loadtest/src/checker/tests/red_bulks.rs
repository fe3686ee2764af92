//! Seeded defects in what bulk operations change: a pause of many jobs is one of each, and a retry of many runs one of each.

use super::{
    green::{Story, story},
    only, red,
    world::{T0, World, rate},
};
use crate::{
    checker::ViolationKind,
    run_dir::lines::{CallEvent, CallerLine, Verb},
};
use campanile_schema::{
    event::{Outcome, SkipReason},
    ids::{JobId, RunId},
    job::ConcurrencyPolicy,
};

const JOBS: [u64; 2] = [20, 21];

/// Two jobs that are paused together from 12 s to 35 s.
fn paused(asked: &[u64]) -> World {
    let mut world = World::new();
    for job in JOBS {
        world.job(job, rate(10, 0), ConcurrencyPolicy::Allow, |_| {});
        world.fire(job, 0, 2);
        world.fire(job, 10_000, 2);
    }
    for job in asked {
        world.ask(Verb::BulkPause, *job, 12_000);
        world.ask(Verb::BulkResume, *job, 35_000);
    }
    world
}

#[test]
fn each_job_of_a_bulk_pause_is_paused_and_no_other() {
    let with = |asked: &[u64], skips: &[u64]| {
        let mut world = paused(asked);
        for job in JOBS {
            if skips.contains(&job) {
                world.stretch(job, (20_000, 30_000, 2), Outcome::Skipped, Some(SkipReason::Paused), None);
            } else {
                world.fire(job, 20_000, 2);
                world.fire(job, 30_000, 2);
            }
            for at in [40_000, 50_000, 60_000] {
                world.fire(job, at, 2);
            }
        }
        world.verdict()
    };
    let verdict = with(&JOBS, &JOBS);
    assert!(verdict.green, "{verdict}");
    red(&with(&JOBS, &JOBS[..1]), ViolationKind::StartedWhilePaused);
    only(&with(&JOBS[..1], &JOBS), ViolationKind::OutcomeUnjustified);
}

#[test]
fn a_bulk_retry_explains_one_generation_of_its_run() {
    let Story { mut world, plain, .. } = story();
    let generation = |world: &mut World, generation: u32| {
        world.run_mut(plain).generation = generation;
        world.run_mut(plain).attempts[0].generation = generation;
        world.lines_of(plain).for_each(|line| line.generation = generation);
    };
    generation(&mut world, 2);
    only(&world.verdict(), ViolationKind::ReopenUnasked);
    let call = 950 + world.caller.len() as u64;
    let sent = CallerLine { t_us: (T0 + 30_000) * 1000, ..CallerLine::new(CallEvent::Sent, call, Verb::BulkRetry) };
    let sent = CallerLine { job: Some(JobId(1)), run: Some(RunId(plain)), ..sent };
    let ack = CallerLine { event: CallEvent::Ack, t_us: sent.t_us + 2_000, generation: Some(2), ..sent.clone() };
    world.caller.extend([sent, ack]);
    let verdict = world.verdict();
    assert!(verdict.green, "{verdict}");
    generation(&mut world, 3);
    only(&world.verdict(), ViolationKind::ReopenUnasked);
    world.caller.iter_mut().filter(|line| line.verb == Verb::BulkRetry).for_each(|line| line.generation = Some(4));
    red(&world.verdict(), ViolationKind::ReopenLost);
}
