//! What a job is told about a bulk operation by its shard.

use campanile_schema::{ids::BulkId, peer::bulk::BulkWork, stored::bulk::BulkAction};
use serde::{Deserialize, Serialize};

/// Told to a job by its shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkCommand {
    pub bulk: BulkId,
    pub step: BulkStep,
    /// Only if the job is as this operation left it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_of: Option<BulkId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// See [`BulkCommand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BulkStep {
    Pause,
    /// It is going to be deleted: also a job that is paused already belongs to the operation from now on.
    Hold,
    Resume,
    Delete,
    /// Only if the operation has paused it and nobody has resumed it since.
    DeleteHeld,
}

/// The step of a piece of work; None: it is about runs.
pub fn bulk_step(work: &BulkWork) -> Option<BulkStep> {
    match work.action {
        BulkAction::Pause if work.graced => Some(BulkStep::Hold),
        BulkAction::Pause => Some(BulkStep::Pause),
        BulkAction::Resume => Some(BulkStep::Resume),
        BulkAction::Delete if work.graced => Some(BulkStep::DeleteHeld),
        BulkAction::Delete => Some(BulkStep::Delete),
        BulkAction::Trigger | BulkAction::Cancel | BulkAction::Retry | BulkAction::Redrive => None,
    }
}
