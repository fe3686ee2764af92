//! What a job is told about a backfill: by callers, and by its shard, which reads the job's past for it.

use campanile_schema::{
    ids::BackfillId,
    payload::Payload,
    record::{RunRecord, code},
    stored::backfill::{BackfillMode, BackfillPlan, PassedInstants},
    text::Text,
};
use serde::{Deserialize, Serialize};

/// A backfill that is to begin. The caller's words are checked, and the past was looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackfillAsked {
    #[serde(with = "code")]
    pub mode: BackfillMode,
    /// First and last instant, both included.
    pub from_ms: i64,
    pub to_ms: i64,
    pub parallelism: u32,
    pub unknown_run: bool,
    pub hooks: bool,
    pub plan: BackfillPlan,
    pub reason: Option<Text>,
    pub by: Option<Text>,
}

/// An instant that is to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackfillStart {
    pub at_ms: i64,
    /// What lies between it and the one before, and made no run.
    pub before: PassedInstants,
    /// The run that goes on, as it ended.
    pub record: Option<Box<RunRecord>>,
    /// Params of the run that is run once more.
    pub params: Option<Payload>,
}

/// A part of the past, `(after, upto]`, and what of it is to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackfillPage {
    pub id: BackfillId,
    pub after_ms: i64,
    pub upto_ms: i64,
    pub starts: Vec<BackfillStart>,
    /// What lies behind the last of them.
    pub tail: PassedInstants,
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BackfillCommand {
    Create(Box<BackfillAsked>),
    Page(BackfillPage),
    /// It goes on with its cancel.
    Step {
        id: BackfillId,
    },
    Pause {
        id: BackfillId,
        reason: Option<Text>,
    },
    Resume {
        id: BackfillId,
    },
    Cancel {
        id: BackfillId,
        reason: Option<Text>,
    },
}
