//! Everything that strangers' bytes reach first, fed with damaged ones: the RPC decoder, frames of the journal, job specs as JSON and
//! YAML, manifests, crontabs, cron expressions. Nothing may panic, hang, or take more than 64 MiB, whatever the input.
//!
//! Inputs are seeds (what tests and golden files hold) with changes that bolero draws; one that breaks something is made smaller and
//! printed with its seed. Here each target runs for a second; `make fuzz` gives each FUZZ_SECONDS.
#![allow(clippy::unwrap_used)]

mod damage;
mod targets;

use bolero::check;
use damage::{Change, damaged};
use peak_alloc::PeakAlloc;
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What one input may make the node take, bytes.
const MEMORY_BYTES: usize = 64 << 20;
/// Longest input, bytes; larger ones are refused by their length before they are read.
const INPUT_BYTES: usize = 64 << 10;
/// Changes to one seed, count.
const CHANGES: usize = 24;
/// One input at a time: what it takes in memory is told from what others take.
static ALONE: Mutex<()> = Mutex::new(());

/// How long each target runs.
fn time() -> Duration {
    let seconds =
        std::env::var("FUZZ_SECONDS").ok().map(|text| text.parse().expect("FUZZ_SECONDS: a number of seconds"));
    Duration::from_secs(seconds.unwrap_or(1))
}

fn measured(target: fn(&[u8]), input: &[u8]) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    target(input);
    let taken = MEMORY.peak_usage().saturating_sub(before);
    assert!(taken <= MEMORY_BYTES, "{taken} bytes of memory for {} bytes of input", input.len());
}

fn fuzz(seeds: &[Vec<u8>], target: fn(&[u8])) {
    assert!(!seeds.is_empty());
    // As they are, they must pass too.
    seeds.iter().for_each(|seed| measured(target, seed));
    check!().with_type::<(u16, Vec<Change>)>().with_iterations(usize::MAX).with_test_time(time()).for_each(
        |(pick, changes)| {
            let changes = &changes[..changes.len().min(CHANGES)];
            measured(target, &damaged(seeds, usize::from(*pick), changes, INPUT_BYTES));
        },
    );
}

#[test]
fn rpc_decoder() {
    fuzz(&targets::rpc_seeds(), targets::rpc);
}

#[test]
fn journal_frames() {
    fuzz(&targets::frame_seeds(), targets::frames);
}

#[test]
fn job_specs() {
    fuzz(&targets::spec_seeds(), targets::specs);
}

#[test]
fn manifests() {
    fuzz(&targets::manifest_seeds(), targets::manifest);
}

#[test]
fn crontabs() {
    fuzz(&targets::crontab_seeds(), targets::crontab);
}

#[test]
fn cron_expressions() {
    fuzz(&targets::cron_seeds(), targets::cron);
}

/// The net has no holes of its own: a target that panics, and one that takes too much, are both seen.
#[test]
fn what_is_looked_for_is_found() {
    let caught = |target: fn(&[u8])| std::panic::catch_unwind(|| fuzz(&[b"seed".to_vec()], target)).is_err();
    assert!(caught(|input| assert!(input.len() < 64, "long")));
    assert!(caught(|input| drop(vec![1u8; if input.starts_with(b"seed") { 1 } else { MEMORY_BYTES + 1 }])));
}
