//! `campanile job ...`.

use super::{
    bulk,
    change::{self, Change, DryRun},
    edit, explain, export,
    failure::Failure,
    job_create,
    job_flags::{self, JobFlags},
    job_ref::JobRef,
    listing::{PageFlags, RUNS, zone_of},
    output::{self, Column, Format},
    planned,
    remote::Remote,
    repeat, run as runs, versions,
    watch::{self, UntilFlags},
};
use campanile_schema::{
    error::ErrorCode,
    operations::{JobList, ScheduleLoad, rows},
};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Create jobs from a file of one or several specs (JSON or YAML, - for stdin), or one from flags
    Create {
        /// The file
        #[arg(value_name = "FILE", conflicts_with = "name")]
        file: Option<PathBuf>,
        #[command(flatten)]
        flags: JobFlags,
        /// The same key with the same spec again answers with the job that it made, for 30 days
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
        /// Many jobs: a file with one spec (JSON) in each line, - for stdin. What one line gets does not depend on the others
        #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "name"])]
        bulk: Option<PathBuf>,
        #[command(flatten)]
        dry: DryRun,
    },
    /// A job with its whole definition
    Get {
        #[command(flatten)]
        job: JobRef,
        /// As a manifest that `campanile apply` takes
        #[arg(long, conflicts_with = "watch")]
        manifest: bool,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Jobs, in order of their id
    List {
        #[arg(long)]
        tenant: Option<String>,
        /// enabled, paused or deleted
        #[arg(long)]
        status: Option<String>,
        /// key=value,key2!=value2,key3
        #[arg(short, long)]
        labels: Option<String>,
        /// Part of the name
        #[arg(long)]
        text: Option<String>,
        #[command(flatten)]
        page: PageFlags,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Replace a job's definition by a file's
    Replace {
        #[command(flatten)]
        job: JobRef,
        /// One spec, or a job as `job get -o json|yaml` gave it (JSON or YAML, - for stdin)
        #[arg(long)]
        file: PathBuf,
        /// Refuse when the job is not of this version any more [default: that of the file, else the present one]
        #[arg(long)]
        version: Option<u64>,
        #[command(flatten)]
        dry: DryRun,
    },
    /// Edit a job in $VISUAL or $EDITOR, as a manifest; what is changed is shown
    Edit(edit::Args),
    /// Start nothing more; bodies that run go on
    Pause {
        #[command(flatten)]
        job: JobRef,
        #[command(flatten)]
        change: Change,
    },
    /// Fire again
    Resume {
        #[command(flatten)]
        job: JobRef,
        #[command(flatten)]
        change: Change,
    },
    /// Delete a job; its history stays
    Delete {
        #[command(flatten)]
        job: JobRef,
        #[command(flatten)]
        change: Change,
    },
    /// Run a job now
    Trigger {
        #[command(flatten)]
        job: JobRef,
        /// Your id of the run: the same one twice makes one run
        #[arg(long, value_name = "ID")]
        id: Option<String>,
        /// A JSON object, merged over the job's params
        #[arg(long, value_name = "JSON")]
        params: Option<String>,
        /// Address that is told by a POST when the run has ended
        #[arg(long, value_name = "URL", conflicts_with = "dry_run")]
        callback: Option<String>,
        /// File with the secret that the callback is signed with
        #[arg(long, value_name = "FILE", requires = "callback")]
        callback_secret: Option<String>,
        #[command(flatten)]
        change: Change,
        /// Wait for its end; exit code 8 when that is not SUCCESS
        #[arg(long, conflicts_with = "dry_run")]
        wait: bool,
    },
    /// A job's runs, newest first
    Runs {
        #[command(flatten)]
        job: JobRef,
        #[command(flatten)]
        page: PageFlags,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Definitions as they change, a line each (`run watch --job` shows runs)
    Watch {
        /// Only this job, by id or name; `name:123` for a name that looks like an id
        job: Option<String>,
        /// Of this tenant; also the tenant of the job's name
        #[arg(long)]
        tenant: Option<String>,
        /// Of jobs with these labels: key=value,key2!=value2,key3
        #[arg(short, long)]
        labels: Option<String>,
        #[command(flatten)]
        until: UntilFlags,
    },
    /// When a job fires next and why it does not; with --at what became of an instant
    Explain {
        #[command(flatten)]
        job: JobRef,
        /// This instant: 2026-02-01T02:00:00Z
        #[arg(long, value_name = "INSTANT")]
        at: Option<String>,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Outcomes, durations and lateness of a job's runs
    Statistics {
        #[command(flatten)]
        job: JobRef,
        /// How far back from now: 90s, 30m, 24h, 7d [default: 24h]
        #[arg(long, value_name = "TIME")]
        window: Option<String>,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// How many instants are due in each of the next minutes
    Load {
        #[arg(long)]
        tenant: Option<String>,
        /// How far ahead, at most 120 [default: 60]
        #[arg(long, value_name = "N")]
        minutes: Option<u32>,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// The history of a job's definition, newest first: who changed what and why
    Versions(versions::VersionsArgs),
    /// Give a job the definition of an earlier version, as a new version
    Rollback(versions::RollbackArgs),
    /// What became of every due instant
    Ledger {
        #[command(flatten)]
        job: JobRef,
        /// From this instant on, itself included [default: a day before --to]
        #[arg(long, value_name = "INSTANT")]
        from: Option<String>,
        /// Up to this instant, itself included [default: now]
        #[arg(long, value_name = "INSTANT")]
        to: Option<String>,
        #[arg(long)]
        page_size: Option<usize>,
    },
}

const JOBS: &[Column] = &[
    Column::id("ID", "jobId"),
    Column::text("TENANT", "tenantId").minor(2),
    Column::text("NAME", "name"),
    Column::state("STATUS", "status"),
    Column::text("TRIGGER", "trigger.type").minor(5),
    Column::time("NEXT FIRE", "nextFireAt").minor(1),
    Column::time("LAST RUN", "lastRunAt").minor(3),
    Column::state("STATE", "lastRunState").minor(1),
    Column::number("RUNS", "runCount").minor(4),
];
const LOAD: &[Column] = &[Column::time("MINUTE", "at"), Column::number("DUE", "count")];
const LEDGER: &[Column] = &[
    Column::time("LOGICAL TIME", "logicalTime"),
    Column::time("UNTIL", "until").minor(2),
    Column::number("COUNT", "count").minor(1),
    Column::text("OUTCOME", "outcome"),
    Column::text("REASON", "reason").minor(3),
    Column::id("RUN", "runId"),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Create { bulk: Some(file), dry: DryRun { dry_run: true }, .. } => bulk::plan(&file, remote),
        Command::Create { bulk: Some(file), idempotency_key, .. } => {
            bulk::create(&file, idempotency_key, remote, format)
        }
        Command::Create { file, flags, idempotency_key, bulk: None, dry } => {
            let specs = job_create::specs_of(file, flags)?;
            if dry.dry_run {
                return planned::create(remote, specs, format);
            }
            job_create::create(specs, idempotency_key, remote, format)
        }
        Command::Get { job, manifest: true, .. } => export::one(remote.get(&job.path(remote)?, &[])?, format),
        Command::Get { job, manifest: false, watch } => {
            let path = job.path(remote)?;
            repeat::one(watch, format, None, || remote.get(&path, &[]))
        }
        Command::List { tenant, status, labels, text, page, watch } => {
            let query = [("tenantId", tenant), ("status", status), ("labels", labels), ("text", text)];
            repeat::list(watch, format, JOBS, || page.read(remote, JobList::PATH, &query))
        }
        Command::Replace { job, file, version, dry } => {
            let path = job.path(remote)?;
            let [spec] = <[Value; 1]>::try_from(job_create::read_specs(&file)?)
                .map_err(|specs| Failure::usage(format!("{}: has {} specs, not one", file.display(), specs.len())))?;
            if dry.dry_run {
                return planned::replace(remote, remote.get(&path, &[])?, version, spec, format);
            }
            // The version at which the definition was read, when it says so: what was changed since is not to be overwritten.
            let version = match version.or_else(|| spec["version"].as_u64()) {
                Some(version) => json!(version),
                None => remote.get(&path, &[])?["version"].take(),
            };
            output::one(format, &remote.put(&path, &json!({"version": version, "spec": spec}))?)
        }
        Command::Edit(args) => edit::run(args, remote, format),
        Command::Pause { job, change } => changed(remote, format, &job.path(remote)?, "pause", &change),
        Command::Resume { job, change } => changed(remote, format, &job.path(remote)?, "resume", &change),
        Command::Delete { job, change } => {
            let path = job.path(remote)?;
            if change.dry.dry_run {
                return DryRun::told(&format!("delete {}", change::job(&remote.get(&path, &[])?)));
            }
            remote.delete(&path, &[("reason", change.reason)])?;
            match format {
                Format::Table => eprintln!("deleted"),
                Format::Json | Format::Yaml => output::one(format, &json!({"job": path_end(&path), "done": "delete"}))?,
            }
            Ok(())
        }
        Command::Trigger { job, id, params, callback, callback_secret, change, wait } => {
            let params = params.as_deref().map(job_flags::params).transpose()?;
            let path = job.path(remote)?;
            if change.dry.dry_run {
                return would_trigger(&remote.get(&path, &[])?);
            }
            let mut body = json!({"manualRunId": id, "params": params, "reason": change.reason});
            if let Some(url) = callback {
                let secret = callback_secret.map(|file| job_flags::secret("--callback-secret", &file)).transpose()?;
                body["callback"] = json!({"url": url, "secret": secret});
            }
            let made = remote.post(&format!("{path}/trigger"), &body)?;
            match made["runId"].as_u64().filter(|_| wait) {
                Some(run) => runs::wait(remote, format, run, None),
                None => output::one(format, &made),
            }
        }
        Command::Runs { job, page, watch } => {
            let job = job.path(remote)?;
            let (path, zone) = (format!("{job}/runs"), zone_of(remote, &job, format)?);
            repeat::list_of(watch, format, RUNS, zone.as_deref(), || page.read(remote, &path, &[]))
        }
        Command::Watch { job, tenant, labels, until } => {
            let job = job.map(|job| JobRef::new(job, tenant.clone()).id(remote)).transpose()?;
            let query = vec![("jobId", job), ("tenantId", tenant), ("labels", labels)];
            watch::show(remote, format, rows::JOB_WATCH.path(), query, &until)
        }
        Command::Explain { job, at, watch } => {
            let path = format!("{}/explain", job.path(remote)?);
            explain::show(watch, remote, format, &path, &[("at", at)])
        }
        Command::Statistics { job, window, watch } => {
            let path = format!("{}/statistics", job.path(remote)?);
            let query = [("window", window)];
            repeat::one(watch, format, None, || remote.get(&path, &query))
        }
        Command::Load { tenant, minutes, watch } => {
            let query = [("tenantId", tenant), ("minutes", minutes.map(|minutes| minutes.to_string()))];
            repeat::list(watch, format, LOAD, || remote.get(ScheduleLoad::PATH, &query))
        }
        Command::Versions(args) => versions::list(args, remote, format),
        Command::Rollback(args) => versions::rollback(args, remote, format),
        Command::Ledger { job, from, to, page_size } => {
            let query = [("from", from), ("to", to), ("pageSize", page_size.map(|size| size.to_string()))];
            let job = job.path(remote)?;
            let ledger = remote.get(&format!("{job}/ledger"), &query)?;
            output::list_of(format, &ledger, LEDGER, zone_of(remote, &job, format)?.as_deref())?;
            if format == Format::Table {
                let more = if ledger["truncated"] == true { "; there is more: go on with --from" } else { "" };
                eprintln!(
                    "{} to {}{more}",
                    ledger["from"].as_str().unwrap_or("?"),
                    ledger["to"].as_str().unwrap_or("?")
                );
            }
            Ok(())
        }
    }
}

fn changed(remote: &Remote, format: Format, path: &str, verb: &str, change: &Change) -> Result<(), Failure> {
    if change.dry.dry_run {
        return DryRun::told(&format!("{verb} {}", change::job(&remote.get(path, &[])?)));
    }
    let view = remote.post(&format!("{path}/{verb}"), &change.body())?;
    match format {
        Format::Table => output::list(format, &json!([view]), JOBS),
        Format::Json | Format::Yaml => output::one(format, &view),
    }
}

/// The job as it was asked for: the last part of its path.
fn path_end(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn would_trigger(view: &Value) -> Result<(), Failure> {
    match view["status"].as_str() {
        Some("PAUSED") => Err(change::refused(ErrorCode::JobPaused, "the job is paused; resume it first")),
        Some("DELETED") => Err(change::refused(ErrorCode::NotFound, "the job was deleted")),
        _ => DryRun::told(&format!("run {} now", change::job(view))),
    }
}
