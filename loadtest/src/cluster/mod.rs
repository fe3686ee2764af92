//! `bench-cluster`: what a trigger costs on one, two and three nodes with a real CQL server: lateness, CPU of all
//! processes, requests to the store. With `--kill`: how long no node serves the shards of a killed node when they hold
//! very many jobs. With `--drain`: how late triggers are when a node with very many jobs is stopped in order.
//!
//! Each number of nodes has a new server of its own, so that the data of one run does not slow down the next one.

mod jobs;
mod measure_nodes;
pub(crate) mod metrics;
mod report;
mod sample;
mod take_over;

use crate::report::machine::Machine;
use clap::Args;
use report::{Measured, Report};
use std::{error::Error, fs, num::NonZero, path::PathBuf};

/// What is asked for unless a flag says otherwise, and where a node leaves.
const USUAL: Size = Size { jobs: 100_000, rate: 5_000.0, tenants: 10 };
const TAKE_OVER: Size = Size { jobs: 1_000_000, rate: 2_000.0, tenants: 10 };

#[derive(Args, Clone, Debug)]
pub struct ClusterBenchArgs {
    /// The node's program, a release build.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// The script that starts the store: deploy/cassandra/cassandra.sh.
    #[arg(long)]
    pub store: PathBuf,
    /// New or empty; the files of each number of nodes stay there, in a directory of its own.
    #[arg(long)]
    pub dir: PathBuf,
    /// Numbers of nodes, one after the other; with --kill and --drain only 3 unless named.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=5))]
    pub nodes: Vec<u8>,
    /// Due instants of all jobs, per second. [default: 5000; with --kill and --drain 2000]
    #[arg(long)]
    pub rate: Option<f64>,
    /// [default: 100000; with --kill and --drain 1000000]
    #[arg(long)]
    pub jobs: Option<u64>,
    /// Tenants that share the jobs.
    #[arg(long, default_value_t = USUAL.tenants)]
    pub tenants: u64,
    /// Length of what is measured; with --kill and --drain, how long is looked at after it.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// The same load before it, when all jobs are there. [default: 30; with --kill and --drain 150, so that snapshots have what was just created: else
    /// the take-over would replay the creation]
    #[arg(long)]
    pub warm_seconds: Option<u64>,
    #[arg(long, default_value_t = 4)]
    pub executors: usize,
    /// Bodies at once, per executor.
    #[arg(long, default_value_t = 4_096)]
    pub slots: u32,
    #[arg(long, default_value_t = 256)]
    pub shards: u16,
    /// Lease of the nodes' sessions, milliseconds.
    #[arg(long, default_value_t = 2_500)]
    pub lease: u32,
    /// kill -9 of the node that owns most shards, and how long until all of them are fired again.
    #[arg(long)]
    pub kill: bool,
    /// SIGTERM to the node that owns most shards, as an operator stops it, and the longest delay of any trigger.
    #[arg(long, conflicts_with = "kill")]
    pub drain: bool,
    /// Heap of the CQL server.
    #[arg(long, default_value = "1g")]
    pub store_heap: String,
    /// Threads of each node (`node.threads`); 0: the machine's processors divided among the nodes, one at the least.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// More settings of every node, as in the environment: CLUSTER__LINGER_US=5000.
    #[arg(long, value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Exit code 1 also when a target is missed; without it only when something was not started.
    #[arg(long)]
    pub strict: bool,
}

