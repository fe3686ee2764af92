//! Calls to many shards for one answer. A limited number runs at the same time, and the whole call has a time limit.

use crate::{
    ask::{ShardClient, ask},
    call_error::CallError,
    calls::{ShardAnswer, ShardCall},
};
use campanile_schema::ids::ShardId;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

/// Shards that are asked at the same time for one call.
const ASKED_AT_ONCE: usize = 32;
/// Longest wait for all of them: somewhat longer than a shard takes from one node to another. Less than callers wait.
const ALL_ANSWER: Duration = Duration::from_secs(8);

/// What each of them says. One without an answer in time may or may not have done what it was asked.
pub(crate) async fn ask_each<T>(
    client: &Arc<ShardClient>,
    asked: impl IntoIterator<Item = (ShardId, ShardCall)>,
) -> BTreeMap<ShardId, Result<T, CallError>>
where
    T: TryFrom<ShardAnswer, Error = CallError> + Send + 'static,
{
    let until = Instant::now() + ALL_ANSWER;
    let mut waiting = asked.into_iter();
    let (mut asking, mut answers) = (JoinSet::new(), BTreeMap::new());
    loop {
        while asking.len() < ASKED_AT_ONCE
            && let Some((shard, call)) = waiting.next()
        {
            answers.insert(shard, Err(CallError::OutcomeUnknown));
            let client = client.clone();
            asking.spawn(async move { (shard, ask::<T>(&client, shard, call).await) });
        }
        match timeout_at(until, asking.join_next()).await {
            Ok(Some(Ok((shard, answer)))) => drop(answers.insert(shard, answer)),
            // It panicked: nobody knows.
            Ok(Some(Err(_))) => {}
            Ok(None) => return answers,
            Err(_) => {
                answers.extend(waiting.map(|(shard, _)| (shard, Err(CallError::OutcomeUnknown))));
                return answers;
            }
        }
    }
}

/// The same of every shard of the cluster, for calls that are of use only when all have answered.
pub(crate) async fn ask_all<T>(
    client: &Arc<ShardClient>,
    shards: impl Iterator<Item = ShardId>,
    call: &ShardCall,
) -> Result<Vec<T>, CallError>
where
    T: TryFrom<ShardAnswer, Error = CallError> + Send + 'static,
{
    ask_each(client, shards.map(|shard| (shard, call.clone()))).await.into_values().collect()
}
