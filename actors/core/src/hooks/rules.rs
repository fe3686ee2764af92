//! The clauses of hooks by name, so that the tests can break each one and see the consequence. What carries their messages has its own
//! (`crate::outbox::rules`).

use crate::breakable::breakable;

breakable! {
    /// One clause.
    pub enum Rule {
        /// `onFailure` is for FAILED and for TIMEOUT.
        FailureIsBoth,
        /// `onSuccess` is for SUCCESS only.
        SuccessAlone,
        /// `onTimeout` is started besides `onFailure`.
        TimeoutBesides,
        /// `onDeadLetter` is started when the run is a dead letter, and not when it only failed.
        DeadLetterOnly,
        /// A run that is canceled starts none.
        CanceledIsSilent,
        /// A root run leads to so many runs of hooks.
        BudgetHolds,
        /// What is left is divided among the runs that are started.
        BudgetIsDivided,
        /// ... and the run that is started keeps its part.
        BudgetIsCarried,
        /// The nodes of a DAG run that a hook has started share what it may lead to.
        NodesShare,
        /// What hooks of a deadline may lead to is taken from what those of the end may.
        DeadlineShares,
        /// A hook for which nothing is left is recorded.
        RefusalIsRecorded,
        /// A compensation is sent as one, so that its key has no generation and its run has the source COMPENSATION.
        CompensationIsOne,
        /// It is sent once for a run.
        CompensatedOnce,
        /// A run that was undone is started again only with `force`.
        ReopenAsks,
    }
}
