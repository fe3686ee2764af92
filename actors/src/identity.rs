//! The facts of a session that do not change while it lives: its node, its cluster, its number, the number of shards,
//! its time, and where its spans go.

use crate::time::NodeTime;
use campanile_ports::spans::Tracer;
use campanile_schema::ids::{ClusterId, SessionId};
use std::sync::Arc;

/// See the module's text. One per session (a restart in place makes a new one).
pub struct Identity {
    pub node: Arc<str>,
    pub cluster_id: ClusterId,
    pub session: SessionId,
    /// Of the whole cluster.
    pub shards: u16,
    /// Version of the time zones that schedules are computed with.
    pub tzdb: &'static str,
    pub time: Arc<NodeTime>,
    pub tracer: Tracer,
}
