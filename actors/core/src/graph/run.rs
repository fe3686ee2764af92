//! One run of a DAG: its state, and how each change alters it.
//!
//! [`GraphRun::apply`] is defined for every change and is all that replay needs. It keeps what would be slow to find out again: how the
//! parents of each node stand, and which nodes may start. So a node's end costs as many steps as it has children.

use super::{
    clauses::{Clause, kept},
    compile::Graph,
    node::{Node, ParentOutcome},
    ready::Ready,
    rules::{Verdict, verdict},
};
use campanile_schema::{
    graph::{
        change::{EdgeJudged, GraphChange, GraphPause},
        state::{EdgeFact, NodeFailure, NodeState, StopCause},
    },
    payload::Payload,
    record::RunState,
};
use std::{collections::BTreeMap, sync::Arc};

/// What an edge is besides what its parent's state says. Most edges are nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeMark {
    /// The condition is not true.
    Judged(EdgeFact),
    /// The parent failed when the node behind the edge had started, or had passed: that node did not run because of it.
    Late,
}

/// State of a run of a DAG.
#[derive(Clone, Debug)]
pub struct GraphRun {
    pub(super) graph: Arc<Graph>,
    /// Instant that the run stands for, ms.
    pub(super) logical_ms: Option<i64>,
    pub(super) generation: u32,
    /// Bits of [`StopCause`] codes.
    pub(super) stops: u8,
    pub(super) finished: Option<RunState>,
    pub(super) nodes: Vec<Node>,
    /// Waiting nodes whose rules are met.
    pub(super) ready: Ready,
    /// Nodes that wait.
    pub(super) waiting: u32,
    /// Nodes with a run that may be open.
    pub(super) running: u32,
    /// Shared with the run before a decision, which most decisions leave as they are.
    pub(super) marks: Arc<BTreeMap<u32, EdgeMark>>,
    pub(super) results: Arc<BTreeMap<u32, Payload>>,
    pub(super) result_bytes: usize,
    /// Why nodes are FAILED whose runs do not say so.
    pub(super) failures: Arc<BTreeMap<u32, NodeFailure>>,
    /// While a person has it paused.
    pub(super) paused: Option<Arc<GraphPause>>,
}

impl PartialEq for GraphRun {
    /// Of runs of the same graph.
    fn eq(&self, other: &Self) -> bool {
        let plain = |run: &Self| (run.logical_ms, run.generation, run.stops, run.finished, run.waiting, run.running);
        plain(self) == plain(other)
            && (&self.nodes, &self.ready, &self.marks) == (&other.nodes, &other.ready, &other.marks)
            && (&self.results, self.result_bytes, &self.failures, &self.paused)
                == (&other.results, other.result_bytes, &other.failures, &other.paused)
    }
}

impl GraphRun {
    /// A run of which nothing has started. `logical_ms`: the instant that it stands for.
    pub fn new(graph: Arc<Graph>, logical_ms: Option<i64>) -> Self {
        let count = graph.nodes.len();
        let mut run = Self {
            logical_ms,
            generation: 1,
            stops: 0,
            finished: None,
            nodes: vec![Node::new(); count],
            ready: Ready::new(count),
            waiting: count as u32,
            running: 0,
            marks: Arc::default(),
            results: Arc::default(),
            result_bytes: 0,
            failures: Arc::default(),
            paused: None,
            graph,
        };
        (0..count as u32).for_each(|node| run.look(node));
        run
    }

