//! A run's log: a part of it as JSON, all that there is as text, or as events while it grows.

use super::{
    follow,
    route::{Call, Reply},
};
use campanile_schema::{
    error::ApiError,
    ids::RunId,
    limits::LOG_BYTES_PER_ATTEMPT,
    operations::{Parts, RunLog},
    rpc::calls::RunCall,
    view::{LogBody, LogLevel, LogView},
};
use schemars::JsonSchema;
use serde::Deserialize;

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
pub(super) struct LogQuery {
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
    /// Only lines with this text, in large or small letters.
    #[serde(default)]
    contains: Option<String>,
    /// Only lines of this level or a more severe one.
    #[serde(default)]
    level: Option<LogLevel>,
    /// Only the last lines, so many of those that the other filters leave. With `follow` those that are there, and all to come.
    #[serde(default)]
    tail: Option<u32>,
}

pub(super) async fn log(call: Call, query: LogQuery) -> Result<Reply<LogView>, ApiError> {
    let run = call.run()?;
    let LogQuery { attempt, offset, format, follow, contains, level, tail } = query;
    let body = LogBody { attempt, offset, contains, level, tail };
    if follow {
        return follow::follow(call, run, body).await.map(Reply::Other);
    }
    let is_search = body.is_search();
    let mut view = part(&call, run, body).await?;
    if format == LogFormat::Json {
        return Ok(Reply::Json(view));
    }
    // Whole, of the attempt that the first part was of, within what is kept of an attempt.
    let mut text = std::mem::take(&mut view.text);
    while !is_search && !view.end && text.len() < LOG_BYTES_PER_ATTEMPT {
        let body = LogBody::at(Some(view.attempt), Some(view.next_offset));
        let next = part(&call, run, body).await?;
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

async fn part(call: &Call, run: RunId, body: LogBody) -> Result<LogView, ApiError> {
    call.ops.call::<RunLog>(&call.caller, RunCall::new(run, body)).await
}
