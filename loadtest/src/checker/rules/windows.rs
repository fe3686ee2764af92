//! What callers were promised about an instant of a job: between a request and its acknowledgement both are right; after the
//! acknowledgement only one is.

use crate::checker::Job;

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
        if at_us > sent_us {
            return Expect::Free;
        }
    }
    for pause in &job.pauses {
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

/// The job may have been paused at the instant.
pub fn may_be_paused(job: &Job, at_ms: i64) -> bool {
    let at_us = at_ms.saturating_mul(1000);
    job.pauses.iter().any(|p| at_us > p.sent_us && p.resume_ack_us.is_none_or(|resumed| at_us <= resumed))
}
