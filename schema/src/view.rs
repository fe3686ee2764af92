//! Bodies of HTTP and RPC calls: what callers send and read besides [`crate::job::JobSpec`]. One meaning in both; camelCase;
//! what callers send refuses unknown fields by name.

pub mod backfill;
pub mod bulk;
pub mod calendars;
pub mod dag;
mod degradation;
pub mod explain;
mod ledger;
mod log;
pub mod outbox;
mod preview;
pub mod runs;
mod session;
pub mod targets;
pub mod versions;

use crate::{
    audit::TriggeredBy,
    event::StopReason,
    ids::{BackfillId, JobId, RunId},
    job::{JobStatus, upper_enum},
    payload::Payload,
    record::{AttemptRecord, AttemptState, RunRecord, RunState, Source},
    time::Timestamp,
};
pub use crate::{
    executor_view::{ExecutorAtNode, ExecutorState, ExecutorView},
    replace::ReplaceBody,
};
pub use degradation::DegradationLevel;
use degradation::is_normal;
pub use ledger::{LedgerEntryView, LedgerView};
pub use log::{LogBody, LogLevel, LogView};
use outbox::FailedHookView;
pub use preview::{Preview, PreviewBody};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
pub use session::{CallerKind, KnownBy, SessionView};
use std::collections::BTreeMap;

