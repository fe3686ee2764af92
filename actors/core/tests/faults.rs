//! Defects switched on in the core itself: each turns a checker red. `cargo test -p campanile-core --features faults`.
#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used)]

mod support;

use campanile_core::faults::{Mutation, set};
use support::{attempts, fixed_histories, judge, ledger, policy, sim::Sim, sim::Step};

type Check = fn(&[Step]) -> Result<(), String>;

/// One test, since the switches are the process's.
#[test]
fn every_defect_turns_its_checker_red() {
    let histories = fixed_histories(300);
    let red =
        |check: Check| -> usize { histories.iter().filter(|h| check(&Sim::run(h, false).steps).is_err()).count() };
    for history in &histories {
        assert_eq!(judge(&Sim::run(history, true)), Ok(()), "without a defect");
    }
    for (mutation, check) in [
        (Mutation::ForgetOutcome, ledger::check as Check),
        (Mutation::FireEarly, ledger::check),
        (Mutation::ForgetPause, policy::check),
        (Mutation::ReuseToken, attempts::check),
        (Mutation::AcceptStale, attempts::check),
        (Mutation::ForgetPolicy, policy::check),
        (Mutation::DoubleFire, ledger::check),
        (Mutation::LedgerLie, policy::check),
        (Mutation::PhantomRun, ledger::check),
        // Not `LostAck`: what is forgotten leaves no event. Callers know better: `make mutations`.
    ] {
        set(mutation, true);
        let found = red(check);
        set(mutation, false);
        println!("{}: found out in {found} of {} histories", mutation.name(), histories.len());
        assert!(found > 0, "{} is not found out", mutation.name());
        assert_eq!(Mutation::parse(mutation.name()), Some(mutation));
    }
    assert_eq!(red(|steps| ledger::check(steps).and(attempts::check(steps))), 0, "all switched off again");
}
