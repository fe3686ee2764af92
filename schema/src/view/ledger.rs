//! The fire ledger of a job as read.

use crate::{
    event::{LedgerEntry, Outcome, SkipReason},
    ids::{JobId, RunId},
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One entry of the fire ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LedgerEntryView {
    pub logical_time: Timestamp,
    /// Last instant of a stretch with one outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    pub count: u64,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SkipReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

impl From<&LedgerEntry> for LedgerEntryView {
    fn from(entry: &LedgerEntry) -> Self {
        Self {
            logical_time: Timestamp(entry.first_ms),
            until: (entry.last_ms != entry.first_ms).then_some(Timestamp(entry.last_ms)),
            count: entry.count,
            outcome: entry.outcome,
            reason: entry.reason,
            run_id: entry.run,
        }
    }
}

/// A stretch of a job's ledger: what happened to every due instant from `from` to `to`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LedgerView {
    pub job_id: JobId,
    /// The entries cover all from `from` to `to`, both included, without gap or overlap; `to` is where the job's cursor stood, or what was asked for.
    /// When more follows, `to` is where the next page begins.
    pub from: Timestamp,
    pub to: Timestamp,
    pub items: Vec<LedgerEntryView>,
    /// More follows: ask again with `from` = this `to`.
    pub truncated: bool,
}
