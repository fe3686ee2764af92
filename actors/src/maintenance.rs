//! What a session does beside the way of a trigger: make the read model durable, free the journal behind it, and let old
//! history go.

use crate::{
    directory::Directory,
    messages::{ShardFacts, ShardMsg},
    ports::Journal,
};
use std::{sync::Arc, time::Duration};
use tokio::{sync::oneshot, time::MissedTickBehavior};

/// Between two flushes of the read model, seconds: bounds what a start projects again.
pub(crate) const FLUSH_SECONDS: u64 = 6;
/// Rows that one round of retention deletes at most.
const RETAIN_ROWS: usize = 10_000;
/// Between two looks at the shards for the gauges, seconds.
const GAUGE_SECONDS: u64 = 5;
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Runs until it is aborted.
pub async fn run(directory: Arc<Directory>, journal: Arc<dyn Journal>, retention_days: u32) {
    let mut rounds = tokio::time::interval(Duration::from_secs(FLUSH_SECONDS));
    let mut gauges = tokio::time::interval(Duration::from_secs(GAUGE_SECONDS));
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    gauges.set_missed_tick_behavior(MissedTickBehavior::Delay);
    rounds.tick().await;
    loop {
        tokio::select! {
            _ = gauges.tick() => {
                facts(&directory).await;
            }
            _ = rounds.tick() => {
                if let Err(error) = round(&directory, &*journal, retention_days).await {
                    tracing::warn!(%error, "maintenance of the store failed; it is tried again");
                }
            }
        }
    }
}

/// Makes the read model durable, frees what the journal needs no more, deletes what is too old.
pub(crate) async fn round(
    directory: &Arc<Directory>,
    journal: &dyn Journal,
    retention_days: u32,
) -> Result<(), crate::ports::StoreError> {
    let flushed = directory.views.flush().await?;
    #[cfg(feature = "faults")]
    crate::faults::point("view_flush");
    // Taken before the shards are asked: a frame appended later stands behind it.
    let mut upto = directory.journal.durable().min(flushed);
    let facts = facts(directory).await;
    if facts.len() < usize::from(directory.shards) {
        // A shard did not answer: what it needs is not known.
        return Ok(());
    }
    for facts in facts {
        if let Some(needed) = facts.needs_after {
            upto = upto.min(needed);
        }
    }
    journal.trim(upto).await?;
    metrics::gauge!("campanile_journal_stored_bytes").set(journal.stored_bytes() as f64);
    if retention_days > 0 {
        let before = directory.time.now_ms() - i64::from(retention_days) * DAY_MS;
        let gone = directory.views.retain(before, RETAIN_ROWS).await?;
        metrics::counter!("campanile_history_rows_expired_total").increment(gone);
    }
    Ok(())
}

/// Asks every shard.
pub async fn facts(directory: &Directory) -> Vec<ShardFacts> {
    let mut asked = Vec::new();
    for shard in directory.shard_list() {
        let (port, answer) = oneshot::channel();
        if shard.cast(ShardMsg::Facts(port)).is_ok() {
            asked.push(answer);
        }
    }
    let mut facts = Vec::with_capacity(asked.len());
    for answer in asked {
        if let Ok(fact) = answer.await {
            facts.push(fact);
        }
    }
    metrics::gauge!("campanile_jobs").set(facts.iter().map(|f| f.jobs).sum::<u64>() as f64);
    metrics::gauge!("campanile_open_runs").set(facts.iter().map(|f| f.open_runs).sum::<u64>() as f64);
    metrics::gauge!("campanile_wheel_entries").set(facts.iter().map(|f| f.wheel).sum::<u64>() as f64);
    metrics::gauge!("campanile_journal_in_flight_frames").set(directory.journal.in_flight() as f64);
    metrics::gauge!("campanile_projection_lag_events").set(directory.projector.lag_events() as f64);
    metrics::gauge!("campanile_active_job_actors").set(facts.iter().map(|f| f.active).sum::<u64>() as f64);
    facts
}
