//! The files of a run directory, line by line: what executors, callers, the fault injector and the export write, and what the
//! checker reads. One JSON object a line. All of `t_us` is the wall clock of the one machine, microseconds since 1970 UTC.
//!
//! | file | written by | holds |
//! |---|---|---|
//! | `executor-*.jsonl` | each executor process | [`ExecutorLine`]: bodies started and ended |
//! | `caller-*.jsonl` | each caller | [`CallerLine`]: requests sent, and what was acknowledged |
//! | `faults.jsonl` | the fault injector | [`FaultLine`]: kills and restarts |
//! | `ledger.jsonl` | the export | [`LedgerLine`]: pages of each job's fire ledger |
//! | `runs.jsonl` | the export | `RunView` of the public API: every run of every job |
//! | `dags.jsonl` | the export | `DagRunView` of the public API: every run of every DAG with its nodes |
//! | `meta.json` | the export | [`Meta`]: up to when the history is told |

use campanile_schema::{
    ids::{JobId, RunId},
    job::JobSpec,
    payload::Payload,
    record::AttemptState,
    stored::backfill::BackfillMode,
    view::{ConfirmDecision, LedgerView},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

/// Wall clock, microseconds since 1970 UTC.
pub fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX))
}

/// What an executor saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ExecutorEvent {
    /// The process is up. Written once, first.
    Up,
    /// A body is about to run.
    Start,
    /// The body is over, with `outcome`.
    End,
    /// An assignment was refused before its body began.
    Refused,
}

/// A line of `executor-*.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutorLine {
    pub event: ExecutorEvent,
    pub t_us: i64,
    #[serde(default)]
    pub run: u64,
    #[serde(default)]
    pub job: u64,
    #[serde(default)]
    pub token: u64,
    #[serde(default)]
    pub attempt: u32,
    #[serde(default)]
    pub generation: u32,
    #[serde(default)]
    pub epoch: u64,
    #[serde(default)]
    pub shard: u16,
    /// Milliseconds since 1970 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AttemptState>,
    /// In START: the params that the body got; absent when they are empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Payload>,
    /// In START: the secrets that the body got, whose values were made for the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// In END: the result that the body handed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Payload>,
    /// In END: the code of the error that the body handed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// In END: the body said that no further attempt would succeed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
}

impl ExecutorLine {
    /// A line about the process itself.
    pub fn up() -> Self {
        Self {
            event: ExecutorEvent::Up,
            t_us: now_us(),
            run: 0,
            job: 0,
            token: 0,
            attempt: 0,
            generation: 0,
            epoch: 0,
            shard: 0,
            logical: None,
            outcome: None,
            params: None,
            secrets: BTreeMap::new(),
            result: None,
            error: None,
            permanent: false,
        }
    }
}

/// What a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verb {
    Create,
    /// Replace the job's specification by `spec`.
    Edit,
    Trigger,
    Pause,
    Resume,
    Delete,
    /// Stop a run that has not ended.
    Cancel,
    /// Run an ended run again, as a new generation.
    Retry,
    /// Run a dead letter again, as a new generation.
    Redrive,
    /// Take a dead letter off the list.
    Discard,
    /// A person decides a run that waits for one, see `decision`.
    Confirm,
    /// Run a stretch of the job's past, see `backfill`.
    Backfill,
    CancelBackfill,
    /// A bulk operation that changes the job among others, or the run.
    BulkPause,
    BulkResume,
    BulkRetry,
    /// No job of `tenant` starts anything until RESUME_TENANT.
    PauseTenant,
    ResumeTenant,
    /// No job at all starts anything until RESUME_SYSTEM.
    PauseSystem,
    ResumeSystem,
}

/// The stretch that a backfill runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackfillLine {
    pub id: Option<u64>,
    pub mode: BackfillMode,
    pub from_ms: i64,
    pub to_ms: i64,
    pub parallelism: u32,
    #[serde(default)]
    pub unknown_run: bool,
}

/// How far a call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CallEvent {
    /// Before the first byte left. A call that is tried again is sent again under the same number.
    Sent,
    /// The node said that it is done: from here on it must never be lost.
    Ack,
    /// The node said that nothing changed.
    Refused,
    /// No answer: it may or may not have been done.
    Unknown,
}

