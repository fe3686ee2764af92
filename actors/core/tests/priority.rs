//! A run that waits is given a priority of its own.

use crate::{
    attempts::{attempt, last, one_run, reopen, start, state},
    support::{judge, sim::Sim},
};
use campanile_core::job::{Command, Effect, decide_next, pending::pending};
use campanile_schema::{
    error::ErrorCode,
    ids::RunId,
    record::{AttemptState, RunState},
};

fn prioritize(sim: &mut Sim, run: RunId, priority: u16) -> Result<Vec<Effect>, ErrorCode> {
    let command = Command::Prioritize { run, priority };
    let (decision, _) = decide_next(&sim.job, &command, &sim.context(0)).map_err(|refused| refused.code)?;
    sim.command(&command).unwrap();
    Ok(decision.effects)
}

/// Priorities of the runs that ask for an executor.
fn asked(effects: &[Effect]) -> Vec<u16> {
    let asked = effects.iter().filter_map(|effect| match effect {
        Effect::Enqueue(waiting) => Some(waiting.priority),
        _ => None,
    });
    asked.collect()
}

pub fn a_run_waits_by_its_own_priority() {
    let (mut sim, run) = one_run(|def| (def.priority, def.max_attempts) = (100, 1));
    let effects = prioritize(&mut sim, run, 900).unwrap();
    assert!(matches!(effects[0], Effect::Dequeue { run: gone, .. } if gone == run), "it leaves its place first");
    assert_eq!(asked(&effects), [900]);
    assert_eq!(prioritize(&mut sim, run, 900), Ok(Vec::new()), "once is enough");
    assert_eq!(asked(&pending(&sim.job)), [900], "also after a restart");
    assert_eq!(sim.job.run_view(sim.job.run(run).unwrap()).priority, Some(900));
    // It stays with the run, and an edit of the job does not change it.
    attempt(&mut sim, run, AttemptState::Failed);
    assert_eq!(last(&sim).priority, Some(900));
    reopen(&mut sim, true).unwrap();
    assert_eq!(asked(&pending(&sim.job)), [900]);
    // Paused, it asks for nothing; resuming the job asks with its priority.
    sim.command(&Command::Pause { reason: None }).unwrap();
    assert_eq!(prioritize(&mut sim, run, 5), Ok(Vec::new()));
    sim.command(&Command::Resume).unwrap();
    assert_eq!(asked(&pending(&sim.job)), [5]);
    assert_eq!(judge(&sim), Ok(()));
}

#[test]
fn only_a_run_that_waits_is_given_a_priority() {
    let (mut sim, run) = one_run(|def| def.max_attempts = 2);
    a_run_waits_by_its_own_priority();
    let token = start(&mut sim, run);
    assert_eq!(prioritize(&mut sim, run, 900), Err(ErrorCode::IllegalState), "RUNNING");
    sim.finish(run, token, AttemptState::Failed);
    assert_eq!(state(&sim, run), RunState::RetryWait);
    assert_eq!(prioritize(&mut sim, run, 900), Ok(Vec::new()), "it asks when its delay is over");
    let retry = sim.job.run(run).unwrap().retry_at_ms.unwrap();
    sim.pass(retry + 10);
    assert_eq!(asked(&pending(&sim.job)), [900]);
    attempt(&mut sim, run, AttemptState::Success);
    assert_eq!(prioritize(&mut sim, run, 1), Err(ErrorCode::IllegalState), "SUCCESS");
}
