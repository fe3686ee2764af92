//! Playing many seeds, and finding the shortest story of a violation.

use super::{
    checks::{Violation, ViolationKind},
    table::Table,
    world::{Plan, World},
};
use campanile_core::ownership::Rule;
use std::collections::BTreeSet;

/// Plays one plan. A rule that it breaks is broken for this thread meanwhile.
pub fn play(plan: &Plan) -> World {
    break_rule(plan.broken);
    let mut world = World::new(plan.clone());
    world.play();
    break_rule(None);
    world
}

#[cfg(feature = "faults")]
fn break_rule(rule: Option<Rule>) {
    campanile_core::ownership::rules::break_rule(rule);
}

#[cfg(not(feature = "faults"))]
fn break_rule(rule: Option<Rule>) {
    assert_eq!(rule, None, "rules can be broken with the feature `faults` only");
}

/// What exploring gave.
pub struct Explored {
    pub table: Table,
    /// The first plan that violates something.
    pub found: Option<(Plan, Violation)>,
}

/// Plays seeds, until one violates something.
pub fn explore(
    seeds: impl Iterator<Item = u64>,
    steps: u64,
    broken: Option<Rule>,
    wanted: Option<ViolationKind>,
) -> Explored {
    let mut table = Table::default();
    for seed in seeds {
        let plan = Plan { seed, steps, broken, ..Plan::default() };
        let world = play(&plan);
        table.add(&world.table);
        if let Some(violation) = world.violation.filter(|v| wanted.is_none_or(|wanted| v.kind() == wanted)) {
            return Explored { table, found: Some((plan, violation)) };
        }
    }
    Explored { table, found: None }
}

/// Steps that the search for a short story may take.
const SHRINKING_STEPS: u64 = 3_000_000;

/// Leaves out as many faults as it can while the same kind of violation remains, and tells what is left.
pub fn shortest_story(plan: &Plan, kind: ViolationKind) -> Vec<String> {
    let mut left = SHRINKING_STEPS;
    let mut violates = |plan: &Plan| {
        if left == 0 {
            return None;
        }
        let world = play(plan);
        left = left.saturating_sub(world.table.steps);
        world.violation.as_ref().is_some_and(|v| v.kind() == kind).then_some(world)
    };
    let mut plan = plan.clone();
    if let Some(world) = violates(&plan) {
        plan.steps = plan.steps.min(world.table.steps);
        let faults = world.faults;
        let mut size = faults.div_ceil(2).max(1);
        while size > 0 {
            let mut from = 1;
            while from <= faults {
                let without: BTreeSet<u64> = plan.without.iter().copied().chain(from..from + size).collect();
                let shorter = Plan { without, ..plan.clone() };
                if violates(&shorter).is_some() {
                    plan = shorter;
                }
                from += size;
            }
            size /= 2;
        }
    }
    plan.told = true;
    play(&plan).story
}
