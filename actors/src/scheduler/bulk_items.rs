//! Does the items of a page.

use super::{
    Scheduler,
    bulk_ask::{ask_bulk, strange},
};
use crate::{
    ask::ask,
    calls::{FinalAction, ShardCall},
    handles::SessionHandles,
    shard::note_error,
};
use campanile_core::{
    bulk,
    job::{Command, Reply},
};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::{JobId, RunId, ShardId},
    limits::{BULK_AT_ONCE, BULK_FAILURES},
    operations::BulkCreate,
    peer::bulk::{BulkAnswer, BulkCall, BulkWork, BulkWorked},
    stored::{
        audit::AuditRecord,
        bulk::{BulkAction, BulkCounts, BulkItem, StoredBulk},
    },
    text::Text,
    view::RetryBody,
};
use std::{collections::BTreeMap, sync::Arc};
use tokio::task::JoinSet;

/// What became of an item that is a call of its own.
enum ItemOutcome {
    Done,
    Unchanged,
}

impl Scheduler {
    /// Does items of the page that is open. `again`: they may have been done before.
    pub(super) async fn do_page(
        &self,
        handles: &Arc<SessionHandles>,
        stored: &StoredBulk,
        items: Vec<BulkItem>,
        again: bool,
    ) -> Answer<BulkWorked> {
        let work = BulkWork { items, ..bulk::work(stored, again) };
        match work.action {
            BulkAction::Pause | BulkAction::Resume | BulkAction::Delete | BulkAction::Cancel => {
                in_shards(handles, work).await
            }
            BulkAction::Trigger | BulkAction::Retry | BulkAction::Redrive => Ok(self.one_by_one(&work).await),
        }
    }

    /// A few at a time: a key is looked up for each, or the record of a run.
    async fn one_by_one(&self, work: &BulkWork) -> BulkWorked {
        let record = AuditRecord {
            origin: work.by.clone(),
            operation: Text::new_static(BulkCreate::NAME),
            target: Some(format!("bulk {}", work.bulk).into()),
            reason: work.reason.clone(),
            count: 1,
            ..AuditRecord::default()
        };
        let mut waiting = work.items.iter().copied();
        let mut unanswered = work.items.clone();
        let (mut asking, mut worked) = (JoinSet::new(), BulkWorked::default());
        loop {
            while asking.len() < BULK_AT_ONCE
                && let Some(item) = waiting.next()
            {
                let scheduler = self.audited(record.clone());
                let work = BulkWork { items: Vec::new(), ..work.clone() };
                asking.spawn(async move { (item, scheduler.one(item, &work).await) });
            }
            match asking.join_next().await {
                Some(Ok((item, outcome))) => {
                    unanswered.retain(|other| *other != item);
                    match outcome {
                        Ok(ItemOutcome::Done) => worked.counts.done += 1,
                        Ok(ItemOutcome::Unchanged) => worked.counts.unchanged += 1,
                        Err(error) => note_error(&mut worked, item, error),
                    }
                }
                // It panicked: nobody knows what was done.
                Some(Err(_)) => {}
                None => {
                    worked.left.extend(unanswered);
                    return worked;
                }
            }
        }
    }

    async fn one(&self, item: BulkItem, work: &BulkWork) -> Answer<ItemOutcome> {
        let reason = work.reason.as_ref().map(Text::to_string);
        match work.action {
            BulkAction::Retry | BulkAction::Redrive => {
                self.run_item_again(item, work.action == BulkAction::Redrive, work.again, reason).await
            }
            BulkAction::Trigger | BulkAction::Pause | BulkAction::Resume | BulkAction::Delete | BulkAction::Cancel => {
                let handles = self.handles()?;
                let job = JobId(item.id);
                // The same key again answers with the run that it made. The run tells who asked for it.
                let command = Command::Trigger {
                    key: bulk::key(work.bulk),
                    params: None,
                    reason,
                    by: self.caller(),
                    sealed: None,
                };
                let call = ShardCall::Trigger { job, command };
                ask::<Reply>(&handles.client, job.shard(handles.identity.shards), call).await?;
                Ok(ItemOutcome::Done)
            }
        }
    }

    /// Only in the generation that the page names: in a later one it was run again, by this operation or by somebody else.
    async fn run_item_again(
        &self,
        item: BulkItem,
        redrive: bool,
        again: bool,
        reason: Option<String>,
    ) -> Answer<ItemOutcome> {
        let (run, generation) = (RunId(item.id), item.generation);
        let later = || if again { ItemOutcome::Done } else { ItemOutcome::Unchanged };
        let view = self.run(run).await?;
        if view.generation != generation || !view.state.is_final() {
            return Ok(later());
        }
        let answer = if let Some(node) = view.dag_run_id.zip(view.dag_node) {
            let body = RetryBody { reason, force: false };
            self.retry_node(&view, node, redrive, body).await
        } else {
            let handles = self.handles()?;
            let action = FinalAction::ReopenOnce { generation, redrive, reason };
            let change = self.with_record(&handles, ShardCall::OnFinal { run, action });
            let shard = run.shard(handles.identity.shards);
            ask::<Reply>(&handles.client, shard, change).await.map(drop).map_err(ApiError::from)
        };
        match answer {
            Ok(()) => Ok(ItemOutcome::Done),
            // Somebody was faster.
            Err(error) if error.known() == ErrorCode::IllegalState && self.run(run).await?.generation > generation => {
                Ok(later())
            }
            Err(error) => Err(error),
        }
    }
}

/// One call to each shard that has some of the items: to one, unless the number of shards has changed.
async fn in_shards(handles: &Arc<SessionHandles>, work: BulkWork) -> Answer<BulkWorked> {
    let mut shards: BTreeMap<ShardId, Vec<BulkItem>> = BTreeMap::new();
    for item in &work.items {
        // The slot of a run is that of its job.
        shards.entry(JobId(item.id).shard(handles.identity.shards)).or_default().push(*item);
    }
    let mut all = BulkWorked::default();
    for (shard, items) in shards {
        let part = BulkWork { items, ..work.clone() };
        let call = ShardCall::Bulk(Box::new(BulkCall::Work(Box::new(part))));
        match ask_bulk(handles, shard, call).await? {
            BulkAnswer::Worked(worked) => add(&mut all, worked),
            other @ (BulkAnswer::State(_) | BulkAnswer::List(_) | BulkAnswer::Looked(_)) => {
                return Err(strange(&other));
            }
        }
    }
    Ok(all)
}

fn add(all: &mut BulkWorked, part: BulkWorked) {
    all.left.extend(part.left);
    add_counts(&mut all.counts, part.counts);
}

pub(super) fn add_counts(all: &mut BulkCounts, part: BulkCounts) {
    let BulkCounts { done, unchanged, failed, compensated, failures } = part;
    all.done += done;
    all.unchanged += unchanged;
    all.failed += failed;
    all.compensated += compensated;
    let room = BULK_FAILURES.saturating_sub(all.failures.len());
    all.failures.extend(failures.into_iter().take(room));
}
