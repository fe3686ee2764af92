//! The clauses of deadlines by name, so that the tests can break each one and see the consequence.

use crate::breakable::breakable;

breakable! {
    /// One clause.
    pub enum Rule {
        /// `by` and `of: DUE` count from an instant: they apply to runs that a schedule made, and to the nodes of such a DAG run.
        OfInstants,
        /// ... in the first generation of a run.
        FirstGeneration,
        /// `of: START` counts from the first attempt of a generation, and not from its retries.
        FirstAttempt,
        /// `by` is a time of day in its zone.
        ByIsLocal,
        /// A deadline is missed once.
        MissedOnce,
        /// A run that ended in time has missed none.
        EndSettles,
        /// An instant that made no run has a deadline as well.
        UnstartedIsOwed,
        /// Of several such instants it is that of the oldest.
        OldestIsOwed,
        /// Instants that a pause, a calendar or an edit left out have none.
        OnlyWhatFailed,
        /// A run that a pause keeps from running misses none.
        PauseExcuses,
        /// A run that carries coalesced instants has the deadline of the oldest.
        OldestOfCoalesced,
        /// The key of the message is that of the instant.
        KeyOfInstant,
        /// What a node says of its deadline goes before what its job says.
        NodeGoesFirst,
    }
}
