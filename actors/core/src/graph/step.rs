//! What happens next in a run of a DAG: a command in, changes and messages out.
//!
//! [`GraphRun::step`] differs in one point from `decide` of a job: it applies its changes as it makes them, by the same
//! [`GraphRun::apply`] as replay does. What becomes of a node may depend on what has just become of its parent, and a copy of a
//! thousand nodes for each end would cost more than the end. A rejected command has changed nothing. After a panic the state may be half
//! changed: whoever holds it builds it anew from what is durable, as for a job.

use super::{
    clauses::{Clause, kept},
    compile::Graph,
    condition::Parent,
    node::GENERATIONS,
    rules::Verdict,
    run::GraphRun,
};
use crate::reject::Rejection;
use campanile_schema::{
    error::ErrorCode,
    graph::{
        change::{EdgeJudged, GraphChange, GraphPause, NodePassed},
        state::{EdgeFact, NodeFailure, NodeState, StopCause},
    },
    ids::RunId,
    limits,
    payload::Payload,
    text::Text,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// What a run of a DAG is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum GraphCommand {
    /// Begins the run, or goes on with starts that the decision before left over.
    Wake,
    /// The node's job answered that the run is there, in this generation, and not final.
    Taken { node: u32, generation: u32, run: RunId },
    /// The node's run will never be there: its job refused it for good, or could not be reached.
    Lost { node: u32, generation: u32, why: NodeFailure },
    /// The node's run has ended.
    End(NodeEnd),
    /// A person cancels the run.
    Cancel,
    /// The timeout of the whole run has passed.
    Timeout,
    /// Runs these nodes again, and with `and_after` all that comes after them. A run that was final goes on.
    Retry { nodes: Vec<u32>, and_after: bool, by: Option<Text>, reason: Option<String> },
    /// A person sets the state of a node, SUCCESS or SKIPPED. A run that was final goes on.
    Mark { node: u32, state: NodeState, by: Option<Text>, reason: Option<String> },
    /// A person lets no further node start.
    Pause(GraphPause),
    /// ... until this.
    Resume { by: Option<Text>, reason: Option<String> },
}

/// The end of a node's run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeEnd {
    pub node: u32,
    pub generation: u32,
    pub run: RunId,
    pub state: EndState,
    /// The result, or only the fields of it that the DAG reads.
    pub result: Option<Payload>,
}

/// How a run of a node can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndState {
    Success,
    Failed,
    Timeout,
    Canceled,
}

/// A message to the job of a node. It names ids only; [`GraphRun::start_body`] builds the rest when it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphEffect {
    /// Make the run of this key, in this generation.
    Start { node: u32, generation: u32 },
    /// End the run of this key, in this generation; make it CANCELED if it is not there.
    Cancel { node: u32, generation: u32 },
}

/// What came of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphDecision {
    /// Already applied; to be stored in this order. None: nothing happened.
    pub changes: Vec<GraphChange>,
    /// To be sent when the changes are durable.
    pub effects: Vec<GraphEffect>,
    /// More nodes may start: wake the run at once.
    pub wake: bool,
}

/// A step under way.
pub(super) struct Turn<'r> {
    pub run: &'r mut GraphRun,
    pub graph: Arc<Graph>,
    pub decision: GraphDecision,
    /// Nodes that have a parent that has just ended.
    pub dirty: VecDeque<u32>,
    /// A node failed in this step, or a condition broke.
    failed: bool,
}

pub(super) fn illegal(message: impl Into<String>) -> Rejection {
    Rejection::new(ErrorCode::IllegalState, message)
}

impl GraphRun {
    /// Decides and applies. A rejection has changed nothing.
    pub fn step(&mut self, command: &GraphCommand) -> Result<GraphDecision, Rejection> {
        let graph = Arc::clone(&self.graph);
        let mut turn =
            Turn { run: self, graph, decision: GraphDecision::default(), dirty: VecDeque::new(), failed: false };
        match command {
            GraphCommand::Wake => {}
            GraphCommand::Taken { node, generation, run } => turn.taken(*node, *generation, *run),
            GraphCommand::Lost { node, generation, why } => turn.lost(*node, *generation, *why),
            GraphCommand::End(end) => turn.ended(end),
            GraphCommand::Cancel => turn.cancel()?,
            GraphCommand::Timeout => turn.stop(StopCause::Timeout),
            GraphCommand::Retry { nodes, and_after, by, reason } => turn.retry(nodes, *and_after, by, reason)?,
            GraphCommand::Mark { node, state, by, reason } => turn.mark(*node, *state, by, reason)?,
            GraphCommand::Pause(pause) => turn.pause(pause)?,
            GraphCommand::Resume { by, reason } => {
                turn.resume(by, reason)?;
                if !kept(Clause::ResumeStarts) {
                    return Ok(turn.decision);
                }
            }
        }
        turn.go_on();
        Ok(turn.decision)
    }

