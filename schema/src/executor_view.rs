//! What is shown of executors. Part of [`crate::view`].

use crate::{job::upper_enum, time::Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

upper_enum!(/// How an executor stands.
    ExecutorState {
        /// Its connection is gone, and its lease not over.
        Disconnected = "DISCONNECTED" = 0,
        /// It was silent of late, and has some more time to say that it is there.
        SuspectedLost = "SUSPECTED_LOST" = 1,
        Ready = "READY" = 2,
        /// It gets no more runs.
        Draining = "DRAINING" = 3,
    } default Disconnected);

/// An executor as read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorView {
    pub executor_id: String,
    pub session: u64,
    pub pools: Vec<String>,
    pub slots: u32,
    pub running: u32,
    pub credit: u32,
    pub state: ExecutorState,
    pub labels: BTreeMap<String, String>,
    pub last_heartbeat_at: Timestamp,
    /// In a cluster: the nodes that it is registered with. Above are the sums and the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<ExecutorAtNode>,
}

/// An executor as one node of a cluster sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorAtNode {
    pub node: String,
    pub state: ExecutorState,
    pub running: u32,
    pub credit: u32,
    pub last_heartbeat_at: Timestamp,
}
