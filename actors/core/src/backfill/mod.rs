//! The past of a job: what became of its instants, and which of them a backfill runs. Pure: the rows of the ledger are arguments.
//!
//! Files: `missing` which outcomes count as missing; `look` how rows and schedule together give the instants of a stretch; `rules` the
//! clauses of all this by name. How a job carries a backfill out is decided in `job/decide/backfill.rs`.

pub mod look;
pub mod missing;
pub mod rules;

pub use look::{Instants, Known, Past, Stretch, stretches};
pub use missing::{Wanted, Wish, is_due, is_missing};
pub use rules::Rule;
