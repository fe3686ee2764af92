//! A job that is a DAG: how events change its open runs, and what these owe. Decisions about them are in `decide/graph.rs`.

use super::{
    graphs::OpenGraph,
    state::{Job, OpenRun},
};
use crate::{
    graph::{compile::Graph, run::GraphRun, step::GraphEffect},
    outbox::MessageDraft,
    reject::Rejection,
};
use campanile_schema::{
    error::ErrorCode,
    graph::{change::GraphChange, state::NodeState},
    ids::RunId,
    job::ConcurrencyPolicy,
    record::{RunRecord, RunState},
    stored::{StoredAction, StoredJob, graph::GraphRecord},
};
use std::sync::Arc;

/// Messages that the open runs of a DAG owe, whatever was sent: after a restore, or when there was no room for them. `ask`: the runs of
/// nodes are asked for as well, from whom nothing was heard.
pub fn owed(job: &Job, ask: bool) -> Vec<MessageDraft> {
    let mut owed = Vec::new();
    for (run, open) in &job.graphs {
        let Some(record) = job.run(*run).map(|open| &open.record) else { continue };
        let active = (0..).zip(open.run.nodes()).filter(|(_, node)| node.state() == NodeState::Active);
        let asked = active.map(|(node, slot)| GraphEffect::Start { node, generation: slot.generation() });
        let asked = asked.filter(|_| ask && !open.run.is_stopped());
        owed.extend(open.run.pending().into_iter().chain(asked).map(|effect| open.message(record, effect)));
    }
    owed
}

impl Job {
    pub fn is_dag(&self) -> bool {
        self.def.graph().is_some()
    }

    /// The graph of the job's definition, compiled. Open runs of the same version share it.
    pub(crate) fn compiled_graph(&self) -> Result<Arc<Graph>, Rejection> {
        if let Some((version, graph)) = &self.compiled
            && *version == self.hot.version
        {
            return Ok(graph.clone());
        }
        let shared = self.graphs.values().find(|open| open.version == self.hot.version);
        match (shared, self.def.graph()) {
            (Some(open), _) => Ok(open.run.graph().clone()),
            (None, Some(graph)) => Graph::compile(graph).map(Arc::new),
            (None, None) => Err(Rejection::new(ErrorCode::IllegalState, "the job is not a DAG")),
        }
    }

    /// A PENDING run of a DAG that waits for nothing but room for its nodes.
    pub(crate) fn awaits_room(&self) -> bool {
        let pending = |open: &OpenRun| open.state() == RunState::Pending;
        let allows = self.def.concurrency == ConcurrencyPolicy::Allow;
        let runs = &self.hot.runs;
        self.is_dag() && !self.holds_runs() && runs.iter().any(pending) && (allows || runs.iter().all(pending))
    }
}

/// A run went on.
pub(super) fn changed(job: &mut Job, run: RunId, generation: u32, changes: &[GraphChange], at_ms: i64) {
    if !job.graphs.contains_key(&run) {
        begin(job, run, at_ms);
    }
    let Some(open) = job.graphs.get_mut(&run) else { return };
    let graph = Arc::make_mut(&mut open.run);
    for change in changes {
        match change {
            GraphChange::Reset { generation, .. } if *generation > graph.generation() => open.began_ms = at_ms,
            GraphChange::Reset { .. }
            | GraphChange::Started { .. }
            | GraphChange::Taken { .. }
            | GraphChange::Ended { .. }
            | GraphChange::Passed { .. }
            | GraphChange::Stopped { .. }
            | GraphChange::Marked { .. }
            | GraphChange::Paused { .. }
            | GraphChange::Resumed { .. }
            | GraphChange::Finished { .. } => {}
        }
        graph.apply(change);
    }
    if let Some(open) = job.run_mut(run) {
        open.graph = true;
        let record = open.record_mut();
        record.state = RunState::Running;
        record.generation = generation;
        record.started_ms.get_or_insert(at_ms);
    }
}

fn begin(job: &mut Job, run: RunId, at_ms: i64) {
    let logical_ms = job.run(run).and_then(|open| open.record.logical_ms);
    // A graph that a later release does not take was refused before it began.
    let Ok(graph) = job.compiled_graph() else { return };
    let open = OpenGraph {
        version: job.hot.version,
        def: job.def.clone(),
        began_ms: at_ms,
        run: Arc::new(GraphRun::new(graph, logical_ms)),
    };
    job.graphs.insert(run, open);
}

/// A run that had ended goes on with the graph that its record names.
pub(super) fn reopened(job: &mut Job, record: &RunRecord, at_ms: i64) {
    let Some(ended) = &record.graph else { return };
    if let Ok(open) = taken_up(job, ended, at_ms) {
        job.graphs.insert(record.run, open);
    }
}

/// A run that has ended, with the graph that it had: that of the definition of now, if it is the same, or that of its record.
pub(crate) fn taken_up(job: &Job, ended: &GraphRecord, began_ms: i64) -> Result<OpenGraph, Rejection> {
    let open = |graph, def, version| {
        let run = Arc::new(GraphRun::from_stored(graph, &ended.state));
        OpenGraph { version, def, began_ms, run }
    };
    let is_same = job.def.graph().is_some_and(|graph| graph.print() == ended.print);
    match &ended.graph {
        _ if is_same => Ok(open(job.compiled_graph()?, job.def.clone(), job.hot.version)),
        Some(graph) => {
            let action = Some(StoredAction::Dag(graph.clone()));
            let def = Arc::new(StoredJob { action, ..(*job.def).clone() });
            Ok(open(Arc::new(Graph::compile(graph)?), def, ended.version))
        }
        None => Err(Rejection::new(
            ErrorCode::IllegalState,
            "the DAG was edited since, and its graph was too large to be kept with the run; trigger the DAG again",
        )),
    }
}
