//! The log of an attempt: which part of it is asked for, and what is answered.

use crate::{ids::RunId, job::upper_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

upper_enum!(/// Level of a line of a log.
    LogLevel { Trace = "TRACE" = 0, Debug = "DEBUG" = 1, Info = "INFO" = 2, Warn = "WARN" = 3, Error = "ERROR" = 4 } default Info);

/// `GET /runs/{runId}/log`, `run.log`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogBody {
    /// Default: the newest.
    #[serde(default)]
    pub attempt: Option<u32>,
    /// Bytes to leave out at the start.
    #[serde(default)]
    pub offset: Option<u64>,
    /// Only lines with this text, in large or small letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Only lines of this level or a more severe one: by the member `level` or `severity` of a line that is a JSON object, else by
    /// the first word that names a level. A line without one is of the level of the line before it, as in a stack trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<LogLevel>,
    /// Only the last lines, so many of those that the other filters leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
}

impl LogBody {
    /// From a place on.
    pub fn at(attempt: Option<u32>, offset: Option<u64>) -> Self {
        Self { attempt, offset, ..Self::default() }
    }

    /// It asks for lines, and not for bytes as they stand.
    pub fn is_search(&self) -> bool {
        self.contains.is_some() || self.level.is_some() || self.tail.is_some()
    }
}

/// Answer of `run.log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogView {
    pub run_id: RunId,
    pub attempt: u32,
    pub offset: u64,
    /// With filters: the lines that they leave.
    pub text: String,
    /// Where to go on reading. With filters: behind the last whole line that was looked at.
    pub next_offset: u64,
    /// The attempt has ended and all of its log was returned. With filters: all of it was looked at.
    pub end: bool,
    /// With filters: for each line of `text` its number, from 1 at `offset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<u64>>,
}
