//! `chaos`: three real nodes on a real CQL server, executors and callers, and something that goes wrong; then the history checker's
//! verdict. Each scenario has a cluster of its own (a keyspace of the same server).

mod one;
mod probe;
pub mod scenario;
mod store;
mod town;

use clap::Args;
use one::Shown;
use scenario::{ALL, Scenario};
use std::{error::Error, fs, path::PathBuf};
use store::Store;
use tokio::task::block_in_place;

#[derive(Args, Clone, Debug)]
pub struct ChaosArgs {
    /// The node's program.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// The script that starts the store: deploy/cassandra/cassandra.sh.
    #[arg(long)]
    pub store: PathBuf,
    /// New or empty; the files of each scenario stay there, in a directory of its name.
    #[arg(long)]
    pub dir: PathBuf,
    /// Only these scenarios, by name.
    #[arg(long)]
    pub only: Vec<String>,
    /// Only those of the short form.
    #[arg(long)]
    pub short: bool,
    #[arg(long, default_value_t = 400)]
    pub jobs: u64,
    /// Due instants of all jobs, per second.
    #[arg(long, default_value_t = 60.0)]
    pub rate: f64,
    #[arg(long, default_value_t = 32)]
    pub shards: u16,
    #[arg(long, default_value_t = 2)]
    pub executors: usize,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// True: every verdict is green.
pub async fn run(mut args: ChaosArgs) -> Result<bool, Box<dyn Error>> {
    let scenarios = chosen(&args)?;
    fs::create_dir_all(&args.dir)?;
    if fs::read_dir(&args.dir)?.next().is_some() {
        return Err(format!("{} is not empty; name a new directory or empty it", args.dir.display()).into());
    }
    args.dir = args.dir.canonicalize()?;
    args.server_bin = args.server_bin.canonicalize()?;
    let mut store = block_in_place(|| Store::start(&args.store, &args.dir, 1))?;
    let mut table = Vec::new();
    let mut green = true;
    for (n, scenario) in scenarios.iter().enumerate() {
        println!("scenario {}: {}", scenario.name, scenario.what);
        let dir = args.dir.join(scenario.name);
        let shown = one::run(&args, scenario, &mut store, &dir, &format!("chaos{n}")).await;
        let line = match shown {
            Ok(shown) => {
                green &= shown.verdict.green;
                if !shown.verdict.green {
                    println!("{}", shown.verdict);
                }
                row(scenario, &shown)
            }
            Err(error) => {
                green = false;
                format!("{:<18} FAILED: {error}", scenario.name)
            }
        };
        println!("{line}");
        table.push(line);
    }
    let whole = table.join("\n");
    fs::write(args.dir.join("chaos.txt"), format!("{whole}\n"))?;
    println!("\n{whole}\n{} chaos: {} scenarios", if green { "GREEN" } else { "RED" }, scenarios.len());
    Ok(green)
}

fn chosen(args: &ChaosArgs) -> Result<Vec<&'static Scenario>, String> {
    if args.only.is_empty() {
        return Ok(ALL.iter().filter(|scenario| scenario.short || !args.short).collect());
    }
    let known: Vec<&str> = ALL.iter().map(|scenario| scenario.name).collect();
    let find = |name: &String| {
        Scenario::find(name).ok_or_else(|| format!("no scenario '{name}'; there are: {}", known.join(", ")))
    };
    args.only.iter().map(find).collect()
}

fn row(scenario: &Scenario, shown: &Shown) -> String {
    let late = |share: f64| {
        let at = (shown.lateness_ms.len() as f64 * share) as usize;
        shown.lateness_ms.get(at.min(shown.lateness_ms.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    let word = if shown.verdict.green { "green" } else { "RED" };
    let what = if scenario.takes_over { "take-over" } else { "lateness" };
    format!(
        "{:<18} {word:<6} {what} p50 {} p99 {} worst {} ms of {} instants; ready {} of {} s; {} runs wait for a person",
        scenario.name,
        late(0.5),
        late(0.99),
        late(1.0),
        shown.lateness_ms.len(),
        shown.availability.some,
        shown.availability.seconds,
        shown.open,
    )
}
