//! Hand-made histories: one that keeps every promise, and for each rule one with a seeded defect.
#![allow(clippy::unwrap_used)]

mod files;
mod green;
mod red_ledger;
mod red_limits;
mod red_runs;
mod world;
