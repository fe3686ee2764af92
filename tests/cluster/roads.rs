//! The way from node to node inside a test: never wrong unless told to be, and no message is larger than the gateway takes.

use campanile_actors::{
    call_error::CallError,
    calls::{Peers, ShardAnswer, ShardCall},
    changes::{Copied, LogPlace},
    cluster_query::{ClusterQuery, NodeAnswer, NodeAnswers},
    scheduler::Scheduler,
};
use campanile_core::placement::NodeId;
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::{SessionId, ShardId},
    limits::GATEWAY_MESSAGE_BYTES,
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::Arc,
};

/// The way to each node's scheduler.
#[derive(Default)]
pub struct Roads {
    /// Without those that are cut off.
    pub schedulers: Mutex<BTreeMap<NodeId, Scheduler>>,
    pub sessions: Mutex<BTreeMap<SessionId, NodeId>>,
    /// Those cannot ask either.
    pub cut_off: Mutex<BTreeSet<NodeId>>,
    /// By shard: the node that takes it for another's, and is right again after so many calls.
    pub astray: Mutex<BTreeMap<ShardId, (NodeId, usize)>>,
    /// Who asked whom, for those shards.
    pub hops: Mutex<Vec<(NodeId, NodeId)>>,
}

impl Roads {
    /// Where a call for a shard is sent that this session should own.
    fn way(&self, from: NodeId, owner: SessionId, shard: ShardId) -> Option<NodeId> {
        if self.cut_off.lock().contains(&from) {
            return None;
        }
        let right = self.sessions.lock().get(&owner).copied()?;
        let mut astray = self.astray.lock();
        let Some((wrong, left)) = astray.get_mut(&shard) else { return Some(right) };
        let to = if *left > 0 { *wrong } else { right };
        *left = left.saturating_sub(1);
        self.hops.lock().push((from, to));
        Some(to)
    }
}

/// The same, for one node.
pub struct Road {
    pub from: NodeId,
    pub roads: Arc<Roads>,
}

/// The gateway takes no more at once.
fn carried(message: &impl serde::Serialize) -> Answer<Vec<u8>> {
    let bytes = rmp_serde::to_vec_named(message).unwrap();
    if bytes.len() > GATEWAY_MESSAGE_BYTES {
        return Err(ApiError::new(ErrorCode::BodyTooLarge, format!("a call of {} bytes is too large", bytes.len())));
    }
    Ok(bytes)
}

impl Peers for Road {
    fn ask(
        &self,
        owner: SessionId,
        shard: ShardId,
        call: ShardCall,
    ) -> Pin<Box<dyn Future<Output = Result<ShardAnswer, CallError>> + Send + '_>> {
        let node = self.roads.way(self.from, owner, shard);
        let scheduler = node.and_then(|node| self.roads.schedulers.lock().get(&node).cloned());
        Box::pin(async move {
            let Some(scheduler) = scheduler else { return Err(CallError::NotServed) };
            // As over a wire.
            let call = rmp_serde::from_slice(&carried(&call)?).unwrap();
            let answer = scheduler.answer_peer(shard, call).await.map_err(ApiError::from);
            let answer: Answer<ShardAnswer> = rmp_serde::from_slice(&carried(&answer)?).unwrap();
            answer.map_err(CallError::from_peer)
        })
    }

    fn others(&self) -> Vec<SessionId> {
        self.roads.sessions.lock().keys().copied().collect()
    }

    fn changes(
        &self,
        of: SessionId,
        since: Option<LogPlace>,
    ) -> Pin<Box<dyn Future<Output = Result<Copied, CallError>> + Send + '_>> {
        let node = self.roads.sessions.lock().get(&of).copied();
        let scheduler = node.and_then(|node| self.roads.schedulers.lock().get(&node).cloned());
        Box::pin(async move {
            let Some(scheduler) = scheduler else { return Err(CallError::NotServed) };
            let answer = scheduler.changes_for_peer(since);
            let answer: Answer<Copied> = rmp_serde::from_slice(&rmp_serde::to_vec_named(&answer).unwrap()).unwrap();
            answer.map_err(CallError::from_peer)
        })
    }

    fn query(&self, what: ClusterQuery) -> Pin<Box<dyn Future<Output = NodeAnswers> + Send + '_>> {
        let nodes: BTreeSet<NodeId> =
            self.roads.sessions.lock().values().copied().filter(|node| *node != self.from).collect();
        let schedulers = self.roads.schedulers.lock().clone();
        Box::pin(async move {
            let mut answers = Vec::new();
            for node in nodes {
                let answer = match schedulers.get(&node) {
                    Some(scheduler) => scheduler.answer_query(what).await,
                    None => Err(CallError::NotServed.into()),
                };
                let answer: Answer<NodeAnswer> =
                    rmp_serde::from_slice(&rmp_serde::to_vec_named(&answer).unwrap()).unwrap();
                answers.push((format!("n{}", node.0), answer));
            }
            answers
        })
    }

    fn tell_released(&self, shard: ShardId, successor: SessionId) {
        let node = self.roads.sessions.lock().get(&successor).copied();
        if let Some(scheduler) = node.and_then(|node| self.roads.schedulers.lock().get(&node).cloned()) {
            scheduler.released_to(successor, shard);
        }
    }
}
