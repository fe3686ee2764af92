//! `campanile tenant ...`.

use super::{
    failure::Failure,
    output::{self, Column, Format},
    remote::{Remote, encoded},
};
use serde_json::json;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Tenants with their limits and use
    List,
    /// A tenant
    Get { tenant: String },
    /// Set limits of a tenant; those that are not named stay
    Set {
        tenant: String,
        /// Runs that hold an executor at once; 0 = no limit
        #[arg(long, value_name = "N")]
        max_concurrent_runs: Option<u32>,
        /// Runs started per second; 0 = no limit
        #[arg(long, value_name = "N")]
        max_triggers_per_sec: Option<f64>,
        /// Jobs; 0 = no limit
        #[arg(long, value_name = "N")]
        max_jobs: Option<u64>,
        /// Runs that wait for a permit or an executor; 0 = no limit
        #[arg(long, value_name = "N")]
        max_queued_runs: Option<u32>,
    },
    /// Forget the limits and the pause of a tenant without jobs and open runs; its history stays
    Delete {
        tenant: String,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Stop firing and starting for a tenant
    Pause {
        tenant: String,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Undo a tenant's pause
    Resume {
        tenant: String,
        #[arg(long)]
        reason: Option<String>,
    },
}

const TENANTS: &[Column] = &[
    ("TENANT", "tenantId"),
    ("PAUSED", "paused"),
    ("JOBS", "jobs"),
    ("RUNNING", "running"),
    ("WAITING", "waiting"),
    ("MAX RUNS", "quota.maxConcurrentRuns"),
    ("MAX/S", "quota.maxTriggersPerSec"),
    ("MAX JOBS", "quota.maxJobs"),
    ("MAX QUEUED", "quota.maxQueuedRuns"),
];

fn path(tenant: &str) -> String {
    format!("/api/v1/tenants/{}", encoded(tenant))
}

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::List => output::list(format, &remote.get("/api/v1/tenants", &[])?, TENANTS),
        Command::Get { tenant } => output::one(format, &remote.get(&path(&tenant), &[])?),
        Command::Set { tenant, max_concurrent_runs, max_triggers_per_sec, max_jobs, max_queued_runs } => {
            let mut quota = match remote.get(&path(&tenant), &[]) {
                Ok(mut view) => view["quota"].take(),
                // The first limits of a tenant that has no jobs yet.
                Err(failure) if failure.code == 3 => json!({}),
                Err(failure) => return Err(failure),
            };
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
            output::one(format, &remote.put(&path(&tenant), &quota)?)
        }
        Command::Delete { tenant, reason } => {
            remote.delete(&path(&tenant), &[("reason", reason)])?;
            output::text(&format!("{tenant}: deleted\n"));
            Ok(())
        }
        Command::Pause { tenant, reason } => done(remote, &tenant, "pause", reason),
        Command::Resume { tenant, reason } => done(remote, &tenant, "resume", reason),
    }
}

fn done(remote: &Remote, tenant: &str, verb: &str, reason: Option<String>) -> Result<(), Failure> {
    remote.post(&format!("{}/{verb}", path(tenant)), &json!({"reason": reason}))?;
    output::text(&format!("{tenant}: {verb} done\n"));
    Ok(())
}
