//! Events: everything that changes a shard's state. They are stored in frames with short names; unknown fields are
//! ignored.
//!
//! Rules: an event carries everything that `apply` and the projection need, so that neither looks anything up. The
//! meaning of an event never changes: a new meaning is a new variant and a higher format.

mod ledger;
mod words;

pub use ledger::{Interval, LedgerEntry};
pub use words::{Outcome, SkipReason, StopReason};

use crate::{
    graph::change::GraphChange,
    ids::{BackfillId, Digest, ExecutorSession, JobId, RunId, Token},
    loan::LoanEvent,
    payload::Payload,
    record::{AttemptState, FailedHook, RunRecord, Source, code},
    stored::{
        CalendarVersion, StoredJob, TenantRecord,
        audit::{AuditRecord, CallOrigin},
        backfill::BackfillChange,
        bulk::{BulkChange, BulkMark},
        outbox::OutboxEvent,
    },
    text::Text,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How an ended attempt goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Next {
    /// RETRY_WAIT until then.
    #[serde(rename = "r")]
    RetryAt(i64),
    /// QUEUED again at once (NOT_STARTED, or a confirmed rerun).
    #[serde(rename = "q")]
    Requeue,
    /// NEEDS_CONFIRMATION: a person decides.
    #[serde(rename = "c")]
    Confirm,
}

/// Whom a pause of many covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PauseScope {
    #[serde(rename = "s")]
    System,
    #[serde(rename = "t")]
    Tenant(String),
}

