//! What several rules read from a job, from its ledger and from its runs.

use crate::checker::{History, Job};
use campanile_schema::{
    event::{Outcome, SkipReason},
    job::{MisfirePolicy, Trigger},
    record::RunState,
    view::LedgerEntryView,
};

/// Milliseconds as microseconds.
pub(super) fn us(ms: i64) -> i64 {
    ms.saturating_mul(1000)
}

/// The longest jitter that may have been in force.
pub(super) fn jitter_us(job: &Job) -> i64 {
    let of = |trigger: &Trigger| match trigger {
        Trigger::Cron { jitter_sec, .. } | Trigger::FixedRate { jitter_sec, .. } => i64::from(*jitter_sec),
        Trigger::FixedDelay { .. } | Trigger::Once { .. } | Trigger::Manual {} => 0,
    };
    job.versions.iter().map(|version| of(&version.spec.trigger)).max().unwrap_or(0) * 1_000_000
}

/// What becomes of instants that the node could not decide in time; None: a trigger without instants.
pub(super) fn misfire(trigger: &Trigger) -> Option<MisfirePolicy> {
    match trigger {
        Trigger::Cron { misfire_policy, .. }
        | Trigger::FixedRate { misfire_policy, .. }
        | Trigger::FixedDelay { misfire_policy, .. }
        | Trigger::Once { misfire_policy, .. } => Some(*misfire_policy),
        Trigger::Manual {} => None,
    }
}

/// Entries of all pages, oldest first.
pub(super) fn entries(job: &Job) -> impl Iterator<Item = &LedgerEntryView> {
    job.ledger.iter().flat_map(|page| &page.items)
}

/// The last instant that an entry tells of.
pub(super) fn last_of(entry: &LedgerEntryView) -> i64 {
    entry.until.map_or(entry.logical_time.0, |u| u.0)
}

/// Why windows and blackouts are said to have taken the instants away; None: they are not said so.
pub(super) fn told_closed(entry: &LedgerEntryView) -> Option<SkipReason> {
    let is_closed = |reason: &SkipReason| matches!(reason, SkipReason::Window | SkipReason::Blackout);
    entry.reason.filter(|reason| entry.outcome == Outcome::Skipped && is_closed(reason))
}

/// Whether a run of the job waits for a person's word.
pub(super) fn waits_for_a_person(history: &History, job: u64) -> bool {
    let mut runs = history.runs_of.get(&job).into_iter().flatten().filter_map(|id| history.runs.get(id));
    runs.any(|run| run.state == RunState::NeedsConfirmation)
}
