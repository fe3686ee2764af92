//! What is asked of each node for a list of the whole cluster, and what it answers.

use crate::view::{ExecutorState, ExecutorView, NodeView, PoolView};
use serde::{Deserialize, Serialize};

/// What is asked of each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClusterQuery {
    Node,
    Executors,
    Pools,
}

/// What a node says. It answers no more than it was asked: an executor takes some 200 bytes of a message (`GATEWAY_MESSAGE_BYTES`), so that
/// about 5,000 of them fit. The list of more is not sent, and the node is named as missing with the reason; what counting them takes is a tenth.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeAnswer {
    #[serde(default)]
    pub node: Option<NodeView>,
    #[serde(default)]
    pub executors: Vec<ExecutorView>,
    #[serde(default)]
    pub pools: Vec<PoolView>,
    /// For numbers without executors that count twice: session and pools of each, and whether it is connected.
    #[serde(default)]
    pub sessions: Vec<(u64, Vec<String>, bool)>,
}

impl NodeAnswer {
    /// Leaves of executors what counting them takes.
    #[must_use]
    pub fn counted(mut self) -> Self {
        let executors = std::mem::take(&mut self.executors).into_iter();
        let counted = executors.map(|one| (one.session, one.pools, one.state != ExecutorState::Disconnected));
        self.sessions = counted.collect();
        self
    }
}