    /// The messages that a run owes after a restart or a move, whatever was sent before. All of them may be repeated.
    pub fn pending(&self) -> Vec<GraphEffect> {
        let owed = (0..).zip(&self.nodes).filter_map(|(at, node)| {
            let generation = node.generation();
            match (node.state(), self.is_stopped()) {
                (NodeState::Starting | NodeState::Active, true) => {
                    kept(Clause::PendingCancels).then_some(GraphEffect::Cancel { node: at, generation })
                }
                (NodeState::Starting, false) => {
                    kept(Clause::PendingStarts).then_some(GraphEffect::Start { node: at, generation })
                }
                _ => None,
            }
        });
        owed.collect()
    }
}

impl Turn<'_> {
    /// Applies a change and keeps it.
    pub fn record(&mut self, change: GraphChange) {
        self.run.apply(&change);
        self.decision.changes.push(change);
    }

    fn known(&self, node: u32) -> bool {
        (node as usize) < self.run.nodes.len()
    }

    pub fn state(&self, node: u32) -> NodeState {
        self.run.node(node).state()
    }

    fn taken(&mut self, node: u32, generation: u32, run: RunId) {
        let fits = self.known(node) && generation <= GENERATIONS && self.state(node) == NodeState::Starting;
        // A lower one is about to end, and then the node's run is asked for again.
        if fits && generation >= self.run.node(node).generation() {
            self.record(GraphChange::Taken { node, run, generation });
        }
    }

    fn lost(&mut self, node: u32, generation: u32, why: NodeFailure) {
        if self.known(node) && self.state(node).has_run() && generation == self.run.node(node).generation() {
            self.end(node, generation, NodeState::Failed, Some(why), None, None);
        }
    }

    fn ended(&mut self, end: &NodeEnd) {
        let NodeEnd { node, generation, run, state, .. } = *end;
        if !self.known(node) || generation > GENERATIONS {
            return;
        }
        let (own, now) = (self.run.node(node).generation(), self.state(node));
        if now.is_final() && !kept(Clause::DoubledEndIgnored) && generation >= own {
            return self.again(end);
        }
        if !now.has_run() {
            return;
        }
        if generation < own && kept(Clause::StaleEndIgnored) {
            if now == NodeState::Starting && kept(Clause::StaleEndAsksAgain) {
                let effect = match self.run.is_stopped() {
                    true => GraphEffect::Cancel { node, generation: own },
                    false => GraphEffect::Start { node, generation: own },
                };
                self.decision.effects.push(effect);
            }
            return;
        }
        if generation > own && !kept(Clause::LaterGenerationAdopted) {
            return;
        }
        let (state, failure, result) = match state {
            EndState::Success => match self.kept_result(node, end.result.as_ref()) {
                Ok(result) => (NodeState::Success, None, result),
                Err(failure) => (NodeState::Failed, Some(failure), None),
            },
            EndState::Failed => (NodeState::Failed, Some(NodeFailure::Run), None),
            EndState::Timeout => (NodeState::Failed, Some(NodeFailure::Timeout), None),
            EndState::Canceled => (NodeState::Canceled, None, None),
        };
        self.end(node, generation, state, failure, Some(run), result);
    }

    /// The defect that [`Clause::DoubledEndIgnored`] is there against: the node ends once more.
    fn again(&mut self, end: &NodeEnd) {
        let state = if end.state == EndState::Success { NodeState::Success } else { NodeState::Failed };
        self.end(end.node, end.generation, state, None, Some(end.run), None);
    }

    /// The fields of a result that are read, within the limits.
    fn kept_result(&self, node: u32, result: Option<&Payload>) -> Result<Option<Payload>, NodeFailure> {
        let fields = &self.graph.node(node).fields;
        let Some(result) = result.filter(|_| !fields.is_empty()) else { return Ok(None) };
        let Some(kept_fields) = fields.take(&result.to_value()) else { return Ok(None) };
        let result = Payload::from_value(&kept_fields);
        let over_node = result.len() > limits::NODE_RESULT_BYTES && kept(Clause::NodeResultLimit);
        let sum = self.run.result_bytes + result.len();
        if over_node || (sum > limits::GRAPH_RESULT_BYTES && kept(Clause::RunResultLimit)) {
            return Err(NodeFailure::ResultTooLarge);
        }
        Ok(Some(result))
    }

    /// Ends a node, with or without a run.
    pub fn end(
        &mut self,
        node: u32,
        generation: u32,
        state: NodeState,
        failure: Option<NodeFailure>,
        run: Option<RunId>,
        result: Option<Payload>,
    ) {
        let asked = state == NodeState::Success || !kept(Clause::ConditionNeedsSuccess);
        let edges = if asked { self.judged(node, result.as_ref()) } else { Vec::new() };
        // Nodes that pass are not counted: after a retry they may pass because of a failure that is old.
        self.failed |= state.is_failure() || edges.iter().any(|judged| judged.fact == EdgeFact::Broken);
        self.record(GraphChange::Ended { node, generation, state, failure, run, result, edges });
        self.note(node);
    }

    /// The edges behind a node whose conditions are not true.
    fn judged(&self, node: u32, result: Option<&Payload>) -> Vec<EdgeJudged> {
        let (mut parent, mut asked) = (None, HashMap::new());
        let links = self.graph.children(node).iter();
        let judged = links.filter_map(|link| {
            let condition = self.graph.edges[link.edge as usize].condition.as_ref()?;
            let parent = parent
                .get_or_insert_with(|| Parent::new(&result.map_or_else(|| serde_json::json!({}), Payload::to_value)));
            // Edges with one text share one condition.
            let fact = *asked.entry(Arc::as_ptr(condition)).or_insert_with(|| match condition.evaluate(parent) {
                Ok(true) => None,
                Ok(false) => Some(EdgeFact::NotTaken),
                Err(_) => Some(EdgeFact::Broken),
            });
            fact.map(|fact| EdgeJudged { edge: link.edge, fact })
        });
        judged.collect()
    }

    /// A node has ended: its children are to be looked at.
    pub fn note(&mut self, node: u32) {
        self.dirty.extend(self.graph.children(node).iter().map(|child| child.node));
    }

    fn cancel(&mut self) -> Result<(), Rejection> {
        if let Some(state) = self.run.finished {
            return Err(illegal(format!("the DAG run is {state}")));
        }
        self.stop(StopCause::Cancel);
        Ok(())
    }

    /// Stops the run, once for each cause; the first one cancels what runs.
    fn stop(&mut self, cause: StopCause) {
        if self.run.finished.is_some() || self.run.is_stopped_by(cause) {
            return;
        }
        if !self.run.is_stopped() && (cause != StopCause::FailFast || kept(Clause::FailFastCancels)) {
            let running = (0..).zip(&self.run.nodes).filter(|(_, node)| match node.state() {
                NodeState::Starting => kept(Clause::CancelReachesStarting),
                state => state.has_run(),
            });
            let cancels = running.map(|(node, slot)| GraphEffect::Cancel { node, generation: slot.generation() });
            self.decision.effects.extend(cancels);
        }
        self.record(GraphChange::Stopped { cause });
        self.dirty.clear();
    }

    /// Everything that follows: nodes that can never run, the stop after a failure, starts, and the end of the run.
    fn go_on(&mut self) {
        self.pass();
        self.start();
        let ended = self.run.waiting == 0 && (self.run.running == 0 || !self.waits_for_children());
        if self.run.finished.is_none() && ended {
            let state = self.run.outcome();
            self.record(GraphChange::Finished { state });
        }
    }

    fn waits_for_children(&self) -> bool {
        kept(Clause::OpenUntilChildrenEnd) || !self.run.is_stopped()
    }

    /// Nodes whose rules can never be met any more, one after the other, and then the stop, if one of all these failures asks for it.
    pub fn pass(&mut self) {
        let mut nodes = Vec::new();
        while let Some(node) = self.dirty.pop_front() {
            if self.state(node) != NodeState::Waiting {
                continue;
            }
            let state = match self.run.verdict(node) {
                Verdict::Wait | Verdict::Run => continue,
                Verdict::UpstreamFailed => NodeState::UpstreamFailed,
                Verdict::Skip => NodeState::Skipped,
            };
            let passed = NodePassed { node, state };
            self.run.apply(&GraphChange::Passed { nodes: vec![passed] });
            nodes.push(passed);
            self.note(node);
        }
        if !nodes.is_empty() {
            self.decision.changes.push(GraphChange::Passed { nodes });
        }
        let fails_fast = self.graph.fail_fast || !kept(Clause::FailureStaysLocal);
        if std::mem::take(&mut self.failed) && fails_fast && !self.run.is_stopped() {
            self.stop(StopCause::FailFast);
        }
    }
}
