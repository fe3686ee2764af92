//! Why a call to a shard got no answer from the shard. Within one node it is this type. Between nodes, and to callers,
//! it is an [`ApiError`] with a mark in its detail, as earlier releases write and read it.

use campanile_schema::error::{ApiError, ErrorCode};
use std::fmt;

/// Marks [`CallError::NotServed`].
const NOT_SERVED: &str = "takeOver";
/// Marks [`CallError::Unanswered`].
const UNANSWERED: &str = "unanswered";
/// Marks [`CallError::UnknownCall`].
const UNKNOWN_CALL: &str = "olderRelease";

/// See the module's text.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError {
    /// Nobody serves the shard; nothing was done.
    NotServed,
    /// The same, because this node has no lease and decides nothing.
    NoLease,
    /// The shard went away before it answered: the call may or may not have been carried out.
    Unanswered,
    /// [`Self::Unanswered`] of a call that changes something in a cluster. What was durable there counts for whoever takes the
    /// shard, also when the node that wrote it could not say so.
    OutcomeUnknown,
    /// The other node is of an earlier release and does not know the call; nothing was done.
    UnknownCall,
    /// The shard answered with this error, or the call was refused on the way to it.
    Refused(ApiError),
}

impl CallError {
    /// Reads what another node answered.
    pub fn from_peer(error: ApiError) -> Self {
        let is_marked = |mark: &str| error.detail.as_ref().is_some_and(|detail| detail.get(mark).is_some());
        if is_marked(NOT_SERVED) {
            Self::NotServed
        } else if is_marked(UNANSWERED) {
            Self::Unanswered
        } else if is_marked(UNKNOWN_CALL) {
            Self::UnknownCall
        } else {
            Self::Refused(error)
        }
    }

    /// The code that a caller is told.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotServed | Self::NoLease | Self::Unanswered => ErrorCode::NotReady,
            Self::OutcomeUnknown => ErrorCode::Timeout,
            Self::UnknownCall => ErrorCode::IllegalState,
            Self::Refused(error) => error.known(),
        }
    }

    fn message(&self) -> &str {
        match self {
            Self::NotServed => "nobody serves this shard at the moment; it is being taken over",
            Self::NoLease => "the cluster's store does not answer: without a lease the node decides nothing",
            Self::Unanswered => "the node is restarting its session; read before you ask again",
            Self::OutcomeUnknown => {
                "the shard went away before it answered: the call may or may not have been carried out"
            }
            Self::UnknownCall => "the other node does not know this call: it is of an older release",
            Self::Refused(error) => &error.message,
        }
    }
}

impl From<ApiError> for CallError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl From<CallError> for ApiError {
    fn from(error: CallError) -> Self {
        let (mark, retry_after) = match error {
            CallError::Refused(error) => return error,
            CallError::NotServed | CallError::NoLease => (Some(NOT_SERVED), true),
            CallError::Unanswered => (Some(UNANSWERED), true),
            CallError::OutcomeUnknown => (None, true),
            CallError::UnknownCall => (Some(UNKNOWN_CALL), false),
        };
        Self {
            detail: mark.map(|mark| serde_json::json!({ mark: true })),
            retry_after_sec: retry_after.then_some(1.0),
            ..Self::new(error.code(), error.message())
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            other => write!(f, "{}: {}", other.code().as_str(), other.message()),
        }
    }
}

impl std::error::Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_node_reads_the_error_that_was_sent() {
        for error in [CallError::NotServed, CallError::Unanswered, CallError::UnknownCall] {
            assert_eq!(CallError::from_peer(ApiError::from(error.clone())), error);
        }
        let refused = ApiError::new(ErrorCode::NotFound, "no job 7");
        assert_eq!(CallError::from_peer(refused.clone()), CallError::Refused(refused));
    }

    /// Nodes of earlier releases look for these marks.
    #[test]
    fn errors_between_nodes_are_those_of_earlier_releases() {
        let sent = |error| serde_json::to_string(&ApiError::from(error)).unwrap();
        assert_eq!(
            sent(CallError::NotServed),
            r#"{"code":"503_NOT_READY","message":"nobody serves this shard at the moment; it is being taken over","detail":{"takeOver":true},"retryAfterSec":1.0}"#
        );
        assert_eq!(
            sent(CallError::Unanswered),
            r#"{"code":"503_NOT_READY","message":"the node is restarting its session; read before you ask again","detail":{"unanswered":true},"retryAfterSec":1.0}"#
        );
    }
}
