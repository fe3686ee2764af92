//! Bulk operations: one change for all jobs or runs that a filter names. Pure: the home shard of an operation holds a small record of it,
//! and a driver beside that shard does the items, page by page.
//!
//! A page is written down before its items are done, and again when they were done. Whoever carries the operation on after a crash, or
//! after the home shard has moved, therefore finds the page that may have been done in part, and does it once more. That changes nothing
//! where it was done: a job knows the operation that paused or resumed it, a trigger has a key, and a run is run again only in the
//! generation that the page names.
//!
//! Files: `decide` what a call changes; `apply` how events change a record; `rules` the clauses by name, which the tests break one by one.
//! What an operation does with a job is in `job/bulk.rs`. ADR 0037 has the reasons.

mod apply;
mod decide;
pub mod rules;

pub use apply::apply;
pub use decide::{abort, begin, create, forget, key, look, moved, proceed, report, restored, undo, work};

use campanile_schema::{ids::BulkId, stored::bulk::StoredBulk};
use std::collections::BTreeMap;

/// The records of a shard.
pub type Bulks = BTreeMap<BulkId, StoredBulk>;
