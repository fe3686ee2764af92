//! The clauses of calendars by name, so that the tests can break each one and see the consequence.

use crate::breakable::breakable;

breakable! {
    /// One clause.
    pub enum Rule {
        /// A make-up day is in the calendar although a rule excludes it.
        MakeUp,
        /// Days of another calendar are taken away.
        Minus,
        /// A negative number counts from the end of the month.
        FromTheEnd,
        /// The end of a whole-day event of iCalendar is the day after it.
        EndIsOutside,
    }
}
