//! Open runs of DAGs: what a job has of them besides its hot state, what is kept of them, and what they send.

use crate::{
    graph::{run::GraphRun, start::StartBody, step::GraphEffect},
    outbox::{MessageDraft, body, sending::To},
};
use campanile_schema::{
    graph::{StoredGraph, state::NodeFailure},
    ids::RunId,
    limits::GRAPH_IN_RECORD_BYTES,
    record::RunRecord,
    stored::{StoredJob, graph::GraphRecord, outbox::MessageKind},
};
use std::{collections::BTreeMap, sync::Arc};

/// Those of one job.
pub type Graphs = BTreeMap<RunId, OpenGraph>;

/// An open run of a DAG.
#[derive(Clone, Debug)]
pub struct OpenGraph {
    /// Of the definition below.
    pub version: u64,
    /// The definition that the run began with.
    pub def: Arc<StoredJob>,
    /// When its time began, ms: at its start, or when it was last taken up again.
    pub began_ms: i64,
    pub run: Arc<GraphRun>,
}

impl OpenGraph {
    /// When the whole run is stopped.
    pub fn deadline_ms(&self) -> Option<i64> {
        let seconds = self.def.graph()?.timeout_sec?;
        Some(self.began_ms.saturating_add(seconds as i64 * 1000))
    }

    /// As the record of the run keeps it. `whole`: with its graph, however large.
    pub fn record(&self, whole: bool) -> GraphRecord {
        let graph = self.def.graph();
        let kept = |graph: &&Arc<StoredGraph>| whole || graph.encoded_bytes() <= GRAPH_IN_RECORD_BYTES;
        GraphRecord {
            version: self.version,
            print: graph.map_or(0, |graph| graph.print()),
            graph: graph.filter(kept).cloned(),
            state: self.run.to_stored(),
        }
    }

    /// What the run of a node is made of: the params of the DAG's definition and of its run, with those of the node over them.
    pub fn start_body(&self, record: &RunRecord, node: u32) -> Result<StartBody, NodeFailure> {
        self.run.start_body(node, &self.def.params.laid_over(record.params.as_ref()))
    }

    /// The message of an effect. `record`: of the DAG run.
    pub fn message(&self, record: &RunRecord, effect: GraphEffect) -> MessageDraft {
        let (kind, index, generation, params) = match effect {
            GraphEffect::Start { node, generation } => {
                let params = self.start_body(record, node).map_or(0, |body| body.params.len());
                (MessageKind::Start, node, generation, params)
            }
            GraphEffect::Cancel { node, generation } => (MessageKind::Cancel, node, generation, 0),
        };
        MessageDraft {
            kind,
            tenant: record.tenant.clone(),
            run: record.run,
            run_created_ms: record.created_ms,
            run_marked: record.marked,
            generation,
            index,
            to: To::Job(self.run.graph().node(index).job.clone()),
            params: None,
            depth: record.depth,
            body_bytes: params + body::NODE_BYTES,
            budget: None,
            dropped: None,
            deadline: None,
        }
    }
}
