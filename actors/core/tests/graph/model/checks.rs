//! What must hold after every step.

use super::{reference::Reference, world::World};
use campanile_core::graph::{
    compile::Graph,
    run::GraphRun,
    step::{GraphCommand, GraphDecision, GraphEffect},
};
use campanile_schema::{
    graph::{change::GraphChange, state::StopCause},
    limits,
    record::RunState,
};

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A command was refused that should not be.
    Refused,
    /// A command was taken that should be refused.
    NotRefused,
    RefusedYetChanged,
    /// The run and the reference differ about a node.
    NodeDiffers(String),
    /// ... or about the run.
    RunDiffers(String),
    /// Other messages are sent than the reference sends.
    MessagesDiffer(String),
    /// The run asks to be woken and should not, or the other way round.
    WakeDiffers,
    ReplayDiffers,
    /// The run is another one after it was stored and read.
    StoredDiffers,
    /// A limit of one decision, or of the run, was passed.
    OverLimit(String),
    FinalWithOpenChild,
    /// Everything was delivered, every run has ended, and the DAG run has not.
    NeverEnds,
    /// The order of ends changed how nodes end.
    OrderMatters(String),
}

/// What the reference sends.
pub struct Expected {
    pub starts: Vec<usize>,
    pub cancels: Vec<usize>,
    /// An end of an earlier generation: the node's request is repeated.
    pub again: Option<usize>,
    pub wake: bool,
}

/// Lets the reference do the same. None: it refuses.
pub fn expect(reference: &mut Reference, command: &GraphCommand, graph: &Graph) -> Option<Expected> {
    let _ = graph;
    let mut cancels = Vec::new();
    let mut again = None;
    match command {
        GraphCommand::Wake => {}
        GraphCommand::Taken { node, generation, .. } => reference.taken(*node as usize, *generation),
        GraphCommand::Lost { node, generation, .. } => reference.lost(*node as usize, *generation),
        GraphCommand::End(end) => {
            let node = end.node as usize;
            let value = end.result.as_ref().and_then(|result| result.to_value()["rows"].as_i64());
            let slot = &reference.nodes[node];
            let starting = slot.state == campanile_schema::graph::state::NodeState::Starting;
            if starting && end.generation < slot.generation {
                again = Some(node);
            }
            reference.ended(node, end.generation, World::end_of(end.state), value);
        }
        GraphCommand::Cancel => {
            if reference.finished.is_some() {
                return None;
            }
            cancels = reference.stop(false);
        }
        GraphCommand::Timeout => cancels = reference.stop(true),
        GraphCommand::Retry { nodes, and_after, .. } => {
            let nodes: Vec<usize> = nodes.iter().map(|node| *node as usize).collect();
            if !reference.retry(&nodes, *and_after) {
                return None;
            }
        }
        GraphCommand::Mark { node, state, .. } => {
            if !reference.mark(*node as usize, *state) {
                return None;
            }
        }
        GraphCommand::Pause(_) => {
            if !reference.pause() {
                return None;
            }
        }
        GraphCommand::Resume { .. } => {
            if reference.finished.is_some() {
                return None;
            }
            reference.paused = false;
        }
    }
    let (stopped, running) = (reference.failed_fast, reference.running());
    let (starts, wake) = reference.go_on(limits::GRAPH_STARTS);
    if reference.failed_fast && !stopped {
        // Those that ran before, and those that this step started before one of them failed at its start.
        cancels = running.into_iter().chain(starts.iter().copied()).collect();
    }
    Some(Expected { starts, cancels, again, wake })
}

/// The messages of a decision are those that the reference sends.
pub fn effects(decision: &GraphDecision, expected: &Expected) -> Result<(), Violation> {
    let (mut starts, mut cancels) = (Vec::new(), Vec::new());
    for effect in &decision.effects {
        match effect {
            GraphEffect::Start { node, .. } => starts.push(*node as usize),
            GraphEffect::Cancel { node, .. } => cancels.push(*node as usize),
        }
    }
    let mut wanted = expected.starts.clone();
    match expected.again {
        // A stopped run repeats its cancel instead.
        Some(node) if cancels == [node] => cancels.clear(),
        Some(node) => wanted.insert(0, node),
        None => {}
    }
    let mut to_cancel = expected.cancels.clone();
    to_cancel.sort_unstable();
    cancels.sort_unstable();
    if starts != wanted || cancels != to_cancel {
        let told = format!("starts {starts:?}, not {wanted:?}; cancels {cancels:?}, not {to_cancel:?}");
        return Err(Violation::MessagesDiffer(told));
    }
    if decision.wake != expected.wake { Err(Violation::WakeDiffers) } else { Ok(()) }
}

/// The run stands as the reference does.
pub fn states(run: &GraphRun, reference: &Reference) -> Result<(), Violation> {
    for (at, (node, wanted)) in run.nodes().iter().zip(&reference.nodes).enumerate() {
        let is = (node.state(), node.is_marked(), node.is_held(), node.generation());
        let should = (wanted.state, wanted.marked, wanted.held, wanted.generation);
        if is != should {
            return Err(Violation::NodeDiffers(format!("n{at} is {is:?} and should be {should:?}")));
        }
    }
    let stops = [StopCause::Cancel, StopCause::Timeout, StopCause::FailFast].map(|cause| run.is_stopped_by(cause));
    let is = (run.state(), run.generation(), run.paused().is_some(), stops);
    let stops = [reference.canceled, reference.timed_out, reference.failed_fast];
    let should = (reference.finished.unwrap_or(RunState::Running), reference.generation, reference.paused, stops);
    if is != should {
        return Err(Violation::RunDiffers(format!("it is {is:?} and should be {should:?}")));
    }
    Ok(())
}

/// No decision and no run goes over its limits.
pub fn bounds(run: &GraphRun, decision: &GraphDecision) -> Result<(), Violation> {
    let started: usize = decision
        .changes
        .iter()
        .map(|change| match change {
            GraphChange::Started { nodes } => nodes.len(),
            GraphChange::Taken { .. }
            | GraphChange::Ended { .. }
            | GraphChange::Passed { .. }
            | GraphChange::Stopped { .. }
            | GraphChange::Reset { .. }
            | GraphChange::Marked { .. }
            | GraphChange::Paused { .. }
            | GraphChange::Resumed { .. }
            | GraphChange::Finished { .. } => 0,
        })
        .sum();
    if started > limits::GRAPH_STARTS {
        return Err(Violation::OverLimit(format!("{started} starts in a decision")));
    }
    let open = run.nodes().iter().filter(|node| node.state().has_run()).count();
    if open != run.running() as usize || open > run.graph().max_parallel as usize {
        return Err(Violation::OverLimit(format!("{open} nodes have runs")));
    }
    Ok(())
}
