//! What a body reports of its end, and the error of one that failed.

use campanile_schema::payload::Payload;
use std::{any::Any, fmt};

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

/// The error of a handler that panicked.
pub(super) fn panic_error(panic: &(dyn Any + Send)) -> JobError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)");
    JobError::new(code::HANDLER_PANIC, format!("the handler panicked: {text}"))
}
