//! Tests of the core, in one program, because each program is linked by itself. `faults.rs` is another, since its switches are the
//! process's.
#![allow(clippy::unwrap_used)]

mod attempts;
mod backfill;
mod backfill_world;
mod bulk;
mod bulk_world;
mod calendar_jobs;
#[cfg(feature = "faults")]
mod calendars;
mod checkers;
mod claims;
mod cron_clock_changes;
mod cron_differential;
mod cron_golden;
mod cron_meaning;
mod cron_model;
mod cron_properties;
mod cron_timeline;
mod dag_jobs;
mod dag_world;
mod dispatch;
mod dispatch_model;
mod forms;
#[path = "../../../schema/tests/golden_forms/mod.rs"]
mod golden_forms;
mod graph;
mod hooks;
mod hot;
mod ledger;
mod outbox;
mod outbox_model;
mod ownership;
mod ownership_holes;
mod ownership_model;
mod pauses;
mod placement;
mod placement_checks;
mod priority;
mod replay;
mod restore;
mod schedule;
mod support;
mod table;
mod time_limits;
#[cfg(feature = "faults")]
mod windows;
