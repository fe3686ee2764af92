//! Whether an executor may take a run.
//!
//! Three questions, by how long their answers hold: [`serves`] for a class of runs and as long as the executor is registered, so
//! that it is asked once a round; [`can_run`] for one run and as long as it is registered, so that a run for which everybody
//! answers no is set aside until executors change; [`has_room`] for one run and this moment. A further condition on executors,
//! such as labels, belongs into one of the three.

use super::{
    Class,
    executor::{Executor, Holding},
    rules::{Rule, kept},
};
use crate::job::{Need, WaitingRun};
use campanile_schema::rpc::executor::Register;

/// Sums of fractions of cores are not exact.
const SLACK: f64 = 1e-9;

/// It takes runs of the pool.
pub fn is_in(executor: &Executor, pool: &str) -> bool {
    executor.register.as_ref().is_some_and(|register| register.pools.iter().any(|own| own == pool))
}

/// It takes at least some runs of the class.
pub fn serves(executor: &Executor, class: &Class) -> bool {
    let kind = || executor.register.as_ref().is_some_and(|register| register.runs().has(class.kind));
    (is_in(executor, &class.pool) || !kept(Rule::PoolIsServed)) && (kind() || !kept(Rule::KindIsRun))
}

/// It could take the run, had it nothing else to do: it can run its action, and is large enough. Whether it serves the run's class was
/// asked before.
pub fn can_run(executor: &Executor, run: &WaitingRun) -> bool {
    executor
        .register
        .as_ref()
        .is_some_and(|register| has_handler(register, &run.need) && is_large_enough(register, run))
}

fn has_handler(register: &Register, need: &Need) -> bool {
    match need {
        Need::Command | Need::Http => true,
        Need::Handler(name) => {
            register.any_handler
                || register.handlers.iter().any(|handler| handler == name)
                || !kept(Rule::HandlerIsKnown)
        }
    }
}

fn is_large_enough(register: &Register, run: &WaitingRun) -> bool {
    let large = |limit: f64, wanted: f64| limit <= 0.0 || wanted <= limit + SLACK;
    large(register.cpu, run.cpu)
        && large(register.memory_mb as f64, run.memory_mb as f64)
        && large(register.storage_mb as f64, run.storage_mb as f64)
        || !kept(Rule::LargeEnough)
}

/// What its runs have left of its resources is enough for this one too.
pub fn has_room(executor: &Executor, run: &WaitingRun) -> bool {
    let Some(register) = &executor.register else { return false };
    let over = |limit: f64, used: f64, wanted: f64| limit > 0.0 && used + wanted > limit + SLACK;
    let sum = |of: fn(&Holding) -> f64| executor.running.values().map(of).sum::<f64>();
    // Sums only where a limit was named: most executors name none.
    let full = register.cpu > 0.0 && over(register.cpu, sum(|h| h.cpu), run.cpu)
        || register.memory_mb > 0 && over(register.memory_mb as f64, sum(|h| h.memory_mb as f64), run.memory_mb as f64)
        || register.storage_mb > 0
            && over(register.storage_mb as f64, sum(|h| h.storage_mb as f64), run.storage_mb as f64);
    !full || !kept(Rule::RoomIsLeft)
}
