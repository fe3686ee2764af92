//! The command line: `campanile COMMAND`. Operators' commands talk HTTP to a node; `dev`, `server` and `executor` run one.
//!
//! Answers go to stdout (`-o table|json|yaml`), everything else to stderr. Exit codes are those of the error codes, so
//! that scripts can tell refusals apart.
//!
//! Never here: rules about jobs, or an operation that HTTP does not have.

mod apply;
mod archives;
mod audit;
mod backfill;
mod bench;
mod bulk;
mod bulk_operation;
mod calendar;
mod change;
mod cluster;
mod credentials;
mod cron;
mod cron_compare;
mod cron_lines;
mod cron_query;
mod dag;
mod demo;
mod dev;
mod dlq;
mod doctor;
mod edit;
mod executor;
mod explain;
mod export;
mod failure;
mod fires;
mod following;
mod history;
mod hook_flags;
mod import;
mod import_foreign;
mod job;
mod job_create;
mod job_flags;
mod job_ref;
mod listing;
mod logging;
mod members;
mod outbox;
mod output;
mod plan;
mod planned;
mod private;
mod progress;
mod remote;
mod repeat;
mod run;
mod run_archive;
mod schema;
mod server;
mod settings;
mod store;
mod store_backup;
mod store_migrate;
mod store_restore;
mod system;
mod tail;
mod target;
mod tenant;
mod top;
mod traces;
mod versions;
mod watch;
mod window_flags;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
use output::Format;
use remote::{Connection, Remote};
use std::process::ExitCode;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a bug, of ours or in an answer
  2  refused: wrong arguments, fields, bodies or schedules
  3  no such thing
  4  no token, a wrong one, or one that may not do this
  5  the state does not allow it (name taken, stale version, paused, a run is active)
  6  a limit is reached: try later or ask for more
  7  not reachable, not ready, overloaded, or no answer in time
  8  `run wait` and `job trigger --wait`: the run ended, but not with SUCCESS
  9  `plan --detailed-exitcode`: there are changes

The node: --server URL, else CAMPANILE_SERVER, else the running `campanile dev`, else http://127.0.0.1:7700.
Over TLS: https://HOST:PORT; --tls-ca FILE, else CAMPANILE_TLS_CA, names its CA, else the machine's CAs are trusted.
The token: --token, else CAMPANILE_API_TOKEN, else that of `campanile dev` when it is the node.";

#[derive(Parser)]
#[command(
    name = "campanile",
    version,
    about = "A distributed job scheduler: the right job at the right time, reliably, and provably",
    after_help = EXIT_CODES,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    shown: output::Flags,
    /// Form of answers
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table, help_heading = "Output")]
    output: Format,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run a node with an executor and demo jobs on this machine, to try things
    Dev(dev::Args),
    /// Run a node
    Server(server::Args),
    /// Run an executor for COMMAND and HTTP actions
    Executor(executor::Args),
    /// Jobs: create, list, pause, trigger, their runs and ledger
    #[command(subcommand)]
    Job(job::Command),
    /// Runs: get, wait, watch, log, cancel, retry, confirm; list of an archive
    #[command(subcommand)]
    Run(run::Command),
    /// DAGs of jobs: create, and the nodes of their runs: show, retry, mark
    #[command(subcommand)]
    Dag(dag::Command),
    /// Backfills, stretches of a job's past that it runs: create, replay, get, pause, resume, cancel
    #[command(subcommand)]
    Backfill(backfill::Command),
    /// Many at once: pause, resume, trigger, delete jobs, cancel, retry, redrive runs that a filter names; progress, abort, undo
    #[command(subcommand)]
    Bulk(bulk_operation::Command),
    /// Dead letters: list, redrive, discard
    #[command(subcommand)]
    Dlq(dlq::Command),
    /// Messages between jobs that wait or were given up: list, resend, discard
    #[command(subcommand)]
    Outbox(outbox::Command),
    /// Tenants: limits and pauses
    #[command(subcommand)]
    Tenant(tenant::Command),
    /// Targets, named systems that bodies call: limits, breaker and retries
    #[command(subcommand)]
    Target(target::Command),
    /// Calendars, named sets of days that jobs are due on, or not
    #[command(subcommand)]
    Calendar(calendar::Command),
    /// The node, its executors and pools, and the pause of everything
    #[command(subcommand)]
    System(system::Command),
    /// The audit trail: who changed what and why, and who was refused
    #[command(subcommand)]
    Audit(audit::Command),
    /// Bring jobs to what manifests say: shows what would change, then changes it
    Apply(apply::Args),
    /// What `apply` would do, and what that means: fires, clock changes, full minutes, limits; changes nothing
    Plan(plan::Args),
    /// Jobs as manifests that `apply` takes
    Export(export::Args),
    /// Take over what other schedulers run: crontabs, Kubernetes, systemd, Quartz, XXL-JOB
    #[command(subcommand)]
    Import(import::Command),
    /// Cron expressions: next fires, explanations (no node needed)
    #[command(subcommand)]
    Cron(cron::Command),
    /// Configuration: print the defaults, check a file
    #[command(subcommand)]
    Config(settings::Command),
    /// What a node keeps: back it up, restore it, check and show it
    #[command(subcommand)]
    Store(store::Command),
    /// Days of ended runs in files: write them, list them, verify them; `run list --archive` reads them
    #[command(subcommand)]
    History(history::Command),
    /// The tables of the CQL store that a cluster shares
    #[command(subcommand)]
    Schema(schema::Command),
    /// What this machine does: the short form of a workload on a node of its own (needs campanile-loadtest)
    Bench(bench::Args),
    /// Credentials for the token file
    #[command(subcommand)]
    Token(credentials::TokenCommand),
    /// Keys for secret params
    #[command(subcommand)]
    Secrets(credentials::SecretsCommand),
    /// A cluster: its nodes, shards and moves; files that new nodes need
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Follow runs, and with --logs what they write, as they happen: of a job, of a tenant, or all
    Tail(tail::Args),
    /// What runs, what waits and why, how late runs begin, and the executors: in the terminal, or once for scripts
    Top(top::Args),
    /// Look at configuration, directory, ports, clock and node, and say what to do about what is wrong
    Doctor(doctor::Args),
    /// Manual pages, one for each command, into a directory: `man -l DIR/campanile.1`
    Man {
        /// Made when missing
        dir: std::path::PathBuf,
    },
    /// Completions for a shell: `source <(campanile completions bash)`
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
}

