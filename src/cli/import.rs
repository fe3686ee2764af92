//! `campanile import ...`.

use super::{
    change::DryRun,
    failure::Failure,
    output,
    progress::{Progress, Unit},
    remote::Remote,
};
use crate::crontab::{self, Format, ImportOptions, LABEL_FILE, Plan, machine};
use campanile_schema::job::JobView;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Crontab lines as jobs: shows what would be made or changed; --apply does it
    Crontab {
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
    },
}

fn format_of(text: &str) -> Result<Format, String> {
    match text {
        "auto" => Ok(Format::Auto),
        "user" => Ok(Format::User),
        "system" => Ok(Format::System),
        _ => Err("write auto, user or system".to_owned()),
    }
}

pub(super) fn run(command: Command, remote: &Remote) -> Result<(), Failure> {
    let Command::Crontab { paths, apply, as_self, tenant, pool, format, tz, dry } = command;
    let options = ImportOptions {
        tenant: tenant.clone(),
        pool,
        as_self,
        now_ms: jiff::Timestamp::now().as_millisecond(),
        machine_zone: tz.unwrap_or_else(machine::zone),
        self_user: machine::user(),
        format,
    };
    let import = crontab::import(&paths, &options).map_err(|error| Failure::usage(error.to_string()))?;
    let query = [("tenantId", Some(tenant)), ("labels", Some(LABEL_FILE.to_owned()))];
    let existing: Result<Vec<JobView>, _> =
        remote.all("/api/v1/jobs", &query)?.into_iter().map(serde_json::from_value).collect();
    let existing = existing.map_err(|error| Failure::here(format!("the node's jobs cannot be read: {error}")))?;
    let plan = crontab::plan(&import, &existing);
    output::text(&crontab::render(&import, &plan));
    if apply && !dry.dry_run {
        return carry_out(plan, remote);
    }
    if !plan.is_empty() {
        eprintln!("nothing was changed; add --apply to do it");
    }
    Ok(())
}

/// Every job by itself: one that is refused does not hold up the others.
fn carry_out(plan: Plan, remote: &Remote) -> Result<(), Failure> {
    let (mut made, mut changed, mut refused) = (0, 0, None);
    let total = plan.create.len() + plan.change.len();
    let progress = Progress::new("importing", Unit::Things("jobs"), Some(total as u64));
    let mut count = |done: Result<Value, Failure>, name: &str, counter: &mut u32| {
        progress.add(1);
        match done {
            Ok(_) => *counter += 1,
            Err(failure) => {
                progress.say(&format!("{name}: {}", failure.message));
                refused = Some(failure.code);
            }
        }
    };
    let unwritable = |error: serde_json::Error| Failure::here(format!("a job cannot be written: {error}"));
    for spec in plan.create {
        let body = serde_json::to_value(&spec).map_err(unwritable)?;
        // No key: names decide what is there, so an import that broke off can be done again, and a job that was deleted
        // comes back.
        count(remote.post("/api/v1/jobs", &body), &spec.name, &mut made);
    }
    for change in plan.change {
        let body = json!({"version": change.version, "spec": serde_json::to_value(&change.spec).map_err(unwritable)?});
        count(remote.put(&format!("/api/v1/jobs/{}", change.job_id), &body), &change.spec.name, &mut changed);
    }
    drop(progress);
    output::text(&format!("created {made}, changed {changed}\n"));
    match refused {
        Some(code) => Err(Failure::new(code, "some jobs were refused, see above")),
        None => Ok(()),
    }
}
