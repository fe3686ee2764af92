//! The world in which the ownership protocol is tried: `docs/ownership.md` says what is checked and how to run it.

mod ahead;
pub mod checks;
pub mod explore;
mod faults;
mod network;
mod node;
mod quota;
pub mod random;
mod shard;
pub mod store;
mod story;
pub mod table;
mod work;
pub mod world;
