//! `campanile target ...`.

use super::{
    change::{Change, DryRun},
    failure::Failure,
    output::{self, Column, Format},
    remote::{Remote, encoded},
    repeat,
};
use campanile_schema::operations::{Operation, TargetList};
use serde_json::{Value, json};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// The targets of a tenant that have settings
    List {
        tenant: String,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// A target, with the state of its breaker
    Get {
        tenant: String,
        target: String,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Set how a target is spared; settings that are not named stay
    Set {
        tenant: String,
        target: String,
        /// Runs that may use it at once; 0 = no limit
        #[arg(long, value_name = "N")]
        max_concurrent_runs: Option<u32>,
        /// Runs that start a second; 0 = no limit
        #[arg(long, value_name = "N")]
        max_runs_per_sec: Option<f64>,
        /// Retries among a hundred first attempts [default of a target: 10]
        #[arg(long, value_name = "PERCENT")]
        retry_percent: Option<u32>,
        /// Failures among a hundred attempts that open the breaker; 0 = never [default of a target: 50]
        #[arg(long, value_name = "PERCENT")]
        failure_percent: Option<u32>,
        /// Attempts that must have ended before it opens [default of a target: 10]
        #[arg(long, value_name = "N")]
        min_attempts: Option<u32>,
        /// For how long it opens at first, in seconds [default of a target: 10]
        #[arg(long, value_name = "SECONDS")]
        open_sec: Option<u64>,
        #[command(flatten)]
        dry: DryRun,
    },
    /// Forget the settings of a target; jobs that name it have the default ones
    Delete {
        tenant: String,
        target: String,
        #[command(flatten)]
        change: Change,
    },
}

const TARGETS: &[Column] = &[
    Column::id("TARGET", "target"),
    Column::state("BREAKER", "breaker"),
    Column::number("RUNNING", "running"),
    Column::number("WAITING", "waiting"),
    Column::number("MAX RUNS", "settings.maxConcurrentRuns").minor(1),
    Column::number("MAX/S", "settings.maxRunsPerSec").minor(2),
    Column::number("RETRY %", "settings.retryPercent").minor(3),
    Column::number("FAILURE %", "settings.failurePercent").minor(4),
];

fn list_path(tenant: &str) -> String {
    TargetList::ROW.path_of(encoded(tenant))
}

fn path(tenant: &str, target: &str) -> String {
    format!("{}/{}", list_path(tenant), encoded(target))
}

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::List { tenant, watch } => {
            repeat::list(watch, format, TARGETS, || remote.get(&list_path(&tenant), &[]))
        }
        Command::Get { tenant, target, watch } => {
            repeat::one(watch, format, None, || remote.get(&path(&tenant, &target), &[]))
        }
        Command::Set {
            tenant,
            target,
            max_concurrent_runs,
            max_runs_per_sec,
            retry_percent,
            failure_percent,
            min_attempts,
            open_sec,
            dry,
        } => {
            let path = path(&tenant, &target);
            let named = [
                ("maxConcurrentRuns", max_concurrent_runs.map(|n| json!(n))),
                ("maxRunsPerSec", max_runs_per_sec.map(|n| json!(n))),
                ("retryPercent", retry_percent.map(|n| json!(n))),
                ("failurePercent", failure_percent.map(|n| json!(n))),
                ("minAttempts", min_attempts.map(|n| json!(n))),
                ("openSec", open_sec.map(|n| json!(n))),
            ];
            let before = match remote.get(&path, &[]) {
                Ok(mut view) => view["settings"].take(),
                // It has no settings yet, and nothing uses it.
                Err(failure) if failure.code == 3 => json!({}),
                Err(failure) => return Err(failure),
            };
            let mut settings = before.clone();
            for (name, value) in named {
                if let Some(value) = value {
                    settings[name] = value;
                }
            }
            if dry.dry_run {
                return would_set(&target, &before, &settings);
            }
            output::one(format, &remote.put(&path, &settings)?)
        }
        Command::Delete { tenant, target, change } => delete(remote, &tenant, &target, &change),
    }
}

fn would_set(target: &str, before: &Value, after: &Value) -> Result<(), Failure> {
    let settings = after.as_object().into_iter().flatten();
    let changes: Vec<String> = settings
        .filter(|(name, value)| before[name.as_str()] != **value)
        .map(|(name, value)| match before.get(name.as_str()) {
            Some(before) => format!("{name}: {before} -> {value}"),
            None => format!("{name}: {value}"),
        })
        .collect();
    if changes.is_empty() {
        return DryRun::told(&format!("leave the target {target} as it is"));
    }
    DryRun::told(&format!("set of target {target}: {}", changes.join(", ")))
}

fn delete(remote: &Remote, tenant: &str, target: &str, change: &Change) -> Result<(), Failure> {
    let path = path(tenant, target);
    if change.dry.dry_run {
        remote.get(&path, &[])?;
        return DryRun::told(&format!("forget the settings of target {target} of tenant {tenant}"));
    }
    remote.delete(&path, &[("reason", change.reason.clone())])?;
    output::said(&format!("{target}: deleted"), &json!({"tenantId": tenant, "target": target, "done": "delete"}))
}
