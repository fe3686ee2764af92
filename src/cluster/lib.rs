//! The nodes of a cluster: which nodes are alive ([`membership`]), and calls from node to node ([`gateway`]).
//!
//! Never here: who owns a shard. The store's rows decide that ([`campanile_core::ownership`]); this crate has only
//! hints and a way to call.

#![forbid(unsafe_code)]

pub mod admin;
pub mod answering;
#[cfg(test)]
mod earlier_release;
pub mod gateway;
#[cfg(test)]
#[path = "../../schema/tests/golden_forms/mod.rs"]
mod golden_forms;
pub mod keys;
pub mod membership;
pub mod peers;
pub mod self_announcer;

pub use admin::owning;

use campanile_core::placement::NodeId;
use sha2::{Digest, Sha256};

/// The id of the node with that name: the same on every machine, in every release. Not 0.
pub fn node_id(name: &str) -> NodeId {
    let hash = Sha256::digest(name.as_bytes());
    let first = hash.iter().take(8).fold(0, |id: u64, byte| id << 8 | u64::from(*byte));
    NodeId(first.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nodes_id_never_changes() {
        assert_eq!(node_id("campanile"), NodeId(4_085_151_232_395_172_916));
        assert_ne!(node_id("a"), node_id("b"));
    }
}
