//! What a schedule would do, before there is a job.

use crate::{job::Trigger, time::Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `POST /schedules/preview`, `schedule.preview`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreviewBody {
    pub trigger: Trigger,
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
    pub description: String,
    pub hazards: Vec<String>,
}