    /// How it ended; None: it goes on.
    pub fn finished(&self) -> Option<RunState> {
        self.finished
    }
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }
    /// Rises when the run goes on after it was final.
    pub fn generation(&self) -> u32 {
        self.generation
    }
    /// RUNNING, or how it ended.
    pub fn state(&self) -> RunState {
        self.finished.unwrap_or(RunState::Running)
    }
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }
    /// The result fields of a node that others read.
    pub fn result(&self, node: u32) -> Option<&Payload> {
        self.results.get(&node)
    }
    /// Why a node is FAILED, when its run does not say so.
    pub fn failure(&self, node: u32) -> Option<NodeFailure> {
        self.failures.get(&node).copied()
    }
    /// What the condition of an edge has said, when it was not true.
    pub fn fact(&self, edge: u32) -> Option<EdgeFact> {
        match self.marks.get(&edge)? {
            EdgeMark::Judged(fact) => Some(*fact),
            EdgeMark::Late => None,
        }
    }
    pub fn is_stopped(&self) -> bool {
        self.stops != 0
    }
    pub fn is_stopped_by(&self, cause: StopCause) -> bool {
        self.stops & 1 << cause.code() != 0
    }
    /// Set while no further node starts, because a person wants it so.
    pub fn paused(&self) -> Option<&GraphPause> {
        self.paused.as_deref()
    }
    /// Nodes with a run that may be open.
    pub fn running(&self) -> u32 {
        self.running
    }
    /// More nodes may start at once: the decision before reached its limit.
    pub fn wants_wake(&self) -> bool {
        let may_start = self.finished.is_none() && self.paused.is_none();
        may_start && !self.ready.is_empty() && self.running < self.graph.max_parallel
    }
    /// Nodes that wait, those that may start included.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Alters the state by one change. Nodes and edges that the graph does not have are passed over: only damaged bytes name them.
    pub fn apply(&mut self, change: &GraphChange) {
        match change {
            GraphChange::Started { nodes } => nodes.iter().for_each(|node| self.start(*node)),
            GraphChange::Taken { node, run, generation } => {
                if self.has(*node) {
                    self.set_state(*node, NodeState::Active);
                    let node = &mut self.nodes[*node as usize];
                    node.set_run(*run);
                    node.set_generation(*generation);
                }
            }
            GraphChange::Ended { node, generation, state, run, result, edges, failure } => {
                if self.has(*node) {
                    self.settle(*node, *state, edges);
                    let slot = &mut self.nodes[*node as usize];
                    slot.set_generation(*generation);
                    run.iter().for_each(|run| slot.set_run(*run));
                    if let Some(result) = result {
                        self.result_bytes += result.len();
                        Arc::make_mut(&mut self.results).insert(*node, result.clone());
                    }
                    if let Some(failure) = failure.filter(|failure| !failure.is_of_run()) {
                        Arc::make_mut(&mut self.failures).insert(*node, failure);
                    }
                }
            }
            GraphChange::Passed { nodes } => nodes.iter().for_each(|passed| {
                if self.has(passed.node) {
                    self.settle(passed.node, passed.state, &[]);
                }
            }),
            GraphChange::Stopped { cause } => self.stop(*cause),
            GraphChange::Reset { generation, nodes, .. } => self.reset(*generation, nodes),
            GraphChange::Marked { node, state, .. } => {
                if self.has(*node) {
                    self.unsettle(*node);
                    self.settle(*node, *state, &[]);
                    self.nodes[*node as usize].set_marked();
                }
            }
            GraphChange::Paused { pause } => self.paused = Some(Arc::new(pause.clone())),
            GraphChange::Resumed { .. } => self.paused = None,
            GraphChange::Finished { state } => (self.finished, self.paused) = (Some(*state), None),
        }
    }

    fn has(&self, node: u32) -> bool {
        (node as usize) < self.nodes.len()
    }

    fn set_state(&mut self, node: u32, state: NodeState) {
        let slot = &mut self.nodes[node as usize];
        let before = slot.state();
        slot.set_state(state);
        for (counted, sign) in [(before, false), (state, true)] {
            let counter = if counted == NodeState::Waiting {
                &mut self.waiting
            } else if counted.has_run() {
                &mut self.running
            } else {
                continue;
            };
            *counter = if sign { *counter + 1 } else { counter.saturating_sub(1) };
        }
        self.look(node);
    }

    /// Writes down whether the node may start.
    pub(super) fn look(&mut self, node: u32) {
        let ready = self.nodes[node as usize].state() == NodeState::Waiting && self.verdict(node) == Verdict::Run;
        self.ready.set(self.graph.position(node), ready);
    }

    /// What the rule of a node says about how its parents stand.
    pub fn verdict(&self, node: u32) -> Verdict {
        let parents = self.graph.parents(node).len() as u32;
        verdict(self.graph.node(node).rule, self.nodes[node as usize].counts(parents))
    }

    fn start(&mut self, node: u32) {
        if self.has(node) {
            let raised = u32::from(kept(Clause::RetryRaisesGeneration) || self.node(node).generation() == 0);
            let generation = self.node(node).generation() + raised;
            self.set_state(node, NodeState::Starting);
            self.nodes[node as usize].set_generation(generation);
        }
    }

    /// How a parent in this state counts over this edge; None while it is open.
    pub(super) fn part(&self, state: NodeState, edge: u32) -> Option<ParentOutcome> {
        let judged = self.fact(edge);
        let condition = |ok| match judged {
            None => ok,
            Some(EdgeFact::NotTaken) if kept(Clause::FalseConditionSkips) => ParentOutcome::Skipped,
            Some(EdgeFact::Broken) if kept(Clause::BrokenConditionFails) => ParentOutcome::Failed,
            Some(EdgeFact::Broken) => ParentOutcome::Skipped,
            Some(EdgeFact::NotTaken) => ok,
        };
        match state {
            NodeState::Waiting | NodeState::Starting | NodeState::Active => None,
            NodeState::Success => Some(condition(ParentOutcome::Ok)),
            NodeState::Failed => Some(condition(ParentOutcome::Failed)),
            NodeState::Canceled if kept(Clause::CanceledIsFailure) => Some(ParentOutcome::Failed),
            NodeState::UpstreamFailed if kept(Clause::UpstreamFailedIsFailure) => Some(ParentOutcome::Failed),
            NodeState::Canceled | NodeState::UpstreamFailed | NodeState::Skipped => Some(ParentOutcome::Skipped),
        }
    }

    /// A node has ended, in whichever way: its children count it.
    fn settle(&mut self, node: u32, state: NodeState, judged: &[EdgeJudged]) {
        for EdgeJudged { edge, fact } in judged {
            Arc::make_mut(&mut self.marks).insert(*edge, EdgeMark::Judged(*fact));
        }
        self.set_state(node, state);
        let graph = Arc::clone(&self.graph);
        for child in graph.children(node) {
            let Some(part) = self.part(state, child.edge) else { continue };
            if state.is_failure() && self.node(child.node).state() != NodeState::Waiting {
                Arc::make_mut(&mut self.marks).insert(child.edge, EdgeMark::Late);
            }
            self.nodes[child.node as usize].count(part);
            self.look(child.node);
        }
    }

    /// A node that had ended waits again: its children count it as open, and what it left is forgotten.
    fn unsettle(&mut self, node: u32) {
        let graph = Arc::clone(&self.graph);
        let state = self.node(node).state();
        for child in graph.children(node) {
            if let Some(part) = self.part(state, child.edge)
                && kept(Clause::CountsFollowReset)
            {
                self.nodes[child.node as usize].uncount(part);
            }
            self.unmark(child.edge);
        }
        for parent in graph.parents(node) {
            if self.marks.get(&parent.edge) == Some(&EdgeMark::Late) {
                self.unmark(parent.edge);
            }
        }
        if let Some(result) = self.results.get(&node).map(Payload::len)
            && kept(Clause::ResultForgotten)
        {
            self.result_bytes -= result;
            Arc::make_mut(&mut self.results).remove(&node);
        }
        if self.failures.contains_key(&node) {
            Arc::make_mut(&mut self.failures).remove(&node);
        }
        self.set_state(node, NodeState::Waiting);
        for child in graph.children(node) {
            self.look(child.node);
        }
    }

    fn unmark(&mut self, edge: u32) {
        if self.marks.contains_key(&edge) {
            Arc::make_mut(&mut self.marks).remove(&edge);
        }
    }

    /// All that waits is CANCELED, in the order of the graph.
    fn stop(&mut self, cause: StopCause) {
        self.stops |= 1 << cause.code();
        if cause == StopCause::FailFast && !kept(Clause::FailFastStops) {
            return;
        }
        let graph = Arc::clone(&self.graph);
        for node in graph.order() {
            if self.node(*node).state() == NodeState::Waiting {
                self.settle(*node, NodeState::Canceled, &[]);
                self.nodes[*node as usize].set_held();
            }
        }
    }

    fn reset(&mut self, generation: u32, nodes: &[u32]) {
        self.generation = generation;
        if self.finished.take().is_some() && kept(Clause::ReopenLiftsStop) {
            self.stops = 0;
            let held: Vec<u32> = (0..).zip(&self.nodes).filter(|(_, n)| n.is_held()).map(|(at, _)| at).collect();
            held.into_iter().for_each(|node| self.unsettle(node));
        }
        for node in nodes {
            if self.has(*node) && self.node(*node).state().is_final() {
                self.unsettle(*node);
            }
        }
    }
}