/// How much is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    pub jobs: u64,
    /// Instants a second.
    pub rate: f64,
    pub tenants: u64,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("is SECTION__KEY=VALUE")?;
    let name = name.strip_prefix("CAMPANILE_").unwrap_or(name);
    if !name.contains("__") {
        return Err("is SECTION__KEY=VALUE, with two '_' between section and key".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

impl ClusterBenchArgs {
    /// A node leaves while it is measured.
    pub fn leaves(&self) -> bool {
        self.kill || self.drain
    }

    pub fn size(&self) -> Size {
        let usual = if self.leaves() { TAKE_OVER } else { USUAL };
        let (jobs, rate) = (self.jobs.unwrap_or(usual.jobs), self.rate.unwrap_or(usual.rate));
        Size { jobs, rate, tenants: self.tenants }
    }

    /// Of each of so many nodes. They share the processors, and threads that have little to do wake each other for each message.
    pub fn threads_of(&self, nodes: usize) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
        if self.threads > 0 { self.threads } else { (processors() / nodes.max(1)).max(1) }
    }

    pub fn warm_seconds(&self) -> u64 {
        self.warm_seconds.unwrap_or(if self.leaves() { 150 } else { 30 })
    }

    /// Or why it cannot be.
    fn numbers(&self) -> Result<Vec<usize>, String> {
        let nodes = match (self.nodes.as_slice(), self.leaves()) {
            ([], true) => vec![3],
            ([], false) => vec![1, 2, 3],
            (named, _) => named.iter().map(|n| usize::from(*n)).collect(),
        };
        if self.leaves() && nodes.contains(&1) {
            return Err("--kill and --drain need two nodes at least: nobody would take over".to_owned());
        }
        if self.seconds < 5 || self.executors == 0 {
            return Err("--seconds is at least 5, and --executors at least 1".to_owned());
        }
        let size = self.size();
        if !(size.rate > 0.0 && size.rate.is_finite()) || size.jobs == 0 {
            return Err("--rate and --jobs are above 0".to_owned());
        }
        jobs::Jobs::new(&size, 0).map(|_| nodes)
    }
}

/// True: everything was started; with `--strict`, and the targets were reached.
pub async fn run(mut args: ClusterBenchArgs) -> Result<bool, Box<dyn Error>> {
    let numbers = args.numbers()?;
    fs::create_dir_all(&args.dir)?;
    if fs::read_dir(&args.dir)?.next().is_some() {
        return Err(format!("{} is not empty; name a new directory or empty it", args.dir.display()).into());
    }
    args.dir = args.dir.canonicalize()?;
    let told = |what: &str, path: &PathBuf| path.canonicalize().map_err(|e| format!("{what} {}: {e}", path.display()));
    args.server_bin = told("--server-bin", &args.server_bin)?;
    args.store = told("--store", &args.store)?;
    let mut measured: Vec<Measured> = Vec::new();
    for nodes in numbers.iter().copied() {
        println!("== {nodes} {}", if nodes == 1 { "node" } else { "nodes" });
        let dir = args.dir.join(format!("nodes-{nodes}"));
        fs::create_dir_all(&dir)?;
        // What one number of nodes could not do leaves the others theirs.
        let found = measure_nodes::measure(&args, nodes, &dir).await;
        let one = found.unwrap_or_else(|error| Measured::failed(nodes, error.to_string()));
        println!("{}", report::lines(&one));
        measured.push(one);
        // Whatever ends the run later leaves what was seen until now.
        reported(&args, &measured, numbers.len()).write(&args.dir)?;
    }
    let report = reported(&args, &measured, numbers.len());
    println!("{}", report::text(&report));
    println!("{} bench-cluster: {}", report.word(), args.dir.join("report.html").display());
    Ok(report.is_good(args.strict))
}

fn reported(args: &ClusterBenchArgs, measured: &[Measured], asked: usize) -> Report {
    let server = measured.iter().map(|one| one.version.clone()).find(|version| !version.is_empty());
    Report::new(args, Machine::here(server.unwrap_or_default()), measured.to_vec(), asked)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: ClusterBenchArgs,
    }

    fn args(more: &[&str]) -> ClusterBenchArgs {
        let all = ["x", "--server-bin", "b", "--store", "s", "--dir", "d"].into_iter().chain(more.iter().copied());
        Cli::try_parse_from(all).map_err(|e| e.to_string()).unwrap().args
    }

    #[test]
    fn a_report_before_the_last_number_of_nodes_is_not_green() {
        let one = Measured { nodes: 1, all_started: true, ..Measured::default() };
        let after = |asked| reported(&args(&[]), std::slice::from_ref(&one), asked);
        assert_eq!((after(1).whole, after(3).whole, after(3).outstanding), (true, false, 2));
    }

    #[test]
    fn a_take_over_has_sizes_of_its_own_and_what_cannot_be_is_told() {
        assert_eq!((args(&[]).size(), args(&[]).numbers()), (USUAL, Ok(vec![1, 2, 3])));
        assert_eq!((args(&["--kill"]).size(), args(&["--kill"]).numbers()), (TAKE_OVER, Ok(vec![3])));
        assert_eq!(args(&["--kill", "--jobs", "5000", "--rate", "7"]).size(), Size { jobs: 5_000, rate: 7.0, ..USUAL });
        assert_eq!((args(&["--threads", "5"]).threads_of(3), args(&[]).threads_of(10_000)), (5, 1));
        for one in ["--kill", "--drain"] {
            assert!(args(&[one, "--nodes", "1"]).numbers().is_err_and(|why| why.contains("nobody would take over")));
        }
        assert_eq!((args(&["--drain"]).size(), args(&["--drain"]).warm_seconds()), (TAKE_OVER, 150));
        assert!(Cli::try_parse_from(["x", "--kill", "--drain"]).is_err());
        let wrong = |more: &[&str]| args(more).numbers().unwrap_err();
        assert!(wrong(&["--jobs", "10"]).contains("name more --jobs"));
        assert!(wrong(&["--rate", "0"]).contains("above 0"));
        assert!(wrong(&["--seconds", "1"]).contains("at least 5"));
        assert_eq!(args(&["--set", "CLUSTER__LANES=2"]).set, [("CLUSTER__LANES".to_owned(), "2".to_owned())]);
        assert!(setting("lanes=2").is_err());
        assert!(setting("CLUSTER__LANES").is_err());
    }
}
