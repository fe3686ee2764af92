//! The definition of a DAG: jobs as nodes, and edges that say which of them comes first.
//!
//! [`GraphSpec`] is the callers' form and [`StoredGraph`] the stored one. [`change`] has what happens to a run of a DAG. All of
//! it belongs to event format 2 (`docs/adr/0029-dag.md`).

pub mod change;
pub mod state;

use crate::{
    deadline::Deadline, ids::JobId, job::Trigger, payload::Payload, record::code, stored::deadline::StoredDeadline,
    text::Text,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use state::NodeRule;
use std::collections::HashMap;

/// A DAG as callers write it: what `"action":{"kind":"DAG",...}` holds besides its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GraphSpec {
    /// 1..1000 nodes; their order has no meaning.
    pub nodes: Vec<NodeSpec>,
    /// At most 10000; at most one from one node to another.
    #[serde(default)]
    pub edges: Vec<EdgeSpec>,
    /// The first node that fails stops the whole run: no further node starts, and those that run are canceled.
    #[serde(default)]
    pub fail_fast: bool,
    /// Nodes whose runs are open at once, 1..1000.
    #[serde(default = "default_parallel")]
    pub max_parallel: u32,
    /// Seconds for a whole run, from its start; no limit when there is none. A run that reaches it ends TIMEOUT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
}

/// A node: a job of the same tenant that runs when the node's rule says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeSpec {
    /// 1..64 letters, digits, `_` or `-`; unique in the DAG.
    pub id: String,
    /// The name of a job of the same tenant, which is looked up when the node starts.
    pub job: String,
    /// Laid over the params of the job and of the DAG. Strings may hold `{{nodes.ID.result.FIELD}}` and `{{run.logicalTime}}`.
    #[serde(default)]
    pub params: Payload,
    /// Which ends of the nodes before it let this one run.
    #[serde(default)]
    pub rule: NodeRule,
    /// Seconds per attempt; the job's own when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
    /// Until when the run of the node has to end; the job's own when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
}

/// `from` ends before `to` starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EdgeSpec {
    pub from: String,
    pub to: String,
    /// A CEL expression over `parent.result` that is evaluated when `from` succeeded. While it is false, `to` counts `from` as skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// The short form: jobs by their ids, and each node's id is its job's, in decimal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShortGraphSpec {
    /// Name of the job that the DAG becomes.
    pub dag_id: String,
    #[serde(default = "default_tenant")]
    pub tenant_id: String,
    pub nodes: Vec<JobId>,
    #[serde(default)]
    pub edges: Vec<ShortEdgeSpec>,
    /// When the DAG is due; MANUAL when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
}

fn default_tenant() -> String {
    "default".to_owned()
}

/// An edge of the short form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShortEdgeSpec {
    pub from: JobId,
    pub to: JobId,
}

impl GraphSpec {
    /// A DAG with every default.
    pub fn new(nodes: Vec<NodeSpec>, edges: Vec<EdgeSpec>) -> Self {
        Self { nodes, edges, fail_fast: false, max_parallel: default_parallel(), timeout_sec: None }
    }
}

impl NodeSpec {
    /// A node with every default.
    pub fn new(id: &str, job: &str) -> Self {
        let (id, job) = (id.to_owned(), job.to_owned());
        Self { id, job, params: Payload::default(), rule: NodeRule::default(), timeout_sec: None, deadline: None }
    }
}

impl EdgeSpec {
    /// An edge without a condition.
    pub fn new(from: &str, to: &str) -> Self {
        Self { from: from.to_owned(), to: to.to_owned(), when: None }
    }
}

impl ShortGraphSpec {
    /// The long form. `names` has the name of each job that is listed; the error is the first id without one.
    pub fn to_spec(&self, names: impl Fn(JobId) -> Option<String>) -> Result<GraphSpec, JobId> {
        let node = |job: &JobId| Ok(NodeSpec::new(&job.to_string(), &names(*job).ok_or(*job)?));
        let nodes = self.nodes.iter().map(node).collect::<Result<_, _>>()?;
        let edge = |edge: &ShortEdgeSpec| EdgeSpec::new(&edge.from.to_string(), &edge.to.to_string());
        Ok(GraphSpec::new(nodes, self.edges.iter().map(edge).collect()))
    }
}

