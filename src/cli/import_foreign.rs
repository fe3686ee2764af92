//! `campanile import kubernetes|systemd|quartz|xxl-job`: files of another scheduler as manifests, on stdout or in a directory, with a report
//! of what was imported. Only `--apply` asks a node.

use super::{
    apply::{self, Consent},
    failure::{Failure, USAGE},
    output::{self, Format},
    remote::Remote,
};
use campanile_imports::{Import, Options, System, Written, import, manifests, render, value};
use campanile_jobfiles::crontab::machine;
use campanile_schema::{
    apply::ApplyBody,
    limits::{APPLY_JOBS, IMPORT_OUT_BYTES},
    payload::Payload,
};
use serde_json::{Value, json};
use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

/// What every import takes that writes manifests.
#[derive(clap::Args)]
pub(super) struct Foreign {
    /// Files, or directories with files of the system
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Make and change the jobs instead of writing manifests
    #[arg(long)]
    apply: bool,
    /// With --apply: only show what would be done
    #[arg(long, requires = "apply")]
    dry_run: bool,
    /// Write the manifests into this directory, which is made; files that are there are not overwritten
    #[arg(long, value_name = "DIR", conflicts_with = "apply")]
    dir: Option<PathBuf>,
    /// Tenant of the jobs [default: of CronJobs their namespace, else `default`]
    #[arg(long)]
    tenant: Option<String>,
    /// Pool of the jobs [default: of XXL-JOB the application, else `default`]
    #[arg(long)]
    pool: Option<String>,
    /// Zone of schedules that name none [default: of CronJobs UTC, else this machine's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
}

/// Of this machine, and otherwise nothing.
pub(super) fn options() -> Options {
    Options {
        tenant: None,
        pool: None,
        zone: None,
        machine_zone: machine::zone(),
        as_self: false,
        self_user: machine::user(),
        table_prefix: "QRTZ_".to_owned(),
        now_ms: jiff::Timestamp::now().as_millisecond(),
    }
}

pub(super) fn run(
    system: System,
    foreign: Foreign,
    options: Options,
    remote: impl FnOnce() -> Result<Remote, Failure>,
    format: Format,
) -> Result<(), Failure> {
    let Foreign { paths, apply, dry_run, dir, tenant, pool, tz } = foreign;
    let options = Options { tenant, pool, zone: tz, ..options };
    let read = import(system, &paths, &options).map_err(|error| Failure::usage(error.to_string()))?;
    if apply {
        bring(&read, &remote()?, dry_run, format)?;
    } else {
        let written = manifests(system, &read).map_err(Failure::here)?;
        match &dir {
            Some(dir) => into_directory(dir, &written, &read, format)?,
            None => show(&written, &read, format)?,
        }
    }
    refusal(&read, apply && !dry_run)
}

/// Manifests go to stdout and the report to stderr, so that `campanile apply -f -` can read the first.
fn show(written: &[Written], import: &Import, format: Format) -> Result<(), Failure> {
    match format {
        Format::Table => {
            let texts: Vec<&str> = written.iter().map(|file| file.text.as_str()).collect();
            output::text(&texts.join("---\n"));
            eprint!("{}", render(import));
            Ok(())
        }
        Format::Json | Format::Yaml => output::one(format, &value(import)),
    }
}

/// Nothing is written while one of the files is there: an import does not undo what was edited after an earlier one.
fn into_directory(dir: &Path, written: &[Written], import: &Import, format: Format) -> Result<(), Failure> {
    let unwritable = |path: &Path, error: &std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} is there already: name another directory, or remove the file", path.display()))
        }
        _ => Failure::here(format!("{}: {error}", path.display())),
    };
    let paths: Vec<PathBuf> = written.iter().map(|file| dir.join(&file.name)).collect();
    if let Some(path) = paths.iter().find(|path| path.exists()) {
        return Err(unwritable(path, &ErrorKind::AlreadyExists.into()));
    }
    std::fs::create_dir_all(dir).map_err(|error| unwritable(dir, &error))?;
    for (file, path) in written.iter().zip(&paths) {
        let open = OpenOptions::new().write(true).create_new(true).open(path);
        let write = open.and_then(|mut open| open.write_all(file.text.as_bytes()).and_then(|()| open.sync_all()));
        write.map_err(|error| unwritable(path, &error))?;
    }
    let files: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    match format {
        Format::Table => {
            output::text(&render(import));
            output::text(&files.iter().map(|file| format!("wrote {file}\n")).collect::<String>());
            Ok(())
        }
        Format::Json | Format::Yaml => {
            let mut value = value(import);
            value["files"] = json!(files);
            output::one(format, &value)
        }
    }
}

fn bring(import: &Import, remote: &Remote, dry_run: bool, format: Format) -> Result<(), Failure> {
    if import.jobs.len() > APPLY_JOBS {
        let found = import.jobs.len();
        let told = format!(
            "{found} jobs, and one apply takes {APPLY_JOBS}: write them with --dir, and apply the files one by one"
        );
        return Err(Failure::usage(told));
    }
    eprint!("{}", render(import));
    if import.jobs.is_empty() {
        return Ok(());
    }
    let manifests = lists(import).iter().map(|list| Payload::from_value(&json!(list))).collect();
    let body = ApplyBody { manifests, ..ApplyBody::default() };
    apply::carry_out(remote, body, Consent { dry_run, yes: false, from_stdin: true }, format)
}

/// Manifests in lists: a file each would be more files than a call takes, and all in one file more than a file may have.
fn lists(import: &Import) -> Vec<Vec<Value>> {
    let (mut lists, mut bytes): (Vec<Vec<Value>>, usize) = (Vec::new(), 0);
    for manifest in import.jobs.iter().map(campanile_imports::manifest) {
        let size = manifest.to_string().len();
        match lists.last_mut().filter(|_| bytes + size < IMPORT_OUT_BYTES) {
            Some(list) => list.push(manifest),
            None => {
                lists.push(vec![manifest]);
                bytes = 0;
            }
        }
        bytes += size;
    }
    lists
}

/// A script must see that not everything became a job.
fn refusal(import: &Import, is_applied: bool) -> Result<(), Failure> {
    let (count, are) = match import.refusals() {
        0 => return Ok(()),
        1 => ("1 object".to_owned(), "is"),
        several => (format!("{several} objects"), "are"),
    };
    let others = if is_applied { "; the others were imported" } else { "" };
    let advice = "REFUSED above (`refused` in JSON) says why and what to do";
    Err(Failure { advice, ..Failure::new(USAGE, format!("{count} {are} refused{others}")) })
}
