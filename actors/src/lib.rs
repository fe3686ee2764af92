//! The actors and tasks around the core. The ports that they need of a store are in `campanile-ports`.
//!
//! The path of a trigger (`docs/ARCHITECTURE.md`): `session` (tick) -> `shard` (wheel, `activate`) -> `job` (decide) ->
//! `shard::append` -> `journal` -> effects -> `quota` -> `pool` -> `job` (start) -> executor -> `scheduler` (finish) ->
//! `job` -> `projector`. A call enters at `scheduler` and goes through `ask` to the shard.
//!
//! `wiring` makes the values that the tasks of one session share and gives each task those that it needs. Modules
//! import each other one way, except a parent and its child (`tests/tidy`).
#![forbid(unsafe_code)]

pub mod ask;
mod backfill;
mod bulk;
mod calendars;
pub mod call_error;
pub mod calls;
pub mod changes;
mod chunks;
pub mod cluster;
pub mod cluster_events;
pub mod cluster_query;
mod degradation;
pub mod delivery_window;
pub mod disk_pressure;
mod disk_space;
mod fan_out;
pub mod filter;
#[cfg(test)]
mod forms_tests;
pub mod handles;
pub mod health;
pub mod identity;
mod job;
pub mod journal;
pub mod lending;
pub mod maintenance;
pub mod measure;
pub mod messages;
pub mod owner;
pub mod pauses;
mod pool;
pub mod pool_handle;
pub mod projector;
mod quota;
pub mod record_id;
pub mod scheduler;
pub mod session;
mod shard;
pub mod shard_map;
pub mod shared_store;
pub mod shutdown;
mod tenants;
pub mod time;
pub mod waiting_results;
mod wiring;

/// Shards that nobody serves, for backups and restores.
pub mod at_rest {
    pub use crate::shard::{at_rest::Since, load::Loaded};
}
