//! The clauses of backfills by name, so that the tests can break each one and see the consequence.

use crate::breakable::breakable;

breakable! {
    /// One clause.
    pub enum Rule {
        /// MISSING runs instants that should have made a run and made none, and no others.
        OnlyMissing,
        /// Instants before the job was there are missing.
        BeforeIsMissing,
        /// Instants of which the ledger says nothing any more run only when that was asked for.
        UnknownStays,
        /// The instants of a stretch are those of the schedule only where its count and its ends agree.
        InstantsAgree,
        /// Two backfills of missing instants have one key for an instant.
        KeyOfInstant,
        /// An instant that has a run of an earlier backfill is passed over.
        ExistingIsPassed,
        /// FAILED opens the run that failed again and makes no new one.
        FailedGoesOn,
        /// A replay takes the params of the run that was.
        ReplayHasParams,
        /// No more than `parallelism` runs are open.
        ParallelismHolds,
        /// Under FORBID and QUEUE_ONE one run of a backfill is open at a time.
        OneUnderForbid,
        /// ... and starts only when nothing live is active.
        LiveGoesFirst,
        /// ... and a live instant that meets it is held and not skipped.
        LiveIsHeld,
        /// ... and a run that only waits gives way to a live one.
        WaitingGivesWay,
        /// REPLACE does not stop runs of backfills.
        ReplaceSparesBackfills,
        /// Under ALLOW and REPLACE live runs and runs of backfills do not see each other.
        PoliciesIgnore,
        /// A failed run does not stop the rest.
        FailureGoesOn,
        /// A page counts only where the backfill stands.
        PageFollows,
        /// A paused backfill starts nothing.
        PauseHolds,
        /// Under a paused job, tenant or system nothing starts.
        PausesHold,
        /// A cancel ends every open run of the backfill.
        CancelEndsAll,
        /// ... and the backfill is CANCELED only when they have ended.
        CanceledAtTheEnd,
        /// A backfill is DONE when every instant is decided and every run has ended.
        DoneAtTheEnd,
        /// A job has one backfill at a time.
        OneOfAJob,
        /// What is not decided yet is left to the schedule.
        CutAtCursor,
        /// A restore pauses it.
        RestorePauses,
        /// Deleting the job cancels it.
        DeleteCancels,
        /// Its runs start no hooks unless that was asked for.
        HooksAreOff,
        /// A tenant whose queue is half full gets no more of them.
        HalfTheQueue,
    }
}
