//! Hand-made histories: one that keeps every promise, and for each rule one with a seeded defect.
#![allow(clippy::unwrap_used)]

mod files;
mod green;
mod red_backfills;
mod red_bulks;
mod red_claims;
mod red_ends;
mod red_hooks;
mod red_ledger;
mod red_limits;
mod red_runs;
mod red_windows;
mod world;

use super::{Verdict, ViolationKind};

/// The verdict names a violation of this kind, perhaps with others that follow from it.
fn red(verdict: &Verdict, kind: ViolationKind) {
    assert!(!verdict.green, "wanted {kind:?}\n{verdict}");
    assert!(verdict.has(kind), "wanted {kind:?}\n{verdict}");
}

/// And it is the only one.
fn only(verdict: &Verdict, kind: ViolationKind) {
    red(verdict, kind);
    assert_eq!(verdict.found.len(), 1, "{verdict}");
}
