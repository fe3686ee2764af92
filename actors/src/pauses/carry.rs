//! Carries pauses to the shards that do not hold them yet.

use crate::{calls::ShardCall, directory::Directory, fan_out::ask_each};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Between two looks at what is on its way.
pub(super) const ROUND: Duration = Duration::from_secs(1);

/// Until the session is over.
pub(crate) async fn run(directory: Arc<Directory>) {
    loop {
        if directory.health.ended.comes_within(ROUND).await {
            return;
        }
        if !directory.shards.may_act() {
            continue;
        }
        let due = directory.pauses.due(Instant::now());
        let asked = due.iter().map(|(shard, pauses)| (*shard, ShardCall::HoldPauses(pauses.clone())));
        for (shard, answer) in ask_each::<()>(&directory, asked.collect::<Vec<_>>()).await {
            match answer {
                Ok(()) => directory.pauses.held(shard, &due[&shard]),
                // It is on its way from one node to another, or its node is cut off: again with the next round.
                Err(error) => tracing::debug!(%shard, %error, "a shard does not hold a pause yet"),
            }
        }
    }
}
