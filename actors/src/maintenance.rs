//! Work of a session besides triggers: it makes the read model durable, frees the journal that the read model and the
//! snapshots cover, and deletes old history.

use crate::{
    ask::ShardClient,
    identity::Identity,
    measure::shares,
    messages::{ShardFacts, ShardMsg},
    tenants::TenantGauges,
};
use campanile_core::outbox::keys;
use campanile_ports::{Journal, LocalViews};
use campanile_schema::limits;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, MissedTickBehavior},
};

/// Between two rounds, seconds.
pub(crate) const ROUND_SECONDS: u64 = 6;
/// Rows of the read model that are worth a flush, bytes: some 6,000 runs, which a start projects again in no time. Each flush writes a file
/// for each table, and eight of them are merged with what is there: a node that does little would write most for that.
const FLUSH_BYTES: u64 = 4 << 20;
/// What was not worth one is flushed after this time all the same, and the journal behind it freed.
const FLUSH_AFTER: Duration = Duration::from_secs(300);
/// Calls of retention in one round: with [`limits::RETAIN_ROWS`] runs each, twice as many as a node of 40,000 runs/s makes in the
/// time between two rounds.
const RETAIN_CALLS: usize = 48;
/// Runs younger than this never go for want of room, ms: somebody may be waiting for their result.
const SHRINK_KEEPS_MS: i64 = 60_000;

/// What of a directory is maintained.
#[derive(Clone)]
pub struct LocalStore {
    pub journal: Arc<dyn Journal>,
    pub views: Arc<dyn LocalViews>,
}

/// How much history is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retention {
    /// 0 = for ever.
    pub days: u32,
    /// On disk, bytes; 0 = as much as there is room for.
    pub max_bytes: u64,
    /// The audit trail; 0 = for ever.
    pub audit_days: u32,
}
/// Between two looks at the shards for the gauges, seconds.
const GAUGE_SECONDS: u64 = 5;
/// Between two looks at the read model's lag, seconds: it costs nothing.
const LAG_SECONDS: u64 = 1;
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Runs until it is aborted.
pub async fn run(identity: Arc<Identity>, client: Arc<ShardClient>, store: LocalStore, retention: Retention) {
    let mut rounds = tokio::time::interval(Duration::from_secs(ROUND_SECONDS));
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    rounds.tick().await;
    let mut flushed = Instant::now();
    loop {
        rounds.tick().await;
        let flush = store.views.unflushed_bytes() >= FLUSH_BYTES || flushed.elapsed() >= FLUSH_AFTER;
        match round(&identity, &client, &store, retention, flush).await {
            Ok(()) if flush => flushed = Instant::now(),
            Ok(()) => {}
            Err(error) => tracing::warn!(%error, "maintenance of the store failed; it is tried again"),
        }
    }
}

/// Keeps the gauges up to date until it is aborted.
pub(crate) async fn gauges(client: Arc<ShardClient>, tenants: Arc<TenantGauges>) {
    // The shards may take their time to answer.
    tokio::join!(shard_gauges(&client, &tenants), lag_gauges(&client));
}

async fn shard_gauges(client: &ShardClient, tenants: &TenantGauges) {
    let mut gauges = tokio::time::interval(Duration::from_secs(GAUGE_SECONDS));
    gauges.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        gauges.tick().await;
        shares::tenants().look(tenants.levels());
        facts(client).await;
    }
}

async fn lag_gauges(client: &ShardClient) {
    let mut looks = tokio::time::interval(Duration::from_secs(LAG_SECONDS));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        metrics::gauge!("campanile_projection_lag_seconds").set(client.projector.lag().as_secs_f64());
        metrics::gauge!("campanile_projection_lag_events").set(client.projector.lag_events() as f64);
    }
}

