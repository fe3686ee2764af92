//! Attempts of a run as read, and what is said of the newest one.

use crate::{
    event::StopReason,
    record::{AttemptRecord, AttemptState, RunRecord, RunState},
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Since when and why a body is being stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoppingView {
    pub reason: StopReason,
    /// Absent: a node of an older release told it to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A run that succeeded in less than the `minDurationSec` of its job: it may have done nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuspiciousView {
    /// As the job said when the run ended.
    pub min_duration_sec: u64,
    /// How long its last attempt took.
    pub duration_ms: u64,
}

impl SuspiciousView {
    /// None: it took as long as it should.
    pub(super) fn of(run: &RunRecord) -> Option<Self> {
        let min_duration_sec = run.timing.as_ref()?.min_duration_sec.filter(|_| run.state == RunState::Success)?;
        let last = run.attempts.last()?;
        let duration_ms = last.ended_ms?.saturating_sub(last.started_ms).max(0).cast_unsigned();
        Some(Self { min_duration_sec, duration_ms })
    }
}

/// An attempt as read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    pub attempt: u32,
    pub generation: u32,
    pub token: u64,
    pub state: AttemptState,
    pub executor_id: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub cpu_ms: Option<u64>,
    pub max_rss_kb: Option<u64>,
    /// Its executor said that no further attempt would succeed: the run ended with attempts left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
}

impl From<&AttemptRecord> for AttemptView {
    fn from(a: &AttemptRecord) -> Self {
        Self {
            attempt: a.attempt,
            generation: a.generation,
            token: a.token.0,
            state: a.state,
            executor_id: a.executor.to_string(),
            started_at: Timestamp(a.started_ms),
            ended_at: a.ended_ms.map(Timestamp),
            error_code: a.error_code.clone(),
            error_message: a.error_message.clone(),
            cpu_ms: a.cpu_ms,
            max_rss_kb: a.max_rss_kb,
            permanent: a.permanent,
        }
    }
}
