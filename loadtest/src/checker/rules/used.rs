//! If the callers of a run are there to use every operation, every operation must have been used.

use crate::checker::{Findings, History, ViolationKind};

pub fn check(history: &History, found: &mut Findings<'_>) {
    if history.meta.as_ref().is_some_and(|meta| meta.uses_all) {
        for text in found.counts.used.missing(&[]) {
            found.of_all(ViolationKind::NeverUsed, text);
        }
    }
}
