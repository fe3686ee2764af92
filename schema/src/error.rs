//! Every reason for which a call can be refused or fail, in one table: code (RPC's too), HTTP status, CLI exit code, what it
//! means and what to do. `docs/errors.md` has a section for each; `tests/interfaces/errors` walks the table.
//!
//! Three kinds: *rejected* (the caller's doing; nothing changed), *failed* (try again later; nothing changed unless the
//! text says so), *bug* (500; please report).

use crate::limits::ERROR_LINE_BYTES;
use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $status:literal $text:literal exit $exit:literal
        title $title:literal advice $advice:literal),+ $(,)?) => {
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
            /// What it means, in one line, whatever the call was.
            pub fn title(self) -> &'static str { match self { $(Self::$name => $title),+ } }
            /// What to do, in one line. The section of `docs/errors.md` says more.
            pub fn advice(self) -> &'static str { match self { $(Self::$name => $advice),+ } }
            pub fn parse(text: &str) -> Option<Self> { Self::ALL.iter().copied().find(|c| c.as_str() == text) }
        }
    };
}

codes! {
    /// A field has a wrong value, type or name; the message names it.
    InvalidArgument = 400 "INVALID_ARGUMENT" exit 2
        title "A field or parameter has a wrong value, type or name"
        advice "Correct the field that the message names",
    /// The body is not JSON, MessagePack or UTF-8.
    MalformedBody = 400 "MALFORMED_BODY" exit 2
        title "The body is not JSON, MessagePack or UTF-8"
        advice "Send one value of JSON (RPC: MessagePack) in UTF-8; the message says where it breaks",
    /// A cron expression, with position and suggestion.
    InvalidSchedule = 400 "INVALID_SCHEDULE" exit 2
        title "The cron expression cannot be understood"
        advice "Try the expression with `campanile cron explain` or the schedule preview until it shows the instants you mean",
    /// A schedule without any instant in the future.
    ScheduleNeverFires = 400 "SCHEDULE_NEVER_FIRES" exit 2
        title "The schedule has no instant in the future"
        advice "Give the schedule at least one instant in the future",
    UnknownTimezone = 400 "UNKNOWN_TIMEZONE" exit 2
        title "The time zone is not in the database"
        advice "Use a name of the time zone database, such as Europe/Berlin",
    /// Secret params without a key in the configuration.
    NoSecretKey = 400 "NO_SECRET_KEY" exit 2
        title "Secret params need a key in the configuration ([secrets] key_file)"
        advice "Have the node's operator set [secrets] key_file, or leave secretParams out",
    Unauthenticated = 401 "UNAUTHENTICATED" exit 4
        title "No token, or one that is not known"
        advice "Send a token of the node's token file; `campanile token new` makes one",
    Forbidden = 403 "FORBIDDEN" exit 4
        title "This credential may not do that"
        advice "Use a credential of the role, tenant and pools that this needs",
    NotFound = 404 "NOT_FOUND" exit 3
        title "There is no such thing, or it belongs to another tenant"
        advice "Check the id or name, and that the token's tenant owns it",
    /// RPC: no such method. HTTP: no such path.
    UnknownMethod = 404 "UNKNOWN_METHOD" exit 3
        title "There is no such path or RPC method"
        advice "Check the name, and that the node is not older than what calls it",
    MethodNotAllowed = 405 "METHOD_NOT_ALLOWED" exit 2
        title "The path exists, but not with this method"
        advice "Use a method of the Allow header",
    /// The name is taken.
    DuplicateName = 409 "DUPLICATE_NAME" exit 5
        title "The tenant has a job of this name"
        advice "Choose another name, replace the job that has it, or create with an Idempotency-Key",
    /// The key of this create or trigger came with another request before.
    IdempotencyKeyReused = 409 "IDEMPOTENCY_KEY_REUSED" exit 5
        title "The key came with another request before"
        advice "Use a new key for a different request; repeat a trigger with the same params",
    /// The version is not the current one.
    StaleVersion = 409 "STALE_VERSION" exit 5
        title "Somebody else changed it meanwhile: read it again"
        advice "Read it again and repeat the change with the version that it has then",
    /// The state does not allow it (cancel of a final run, retry of an active one).
    IllegalState = 409 "ILLEGAL_STATE" exit 5
        title "Its state does not allow this"
        advice "Read it again: its state decides what can be done",
    /// A manual trigger under FORBID or QUEUE_ONE while a run is active.
    RunActive = 409 "RUN_ACTIVE" exit 5
        title "A run of the job is active and its concurrency policy allows one"
        advice "Wait for the active run or cancel it, or set concurrencyPolicy to ALLOW",
    /// An outcome with a token that is not the newest.
    StaleToken = 409 "STALE_TOKEN" exit 5
        title "The result belongs to an attempt that is not the newest"
        advice "Forget this result: a newer attempt counts",
    /// The job has no instants of its own, or none that a backfill could run.
    NoInstants = 409 "NO_INSTANTS" exit 5
        title "The job has no instants of its own"
        advice "Backfill a job with a CRON or FIXED_RATE trigger; trigger another one by hand",
    /// The job has an open backfill.
    BackfillActive = 409 "BACKFILL_ACTIVE" exit 5
        title "The job has a backfill that has not ended"
        advice "Wait for it or cancel it: a job has one backfill at a time",
    /// A job that undoes what the run did was started.
    Compensated = 409 "COMPENSATED" exit 5
        title "The compensation of the run was started, which undoes what the run did"
        advice "Trigger the job anew, or retry the run with force if it may go on all the same",
    DagCycle = 409 "DAG_CYCLE_DETECTED" exit 5
        title "The edges of the DAG make a cycle"
        advice "Take one of the edges of the cycle out",
    /// The DAG run that a node belongs to cannot go on: its record is not kept any more, or its DAG was deleted.
    HistoryGone = 410 "HISTORY_GONE" exit 5
        title "What this would go on with is not kept any more"
        advice "Trigger the DAG again: the history of the run that it would go on with is gone",
    /// The interval of a backfill holds too many instants.
    TooManyInstants = 413 "TOO_MANY_INSTANTS" exit 2
        title "The interval holds more instants than one backfill may have"
        advice "End the interval at the instant that the message names, and go on from there with another backfill",
    BodyTooLarge = 413 "BODY_TOO_LARGE" exit 2
        title "The body is larger than allowed"
        advice "Send less at once, and keep large data outside of params",
    /// HTTP: the body is declared as something else than JSON.
    UnsupportedMediaType = 415 "UNSUPPORTED_MEDIA_TYPE" exit 2
        title "The body is not declared as JSON"
        advice "Declare the body as the message says, for most calls application/json",
    JobPaused = 423 "JOB_PAUSED" exit 5
        title "The job, its tenant or the system is paused"
        advice "Resume the job, its tenant or the system first",
    TenantQuota = 429 "TENANT_QUOTA_EXCEEDED" exit 6
        title "A limit of the tenant is reached"
        advice "Ask for less, wait, or have an operator raise the tenant's limits",
    /// Too many open runs of one job.
    JobQueueFull = 429 "JOB_QUEUE_FULL" exit 6
        title "The job has too many open runs"
        advice "Wait until open runs of the job have ended",
    /// The credential calls more often than the node's configuration allows.
    RateLimited = 429 "RATE_LIMITED" exit 6
        title "The credential calls too often"
        advice "Repeat the call after retryAfterSec, or send many jobs in one call",
    /// A bug; the message has the id to report.
    Internal = 500 "INTERNAL" exit 1
        title "A bug: please report it with the request id"
        advice "Report it with the request id, and read what became of the call before you repeat it",
    /// A queue of the node is full.
    Overloaded = 503 "DISPATCHER_OVERLOADED" exit 7
        title "The node has too much to do: try again"
        advice "Repeat the call after retryAfterSec, and send fewer at once",
    /// The call needs an event format that not all nodes of the cluster can read yet.
    UpgradeUnderWay = 503 "UPGRADE_UNDER_WAY" exit 7
        title "This needs all nodes of the cluster to run the new release"
        advice "Repeat the call when all nodes run the new release; the log of a node says when the formats were raised",
    /// The store cannot be written, the clock is halted, or the node is starting or stopping.
    NotReady = 503 "NOT_READY" exit 7
        title "The node is starting, stopping, or cannot write or tell the time"
        advice "Repeat the call later; /readyz says what the node waits for",
    /// No answer in time; the call may or may not have been carried out.
    Timeout = 504 "TIMEOUT" exit 7
        title "No answer in time: the call may or may not have been carried out"
        advice "Read what became of the call before you repeat it",
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

/// Answer of a call, or the error that its caller gets.
pub type Answer<T> = Result<T, ApiError>;

impl ApiError {
    /// What callers wrote may be in the message, so a line of it that is longer than any of ours is cut.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > ERROR_LINE_BYTES && message.lines().any(|line| line.len() > ERROR_LINE_BYTES) {
            let lines: Vec<String> = message.lines().map(cut).collect();
            message = lines.join("\n");
        }
        Self { code: code.as_str().to_owned(), message, detail: None, retry_after_sec: None }
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

fn cut(line: &str) -> String {
    if line.len() <= ERROR_LINE_BYTES {
        return line.to_owned();
    }
    let end = (0..=ERROR_LINE_BYTES).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    format!("{}...", &line[..end])
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
impl std::error::Error for ApiError {}
