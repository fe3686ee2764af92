//! The messages of watches: which changes a watcher wants, and the changes as they become durable. They mean the same
//! in HTTP (server-sent events), RPC (notifications) and the CLI.

use crate::{
    ids::{JobId, RunId},
    job::{JobStatus, upper_enum},
    record::{RunState, Source},
    time::Timestamp,
    view::RunView,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// `run.watch`, `GET /runs/watch`: whose runs. What is left out does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchRuns {
    /// One run: its state now comes first, and after its end the watch ends.
    #[serde(default)]
    pub run_id: Option<RunId>,
    #[serde(default)]
    pub job_id: Option<JobId>,
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// Of jobs with these labels: `key=value,key2!=value2,key3`.
    #[serde(default)]
    pub labels: Option<String>,
    /// Only changes to this state.
    #[serde(default)]
    pub state: Option<RunState>,
    /// Go on after this cursor.
    #[serde(default)]
    pub after: Option<String>,
}

/// `job.watch`, `GET /jobs/watch`: whose definitions. What is left out does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchJobs {
    #[serde(default)]
    pub job_id: Option<JobId>,
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// With these labels: `key=value,key2!=value2,key3`.
    #[serde(default)]
    pub labels: Option<String>,
    /// Go on after this cursor.
    #[serde(default)]
    pub after: Option<String>,
}

/// A run as a decision left it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunChange {
    pub at: Timestamp,
    pub run_id: RunId,
    pub job_id: JobId,
    pub job_name: String,
    pub tenant_id: String,
    pub state: RunState,
    pub source: Source,
    pub logical_time: Option<Timestamp>,
    pub generation: u32,
    pub attempt_count: u32,
    pub executor_id: Option<String>,
    pub next_retry_at: Option<Timestamp>,
    /// Of the last attempt that failed; its first 256 characters.
    pub last_error: Option<String>,
}

/// Characters of an error that a change carries.
const ERROR_CHARS: usize = 256;

impl RunChange {
    /// From a run as it was read.
    pub fn new(at: Timestamp, job_name: &str, run: &RunView) -> Self {
        Self {
            at,
            run_id: run.run_id,
            job_id: run.job_id,
            job_name: job_name.to_owned(),
            tenant_id: run.tenant_id.clone(),
            state: run.state,
            source: run.source,
            logical_time: run.logical_time,
            generation: run.generation,
            attempt_count: run.attempt_count,
            executor_id: run.executor_id.clone(),
            next_retry_at: run.next_retry_at,
            last_error: run.last_error.as_ref().map(|error| error.chars().take(ERROR_CHARS).collect()),
        }
    }
}

upper_enum!(/// What became of a job's definition.
    JobStep { Created = "CREATED" = 0, Replaced = "REPLACED" = 1, Paused = "PAUSED" = 2, Resumed = "RESUMED" = 3,
        Deleted = "DELETED" = 4,
        /// Put aside after its own code failed again and again.
        Quarantined = "QUARANTINED" = 5 } default Created);

/// A job as a decision left it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobChange {
    pub at: Timestamp,
    pub job_id: JobId,
    pub job_name: String,
    pub tenant_id: String,
    pub change: JobStep,
    pub status: JobStatus,
    pub version: u64,
}

/// Answer of `run.watch` and `job.watch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watching {
    /// Names the watch on this connection, in its notifications and in `watch.stop`.
    pub watch_id: u32,
    /// Where it begins.
    pub cursor: String,
}

/// Notification `run.changed` or `job.changed`. Without items: the watch stands, and nothing was there to tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed<T> {
    pub watch_id: u32,
    pub items: Vec<T>,
    /// `after` of a watch that goes on behind these items.
    pub cursor: String,
    /// So many changes at least, of all that the node saw, were lost to this watch before these items: it was too slow, or away
    /// for too long. Read anew what must be known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Notification `watch.ended`: no more comes. Without a code it has told everything: its one run is final.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchEnded {
    pub watch_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// `watch.stop`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopWatch {
    pub watch_id: u32,
}
