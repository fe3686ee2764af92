//! Deadlines as definitions, events, messages and the state of a job hold them. Event format 2.

use crate::{
    event::{SkipReason, opt_reason},
    ids::{JobId, RunId},
    record::{RunState, code},
    stored::graph::opt_state,
    text::Text,
};
use serde::{Deserialize, Serialize};

/// Until when a run has to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StoredDeadline {
    /// The first such time of day in this zone after the instant that the run stands for.
    #[serde(rename = "b")]
    By {
        #[serde(rename = "s")]
        second: u32,
        #[serde(rename = "z")]
        zone: Text,
    },
    /// So long after that instant.
    #[serde(rename = "d")]
    Due {
        #[serde(rename = "w")]
        within_sec: u64,
    },
    /// So long after the start of its first attempt.
    #[serde(rename = "s")]
    Start {
        #[serde(rename = "w")]
        within_sec: u64,
    },
}

/// How long runs of a job may take, and how long they take at least.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredTiming {
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<StoredDeadline>,
    /// An attempt that succeeds in less is suspicious.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub min_duration_sec: Option<u64>,
}

/// The deadline of an open run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunDeadline {
    /// ms.
    #[serde(rename = "u")]
    Until(i64),
    /// So many seconds after its start; it has not started.
    #[serde(rename = "s")]
    FromStart(u64),
}

/// The deadline of an instant that made no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedDeadline {
    #[serde(rename = "i")]
    pub instant_ms: i64,
    #[serde(rename = "u")]
    pub until_ms: i64,
    /// Why it made none.
    #[serde(rename = "r", with = "code")]
    pub reason: SkipReason,
}

/// What becomes of the deadlines of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeadlineChange {
    /// A run has one.
    #[serde(rename = "s")]
    Set {
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "d")]
        deadline: RunDeadline,
    },
    /// An instant has one that made no run.
    #[serde(rename = "o")]
    Owed(OwedDeadline),
    /// It has passed.
    #[serde(rename = "m")]
    Missed {
        /// None: the instant made no run.
        #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
        #[serde(rename = "u")]
        until_ms: i64,
    },
    /// It has passed while a pause kept the run from running, and does not count.
    #[serde(rename = "x")]
    Excused {
        #[serde(rename = "r")]
        run: RunId,
    },
}

/// What the record of a run says of the time that it took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTiming {
    /// The newest deadline that it missed, ms.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub missed_ms: Option<i64>,
    /// It succeeded in less than its job takes at least: in so many seconds.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub min_duration_sec: Option<u64>,
}

/// A deadline that was missed, as the message to a hook tells of it: the run need not have ended, and there may be none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissedDeadline {
    #[serde(rename = "j")]
    pub job: JobId,
    /// What the run stands for.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub instant_ms: Option<i64>,
    #[serde(rename = "u")]
    pub until_ms: i64,
    /// State of the run; None: the instant made no run.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none", with = "opt_state")]
    pub state: Option<RunState>,
    /// Why the instant made none.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none", with = "opt_reason")]
    pub reason: Option<SkipReason>,
    /// Its key is that of the instant: a schedule made the run, or would have.
    #[serde(rename = "k", default, skip_serializing_if = "std::ops::Not::not")]
    pub of_instant: bool,
}
