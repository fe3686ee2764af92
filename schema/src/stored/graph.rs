//! Runs of DAGs as snapshots hold the open ones, and as the records of those that ended keep them. Event format 2.

use crate::{
    graph::{
        StoredGraph,
        change::GraphPause,
        state::{EdgeFact, NodeFailure, NodeState},
    },
    ids::{JobId, RunId},
    payload::Payload,
    record::{
        RunState,
        code::{self, Code},
    },
    stored::StoredJob,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// State of one run of a DAG. What follows from it (how the parents of a node stand, which nodes may start) is not stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredGraphRun {
    /// In the order of the nodes of the graph.
    #[serde(rename = "n")]
    pub nodes: Vec<StoredNodeRun>,
    #[serde(rename = "g", default = "one", skip_serializing_if = "is_one")]
    pub generation: u32,
    /// Bits of the codes of [`StopCause`](crate::graph::state::StopCause).
    #[serde(rename = "x", default, skip_serializing_if = "is_zero_u8")]
    pub stops: u8,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none", with = "opt_state")]
    pub finished: Option<RunState>,
    /// Instant that the run stands for, ms.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub logical_ms: Option<i64>,
    /// Edges that are not what the state of their parent says.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<StoredMark>,
    /// Results that other nodes read, by the place of their node.
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<(u32, Payload)>,
    /// Why nodes are FAILED whose runs do not say so.
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<StoredFailure>,
    /// Set while the run is paused.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<GraphPause>,
}

/// Why a node is FAILED, besides what its run says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFailure {
    #[serde(rename = "n")]
    pub node: u32,
    #[serde(rename = "w", with = "code")]
    pub why: NodeFailure,
}

/// State of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredNodeRun {
    #[serde(rename = "s", with = "code", default, skip_serializing_if = "is_waiting")]
    pub state: NodeState,
    /// Of its newest start; 0: it was never started.
    #[serde(rename = "g", default, skip_serializing_if = "is_zero")]
    pub generation: u32,
    /// Its newest run.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// A person set its state.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// A stop of the whole run kept it from starting.
    #[serde(rename = "h", default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// An edge that is not what the state of its parent says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMark {
    #[serde(rename = "e")]
    pub edge: u32,
    /// What its condition says; None: the node behind it did not run because of its parent's failure.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none", with = "opt_fact")]
    pub fact: Option<EdgeFact>,
}

/// A run of a DAG with the graph that it has: the record of one that ended keeps it, and so may a retry go on with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphRecord {
    /// Version of the definition.
    #[serde(rename = "v")]
    pub version: u64,
    /// [`StoredGraph::print`] of the graph.
    #[serde(rename = "p")]
    pub print: u64,
    /// Left out of a record when it is larger than [`GRAPH_IN_RECORD_BYTES`](crate::limits::GRAPH_IN_RECORD_BYTES).
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Arc<StoredGraph>>,
    #[serde(rename = "s")]
    pub state: StoredGraphRun,
}

/// An item of a snapshot about open runs of DAGs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum GraphItem {
    /// A definition that open runs have and that is not the job's any more.
    #[serde(rename = "d")]
    Definition {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "v")]
        version: u64,
        #[serde(rename = "d")]
        definition: Arc<StoredJob>,
    },
    #[serde(rename = "r")]
    Run {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        /// Of the definition that it has.
        #[serde(rename = "v")]
        version: u64,
        /// When its time began, ms.
        #[serde(rename = "b")]
        began_ms: i64,
        #[serde(rename = "s")]
        state: StoredGraphRun,
    },
}

fn one() -> u32 {
    1
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_one(n: &u32) -> bool {
    *n == 1
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u32) -> bool {
    *n == 0
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero_u8(n: &u8) -> bool {
    *n == 0
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_waiting(state: &NodeState) -> bool {
    *state == NodeState::Waiting
}

/// Numbers of optional enums.
macro_rules! optional {
    ($module:ident, $type:ty) => {
        pub(crate) mod $module {
            use super::Code;
            use serde::{Deserialize, Deserializer, Serializer, de};
            #[allow(clippy::ref_option)] // serde's signature
            pub fn serialize<S: Serializer>(value: &Option<$type>, s: S) -> Result<S::Ok, S::Error> {
                match value {
                    Some(value) => s.serialize_u8(Code::code(*value)),
                    None => s.serialize_none(),
                }
            }
            pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<$type>, D::Error> {
                let known =
                    |n| <$type as Code>::from_code(n).ok_or_else(|| de::Error::custom(format!("unknown code {n}")));
                Option::<u8>::deserialize(d)?.map(known).transpose()
            }
        }
    };
}
optional!(opt_state, crate::record::RunState);
optional!(opt_fact, crate::graph::state::EdgeFact);
