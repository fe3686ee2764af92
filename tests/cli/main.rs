//! The binary as people and scripts use it: what needs no node, and a whole session against `campanile dev`.
#![allow(clippy::unwrap_used)]

mod alone;
mod apply;
mod bench;
mod bodies;
mod bulk;
mod crontab_debian;
mod dev;
mod dry_run;
mod edit;
mod files;
mod foreign_schedules;
mod imports;
mod json;
mod live;
mod on_terminals;
mod plan;
mod program;
mod quickstart;
mod snapshots;
mod taken_back;
mod terminal;
mod tokens;
mod unkillable;
mod watch;
mod written_elsewhere;
mod zones;
