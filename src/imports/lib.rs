//! What other schedulers run, as jobs of Campanile: Kubernetes CronJobs, systemd timers, Quartz and XXL-JOB.
//!
//! **What.** [`import`] reads files. It returns jobs, and everything that could not become a job, each with its file and line. [`render`] and
//! [`value()`] report both to people and to programs, and [`manifests`] writes the jobs as `campanile apply` reads them.
//!
//! **Rules.** A schedule keeps its meaning: the job is due at the instants of the other system, also where the clock changes, as far as a
//! trigger can express it. The report names each difference with its job. An object is refused when the job would run something else, or
//! when its schedule cannot be expressed; the import goes on with the other objects. A job that the node would refuse is refused here, so
//! every manifest that is written can be applied. The same input gives the same names, so a second import changes only what changed.
//!
//! **Input is hostile.** Files, values, rows, nesting and the number of jobs have limits (`limits::imports`). SQL is read as a stream, and
//! only rows of the scheduler's own tables are kept. Control characters of names never reach a terminal.
//!
//! **Never:** the crate calls no node, runs no command, expands no variable of the machine, and writes no file.
//!
//! Files: `source` finds files and reads their text; `draft` collects jobs and checks all of them; `text` makes names and texts safe;
//! `report` and `manifests` write the results; `kubernetes`, `systemd`, `quartz` and `xxl_job` read one system each; `sql` reads dumps as
//! rows.
#![forbid(unsafe_code)]

mod draft;
mod kubernetes;
mod manifests;
mod quartz;
mod report;
mod source;
mod sql;
mod systemd;
#[cfg(test)]
mod testing;
mod text;
mod xxl_job;

pub use manifests::{Written, manifests, value as manifest};
pub use report::{render, value};

use campanile_schema::{job::JobSpec, limits, time::Timestamp};
use std::path::PathBuf;

/// Where jobs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// CronJobs as YAML or JSON.
    Kubernetes,
    /// Timers with their services.
    Systemd,
    /// XML of `job_scheduling_data`, or an SQL dump of the `QRTZ_` tables.
    Quartz,
    /// An SQL dump of `xxl_job_info`.
    XxlJob,
}

impl System {
    /// The name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Systemd => "systemd",
            Self::Quartz => "quartz",
            Self::XxlJob => "xxl-job",
        }
    }
}

/// What the caller decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tenant of all jobs. None: for CronJobs their namespace, else `default`.
    pub tenant: Option<String>,
    /// Pool of all jobs. None: for XXL-JOB the name of the job's application, else `default`.
    pub pool: Option<String>,
    /// Zone of schedules that name none. None: UTC for CronJobs, else the zone of this machine.
    pub zone: Option<String>,
    pub machine_zone: String,
    /// systemd: services of other users become jobs too; they run as the executor's user.
    pub as_self: bool,
    /// systemd: who imports.
    pub self_user: String,
    /// Quartz: how the names of its tables begin.
    pub table_prefix: String,
    pub now_ms: i64,
}

/// All that was read.
#[derive(Clone, Debug, Default)]
pub struct Import {
    pub jobs: Vec<ImportedJob>,
    /// At most [`limits::IMPORT_REFUSED`].
    pub refused: Vec<Refused>,
    /// Refused objects that are not in the list.
    pub more_refused: usize,
    /// What concerns whole files, or all jobs.
    pub notes: Vec<String>,
}

impl Import {
    /// Objects that did not become jobs.
    pub fn refusals(&self) -> usize {
        self.refused.len() + self.more_refused
    }
}

/// Where something stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: String,
    /// From 1; 0: the file as a whole.
    pub line: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// An object of the other system as a job.
#[derive(Clone, Debug)]
pub struct ImportedJob {
    pub spec: JobSpec,
    /// Whether it is paused; None: the other system does not say.
    pub suspend: Option<bool>,
    pub place: Place,
    /// What it was there, such as `CronJob shop/report`.
    pub origin: String,
    /// The next three fires; none of a job without a schedule.
    pub next: Vec<Timestamp>,
    /// What differs from the other system, and what may surprise: one sentence each.
    pub changed: Vec<String>,
}

/// An object that makes no job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub place: Place,
    /// What it is there; empty: the file as a whole.
    pub origin: String,
    pub reason: String,
    /// What to do; empty: the reason says it.
    pub advice: String,
}

/// Why nothing at all was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: String, error: std::io::Error },
    #[error("{path}: {reason}")]
    Refused { path: String, reason: String },
    #[error("{what}: {found} were found, {limit} are allowed; import fewer files at a time")]
    TooMany { what: &'static str, found: usize, limit: usize },
    #[error("the zone: {0}")]
    Zone(String),
}

/// Reads files and directories.
pub fn import(system: System, paths: &[PathBuf], options: &Options) -> Result<Import, ImportError> {
    let zone = options.zone.as_deref().unwrap_or(&options.machine_zone);
    campanile_core::cron::find_zone(zone).map_err(|error| ImportError::Zone(error.to_string()))?;
    let mut drafts = draft::Drafts::new(options);
    match system {
        System::Kubernetes => kubernetes::read(paths, options, &mut drafts)?,
        System::Systemd => systemd::read(paths, options, &mut drafts)?,
        System::Quartz => quartz::read(paths, options, &mut drafts)?,
        System::XxlJob => xxl_job::read(paths, options, &mut drafts)?,
    }
    let import = drafts.finish();
    if import.jobs.len() > limits::IMPORT_JOBS {
        return Err(ImportError::TooMany { what: "jobs", found: import.jobs.len(), limit: limits::IMPORT_JOBS });
    }
    Ok(import)
}
