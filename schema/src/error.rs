//! Every reason for which a call can be refused or fail, in one table: code, HTTP status, CLI exit code.
//!
//! Three kinds: *rejected* (the caller's doing; nothing changed), *failed* (try again later; nothing changed unless the
//! text says so), *bug* (500; please report).

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $status:literal $text:literal exit $exit:literal),+ $(,)?) => {
        /// A stable code of an error, e.g. `423_JOB_PAUSED`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $name),+ }
        impl ErrorCode {
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// HTTP status.
            pub fn status(self) -> u16 { match self { $(Self::$name => $status),+ } }
            /// `STATUS_REASON`, stable for ever.
            pub fn as_str(self) -> &'static str { match self { $(Self::$name => concat!(stringify!($status), "_", $text)),+ } }
            /// Exit code of the CLI.
            pub fn exit_code(self) -> u8 { match self { $(Self::$name => $exit),+ } }
            pub fn parse(text: &str) -> Option<Self> { Self::ALL.iter().copied().find(|c| c.as_str() == text) }
        }
    };
}

codes! {
    /// A field has a wrong value, type or name; the message names it.
    InvalidArgument = 400 "INVALID_ARGUMENT" exit 2,
    /// The body is not JSON, MessagePack or UTF-8.
    MalformedBody = 400 "MALFORMED_BODY" exit 2,
    /// A cron expression, with position and suggestion.
    InvalidSchedule = 400 "INVALID_SCHEDULE" exit 2,
    /// A schedule without any instant in the future.
    ScheduleNeverFires = 400 "SCHEDULE_NEVER_FIRES" exit 2,
    UnknownTimezone = 400 "UNKNOWN_TIMEZONE" exit 2,
    /// Secret params without a key in the configuration.
    NoSecretKey = 400 "NO_SECRET_KEY" exit 2,
    Unauthenticated = 401 "UNAUTHENTICATED" exit 4,
    Forbidden = 403 "FORBIDDEN" exit 4,
    NotFound = 404 "NOT_FOUND" exit 3,
    /// RPC: no such method. HTTP: no such path.
    UnknownMethod = 404 "UNKNOWN_METHOD" exit 3,
    MethodNotAllowed = 405 "METHOD_NOT_ALLOWED" exit 2,
    /// The name is taken.
    DuplicateName = 409 "DUPLICATE_NAME" exit 5,
    /// The key of this create came with another body before.
    IdempotencyKeyReused = 409 "IDEMPOTENCY_KEY_REUSED" exit 5,
    /// The version is not the current one.
    StaleVersion = 409 "STALE_VERSION" exit 5,
    /// The state does not allow it (cancel of a final run, retry of an active one).
    IllegalState = 409 "ILLEGAL_STATE" exit 5,
    /// A manual trigger under FORBID or QUEUE_ONE while a run is active.
    RunActive = 409 "RUN_ACTIVE" exit 5,
    /// An outcome with a token that is not the newest.
    StaleToken = 409 "STALE_TOKEN" exit 5,
    DagCycle = 409 "DAG_CYCLE_DETECTED" exit 5,
    BodyTooLarge = 413 "BODY_TOO_LARGE" exit 2,
    /// HTTP: the body is declared as something else than JSON.
    UnsupportedMediaType = 415 "UNSUPPORTED_MEDIA_TYPE" exit 2,
    JobPaused = 423 "JOB_PAUSED" exit 5,
    TenantQuota = 429 "TENANT_QUOTA_EXCEEDED" exit 6,
    /// Too many open runs of one job.
    JobQueueFull = 429 "JOB_QUEUE_FULL" exit 6,
    /// A bug; the message has the id to report.
    Internal = 500 "INTERNAL" exit 1,
    /// A queue of the node is full.
    Overloaded = 503 "DISPATCHER_OVERLOADED" exit 7,
    /// The store cannot be written, the clock is halted, or the node is starting or stopping.
    NotReady = 503 "NOT_READY" exit 7,
    /// No answer in time; the call may or may not have been carried out.
    Timeout = 504 "TIMEOUT" exit 7,
}

/// An error as RPC sends it (`{code, message, detail}`) and, with the status added, as HTTP does (problem+json).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiError {
    pub code: String,
    /// One sentence: what is wrong and what to do.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<serde_json::Value>,
    /// Seconds after which a retry makes sense.
    #[serde(rename = "retryAfterSec", default, skip_serializing_if = "Option::is_none")]
    pub retry_after_sec: Option<f64>,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code: code.as_str().to_owned(), message: message.into(), detail: None, retry_after_sec: None }
    }
    pub fn retry_after(mut self, seconds: f64) -> Self {
        self.retry_after_sec = Some(seconds);
        self
    }
    pub fn with_detail(mut self, detail: serde_json::Value) -> Self {
        self.detail = Some(detail);
        self
    }
    /// The known code; a newer server's unknown one counts as internal.
    pub fn known(&self) -> ErrorCode {
        ErrorCode::parse(&self.code).unwrap_or(ErrorCode::Internal)
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
impl std::error::Error for ApiError {}
