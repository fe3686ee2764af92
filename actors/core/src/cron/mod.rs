//! Cron schedules: which instants are due.
//!
//! [`CronExpr`] is a compiled expression (64 bytes, no zone, no clock); [`CronSchedule`] puts one on the time line of a
//! zone with a daylight saving policy and answers three questions: what comes next, what fires next, how often does it
//! fire. All is pure: the same text, dialect, seed and zone database give the same instants on every node, for ever.
//!
//! Why our own: three million jobs need a compact form, the public crates disagree on weekdays, on `L W #`, on the two
//! day fields and on daylight saving, and some go back in time in an overlap. They are the oracles of the tests instead
//! (`tests/cron_differential.rs`), and the bytes of `schema/golden/cron*.jsonl` fix the meaning.
//!
//! Never here: reading a clock, misfires, jitter, pauses, windows (`startAt`), or any state.

mod calendar;
mod clock_changes;
mod cursor;
mod days;
mod describe;
mod error;
mod expr;
mod fields;
mod foreign;
mod hash;
mod hazards;
mod items;
mod local;
mod never;
mod parse;
mod schedule;
mod stretch;
mod zone;

pub use clock_changes::daylight_saving;
pub use describe::describe;
pub use error::{CronError, ZoneError};
pub use expr::CronExpr;
pub use foreign::go_duration;
pub use hazards::{clock_hazards, hazards};
pub use schedule::{CronSchedule, Occurrence, OccurrenceKind};
pub use zone::{Zones, find as find_zone, known_zone_names, tzdb_version, use_zones};
