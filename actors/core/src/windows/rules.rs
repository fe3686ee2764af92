//! The clauses of windows and blackouts by name, so that the tests can break each one and see the consequence.

use crate::breakable::breakable;

breakable! {
    /// One clause.
    pub enum Rule {
        /// Where a window allows, an instant outside of all that allow is removed.
        AllowCloses,
        /// A window that denies removes what another one allows.
        DenyGoesFirst,
        /// A window is read by the clock of its zone.
        ClockOfZone,
        /// A change of that clock begins a new look.
        ChangeOfClock,
        /// A window that ends before it begins ends on the next day.
        OverMidnight,
        /// The end of a window is outside of it.
        EndIsOutside,
        /// A blackout removes what a window allows, and is the reason that is named.
        BlackoutGoesFirst,
        /// A removed instant has its outcome in the ledger.
        RemovedIsTold,
        /// Jitter does not move a run out of its window.
        JitterStaysInside,
        /// FIXED_DELAY waits for the opening.
        DelayWaits,
    }
}
