//! DAGs as callers see and change them, besides their definitions.

use crate::{
    graph::state::{EdgeFact, NodeFailure, NodeRule, NodeState},
    ids::{JobId, RunId},
    job::{JobStatus, upper_enum},
    record::RunState,
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// A text that shows a DAG.
    DagDrawing {
        /// A flow chart of Mermaid.
        Mermaid = "MERMAID" = 0,
        /// A line for each node, of printable ASCII.
        Ascii = "ASCII" = 1,
    } default Mermaid);

/// Answer of `dag.create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DagCreated {
    /// Name of the job that the DAG became.
    pub dag_id: String,
    pub job_id: JobId,
    pub status: JobStatus,
}

/// `dag.nodes`, `GET /runs/{runId}/nodes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DagNodesBody {
    /// With a drawing as text.
    #[serde(default)]
    pub draw: Option<DagDrawing>,
}

/// `dag.retry`, `POST /runs/{runId}/nodes/retry`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DagRetryBody {
    /// Ids of nodes that have ended. None: all that failed or were canceled.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// And all nodes that come after them, also those that succeeded.
    #[serde(default)]
    pub and_after: bool,
    #[serde(default)]
    pub reason: Option<String>,
}

/// `dag.mark`, `POST /runs/{runId}/nodes/mark`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DagMarkBody {
    /// Id of a node without an open run.
    pub node: String,
    /// SUCCESS or SKIPPED.
    pub state: NodeState,
    #[serde(default)]
    pub reason: Option<String>,
}

/// A run of a DAG with its nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DagRunView {
    pub run_id: RunId,
    pub job_id: JobId,
    pub tenant_id: String,
    pub state: RunState,
    pub generation: u32,
    /// Version of the definition that the run has.
    pub version: u64,
    /// In the order of the definition.
    pub nodes: Vec<DagNodeView>,
    pub edges: Vec<DagEdgeView>,
    /// Size of the layout, points.
    pub width: u32,
    pub height: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawing: Option<String>,
    /// Set while the run is paused: no further node starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<DagPauseView>,
}

/// The pause of one run of a DAG.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DagPauseView {
    pub since: Timestamp,
    /// The credential that paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A node of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DagNodeView {
    pub id: String,
    /// Name of its job.
    pub job: String,
    pub rule: NodeRule,
    pub state: NodeState,
    /// A person set the state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// Its newest run.
    pub run_id: Option<RunId>,
    /// Of that run; 0: it was never started.
    pub generation: u32,
    /// Why it is FAILED, when its run does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<NodeFailure>,
    /// The same as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Place in the layout: layer from left to right and row in it, and the middle of the node in points.
    pub layer: u32,
    pub row: u32,
    pub x: u32,
    pub y: u32,
}

/// An edge of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DagEdgeView {
    pub from: String,
    pub to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What the condition has said, when it was not true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<EdgeFact>,
}
