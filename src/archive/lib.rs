//! Archives: everything of a store in one stream of bytes, as of one moment. `store backup` writes one, `store restore`,
//! `verify`, `dump` and `migrate` read it. The form is told in `docs/backup.md`.
//!
//! An archive holds the newest snapshots of all shards, the journal behind them up to the cut, and the rows of the read model that
//! the journal does not bring: what a start after a crash has. Restoring is recovery, in another place.
//!
//! `days` are days of history in files of their own, made of the same blocks.
//!
//! What it never holds: keys that open sealed secrets, tokens, configuration.

#![forbid(unsafe_code)]

pub mod days;
pub mod directory;
pub mod dump;
mod image;
pub mod migrate;
mod report;
pub mod restore;
#[cfg(test)]
mod traced;

pub use image::{Image, Sink};
pub use report::Report;