/// Makes a body that callers send.
macro_rules! body {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name { $($(#[$fdoc])* pub $field: $type),* }
    };
}

body!(/// `POST /jobs/{jobId}/trigger`, `job.trigger`.
TriggerBody {
    /// The caller's id: the same one twice makes one run.
    #[serde(default)] manual_run_id: Option<String>,
    /// An object whose values are laid over the job's params by their names.
    #[serde(default)] params: Option<Payload>,
    #[serde(default)] reason: Option<String>,
});
body!(/// Body of calls that only take a reason (pause, resume, cancel, discard).
    ReasonBody { #[serde(default)] reason: Option<String> });
body!(/// `POST /runs/{runId}/retry`, `POST /dead-letters/{runId}/redrive`.
RetryBody {
    #[serde(default)] reason: Option<String>,
    /// Also if the compensation of the run was started, which is refused with `409_COMPENSATED` otherwise.
    #[serde(default)] force: bool,
});
body!(/// `POST /runs/{runId}/confirm`: a person decides about a run in NEEDS_CONFIRMATION.
    ConfirmBody { decision: ConfirmDecision, #[serde(default)] reason: Option<String> });
body!(/// `POST /runs/{runId}/priority`: of a run that waits.
PriorityBody {
    /// 0..1000, higher first.
    priority: u16,
    #[serde(default)] reason: Option<String>,
});
body!(/// `GET /jobs`, `job.list`.
JobFilter {
    #[serde(default)] tenant_id: Option<String>,
    #[serde(default)] status: Option<JobStatus>,
    /// `key=value,key2!=value2,key3`.
    #[serde(default)] labels: Option<String>,
    /// Part of the name, the displayName, the description, the owner or an annotation, in small or capital letters.
    #[serde(default)] text: Option<String>,
    #[serde(default)] page_token: Option<String>,
    #[serde(default)] page: Option<usize>,
    #[serde(default)] page_size: Option<usize>,
});
body!(/// Page of a list.
PageBody {
    #[serde(default)] page_token: Option<String>,
    #[serde(default)] page: Option<usize>,
    #[serde(default)] page_size: Option<usize>,
});
body!(/// `run.failed`, `outbox.list`.
TenantPageBody {
    #[serde(default)] tenant_id: Option<String>,
    #[serde(default)] page_token: Option<String>,
    #[serde(default)] page: Option<usize>,
    #[serde(default)] page_size: Option<usize>,
});
body!(/// `job.find`: the job of a name; the tenant is the caller's own, for operators `default`, unless named.
FindBody { name: String, #[serde(default)] tenant_id: Option<String> });
body!(/// `run.get`.
RunGetBody {
    /// Answer when the run is final, at the latest after so many milliseconds (60,000 at most). Default: at once.
    #[serde(default)] wait_ms: Option<u64>,
});
body!(/// `GET /jobs/{jobId}/ledger`, `job.ledger`: both ends included; default: the last day.
LedgerBody {
    #[serde(default)] from: Option<Timestamp>,
    #[serde(default)] to: Option<Timestamp>,
    #[serde(default)] page_size: Option<usize>,
});

upper_enum!(/// What a person says of a run whose executor was lost, or of one whose body does not end.
    ConfirmDecision {
        /// Run it again.
        Rerun = "RERUN" = 0,
        /// It did its work.
        Succeeded = "SUCCEEDED" = 1,
        /// It did not, and shall not be run again.
        Failed = "FAILED" = 2,
        /// The body of a run that is STOPPING has ended, though its executor does not say so: the attempt ends now.
        Ended = "ENDED" = 3,
    } default Rerun);

/// Answer of a create.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    pub job_id: JobId,
    pub status: JobStatus,
    #[serde(default)]
    pub next_fire_at: Option<Timestamp>,
}

/// How far a change has come that every shard is to hold. What is outstanding is carried on until all of them hold it, or a newer change
/// of the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// Shards that are not known to hold it yet; none: it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outstanding: Vec<u16>,
}

/// A list's page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_page_token: Option<String>,
}

/// A run as read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    pub run_id: RunId,
    pub job_id: JobId,
    pub tenant_id: String,
    pub state: RunState,
    pub source: Source,
    pub logical_time: Option<Timestamp>,
    pub key: Option<String>,
    pub generation: u32,
    pub attempt_count: u32,
    pub next_retry_at: Option<Timestamp>,
    pub executor_id: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub last_error: Option<String>,
    /// Why it is not running, or not ending: a code and a sentence.
    pub wait_reason: Option<String>,
    /// The run is STOPPING: its body was told to stop and has not ended. No other body of it starts until it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StoppingView>,
    pub dead_letter: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    /// The caller's, as they came with the trigger.
    pub params: Option<Payload>,
    /// The params that the body of the newest attempt got: the job's with the caller's laid over them. Before the first
    /// attempt: those that it would get by the job's definition of now. Only where one run is read; absent when the job
    /// was changed since that attempt began, because nobody knows them then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_params: Option<Payload>,
    /// Names of the secret params that the body got beside them, each with `"***"`; told and left out like
    /// `effectiveParams`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_params: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Payload>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who triggered it, of a MANUAL run. Absent: an earlier release made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<TriggeredBy>,
    /// The trace that it belongs to, 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Its hooks whose jobs were not started, the newest 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_hooks: Vec<FailedHookView>,
    /// Its compensation was started: a job that undoes what the run did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compensated: bool,
    pub attempts: Vec<AttemptView>,
    /// Of the run of a DAG's node: the run of the DAG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dag_run_id: Option<RunId>,
    /// ... and the place of the node in the DAG's definition, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dag_node: Option<u32>,
    /// The backfill that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill_id: Option<BackfillId>,
    /// Its own, instead of its job's: it was changed while the run waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
}

/// Since when and why a body is being stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoppingView {
    pub reason: StopReason,
    /// Absent: a node of an older release told it to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl RunView {
    /// The state for people: STOPPING while a body that was told to stop has not ended.
    pub fn label(&self) -> &'static str {
        match (self.state, &self.stopping) {
            (RunState::Running, Some(_)) => "STOPPING",
            (state, _) => state.as_str(),
        }
    }
}

/// An attempt as read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    pub attempt: u32,
    pub generation: u32,
    pub token: u64,
    pub state: AttemptState,
    pub executor_id: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub cpu_ms: Option<u64>,
    pub max_rss_kb: Option<u64>,
    /// Its executor said that no further attempt would succeed: the run ended with attempts left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
}

impl From<&AttemptRecord> for AttemptView {
    fn from(a: &AttemptRecord) -> Self {
        Self {
            attempt: a.attempt,
            generation: a.generation,
            token: a.token.0,
            state: a.state,
            executor_id: a.executor.to_string(),
            started_at: Timestamp(a.started_ms),
            ended_at: a.ended_ms.map(Timestamp),
            error_code: a.error_code.clone(),
            error_message: a.error_message.clone(),
            cpu_ms: a.cpu_ms,
            max_rss_kb: a.max_rss_kb,
            permanent: a.permanent,
        }
    }
}

impl From<&RunRecord> for RunView {
    fn from(r: &RunRecord) -> Self {
        Self {
            run_id: r.run,
            job_id: r.job,
            tenant_id: r.tenant.to_string(),
            state: r.state,
            source: r.source,
            logical_time: r.logical_ms.map(Timestamp),
            key: r.key.clone().filter(|_| !r.is_of_message()),
            generation: r.generation,
            attempt_count: r.attempts.last().map_or(0, |a| a.attempt),
            next_retry_at: None,
            executor_id: r.attempts.last().map(|a| a.executor.to_string()),
            created_at: Timestamp(r.created_ms),
            started_at: r.started_ms.map(Timestamp),
            ended_at: r.ended_ms.map(Timestamp),
            last_error: r.last_error().map(str::to_owned),
            wait_reason: None,
            stopping: None,
            dead_letter: r.dead_letter,
            params: r.params.clone(),
            effective_params: None,
            secret_params: BTreeMap::new(),
            result: r.result.clone(),
            reason: r.reason.clone(),
            triggered_by: r.by.as_deref().filter(|by| by.is_of_a_call()).map(TriggeredBy::from),
            trace_id: r.trace().map(|context| context.trace.to_string()),
            failed_hooks: r.failed_hooks.iter().map(FailedHookView::from).collect(),
            compensated: r.compensated,
            attempts: r.attempts.iter().map(AttemptView::from).collect(),
            dag_run_id: r.dag.map(|(run, _)| RunId(run)),
            dag_node: r.dag.map(|(_, node)| node),
            backfill_id: r.backfill.filter(|id| id.0 != 0),
            priority: r.priority,
        }
    }
}

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterView {
    pub run_id: RunId,
    pub job_id: JobId,
    pub job_name: Option<String>,
    pub tenant_id: String,
    pub reason: String,
    /// Of the error text without numbers and ids: dead letters with the same one failed alike. Absent: of an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    pub at: Timestamp,
    pub attempt_count: u32,
}

/// A tenant's limits and use. 0 is no limit for runs and for triggers, and the node's own limit for jobs (10,000,000) and for waiting
/// runs (100,000).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TenantBody {
    #[serde(default)]
    pub max_concurrent_runs: u32,
    #[serde(default)]
    pub max_triggers_per_sec: f64,
    #[serde(default)]
    pub max_jobs: u64,
    #[serde(default)]
    pub max_queued_runs: u32,
}
/// A tenant as read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantView {
    pub tenant_id: String,
    pub quota: TenantBody,
    pub version: u64,
    pub paused: bool,
    pub jobs: u64,
    pub running: u64,
    pub waiting: u64,
}

