//! `campanile tenant ...`.

use super::{
    change::{Change, DryRun, refused, spread_said},
    failure::Failure,
    output::{self, Column, Format},
    remote::{Remote, encoded},
    repeat,
};
use campanile_schema::{
    error::ErrorCode,
    operations::{Operation, TenantGet, TenantList},
};
use serde_json::{Value, json};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Tenants with their limits and use
    List {
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// A tenant
    Get {
        tenant: String,
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Set limits of a tenant; those that are not named stay
    Set {
        tenant: String,
        /// Runs that hold an executor at once; 0 = no limit
        #[arg(long, value_name = "N")]
        max_concurrent_runs: Option<u32>,
        /// Runs started per second; 0 = no limit
        #[arg(long, value_name = "N")]
        max_triggers_per_sec: Option<f64>,
        /// Jobs; 0 = the node's own limit, 10,000,000
        #[arg(long, value_name = "N")]
        max_jobs: Option<u64>,
        /// Runs that wait for a permit or an executor; 0 = the node's own limit, 100,000
        #[arg(long, value_name = "N")]
        max_queued_runs: Option<u32>,
        #[command(flatten)]
        dry: DryRun,
    },
    /// Forget the limits and the pause of a tenant without jobs and open runs; its history stays
    Delete {
        tenant: String,
        #[command(flatten)]
        change: Change,
    },
    /// Stop firing and starting for a tenant
    Pause {
        tenant: String,
        #[command(flatten)]
        change: Change,
    },
    /// Undo a tenant's pause
    Resume {
        tenant: String,
        #[command(flatten)]
        change: Change,
    },
}

const TENANTS: &[Column] = &[
    Column::id("TENANT", "tenantId"),
    Column::state("PAUSED", "paused"),
    Column::number("JOBS", "jobs"),
    Column::number("RUNNING", "running"),
    Column::number("WAITING", "waiting"),
    Column::number("MAX RUNS", "quota.maxConcurrentRuns").minor(1),
    Column::number("MAX/S", "quota.maxTriggersPerSec").minor(2),
    Column::number("MAX JOBS", "quota.maxJobs").minor(3),
    Column::number("MAX QUEUED", "quota.maxQueuedRuns").minor(4),
];

fn path(tenant: &str) -> String {
    TenantGet::ROW.path_of(encoded(tenant))
}

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::List { watch } => repeat::list(watch, format, TENANTS, || remote.get(TenantList::PATH, &[])),
        Command::Get { tenant, watch } => repeat::one(watch, format, None, || remote.get(&path(&tenant), &[])),
        Command::Set { tenant, max_concurrent_runs, max_triggers_per_sec, max_jobs, max_queued_runs, dry } => {
            let mut quota = match remote.get(&path(&tenant), &[]) {
                Ok(mut view) => view["quota"].take(),
                // The first limits of a tenant that has no jobs yet.
                Err(failure) if failure.code == 3 => json!({}),
                Err(failure) => return Err(failure),
            };
            let before = quota.clone();
            for (name, value) in [
                ("maxConcurrentRuns", max_concurrent_runs.map(|n| json!(n))),
                ("maxTriggersPerSec", max_triggers_per_sec.map(|n| json!(n))),
                ("maxJobs", max_jobs.map(|n| json!(n))),
                ("maxQueuedRuns", max_queued_runs.map(|n| json!(n))),
            ] {
                if let Some(value) = value {
                    quota[name] = value;
                }
            }
            if dry.dry_run {
                return would_set(&tenant, &before, &quota);
            }
            output::one(format, &remote.put(&path(&tenant), &quota)?)
        }
        Command::Delete { tenant, change } => delete(remote, &tenant, &change),
        Command::Pause { tenant, change } => done(remote, &tenant, "pause", &change),
        Command::Resume { tenant, change } => done(remote, &tenant, "resume", &change),
    }
}

fn would_set(tenant: &str, before: &Value, after: &Value) -> Result<(), Failure> {
    let limits = after.as_object().into_iter().flatten();
    let changes: Vec<String> = limits
        .filter(|(name, value)| before[name.as_str()] != **value)
        .map(|(name, value)| format!("{name}: {} -> {value}", before.get(name.as_str()).unwrap_or(&json!(0))))
        .collect();
    if changes.is_empty() {
        return DryRun::told(&format!("leave the limits of {tenant} as they are"));
    }
    DryRun::told(&format!("set limits of {tenant}: {}", changes.join(", ")))
}

fn delete(remote: &Remote, tenant: &str, change: &Change) -> Result<(), Failure> {
    if change.dry.dry_run {
        let known = remote.get(&path(tenant), &[])?;
        let there =
            [("jobs", &known["jobs"]), ("running runs", &known["running"]), ("waiting runs", &known["waiting"])];
        let there = there.into_iter().filter(|(_, count)| count.as_u64().unwrap_or(0) > 0);
        let kept: Vec<String> = there.map(|(what, count)| format!("{count} {what}")).collect();
        if !kept.is_empty() {
            return Err(refused(ErrorCode::IllegalState, format!("the tenant {tenant} has {}", kept.join(", "))));
        }
        return DryRun::told(&format!("forget the limits and the pause of the tenant {tenant}"));
    }
    remote.delete(&path(tenant), &[("reason", change.reason.clone())])?;
    output::said(&format!("{tenant}: deleted"), &json!({"tenantId": tenant, "done": "delete"}))
}

fn done(remote: &Remote, tenant: &str, verb: &str, change: &Change) -> Result<(), Failure> {
    if change.dry.dry_run {
        let is_paused = remote.get(&path(tenant), &[])?["paused"] == true;
        let now = if is_paused { "paused" } else { "not paused" };
        return DryRun::told(&format!("{verb} the tenant {tenant} ({now})"));
    }
    let answer = remote.post(&format!("{}/{verb}", path(tenant)), &change.body())?;
    spread_said(tenant, verb, answer)
}
