//! Power cuts: the real session over the embedded store on a disk that forgets what was not synced. Random work of callers
//! and executors, random cuts (also while it recovers), processes that die, disks that are full; then everything that was
//! acknowledged is there and the ledger is whole. And each sync is needed: without it some seed turns red.
//!
//! `POWERCUT_SEEDS=N cargo test -p campanile --features faults --test powercut`; `POWERCUT_BASE` moves the seeds,
//! `POWERCUT_SEED` runs one of them, `POWERCUT_SITE` leaves out the syncs of one site only. Work and cut come from the seed,
//! the interleaving of threads does not: a violation prints its story.
#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used)]

mod caller;
mod clock;
mod executor;
mod ledger;
mod machine;
mod model;
mod plan;
mod random;
mod story;
mod verify;
mod world;

use campanile_store::file::SyncSite;
use std::time::Instant;
use tokio::{runtime::Runtime, task::JoinSet};
use world::{Setting, Tally};

/// Seeds that run at once, count: each waits most of its time, for what a real node waits for after a cut.
const AT_ONCE: usize = 12;
/// Seeds in which a sync that is left out must be found: the rarest of them takes about fifty.
const TRIES: u64 = 400;
/// Sites that take hundreds of seeds of a whole node. The store's own proof, which is aimed at them, finds all sites each
/// time (`embedded/tests/crash.rs`).
const RARE: [SyncSite; 3] = [SyncSite::Inherited, SyncSite::SnapshotPartDir, SyncSite::FlushedDir];

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Runs seeds until all are done, or until one is red and `first` is set; gives the tally and what was red.
async fn seeds(seeds: impl Iterator<Item = u64>, setting: Setting, first: bool) -> (Tally, Vec<String>) {
    let (mut tally, mut red, mut seeds) = (Tally::default(), Vec::new(), seeds);
    let mut running = JoinSet::new();
    loop {
        while running.len() < AT_ONCE
            && (red.is_empty() || !first)
            && let Some(seed) = seeds.next()
        {
            running.spawn(world::run(seed, setting));
        }
        match running.join_next().await {
            None => return (tally, red),
            Some(Ok(Ok(done))) => tally.add(done),
            Some(Ok(Err(why))) => red.push(why),
            Some(Err(panic)) => red.push(panic.to_string()),
        }
    }
}

#[test]
fn no_power_cut_breaks_a_promise() {
    let base = setting("POWERCUT_BASE").unwrap_or(0);
    let numbers = match setting("POWERCUT_SEED") {
        Some(seed) => seed..seed + 1,
        None => base..base + setting("POWERCUT_SEEDS").unwrap_or(200),
    };
    let began = Instant::now();
    let (tally, red) = runtime().block_on(seeds(numbers, Setting::default(), true));
    println!("powercut: {} seeds, {} cuts, {} acknowledged calls checked", tally.seeds, tally.cuts, tally.acknowledged);
    println!("powercut: {tally:?} in {:.1} s", began.elapsed().as_secs_f64());
    assert!(red.is_empty(), "{}", red.join("\n"));
    assert!(tally.acknowledged > tally.seeds * 20, "too little was acknowledged to show anything: {tally:?}");
}

#[test]
fn a_disk_that_is_full_ends_the_session_and_loses_nothing() {
    let base = setting("POWERCUT_BASE").unwrap_or(0);
    let full = Setting { full_disk: true, ..Setting::default() };
    let (tally, red) = runtime().block_on(seeds(base..base + 20, full, true));
    assert!(red.is_empty(), "{}", red.join("\n"));
    assert!(tally.reopened > tally.seeds, "the disk was hardly ever full: {tally:?}");
}

#[test]
fn without_any_one_sync_some_cut_breaks_a_promise() {
    let base = setting("POWERCUT_BASE").unwrap_or(0);
    let runtime = runtime();
    let mut needless = Vec::new();
    let only = std::env::var("POWERCUT_SITE").ok();
    let chosen = |site: &SyncSite| match &only {
        Some(name) => *name == format!("{site:?}"),
        None => !RARE.contains(site),
    };
    for site in SyncSite::ALL.into_iter().filter(chosen) {
        let began = Instant::now();
        let ignored = Setting { ignored: Some(site), ..Setting::default() };
        let (tally, red) = runtime.block_on(seeds(base..base + TRIES, ignored, true));
        let line = red.first().and_then(|text| text.lines().next()).unwrap_or("NOT FOUND");
        let line: String = line.chars().take(240).collect();
        println!("{site:?}: {} green seeds, {:.1} s: {line}", tally.seeds, began.elapsed().as_secs_f64());
        if red.is_empty() {
            needless.push(site);
        }
    }
    assert_eq!(needless, [], "no seed needs these syncs");
}
