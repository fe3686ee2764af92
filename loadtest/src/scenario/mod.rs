//! A workload file: what load is offered to which executors in which phases, and what is expected of the system. The TOML files
//! of `loadtest/workloads` are written in this form; `docs/loadtest.md` explains it.

pub mod builtin;
pub mod jobs;
pub mod read;
mod rules;
pub mod words;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole file, after `[short]` was laid over it when that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Letters, digits and '-'; also the directory of its run.
    pub name: String,
    /// One or two sentences for people.
    pub about: String,
    /// Seed of everything that is drawn.
    #[serde(default = "one")]
    pub seed: u64,
    /// Length of the run when there are no phases, seconds.
    #[serde(default)]
    pub seconds: u64,
    /// Between the last create and the first instant, seconds.
    #[serde(default = "default_settle")]
    pub settle_s: u64,
    /// How long runs may take to end after the last instant, seconds.
    #[serde(default = "default_drain")]
    pub drain_s: u64,
    /// Seconds at the start of the first phase that `rss_slope_mb_per_min` leaves out.
    #[serde(default)]
    pub warmup_s: u64,
    /// `--repeat` makes so many runs at most, as those of hours need no median; 0 = as many as asked.
    #[serde(default)]
    pub repeat_at_most: u32,
    /// The history is written down and judged afterwards, when `--check` asks for it.
    #[serde(default)]
    pub checkable: bool,
    /// The API through which the jobs are created.
    #[serde(default)]
    pub create: Api,
    #[serde(default)]
    pub executors: Executors,
    #[serde(default, rename = "tenant")]
    pub tenants: Vec<Tenant>,
    #[serde(default, rename = "phase")]
    pub phases: Vec<Phase>,
    #[serde(default, rename = "load")]
    pub loads: Vec<Load>,
    #[serde(default, rename = "call")]
    pub calls: Vec<Call>,
    #[serde(default)]
    pub ramp: Option<Ramp>,
    #[serde(default)]
    pub expect: Expect,
    /// What is aimed at: told beside what was reached, and fatal only with `--strict`. `[short]` has none unless it says so.
    #[serde(default)]
    pub target: Expect,
}

/// A way to the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    #[default]
    Rpc,
    Http,
}

/// Executor processes that the harness starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Executors {
    /// Processes; a phase may name another number.
    pub count: u32,
    /// Bodies at once, per process.
    pub slots: u32,
    /// What happens when one ends by itself in the middle of the run.
    pub on_death: OnDeath,
}

impl Default for Executors {
    fn default() -> Self {
        Self { count: 2, slots: 4_096, on_death: OnDeath::GoOn }
    }
}

/// What the death of an executor means for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDeath {
    /// It is written down, and the run goes on.
    GoOn,
    /// It is written down, and the run ends at once, red.
    Stop,
}

/// A tenant with its limits; 0 = none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    pub name: String,
    #[serde(default)]
    pub max_concurrent_runs: u32,
    /// Runs that start per second.
    #[serde(default)]
    pub max_triggers_per_sec: f64,
    /// Runs that wait; over it instants are skipped as QUEUE_FULL.
    #[serde(default)]
    pub max_queued_runs: u32,
}

/// A stretch of the run. Phases follow one another in the order of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    pub name: String,
    pub seconds: u64,
    /// Executor processes from its start on; none = as before.
    #[serde(default)]
    pub executors: Option<u32>,
    /// kill -9 of so many executors at its start.
    #[serde(default)]
    pub kill_executors: u32,
    /// At its start the node is ended, and started again on its directory.
    #[serde(default)]
    pub restart: Option<Restart>,
}

/// How a node is ended before it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// SIGTERM, as an operator does.
    Term,
    /// kill -9.
    Kill,
}

/// How jobs become due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadKind {
    /// `rate` instants a second of `jobs` FIXED_RATE (with arrivals "cron": CRON) jobs.
    Rate,
    /// Like `rate`, with the rates of `[ramp]`, one after the other.
    Ramp,
    /// `jobs` ONCE jobs due together, `at_s` after the start of their phase.
    Herd,
    /// `jobs` jobs that are not due within the run.
    Idle,
    /// `rate` triggers by hand a second on `jobs` MANUAL jobs, open loop.
    Trigger,
}

