//! The topological order and the cycles of random graphs, judged by another way of looking: who can reach whom.

use crate::support::config;
use campanile_core::graph::order::{Links, topological};
use proptest::{collection::vec, prelude::*};
use std::collections::BTreeSet;

const NODES: u32 = 9;

/// Which node can reach which over at least one edge.
fn reach(pairs: &[(u32, u32)]) -> BTreeSet<(u32, u32)> {
    let mut reach: BTreeSet<(u32, u32)> = pairs.iter().copied().collect();
    for over in 0..NODES {
        for from in 0..NODES {
            for to in 0..NODES {
                if reach.contains(&(from, over)) && reach.contains(&(over, to)) {
                    reach.insert((from, to));
                }
            }
        }
    }
    reach
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn there_is_an_order_or_a_cycle_and_never_both(pairs in vec((0..NODES, 0..NODES), 0..20)) {
        let pairs: Vec<(u32, u32)> = pairs.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let reach = reach(&pairs);
        let circular: BTreeSet<u32> = (0..NODES).filter(|node| reach.contains(&(*node, *node))).collect();
        match topological(&Links::new(NODES as usize, &pairs)) {
            Ok(order) => {
                prop_assert!(circular.is_empty(), "{order:?} of {pairs:?}");
                let all: BTreeSet<u32> = order.iter().copied().collect();
                prop_assert_eq!(all.len(), NODES as usize, "each node");
                prop_assert_eq!(order.len(), NODES as usize, "once");
                let position = |node: u32| order.iter().position(|at| *at == node);
                for (from, to) in pairs {
                    prop_assert!(position(from) < position(to), "{from} -> {to} in {order:?}");
                }
            }
            Err(cycle) => {
                prop_assert!(!cycle.is_empty(), "{pairs:?}");
                let next = cycle.iter().cycle().skip(1);
                for edge in cycle.iter().copied().zip(next.copied()) {
                    prop_assert!(pairs.contains(&edge), "{edge:?} of {cycle:?} is no edge");
                }
                let named: BTreeSet<u32> = cycle.iter().copied().collect();
                prop_assert_eq!(named.len(), cycle.len(), "each node of it once");
                prop_assert!(named.is_subset(&circular), "{cycle:?}");
                prop_assert_eq!(cycle.first(), named.first(), "the lowest first");
            }
        }
    }
}

#[test]
fn nodes_without_an_order_among_them_keep_theirs() {
    assert_eq!(topological(&Links::new(4, &[])), Ok(vec![0, 1, 2, 3]));
    assert_eq!(topological(&Links::new(4, &[(3, 0), (2, 1)])), Ok(vec![2, 3, 1, 0]));
}
