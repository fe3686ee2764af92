//! A backfill of a job, as the job's hot state holds it and as events change it. Event format 2.

use crate::{
    ids::{BackfillId, RunId},
    job::upper_enum,
    record::code,
    text::Text,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// Which instants of a stretch of its past a job runs.
    BackfillMode {
        /// Those that made no run, though they should have.
        Missing = "MISSING" = 0,
        /// Those whose run failed: it goes on as its next generation.
        Failed = "FAILED" = 1,
        /// All of them, whatever became of them.
        All = "ALL" = 2,
        /// Those that made a run, with the params of that run.
        Replay = "REPLAY" = 3,
    } default Missing);

upper_enum!(/// How a backfill stands.
    BackfillState {
        Running = "RUNNING" = 0,
        /// It starts nothing more until it is resumed; runs that it made go on.
        Paused = "PAUSED" = 1,
        /// It was canceled, and some of its runs have not ended yet.
        Canceling = "CANCELING" = 2,
        Canceled = "CANCELED" = 3,
        Done = "DONE" = 4,
    } default Running);

impl BackfillState {
    pub fn is_final(self) -> bool {
        match self {
            Self::Canceled | Self::Done => true,
            Self::Running | Self::Paused | Self::Canceling => false,
        }
    }
}

/// What was found in a stretch of a job's past and made no run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedInstants {
    /// Instants for which a run is there already.
    #[serde(rename = "x", default, skip_serializing_if = "is_zero")]
    pub existing: u64,
    /// Instants of which the ledger says nothing any more.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Instants that cannot be told one by one: the schedule of then is not the one of now, and its count differs.
    #[serde(rename = "d", default, skip_serializing_if = "is_zero")]
    pub differing: u64,
    /// Instants whose run has not ended, is not kept any more, or was compensated.
    #[serde(rename = "g", default, skip_serializing_if = "is_zero")]
    pub gone: u64,
}

impl PassedInstants {
    pub fn add(&mut self, more: Self) {
        self.existing += more.existing;
        self.unknown += more.unknown;
        self.differing += more.differing;
        self.gone += more.gone;
    }
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What the look before its begin has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillPlan {
    /// Instants of the interval.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub instants: u64,
    #[serde(rename = "m", default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// Instants whose run failed; None: too many runs to look at each.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Instants that it would run.
    #[serde(rename = "r", default, skip_serializing_if = "is_zero")]
    pub to_run: u64,
    #[serde(rename = "p", default, skip_serializing_if = "PassedInstants::is_none")]
    pub passed: PassedInstants,
    /// How long a run of the job takes as a rule.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub usual_ms: Option<u64>,
}

/// What became of it so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillCounts {
    /// Runs that it made or opened again.
    #[serde(rename = "s", default, skip_serializing_if = "is_zero")]
    pub started: u64,
    #[serde(rename = "y", default, skip_serializing_if = "is_zero")]
    pub succeeded: u64,
    /// FAILED or TIMEOUT.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    #[serde(rename = "c", default, skip_serializing_if = "is_zero")]
    pub canceled: u64,
    /// Time that its ended runs took, from the first start of a body to the end.
    #[serde(rename = "b", default, skip_serializing_if = "is_zero")]
    pub busy_ms: u64,
    #[serde(rename = "p", default, skip_serializing_if = "PassedInstants::is_none")]
    pub passed: PassedInstants,
}

/// A backfill or a replay. A job keeps its newest one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredBackfill {
    #[serde(rename = "i")]
    pub id: BackfillId,
    #[serde(rename = "s", with = "code", default, skip_serializing_if = "is_running")]
    pub state: BackfillState,
    #[serde(rename = "m", with = "code", default, skip_serializing_if = "is_missing")]
    pub mode: BackfillMode,
    /// First and last instant, both included.
    #[serde(rename = "f")]
    pub from_ms: i64,
    #[serde(rename = "t")]
    pub to_ms: i64,
    /// Every instant up to here is decided.
    #[serde(rename = "c")]
    pub cursor_ms: i64,
    #[serde(rename = "p")]
    pub parallelism: u32,
    /// Instants of which nothing is known run as well.
    #[serde(rename = "u", default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown_run: bool,
    /// No backfill of the job was there before it: no instant has a run of one.
    #[serde(rename = "1", default, skip_serializing_if = "std::ops::Not::not")]
    pub first: bool,
    #[serde(rename = "h", default, skip_serializing_if = "std::ops::Not::not")]
    pub hooks: bool,
    #[serde(rename = "n", default)]
    pub plan: BackfillPlan,
    #[serde(rename = "k", default)]
    pub counts: BackfillCounts,
    #[serde(rename = "a")]
    pub created_ms: i64,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    /// Who asked for it.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Text>,
    /// Why it is PAUSED, or was canceled.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Text>,
}

impl StoredBackfill {
    /// Whether it still starts or waits for runs.
    pub fn is_open(&self) -> bool {
        !self.state.is_final()
    }
    /// Whether every instant is decided.
    pub fn is_through(&self) -> bool {
        self.cursor_ms >= self.to_ms
    }
}

/// What happens to a backfill of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BackfillChange {
    #[serde(rename = "c")]
    Created {
        #[serde(rename = "b")]
        backfill: Box<StoredBackfill>,
    },
    /// Every instant up to here is decided: those that made runs stand before it in the frame, and these made none.
    #[serde(rename = "m")]
    Moved {
        #[serde(rename = "t")]
        upto_ms: i64,
        #[serde(rename = "p", default, skip_serializing_if = "PassedInstants::is_none")]
        passed: PassedInstants,
    },
    /// A run of it that waits for an executor waits for the live runs of its job again: QUEUED -> PENDING.
    #[serde(rename = "h")]
    Held {
        #[serde(rename = "r")]
        run: RunId,
    },
    #[serde(rename = "p")]
    Paused {
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        why: Option<Text>,
    },
    #[serde(rename = "r")]
    Resumed,
    /// It starts nothing more, and is CANCELED when its last run has ended.
    #[serde(rename = "x")]
    Canceling {
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        why: Option<Text>,
    },
    /// DONE or CANCELED.
    #[serde(rename = "e")]
    Ended {
        #[serde(rename = "s", with = "code")]
        state: BackfillState,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u64) -> bool {
    *n == 0
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_running(state: &BackfillState) -> bool {
    *state == BackfillState::Running
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_missing(mode: &BackfillMode) -> bool {
    *mode == BackfillMode::Missing
}
