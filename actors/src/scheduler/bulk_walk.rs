//! Finds the items of a bulk operation, a page at a time. Jobs and open runs come from their shards, one shard after the other; runs that
//! have ended come from the read model, as lists of them do.

use super::{
    Scheduler,
    bulk_ask::{ask_bulk, strange},
    queries::{DeadLetterFilter, RunQuery},
};
use crate::{ask::ask, calls::ShardCall, handles::SessionHandles};
use campanile_core::bulk;
use campanile_schema::{
    error::{Answer, ErrorCode},
    ids::{JobId, RunId, ShardId},
    limits::{BULK_COUNT_MS, BULK_COUNTED, BULK_LOOKS, BULK_PAGE, BULK_SHOWN},
    peer::{
        bulk::{BulkAnswer, BulkCall},
        runs::{OpenRunsPart, RunFilter, RunPlace},
    },
    record::RunState,
    stored::bulk::{BulkAction, BulkItem, BulkPage, BulkPlace, StoredBulk},
    text::Text,
    view::{RunView, bulk::BulkItemView},
};
use std::{sync::Arc, time::Duration};

/// Between two looks that found nothing, so that they do not follow each other at once.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// What was counted before an operation begins.
pub(super) struct Counted {
    pub items: u64,
    /// There are more.
    pub more: bool,
    pub first: Vec<BulkItem>,
}

impl Scheduler {
    /// The items at a place, and where the next ones are. Both may be none.
    async fn look(
        &self,
        handles: &Arc<SessionHandles>,
        bulk: &StoredBulk,
        place: Option<&BulkPlace>,
        limit: usize,
    ) -> Answer<BulkPage> {
        match bulk.action {
            BulkAction::Pause | BulkAction::Resume | BulkAction::Trigger | BulkAction::Delete => {
                jobs(handles, bulk, place, limit).await
            }
            BulkAction::Cancel => open_runs(handles, bulk, place, limit).await,
            BulkAction::Retry => self.ended_items(bulk, place, limit).await,
            BulkAction::Redrive => self.dead_items(bulk, place, limit).await,
        }
    }

