//! Crontabs become jobs: user crontabs, `/etc/crontab`, `/etc/cron.d`.
//!
//! **What.** [`import`] reads files and directories and makes one job spec of each line, or refuses the line with its
//! place, the reason and what to do. [`plan`] compares that with the jobs that exist. [`render`] prints both for the
//! dry run. Applying the plan is the caller's.
//!
//! **Rules.** A job is named `cron/<file>/<hash8(user, command)>[-n]`: the schedule is not in the name, so an edited
//! time changes the job instead of making another. What cron does stays as it is: runs may overlap, missed times are
//! skipped, nothing is tried again, nothing is timed out, `PATH` is `/usr/bin:/bin` unless the file sets it. Whatever
//! differs from cron is told: as a hazard of the job, or as a note when it concerns all.
//!
//! **Never:** it writes no file, runs no command, expands no variable, and does not descend into directories.
//!
//! Files: `line` one line; `fields` its time fields by cron's rules; `stdin` the `%` rule; `settings` the variables; `sources` which files,
//! of which format; `reader` a file from top to bottom; `reading` a line with all that it is read by; `job` a line's job; `surprises` its
//! hazards; `machine` this machine's zone, users and self; `plan`; `render`.

mod fields;
mod job;
mod line;
pub mod machine;
mod plan;
mod reader;
mod reading;
mod render;
mod settings;
mod sources;
mod stdin;
mod surprises;

pub use fields::{CronFields, meaning as cron_fields};
pub use plan::merged;
pub use plan::{Change, Plan, plan};
pub use render::{render, value};

use campanile_schema::{job::JobSpec, limits, time::Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Label with the file a job comes from.
pub const LABEL_FILE: &str = "cron.file";
/// Label with the address that cron would mail the output to.
pub const LABEL_MAILTO: &str = "cron.mailto";
/// Label with the user as whom cron runs the line.
pub const LABEL_USER: &str = "cron.user";

/// Whether lines have a user column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// By the file's place; elsewhere by a look at its lines.
    #[default]
    Auto,
    /// No user column: what `crontab -l` prints.
    User,
    /// A user column: `/etc/crontab` and `/etc/cron.d`.
    System,
}

/// What the caller decides.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    pub tenant: String,
    pub pool: String,
    /// Lines of other users become jobs all the same; they run as the executor's user.
    pub as_self: bool,
    pub now_ms: i64,
    /// Zone of lines without `CRON_TZ`, see [`machine::zone`].
    pub machine_zone: String,
    /// Owner of crontabs whose place names no user, see [`machine::user`].
    pub self_user: String,
    pub format: Format,
}

/// All that was read.
#[derive(Clone, Debug, Default)]
pub struct Import {
    pub jobs: Vec<ImportedJob>,
    pub refused: Vec<Refused>,
    /// What concerns whole files, or all jobs.
    pub notes: Vec<String>,
    /// Files read, and directories whose files were all looked at: whose jobs can be told to be gone.
    pub covered: BTreeSet<String>,
}

/// A line as a job.
#[derive(Clone, Debug)]
pub struct ImportedJob {
    pub spec: JobSpec,
    pub file: String,
    /// From 1.
    pub line: u32,
    /// The next three fires, without the random delay; none for `@reboot`.
    pub next: Vec<Timestamp>,
    pub hazards: Vec<String>,
}

/// A line that makes no job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub file: String,
    /// From 1; 0 = the file as a whole.
    pub line: u32,
    pub text: String,
    pub reason: String,
    pub advice: String,
}

/// Why nothing at all was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: String, error: std::io::Error },
    #[error("{path} is neither a file nor a directory")]
    NotAFile { path: String },
    #[error("the machine's zone: {0}")]
    Zone(String),
    #[error("{what}: {found} were found, {limit} are allowed; import fewer paths at a time")]
    TooMany { what: &'static str, found: usize, limit: usize },
}

/// Reads files and directories.
pub fn import(paths: &[PathBuf], options: &ImportOptions) -> Result<Import, ImportError> {
    import_while(paths, options, &|| true)
}

/// The same, for as long as `go_on` says so, which is asked before each line. What was not read is told among the refused.
pub fn import_while(
    paths: &[PathBuf],
    options: &ImportOptions,
    go_on: &dyn Fn() -> bool,
) -> Result<Import, ImportError> {
    if let Err(e) = jiff::tz::TimeZone::get(&options.machine_zone) {
        return Err(ImportError::Zone(e.to_string()));
    }
    let mut import = Import::default();
    let mut files = Vec::new();
    for path in paths {
        sources::gather(path, options.format, &mut files, &mut import)?;
    }
    // /etc and /etc/crontab together must not make twins of every line.
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(sources::shown(&file.path)));
    if files.len() > limits::CRONTAB_FILES {
        return Err(ImportError::TooMany { what: "crontab files", found: files.len(), limit: limits::CRONTAB_FILES });
    }
    let users = machine::users();
    for file in files {
        let shown = sources::shown(&file.path);
        match sources::read(&file.path) {
            Ok(bytes) => {
                reader::read_file(&file, &shown, &bytes, options, &users, go_on, &mut import);
                import.covered.insert(shown);
            }
            Err(error) if file.explicit => {
                return Err(ImportError::Unreadable { path: shown, error });
            }
            Err(error) => import.refused.push(Refused {
                file: shown,
                line: 0,
                text: String::new(),
                reason: format!("the file cannot be read: {error}"),
                advice: "run the import as a user who may read it".to_owned(),
            }),
        }
        if import.jobs.len() > limits::CRONTAB_JOBS {
            let found = import.jobs.len();
            return Err(ImportError::TooMany { what: "crontab lines", found, limit: limits::CRONTAB_JOBS });
        }
    }
    number_twins(&mut import.jobs);
    if !import.jobs.is_empty() {
        import.notes.extend(job::KEPT_FROM_CRON.map(str::to_owned));
    }
    Ok(import)
}

/// The same command of the same user on several lines: the second is `-2`, the third `-3`, in the order of the lines.
fn number_twins(jobs: &mut [ImportedJob]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for job in jobs {
        let count = seen.entry(job.spec.name.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            job.spec.name = format!("{}-{count}", job.spec.name);
        }
    }
}

/// The last part of a path, as text.
fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
