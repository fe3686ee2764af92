//! Calls about bulk operations.
//!
//! `bulk_drive` carries on those whose home shard this node serves; `bulk_walk` finds the items of a page; `bulk_items` does them;
//! `bulk_shown` is an operation as callers see it; `bulk_ask` asks a shard.

use super::{
    Scheduler,
    bulk_ask::{ask_bulk, state, strange},
    bulk_shown::view,
    jobs::{clamp_page, named},
};
use crate::{calls::ShardCall, fan_out::ask_each};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    format::MESSAGES_FORMAT,
    ids::{BulkId, ShardId, shard_of_slot, slot_of},
    peer::bulk::{BulkAnswer, BulkCall},
    stored::{audit::CallOrigin, bulk::StoredBulk},
    text::Text,
    view::{Page, bulk::BulkView},
};

impl Scheduler {
    /// Begins an operation; with `dry_run` it only counts its items, and shows the first.
    pub async fn create_bulk(&self, asked: StoredBulk, dry_run: bool) -> Answer<BulkView> {
        let handles = self.handles()?;
        if handles.in_use.event() < MESSAGES_FORMAT {
            let why =
                "not all nodes of the cluster run the release that knows bulk operations; repeat the call when they do";
            return Err(ApiError::new(ErrorCode::UpgradeUnderWay, why).retry_after(10.0));
        }
        let by = self.caller().map_or_else(CallOrigin::default, |origin| (*origin).clone());
        let mut asked = StoredBulk { by, created_ms: handles.identity.time.now_ms(), ..asked };
        let counted = self.count_bulk(&handles, &asked).await?;
        (asked.matched, asked.matched_more) = (counted.items, counted.more);
        if dry_run {
            let first = self.first_items(&asked, &counted.first).await;
            return Ok(BulkView { bulk_id: None, state: None, created_at: None, first, ..view(&asked) });
        }
        let slot = asked.tenant.as_deref().map_or(0, |tenant| slot_of(tenant, ""));
        let home = shard_of_slot(slot, handles.identity.shards);
        let create = self.with_record(&handles, ShardCall::Bulk(Box::new(BulkCall::Create(Box::new(asked)))));
        Ok(view(&state(ask_bulk(&handles, home, create).await?)?))
    }

    pub async fn bulk(&self, id: BulkId) -> Answer<BulkView> {
        Ok(view(&self.stored_bulk(id).await?))
    }

    pub(super) async fn stored_bulk(&self, id: BulkId) -> Answer<StoredBulk> {
        let handles = self.handles()?;
        let call = ShardCall::Bulk(Box::new(BulkCall::Get(id)));
        let answer = ask_bulk(&handles, id.shard(handles.identity.shards), call).await;
        state(answer.map_err(|error| named(error, "bulk operation", id))?)
    }

    /// Empty: of all tenants.
    pub async fn tenant_of_bulk(&self, id: BulkId) -> Answer<String> {
        self.bulk(id).await.map(|view| view.tenant_id.unwrap_or_default())
    }

    /// Begins no further page. The page that has begun is finished.
    pub async fn abort_bulk(&self, id: BulkId, reason: Option<String>) -> Answer<BulkView> {
        let reason = reason.map(Text::from);
        self.change_bulk(id, BulkCall::Abort { id, reason }).await
    }

    /// Makes the operation that takes it back.
    pub async fn undo_bulk(&self, id: BulkId, reason: Option<String>) -> Answer<BulkView> {
        let by = self.caller().map_or_else(CallOrigin::default, |origin| (*origin).clone());
        self.change_bulk(id, BulkCall::Undo { id, by, reason: reason.map(Text::from) }).await
    }

    async fn change_bulk(&self, id: BulkId, call: BulkCall) -> Answer<BulkView> {
        let handles = self.handles()?;
        let change = self.with_record(&handles, ShardCall::Bulk(Box::new(call)));
        let answer = ask_bulk(&handles, id.shard(handles.identity.shards), change).await;
        Ok(view(&state(answer.map_err(|error| named(error, "bulk operation", id))?)?))
    }

    /// The newest first. None: of all tenants.
    pub async fn bulks(
        &self,
        tenant: Option<&str>,
        page_token: Option<String>,
        page_size: usize,
    ) -> Answer<Page<BulkView>> {
        let handles = self.handles()?;
        let shards = handles.identity.shards;
        let after = page_token.as_deref().map(place).transpose()?;
        let asked: Vec<ShardId> = match tenant {
            Some(tenant) => vec![shard_of_slot(slot_of(tenant, ""), shards)],
            None => (0..shards).map(ShardId).collect(),
        };
        let call = ShardCall::Bulk(Box::new(BulkCall::List { tenant: tenant.map(Text::from) }));
        let mut found: Vec<StoredBulk> = Vec::new();
        for (_, answer) in
            ask_each::<Box<BulkAnswer>>(&handles.client, asked.into_iter().map(|s| (s, call.clone()))).await
        {
            match *answer? {
                BulkAnswer::List(some) => found.extend(some),
                other @ (BulkAnswer::State(_) | BulkAnswer::Looked(_) | BulkAnswer::Worked(_)) => {
                    return Err(strange(&other));
                }
            }
        }
        found.sort_by_key(|bulk| std::cmp::Reverse((bulk.created_ms, bulk.id)));
        found.retain(|bulk| after.is_none_or(|after| (bulk.created_ms, bulk.id) < after));
        let size = clamp_page(page_size);
        let more = found.len() > size;
        found.truncate(size);
        let token = found.last().filter(|_| more).map(|last| format!("{}.{}", last.created_ms, last.id));
        Ok(Page { items: found.iter().map(view).collect(), next_page_token: token })
    }
}

/// Where a page of the list begins.
fn place(token: &str) -> Answer<(i64, BulkId)> {
    let parsed = token.split_once('.').and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    parsed.ok_or_else(|| ApiError::new(ErrorCode::InvalidArgument, "pageToken is not one that this server gave"))
}
