//! Why a command did not do what it was asked to.

use campanile_ports::StoreError;
use campanile_schema::error::{ApiError, ErrorCode};

/// An exit code and a sentence for stderr (empty = it was said already).
#[derive(Debug)]
pub(super) struct Failure {
    pub code: u8,
    /// Of a node's refusal.
    pub error: Option<ErrorCode>,
    pub message: String,
    /// What to do, told on a line of its own (empty = the message says it).
    pub advice: &'static str,
}

/// Wrong arguments.
pub(super) const USAGE: u8 = 2;
/// A run that was waited for ended, but not with SUCCESS.
pub(super) const NOT_SUCCESS: u8 = 8;

impl Failure {
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, error: None, message: message.into(), advice: "" }
    }
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }
    /// Something on this machine: a file, a port.
    pub fn here(message: impl Into<String>) -> Self {
        Self::new(1, message)
    }
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotReady.exit_code(), message)
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        let again = error.retry_after_sec.map(|seconds| format!(" (try again in {seconds} s)")).unwrap_or_default();
        let code = error.known();
        Self { error: Some(code), advice: code.advice(), ..Self::new(code.exit_code(), format!("{error}{again}")) }
    }
}

/// What a store could not do, with the exit code of its kind.
pub(super) fn of_store(error: &StoreError) -> Failure {
    match error {
        StoreError::Refused(why) => Failure::usage(why.clone()),
        StoreError::Unavailable(_) => Failure::unreachable(error.to_string()),
        StoreError::Unknown(_) | StoreError::WriteFailed(_) | StoreError::Corrupt(_) => {
            Failure::here(error.to_string())
        }
    }
}
