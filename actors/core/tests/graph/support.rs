//! Short forms for DAGs and their runs in tests.

use campanile_core::graph::{
    compile::{Graph, prepare},
    run::GraphRun,
    step::{EndState, GraphCommand, GraphDecision, GraphEffect, NodeEnd},
};
use campanile_schema::{
    graph::state::NodeState,
    graph::{EdgeSpec, GraphSpec, NodeSpec, state::NodeRule},
    ids::RunId,
    payload::Payload,
};
use std::sync::Arc;

/// `"A>B B>C"`: nodes in the order in which they are named.
pub fn spec(edges: &str) -> GraphSpec {
    let mut nodes: Vec<NodeSpec> = Vec::new();
    let mut list = Vec::new();
    for word in edges.split_whitespace() {
        let ends: Vec<&str> = word.split('>').collect();
        for id in &ends {
            if !nodes.iter().any(|node| node.id == *id) {
                nodes.push(NodeSpec::new(id, &format!("jobs/{id}")));
            }
        }
        list.extend(ends.windows(2).map(|pair| EdgeSpec::new(pair[0], pair[1])));
    }
    GraphSpec::new(nodes, list)
}

/// Sets a node's rule.
pub fn rule(spec: &mut GraphSpec, id: &str, rule: NodeRule) {
    spec.nodes.iter_mut().find(|node| node.id == id).unwrap().rule = rule;
}

pub fn when(spec: &mut GraphSpec, from: &str, to: &str, when: &str) {
    spec.edges.iter_mut().find(|edge| edge.from == from && edge.to == to).unwrap().when = Some(when.to_owned());
}

pub fn params(spec: &mut GraphSpec, id: &str, json: &str) {
    spec.nodes.iter_mut().find(|node| node.id == id).unwrap().params = Payload(json.to_owned());
}

pub fn compiled(spec: &GraphSpec) -> Arc<Graph> {
    Arc::new(prepare(spec).unwrap().1)
}

/// A run told by the ids of its nodes.
pub struct Story {
    pub run: GraphRun,
}

impl Story {
    /// Begun.
    pub fn new(spec: &GraphSpec) -> (Self, GraphDecision) {
        let mut story = Self { run: GraphRun::new(compiled(spec), Some(1_782_000_000_000)) };
        let begun = story.run.step(&GraphCommand::Wake).unwrap();
        (story, begun)
    }

    pub fn place(&self, id: &str) -> u32 {
        self.run.graph().find(id).unwrap()
    }

    pub fn end_as(&mut self, id: &str, state: EndState, result: Option<&str>) -> GraphDecision {
        let node = self.place(id);
        let generation = self.run.node(node).generation();
        let result = result.map(|json| Payload(json.to_owned()));
        self.run.step(&GraphCommand::End(NodeEnd { node, generation, run: RunId(7), state, result })).unwrap()
    }

    pub fn ok(&mut self, id: &str) -> GraphDecision {
        self.end_as(id, EndState::Success, None)
    }

    pub fn failed(&mut self, id: &str) -> GraphDecision {
        self.end_as(id, EndState::Failed, None)
    }

    pub fn retry(&mut self, id: &str, and_after: bool) -> GraphDecision {
        let nodes = vec![self.place(id)];
        self.run.step(&GraphCommand::Retry { nodes, and_after, by: None, reason: None }).unwrap()
    }

    /// `A SUCCESS, B WAITING`.
    pub fn states(&self) -> String {
        let nodes = self.run.graph().nodes.iter().zip(self.run.nodes());
        nodes.map(|(of, node)| format!("{} {}", of.id, node.state())).collect::<Vec<_>>().join(", ")
    }

    pub fn state(&self, id: &str) -> NodeState {
        self.run.node(self.place(id)).state()
    }

    /// Ids of nodes whose starts (generations after them) are sent.
    pub fn starts(&self, decision: &GraphDecision) -> String {
        let id = |node: u32| &self.run.graph().node(node).id;
        let starts = decision.effects.iter().filter_map(|effect| match *effect {
            GraphEffect::Start { node, generation } => Some(format!("{}/{generation}", id(node))),
            GraphEffect::Cancel { .. } => None,
        });
        starts.collect::<Vec<_>>().join(" ")
    }

    pub fn cancels(&self, decision: &GraphDecision) -> String {
        let id = |node: u32| &self.run.graph().node(node).id;
        let cancels = decision.effects.iter().filter_map(|effect| match *effect {
            GraphEffect::Cancel { node, generation } => Some(format!("{}/{generation}", id(node))),
            GraphEffect::Start { .. } => None,
        });
        cancels.collect::<Vec<_>>().join(" ")
    }
}
