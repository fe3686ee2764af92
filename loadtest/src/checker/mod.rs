//! The history checker. It reads what executors, callers, the fault injector and the public API recorded about a run of
//! the scheduler and decides whether every promise was kept.
//!
//! It shares no code with what it judges: it links neither `campanile-core` nor `campanile-actors`, takes due instants
//! from `croner` and arithmetic, and accepts an acknowledgement or a start only from a process other than the node. It
//! never repairs, samples or guesses. What cannot be decided either way (an instant inside the window of an
//! acknowledgement) may go both ways, and an incomplete export is a failure.

mod calls;
mod closed;
mod history;
mod judge;
mod load;
mod oracle;
mod rules;
mod story;
#[cfg(test)]
mod tests;
mod usage;
mod verdict;

pub use closed::closed;
pub use history::{
    AcceptedCall, Attempt, Body, Confirmed, Disturbance, Executor, History, Job, Outage, Pause, Reopened, Run, Trigger,
    Version,
};
pub use judge::{check, check_dir};
pub use load::LoadError;
pub use oracle::{Oracle, OracleError};
pub use usage::{Feature, LONG_ENOUGH_MS, Usage};
pub use verdict::{Counts, Findings, Verdict, Violation, ViolationKind};
