//! A run and its attempts: the stored form ([`RunRecord`]), which is also what the projector writes, and the enums callers see.

use crate::{
    ids::{BackfillId, JobId, RunId, Token},
    job::upper_enum,
    limits::FAILED_HOOKS_KEPT,
    payload::Payload,
    stored::{Sealed, audit::CallOrigin, deadline::RunTiming, graph::GraphRecord},
    text::Text,
    trace::TraceContext,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;

upper_enum!(/// State of a run. The last five are final.
    RunState {
        /// Created, held back by the concurrency policy.
        Pending = "PENDING" = 0,
        /// Wants a permit and an executor.
        Queued = "QUEUED" = 1,
        Running = "RUNNING" = 2,
        RetryWait = "RETRY_WAIT" = 3,
        SuspectedLost = "SUSPECTED_LOST" = 4,
        NeedsConfirmation = "NEEDS_CONFIRMATION" = 5,
        Success = "SUCCESS" = 6,
        Failed = "FAILED" = 7,
        Timeout = "TIMEOUT" = 8,
        Canceled = "CANCELED" = 9,
        /// Only for DAG nodes: an instant that is skipped makes no run.
        Skipped = "SKIPPED" = 10,
    } default Pending);

impl RunState {
    pub fn is_final(self) -> bool {
        match self {
            Self::Success | Self::Failed | Self::Timeout | Self::Canceled | Self::Skipped => true,
            Self::Pending
            | Self::Queued
            | Self::Running
            | Self::RetryWait
            | Self::SuspectedLost
            | Self::NeedsConfirmation => false,
        }
    }
}

upper_enum!(/// Why a run exists.
    Source { Schedule = "SCHEDULE" = 0, Manual = "MANUAL" = 1, Backfill = "BACKFILL" = 2, Dag = "DAG" = 3, Event = "EVENT" = 4,
             Compensation = "COMPENSATION" = 5, Replay = "REPLAY" = 6 } default Schedule);

upper_enum!(/// State of one attempt.
    AttemptState {
        Running = "RUNNING" = 0, Success = "SUCCESS" = 1, Failed = "FAILED" = 2, Timeout = "TIMEOUT" = 3, Canceled = "CANCELED" = 4,
        /// The executor's lease ended without a result.
        Lost = "LOST" = 5,
        /// The executor refused the assignment before the body began; not counted against `maxAttempts`.
        NotStarted = "NOT_STARTED" = 6,
    } default Running);

/// One try of a run. Short names: this is what disk and wire carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// From 1, over all generations.
    #[serde(rename = "n")]
    pub attempt: u32,
    #[serde(rename = "g", default = "one", skip_serializing_if = "is_one")]
    pub generation: u32,
    #[serde(rename = "s", with = "code")]
    pub state: AttemptState,
    #[serde(rename = "k")]
    pub token: Token,
    #[serde(rename = "x")]
    pub executor: Text,
    #[serde(rename = "b")]
    pub started_ms: i64,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub max_rss_kb: Option<u64>,
    /// Its executor said that no further attempt would succeed: why the run ended with attempts left.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
}

