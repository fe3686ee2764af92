//! `campanile system ...`: the node and everything on it.

use super::{
    change::{Change, DryRun, spread_said},
    failure::Failure,
    output::{Column, Format},
    remote::Remote,
    repeat,
};
use campanile_schema::operations::{API, ClockAccept, ExecutorList, PoolList, SystemInfo, SystemPause, SystemResume};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Facts of the node, with numbers of all nodes
    Info {
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Executors that are connected, of all nodes
    Executors {
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Pools with their executors and waiting runs, of all nodes
    Pools {
        #[command(flatten)]
        watch: repeat::Flags,
    },
    /// Stop firing and starting everywhere
    Pause {
        #[command(flatten)]
        change: Change,
    },
    /// Undo the system's pause
    Resume {
        #[command(flatten)]
        change: Change,
    },
    /// Fire again after a jump of the clock that halted firing (see `system info`): the clock is right
    AcceptClock {
        #[command(flatten)]
        change: Change,
    },
}

const EXECUTORS: &[Column] = &[
    Column::id("EXECUTOR", "executorId"),
    Column::state("STATE", "state"),
    Column::text("POOLS", "pools").minor(2),
    Column::number("RUNNING", "running"),
    Column::number("SLOTS", "slots").minor(1),
    Column::number("CREDIT", "credit").minor(4),
    Column::time("LAST HEARTBEAT", "lastHeartbeatAt").minor(3),
];
const POOLS: &[Column] = &[
    Column::id("POOL", "name"),
    Column::number("EXECUTORS", "executors"),
    Column::number("RUNNING", "running"),
    Column::number("WAITING", "waiting"),
    Column::number("CREDIT", "credit").minor(1),
];

pub(super) fn run(command: Command, remote: &Remote, format: Format) -> Result<(), Failure> {
    match command {
        Command::Info { watch } => repeat::one(watch, format, None, || remote.get(SystemInfo::PATH, &[])),
        Command::Executors { watch } => repeat::list(watch, format, EXECUTORS, || remote.get(ExecutorList::PATH, &[])),
        Command::Pools { watch } => repeat::list(watch, format, POOLS, || remote.get(PoolList::PATH, &[])),
        Command::Pause { change } => done(remote, SystemPause::PATH, "stop firing and starting everywhere", &change),
        Command::Resume { change } => done(remote, SystemResume::PATH, "undo the system's pause", &change),
        Command::AcceptClock { change } => {
            done(remote, ClockAccept::PATH, "take the clock as right and fire again", &change)
        }
    }
}

fn done(remote: &Remote, path: &str, meaning: &str, change: &Change) -> Result<(), Failure> {
    if change.dry.dry_run {
        let node = remote.get(SystemInfo::PATH, &[])?;
        return DryRun::told(&format!("{meaning}; asked: {}", node["name"].as_str().unwrap_or("the node")));
    }
    let answer = remote.post(path, &change.body())?;
    spread_said("", path.trim_start_matches(API).trim_start_matches('/'), answer)
}
