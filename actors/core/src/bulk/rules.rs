//! The clauses of bulk operations by name, so that the tests can break each one and see the consequence.

use crate::breakable::breakable;

breakable! {
    /// One clause.
    pub enum Rule {
        /// A page begins only behind the one that the record knows.
        PageFollows,
        /// One page at a time.
        OnePage,
        /// A report counts only for the page that is open.
        ReportOnce,
        /// An aborted operation begins no page.
        AbortStops,
        /// ... and is ABORTED only when the page that had begun was done.
        AbortedAtTheEnd,
        /// An operation is DONE when its last page was done.
        DoneAtTheEnd,
        /// An operation that has ended stays as it is.
        EndIsFinal,
        /// A delete with a grace deletes nothing before the grace is over.
        GraceHolds,
        /// ... and nothing that was resumed in it.
        ResumedIsSpared,
        /// ... but all others that it has paused, also those that do not fit the filter any more.
        HeldAreDeleted,
        /// An undo within the grace ends the delete.
        UndoEndsGrace,
        /// An undo changes only jobs that are still as the operation left them.
        UndoOwnOnly,
        /// ... and not those that were paused already.
        UndoNotKept,
        /// ... and not those that are in quarantine, which it would end.
        UndoSparesQuarantine,
        /// What arrives late of an operation changes no job where it was undone.
        UndoneStaysUndone,
        /// Whoever pauses a job that the operation has paused makes the pause his own.
        PauseClaims,
        /// An operation is undone once.
        UndoOnce,
        /// A job that was paused or resumed by the operation counts as done when the page is repeated.
        RepeatIsDone,
        /// Every trigger of an operation has the operation's key.
        TriggerHasKey,
        /// Open operations are bounded.
        OpenIsBounded,
        /// Ended operations are bounded.
        EndedIsBounded,
        /// The record names only the first failures.
        FailuresAreBounded,
        /// After a move to other shards the items that are found again count once.
        MovedCountOnce,
        /// ... and those that the operation has changed are found again, also where they do not fit the filter any more.
        OwnAreFound,
        /// A restore aborts what is open.
        RestoreAborts,
    }
}
