//! `campanile import ...`.

use super::{
    change::DryRun,
    failure::Failure,
    import_foreign::{self, Foreign},
    output,
    progress::{Progress, Unit},
    remote::Remote,
};
use campanile_imports::{Options, System};
use campanile_jobfiles::crontab::{self, Format, ImportOptions, LABEL_FILE, Plan, machine};
use campanile_schema::{
    job::JobView,
    operations::{JobCreate, JobList, JobReplace, Operation},
};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Crontab lines as jobs: shows what would be made or changed; --apply does it
    Crontab(Crontab),
    /// CronJobs of Kubernetes as manifests: `kubectl get cronjobs -A -o yaml > FILE` writes them; --apply makes the jobs
    Kubernetes(Foreign),
    /// systemd timers with their services as manifests; --apply makes the jobs
    Systemd {
        #[command(flatten)]
        foreign: Foreign,
        /// Take services of other users too; they run as the executor's user
        #[arg(long)]
        as_self: bool,
    },
    /// Jobs of Quartz as manifests, of its XML or of an SQL dump of its tables; --apply makes the jobs
    Quartz {
        #[command(flatten)]
        foreign: Foreign,
        /// How the names of the tables begin
        #[arg(long, default_value = "QRTZ_", value_name = "PREFIX")]
        table_prefix: String,
    },
    /// Tasks of XXL-JOB as manifests, of an SQL dump of xxl_job_info and xxl_job_group; --apply makes the jobs
    #[command(name = "xxl-job")]
    XxlJob(Foreign),
}

#[derive(clap::Args)]
pub(super) struct Crontab {
    /// Crontabs, or directories such as /etc/cron.d; `crontab -l > FILE` writes your own
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Make and change the jobs
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    dry: DryRun,
    /// Take lines of other users too; they run as the executor's user
    #[arg(long)]
    as_self: bool,
    #[arg(long, default_value = "default")]
    tenant: String,
    #[arg(long, default_value = "default")]
    pool: String,
    /// Whether lines have a user column: auto, user (no) or system (yes)
    #[arg(long, default_value = "auto", value_parser = format_of)]
    format: Format,
    /// Zone of lines without CRON_TZ [default: this machine's]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
}

fn format_of(text: &str) -> Result<Format, String> {
    match text {
        "auto" => Ok(Format::Auto),
        "user" => Ok(Format::User),
        "system" => Ok(Format::System),
        _ => Err("write auto, user or system".to_owned()),
    }
}

pub(super) fn run(
    command: Command,
    remote: impl FnOnce() -> Result<Remote, Failure>,
    format: output::Format,
) -> Result<(), Failure> {
    let (system, foreign, options) = match command {
        Command::Crontab(args) => return of_crontabs(args, &remote()?, format),
        Command::Kubernetes(foreign) => (System::Kubernetes, foreign, import_foreign::options()),
        Command::Systemd { foreign, as_self } => {
            (System::Systemd, foreign, Options { as_self, ..import_foreign::options() })
        }
        Command::Quartz { foreign, table_prefix } => {
            (System::Quartz, foreign, Options { table_prefix, ..import_foreign::options() })
        }
        Command::XxlJob(foreign) => (System::XxlJob, foreign, import_foreign::options()),
    };
    import_foreign::run(system, foreign, options, remote, format)
}

fn of_crontabs(args: Crontab, remote: &Remote, format: output::Format) -> Result<(), Failure> {
    let Crontab { paths, apply, as_self, tenant, pool, format: columns, tz, dry } = args;
    let options = ImportOptions {
        tenant: tenant.clone(),
        pool,
        as_self,
        now_ms: jiff::Timestamp::now().as_millisecond(),
        machine_zone: tz.unwrap_or_else(machine::zone),
        self_user: machine::user(),
        format: columns,
    };
    let import = crontab::import(&paths, &options).map_err(|error| Failure::usage(error.to_string()))?;
    let query = [("tenantId", Some(tenant)), ("labels", Some(LABEL_FILE.to_owned()))];
    let existing: Result<Vec<JobView>, _> =
        remote.all(JobList::PATH, &query)?.into_iter().map(serde_json::from_value).collect();
    let existing = existing.map_err(|error| Failure::here(format!("the node's jobs cannot be read: {error}")))?;
    let plan = crontab::plan(&import, &existing);
    if format == output::Format::Table {
        output::text(&crontab::render(&import, &plan));
    }
    let mut value = crontab::value(&import, &plan);
    let refused = import.refused.len();
    let is_applied = apply && !dry.dry_run;
    let mut failed = None;
    if is_applied {
        let done = carry_out(plan, remote)?;
        if format == output::Format::Table {
            output::text(&format!("created {}, changed {}\n", done.made, done.changed));
        }
        value["created"] = json!(done.made);
        value["changed"] = json!(done.changed);
        value["failed"] = json!(done.failed);
        failed = done.code;
    } else if !plan.is_empty() && format == output::Format::Table {
        eprintln!("nothing was changed; add --apply to do it");
    }
    if format != output::Format::Table {
        value["dryRun"] = json!(!is_applied);
        output::one(format, &value)?;
    }
    match failed {
        Some(code) => Err(Failure::new(code, "some jobs were refused, see above")),
        None if refused > 0 => Err(refusal(refused, is_applied)),
        None => Ok(()),
    }
}

/// A script must see that not every line became a job.
fn refusal(lines: usize, is_applied: bool) -> Failure {
    let (count, are) = if lines == 1 { ("1 line".to_owned(), "is") } else { (format!("{lines} lines"), "are") };
    let others = if is_applied { "; the others were imported" } else { "" };
    let advice =
        "REFUSED above (`refused` in JSON) says why and what to do; import again afterwards, what is there stays";
    Failure { advice, ..Failure::usage(format!("{count} of the crontabs {are} refused{others}")) }
}

/// What became of a plan.
#[derive(Default)]
struct ImportResult {
    made: u32,
    changed: u32,
    /// Jobs that the node refused, with its words.
    failed: Vec<Value>,
    code: Option<u8>,
}

/// Every job by itself: one that is refused does not hold up the others.
fn carry_out(plan: Plan, remote: &Remote) -> Result<ImportResult, Failure> {
    let mut done = ImportResult::default();
    let total = plan.create.len() + plan.change.len();
    let progress = Progress::new("importing", Unit::Things("jobs"), Some(total as u64));
    let mut count = |answer: Result<Value, Failure>, name: &str, is_new: bool| {
        progress.add(1);
        match answer {
            Ok(_) if is_new => done.made += 1,
            Ok(_) => done.changed += 1,
            Err(failure) => {
                progress.say(&format!("{name}: {}", failure.message));
                done.failed.push(json!({"name": name, "error": failure.message}));
                done.code = Some(failure.code);
            }
        }
    };
    let unwritable = |error: serde_json::Error| Failure::here(format!("a job cannot be written: {error}"));
    for spec in plan.create {
        let body = serde_json::to_value(&spec).map_err(unwritable)?;
        // No key: names decide what is there, so an import that broke off can be done again, and a job that was deleted
        // comes back.
        count(remote.post(JobCreate::PATH, &body), &spec.name, true);
    }
    for change in plan.change {
        let body = json!({"version": change.version, "spec": serde_json::to_value(&change.spec).map_err(unwritable)?});
        count(remote.put(&JobReplace::ROW.path_of(change.job_id), &body), &change.spec.name, false);
    }
    Ok(done)
}