    /// The next page that has items; or the last one, which may have none.
    pub(super) async fn next_page(&self, handles: &Arc<SessionHandles>, bulk: &StoredBulk) -> Answer<BulkPage> {
        let mut place = bulk.place.clone();
        loop {
            let page = self.look(handles, bulk, place.as_ref(), BULK_PAGE).await?;
            if !page.items.is_empty() || page.next.is_none() {
                return Ok(page);
            }
            place = page.next;
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Counts for a bounded time.
    pub(super) async fn count_bulk(&self, handles: &Arc<SessionHandles>, bulk: &StoredBulk) -> Answer<Counted> {
        let until = tokio::time::Instant::now() + Duration::from_millis(BULK_COUNT_MS);
        let mut counted = Counted { items: 0, more: false, first: Vec::new() };
        let mut place = None;
        loop {
            let page = self.look(handles, bulk, place.as_ref(), BULK_LOOKS).await?;
            counted.items += page.items.len() as u64;
            let room = BULK_SHOWN - counted.first.len();
            counted.first.extend(page.items.iter().take(room));
            place = page.next;
            if place.is_none() {
                return Ok(counted);
            }
            if counted.items >= BULK_COUNTED || tokio::time::Instant::now() >= until {
                return Ok(Counted { more: true, ..counted });
            }
        }
    }

    /// Items as a dry run shows them. One that is gone meanwhile is left out.
    pub(super) async fn first_items(&self, bulk: &StoredBulk, items: &[BulkItem]) -> Vec<BulkItemView> {
        let mut shown = Vec::with_capacity(items.len());
        for item in items {
            if bulk.action.is_of_jobs() {
                let Ok(job) = self.job(JobId(item.id)).await else { continue };
                let state = job.status.as_str().to_owned();
                shown.push(BulkItemView { id: item.id, name: Some(job.spec.name), state });
            } else if let Ok(run) = self.run(RunId(item.id)).await {
                let name = self.job(run.job_id).await.ok().map(|job| job.spec.name);
                shown.push(BulkItemView { id: item.id, name, state: run.state.as_str().to_owned() });
            }
        }
        shown
    }

    async fn ended_items(&self, bulk: &StoredBulk, place: Option<&BulkPlace>, limit: usize) -> Answer<BulkPage> {
        let query = RunQuery { filter: run_filter(bulk) };
        let page = self.run_list(&query, token(place), limit).await?;
        let items = page.items.iter().filter(|run| run.state.is_final()).map(item_of).collect();
        Ok(BulkPage { items, next: page.next_page_token.map(|token| BulkPlace::Page { token }) })
    }

    async fn dead_items(&self, bulk: &StoredBulk, place: Option<&BulkPlace>, limit: usize) -> Answer<BulkPage> {
        let stored = &bulk.filter;
        let filter = DeadLetterFilter {
            job: stored.job,
            from_ms: stored.from_ms.unwrap_or(i64::MIN),
            to_ms: stored.to_ms.unwrap_or(i64::MAX).min(bulk.created_ms),
            cause: stored.cause.clone(),
        };
        let tenant = bulk.tenant.as_deref().unwrap_or_default();
        let page = self.dead_letters(tenant, &filter, token(place), limit).await?;
        let mut items = Vec::with_capacity(page.items.len());
        for letter in page.items {
            let run = match self.run(letter.run_id).await {
                // Its record was dropped in between.
                Err(error) if error.known() == ErrorCode::NotFound => continue,
                answer => answer?,
            };
            if run.dead_letter && run.state.is_final() {
                items.push(item_of(&run));
            }
        }
        Ok(BulkPage { items, next: page.next_page_token.map(|token| BulkPlace::Page { token }) })
    }
}

fn item_of(run: &RunView) -> BulkItem {
    BulkItem { id: run.run_id.0, generation: run.generation }
}

fn token(place: Option<&BulkPlace>) -> Option<String> {
    match place {
        Some(BulkPlace::Page { token }) => Some(token.clone()),
        // From the beginning.
        Some(BulkPlace::Shard { .. }) | None => None,
    }
}

/// What is asked of lists of runs. Runs that were made or ended after the operation began are not its items.
fn run_filter(bulk: &StoredBulk) -> RunFilter {
    let filter = &bulk.filter;
    let of_action = |state: &&RunState| match bulk.action {
        BulkAction::Cancel => !state.is_final(),
        BulkAction::Retry => matches!(state, RunState::Failed | RunState::Timeout),
        BulkAction::Pause | BulkAction::Resume | BulkAction::Trigger | BulkAction::Delete | BulkAction::Redrive => {
            false
        }
    };
    let states: Vec<u8> = if filter.states.is_empty() {
        RunState::ALL.iter().filter(of_action).map(|state| state.code()).collect()
    } else {
        filter.states.clone()
    };
    RunFilter {
        tenant: bulk.tenant.as_ref().map(Text::to_string),
        states,
        job: filter.job,
        labels: filter.labels.clone(),
        source: filter.source,
        from_ms: filter.from_ms,
        to_ms: Some(filter.to_ms.unwrap_or(i64::MAX).min(bulk.created_ms)),
    }
}

/// A shard, and the job or run behind which a look begins.
fn in_shard(place: Option<&BulkPlace>, first: u16) -> (u16, u64, Option<i64>) {
    match place {
        Some(BulkPlace::Shard { shard, after, created_ms }) => ((*shard).max(first), *after, *created_ms),
        Some(BulkPlace::Page { .. }) | None => (first, 0, None),
    }
}

async fn jobs(
    handles: &SessionHandles,
    bulk: &StoredBulk,
    place: Option<&BulkPlace>,
    limit: usize,
) -> Answer<BulkPage> {
    let (shard, after, _) = in_shard(place, 0);
    let call = ShardCall::Bulk(Box::new(BulkCall::Look(Box::new(bulk::look(bulk, after, limit)))));
    let looked = match ask_bulk(handles, ShardId(shard), call).await? {
        BulkAnswer::Looked(looked) => looked,
        other @ (BulkAnswer::State(_) | BulkAnswer::List(_) | BulkAnswer::Worked(_)) => return Err(strange(&other)),
    };
    let next = match looked.next {
        Some(after) => Some(BulkPlace::Shard { shard, after, created_ms: None }),
        None => next_shard(shard, handles.identity.shards),
    };
    Ok(BulkPage { items: looked.items, next })
}

fn next_shard(shard: u16, shards: u16) -> Option<BulkPlace> {
    (shard + 1 < shards).then_some(BulkPlace::Shard { shard: shard + 1, after: 0, created_ms: None })
}

async fn open_runs(
    handles: &SessionHandles,
    bulk: &StoredBulk,
    place: Option<&BulkPlace>,
    limit: usize,
) -> Answer<BulkPage> {
    let shards = handles.identity.shards;
    let only = bulk.filter.job.map(|job| job.shard(shards));
    let (shard, after, created_ms) = in_shard(place, only.map_or(0, |shard| shard.0));
    let after = created_ms.map(|created_ms| RunPlace { created_ms, run: RunId(after) });
    let call = ShardCall::ListRuns { filter: run_filter(bulk).into(), after, limit };
    let OpenRunsPart { items, next } = ask(&handles.client, ShardId(shard), call).await?;
    let next = match next {
        Some(RunPlace { created_ms, run }) => {
            Some(BulkPlace::Shard { shard, after: run.0, created_ms: Some(created_ms) })
        }
        None if only.is_some() => None,
        None => next_shard(shard, shards),
    };
    Ok(BulkPage { items: items.iter().map(item_of).collect(), next })
}
