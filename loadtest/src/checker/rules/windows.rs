//! What callers could expect of an instant of a job: between a request and its acknowledgement both outcomes are right;
//! after the acknowledgement only one is.

use super::facts::jitter_us;
use crate::checker::{History, Job};
use campanile_schema::event::SkipReason;

/// Moments are read in whole milliseconds.
const READING_US: i64 = 1_000;

/// What must have become of a due instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Exactly one outcome, whichever the policies say.
    Required,
    /// It fell into the window of a request that is not yet or never acknowledged: an outcome or none.
    Free,
    /// The job was certainly paused, and resumed later: one outcome, SKIPPED(PAUSED).
    Paused,
    /// The job was certainly paused, and still is: nothing ran for it; the ledger may not have closed it yet.
    StillPaused,
    /// The job was certainly deleted: nothing ran for it.
    Deleted,
}

/// What is promised about the instant `at_ms` of `job`.
pub fn expect(job: &Job, at_ms: i64) -> Expect {
    let at_us = at_ms.saturating_mul(1000);
    if at_us <= job.create_ack_us {
        return Expect::Free;
    }
    if let Some((sent_us, ack_us)) = job.deleted {
        if ack_us.is_some_and(|ack| at_us > ack) {
            return Expect::Deleted;
        }
        // What its jitter still holds is closed by the delete.
        if at_us > sent_us.saturating_sub(jitter_us(job)) {
            return Expect::Free;
        }
    }
    for pause in job.all_pauses() {
        if at_us <= pause.sent_us || pause.resume_ack_us.is_some_and(|resumed| at_us > resumed) {
            continue;
        }
        // Here: after the request to pause, and not certainly resumed.
        let surely_paused = pause.ack_us.is_some_and(|ack| at_us > ack);
        let asked_to_resume = pause.resume_sent_us.is_some_and(|sent| at_us > sent);
        return match (surely_paused, asked_to_resume, pause.resume_ack_us) {
            (true, false, Some(_)) => Expect::Paused,
            (true, false, None) => Expect::StillPaused,
            // Fired or skipped, but once the job runs again the ledger must say which.
            (false, _, Some(_)) | (true, true, Some(_)) => Expect::Required,
            (false, _, None) | (true, true, None) => Expect::Free,
        };
    }
    Expect::Required
}

/// The job may have been paused at the instant, or when its jitter was over.
pub fn may_be_paused(job: &Job, at_ms: i64) -> bool {
    let at_us = at_ms.saturating_mul(1000);
    let jitter_us = jitter_us(job);
    job.pauses.iter().any(|p| at_us.saturating_add(jitter_us) > p.sent_us && at_us <= p.over_us())
}

/// The tenant or the system may have been paused at the instant. Clocks of a cluster may differ on purpose; then a pause that began before
/// the instant was decided may hold it, too.
pub fn may_be_paused_above(history: &History, job: &Job, reason: SkipReason, at_ms: i64, decided_by_ms: i64) -> bool {
    let (at_us, by_us) = (at_ms.saturating_mul(1000), decided_by_ms.saturating_mul(1000));
    let after_us = if history.clocks_may_differ(at_us) { by_us } else { at_us.saturating_add(READING_US) };
    job.pauses_above.iter().any(|(p, why)| *why == reason && after_us > p.sent_us && at_us <= p.over_us())
}
