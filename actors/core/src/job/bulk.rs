//! What a bulk operation does with a job. The job knows which operation paused or resumed it last, so a page that is repeated changes
//! nothing, and an undo finds what it may change.

use super::{
    bulk_command::{BulkCommand, BulkStep},
    effect::Reply,
    state::HotState,
};
use crate::{
    bulk::rules::{Rule, kept},
    reject::Rejection,
};
use campanile_schema::{error::ErrorCode, ids::BulkId, job::JobStatus, peer::bulk::BulkLook, stored::bulk::BulkMark};

/// What a job is to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pause(BulkMark),
    /// It is paused, and gets the mark.
    Mark(BulkMark),
    Resume(BulkMark),
    Delete,
    /// There is nothing to change.
    Reply(Outcome),
}

/// Why there is nothing to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operation did it before.
    Done,
    Unchanged,
}

impl Outcome {
    pub fn reply(self) -> Reply {
        match self {
            Self::Done => Reply::Done,
            Self::Unchanged => Reply::Unchanged,
        }
    }
}

/// Whether a job is among those that an operation looks for. `fits`: whether it fits the filter.
pub fn is_item(look: &BulkLook, hot: &HotState, fits: impl FnOnce() -> bool) -> bool {
    let marked_by = |bulk: BulkId| hot.bulk.is_some_and(|mark| mark.bulk == bulk);
    hot.status != JobStatus::Deleted
        && hot.created_ms <= look.created_ms
        && (look.own.is_some_and(marked_by) || look.marked.is_none_or(marked_by) && fits())
}

/// What a step means for a job.
///
/// # Errors
/// The job was deleted.
pub fn verdict(hot: &HotState, command: &BulkCommand) -> Result<Verdict, Rejection> {
    if hot.status == JobStatus::Deleted {
        return Err(Rejection::new(ErrorCode::NotFound, "the job was deleted"));
    }
    let bulk = command.bulk;
    let mark = BulkMark { bulk, kept: false, undid: command.undo_of };
    let is_own = hot.bulk.is_some_and(|mark| mark.bulk == bulk);
    let unchanged = Verdict::Reply(Outcome::Unchanged);
    let repeated = Verdict::Reply(if kept(Rule::RepeatIsDone) { Outcome::Done } else { Outcome::Unchanged });
    if is_own && matches!(command.step, BulkStep::Pause | BulkStep::Hold | BulkStep::Resume) {
        return Ok(repeated);
    }
    if hot.bulk.is_some_and(|mark| mark.undid == Some(bulk)) && kept(Rule::UndoneStaysUndone) {
        return Ok(unchanged);
    }
    if let Some(undone) = command.undo_of {
        let is_its = hot.bulk.is_some_and(|mark| mark.bulk == undone && (!mark.kept || !kept(Rule::UndoNotKept)));
        if !is_its && kept(Rule::UndoOwnOnly) {
            return Ok(unchanged);
        }
        if hot.quarantine.is_some() && kept(Rule::UndoSparesQuarantine) {
            return Ok(unchanged);
        }
    }
    let paused = hot.status == JobStatus::Paused;
    Ok(match command.step {
        BulkStep::Pause | BulkStep::Hold if !paused => Verdict::Pause(mark),
        BulkStep::Hold => Verdict::Mark(BulkMark { kept: true, ..mark }),
        BulkStep::Resume if !hot.fires() => Verdict::Resume(mark),
        BulkStep::Pause | BulkStep::Resume => unchanged,
        BulkStep::DeleteHeld if !(is_own && paused) && kept(Rule::ResumedIsSpared) => unchanged,
        BulkStep::Delete | BulkStep::DeleteHeld => Verdict::Delete,
    })
}