/// A list that is of all nodes of a cluster, as far as they answered in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gathered<T> {
    pub items: Vec<T>,
    /// Nodes of whom nothing is in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingNode>,
}

/// A node of a cluster that did not answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingNode {
    pub node: String,
    pub reason: String,
}

/// A pool as read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolView {
    pub name: String,
    pub executors: u32,
    pub credit: u32,
    pub running: u64,
    pub waiting: u64,
}

/// Facts of the node that is asked, `GET /api/v1/cluster/node`, `system.info`. `jobs`, `openRuns` and `executors` are of the whole
/// cluster, as far as its nodes answered in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    pub version: String,
    pub cluster_id: u64,
    pub shards: u16,
    pub epoch: u64,
    pub tzdb: String,
    pub ready: bool,
    pub not_ready_reasons: Vec<String>,
    pub jobs: u64,
    pub open_runs: u64,
    pub executors: u64,
    pub now: Timestamp,
    /// What this node does without, because it cannot keep up. Absent: NORMAL.
    #[serde(default, skip_serializing_if = "is_normal")]
    pub degradation: DegradationLevel,
    /// The directory of files that this node keeps jobs by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesView>,
    /// Of a cluster: each node that answered, the asked one among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeFacts>,
    /// Nodes that did not answer: they are in none of the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingNode>,
}

/// A node of a cluster, with what it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeFacts {
    pub node: String,
    pub version: String,
    /// Its session.
    pub epoch: u64,
    pub ready: bool,
    pub not_ready_reasons: Vec<String>,
    pub jobs: u64,
    pub open_runs: u64,
    /// Executors that are registered with it; one may be with several nodes.
    pub executors: u64,
    pub now: Timestamp,
}

/// How a node's directory of files stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesView {
    pub dir: String,
    pub files: u64,
    /// Of those files that are not broken.
    pub jobs: u64,
    /// When they were brought to what the files say.
    pub applied_at: Option<Timestamp>,
    /// Put aside: their jobs stay as they are.
    pub broken: Vec<BrokenFile>,
    /// Why nothing is applied now; it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A file that is put aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrokenFile {
    pub file: String,
    pub problems: Vec<String>,
}
