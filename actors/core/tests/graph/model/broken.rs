//! Every clause, broken on purpose, is found out; with the clause kept the same seed violates nothing.

#![cfg(feature = "faults")]

use super::{explore::play, plan::Plan};
use campanile_core::graph::clauses::{Clause, break_rule};

/// Seeds that are tried at most.
const SEEDS: u64 = 20_000;

/// Clauses that random plays do not reach; `stories.rs` breaks each of them.
pub const TOLD: [Clause; 2] = [Clause::NodeResultLimit, Clause::RunResultLimit];

/// The first seed at which the clause is missed, and what for.
fn found(clause: Clause) -> Option<(u64, String)> {
    for seed in 0..SEEDS {
        let plan = Plan::new(seed);
        break_rule(Some(clause));
        let violation = play(&plan).violation;
        break_rule(None);
        if let Some(violation) = violation {
            assert_eq!(play(&plan).violation, None, "with the clause kept");
            return Some((seed, format!("{violation:?}")));
        }
    }
    None
}

#[test]
fn every_clause_is_found_out() {
    let mut hidden = Vec::new();
    for clause in Clause::ALL.into_iter().filter(|clause| !TOLD.contains(clause)) {
        match found(clause) {
            Some((seed, violation)) => println!("{clause:?}: seed {seed}: {violation}"),
            None => hidden.push(clause),
        }
    }
    assert_eq!(hidden, [], "broken on purpose and not found out");
}