/// Where the instants of a load lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Every millisecond alike.
    #[default]
    Even,
    /// All on whole seconds, as cron jobs are.
    Aligned,
    /// Each job's place in the period is drawn: the arrivals of a Poisson process of that many points.
    Poisson,
    /// CRON jobs instead of FIXED_RATE, each once a minute on a whole second: up to 2,160 expressions (36 for
    /// each second of the minute) in twenty zones.
    Cron,
}

/// A group of jobs that are measured together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Names the group in the report and begins the names of its jobs.
    pub name: String,
    pub kind: LoadKind,
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Due instants per second, of all its jobs.
    #[serde(default)]
    pub rate: f64,
    /// 0 = as many as the rate, so that each is due once a second. With arrivals "cron" as many as the rate needs.
    #[serde(default)]
    pub jobs: u64,
    /// HERD: seconds from the start of its phase.
    #[serde(default)]
    pub at_s: u64,
    /// HERD: all are due within so many milliseconds, evenly.
    #[serde(default)]
    pub within_ms: u64,
    /// The only phases in which it is due; none = all.
    #[serde(default)]
    pub phases: Vec<String>,
    /// Tenant of its jobs; with `tenants` above 1 the jobs are spread over NAME-1, NAME-2, ...
    #[serde(default = "default_tenant")]
    pub tenant: String,
    #[serde(default = "one")]
    pub tenants: u64,
    /// How long a body takes, milliseconds.
    #[serde(default)]
    pub body_ms: u64,
    /// Attempts that fail, of 100.
    #[serde(default)]
    pub fail_percent: u32,
    #[serde(default = "three")]
    pub max_attempts: u32,
    /// Between two attempts, seconds.
    #[serde(default = "half")]
    pub retry_delay_s: f64,
    /// 0 to 1000, higher first.
    #[serde(default = "hundred")]
    pub priority: u16,
}

impl Default for Load {
    /// What the file need not name; the name and the kind must be given.
    fn default() -> Self {
        Self {
            name: String::new(),
            kind: LoadKind::Rate,
            arrivals: Arrivals::Even,
            rate: 0.0,
            jobs: 0,
            at_s: 0,
            within_ms: 0,
            phases: Vec::new(),
            tenant: default_tenant(),
            tenants: 1,
            body_ms: 0,
            fail_percent: 0,
            max_attempts: three(),
            retry_delay_s: half(),
            priority: hundred(),
        }
    }
}

/// Calls of the API beside the load, open loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub name: String,
    pub verb: CallVerb,
    /// Calls per second, at even distances.
    pub rate: f64,
    /// The only phases in which it is made; none = all.
    #[serde(default)]
    pub phases: Vec<String>,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallVerb {
    /// Creates a job that is not due within the run.
    Create,
    /// Reads a job of the loads.
    Get,
    /// Lists the first page of jobs.
    List,
    /// The newest 20 runs of a job of the loads.
    Runs,
}

/// Rising rates, each for some time, until the system does not follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// Due instants per second, rising.
    pub rates: Vec<f64>,
    /// Seconds at each.
    pub step_s: u64,
    /// The run ends after the first step whose p99 lateness of starts is above this, milliseconds.
    pub stop_p99_ms: f64,
    /// The same for durable ends.
    #[serde(default = "second_ms")]
    pub stop_durable_p99_ms: f64,
    /// The same for the history's lag.
    #[serde(default = "second_ms")]
    pub stop_lag_p99_ms: f64,
}

/// Limits of one group, phase or the whole run. What is not named is not judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Every due instant was received by an executor.
    pub all_started: Option<bool>,
    /// Lateness from the due instant to the executor's receipt, milliseconds.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
    pub max_ms: Option<f64>,
    /// From the due instant until the node called the result durable, milliseconds.
    pub durable_p99_ms: Option<f64>,
}

