//! Lists: jobs by scatter and gather over the shards, dead letters and failed runs from the view, ledgers.

use super::{
    Scheduler,
    fingerprint::{cause, dead_letter_reason},
    jobs::clamp_page,
    queries::DeadLetterFilter,
    runs::{parse_token, token},
    unavailable,
};
use crate::{ask::ask, call_error::CallError, calls::ShardCall, handles::SessionHandles};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    frame::encode,
    ids::{JobId, ShardId},
    job::JobView,
    limits::{self, ENDED_RUN_LOOKS},
    record::RunRecord,
    time::Timestamp,
    view::{DeadLetterView, JobFilter, LedgerEntryView, LedgerView, Page, RunView},
};
use std::{collections::VecDeque, sync::Arc};

/// Jobs that each shard is asked for beyond twice its part of a list.
const SPARE: usize = 4;
/// A page of the read model counts for at least so many dead letters that were looked at.
const LOOKS_PER_PAGE: usize = 50;

impl Scheduler {
    /// Waits until the read model shows what was durable at the call, half a second at most.
    pub async fn shown(&self) -> Answer<()> {
        self.handles()?.client.projector.shows_all().await;
        Ok(())
    }

    /// Ordered by id; the page token is the last id seen.
    pub async fn jobs(&self, filter: JobFilter) -> Answer<Page<JobView>> {
        let handles = self.handles()?;
        crate::filter::JobMatcher::parse(&filter).map_err(|e| ApiError::new(ErrorCode::InvalidArgument, e))?;
        let after = match &filter.page_token {
            None => 0,
            Some(text) => text
                .parse::<u64>()
                .map_err(|_| ApiError::new(ErrorCode::InvalidArgument, "pageToken is not one that this server gave"))?,
        };
        let size = clamp_page(filter.page_size.unwrap_or(100));
        let skip = filter.page.map_or(0, |p| p.saturating_sub(1) * size);
        let mut items = merged(&handles, &Arc::new(filter), after, skip + size + 1).await?;
        let mut items = items.split_off(skip.min(items.len()));
        let more = items.len() > size;
        items.truncate(size);
        let next_page_token = items.last().filter(|_| more).map(|j| j.job_id.to_string());
        Ok(Page { items, next_page_token })
    }

    /// Newest first. A page may have few although more follow: with filters a call looks at a bounded number.
    pub async fn dead_letters(
        &self,
        tenant: &str,
        filter: &DeadLetterFilter,
        page_token: Option<String>,
        page_size: usize,
    ) -> Answer<Page<DeadLetterView>> {
        let handles = self.handles()?;
        let (size, mut looked) = (clamp_page(page_size), 0);
        let mut after = page_token.as_deref().map(parse_token).transpose()?;
        handles.client.projector.shows_all().await;
        let mut items: Vec<DeadLetterView> = Vec::with_capacity(size);
        loop {
            let page = handles.views.dead_letters(tenant, after, size - items.len()).await;
            let page = page.map_err(|e| unavailable(&e))?;
            looked += page.items.len().max(LOOKS_PER_PAGE);
            let older = page.items.last().is_some_and(|last| last.ended_ms < Some(filter.from_ms));
            for record in page.items.iter().filter(|record| filter.fits(record)) {
                let name = self.job(record.job).await.ok().map(|j| j.spec.name);
                items.push(dead_letter(record, name));
            }
            after = page.next.filter(|_| !older);
            if after.is_none() || items.len() >= size || looked >= ENDED_RUN_LOOKS {
                return Ok(Page { items, next_page_token: after.as_deref().map(token) });
            }
        }
    }

    pub async fn failed_runs(
        &self,
        tenant: &str,
        page_token: Option<String>,
        page_size: usize,
    ) -> Answer<Page<RunView>> {
        let handles = self.handles()?;
        let after = page_token.as_deref().map(parse_token).transpose()?;
        handles.client.projector.shows_all().await;
        let page =
            handles.views.failed_runs(tenant, after, clamp_page(page_size)).await.map_err(|e| unavailable(&e))?;
        Ok(Page {
            items: page.items.iter().map(RunView::from).collect(),
            next_page_token: page.next.as_deref().map(token),
        })
    }

