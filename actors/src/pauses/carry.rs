//! Carries pauses to the shards that do not hold them yet.

use super::Pauses;
use crate::{ask::ShardClient, calls::ShardCall, fan_out::ask_each};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Between two looks at what is on its way.
pub(super) const ROUND: Duration = Duration::from_secs(1);

/// Until the session is over.
pub(crate) async fn run(client: Arc<ShardClient>, pauses: Arc<Pauses>) {
    loop {
        if client.ended.comes_within(ROUND).await {
            return;
        }
        if !client.shards.may_act() {
            continue;
        }
        let due = pauses.due(Instant::now());
        let asked = due.iter().map(|(shard, of_shard)| (*shard, ShardCall::HoldPauses(of_shard.clone())));
        for (shard, answer) in ask_each::<()>(&client, asked.collect::<Vec<_>>()).await {
            match answer {
                Ok(()) => pauses.held(shard, &due[&shard]),
                // It is on its way from one node to another, or its node is cut off: again with the next round.
                Err(error) => tracing::debug!(%shard, %error, "a shard does not hold a pause yet"),
            }
        }
    }
}
