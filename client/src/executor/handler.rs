//! From a typed async function to a body, and from what it returns to a report.

use super::{body, context::Context};
use campanile_schema::{limits::RESULT_BYTES, payload::Payload};
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, future::Future, pin::Pin, sync::Arc};

/// A running body.
pub type BodyFuture = Pin<Box<dyn Future<Output = Report> + Send>>;
/// Makes a body for an attempt.
pub(super) type Body = Arc<dyn Fn(Context) -> BodyFuture + Send + Sync>;

/// Codes of errors that the SDK itself reports.
pub mod code {
    pub const HANDLER_ERROR: &str = "HANDLER_ERROR";
    pub const HANDLER_PANIC: &str = "HANDLER_PANIC";
    pub const NO_HANDLER: &str = "NO_HANDLER";
    pub const INVALID_PARAMS: &str = "INVALID_PARAMS";
    pub const INVALID_RESULT: &str = "INVALID_RESULT";
    pub const BODY_ABORTED: &str = "BODY_ABORTED";
    pub const CANCELED: &str = "CANCELED";
    pub const TIMEOUT: &str = "TIMEOUT";
    pub use campanile_schema::rpc::executor::{EXECUTOR_SHUTDOWN, LOST_CONTACT};
    /// Refused before the body began.
    pub const CREDIT_VOID: &str = "CREDIT_VOID";
    pub const OLD_EPOCH: &str = "OLD_EPOCH";
    pub const OLD_TOKEN: &str = "OLD_TOKEN";
    pub const NO_SLOT: &str = "NO_SLOT";
    pub const DRAINING: &str = "DRAINING";
    pub const UNKNOWN_ASSIGNMENT: &str = "UNKNOWN_ASSIGNMENT";
}

/// Why an attempt failed: a short stable code, and a sentence. `?` turns any error into one with code `HANDLER_ERROR`, and
/// therefore this is itself no [`std::error::Error`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    pub code: String,
    pub message: String,
    /// Trying again would be in vain: the run ends, however many attempts its policy has left.
    pub permanent: bool,
}

impl JobError {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), permanent: false }
    }
    /// A failure that no further attempt would change: no retry, the run is FAILED now.
    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { permanent: true, ..Self::new(code, message) }
    }
    pub fn message(message: impl Into<String>) -> Self {
        Self::new(code::HANDLER_ERROR, message)
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl<E: std::error::Error> From<E> for JobError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::message(message)
    }
}

/// How a body ended, with what it used.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub outcome: Result<Option<Payload>, JobError>,
    pub cpu_ms: Option<u64>,
    pub max_rss_kb: Option<u64>,
}

impl Report {
    pub fn success(result: Option<Payload>) -> Self {
        Self { outcome: Ok(result), cpu_ms: None, max_rss_kb: None }
    }
    pub fn failed(error: JobError) -> Self {
        Self { outcome: Err(error), cpu_ms: None, max_rss_kb: None }
    }
}

/// Wraps a handler with typed params.
pub(super) fn typed<P, R, F, Fut>(handler: F) -> Body
where
    P: DeserializeOwned + Send + 'static,
    R: Serialize,
    F: Fn(Context, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, JobError>> + Send + 'static,
{
    Arc::new(move |ctx: Context| {
        let params = serde_json::from_str::<P>(&ctx.assignment().params.0);
        match params {
            Ok(params) => {
                let body = handler(ctx.clone(), params);
                Box::pin(async move {
                    match body.await {
                        Ok(result) => finished(&ctx, &result),
                        Err(error) => Report::failed(error),
                    }
                }) as BodyFuture
            }
            // The next attempt would get the same.
            Err(e) => Box::pin(std::future::ready(Report::failed(JobError::permanent(
                code::INVALID_PARAMS,
                format!("params do not fit the handler: {e}"),
            )))),
        }
    })
}

/// Why blocking work gave no result: it panicked, or the runtime is gone.
pub(super) fn failed(error: tokio::task::JoinError) -> JobError {
    match error.try_into_panic() {
        Ok(panic) => body::panic_error(&*panic),
        Err(error) => JobError::new(code::BODY_ABORTED, error.to_string()),
    }
}

fn finished<R: Serialize>(ctx: &Context, result: &R) -> Report {
    match serde_json::to_string(result) {
        // What a handler without a result returns.
        Ok(text) if text == "null" => Report::success(None),
        Ok(text) => {
            if text.len() > RESULT_BYTES {
                ctx.log(format!("[the result of {} bytes is not kept; at most {RESULT_BYTES} are]", text.len()));
            }
            Report::success(Some(Payload(text)))
        }
        Err(e) => Report::failed(JobError::new(code::INVALID_RESULT, format!("the result is not JSON: {e}"))),
    }
}
