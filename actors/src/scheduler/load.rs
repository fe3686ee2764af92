//! How many instants are due in each of the next minutes, over all jobs.

use super::Scheduler;
use crate::{ask::ask, call_error::CallError, calls::ShardCall, handles::SessionHandles};
use campanile_schema::{
    error::{Answer, ApiError, ErrorCode},
    ids::ShardId,
    limits,
    peer::runs::{LoadPart, LoadQuery},
    time::Timestamp,
    view::runs::{LoadView, MinuteLoad},
};
use std::sync::Arc;

const MINUTE_MS: i64 = 60_000;

impl Scheduler {
    pub async fn load(&self, tenant: Option<String>, minutes: u32) -> Answer<LoadView> {
        let handles = self.handles()?;
        let now_ms = handles.identity.time.now_ms();
        let from_ms = now_ms.div_euclid(MINUTE_MS) * MINUTE_MS;
        let query = Arc::new(LoadQuery { tenant, from_ms, minutes });
        let of_shard = |shard| {
            let (handles, query) = (handles.clone(), query.clone());
            tokio::spawn(async move { load_of(&handles, ShardId(shard), query).await })
        };
        let asked: Vec<_> = (0..handles.identity.shards).map(of_shard).collect();
        let (mut total, mut truncated) = (nothing(minutes), false);
        for answer in asked {
            let part = answer.await.map_err(|_| CallError::Unanswered)??;
            add(&mut total, &part);
            truncated |= part.next.is_some();
        }
        let minute =
            |(index, count): (usize, u64)| MinuteLoad { at: Timestamp(from_ms + index as i64 * MINUTE_MS), count };
        let items = total.counts.into_iter().enumerate().map(minute).collect();
        Ok(LoadView { items, jobs: total.jobs, truncated: truncated || total.is_cut })
    }
}

fn add(total: &mut LoadPart, part: &LoadPart) {
    for (sum, count) in total.counts.iter_mut().zip(&part.counts) {
        *sum += count;
    }
    total.jobs += part.jobs;
    total.is_cut |= part.is_cut;
}

fn nothing(minutes: u32) -> LoadPart {
    LoadPart { counts: vec![0; minutes as usize], jobs: 0, next: None, is_cut: false }
}

/// Of one shard, in as many calls as it takes. Its `next` is left when those were not enough.
async fn load_of(handles: &SessionHandles, shard: ShardId, query: Arc<LoadQuery>) -> Result<LoadPart, ApiError> {
    let mut total = nothing(query.minutes);
    for _ in 0..limits::LOAD_ROUNDS {
        let call = ShardCall::DueLoad { query: query.clone(), after: total.next };
        let part = match ask::<LoadPart>(&handles.client, shard, call).await {
            Err(CallError::UnknownCall) => {
                let why = "a node of the cluster runs a release that does not count what is due; repeat the call later";
                return Err(ApiError::new(ErrorCode::UpgradeUnderWay, why).retry_after(10.0));
            }
            said => said?,
        };
        add(&mut total, &part);
        total.next = part.next;
        if total.next.is_none() {
            break;
        }
    }
    Ok(total)
}
