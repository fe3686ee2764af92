//! A run of a DAG as snapshots and records hold it. What follows from the states of the nodes is found out again: how the parents of
//! each node stand, which nodes may start, and how many run.

use super::{
    clauses::{Clause, kept},
    compile::Graph,
    node::Node,
    ready::Ready,
    run::{EdgeMark, GraphRun},
};
use campanile_schema::{
    graph::state::NodeState,
    payload::Payload,
    stored::graph::{StoredFailure, StoredGraphRun, StoredMark, StoredNodeRun},
};
use std::sync::Arc;

impl GraphRun {
    pub fn to_stored(&self) -> StoredGraphRun {
        let node = |node: &Node| StoredNodeRun {
            state: node.state(),
            generation: node.generation(),
            run: node.run(),
            marked: node.is_marked(),
            held: node.is_held(),
        };
        let mark = |(edge, mark): (&u32, &EdgeMark)| StoredMark {
            edge: *edge,
            fact: match mark {
                EdgeMark::Judged(fact) => Some(*fact),
                EdgeMark::Late => None,
            },
        };
        StoredGraphRun {
            nodes: self.nodes.iter().map(node).collect(),
            generation: self.generation,
            stops: self.stops,
            finished: self.finished,
            logical_ms: self.logical_ms,
            marks: self.marks.iter().map(mark).collect(),
            results: self.results.iter().map(|(node, result)| (*node, result.clone())).collect(),
            failures: self.failures.iter().map(|(node, why)| StoredFailure { node: *node, why: *why }).collect(),
            paused: self.paused.as_deref().filter(|_| kept(Clause::PauseIsStored)).cloned(),
        }
    }

    /// Of the graph that it had when it was stored. Of damaged bytes, what fits the graph.
    pub fn from_stored(graph: Arc<Graph>, stored: &StoredGraphRun) -> Self {
        let (nodes, edges) = (graph.nodes.len(), graph.edges.len() as u32);
        let marks = stored.marks.iter().filter(|mark| mark.edge < edges);
        let results = stored.results.iter().filter(|(node, _)| (*node as usize) < nodes);
        let failures = stored.failures.iter().filter(|failed| (failed.node as usize) < nodes);
        let mut run = Self::new(graph, stored.logical_ms);
        run.generation = stored.generation;
        run.stops = stored.stops;
        run.finished = stored.finished;
        run.paused = stored.paused.clone().map(Arc::new);
        run.marks =
            Arc::new(marks.map(|mark| (mark.edge, mark.fact.map_or(EdgeMark::Late, EdgeMark::Judged))).collect());
        run.results = Arc::new(results.cloned().collect());
        run.result_bytes = run.results.values().map(Payload::len).sum();
        run.failures = Arc::new(failures.map(|failed| (failed.node, failed.why)).collect());
        run.ready = Ready::new(nodes);
        (run.waiting, run.running) = (0, 0);
        for (node, stored) in run.nodes.iter_mut().zip(&stored.nodes) {
            node.restore(stored);
        }
        for node in 0..nodes as u32 {
            run.count(node);
        }
        for node in 0..nodes as u32 {
            run.look(node);
        }
        run
    }

    /// The node in the counters of the run and of the nodes behind it.
    fn count(&mut self, node: u32) {
        let state = self.node(node).state();
        self.waiting += u32::from(state == NodeState::Waiting);
        self.running += u32::from(state.has_run());
        let graph = Arc::clone(self.graph());
        for child in graph.children(node) {
            if let Some(part) = self.part(state, child.edge) {
                self.nodes[child.node as usize].count(part);
            }
        }
    }
}
