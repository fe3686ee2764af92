//! A random job with a deadline: its instants, triggers, attempts, retries, pauses, outages, and runs of DAGs' nodes. What must be missed
//! is computed anew from the events of the runs and of the ledger, by a bookkeeping that never asks `campanile_core::deadline`. Each
//! clause is broken once, and that is seen.

use crate::deadline_world::World;
use campanile_core::{
    deadline::{Rule, rules::break_rule},
    hooks,
};

const SEEDS: u64 = 150;
const STEPS: usize = 300;

/// What goes wrong in a history, and how many deadlines it missed.
fn history(seed: u64) -> (Option<String>, u32) {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        world.step();
        if world.found.is_some() {
            break;
        }
    }
    (world.found, world.missed)
}

#[test]
fn a_deadline_is_missed_once_and_only_by_what_was_to_end_by_it() {
    let mut missed = 0;
    for seed in 0..SEEDS {
        let (found, of) = history(seed);
        assert_eq!(found, None, "seed {seed}");
        missed += of;
    }
    assert!(missed > SEEDS as u32, "only {missed} were missed");
}

#[test]
fn each_clause_that_is_broken_is_found() {
    for rule in Rule::ALL {
        break_rule(Some(rule));
        let found = (0..SEEDS).find_map(|seed| history(seed).0.map(|what| (seed, what)));
        break_rule(None);
        let (seed, what) = found.unwrap_or_else(|| panic!("{rule:?} is broken, and nothing shows it"));
        assert_eq!(history(seed).0, None, "{rule:?} was found as: {what}");
    }
}

#[test]
fn the_hooks_of_a_deadline_and_of_the_end_share_the_budget() {
    hooks::rules::break_rule(Some(hooks::Rule::DeadlineShares));
    let found = (0..SEEDS).find_map(|seed| history(seed).0);
    hooks::rules::break_rule(None);
    assert!(found.unwrap().contains("more than 64 runs of hooks"));
}
