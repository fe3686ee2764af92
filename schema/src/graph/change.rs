//! What happens to a run of a DAG, as it is stored: [`Event::GraphChanged`](crate::event::Event::GraphChanged) carries these and names the run.
//!
//! A change holds what was decided, never what would have to be decided again: conditions and templates are evaluated when the
//! change is made, so that replay does not depend on how a later release evaluates them.

use super::state::{EdgeFact, NodeFailure, NodeState, StopCause};
use crate::{
    ids::RunId,
    payload::Payload,
    record::{RunState, code},
    text::Text,
};
use serde::{Deserialize, Serialize};

/// One change. Nodes and edges are named by their place in the [`StoredGraph`](super::StoredGraph) that the run has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum GraphChange {
    /// These nodes are STARTING, each in its next generation.
    #[serde(rename = "s")]
    Started {
        #[serde(rename = "n")]
        nodes: Vec<u32>,
    },
    /// The node's job has made its run: ACTIVE.
    #[serde(rename = "t")]
    Taken {
        #[serde(rename = "n")]
        node: u32,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "g")]
        generation: u32,
    },
    /// The node has ended. `generation` is that of its run, or the node's own when it ended without one.
    #[serde(rename = "e")]
    Ended {
        #[serde(rename = "n")]
        node: u32,
        #[serde(rename = "g")]
        generation: u32,
        #[serde(rename = "s", with = "code")]
        state: NodeState,
        #[serde(rename = "w", default, skip_serializing_if = "Option::is_none", with = "opt_failure")]
        failure: Option<NodeFailure>,
        #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
        /// The result fields that the DAG reads.
        #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
        result: Option<Payload>,
        /// Edges behind it whose conditions are not true.
        #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
        edges: Vec<EdgeJudged>,
    },
    /// Nodes that can never run, SKIPPED or UPSTREAM_FAILED, in this order.
    #[serde(rename = "p")]
    Passed {
        #[serde(rename = "n")]
        nodes: Vec<NodePassed>,
    },
    /// No further node starts; all that wait are CANCELED.
    #[serde(rename = "x")]
    Stopped {
        #[serde(rename = "w", with = "code")]
        cause: StopCause,
    },
    /// These nodes wait again, in this order. A run that was final goes on in this generation, and nothing stops it any more.
    #[serde(rename = "o")]
    Reset {
        #[serde(rename = "g")]
        generation: u32,
        #[serde(rename = "n")]
        nodes: Vec<u32>,
        /// Who asked, and why.
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Text>,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person set the node's state.
    #[serde(rename = "m")]
    Marked {
        #[serde(rename = "n")]
        node: u32,
        #[serde(rename = "s", with = "code")]
        state: NodeState,
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Text>,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person paused the run: no further node starts, and those that run go on.
    #[serde(rename = "h")]
    Paused {
        #[serde(rename = "p")]
        pause: GraphPause,
    },
    /// ... and let it go on.
    #[serde(rename = "u")]
    Resumed {
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Text>,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Every node is final: so is the run.
    #[serde(rename = "d")]
    Finished {
        #[serde(rename = "s", with = "code")]
        state: RunState,
    },
}

/// The pause of one run of a DAG.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphPause {
    #[serde(rename = "a")]
    pub at_ms: i64,
    /// Who paused it, and why.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Text>,
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An edge whose condition is not true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeJudged {
    #[serde(rename = "e")]
    pub edge: u32,
    #[serde(rename = "f", with = "code")]
    pub fact: EdgeFact,
}

/// A node that can never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePassed {
    #[serde(rename = "n")]
    pub node: u32,
    #[serde(rename = "s", with = "code")]
    pub state: NodeState,
}

mod opt_failure {
    use super::NodeFailure;
    use serde::{Deserialize, Deserializer, Serializer, de};
    #[allow(clippy::ref_option)] // serde's signature
    pub fn serialize<S: Serializer>(failure: &Option<NodeFailure>, s: S) -> Result<S::Ok, S::Error> {
        match failure {
            Some(failure) => s.serialize_u8(failure.code()),
            None => s.serialize_none(),
        }
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<NodeFailure>, D::Error> {
        let known = |n| NodeFailure::from_code(n).ok_or_else(|| de::Error::custom(format!("unknown failure {n}")));
        Option::<u8>::deserialize(d)?.map(known).transpose()
    }
}
