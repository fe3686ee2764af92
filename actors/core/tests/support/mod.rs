//! Random histories of one job on a simulated shard, and checkers that judge them from their events alone.
//!
//! `make` draws definitions, `ops` what happens, `sim` and `play` let it happen, `steps` maps events to the table; `ledger` and
//! `attempts` are the checkers: they follow the events with their own bookkeeping and never ask the job's state.
#![allow(clippy::unwrap_used, dead_code)]

pub mod attempts;
pub mod civil;
pub mod due;
pub mod ledger;
pub mod make;
pub mod ops;
pub mod play;
pub mod policy;
pub mod sim;
pub mod steps;

use ops::{History, history};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, RngSeed, TestRunner},
};
use sim::Sim;

/// The same histories on every machine and in every run; `CAMPANILE_HISTORIES` asks for more of them.
pub fn config(cases: u32) -> Config {
    let wanted = std::env::var("CAMPANILE_HISTORIES").ok().and_then(|n| n.parse().ok());
    let seed = std::env::var("CAMPANILE_SEED").ok().and_then(|n| n.parse().ok());
    Config {
        cases: wanted.unwrap_or(cases),
        rng_seed: RngSeed::Fixed(seed.unwrap_or(20_261_121)),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    }
}

/// Fixed histories outside of a property, for checks that must turn red.
pub fn fixed_histories(count: usize) -> Vec<History> {
    let mut runner = TestRunner::new(config(1));
    let strategy = history();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// All checkers over one history.
pub fn judge(sim: &Sim) -> Result<(), String> {
    ledger::check(&sim.steps)?;
    policy::check(&sim.steps)?;
    attempts::check(&sim.steps)
}