fn default_parallel() -> u32 {
    DEFAULT_PARALLEL
}
/// Default of `maxParallel`.
const DEFAULT_PARALLEL: u32 = 50;

/// A DAG as it is stored beside the definition of its job. Edges name nodes by their place in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredGraph {
    #[serde(rename = "n")]
    pub nodes: Vec<StoredNode>,
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<StoredEdge>,
    #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
    pub fail_fast: bool,
    #[serde(rename = "m", default = "default_parallel", skip_serializing_if = "is_default_parallel")]
    pub max_parallel: u32,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
}

/// A stored node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredNode {
    #[serde(rename = "i")]
    pub id: Text,
    #[serde(rename = "j")]
    pub job: Text,
    #[serde(rename = "p", default, skip_serializing_if = "Payload::is_empty")]
    pub params: Payload,
    #[serde(rename = "r", with = "code", default, skip_serializing_if = "is_default_rule")]
    pub rule: NodeRule,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<StoredDeadline>,
}

/// A stored edge: places of nodes in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredEdge {
    #[serde(rename = "f")]
    pub from: u32,
    #[serde(rename = "t")]
    pub to: u32,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Text>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_default_parallel(n: &u32) -> bool {
    *n == DEFAULT_PARALLEL
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_default_rule(rule: &NodeRule) -> bool {
    *rule == NodeRule::default()
}

impl From<&GraphSpec> for StoredGraph {
    /// Not checked: an edge to an id that no node has gets a place that no node has.
    fn from(spec: &GraphSpec) -> Self {
        let places: HashMap<&str, u32> = spec.nodes.iter().map(|node| node.id.as_str()).zip(0..).collect();
        let place = |id: &str| places.get(id).copied().unwrap_or(u32::MAX);
        let node = |node: &NodeSpec| StoredNode {
            id: node.id.as_str().into(),
            job: node.job.as_str().into(),
            params: node.params.clone(),
            rule: node.rule,
            timeout_sec: node.timeout_sec,
            deadline: node.deadline.as_ref().and_then(|deadline| deadline.stored().ok()),
        };
        let edge = |edge: &EdgeSpec| StoredEdge {
            from: place(&edge.from),
            to: place(&edge.to),
            when: edge.when.as_deref().map(Text::from),
        };
        Self {
            nodes: spec.nodes.iter().map(node).collect(),
            edges: spec.edges.iter().map(edge).collect(),
            fail_fast: spec.fail_fast,
            max_parallel: spec.max_parallel,
            timeout_sec: spec.timeout_sec,
        }
    }
}

impl StoredGraph {
    /// As callers have it. An edge to a place that no node has is left out: only damaged bytes hold one.
    pub fn to_spec(&self) -> GraphSpec {
        let node = |node: &StoredNode| NodeSpec {
            id: node.id.to_string(),
            job: node.job.to_string(),
            params: node.params.clone(),
            rule: node.rule,
            timeout_sec: node.timeout_sec,
            deadline: node.deadline.as_ref().map(Deadline::from),
        };
        let id = |place: u32| self.nodes.get(place as usize).map(|node| node.id.to_string());
        let edge = |edge: &StoredEdge| {
            Some(EdgeSpec { from: id(edge.from)?, to: id(edge.to)?, when: edge.when.as_ref().map(Text::to_string) })
        };
        GraphSpec {
            nodes: self.nodes.iter().map(node).collect(),
            edges: self.edges.iter().filter_map(edge).collect(),
            fail_fast: self.fail_fast,
            max_parallel: self.max_parallel,
            timeout_sec: self.timeout_sec,
        }
    }

    /// Tells whether two runs have the same graph: FNV-1a of its stored bytes.
    pub fn print(&self) -> u64 {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        crate::frame::encode(self).iter().fold(0xcbf2_9ce4_8422_2325, step)
    }

    /// Its bytes as they are stored; at most [`GRAPH_BYTES`](crate::limits::GRAPH_BYTES).
    pub fn encoded_bytes(&self) -> usize {
        crate::frame::encode(self).len()
    }
}
