//! Why a call has no answer. What the caller must know is whether it may have been executed.

use campanile_schema::limits::{GATEWAY_MESSAGE_BYTES, GATEWAY_OUTBOX_REQUESTS};
use std::time::Duration;

/// See [`GatewayError::may_have_run`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    #[error("there is no connection to node {0} now")]
    NotConnected(String),
    #[error("{GATEWAY_OUTBOX_REQUESTS} calls, or too many bytes, wait already for node '{0}'")]
    OutboxFull(String),
    #[error("node '{0}' has as many calls under way as it takes from one node")]
    Overloaded(String),
    #[error("a call of {0} bytes is too large: at most {GATEWAY_MESSAGE_BYTES}")]
    TooLarge(usize),
    #[error("node '{node}' did not answer within {} ms{}", .after.as_millis(), if *.sent { "" } else { "; the call was not sent" })]
    TimedOut { node: String, after: Duration, sent: bool },
    #[error("the connection to node '{0}' was lost before it answered")]
    Lost(String),
    #[error("node '{node}' began and could not answer: {why}")]
    Broken { node: String, why: String },
}

impl GatewayError {
    /// False: it was not executed and never will be. True: nobody knows.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::NotConnected(_) | Self::OutboxFull(_) | Self::Overloaded(_) | Self::TooLarge(_) => false,
            Self::TimedOut { sent, .. } => *sent,
            Self::Lost(_) | Self::Broken { .. } => true,
        }
    }

    /// Label of the metric; one of [`RESULTS`].
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::NotConnected(_) => "not_connected",
            Self::OutboxFull(_) => "outbox_full",
            Self::Overloaded(_) => "overloaded",
            Self::TooLarge(_) => "too_large",
            Self::TimedOut { .. } => "timed_out",
            Self::Lost(_) => "lost",
            Self::Broken { .. } => "broken",
        }
    }
}

/// What `campanile_gateway_calls_total` tells of a call.
pub const RESULTS: [&str; 8] =
    ["answered", "not_connected", "outbox_full", "overloaded", "too_large", "timed_out", "lost", "broken"];
