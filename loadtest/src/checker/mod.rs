//! The history checker. It reads what executors, callers, the fault injector and the public API recorded about a run of
//! the scheduler and decides whether every promise was kept.
//!
//! It shares no code with what it judges: it links neither `campanile-core` nor `campanile-actors`, takes due instants
//! from `croner` and arithmetic, and accepts an acknowledgement or a start only from a process other than the node. It
//! never repairs, samples or guesses. What cannot be decided either way (an instant inside the window of an
//! acknowledgement) may go both ways, and an incomplete export is a failure.

mod calls;
mod history;
mod load;
mod oracle;
mod rules;
mod story;
#[cfg(test)]
mod tests;
mod usage;
mod verdict;

pub use history::{
    Asked, Attempt, Body, Confirmed, Disturbance, Executor, History, Job, Outage, Pause, Reopened, Run, Trigger,
    Version,
};
pub use load::LoadError;
pub use oracle::{Oracle, OracleError};
pub use usage::{Feature, LONG_ENOUGH_MS, Usage};
pub use verdict::{Counts, Findings, Kind, Verdict, Violation};

use std::path::Path;

/// Judges a run directory.
pub fn check_dir(dir: &Path) -> Result<Verdict, LoadError> {
    History::load(dir).map(|history| check(&history))
}

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let mut findings = Findings::new(history);
    rules::export::check(history, &mut findings);
    rules::acknowledged::check(history, &mut findings);
    rules::outcomes::check(history, &mut findings);
    rules::justified::check(history, &mut findings);
    rules::runs::check(history, &mut findings);
    rules::starts::check(history, &mut findings);
    rules::repeats::check(history, &mut findings);
    rules::overlap::check(history, &mut findings);
    rules::quotas::check(history, &mut findings);
    rules::ran::check(history, &mut findings);
    rules::causes::check(history, &mut findings);
    rules::lateness::check(history, &mut findings);
    rules::retries::check(history, &mut findings);
    rules::order::check(history, &mut findings);
    rules::payloads::check(history, &mut findings);
    rules::queues::check(history, &mut findings);
    rules::silence::check(history, &mut findings);
    rules::used::check(history, &mut findings);
    findings.into_verdict()
}
