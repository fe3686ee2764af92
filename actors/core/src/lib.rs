//! The pure part of Campanile: it decides what happens next, given a state, a command and a time.
//!
//! `decide(&job, command, ctx) -> Decision | Rejection` chooses events and effects. `apply(&mut job, event)` is defined
//! for every event and is all that replay uses. `pending(&job)` rebuilds the effects that a crash or a move of the
//! shard lost. Nothing here reads a clock, draws a random number, does I/O or waits.
#![forbid(unsafe_code)]

pub mod action;
pub mod agreement;
pub mod backfill;
mod breakable;
pub mod bulk;
pub mod calendar;
pub mod clock;
pub mod cron;
pub mod degradation;
pub mod dispatch;
#[cfg(feature = "faults")]
pub mod faults;
pub mod graph;
pub mod hooks;
pub mod job;
pub mod mix;
pub mod names;
mod once;
pub mod outbox;
pub mod ownership;
mod placeholder;
pub mod placement;
pub mod reject;
pub mod retry;
pub mod schedule;
pub mod shard;
pub mod spec;
pub mod wheel;
pub mod windows;