/// A run with all its attempts. Stored in the event that ends it, so that the projection needs no state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    #[serde(rename = "r")]
    pub run: RunId,
    #[serde(rename = "j")]
    pub job: JobId,
    #[serde(rename = "t")]
    pub tenant: Text,
    #[serde(rename = "s", with = "code")]
    pub state: RunState,
    #[serde(rename = "o", with = "code")]
    pub source: Source,
    /// For SCHEDULE the due instant before jitter.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub logical_ms: Option<i64>,
    /// The caller's key; None for SCHEDULE, whose key is the logical time.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(rename = "g", default = "one", skip_serializing_if = "is_one")]
    pub generation: u32,
    #[serde(rename = "c")]
    pub created_ms: i64,
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<i64>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// Params given with the trigger, merged over the job's.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Payload>,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Payload>,
    /// Who asked and why, for MANUAL and reopened runs.
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who triggered it, for MANUAL runs, and the trace that it belongs to.
    #[serde(rename = "by", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<CallOrigin>>,
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub dead_letter: bool,
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRecord>,
    /// Of the run of a DAG's node: the DAG run and the place of the node.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub dag: Option<(u64, u32)>,
    /// Messages that led to it. Format 2.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// Made by a message that a restore had marked. Format 2.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// Its hooks whose jobs were not started, the newest [`FAILED_HOOKS_KEPT`]. Format 2.
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    pub failed_hooks: Vec<FailedHook>,
    /// Seconds per attempt, instead of those of the job. Format 2.
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u64>,
    /// Of a DAG run that has ended: its nodes. Format 2.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Arc<GraphRecord>>,
    /// It is in the lane of backfills, and this is the backfill that it counts for. Format 2.
    #[serde(rename = "bf", default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<BackfillId>,
    /// Runs of hooks that it may lead to. None: nothing but its job's schedule or a caller has led to it. Format 2.
    #[serde(rename = "hb", default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
    /// A job that undoes it was started. Format 2.
    #[serde(rename = "hc", default, skip_serializing_if = "std::ops::Not::not")]
    pub compensated: bool,
    /// Its own, instead of its job's: a person changed it while the run waited. Format 2.
    #[serde(rename = "pr", default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    /// It missed a deadline, or was suspiciously short. Format 2.
    #[serde(rename = "tm", default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Box<RunTiming>>,
    /// Of the run of a channel: its own secret params. Of any other: who is told of its end. Format 2.
    #[serde(rename = "sp", default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Arc<Sealed>>,
}

upper_enum!(/// Why the job of a hook was not started.
    HookFailure {
        /// There was no answer for a day. The job may have been started all the same.
        Undelivered = "UNDELIVERED" = 1,
        /// The job will never be started for it.
        Refused = "REFUSED" = 2,
        /// The hook was not sent, because too many were not delivered.
        Dropped = "DROPPED" = 3,
    } default Refused);

/// A hook whose job was not started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedHook {
    /// Of the run when it failed, and which of its job's hooks.
    #[serde(rename = "g", default = "one", skip_serializing_if = "is_one")]
    pub generation: u32,
    #[serde(rename = "x", default, skip_serializing_if = "is_zero")]
    pub index: u32,
    /// Name of the job that was to be started.
    #[serde(rename = "j")]
    pub job: Text,
    #[serde(rename = "s", with = "code")]
    pub state: HookFailure,
    /// Why it was refused or dropped.
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    #[serde(rename = "a")]
    pub at_ms: i64,
}

/// Keys of runs that messages make begin with it, and no key of a caller contains it.
pub const MESSAGE_KEY: char = '\u{1}';

impl RunRecord {
    /// Whether a message of another job made it: its key keeps a repeat of the message from making it again.
    pub fn is_of_message(&self) -> bool {
        self.key.as_deref().is_some_and(|key| key.starts_with(MESSAGE_KEY))
    }

    /// When it ended; of an open one when it was created.
    pub fn last_ms(&self) -> i64 {
        self.ended_ms.unwrap_or(self.created_ms)
    }

    /// The span that it is a child of.
    pub fn trace(&self) -> Option<TraceContext> {
        self.by.as_deref()?.trace
    }

    /// Whether it is in the lane of backfills: behind all live runs, and beside the policies of its job.
    pub fn is_back(&self) -> bool {
        self.backfill.is_some()
    }

    /// Adds a hook whose job was not started; of the same hook the newest counts.
    pub fn add_failed_hook(&mut self, failed: FailedHook) {
        self.failed_hooks.retain(|known| (known.generation, known.index) != (failed.generation, failed.index));
        if self.failed_hooks.len() >= FAILED_HOOKS_KEPT {
            self.failed_hooks.remove(0);
        }
        self.failed_hooks.push(failed);
    }

    /// What its last attempt that says so has met. Of a run that succeeded only the attempt that did counts (its result may have
    /// been too large to keep): what earlier ones met stays with them.
    pub fn last_error(&self) -> Option<&str> {
        if self.state == RunState::Success {
            return self.attempts.last()?.error_message.as_deref();
        }
        self.attempts.iter().rev().find_map(|a| a.error_message.as_deref())
    }
}

