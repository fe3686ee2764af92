//! The world in which the outbox is tried: two nodes, four shards, a durable store, a read model that lags, and a network that loses,
//! doubles, delays and reorders. ADR 0028 says what is checked and how to run it.

pub mod checks;
pub mod deliver;
#[cfg(feature = "faults")]
mod holes;
pub mod shard;
pub mod steps;
pub mod trouble;
pub mod world;