/// One change of a shard's state. `at_ms`: guarded wall clock of the decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    #[serde(rename = "ts")]
    TenantSet { tenant: TenantRecord },
    #[serde(rename = "td")]
    TenantDeleted { tenant: String },
    /// Held by every shard; the highest version of a scope wins.
    #[serde(rename = "ps")]
    PauseSet {
        scope: PauseScope,
        paused: bool,
        version: u64,
        /// When the shard took it over, by the clock that its instants are decided by. None: an earlier release wrote it.
        #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
        at_ms: Option<i64>,
    },
    /// In the tenant's home shard: what its quota lends to sessions of a cluster.
    #[serde(rename = "tl")]
    Lent {
        #[serde(rename = "t")]
        tenant: String,
        #[serde(rename = "l")]
        changes: Vec<LoanEvent>,
    },

    /// A create came with a caller's key. Without a job, in the key's shard: the key belongs to this request. With one, in
    /// the frame of its `JobCreated`: this is what the request made.
    #[serde(rename = "jk")]
    CreateKept {
        /// Of tenant and key.
        #[serde(rename = "k")]
        key: Digest,
        /// Of the request.
        #[serde(rename = "p")]
        print: Digest,
        #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
        job: Option<JobId>,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    #[serde(rename = "jc")]
    JobCreated {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "d")]
        spec: Arc<StoredJob>,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// A new version of the definition. Instants up to `at` belong to the old one.
    #[serde(rename = "jr")]
    JobReplaced {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "d")]
        spec: Arc<StoredJob>,
        #[serde(rename = "v")]
        version: u64,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    #[serde(rename = "jp")]
    JobPaused {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "a")]
        at_ms: i64,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The bulk operation that did it. Format 2.
        #[serde(rename = "bk", default, skip_serializing_if = "Option::is_none")]
        bulk: Option<BulkMark>,
    },
    #[serde(rename = "ju")]
    JobResumed {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "a")]
        at_ms: i64,
        /// The bulk operation that did it. Format 2.
        #[serde(rename = "bk", default, skip_serializing_if = "Option::is_none")]
        bulk: Option<BulkMark>,
    },
    #[serde(rename = "jd")]
    JobDeleted {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    #[serde(rename = "jq")]
    JobQuarantined {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "a")]
        at_ms: i64,
        #[serde(rename = "y")]
        reason: String,
    },
    /// The cursor moves from `interval.from` to `interval.to`; every due instant in it is in `entries`.
    #[serde(rename = "cm")]
    CursorMoved {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "i")]
        interval: Interval,
        #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
        entries: Vec<LedgerEntry>,
    },

    /// With an interval (SCHEDULE only) the cursor moves to the logical time; that instant is FIRED or FIRED_LATE by this run.
    #[serde(rename = "rc")]
    RunCreated {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "o", with = "code")]
        source: Source,
        #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
        logical_ms: Option<i64>,
        #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
        params: Option<Payload>,
        #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Who triggered it, for MANUAL, and the trace that it belongs to.
        #[serde(rename = "by", default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<CallOrigin>>,
        /// PENDING (held by the concurrency policy) instead of QUEUED.
        #[serde(rename = "h", default, skip_serializing_if = "std::ops::Not::not")]
        held: bool,
        #[serde(rename = "a")]
        at_ms: i64,
        #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
        interval: Option<Interval>,
        /// FIRED_LATE: more than `limits::LATE_MS` after the instant and its jitter.
        #[serde(rename = "t", default, skip_serializing_if = "std::ops::Not::not")]
        late: bool,
        /// Of the run of a DAG's node: the DAG run and the place of the node.
        #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
        dag: Option<(u64, u32)>,
        /// Messages that led to it. Format 2.
        #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
        depth: u32,
        /// Made by a message that a restore had marked. Format 2.
        #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
        marked: bool,
        /// Seconds per attempt, instead of those of the job. Format 2.
        #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
        timeout_sec: Option<u64>,
        /// It is in the lane of backfills, and this is the backfill that made it. Format 2.
        #[serde(rename = "bf", default, skip_serializing_if = "Option::is_none")]
        backfill: Option<BackfillId>,
        /// Runs of hooks that it may lead to; None: as many as any that nothing led to. Format 2.
        #[serde(rename = "hb", default, skip_serializing_if = "Option::is_none")]
        budget: Option<u32>,
    },
    /// PENDING -> QUEUED.
    #[serde(rename = "rr")]
    RunReleased {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// RETRY_WAIT -> QUEUED.
    #[serde(rename = "rd")]
    RetryDue {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// QUEUED -> RUNNING. Durable before the assignment is sent.
    #[serde(rename = "as")]
    AttemptStarted {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "n")]
        attempt: u32,
        #[serde(rename = "k")]
        token: Token,
        #[serde(rename = "x")]
        executor: Text,
        #[serde(rename = "s")]
        session: ExecutorSession,
        /// Name of the credential that the session is of: nobody else may speak for the attempt. Earlier releases do not
        /// name it.
        #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
        credential: Option<Text>,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// RUNNING -> SUSPECTED_LOST.
    #[serde(rename = "al")]
    AttemptSuspected {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// SUSPECTED_LOST -> RUNNING: the executor is heard again (perhaps under a new session).
    #[serde(rename = "ah")]
    AttemptHeard {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "s")]
        session: ExecutorSession,
        /// Only for an attempt that had no credential: it belongs to this one from now on.
        #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
        credential: Option<Text>,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// The executor was told to stop the body; the attempt ends when it says so or its lease ends.
    #[serde(rename = "ap")]
    AttemptStopping {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "w", with = "code")]
        why: StopReason,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// An attempt ended and the run goes on.
    #[serde(rename = "ae")]
    AttemptEnded {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "k")]
        token: Token,
        #[serde(rename = "s", with = "code")]
        state: AttemptState,
        #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
        #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
        #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
        cpu_ms: Option<u64>,
        #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
        max_rss_kb: Option<u64>,
        #[serde(rename = "a")]
        at_ms: i64,
        #[serde(rename = "x")]
        next: Next,
        /// It ended by its executor's shutdown or loss and is not counted against `maxAttempts`.
        #[serde(rename = "f", default, skip_serializing_if = "std::ops::Not::not")]
        uncounted: bool,
    },
    /// NEEDS_CONFIRMATION -> QUEUED by a person.
    #[serde(rename = "rq")]
    RunConfirmed {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// The run is final: the whole record, so that the projection needs no state.
    #[serde(rename = "re")]
    RunEnded {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "d")]
        record: Arc<RunRecord>,
    },
    /// A final run is active again under the next generation with a fresh retry budget.
    #[serde(rename = "ro")]
    RunReopened {
        #[serde(rename = "j")]
        job: JobId,
        /// As it was, with generation raised and state PENDING or QUEUED.
        #[serde(rename = "d")]
        record: Arc<RunRecord>,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// The dead letter of a final run was put away.
    #[serde(rename = "dd")]
    DeadLetterDiscarded {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "d")]
        record: Arc<RunRecord>,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// A message between jobs was sent or settled. Of the shard; what is sent stands behind the event that causes it. Format 2.
    #[serde(rename = "ob")]
    Outbox {
        #[serde(rename = "e")]
        change: OutboxEvent,
    },
    /// The job of a hook was not started. Changes the record of the run. Format 2.
    #[serde(rename = "hf")]
    HookFailed {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "h")]
        failed: FailedHook,
        /// The run as it ended last, with the hook. None: it is open again.
        #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
        record: Option<Arc<RunRecord>>,
    },
    /// A run of a DAG went on; its first change makes it RUNNING. Format 2.
    #[serde(rename = "gc")]
    GraphChanged {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        /// Of the run, after the changes.
        #[serde(rename = "g")]
        generation: u32,
        #[serde(rename = "c")]
        changes: Vec<GraphChange>,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// A backfill of the job began, went on or ended. Format 2.
    #[serde(rename = "bf")]
    BackfillChanged {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "c")]
        change: BackfillChange,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// A person gave a run that waits a priority of its own. Format 2.
    #[serde(rename = "rp")]
    RunPrioritized {
        #[serde(rename = "j")]
        job: JobId,
        #[serde(rename = "r")]
        run: RunId,
        #[serde(rename = "p")]
        priority: u16,
        #[serde(rename = "a")]
        at_ms: i64,
    },
    /// A bulk operation began, went on or ended, in its home shard. Format 2.
    #[serde(rename = "bk")]
    BulkChanged {
        #[serde(rename = "c")]
        change: BulkChange,
    },
    /// A version of a calendar. Held by every shard; a version that is held changes nothing. Format 2.
    #[serde(rename = "cs")]
    CalendarSet {
        #[serde(rename = "t")]
        tenant: Text,
        #[serde(rename = "n")]
        name: Text,
        #[serde(rename = "c")]
        calendar: Arc<CalendarVersion>,
    },
    /// Who made the change that stands before it in its frame, or was refused one. Changes no state. Format 2.
    #[serde(rename = "au")]
    Audited {
        #[serde(rename = "d")]
        record: Arc<AuditRecord>,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Event {
    /// The job that the event belongs to; None for events of the shard itself (what a key made is the shard's).
    pub fn job(&self) -> Option<JobId> {
        match self {
            Self::TenantSet { .. }
            | Self::TenantDeleted { .. }
            | Self::PauseSet { .. }
            | Self::Lent { .. }
            | Self::CreateKept { .. }
            | Self::Outbox { .. }
            | Self::BulkChanged { .. }
            | Self::CalendarSet { .. }
            | Self::Audited { .. } => None,
            Self::JobCreated { job, .. }
            | Self::JobReplaced { job, .. }
            | Self::JobPaused { job, .. }
            | Self::JobResumed { job, .. }
            | Self::JobDeleted { job, .. }
            | Self::JobQuarantined { job, .. }
            | Self::CursorMoved { job, .. }
            | Self::RunCreated { job, .. }
            | Self::RunReleased { job, .. }
            | Self::RetryDue { job, .. }
            | Self::AttemptStarted { job, .. }
            | Self::AttemptSuspected { job, .. }
            | Self::AttemptHeard { job, .. }
            | Self::AttemptStopping { job, .. }
            | Self::AttemptEnded { job, .. }
            | Self::RunConfirmed { job, .. }
            | Self::RunPrioritized { job, .. }
            | Self::RunEnded { job, .. }
            | Self::RunReopened { job, .. }
            | Self::DeadLetterDiscarded { job, .. }
            | Self::HookFailed { job, .. }
            | Self::GraphChanged { job, .. }
            | Self::BackfillChanged { job, .. } => Some(*job),
        }
    }
}
