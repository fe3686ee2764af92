//! What moves when a node joins or leaves, in parts of what has to.
//!
//! When a node leaves, its shards have to move. When one joins, its fair part has to: shards / nodes. The joiner gets up to 1.05 of
//! that and more by rounding, so its factor is told a little too high.

use super::{drawn, loads, moved, open};
use campanile_core::placement::{Member, NodeId, Owners, place};

/// Factors over many changes.
#[derive(Default)]
struct Factors {
    sum: f64,
    count: u32,
    max: f64,
}

impl Factors {
    fn add(&mut self, moved: usize, had_to: f64) {
        let factor = moved as f64 / had_to;
        self.sum += factor;
        self.count += 1;
        self.max = self.max.max(factor);
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count)
    }
}

/// Shards, nodes, and the highest mean and the highest single factor that were measured, rounded up.
const MEASURED: [(u16, usize, f64, f64); 12] = [
    (256, 3, 1.02, 1.1),
    (256, 5, 1.08, 1.2),
    (256, 8, 1.14, 1.45),
    (256, 12, 1.22, 1.5),
    (1_024, 3, 1.02, 1.1),
    (1_024, 12, 1.11, 1.25),
    (1_024, 20, 1.25, 1.5),
    (1_024, 32, 1.36, 1.7),
    (1_024, 50, 1.56, 2.1),
    (2_048, 50, 1.42, 1.75),
    (4_096, 12, 1.03, 1.1),
    (4_096, 50, 1.25, 1.4),
];

/// Nodes of a cluster leave one after another, each from the full one; seen from the other side, they join it.
#[test]
fn few_shards_move_beyond_those_that_must() {
    println!("| shards | nodes | most on a node, cap | leave: mean, max | join: mean, max |\n|---|---|---|---|---|");
    for (shards, nodes, mean, max) in MEASURED {
        let (mut leaves, mut joins, mut highest) = (Factors::default(), Factors::default(), 0);
        for seed in 0..6 {
            let members = open(nodes, &mut (seed * 1_000_003));
            let full = place(shards, &members, &Owners::new());
            let loads = loads(&full);
            highest = highest.max(*loads.values().max().unwrap());
            for at in 0..nodes.min(10) {
                let mut fewer = members.clone();
                let left = fewer.swap_remove(at).node;
                let without = place(shards, &fewer, &Owners::new());
                leaves.add(moved(&full, &without), loads[&left] as f64);
                joins.add(moved(&without, &full), f64::from(shards) / nodes as f64);
            }
        }
        let cap = campanile_core::placement::cap(usize::from(shards), 1, nodes as u64);
        println!(
            "| {shards} | {nodes} | {highest}, {cap} | {:.2}, {:.2} | {:.2}, {:.2} |",
            leaves.mean(),
            leaves.max,
            joins.mean(),
            joins.max
        );
        for factors in [leaves, joins] {
            assert!(factors.mean() <= mean, "{shards} shards, {nodes} nodes: mean {:.3}", factors.mean());
            assert!(factors.max <= max, "{shards} shards, {nodes} nodes: max {:.3}", factors.max);
        }
    }
}

/// A cluster of 1,024 shards that grows and shrinks between 3 and 30 nodes for 300 changes.
#[test]
fn a_history_of_joins_and_leaves_moves_little() {
    let mut seed = 42;
    let mut members = open(12, &mut seed);
    let mut now = place(1_024, &members, &Owners::new());
    let mut factors = Factors::default();
    for _ in 0..300 {
        let joins = members.len() <= 3 || members.len() < 30 && drawn(&mut seed).is_multiple_of(2);
        let had_to = if joins {
            members.push(Member::open(NodeId(drawn(&mut seed))));
            1_024. / members.len() as f64
        } else {
            let left = members.swap_remove(drawn(&mut seed) as usize % members.len());
            loads(&now)[&left.node] as f64
        };
        let next = place(1_024, &members, &Owners::new());
        factors.add(moved(&now, &next), had_to);
        now = next;
    }
    println!("300 changes of 1,024 shards on 3 to 30 nodes: mean {:.2}, max {:.2}", factors.mean(), factors.max);
    assert!(factors.mean() <= 1.5);
}
