//! Carries calendars to the shards that do not hold them yet.

use super::OwedCalendars;
use crate::{ask::ShardClient, calls::ShardCall, fan_out::ask_each};
use campanile_schema::{peer::calendars::CalendarCall, stored::CalendarRecord};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Between two looks at what is on its way.
const ROUND: Duration = Duration::from_secs(1);

/// Until the session is over.
pub(crate) async fn run(client: Arc<ShardClient>, calendars: Arc<OwedCalendars>) {
    loop {
        if client.ended.comes_within(ROUND).await {
            return;
        }
        if !client.shards.may_act() {
            continue;
        }
        let due = calendars.due(Instant::now());
        let asked =
            due.iter().map(|(shard, records)| (*shard, ShardCall::Calendar(CalendarCall::Hold(records.clone()))));
        for (shard, answer) in ask_each::<Vec<CalendarRecord>>(&client, asked.collect::<Vec<_>>()).await {
            match answer {
                Ok(_) => calendars.held(shard, &due[&shard]),
                // It is on its way from one node to another, or its node is cut off: again with the next round.
                Err(error) => tracing::debug!(%shard, %error, "a shard does not hold a calendar yet"),
            }
        }
    }
}