/// The whole command line.
pub fn main() -> ExitCode {
    let given: Vec<_> = std::env::args_os().collect();
    let colours = output::colour_of(given.iter().map(|arg| arg.to_string_lossy().into_owned()));
    let matches = Cli::command().color(colours).try_get_matches_from(given);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            // Printing to a closed pipe is nobody's loss.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                eprintln!("campanile: {}", failure.message);
            }
            if !failure.advice.is_empty() {
                eprintln!("  what to do: {}", failure.advice);
            }
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(cli: Cli) -> Result<(), Failure> {
    output::decide(cli.shown, cli.output);
    let format = cli.output;
    let connection = cli.connection;
    let remote = || Remote::new(&connection);
    let Some(command) = cli.command else {
        output::no_answer("")?;
        output::text(WHAT_NEXT);
        return Ok(());
    };
    if matches!(
        command,
        Command::Dev(_)
            | Command::Server(_)
            | Command::Executor(_)
            | Command::Store(_)
            | Command::History(_)
            | Command::Bench(_)
            | Command::Token(_)
            | Command::Secrets(_)
            | Command::Cluster(_)
    ) {
        campanile_ports::private::begin();
    }
    match command {
        Command::Dev(args) => output::no_answer("dev").and_then(|()| dev::run(args)),
        Command::Server(args) => output::no_answer("server").and_then(|()| server::run(args)),
        Command::Executor(args) => output::no_answer("executor").and_then(|()| executor::run(args, &connection)),
        Command::Job(command) => job::run(command, &remote()?, format),
        Command::Run(command) => run::run(command, &remote()?, format),
        Command::Dag(command) => dag::run(command, &remote()?, format),
        Command::Backfill(command) => backfill::run(command, &remote()?, format),
        Command::Bulk(command) => bulk_operation::run(command, &remote()?, format),
        Command::Dlq(command) => dlq::run(command, &remote()?, format),
        Command::Outbox(command) => outbox::run(command, &remote()?, format),
        Command::Tenant(command) => tenant::run(command, &remote()?, format),
        Command::Target(command) => target::run(command, &remote()?, format),
        Command::Calendar(command) => calendar::run(command, &remote()?, format),
        Command::System(command) => system::run(command, &remote()?, format),
        Command::Audit(command) => audit::run(command, &remote()?, format),
        Command::Apply(args) => apply::run(args, remote, format),
        Command::Plan(args) => plan::run(args, &remote()?, format),
        Command::Export(args) => export::run(args, &remote()?, format),
        Command::Import(command) => import::run(command, remote, format),
        Command::Cron(command) => cron::run(command, format),
        Command::Config(command) => settings::run(command),
        Command::Store(command) => store::run(command, &connection, format),
        Command::History(command) => history::run(command, remote, format),
        Command::Schema(command) => schema::run(command, format),
        Command::Bench(args) => output::no_answer("bench").and_then(|()| bench::run(args)),
        Command::Token(command) => credentials::token(command, format),
        Command::Secrets(command) => credentials::secrets(command),
        Command::Cluster(command) => cluster::run(command, remote, format),
        Command::Tail(args) => tail::run(args, &remote()?, format),
        Command::Top(args) => top::run(args, &remote()?, format),
        Command::Doctor(args) => doctor::run(args, &connection, format),
        Command::Man { dir } => {
            output::no_answer("man")?;
            let written = std::fs::create_dir_all(&dir).and_then(|()| clap_mangen::generate_to(Cli::command(), &dir));
            written.map_err(|error| Failure::here(format!("{}: {error}", dir.display())))
        }
        Command::Completions { shell } => {
            output::no_answer("completions")?;
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "campanile", &mut script);
            output::text(&String::from_utf8_lossy(&script));
            Ok(())
        }
    }
}

const WHAT_NEXT: &str = "\
Campanile: a distributed job scheduler.

  campanile dev                          a node with demo jobs on this machine; then, in another terminal:
  campanile job list                     what there is
  campanile job create --name hello --every 10 --sh 'echo hello from $CAMPANILE_JOB_NAME'
  campanile job runs hello               what it did
  campanile cron explain '0 2 * * *'     what a schedule means
  campanile import crontab /etc/crontab  your crontab as jobs (a dry run)
  campanile apply -f jobs.yaml --dry-run jobs from files; `campanile export` writes such a file

For keeps: campanile config default > campanile.toml, campanile token new --help, campanile server --help.
Something is wrong: campanile doctor. Everything: campanile --help.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
