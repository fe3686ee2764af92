//! Bodies of the list of runs over all jobs, and of the statistics of a job.

use crate::{
    ids::{JobId, RunId},
    record::{RunState, Source},
    time::Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `GET /runs`, `run.list`. Filters that are given must all fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunListBody {
    /// Default: the credential's own; for operators every tenant.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// One or several states, with commas between them. Default: with `jobId` all; otherwise those of runs that are open, FAILED and
    /// TIMEOUT.
    #[serde(default)]
    pub state: Option<String>,
    #[serde(default)]
    pub job_id: Option<JobId>,
    /// Of jobs that have these labels now: `key=value,key2!=value2,key3`.
    #[serde(default)]
    pub labels: Option<String>,
    #[serde(default)]
    pub source: Option<Source>,
    /// The first millisecond in which a run ended, or was created if it is open.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// The last one.
    #[serde(default)]
    pub to: Option<Timestamp>,
    #[serde(default)]
    pub page_token: Option<String>,
    #[serde(default)]
    pub page: Option<usize>,
    /// Runs of a page at most. One may have fewer although more follow: with filters a call looks at a bounded number.
    #[serde(default)]
    pub page_size: Option<usize>,
}

/// `GET /jobs/{jobId}/statistics`, `job.statistics`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatisticsBody {
    /// How far back from now: a number with `s`, `m`, `h` or `d`. Default: `24h`.
    #[serde(default)]
    pub window: Option<String>,
}

/// `GET /dead-letters`, `dlq.list`. Filters that are given must all fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeadLettersBody {
    #[serde(default)]
    pub tenant_id: Option<String>,
    #[serde(default)]
    pub job_id: Option<JobId>,
    /// The first millisecond in which a run ended.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// The last one.
    #[serde(default)]
    pub to: Option<Timestamp>,
    /// The `cause` of a dead letter, as `dlq.causes` tells it.
    #[serde(default)]
    pub cause: Option<String>,
    #[serde(default)]
    pub page_token: Option<String>,
    #[serde(default)]
    pub page: Option<usize>,
    /// Dead letters of a page at most. One may have fewer although more follow: with filters a call looks at a bounded number.
    #[serde(default)]
    pub page_size: Option<usize>,
}

/// `GET /dead-letters/causes`, `dlq.causes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CausesBody {
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// The first millisecond in which a run ended.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// The last one.
    #[serde(default)]
    pub to: Option<Timestamp>,
}

/// Dead letters whose errors differ in numbers and ids only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CauseView {
    /// Of the error text without numbers and ids. The same text has the same cause in every job.
    pub cause: String,
    /// The error text of the newest one.
    pub reason: String,
    pub count: u64,
    /// Jobs that it met.
    pub jobs: u64,
    /// The newest run.
    pub run_id: RunId,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
}

/// Dead letters by cause, the most frequent first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CausesView {
    pub items: Vec<CauseView>,
    /// Dead letters that were counted.
    pub counted: u64,
    /// There are more than are counted (10,000): these are the newest, of all tenants those of the first ones.
    pub truncated: bool,
}

/// `GET /schedules/load`, `schedule.load`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoadBody {
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// How far ahead, 60 unless given, 120 at most.
    #[serde(default)]
    pub minutes: Option<u32>,
}

/// Due instants of a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinuteLoad {
    /// The beginning of the minute.
    pub at: Timestamp,
    pub count: u64,
}

/// How many instants are due in each of the next minutes, by the schedules of now and without jitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadView {
    pub items: Vec<MinuteLoad>,
    /// Jobs that are due within the time.
    pub jobs: u64,
    /// There are more jobs or instants than a call looks at: the numbers are too small.
    pub truncated: bool,
}

/// How many runs have a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateCount {
    pub state: RunState,
    pub count: u64,
}

/// Times of several runs, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimesView {
    /// Runs that have such a time.
    pub count: u64,
    pub mean: f64,
    pub p50: u64,
    pub p95: u64,
    pub max: u64,
}

/// Statistics of the ended runs of a job that were created in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatisticsView {
    pub job_id: JobId,
    /// Creation of the oldest run that could be counted. Later than the window begins when `truncated`.
    pub from: Timestamp,
    pub to: Timestamp,
    /// Ended runs that were counted.
    pub runs: u64,
    /// The window has more runs than are counted (10,000): these are its newest.
    pub truncated: bool,
    /// States with at least one run.
    pub outcomes: Vec<StateCount>,
    /// SUCCESS among SUCCESS, FAILED and TIMEOUT. Absent: there are none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_rate: Option<f64>,
    /// FAILED and TIMEOUT among the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_rate: Option<f64>,
    /// Runs with more than one attempt.
    pub retried: u64,
    /// From the start of the first attempt to the end of the run. Absent: none started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<TimesView>,
    /// From the instant to the start of the first attempt, of runs that a schedule started. Absent: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ms: Option<TimesView>,
}
