//! A random DAG, and what happens in its world, from a seed.

use super::random::Random;
use campanile_core::graph::compile::{Graph, prepare};
use campanile_schema::{
    graph::{EdgeSpec, GraphSpec, NodeSpec, state::NodeRule},
    payload::Payload,
};
use std::sync::Arc;

/// Conditions that the reference understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    RowsPositive,
    /// It reads a field that no result has.
    AlwaysBroken,
    Never,
}

#[derive(Clone, Debug)]
pub struct PlanEdge {
    pub from: usize,
    pub to: usize,
    pub condition: Option<Condition>,
}

/// A DAG and the weather in its world.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub rules: Vec<NodeRule>,
    pub edges: Vec<PlanEdge>,
    /// The node whose `rows` a node's params read.
    pub reads: Vec<Option<usize>>,
    pub fail_fast: bool,
    pub max_parallel: usize,
    /// Nobody cancels, retries, marks or restores.
    pub undisturbed: bool,
    /// Runs that do not succeed, percent.
    pub failures: u64,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // Few are wide enough for the limit of one decision.
        let wide = seed % 40 == 39;
        let count = if wide { 66 + random.below(10) } else { 1 + random.below(9) };
        let density = *random.pick(&[15, 30, 50, 80]);
        // Edges lead from lower to higher numbers of a random order, so that places and topological order differ.
        let mut order: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            order.swap(at, random.below(at + 1));
        }
        let mut edges = Vec::new();
        for to in 0..count {
            for from in 0..to {
                if !wide && random.percent(density) || wide && to == count - 1 && from < 3 {
                    let condition = match random.below(10) {
                        0 | 1 => Some(Condition::RowsPositive),
                        2 if random.percent(30) => Some(Condition::AlwaysBroken),
                        2 if random.percent(30) => Some(Condition::Never),
                        _ => None,
                    };
                    edges.push(PlanEdge { from: order[from], to: order[to], condition });
                }
            }
        }
        let mut rules = Vec::new();
        let mut reads = Vec::new();
        for node in 0..count {
            let parents: Vec<usize> = edges.iter().filter(|edge| edge.to == node).map(|edge| edge.from).collect();
            let mixed = *random.pick(NodeRule::ALL);
            let rootless = matches!(mixed, NodeRule::AnySuccess | NodeRule::AnyFailed) && parents.is_empty();
            rules.push(if rootless || random.percent(25) { NodeRule::AllSuccess } else { mixed });
            reads.push((!parents.is_empty() && random.percent(15)).then(|| *random.pick(&parents)));
        }
        let fail_fast = random.percent(25);
        let max_parallel = if random.percent(35) { 1 + random.below(3) } else { 1_000 };
        let undisturbed = random.percent(35);
        let failures = *random.pick(&[5, 30, 60]);
        Self { seed, rules, edges, reads, fail_fast, max_parallel, undisturbed, failures }
    }

    pub fn graph(&self) -> Arc<Graph> {
        let id = |node: usize| format!("n{node}");
        let node = |(at, rule): (usize, &NodeRule)| {
            let mut node = NodeSpec::new(&id(at), "job");
            node.rule = *rule;
            if let Some(from) = self.reads[at] {
                node.params = Payload(format!(r#"{{"rows":"{{{{nodes.n{from}.result.rows}}}}"}}"#));
            }
            node
        };
        let edge = |edge: &PlanEdge| {
            let when = edge.condition.map(|condition| match condition {
                Condition::RowsPositive => "parent.result.rows > 0".to_owned(),
                Condition::AlwaysBroken => "parent.result.nothing == 1".to_owned(),
                Condition::Never => "false".to_owned(),
            });
            EdgeSpec { from: id(edge.from), to: id(edge.to), when }
        };
        let nodes = self.rules.iter().enumerate().map(node).collect();
        let mut spec = GraphSpec::new(nodes, self.edges.iter().map(edge).collect());
        (spec.fail_fast, spec.max_parallel) = (self.fail_fast, self.max_parallel as u32);
        Arc::new(prepare(&spec).unwrap().1)
    }
}
