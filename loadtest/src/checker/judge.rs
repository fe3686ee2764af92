//! Lets all rules look at a history.

use super::{Findings, History, LoadError, Verdict, rules};
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
    rules::hooks::check(history, &mut findings);
    rules::backfills::check(history, &mut findings);
    rules::dags::check(history, &mut findings);
    rules::dag_ends::check(history, &mut findings);
    rules::used::check(history, &mut findings);
    findings.into_verdict()
}
