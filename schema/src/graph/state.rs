//! Words of a DAG run: the rules of nodes, their states, and why a node or the run took one.

use crate::job::upper_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// Which ends of its parents let a node run. `docs/graph-rules.md` has the whole table.
    NodeRule {
        /// All parents succeeded.
        AllSuccess = "ALL_SUCCESS" = 0,
        /// All parents have ended, in any way.
        AllDone = "ALL_DONE" = 1,
        /// One parent succeeded; the others may still run.
        AnySuccess = "ANY_SUCCESS" = 2,
        /// One parent failed; the others may still run.
        AnyFailed = "ANY_FAILED" = 3,
        /// All parents have ended, and none failed.
        NoneFailed = "NONE_FAILED" = 4,
    } default AllSuccess);

upper_enum!(/// State of a node in a run of its DAG. The last five are final.
    NodeState {
        /// Its rule is undecided, or there is no room for it yet.
        Waiting = "WAITING" = 0,
        /// Its run was asked for; its job has not said yet that it is there.
        Starting = "STARTING" = 1,
        /// Its run is there and not final.
        Active = "ACTIVE" = 2,
        Success = "SUCCESS" = 3,
        Failed = "FAILED" = 4,
        /// Its rule can never be met, and none of its parents failed.
        Skipped = "SKIPPED" = 5,
        /// Its rule can never be met, and a parent failed.
        UpstreamFailed = "UPSTREAM_FAILED" = 6,
        /// Its run was canceled, or the DAG run was stopped before it started.
        Canceled = "CANCELED" = 7,
    } default Waiting);

upper_enum!(/// Why a node is FAILED, besides what its run says itself.
    NodeFailure {
        /// Its run is FAILED.
        Run = "RUN_FAILED" = 0,
        /// Its run is TIMEOUT.
        Timeout = "RUN_TIMEOUT" = 1,
        /// It succeeded, and the result fields that the DAG reads are larger than what a node, or the run, may keep.
        ResultTooLarge = "RESULT_TOO_LARGE" = 2,
        /// A template in its params reads a field that the result of a successful node does not have.
        ResultMissing = "RESULT_MISSING" = 3,
        /// Its params are too large once their templates are filled in.
        ParamsTooLarge = "PARAMS_TOO_LARGE" = 4,
        /// Its job refused the run for good: deleted, another tenant's, or a DAG.
        Refused = "REFUSED" = 5,
        /// Its job could not be reached for as long as a message is repeated.
        Undelivered = "UNDELIVERED" = 6,
    } default Run);

upper_enum!(/// Why a DAG run starts no further node.
    StopCause { Cancel = "CANCEL" = 0, Timeout = "TIMEOUT" = 1, FailFast = "FAIL_FAST" = 2 } default Cancel);

upper_enum!(/// What an edge with a condition is for the node behind it, once the node before it succeeded.
    EdgeFact {
        /// The condition is false: the parent counts as skipped.
        NotTaken = "NOT_TAKEN" = 0,
        /// The condition could not be evaluated: the parent counts as failed.
        Broken = "BROKEN" = 1,
    } default NotTaken);

impl NodeFailure {
    /// Whether the run of the node says it itself.
    pub fn is_of_run(self) -> bool {
        match self {
            Self::Run | Self::Timeout => true,
            Self::ResultTooLarge | Self::ResultMissing | Self::ParamsTooLarge | Self::Refused | Self::Undelivered => {
                false
            }
        }
    }
}

impl NodeState {
    pub fn is_final(self) -> bool {
        match self {
            Self::Success | Self::Failed | Self::Skipped | Self::UpstreamFailed | Self::Canceled => true,
            Self::Waiting | Self::Starting | Self::Active => false,
        }
    }
    /// Whether a run of its job may be open.
    pub fn has_run(self) -> bool {
        match self {
            Self::Starting | Self::Active => true,
            Self::Waiting | Self::Success | Self::Failed | Self::Skipped | Self::UpstreamFailed | Self::Canceled => {
                false
            }
        }
    }
    /// Whether nodes behind it count it as failed.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::UpstreamFailed | Self::Canceled => true,
            Self::Waiting | Self::Starting | Self::Active | Self::Success | Self::Skipped => false,
        }
    }
}
