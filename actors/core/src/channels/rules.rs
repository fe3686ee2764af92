//! The clauses of channels by name, so that the tests can break each one and see the consequence.

use crate::breakable::breakable;

breakable! {
    /// One clause.
    pub enum Rule {
        /// A channel has permits of its own, and not those of its tenant.
        OwnPermits,
        /// A pause of the tenant does not hold it.
        BesideThePause,
        /// A full queue of the tenant does not refuse it.
        BesideTheQueue,
        /// Who is to be told of the end of a run is told.
        CallbackIsSent,
        /// Its runs do not wait for each other.
        NeverWaits,
        /// No other job becomes a channel, and a channel no other job: its runs give their permits back where they took them.
        StaysChannel,
    }
}
