//! What a schedule would do, before there is a job.

use super::LedgerEntryView;
use crate::{
    job::{Blackout, Trigger, Window},
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `POST /schedules/preview`, `schedule.preview`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreviewBody {
    pub trigger: Trigger,
    /// Windows of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// Blackouts of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blackouts: Vec<Blackout>,
    /// Default: now.
    #[serde(default)]
    pub after: Option<Timestamp>,
    /// Default 5, at most 100.
    #[serde(default)]
    pub count: Option<usize>,
}
/// Answer of a preview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Resolved, with dialect and instants filled in.
    pub trigger: Trigger,
    pub next: Vec<Timestamp>,
    /// What windows, blackouts and changes of the clocks take away up to the last instant in `next`; at most 100 stretches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<LedgerEntryView>,
    pub description: String,
    pub hazards: Vec<String>,
}