/// A line of `caller-*.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallerLine {
    pub event: CallEvent,
    pub t_us: i64,
    /// Number of the call within its file.
    pub call: u64,
    pub verb: Verb,
    /// Every verb about a job or one of its runs; for CREATE only in the acknowledgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// CREATE and EDIT, in SENT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<JobSpec>,
    /// TRIGGER.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// TRIGGER, in SENT: what is laid over the job's params.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Payload>,
    /// TRIGGER, in ACK; every verb about a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// CONFIRM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ConfirmDecision>,
    /// PAUSE_TENANT and RESUME_TENANT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// RETRY, REDRIVE and CONFIRM, in ACK: the generation of the run that the answer shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// BACKFILL and CANCEL_BACKFILL; its id in ACK.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<BackfillLine>,
    /// Code of the error, in REFUSED and UNKNOWN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl CallerLine {
    /// A line with only what every line has.
    pub fn new(event: CallEvent, call: u64, verb: Verb) -> Self {
        Self {
            event,
            t_us: now_us(),
            call,
            verb,
            job: None,
            spec: None,
            key: None,
            params: None,
            run: None,
            decision: None,
            tenant: None,
            generation: None,
            backfill: None,
            code: None,
        }
    }
}

/// What was done to the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FaultEvent {
    /// The node was started.
    NodeStarted,
    /// The node answers calls.
    NodeReady,
    /// kill -9, or it aborted itself at a fail point; it is certainly down from here to the next NODE_STARTED.
    NodeKilled,
    /// The node's directory was made anew from an archive.
    NodeRestored,
    /// An executor process was started; `executor` is the name of its file.
    ExecutorStarted,
    /// kill -9 of an executor process.
    ExecutorKilled,
    /// An executor process was made to stand still (SIGSTOP), as on a machine that hangs; its bodies stand still with it.
    ExecutorFrozen,
    /// It goes on.
    ExecutorThawed,
    /// From `t_us` to `until_us` what was done to the cluster may keep the shards of `shards` (absent: all) from being served, so that
    /// due instants of their jobs are late or missed by their misfire policy. It is no outage: it excuses nothing else, no lost lease
    /// and no skip for an active run among them.
    Disturbed,
    /// From `t_us` to `until_us` the network between `executor` and the owners of `shards` (absent: all) is cut, so that the lease of
    /// its attempts there may be lost. Its bodies go on.
    ExecutorUnheard,
}

/// A line of `faults.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultLine {
    pub event: FaultEvent,
    pub t_us: i64,
    /// End of DISTURBED and EXECUTOR_UNHEARD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_us: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// Of DISTURBED and EXECUTOR_UNHEARD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<Vec<u16>>,
    /// For people: the fail point, the exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl FaultLine {
    /// Something that happens now.
    pub fn now(event: FaultEvent, detail: Option<String>) -> Self {
        Self { event, t_us: now_us(), until_us: None, executor: None, shards: None, detail }
    }
}

/// A line of `ledger.jsonl`: one page, or the error in place of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerLine {
    pub job: JobId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<LedgerView>,
    /// Code of the error that the API answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `meta.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Every due instant up to here must have its outcome. Milliseconds since 1970 UTC.
    pub until_ms: i64,
    /// False: the export was cut short, and the verdict can only be red.
    pub complete: bool,
    /// All runs were final (or waited for a person) when the export began.
    pub drained: bool,
    /// Heartbeat lease of executors in force, milliseconds.
    pub lease_ms: i64,
    /// A body begins at most this long after its instant, or after what held it back, milliseconds. Absent: lateness is not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_ms: Option<i64>,
    /// Number of shards; a job's is (id mod 4096) mod this. Told where the history has lines about shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<u16>,
    /// Bodies at once that tenants were limited to before their first job was created, as the harness was told it is done.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quotas: BTreeMap<String, u32>,
    /// Runs a second that tenants were limited to, in the same way.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rates: BTreeMap<String, f64>,
    /// Runs that may wait for an executor, by tenant, as the harness was told it is done; 100,000 where nothing was set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queued: BTreeMap<String, u32>,
    /// The callers of this run are there to use every verb and feature, and had the time to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uses_all: bool,
}
