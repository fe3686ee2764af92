//! What a served shard has of DAGs: open runs whose jobs have no actor now, how many nodes and children there are, and what is owed.
//! Changed by `dags`.

use crate::calls::ShardAnswer;
use campanile_core::{
    graph::{
        compile::Graph,
        run::GraphRun,
        step::{EndState, NodeEnd},
    },
    job::{
        Job, Reply,
        graphs::{Graphs, OpenGraph},
    },
    outbox::body,
};
use campanile_ports::StoreError;
use campanile_schema::{
    frame::{decode, encode},
    ids::{JobId, RunId},
    limits,
    peer::outbox::{EndBody, RunFacts, Said},
    record::RunState,
    stored::{graph::GraphItem, outbox::MessageKind},
};
use hashbrown::{HashMap, HashSet};
use std::{collections::BTreeSet, sync::Arc};

/// What a served shard has of DAGs.
#[derive(Default)]
pub(super) struct Dags {
    /// Open runs of jobs that have no actor now.
    pub at_rest: HashMap<JobId, Graphs>,
    /// Nodes of each open run, and of all of them.
    pub open: HashMap<RunId, usize>,
    pub nodes: usize,
    /// Open runs of nodes: an END is owed for each when it ends.
    pub children: usize,
    /// Jobs whose runs may owe messages that are not in the outbox.
    pub unsent: BTreeSet<JobId>,
    /// When nodes whose end has not come are asked for, by the boot clock; None: they were.
    pub ask_at_ms: Option<i64>,
}

impl Dags {
    pub fn new(at_rest: HashMap<JobId, Graphs>, boot_ms: i64) -> Self {
        Self { at_rest, ask_at_ms: Some(boot_ms + limits::GRAPH_ASK_MS), ..Self::default() }
    }

    /// Nodes that further runs may have.
    pub fn room(&self) -> usize {
        limits::GRAPH_OPEN_NODES.saturating_sub(self.nodes)
    }

    /// A job of the shard that was just loaded.
    pub fn loaded(&mut self, job: &Job) {
        self.children += job.hot.runs.iter().filter(|open| open.record.dag.is_some()).count();
        for (run, open) in &job.graphs {
            self.opened(*run, open.run.nodes().len());
        }
        if !job.graphs.is_empty() {
            self.unsent.insert(job.id);
        }
    }

    pub fn opened(&mut self, run: RunId, nodes: usize) {
        self.nodes += nodes;
        self.nodes -= self.open.insert(run, nodes).unwrap_or(0);
    }
}

/// The items of a snapshot.
pub(super) fn items<'g>(all: impl Iterator<Item = (JobId, &'g Graphs)>) -> Vec<(u64, Vec<u8>)> {
    let mut items = Vec::new();
    for (job, graphs) in all {
        let mut written = HashSet::new();
        for (run, open) in graphs {
            let version = open.version;
            if written.insert(version) {
                let definition = open.def.clone();
                items.push((job.0, encode(&GraphItem::Definition { job, version, definition })));
            }
            let (state, began_ms) = (open.run.to_stored(), open.began_ms);
            items.push((run.0, encode(&GraphItem::Run { job, run: *run, version, began_ms, state })));
        }
    }
    items
}

/// Back from the items of a snapshot.
pub(super) fn from_items(items: Vec<(u64, Vec<u8>)>) -> Result<HashMap<JobId, Graphs>, StoreError> {
    let corrupt = |what: &dyn std::fmt::Display| StoreError::Corrupt(format!("runs of DAGs: {what}"));
    let mut definitions = HashMap::new();
    let mut all: HashMap<JobId, Graphs> = HashMap::new();
    for (_, bytes) in items {
        match decode::<GraphItem>("run of a DAG", &bytes).map_err(|e| corrupt(&e))? {
            GraphItem::Definition { job, version, definition } => {
                let graph = definition.graph().ok_or_else(|| corrupt(&format_args!("job {job} is not a DAG")))?;
                let graph = Graph::compile(graph)
                    .map_err(|refused| corrupt(&format_args!("job {job}: {}", refused.message)))?;
                definitions.insert((job, version), (definition, Arc::new(graph)));
            }
            GraphItem::Run { job, run, version, began_ms, state } => {
                let known = definitions.get(&(job, version));
                let (def, graph) =
                    known.ok_or_else(|| corrupt(&format_args!("version {version} of job {job} is missing")))?;
                let state = Arc::new(GraphRun::from_stored(graph.clone(), &state));
                let open = OpenGraph { version, def: def.clone(), began_ms, run: state };
                all.entry(job).or_default().insert(run, open);
            }
        }
    }
    Ok(all)
}

/// Whether a DAG sends it to the job of a node.
pub(super) fn is_of_node(kind: MessageKind) -> bool {
    match kind {
        MessageKind::Start | MessageKind::Cancel => true,
        MessageKind::End | MessageKind::Hook | MessageKind::Compensation | MessageKind::Deadline => false,
    }
}

/// The end of a run of a node, as its DAG takes it. `node`: its place.
pub(super) fn node_end(end: &EndBody, node: u32) -> NodeEnd {
    let state = match end.state {
        RunState::Success => EndState::Success,
        RunState::Timeout => EndState::Timeout,
        RunState::Canceled | RunState::Skipped => EndState::Canceled,
        RunState::Failed
        | RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::RetryWait
        | RunState::SuspectedLost
        | RunState::NeedsConfirmation => EndState::Failed,
    };
    NodeEnd { node, generation: end.generation, run: end.run, state, result: end.result.clone() }
}

/// What a job's answer to a START or a CANCEL means.
pub(super) fn said_of_node(answer: &ShardAnswer) -> Said {
    match answer {
        ShardAnswer::Reply(Reply::Run(view)) => {
            let facts = RunFacts { run: view.run_id, generation: view.generation, state: view.state };
            Said::Settled { run: Some(facts) }
        }
        ShardAnswer::Reply(Reply::Final(record)) => {
            body::end(record).map_or(Said::Settled { run: None }, |end| Said::Ended(Box::new(end)))
        }
        _ => Said::Settled { run: None },
    }
}
