//! Routes of runs, their logs, and dead letters.

use super::{
    follow,
    route::{Call, Reply, Route},
};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    limits::LOG_BYTES_PER_ATTEMPT,
    record::RunState,
    view::{ConfirmBody, DeadLetterView, LogBody, LogView, Page, ReasonBody, RunView, TenantPageBody},
};
use schemars::JsonSchema;
use serde::Deserialize;

type Answer<T> = Result<T, ApiError>;

/// Which runs, across jobs.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RunsQuery {
    /// FAILED (it includes TIMEOUT): other states are listed by job.
    #[serde(default)]
    state: Option<RunState>,
    #[serde(default)]
    tenant_id: Option<String>,
    #[serde(default)]
    page_token: Option<String>,
    #[serde(default)]
    page: Option<usize>,
    #[serde(default)]
    page_size: Option<usize>,
}

/// How long to wait for the end of a run.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RunQuery {
    /// Answer when the run is final, at the latest after so many seconds (60 at most). Default: at once.
    #[serde(default)]
    wait_sec: Option<u64>,
}

/// Form of a log.
#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LogFormat {
    #[default]
    Json,
    Text,
}

/// Which part of which log.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LogQuery {
    /// Default: the newest.
    #[serde(default)]
    attempt: Option<u32>,
    /// Bytes to leave out at the start.
    #[serde(default)]
    offset: Option<u64>,
    /// `text`: all that there is from the offset on, as it was written, with X-Next-Offset and X-Log-End.
    #[serde(default)]
    format: LogFormat,
    /// Server-sent events while it grows, over all attempts to come unless one is named: `log` with what was written, `end` when no
    /// more will be. `Last-Event-ID` goes on where a connection broke.
    #[serde(default)]
    follow: bool,
}

const BAD_LIST: &[ErrorCode] = &[ErrorCode::InvalidArgument, ErrorCode::NotFound];
const BAD_CHANGE: &[ErrorCode] = &[
    ErrorCode::InvalidArgument,
    ErrorCode::MalformedBody,
    ErrorCode::NotFound,
    ErrorCode::IllegalState,
    ErrorCode::RunActive,
    ErrorCode::BodyTooLarge,
    ErrorCode::UnsupportedMediaType,
    ErrorCode::JobQueueFull,
    ErrorCode::JobPaused,
    ErrorCode::TenantQuota,
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/runs", "run.failed", "FAILED and TIMEOUT runs, newest first")
            .query(failed)
            .errors(BAD_LIST),
        Route::get("/api/v1/runs/{runId}", "run.get", "A run with its attempts; can wait for its end")
            .query(get)
            .errors(BAD_LIST),
        Route::post("/api/v1/runs/{runId}/cancel", "run.cancel", "Cancel a run that is not final")
            .optional_body(cancel)
            .errors(BAD_CHANGE),
        Route::post("/api/v1/runs/{runId}/retry", "run.retry", "Run a final run again, as its next generation")
            .optional_body(retry)
            .errors(BAD_CHANGE),
        Route::post("/api/v1/runs/{runId}/confirm", "run.confirm", "Decide about a run in NEEDS_CONFIRMATION")
            .body(confirm)
            .errors(BAD_CHANGE),
        Route::get("/api/v1/runs/{runId}/log", "run.log", "The output of an attempt")
            .query_or_text(&["text/plain", follow::MEDIA], log)
            .errors(BAD_LIST),
        Route::get("/api/v1/dead-letters", "dlq.list", "Dead letters, newest first")
            .query(dead_letters)
            .errors(BAD_LIST),
        Route::post("/api/v1/dead-letters/{runId}/redrive", "dlq.redrive", "Run a dead letter again")
            .optional_body(redrive)
            .errors(BAD_CHANGE),
        Route::post("/api/v1/dead-letters/{runId}/discard", "dlq.discard", "Put a dead letter away; the run stays")
            .optional_body(discard)
            .status(204)
            .errors(BAD_CHANGE),
    ]
}

async fn failed(call: Call, query: RunsQuery) -> Answer<Page<RunView>> {
    if query.state.is_some_and(|state| state != RunState::Failed) {
        let message = "state: only FAILED (with TIMEOUT) is listed across jobs; others by /api/v1/jobs/{jobId}/runs";
        return Err(ApiError::new(ErrorCode::InvalidArgument, message));
    }
    let RunsQuery { state: _, tenant_id, page_token, page, page_size } = query;
    call.ops.run_failed(&call.caller, TenantPageBody { tenant_id, page_token, page, page_size }).await
}
async fn get(call: Call, query: RunQuery) -> Answer<RunView> {
    let run = call.run()?;
    match query.wait_sec {
        None | Some(0) => call.ops.run_get(&call.caller, run).await,
        Some(seconds) => call.ops.run_wait(&call.caller, run, seconds.saturating_mul(1000)).await,
    }
}
async fn cancel(call: Call, body: ReasonBody) -> Answer<RunView> {
    call.ops.run_cancel(&call.caller, call.run()?, body).await
}
async fn retry(call: Call, body: ReasonBody) -> Answer<RunView> {
    call.ops.run_retry(&call.caller, call.run()?, body).await
}
async fn confirm(call: Call, body: ConfirmBody) -> Answer<RunView> {
    call.ops.run_confirm(&call.caller, call.run()?, body).await
}
async fn log(call: Call, query: LogQuery) -> Answer<Reply<LogView>> {
    let run = call.run()?;
    let LogQuery { attempt, offset, format, follow } = query;
    if follow {
        return follow::follow(call, run, LogBody { attempt, offset }).await.map(Reply::Other);
    }
    let mut view = call.ops.run_log(&call.caller, run, LogBody { attempt, offset }).await?;
    if format == LogFormat::Json {
        return Ok(Reply::Json(view));
    }
    // Whole, of the attempt that the first part was of, within what is kept of an attempt.
    let mut text = std::mem::take(&mut view.text);
    while !view.end && text.len() < LOG_BYTES_PER_ATTEMPT {
        let body = LogBody { attempt: Some(view.attempt), offset: Some(view.next_offset) };
        let next = call.ops.run_log(&call.caller, run, body).await?;
        let stands = next.next_offset == view.next_offset;
        text.push_str(&next.text);
        view = next;
        if stands {
            break;
        }
    }
    let headers = vec![
        ("x-attempt", view.attempt.to_string()),
        ("x-next-offset", view.next_offset.to_string()),
        ("x-log-end", view.end.to_string()),
    ];
    Ok(Reply::Text(text, headers))
}
async fn dead_letters(call: Call, body: TenantPageBody) -> Answer<Page<DeadLetterView>> {
    call.ops.dlq_list(&call.caller, body).await
}
async fn redrive(call: Call, body: ReasonBody) -> Answer<RunView> {
    call.ops.dlq_redrive(&call.caller, call.run()?, body).await
}
async fn discard(call: Call, body: ReasonBody) -> Answer<()> {
    call.ops.dlq_discard(&call.caller, call.run()?, body).await
}