/// Makes the read model durable if it is to be flushed, frees what the journal needs no more, deletes what is too old.
pub(crate) async fn round(
    identity: &Identity,
    client: &ShardClient,
    store: &LocalStore,
    retention: Retention,
    flush: bool,
) -> Result<(), campanile_ports::StoreError> {
    let LocalStore { journal, views } = store;
    let flushed = if flush {
        let flushed = views.flush().await?;
        #[cfg(feature = "faults")]
        campanile_ports::faults::point("view_flush");
        flushed
    } else {
        views.flushed()
    };
    // Taken before the shards are asked: a frame appended later stands behind it.
    let mut upto = client.journal.durable().min(flushed);
    let facts = facts(client).await;
    if facts.len() < usize::from(identity.shards) {
        // A shard did not answer: what it needs is not known.
        return Ok(());
    }
    let restored_ms = facts.iter().filter_map(|facts| facts.restored_ms).max();
    views.keep_messages(messages_from(identity.time.now_ms(), restored_ms));
    for facts in facts {
        if let Some(needed) = facts.needs_after {
            upto = upto.min(needed);
        }
    }
    journal.trim(upto).await?;
    metrics::gauge!("campanile_journal_stored_bytes").set(journal.stored_bytes() as f64);
    let mut gone = 0;
    if retention.days > 0 {
        let before = identity.time.now_ms() - i64::from(retention.days) * DAY_MS;
        for _ in 0..RETAIN_CALLS {
            let removed = views.retain(before, limits::RETAIN_ROWS).await?;
            gone += removed;
            if removed < limits::RETAIN_ROWS as u64 {
                break;
            }
        }
    }
    if retention.audit_days > 0 {
        let before = identity.time.now_ms() - i64::from(retention.audit_days) * DAY_MS;
        // What is more than that goes in the rounds that follow.
        views.retain_audit(before, limits::RETAIN_ROWS).await?;
    }
    if retention.max_bytes > 0 {
        let before = identity.time.now_ms() - SHRINK_KEEPS_MS;
        let removed = views.shrink(retention.max_bytes, before).await?;
        if removed > 0 {
            tracing::info!(
                runs = removed,
                max_bytes = retention.max_bytes,
                "the oldest history went: it took too much room"
            );
        }
        gone += removed;
    }
    metrics::counter!("campanile_history_rows_expired_total").increment(gone);
    Ok(())
}

/// Runs of messages that ended then or later stay: their keys live two days, those of a restored store two days from the restore on.
fn messages_from(now_ms: i64, restored_ms: Option<i64>) -> i64 {
    match restored_ms {
        Some(restored_ms) if keys::keep_until(i64::MIN, Some(restored_ms)) > now_ms => i64::MIN,
        Some(_) | None => now_ms - limits::MESSAGE_KEY_MS,
    }
}

/// Asks every shard.
pub async fn facts(client: &ShardClient) -> Vec<ShardFacts> {
    let mut asked = Vec::new();
    for shard in client.shards.actors() {
        let (port, answer) = oneshot::channel();
        if shard.cast(ShardMsg::ReportFacts(port)).is_ok() {
            asked.push(answer);
        }
    }
    let mut facts = Vec::with_capacity(asked.len());
    for answer in asked {
        if let Some(fact) = client.ended.or_answer(answer).await {
            facts.push(fact);
        }
    }
    metrics::gauge!("campanile_shards_served").set(facts.len() as f64);
    metrics::gauge!("campanile_jobs").set(facts.iter().map(|f| f.jobs).sum::<u64>() as f64);
    metrics::gauge!("campanile_open_runs").set(facts.iter().map(|f| f.open_runs).sum::<u64>() as f64);
    metrics::gauge!("campanile_outbox_messages").set(facts.iter().map(|f| f.messages).sum::<u64>() as f64);
    metrics::gauge!("campanile_outbox_given_up").set(facts.iter().map(|f| f.given_up).sum::<u64>() as f64);
    metrics::gauge!("campanile_backfills_open").set(facts.iter().map(|f| f.backfills).sum::<u64>() as f64);
    metrics::gauge!("campanile_wheel_entries").set(facts.iter().map(|f| f.wheel).sum::<u64>() as f64);
    let owed_ms = facts.iter().map(|f| f.snapshot_owed_ms).max().unwrap_or_default();
    metrics::gauge!("campanile_snapshot_owed_seconds").set(owed_ms as f64 / 1000.0);
    metrics::gauge!("campanile_journal_in_flight_frames").set(client.journal.in_flight() as f64);
    metrics::gauge!("campanile_active_job_actors").set(facts.iter().map(|f| f.active).sum::<u64>() as f64);
    facts
}
