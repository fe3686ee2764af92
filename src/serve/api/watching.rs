//! Changes as server-sent events: `run` and `job` with a change, `dropped` when some were lost, `end` when no more will come,
//! `problem` when it ends before.
//!
//! The id of an event is where to go on: a browser sends the last one as `Last-Event-ID` when it connects again. A caller who does not
//! read loses changes and is told how many; it never holds up the node.

use super::{
    access,
    events::{self, Events, Over, stopped},
    route::{Answered, Call},
    stream,
};
use campanile_actors::changes::{
    ChangedItem,
    watch::{Batch, Watch},
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{JobId, RunId},
    limits::FOLLOW_MS,
    operations::Parts,
    record::RunState,
    watch::{WatchJobs, WatchRuns},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

/// One run or job of the path.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OneQuery {
    /// Go on behind this place: the id of an event.
    #[serde(default)]
    after: Option<String>,
    /// End after so many seconds (3,600 at most, and then unless told otherwise).
    #[serde(default)]
    wait_sec: Option<u64>,
}

/// Whose runs. What is left out does not narrow.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RunsQuery {
    #[serde(default)]
    run_id: Option<RunId>,
    #[serde(default)]
    job_id: Option<JobId>,
    #[serde(default)]
    tenant_id: Option<String>,
    /// Of jobs with these labels: `key=value,key2!=value2,key3`.
    #[serde(default)]
    labels: Option<String>,
    /// Only changes to this state.
    #[serde(default)]
    state: Option<RunState>,
    /// Go on behind this place: the id of an event.
    #[serde(default)]
    after: Option<String>,
    /// End after so many seconds (3,600 at most, and then unless told otherwise).
    #[serde(default)]
    wait_sec: Option<u64>,
}

/// Whose definitions. What is left out does not narrow.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct JobsQuery {
    #[serde(default)]
    job_id: Option<JobId>,
    #[serde(default)]
    tenant_id: Option<String>,
    /// With these labels: `key=value,key2!=value2,key3`.
    #[serde(default)]
    labels: Option<String>,
    /// Go on behind this place: the id of an event.
    #[serde(default)]
    after: Option<String>,
    /// End after so many seconds (3,600 at most, and then unless told otherwise).
    #[serde(default)]
    wait_sec: Option<u64>,
}

pub(super) async fn runs(call: Call, query: RunsQuery) -> Answered {
    let RunsQuery { run_id, job_id, tenant_id, labels, state, after, wait_sec } = query;
    let after = place(&call, after)?;
    let body = WatchRuns { run_id, job_id, tenant_id, labels, state, after };
    let watch = call.ops.run_watch(&call.caller, body).await?;
    send(call, watch, wait_sec)
}

pub(super) async fn run(call: Call, query: OneQuery) -> Answered {
    let (run_id, after) = (Some(call.run()?), place(&call, query.after)?);
    let watch = call.ops.run_watch(&call.caller, WatchRuns { run_id, after, ..WatchRuns::default() }).await?;
    send(call, watch, query.wait_sec)
}

pub(super) async fn jobs(call: Call, query: JobsQuery) -> Answered {
    let JobsQuery { job_id, tenant_id, labels, after, wait_sec } = query;
    let after = place(&call, after)?;
    let watch = call.ops.job_watch(&call.caller, WatchJobs { job_id, tenant_id, labels, after }).await?;
    send(call, watch, wait_sec)
}

pub(super) async fn job(call: Call, query: OneQuery) -> Answered {
    let (job_id, after) = (Some(call.job()?), place(&call, query.after)?);
    let watch = call.ops.job_watch(&call.caller, WatchJobs { job_id, after, ..WatchJobs::default() }).await?;
    send(call, watch, query.wait_sec)
}

/// Where a browser stood counts more than where it first began.
fn place(call: &Call, after: Option<String>) -> Result<Option<String>, ApiError> {
    let last = call.headers.get("last-event-id").map(|id| id.to_str().map(str::to_owned)).transpose();
    let last =
        last.map_err(|_| ApiError::new(ErrorCode::InvalidArgument, "Last-Event-ID: is not a place of a watch"))?;
    Ok(last.or(after))
}

fn send(call: Call, mut watch: Watch, wait_sec: Option<u64>) -> Answered {
    // Some time or other the token is looked at again: the caller connects anew.
    let limit = Duration::from_millis(FOLLOW_MS);
    let limit = match wait_sec.map(Duration::from_secs) {
        Some(wait) if wait > limit => {
            let message = format!("waitSec: at most {}; connect again to go on", limit.as_secs());
            return Err(ApiError::new(ErrorCode::InvalidArgument, message));
        }
        Some(wait) => wait,
        None => limit,
    };
    let (pieces, response) = stream::answer(events::MEDIA, 1);
    let events = Events::new(pieces);
    let mut stopping = call.shared.stopping.clone();
    let revoked = call.revoked();
    tokio::spawn(async move {
        let sent = tokio::select! {
            sent = timeout(limit, tell(&mut watch, &events)) => sent.unwrap_or(Err(Over::Silent)),
            () = stopped(&mut stopping) => Err(Over::Silent),
            () = revoked => Err(Over::Failed(access::no_longer_valid())),
            () = events.gone() => Err(Over::Silent),
        };
        if let Err(Over::Failed(error)) = sent {
            events.problem(error).await;
        }
    });
    Ok(response)
}

async fn tell(watch: &mut Watch, events: &Events) -> Result<(), Over> {
    events.begin().await?;
    while let Some(Batch { items, cursor, dropped }) = watch.next().await? {
        if dropped > 0 {
            events.event("dropped", None, &json!({"dropped": dropped})).await?;
        }
        let last = items.len().saturating_sub(1);
        for (index, change) in items.iter().enumerate() {
            // Only behind the last of them is a place where one can go on.
            let id = (index == last).then_some(cursor.as_str());
            match &change.what {
                ChangedItem::Run(run) => events.event("run", id, run).await?,
                ChangedItem::Job(job) => events.event("job", id, job).await?,
            }
        }
        if items.is_empty() {
            events.beat(Some(&cursor)).await?;
        }
    }
    events.event("end", None, &json!({})).await
}