/// Limits of one kind of call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallLimits {
    /// From the due instant of the call to its answer, milliseconds.
    pub p99_ms: Option<f64>,
    /// Calls without a good answer, count.
    pub failed: Option<u64>,
}

/// Two phases of one group side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// For `[short]`.
    pub name: String,
    pub group: String,
    pub phase: String,
    /// The phase that is the measure.
    pub with: String,
    /// p99 of `phase` is at most so many times the one of `with`.
    pub p99_ratio: f64,
    /// It holds too when p99 of `phase` is at most this, milliseconds.
    #[serde(default)]
    pub or_p99_ms: f64,
}

/// What is expected: the verdict of the run. What is not named is not judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    pub all_started: Option<bool>,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
    pub max_ms: Option<f64>,
    pub durable_p99_ms: Option<f64>,
    /// Runs still open after the drain, count.
    pub runs_left: Option<u64>,
    /// From the last instant until no run was open, seconds.
    pub drain_s: Option<f64>,
    /// Node CPU for each started body, microseconds.
    pub cpu_us_per_trigger: Option<f64>,
    /// Highest memory of the node, MB.
    pub rss_mb: Option<f64>,
    /// Memory of the node with all jobs created and none due, MB.
    pub rss_idle_mb: Option<f64>,
    /// Growth of the node's memory after `warmup_s`, MB a minute.
    pub rss_slope_mb_per_min: Option<f64>,
    /// Memory of the node for each open run at the highest number of them, KiB.
    pub kib_per_open_run: Option<f64>,
    /// At least so many runs were open at once.
    pub open_runs_at_least: Option<u64>,
    /// Files of the node for each started body, bytes.
    pub disk_bytes_per_trigger: Option<f64>,
    /// Highest number of durable events that the history did not show yet.
    pub lag_events: Option<f64>,
    /// p99 over the seconds of how long the oldest of them had waited, milliseconds.
    pub lag_p99_ms: Option<f64>,
    /// Jobs were created at least at this rate, per second.
    pub created_per_s_at_least: Option<f64>,
    /// From the start of a restarted node's process to the first body that an executor received, seconds; the longest of all restarts.
    pub restart_s: Option<f64>,
    /// Memory of the node at the end of the phase that began with its restart, MB; the highest of all restarts.
    pub restart_rss_mb: Option<f64>,
    /// Seconds in which the node answered the probe, percent.
    pub availability_percent: Option<f64>,
    /// The highest rate of `[ramp]` that was followed is at least this, per second.
    pub ceiling_at_least: Option<f64>,
    #[serde(rename = "group")]
    pub groups: BTreeMap<String, Limits>,
    #[serde(rename = "phase")]
    pub phases: BTreeMap<String, Limits>,
    #[serde(rename = "call")]
    pub calls: BTreeMap<String, CallLimits>,
    pub compare: Vec<Compare>,
}

impl Scenario {
    /// The phases, also where the file names none: one for the whole run, or one for each step of the ramp.
    pub fn stretches(&self) -> Vec<Phase> {
        let phase = |name: String, seconds| Phase { name, seconds, executors: None, kill_executors: 0, restart: None };
        match &self.ramp {
            Some(ramp) => ramp.rates.iter().map(|rate| phase(format!("{rate}/s"), ramp.step_s)).collect(),
            None if self.phases.is_empty() => vec![phase("all".to_owned(), self.seconds)],
            None => self.phases.clone(),
        }
    }

    /// Length of the run, seconds.
    pub fn length_s(&self) -> u64 {
        self.stretches().iter().map(|phase| phase.seconds).sum()
    }
}

fn one() -> u64 {
    1
}
fn three() -> u32 {
    3
}
fn half() -> f64 {
    0.5
}
fn second_ms() -> f64 {
    1_000.0
}
fn hundred() -> u16 {
    100
}
fn default_settle() -> u64 {
    3
}
fn default_drain() -> u64 {
    60
}
fn default_tenant() -> String {
    "default".to_owned()
}