fn one() -> u32 {
    1
}
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_one(n: &u32) -> bool {
    *n == 1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Enums are stored as their stable number.
pub mod code {
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// An enum with a stable number.
    pub trait Code: Sized + Copy {
        fn code(self) -> u8;
        fn from_code(code: u8) -> Option<Self>;
    }
    pub fn serialize<T: Code, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u8(value.code())
    }
    pub fn deserialize<'de, T: Code, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
        let n = u8::deserialize(d)?;
        T::from_code(n).ok_or_else(|| de::Error::custom(format!("unknown code {n}: written by a newer version?")))
    }
    macro_rules! impl_code {
        ($($name:ty),+ $(,)?) => { $(impl Code for $name {
            fn code(self) -> u8 { <$name>::code(self) }
            fn from_code(code: u8) -> Option<Self> { <$name>::from_code(code) }
        })+ };
    }
    impl_code!(super::RunState, super::Source, super::AttemptState, super::HookFailure);
    impl_code!(crate::job::Dialect, crate::job::Gap, crate::job::Overlap, crate::job::MisfirePolicy);
    impl_code!(crate::job::ConcurrencyPolicy, crate::job::Backoff, crate::job::OnLostContact, crate::job::JobStatus);
    impl_code!(crate::job::HttpMethod);
    impl_code!(crate::graph::state::NodeRule, crate::graph::state::NodeState, crate::graph::state::NodeFailure);
    impl_code!(crate::graph::state::StopCause, crate::graph::state::EdgeFact);
    impl_code!(crate::event::Outcome, crate::event::SkipReason, crate::event::StopReason);
    impl_code!(crate::stored::backfill::BackfillMode, crate::stored::backfill::BackfillState);
    impl_code!(crate::stored::bulk::BulkAction, crate::stored::bulk::BulkState);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(state: RunState, errors: &[Option<&str>]) -> RunRecord {
        let attempt = |(number, error): (u32, &Option<&str>)| AttemptRecord {
            attempt: number,
            generation: 1,
            state: AttemptState::Failed,
            token: Token(u64::from(number)),
            executor: "e".into(),
            started_ms: 0,
            ended_ms: Some(1),
            error_code: None,
            error_message: error.map(str::to_owned),
            cpu_ms: None,
            max_rss_kb: None,
            permanent: false,
        };
        RunRecord {
            run: RunId(1),
            job: JobId(1),
            tenant: "default".into(),
            state,
            source: Source::Schedule,
            logical_ms: Some(0),
            key: None,
            generation: 1,
            created_ms: 0,
            started_ms: Some(0),
            ended_ms: Some(1),
            params: None,
            result: None,
            reason: None,
            by: None,
            dead_letter: false,
            attempts: (1..).zip(errors).map(attempt).collect(),
            dag: None,
            depth: 0,
            marked: false,
            failed_hooks: Vec::new(),
            timeout_sec: None,
            graph: None,
            backfill: None,
            budget: None,
            compensated: false,
            priority: None,
            timing: None,
            sealed: None,
        }
    }

    #[test]
    fn a_run_keeps_the_newest_of_its_failed_hooks_and_each_once() {
        let mut run = ended(RunState::Failed, &[]);
        let failed = |generation| FailedHook {
            generation,
            index: 0,
            job: "refund".into(),
            state: HookFailure::Refused,
            reason: None,
            at_ms: 1,
        };
        run.add_failed_hook(failed(1));
        run.add_failed_hook(FailedHook { at_ms: 2, ..failed(1) });
        assert_eq!(run.failed_hooks, [FailedHook { at_ms: 2, ..failed(1) }]);
        (2..=40).for_each(|generation| run.add_failed_hook(failed(generation)));
        let kept: Vec<u32> = run.failed_hooks.iter().map(|failed| failed.generation).collect();
        assert_eq!(kept, (41 - FAILED_HOOKS_KEPT as u32..=40).collect::<Vec<_>>());
    }

    #[test]
    fn a_run_that_succeeded_does_not_show_what_an_earlier_attempt_met() {
        assert_eq!(ended(RunState::Failed, &[Some("not yet"), None]).last_error(), Some("not yet"));
        assert_eq!(ended(RunState::Success, &[Some("not yet"), None]).last_error(), None);
        let kept = [Some("not yet"), Some("a result of 20002 bytes is not kept")];
        assert_eq!(ended(RunState::Success, &kept).last_error(), kept[1]);
    }
}
