//! A log in memory of what this node observed in its cluster and of the shards that it owned, for operators. It keeps
//! the newest entries only.

use campanile_schema::{
    cluster::{ClusterEventKind, ClusterEventView},
    ids::ShardId,
    limits::CLUSTER_EVENTS,
    time::Timestamp,
};
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Since the start of the process; shared by the node's sessions.
#[derive(Debug, Default)]
pub struct ClusterEventLog {
    events: Mutex<VecDeque<ClusterEventView>>,
}

impl ClusterEventLog {
    pub fn note(&self, kind: ClusterEventKind, node: Option<&str>, shard: Option<ShardId>, detail: Option<String>) {
        // What a person compares with logs: the plain clock.
        let at = Timestamp(std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_millis() as i64));
        let mut events = self.events.lock();
        if events.len() == CLUSTER_EVENTS {
            events.pop_back();
        }
        let (node, shard) = (node.map(str::to_owned), shard.map(|shard| shard.0));
        events.push_front(ClusterEventView { at, kind, node, shard, detail });
    }

    /// The newest first.
    pub fn newest(&self, count: usize) -> Vec<ClusterEventView> {
        self.events.lock().iter().take(count).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay() {
        let cluster_events = ClusterEventLog::default();
        for shard in 0..CLUSTER_EVENTS as u16 + 3 {
            cluster_events.note(ClusterEventKind::ShardServed, None, Some(ShardId(shard)), None);
        }
        let newest = cluster_events.newest(usize::MAX);
        assert_eq!(newest.len(), CLUSTER_EVENTS);
        assert_eq!(newest.first().and_then(|event| event.shard), Some(CLUSTER_EVENTS as u16 + 2));
        assert_eq!(newest.last().and_then(|event| event.shard), Some(3));
    }
}
