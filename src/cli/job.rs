//! `campanile job ...`.

use super::{
    bulk, edit, export,
    failure::Failure,
    job_flags::{self, JobFlags},
    job_ref::JobRef,
    output::{self, Column, Format},
    remote::Remote,
    run as runs,
    watch::{self, UntilFlags},
};
use serde_json::{Value, json};
use std::{io::Read, path::PathBuf};

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
    },
    /// A job with its whole definition
    Get {
        #[command(flatten)]
        job: JobRef,
        /// As a manifest that `campanile apply` takes
        #[arg(long)]
        manifest: bool,
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
    },
    /// Replace a job's definition by a file's
    Replace {
        #[command(flatten)]
        job: JobRef,
        /// One spec (JSON or YAML, - for stdin)
        #[arg(long)]
        file: PathBuf,
        /// Refuse when the job is not of this version any more [default: the present one]
        #[arg(long)]
        version: Option<u64>,
    },
    /// Edit a job in $VISUAL or $EDITOR, as a manifest; what is changed is shown
    Edit(edit::Args),
    /// Stop firing; runs under way go on
    Pause {
        #[command(flatten)]
        job: JobRef,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Fire again
    Resume {
        #[command(flatten)]
        job: JobRef,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Delete a job; its history stays
    Delete {
        #[command(flatten)]
        job: JobRef,
        #[arg(long)]
        reason: Option<String>,
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
        #[arg(long)]
        reason: Option<String>,
        /// Wait for its end; exit code 8 when that is not SUCCESS
        #[arg(long)]
        wait: bool,
    },
    /// A job's runs, newest first
    Runs {
        #[command(flatten)]
        job: JobRef,
        #[command(flatten)]
        page: PageFlags,
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
    /// What became of every due instant
    Ledger {
        #[command(flatten)]
        job: JobRef,
        /// After this instant [default: a day before --to]
        #[arg(long, value_name = "INSTANT")]
        from: Option<String>,
        /// Up to this instant [default: now]
        #[arg(long, value_name = "INSTANT")]
        to: Option<String>,
        #[arg(long)]
        page_size: Option<usize>,
    },
}

/// Which part of a list.
#[derive(clap::Args)]
pub(super) struct PageFlags {
    /// Items of a page, at most 1000
    #[arg(long, value_name = "N")]
    page_size: Option<usize>,
    /// Go on after the page before
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
    /// All pages
    #[arg(long, conflicts_with_all = ["page_size", "page_token"])]
    all: bool,
}

impl PageFlags {
    /// The page, or everything.
    pub fn read(self, remote: &Remote, path: &str, query: &[(&str, Option<String>)]) -> Result<Value, Failure> {
        if self.all {
            return Ok(json!({"items": remote.all(path, query)?}));
        }
        let mut query = query.to_vec();
        query.push(("pageSize", self.page_size.map(|size| size.to_string())));
        query.push(("pageToken", self.page_token));
        remote.get(path, &query)
    }
}

const JOBS: &[Column] = &[
    ("ID", "jobId"),
    ("TENANT", "tenantId"),
    ("NAME", "name"),
    ("STATUS", "status"),
    ("TRIGGER", "trigger.type"),
    ("NEXT FIRE", "nextFireAt"),
    ("LAST RUN", "lastRunAt"),
    ("STATE", "lastRunState"),
    ("RUNS", "runCount"),
];
const LEDGER: &[Column] = &[
    ("LOGICAL TIME", "logicalTime"),
    ("UNTIL", "until"),
    ("COUNT", "count"),
    ("OUTCOME", "outcome"),
    ("REASON", "reason"),
    ("RUN", "runId"),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Create { bulk: Some(file), idempotency_key, .. } => {
            bulk::create(&file, idempotency_key, remote, format)
        }
        Command::Create { file, flags, idempotency_key, bulk: None } => {
            create(file, flags, idempotency_key, remote, format)
        }
        Command::Get { job, manifest } => {
            let view = remote.get(&job.path(remote)?, &[])?;
            if manifest { export::one(view, format) } else { output::one(format, &view) }
        }
        Command::List { tenant, status, labels, text, page } => {
            let query = [("tenantId", tenant), ("status", status), ("labels", labels), ("text", text)];
            output::list(format, &page.read(remote, "/api/v1/jobs", &query)?, JOBS)
        }
        Command::Replace { job, file, version } => {
            let path = job.path(remote)?;
            let version = match version {
                Some(version) => json!(version),
                None => remote.get(&path, &[])?["version"].take(),
            };
            let [spec] = <[Value; 1]>::try_from(read_specs(&file)?)
                .map_err(|specs| Failure::usage(format!("{}: has {} specs, not one", file.display(), specs.len())))?;
            output::one(format, &remote.put(&path, &json!({"version": version, "spec": spec}))?)
        }
        Command::Edit(args) => edit::run(args, remote, format),
        Command::Pause { job, reason } => changed(remote, format, &format!("{}/pause", job.path(remote)?), reason),
        Command::Resume { job, reason } => changed(remote, format, &format!("{}/resume", job.path(remote)?), reason),
        Command::Delete { job, reason } => {
            remote.delete(&job.path(remote)?, &[("reason", reason)])?;
            eprintln!("deleted");
            Ok(())
        }
        Command::Trigger { job, id, params, reason, wait } => {
            let params = params.as_deref().map(job_flags::params).transpose()?;
            let body = json!({"manualRunId": id, "params": params, "reason": reason});
            let made = remote.post(&format!("{}/trigger", job.path(remote)?), &body)?;
            match made["runId"].as_u64().filter(|_| wait) {
                Some(run) => runs::wait(remote, format, run, None),
                None => output::one(format, &made),
            }
        }
        Command::Runs { job, page } => {
            let path = format!("{}/runs", job.path(remote)?);
            output::list(format, &page.read(remote, &path, &[])?, runs::RUNS)
        }
        Command::Watch { job, tenant, labels, until } => {
            let job = job.map(|job| JobRef::new(job, tenant.clone()).id(remote)).transpose()?;
            let query = vec![("jobId", job), ("tenantId", tenant), ("labels", labels)];
            watch::show(remote, format, "/api/v1/jobs/watch", query, &until)
        }
        Command::Ledger { job, from, to, page_size } => {
            let query = [("from", from), ("to", to), ("pageSize", page_size.map(|size| size.to_string()))];
            let ledger = remote.get(&format!("{}/ledger", job.path(remote)?), &query)?;
            output::list(format, &ledger, LEDGER)?;
            if format == Format::Table {
                let more = if ledger["truncated"] == true { "; there is more: go on with --from" } else { "" };
                eprintln!(
                    "({}, {}]{more}",
                    ledger["from"].as_str().unwrap_or("?"),
                    ledger["to"].as_str().unwrap_or("?")
                );
            }
            Ok(())
        }
    }
}

fn changed(remote: &Remote, format: Format, path: &str, reason: Option<String>) -> Result<(), Failure> {
    let view = remote.post(path, &json!({"reason": reason}))?;
    match format {
        Format::Table => output::list(format, &json!([view]), JOBS),
        Format::Json | Format::Yaml => output::one(format, &view),
    }
}

fn create(
    file: Option<PathBuf>,
    flags: JobFlags,
    key: Option<String>,
    remote: &Remote,
    format: Format,
) -> Result<(), Failure> {
    let specs = match file {
        Some(file) => read_specs(&file)?,
        None if flags.given() => vec![flags.spec()?],
        None => return Err(Failure::usage("give a FILE (- for stdin), or --name with the other flags")),
    };
    if specs.len() > 1 && key.is_some() {
        return Err(Failure::usage("--idempotency-key is for one job"));
    }
    let several = specs.len() > 1;
    let mut made = Vec::new();
    for spec in specs {
        let mut created = remote.post_once("/api/v1/jobs", &spec, key.as_deref()).map_err(|failure| {
            let name = spec["name"].as_str().map(|name| format!("{name}: ")).unwrap_or_default();
            let before = if several { format!(" ({} jobs before it were created)", made.len()) } else { String::new() };
            Failure { message: format!("{name}{}{before}", failure.message), ..failure }
        })?;
        created["name"] = spec["name"].clone();
        made.push(created);
    }
    match (made.as_slice(), format) {
        ([one], Format::Json | Format::Yaml) => output::one(format, one),
        _ => output::list(
            format,
            &Value::Array(made),
            &[("ID", "jobId"), ("NAME", "name"), ("STATUS", "status"), ("NEXT FIRE", "nextFireAt")],
        ),
    }
}

/// One spec, or a list of them, or `items` of an exported list.
fn read_specs(file: &PathBuf) -> Result<Vec<Value>, Failure> {
    let shown = file.display();
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    let json = text.trim_start().starts_with(['{', '[']);
    let value: Value = if json {
        crate::api::parse_json(text.as_bytes())
            .map_err(|error| Failure::usage(format!("{shown}: {}", error.message)))?
    } else {
        serde_yaml_ng::from_str(&text).map_err(|error| Failure::usage(format!("{shown}: {error}")))?
    };
    match value {
        Value::Object(_) => Ok(vec![value]),
        Value::Array(specs) if !specs.is_empty() => Ok(specs),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(Failure::usage(format!("{shown}: holds no job: write an object, or a list of them")))
        }
    }
}
