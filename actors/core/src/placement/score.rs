//! The score of a node for a shard. It must never change: nodes of two releases must agree, and another value would
//! move shards.

use super::NodeId;
use crate::mix::mix;
use campanile_schema::ids::ShardId;
use std::num::NonZeroU8;

/// "placement", so that equal numbers of nodes and shards have nothing in common.
const SHARD_SALT: u64 = 0x706c_6163_656d_656e;

/// Rendezvous score, higher is better: the best of as many tickets as the node weighs. So a node is the first choice of a shard
/// with a probability in proportion to its weight, and a higher weight lowers none of its scores.
pub fn score(node: NodeId, weight: NonZeroU8, shard: ShardId) -> u64 {
    let (node, shard) = (mix(node.0), mix(u64::from(shard.0) ^ SHARD_SALT));
    let ticket = |number: u8| mix(mix(node.wrapping_add(u64::from(number))) ^ shard);
    (1..weight.get()).map(ticket).fold(ticket(0), u64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed apart from this code, by a script: node, weight, shard, score.
    const FIXED: [(u64, u8, u16, u64); 7] = [
        (0x0, 1, 0, 0x59c75a2226aaf553),
        (0x1, 1, 0, 0x5294122b0991200c),
        (0x1, 1, 1, 0x6e64ed15e93cee7b),
        (0x7, 1, 1_023, 0xa275d3431b2a5b38),
        (0x7, 4, 1_023, 0xf45f4b1750eb1e07),
        (0xffffffffffffffff, 1, 4_095, 0x19ca4dae072fc437),
        (0x123456789abcdef, 255, 255, 0xfed89761faed97d8),
    ];

    #[test]
    fn scores_never_change() {
        for (node, weight, shard, fixed) in FIXED {
            let weight = NonZeroU8::new(weight).unwrap();
            assert_eq!(
                score(NodeId(node), weight, ShardId(shard)),
                fixed,
                "node {node} of weight {weight}, shard {shard}"
            );
        }
    }

    #[test]
    fn a_node_that_weighs_more_loses_no_score() {
        let of = |weight, shard| score(NodeId(5), NonZeroU8::new(weight).unwrap(), ShardId(shard));
        for shard in 0..256 {
            assert!((1..255).all(|weight| of(weight, shard) <= of(weight + 1, shard)));
        }
    }
}
