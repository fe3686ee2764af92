//! The list of open runs, of which each shard has a part.

use crate::{
    ids::{JobId, RunId},
    record::{RunState, Source},
    view::RunView,
};
use serde::{Deserialize, Serialize};

/// Which open runs are asked for: all that fit every part that is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFilter {
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Codes of states. Empty: all.
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<u8>,
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub source: Option<u8>,
    /// Of the creation, both included.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<i64>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<i64>,
}

impl RunFilter {
    /// Whether a run of this state fits; whose job it is, and when it was created, is compared elsewhere.
    pub fn has_state(&self, state: RunState) -> bool {
        self.states.is_empty() || self.states.contains(&state.code())
    }

    pub fn has_source(&self, source: Source) -> bool {
        self.source.is_none_or(|wanted| wanted == source.code())
    }

    pub fn has_time(&self, at_ms: i64) -> bool {
        self.from_ms.is_none_or(|from| from <= at_ms) && self.to_ms.is_none_or(|to| at_ms <= to)
    }
}

/// Where a list of open runs stands: time of creation and id of a run. The list goes down from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunPlace {
    #[serde(rename = "c")]
    pub created_ms: i64,
    #[serde(rename = "r")]
    pub run: RunId,
}

impl From<&RunView> for RunPlace {
    fn from(run: &RunView) -> Self {
        Self { created_ms: run.created_at.ms(), run: run.run_id }
    }
}

/// Which jobs and which time the load is asked of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadQuery {
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The beginning of the first minute.
    #[serde(rename = "f")]
    pub from_ms: i64,
    #[serde(rename = "m")]
    pub minutes: u32,
}

/// A part of the load of a shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPart {
    /// Instants by minute.
    #[serde(rename = "c")]
    pub counts: Vec<u64>,
    #[serde(rename = "j")]
    pub jobs: u64,
    /// The last job that was looked at. None: there is none behind it.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub next: Option<JobId>,
    /// A job alone has more instants than one call counts: `counts` lacks the last of them.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// A part of the list of a shard, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenRunsPart {
    #[serde(rename = "i")]
    pub items: Vec<RunView>,
    /// The last run that was looked at. None: there is nothing behind it.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub next: Option<RunPlace>,
}
