//! Sends a call to a shard, wherever it is: finds its owner, waits while the shard moves to another node, and refuses
//! the call before anything has changed when queues are full.

use crate::{
    call_error::CallError,
    calls::{ShardAnswer, ShardCall},
    journal::JournalHandle,
    messages::ShardMsg,
    projector::ProjectorHandle,
    shard_map::{ShardMap, ShardPlace},
    shutdown::Shutdown,
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::ShardId,
    view::DegradationLevel,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// How long a call waits for a shard that is on its way from one node to another: longer than a hand-over, and than a take-over of some
/// 100,000 jobs. With a million on two cores a take-over was up to 8 s (docs/performance.md): the caller is told 503 then, and nothing was done.
const OWNER_WAIT: Duration = Duration::from_secs(5);
/// Between two looks for its owner.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What is needed to ask a shard.
pub struct ShardClient {
    pub shards: Arc<ShardMap>,
    pub journal: JournalHandle,
    pub projector: ProjectorHandle,
    /// The session's.
    pub ended: Arc<Shutdown>,
}

impl ShardClient {
    /// Triggers of callers have to wait, while schedules fire.
    fn refuses_triggers(&self) -> bool {
        self.projector.degradation.level() >= DegradationLevel::TriggersRefused
    }

    /// Queues are so full that callers must wait.
    fn is_full(&self, shard: ShardId) -> bool {
        self.shards.is_full(shard) || self.journal.is_full() || self.projector.is_full()
    }
}

/// Asks a shard, wherever it is, and waits.
pub(crate) async fn ask<T>(client: &ShardClient, shard: ShardId, call: ShardCall) -> Result<T, CallError>
where
    T: TryFrom<ShardAnswer, Error = CallError>,
{
    let until = tokio::time::Instant::now() + OWNER_WAIT;
    loop {
        let answer = match client.shards.place(shard) {
            // It may begin to leave before it has answered.
            ShardPlace::Here if !client.shards.is_alone() => ask_here(client, shard, call.clone()).await,
            ShardPlace::Here => return ask_here(client, shard, call).await.and_then(T::try_from),
            ShardPlace::Elsewhere { owner, peers } => peers.ask(owner, shard, call.clone()).await,
            ShardPlace::TakenOver => Err(CallError::NotServed),
            ShardPlace::Nowhere => return Err(CallError::Unanswered),
        };
        match answer {
            Err(CallError::NotServed) if tokio::time::Instant::now() < until => {
                if client.ended.comes_within(LOOK_AGAIN).await {
                    // Nobody tells this session of owners any more: another one may know where the shard is.
                    return Err(CallError::NotServed);
                }
            }
            Err(CallError::NotServed) if !client.shards.may_act() => return Err(CallError::NoLease),
            answer => return answer.map_err(|error| call.told(error)).and_then(T::try_from),
        }
    }
}

/// Asks a shard of this node: what came from elsewhere is not sent on.
pub async fn ask_here(client: &ShardClient, shard: ShardId, call: ShardCall) -> Result<ShardAnswer, CallError> {
    let counted = call.is_counted();
    let refused = client.is_full(shard) || call.is_trigger() && client.refuses_triggers();
    if counted && refused {
        metrics::counter!("campanile_overloaded_total").increment(1);
        return Err(overloaded().into());
    }
    if counted {
        client.shards.handed(shard);
    }
    let (port, answer) = oneshot::channel();
    client.shards.send(shard, ShardMsg::Call(call, port));
    client.ended.or_answer(answer).await.unwrap_or(Err(CallError::Unanswered))
}

/// A shard is full, or what is behind it.
fn overloaded() -> ApiError {
    ApiError::new(ErrorCode::Overloaded, "the node's queues are full; try again later").retry_after(1.0)
}