    /// What happened to every due instant in `(from, to]`; ends where the view ends.
    pub async fn ledger(&self, job: JobId, from_ms: i64, to_ms: i64, limit: usize) -> Answer<LedgerView> {
        if from_ms > to_ms {
            return Err(ApiError::new(ErrorCode::InvalidArgument, "'from' lies after 'to'"));
        }
        let handles = self.handles()?;
        handles.client.projector.shows_all().await;
        let rows = handles.views.ledger(job, from_ms, to_ms, limit + 1).await.map_err(|e| unavailable(&e))?;
        let truncated = rows.len() > limit;
        let rows = &rows[..rows.len().min(limit)];
        let items = rows
            .iter()
            .flat_map(|row| &row.entries)
            // An interval may reach over the edges; an instant outside is not asked for.
            .filter(|e| e.last_ms > from_ms && e.first_ms <= to_ms)
            .map(LedgerEntryView::from)
            .collect();
        let from = rows.first().map_or(from_ms, |r| r.from_ms.max(from_ms));
        let to = rows.last().map_or(from, |r| r.to_ms.min(to_ms));
        Ok(LedgerView { job_id: job, from: Timestamp(from), to: Timestamp(to), items, truncated })
    }
}

/// What is known of one shard's list while lists are merged.
struct Source {
    shard: ShardId,
    /// Asked up to this id.
    after: u64,
    /// Fetched and not taken yet, in order.
    ready: VecDeque<JobView>,
    /// There is nothing after what is ready.
    ended: bool,
}

/// The first `count` jobs of all shards with ids above `after`, in order. Ids are spread over the shards, so each is asked for little
/// more than its part; who runs out of what it gave is asked for more. A shard may be on another node: whole lists of all would be
/// as many times too much as there are shards.
async fn merged(
    handles: &Arc<SessionHandles>,
    filter: &Arc<JobFilter>,
    after: u64,
    count: usize,
) -> Answer<Vec<JobView>> {
    let limit = (count * 2 / usize::from(handles.identity.shards) + SPARE).min(count);
    let source = |shard| Source { shard: ShardId(shard), after, ready: VecDeque::new(), ended: false };
    let mut sources: Vec<Source> = (0..handles.identity.shards).map(source).collect();
    let mut jobs = Vec::new();
    loop {
        let mut asked = Vec::new();
        for source in sources.iter_mut().filter(|source| !source.ended && source.ready.is_empty()) {
            let (handles, shard) = (handles.clone(), source.shard);
            let call = ShardCall::ListJobs { filter: filter.clone(), after: source.after, limit };
            asked.push((source, tokio::spawn(async move { ask::<Vec<JobView>>(&handles.client, shard, call).await })));
        }
        for (source, answer) in asked {
            let views = answer.await.map_err(|_| CallError::Unanswered)??;
            source.ended = views.len() < limit && !may_be_cut(&views);
            source.after = views.last().map_or(source.after, |job| job.job_id.0);
            source.ready = views.into();
        }
        // In order as long as every shard has shown its next one, or has none.
        while jobs.len() < count && sources.iter().all(|source| source.ended || !source.ready.is_empty()) {
            let next = sources.iter_mut().filter(|source| !source.ready.is_empty());
            let Some(next) = next.min_by_key(|source| source.ready.front().map(|job| job.job_id)) else {
                return Ok(jobs);
            };
            jobs.extend(next.ready.pop_front());
        }
        if jobs.len() >= count {
            return Ok(jobs);
        }
    }
}

/// Whether a shard may have more than it gave, because its jobs are large.
fn may_be_cut(views: &[JobView]) -> bool {
    views.iter().map(|view| encode(view).len()).sum::<usize>() > limits::JOBS_CUT_BYTES
}

fn dead_letter(record: &RunRecord, job_name: Option<String>) -> DeadLetterView {
    let reason = dead_letter_reason(record);
    DeadLetterView {
        cause: Some(cause(&reason)),
        run_id: record.run,
        job_id: record.job,
        job_name,
        tenant_id: record.tenant.to_string(),
        reason,
        at: Timestamp(record.last_ms()),
        attempt_count: record.attempts.last().map_or(0, |a| a.attempt),
    }
}
