//! What a run found: `report.json`, and the same as a page for people, `report.html`.

pub mod html;
pub mod machine;
pub mod summary;
mod svg;
pub mod verdict;

use crate::{load::latency::Percentiles, scenario::Scenario};
use machine::Machine;
use serde::Serialize;
use std::{collections::BTreeMap, fs, io, path::Path};
use verdict::{Figure, Judged};

/// Lateness of one group, one phase, or all of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    pub name: String,
    /// Due instants, count.
    pub due: u64,
    /// From the due instant to the executor's receipt; its count is what was received.
    pub start: Percentiles,
    /// To the end of the body.
    pub end: Percentiles,
    /// To the node's word that the result is durable.
    pub durable: Percentiles,
}

impl Figures {
    /// Every due instant was received.
    pub fn all_started(&self) -> bool {
        self.start.count >= self.due
    }
}

/// Calls of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallFigures {
    pub name: String,
    /// Calls that were due, count.
    pub due: u64,
    pub answered: u64,
    /// Calls without a good answer, those not sent for want of room included; by code.
    pub failed: BTreeMap<String, u64>,
    /// From the due instant of the call to its answer: a call that was sent late is late.
    pub latency: Percentiles,
}

impl CallFigures {
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }
}

/// What the processes used in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Use {
    /// Processors in use.
    pub cores: f64,
    pub rss_mb: f64,
    /// Bytes that reached the disk's queue.
    pub written_mb: f64,
}

/// One second of the run. A figure that could not be had is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Second {
    /// From the start of the run.
    pub second: i64,
    /// Instants due in it.
    pub due: u64,
    /// First attempts that executors received in it.
    pub received: u64,
    /// All attempts begun in it, repeated ones too.
    pub attempts: u64,
    /// First attempts whose results became durable in it.
    pub durable: u64,
    /// Lateness of what was *due* in it, milliseconds.
    pub start_p50_ms: Option<f64>,
    pub start_p99_ms: Option<f64>,
    pub start_p999_ms: Option<f64>,
    pub start_max_ms: Option<f64>,
    pub end_p99_ms: Option<f64>,
    pub durable_p99_ms: Option<f64>,
    pub node: Option<Use>,
    pub node_cpu_us_per_trigger: Option<f64>,
    pub executors: Use,
    /// Executor processes alive.
    pub executor_count: usize,
    pub harness: Use,
    /// Processors that everything else on the machine used, the kernel's own threads included.
    pub others_cores: Option<f64>,
    pub disk_mb: Option<f64>,
    pub open_runs: Option<f64>,
    /// Runs with a permit that wait for an executor.
    pub waiting: Option<f64>,
    pub retrying: Option<f64>,
    /// Durable events that the history does not show yet.
    pub lag_events: Option<f64>,
    /// How long the oldest of them had waited.
    pub lag_ms: Option<f64>,
    /// Journal batches, one fsync each.
    pub syncs: Option<f64>,
    /// The node answered the probe.
    pub up: Option<bool>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Happened {
    /// From the start of the run; negative before.
    pub second: i64,
    pub what: String,
}

/// A phase in the plots.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stretch {
    pub name: String,
    pub from_s: u64,
    pub to_s: u64,
}

/// A node that was ended and started again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restarted {
    /// It began with that.
    pub phase: String,
    /// By which the node was ended.
    pub signal: String,
    /// From the start of the new process to the first body that an executor received; null: there was none.
    pub first_trigger_s: Option<f64>,
    /// At the end of the phase.
    pub rss_mb: Option<f64>,
}

/// Figures of the whole run that are not lateness.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    pub jobs: u64,
    pub create_s: f64,
    pub created_per_s: f64,
    /// First attempts received each second, from the first instant to the last receipt.
    pub received_per_s: f64,
    pub attempts: u64,
    pub outcomes: BTreeMap<String, u64>,
    /// From the last instant until no run was open; null: not reached.
    pub drain_s: Option<f64>,
    pub runs_left: Option<u64>,
    pub max_open_runs: Option<u64>,
    pub max_lag_events: Option<f64>,
    /// Over the seconds: how long the oldest durable event had waited that the history did not show.
    pub lag_p99_ms: Option<f64>,
    /// Processors that others used on this machine, on average: with more than a little of it the run was disturbed.
    pub others_cores: Option<f64>,
    pub availability_percent: Option<f64>,
    /// From the first instant to the end of the drain, for each attempt begun.
    pub node_cpu_us_per_trigger: Option<f64>,
    pub executors_cpu_us_per_trigger: Option<f64>,
    pub written_bytes_per_trigger: Option<f64>,
    pub disk_bytes_per_trigger: Option<f64>,
    pub syncs_per_s: Option<f64>,
    /// All jobs created, none due.
    pub rss_idle_mb: Option<f64>,
    pub rss_peak_mb: Option<f64>,
    pub rss_slope_mb_per_min: Option<f64>,
    pub kib_per_open_run: Option<f64>,
    /// Highest rate of the ramp that was followed.
    pub ceiling: Option<f64>,
    pub restarts: Vec<Restarted>,
}

impl Totals {
    /// The longest; None: one of them was not measured, or there was none.
    pub fn restart_s(&self) -> Option<f64> {
        most(self.restarts.iter().map(|restarted| restarted.first_trigger_s))
    }

    /// The highest of the memory afterwards.
    pub fn restart_rss_mb(&self) -> Option<f64> {
        most(self.restarts.iter().map(|restarted| restarted.rss_mb))
    }
}

/// The highest of all; None where one is not known.
fn most(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// Everything.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub scenario: Scenario,
    pub short: bool,
    pub file: String,
    /// Milliseconds since 1970 UTC of the first phase's start.
    pub start_ms: i64,
    pub machine: Machine,
    /// Where the system was: started by the harness, or an address.
    pub system: String,
    /// Why it ended before its time.
    pub stopped: Option<String>,
    pub green: bool,
    pub verdict: Vec<Judged>,
    /// What is aimed at.
    pub targets: Vec<Figure>,
    /// The history checker's word, when it was asked.
    pub checker: Option<String>,
    pub totals: Totals,
    pub all: Figures,
    pub groups: Vec<Figures>,
    pub phases: Vec<Figures>,
    /// Each group in each phase, where there is more than one of both.
    pub groups_by_phase: Vec<Figures>,
    pub calls: Vec<CallFigures>,
    pub stretches: Vec<Stretch>,
    pub happened: Vec<Happened>,
    pub seconds: Vec<Second>,
}

impl Report {
    /// Writes both forms into the directory; each also when the other cannot be.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        let json = fs::write(dir.join("report.json"), serde_json::to_vec_pretty(self)?);
        json.and(fs::write(dir.join("report.html"), html::page(self)))
    }
}

/// Name of a group within a phase.
pub fn in_phase(group: &str, phase: &str) -> String {
    format!("{group} in {phase}")
}
