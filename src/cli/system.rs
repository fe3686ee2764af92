//! `campanile system ...`: the node and everything on it.

use super::{
    failure::Failure,
    output::{self, Column, Format},
    remote::Remote,
};
use serde_json::json;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Facts of the node
    Info,
    /// Executors that are connected
    Executors,
    /// Pools with their executors and waiting runs
    Pools,
    /// Stop firing and starting everywhere
    Pause {
        #[arg(long)]
        reason: Option<String>,
    },
    /// Undo the system's pause
    Resume {
        #[arg(long)]
        reason: Option<String>,
    },
    /// Fire again after a jump of the clock that halted firing (see `system info`): the clock is right
    AcceptClock {
        #[arg(long)]
        reason: Option<String>,
    },
}

const EXECUTORS: &[Column] = &[
    ("EXECUTOR", "executorId"),
    ("STATE", "state"),
    ("POOLS", "pools"),
    ("RUNNING", "running"),
    ("SLOTS", "slots"),
    ("CREDIT", "credit"),
    ("LAST HEARTBEAT", "lastHeartbeatAt"),
];
const POOLS: &[Column] = &[
    ("POOL", "name"),
    ("EXECUTORS", "executors"),
    ("RUNNING", "running"),
    ("WAITING", "waiting"),
    ("CREDIT", "credit"),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Info => output::one(format, &remote.get("/api/v1/cluster/node", &[])?),
        Command::Executors => output::list(format, &remote.get("/api/v1/executors", &[])?, EXECUTORS),
        Command::Pools => output::list(format, &remote.get("/api/v1/pools", &[])?, POOLS),
        Command::Pause { reason } => done(remote, "system/pause", reason),
        Command::Resume { reason } => done(remote, "system/resume", reason),
        Command::AcceptClock { reason } => done(remote, "cluster/clock/accept", reason),
    }
}

fn done(remote: &Remote, verb: &str, reason: Option<String>) -> Result<(), Failure> {
    remote.post(&format!("/api/v1/{verb}"), &json!({"reason": reason}))?;
    output::text(&format!("{verb}: done\n"));
    Ok(())
}
