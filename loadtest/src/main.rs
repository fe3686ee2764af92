//! `campanile-loadtest`: load, executors, faults and the checker. See `docs/loadtest.md`.
#![forbid(unsafe_code)]

use campanile_loadtest::{
    bench::{self, BenchArgs},
    bulk::{self, BulkArgs},
    chaos::{
        self, ChaosArgs,
        relay::{self, RelayArgs},
    },
    checker::check_dir,
    cluster::{self, ClusterBenchArgs},
    endurance::{self, EnduranceArgs},
    faults::{
        kill9::{self, Kill9Args},
        loss::{self, LossArgs},
        restore::{self, RestoreArgs},
        upgrade::{self, UpgradeArgs},
    },
    load::drive::{self, DriveArgs},
    measured::{
        backfill::{self, BackfillArgs},
        dags::{self, DagsArgs},
    },
    peers::{self, PeersArgs},
    process::{
        children,
        executor::{self, ExecutorArgs},
        fleet,
    },
    proof::{self, ProofArgs},
    run::{self, Outcome, RunArgs, WorkloadsArgs},
};
use clap::{Parser, Subcommand};
use std::{error::Error, io::Write, path::PathBuf, process::ExitCode};

/// As in the node: tens of thousands of runs a second pass through an executor of a load too.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser)]
#[command(version, about = "Load, executors, faults and the history checker of Campanile")]
struct Cli {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Subcommand)]
enum Mode {
    /// Judge a run directory. Exit code 1 when a promise was broken.
    Check {
        dir: PathBuf,
        /// The verdict as JSON.
        #[arg(long)]
        json: bool,
    },
    /// An executor whose bodies write down that they ran.
    Executor(ExecutorArgs),
    /// Load for a node that runs already.
    Drive(DriveArgs),
    /// Kill the node again and again under load, then judge.
    Kill9(Kill9Args),
    /// A cluster of three nodes on a real CQL server, with something that goes wrong, then judge.
    Chaos(ChaosArgs),
    /// A slow or lossy way to a CQL server; `chaos` starts it.
    #[command(hide = true)]
    Relay(RelayArgs),
    /// Kill an executor, then the node, while bodies run.
    ExecutorLoss(LossArgs),
    /// An hour of a node as it is shipped, with trouble; then judge its history and its memory.
    Endurance(EnduranceArgs),
    /// Back the node up under load, kill it for good, restore the archive, then judge.
    Restore(RestoreArgs),
    /// One directory in turn of the program of an earlier release and of this one, under load, then judge.
    Upgrade(UpgradeArgs),
    /// Triggers per second and lateness, end to end.
    Bench(BenchArgs),
    /// A bulk pause of many jobs and a bulk retry of many runs beside live jobs: how long they take, and how late the live runs start.
    Bulk(BulkArgs),
    /// Very many runs of DAGs at once: nodes per second, what a node costs, and the verdict; with --kill a kill -9 in the middle.
    Dags(DagsArgs),
    /// Backfills of very many instants beside a live load: how much later live bodies begin.
    Backfill(BackfillArgs),
    /// One, two and three nodes on a real CQL server: lateness, CPU and store requests per trigger; with --kill a take-over with many jobs.
    BenchCluster(ClusterBenchArgs),
    /// Rivals side by side with ours: the highest rates that hold, and what they cost.
    Peers(PeersArgs),
    /// All slow proofs of a commit, and one report of them: `make proof`.
    Proof(ProofArgs),
    /// Workload files against a real system: figures second by second, a report and a verdict.
    Run(RunArgs),
    /// The workloads that come with the program; writes them as files to copy.
    Workloads(WorkloadsArgs),
}

fn check(dir: &std::path::Path, json: bool) -> Result<bool, Box<dyn Error>> {
    let verdict = check_dir(dir)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&verdict)?);
    } else {
        println!("{verdict}");
    }
    Ok(verdict.green)
}

/// Modes that start processes of their own.
async fn with_children(mode: impl Future<Output = Result<bool, Box<dyn Error>>>) -> Result<bool, Box<dyn Error>> {
    fleet::end_children_on_signals();
    mode.await
}

/// A write over the limit of file sizes gets an error, like one to a full disk, instead of the signal that ends the process.
fn refuse_large_files_by_error() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    // Once asked for it stays handled.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

fn green(green: bool) -> Outcome {
    if green { Outcome::Green } else { Outcome::Red }
}

fn run(mode: Mode) -> Result<Outcome, Box<dyn Error>> {
    let threads = match &mode {
        Mode::Executor(args) => args.threads.max(1),
        Mode::Check { .. }
        | Mode::Drive(_)
        | Mode::Kill9(_)
        | Mode::Chaos(_)
        | Mode::Relay(_)
        | Mode::ExecutorLoss(_)
        | Mode::Endurance(_)
        | Mode::Restore(_)
        | Mode::Upgrade(_)
        | Mode::Bench(_)
        | Mode::Bulk(_)
        | Mode::Dags(_)
        | Mode::Backfill(_)
        | Mode::BenchCluster(_)
        | Mode::Peers(_)
        | Mode::Proof(_)
        | Mode::Run(_)
        | Mode::Workloads(_) => 2,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let outcome = runtime.block_on(async {
        refuse_large_files_by_error()?;
        match mode {
            Mode::Check { dir, json } => check(&dir, json).map(green),
            Mode::Executor(args) => executor::run(args).await.map(|()| Outcome::Green),
            Mode::Drive(args) => drive::run(args).await.map(green),
            Mode::Kill9(args) => with_children(kill9::run(args)).await.map(green),
            Mode::Chaos(args) => with_children(chaos::run(args)).await.map(green),
            Mode::Relay(args) => relay::run(args).await.map(|()| Outcome::Green),
            Mode::ExecutorLoss(args) => with_children(loss::run(args)).await.map(green),
            Mode::Endurance(args) => with_children(endurance::run(args)).await.map(green),
            Mode::Restore(args) => with_children(restore::run(args)).await.map(green),
            Mode::Upgrade(args) => with_children(upgrade::run(args)).await.map(green),
            Mode::Bench(args) => with_children(bench::run(args)).await.map(green),
            Mode::Bulk(args) => with_children(bulk::run(args)).await.map(green),
            Mode::Dags(args) => with_children(dags::run(args)).await.map(green),
            Mode::Backfill(args) => with_children(backfill::run(args)).await.map(green),
            Mode::BenchCluster(args) => with_children(cluster::run(args)).await.map(green),
            Mode::Peers(args) => with_children(peers::run(args)).await.map(green),
            Mode::Proof(args) => {
                with_children(async { tokio::task::block_in_place(|| proof::run(&args)) }).await.map(green)
            }
            Mode::Run(args) => Ok(run::run(args).await),
            Mode::Workloads(args) => Ok(run::workloads(&args).map(|()| Outcome::Green)?),
        }
    });
    children::kill_all();
    outcome
}

fn main() -> ExitCode {
    match run(Cli::parse().mode) {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(error) => {
            // Not by a macro, which panics when that cannot be written either: on a full disk.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(Outcome::NotRun.exit_code())
        }
    }
}
