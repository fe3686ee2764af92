//! One whole node: triggers, policies, quotas, lost executors, backups, and trouble that it must survive.
#![allow(clippy::unwrap_used)]

mod audit;
mod backfill;
mod backup;
mod bulk;
mod calendars;
mod dag;
mod degradation;
mod earlier_release;
mod executors;
mod explain;
mod frozen;
mod hook_kinds;
mod hooks;
mod lists;
mod one_node;
mod pauses;
mod policies;
#[path = "../cli/program.rs"]
mod program;
mod quotas;
#[path = "../support/mod.rs"]
mod support;
mod targets;
mod time_limits;
mod traces;
mod trouble;
mod versions;
mod waiting_runs;
mod windows;
