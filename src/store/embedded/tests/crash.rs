//! Crashes at every place, from seeds: the promises hold, and each sync is needed for them.

use super::world;
use crate::file::SyncSite;

#[test]
fn no_crash_breaks_a_promise() {
    let broken: Vec<String> = (0..600).filter_map(|seed| world::run(seed, None).err()).collect();
    assert!(broken.is_empty(), "{} seeds, first: {}", broken.len(), broken[0]);
}

#[test]
fn without_any_one_of_the_syncs_some_crash_breaks_a_promise() {
    let needless: Vec<SyncSite> = SyncSite::ALL
        .into_iter()
        // Most are missed within a few seeds; that of a part's name only when the power fails between two calls, one seed in thousands.
        .filter(|site| !(0..20_000).any(|seed| world::run(seed, Some(*site)).is_err()))
        .collect();
    assert_eq!(needless, [], "no seed needs these syncs");
}

/// `CRASH_SEED=n` runs that one; `CRASH_SEEDS=n` that many from 600 on.
#[test]
#[ignore = "for the hunt, and to look at one seed"]
fn seeds_of_your_choice() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let seeds = match (number("CRASH_SEED"), number("CRASH_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(count)) => 600..600 + count,
        (None, None) => 600..5_600,
    };
    let broken: Vec<String> = seeds.filter_map(|seed| world::run(seed, None).err()).collect();
    assert!(broken.is_empty(), "{} seeds, first: {}", broken.len(), broken[0]);
}
