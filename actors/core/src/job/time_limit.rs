//! How long a run may take in all: `maxRuntimeSec` and `retryPolicy.maxElapsedSec`.
//!
//! Both count from the beginning of the first attempt of the generation. When the time is over no further attempt begins,
//! and the run ends as if its attempts were spent. A body that runs then goes on under `maxElapsedSec`, and is told to
//! stop under `maxRuntimeSec`, as by a timeout. A pause of the job does not stop the time. A person who has a run
//! confirmed as RERUN gives it the whole time anew.

use super::{
    Job, OpenRun,
    rules::{Rule, kept},
    state::TIMEOUT_GRACE_MS,
};
use campanile_schema::{
    record::{AttemptRecord, AttemptState, RunState},
    stored::StoredJob,
};

/// No attempt begins after this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeLimit {
    pub last_start_ms: i64,
    /// The setting, as callers know it.
    field: &'static str,
    seconds: u64,
}

impl TimeLimit {
    /// Why there is no further attempt, behind what the last one said.
    pub fn told(&self, said: Option<&str>, room: usize) -> String {
        let Self { field, seconds, .. } = self;
        let why = format!("no further attempt: the next one would begin later than {field} ({seconds} s) allows");
        let Some(said) = said.filter(|said| !said.is_empty()) else { return why };
        let mut end = said.len().min(room.saturating_sub(why.len() + 2));
        while !said.is_char_boundary(end) {
            end -= 1;
        }
        format!("{}; {why}", &said[..end])
    }
}

fn limits(def: &StoredJob) -> [(&'static str, Option<u64>); 2] {
    [("retryPolicy.maxElapsedSec", def.max_elapsed_sec), ("maxRuntimeSec", def.max_runtime_sec)]
}

fn after(from_ms: i64, seconds: u64) -> i64 {
    from_ms.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
}

/// An attempt that executors refused has not begun.
pub(super) fn has_begun(attempt: &AttemptRecord) -> bool {
    attempt.state != AttemptState::NotStarted
}

impl OpenRun {
    /// What the time of this generation counts from.
    fn time_from(&self) -> Option<i64> {
        let generation = self.record.generation;
        let is_of = |attempt: &&AttemptRecord| attempt.generation == generation || !kept(Rule::TimeIsOfGeneration);
        let first = self.record.attempts.iter().filter(is_of).find(|attempt| has_begun(attempt));
        self.time_from_ms.or(first.map(|attempt| attempt.started_ms))
    }
}

impl Job {
    /// The limit that is over first. None: there is none, or the first attempt has not begun.
    pub(crate) fn time_limit(&self, open: &OpenRun) -> Option<TimeLimit> {
        let limits = limits(&self.def);
        // Most jobs have none, and this is asked at each wake.
        if limits.iter().all(|(_, seconds)| seconds.is_none()) {
            return None;
        }
        let from = open.time_from()?;
        let of = |(field, seconds): (&'static str, Option<u64>)| {
            seconds.map(|seconds| TimeLimit { last_start_ms: after(from, seconds), field, seconds })
        };
        limits.into_iter().filter_map(of).min_by_key(|limit| limit.last_start_ms)
    }

    /// The limit of a run that waits for its next attempt.
    pub(crate) fn limit_of_waiting(&self, open: &OpenRun) -> Option<TimeLimit> {
        let waits = matches!(open.state(), RunState::Queued | RunState::RetryWait) && !open.graph;
        self.time_limit(open).filter(|_| waits && kept(Rule::WaitingEndsInTime))
    }

    /// How long an attempt that begins now may take, whole seconds: its timeout, or less when `maxRuntimeSec` ends before.
    pub(crate) fn attempt_seconds(&self, open: &OpenRun, started_ms: i64) -> u64 {
        let timeout_sec = open.record.timeout_sec.unwrap_or(self.def.timeout_sec);
        let Some(most) = self.def.max_runtime_sec.filter(|_| kept(Rule::BodyStopsInTime)) else { return timeout_sec };
        let left_ms = after(open.time_from().unwrap_or(started_ms), most).saturating_sub(started_ms);
        let left_sec = u64::try_from(left_ms).unwrap_or(0).div_ceil(1000);
        timeout_sec.min(left_sec).max(1)
    }

    /// When the node steps in if the executor has not ended the attempt itself.
    pub(crate) fn attempt_deadline(&self, open: &OpenRun, attempt: &AttemptRecord) -> i64 {
        after(attempt.started_ms, self.attempt_seconds(open, attempt.started_ms)).saturating_add(TIMEOUT_GRACE_MS)
    }
}
