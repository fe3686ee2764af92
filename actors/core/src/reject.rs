//! A command that was refused because of what the caller asked. Nothing has changed.

use campanile_schema::error::{ApiError, ErrorCode};

/// Why a command was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    pub code: ErrorCode,
    pub message: String,
}

impl Rejection {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<Rejection> for ApiError {
    fn from(r: Rejection) -> Self {
        ApiError::new(r.code, r.message)
    }
}
