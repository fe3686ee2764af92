//! Why a call has no answer.

use campanile_schema::{
    error::ApiError,
    rpc::{codec::FrameError, encode::EncodeError},
};

/// Why a call has no answer, and what that says of its effect.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// The node refused it; nothing changed unless the code's text says so.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The connection broke before the answer: the call may or may not have been carried out.
    #[error("connection to {address}: {reason}")]
    Io { address: String, reason: String },
    /// No answer in time: the call may or may not have been carried out.
    #[error("no answer to {method} within {seconds} s; the call may or may not have been carried out")]
    Timeout { method: &'static str, seconds: f64 },
    /// The peer does not speak this protocol, or not this version of it.
    #[error("protocol: {0}")]
    Protocol(String),
}

impl From<FrameError> for ClientError {
    fn from(error: FrameError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<EncodeError> for ClientError {
    fn from(error: EncodeError) -> Self {
        Self::Api(error.into())
    }
}

impl ClientError {
    pub(crate) fn io(address: &str, reason: impl std::fmt::Display) -> Self {
        Self::Io { address: address.to_owned(), reason: reason.to_string() }
    }

    /// The node's answer, when it gave one.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            Self::Io { .. } | Self::Timeout { .. } | Self::Protocol(_) => None,
        }
    }
}
