//! Random DAGs in a random world, judged by a reference that knows nothing of how the code under test works.

mod broken;
mod checks;
mod explore;
mod plan;
mod random;
pub mod reference;
mod world;

use explore::play;
use plan::Plan;
use std::collections::BTreeMap;

/// Seeds of the default run: GRAPH_SEEDS says others.
const SEEDS: u64 = 6_000;

#[test]
fn every_run_does_what_the_reference_does() {
    let seeds = std::env::var("GRAPH_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let mut tally: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..seeds {
        let plan = Plan::new(seed);
        let played = play(&plan);
        if let Some(violation) = played.violation {
            panic!("seed {seed}: {violation:?}\n{plan:?}\n{}", played.story.join("\n"));
        }
        for (what, count) in played.tally.0 {
            *tally.entry(what).or_default() += count;
        }
    }
    println!("{seeds} seeds: {tally:?}");
    for what in [
        "SUCCESS",
        "FAILED",
        "CANCELED",
        "TIMEOUT",
        "doubled",
        "restart",
        "late generation",
        "refused",
        "retry of a final run",
        "pause",
    ] {
        assert!(tally.get(what).is_some_and(|count| *count > 20), "{what} is rare: {tally:?}");
    }
}
