//! Messages between jobs that wait or were given up: by scatter and gather over the shards.

use super::{Scheduler, jobs::clamp_page};
use crate::{
    ask::ask,
    call_error::CallError,
    calls::{OutboxAction, ShardCall},
};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::{RunId, ShardId},
    view::{Page, outbox::OutboxMessageView},
};

impl Scheduler {
    /// In the order of the runs that send them.
    pub async fn outbox(
        &self,
        tenant: Option<String>,
        page_token: Option<String>,
        page_size: usize,
    ) -> Answer<Page<OutboxMessageView>> {
        let handles = self.handles()?;
        let after = page_token.as_deref().map(parse).transpose()?;
        let size = clamp_page(page_size);
        let mut asked = Vec::new();
        for shard in (0..handles.identity.shards).map(ShardId) {
            let call = ShardCall::ListOutbox { tenant: tenant.clone(), after, limit: size + 1 };
            let client = handles.client.clone();
            asked.push(tokio::spawn(async move { ask::<Vec<OutboxMessageView>>(&client, shard, call).await }));
        }
        let mut items = Vec::new();
        for answer in asked {
            match answer.await.map_err(|_| CallError::Unanswered)? {
                Ok(of_shard) => items.extend(of_shard),
                // A node of a release that sends no messages.
                Err(CallError::UnknownCall) => {}
                Err(error) => return Err(error.into()),
            }
        }
        items.sort_by_key(|message| (message.run_id, message.generation));
        let more = items.len() > size;
        items.truncate(size);
        let token = |message: &OutboxMessageView| format!("{}.{}", message.run_id, message.generation);
        let next_page_token = items.last().filter(|_| more).map(token);
        Ok(Page { items, next_page_token })
    }

    /// Sends the messages of a run that were given up again, or puts them away.
    pub async fn change_outbox(&self, run: RunId, action: OutboxAction) -> Answer<()> {
        let handles = self.handles()?;
        let shard = run.shard(handles.identity.shards);
        let change = self.with_record(&handles, ShardCall::ChangeOutbox { run, action });
        Ok(ask(&handles.client, shard, change).await?)
    }
}

fn parse(token: &str) -> Answer<(RunId, u32)> {
    let parts = token.split_once('.').and_then(|(run, generation)| {
        let run = run.parse().ok()?;
        Some((RunId(run), generation.parse().ok()?))
    });
    parts.ok_or_else(|| ApiError::new(ErrorCode::InvalidArgument, "pageToken is not one that this server gave"))
}
