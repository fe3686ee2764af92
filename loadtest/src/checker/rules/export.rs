//! The history must be whole before it can prove anything.

use crate::checker::{Findings, History, ViolationKind};

pub fn check(history: &History, found: &mut Findings<'_>) {
    match &history.meta {
        None => found.of_all(ViolationKind::ExportIncomplete, "meta.json is missing: the export did not finish"),
        Some(meta) if !meta.complete => found.of_all(ViolationKind::ExportIncomplete, "the export was cut short"),
        Some(_) => {}
    }
    if history.jobs.is_empty() {
        found.of_all(
            ViolationKind::ExportIncomplete,
            "no acknowledged job in any caller's file: there is nothing to check",
        );
    }
    if history.bodies.is_empty() {
        found.of_all(ViolationKind::ExportIncomplete, "no executor wrote a start: there is nothing to check");
    }
    for text in &history.damaged {
        found.of_all(ViolationKind::LogDamaged, text);
    }
}
