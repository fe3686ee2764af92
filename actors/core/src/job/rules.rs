//! Clauses of a job's runs by name, so that the tests can break each one and see the consequence.

use crate::breakable::breakable;

breakable! {
    /// One clause.
    pub enum Rule {
        /// No retry begins after `maxElapsedSec` or `maxRuntimeSec`.
        RetriesEndInTime,
        /// A run that waits for its next attempt when the time is over ends.
        WaitingEndsInTime,
        /// A body is stopped when `maxRuntimeSec` is over.
        BodyStopsInTime,
        /// The time of each generation begins anew.
        TimeIsOfGeneration,
        /// A person who confirms a run as RERUN gives it the whole time.
        RerunHasTheWholeTime,
        /// The time counts from the first attempt also when the record keeps later ones only.
        FirstAttemptIsRemembered,
        /// A run waits by the priority that a person gave it.
        OwnPriorityCounts,
        /// ... at once, where it waits already.
        OwnPriorityMovesIt,
    }
}
