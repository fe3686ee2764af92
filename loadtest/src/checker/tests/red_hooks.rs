//! Seeded defects in hooks: one that was not started, one that was started twice, and one that nobody's failure explains.

use super::{
    green::story,
    only,
    world::{T0, World},
};
use crate::checker::ViolationKind;
use campanile_schema::{
    job::{ConcurrencyPolicy, Hook, Trigger},
    record::{AttemptState, RunState, Source},
    time::Timestamp,
};

const WORK: u64 = 20;
const REFUND: u64 = 21;

/// A run of job 20 that has failed, whose hook is job 21; its id.
fn failed() -> (World, u64) {
    let mut world = story().world;
    world.job(REFUND, Trigger::Manual {}, ConcurrencyPolicy::Allow, |_| {});
    world.job(WORK, Trigger::Manual {}, ConcurrencyPolicy::Allow, |spec| {
        spec.retry_policy.max_attempts = 1;
        spec.hooks.on_failure = vec![Hook::new(format!("job-{REFUND}"))];
    });
    let run = world.trigger(WORK, "hooked", 30_000);
    // Its body failed instead.
    world.run_mut(run).attempts.clear();
    world.executors.iter_mut().for_each(|(_, lines)| lines.retain(|line| line.run != run));
    world.attempt(run, 0, 1, 30_002, 10, AttemptState::Failed);
    let view = world.run_mut(run);
    (view.state, view.dead_letter) = (RunState::Failed, true);
    (world, run)
}

/// The run of a hook that tells this, 50 ms later.
fn hook(world: &mut World, reason: &str) -> u64 {
    let run = world.run(REFUND, Source::Event, Some(30_060), 30_060);
    world.run_mut(run).reason = Some(reason.to_owned());
    world.attempt(run, 0, 1, 30_062, 10, AttemptState::Success);
    run
}

#[test]
fn a_failure_starts_its_hook_once() {
    let (mut world, run) = failed();
    only(&world.verdict(), ViolationKind::HookMissing);
    hook(&mut world, &format!("onFailure of run {run}, generation 1"));
    let verdict = world.verdict();
    assert!(verdict.green, "{verdict}");
    hook(&mut world, &format!("onFailure of run {run}, generation 1"));
    only(&world.verdict(), ViolationKind::HookDoubled);
}

#[test]
fn a_failure_of_the_last_moment_may_have_its_hook_on_the_way() {
    let (mut world, run) = failed();
    world.run_mut(run).ended_at = Some(Timestamp(T0 + 64_000));
    assert!(!world.verdict().has(ViolationKind::HookMissing));
}

#[test]
fn a_hook_is_explained_by_a_failure_of_its_generation() {
    let (mut world, run) = failed();
    hook(&mut world, &format!("onFailure of run {run}, generation 1"));
    let mut others = [format!("onFailure of run {run}, generation 2"), "onFailure of run 7, generation 1".to_owned()]
        .into_iter()
        .chain(["because".to_owned()]);
    let mut unasked = |world: &mut World| {
        hook(world, &others.next().unwrap());
        only(&world.verdict(), ViolationKind::HookUnasked);
    };
    unasked(&mut world);
    unasked(&mut world);
    unasked(&mut world);
}
