//! `chaos`: real nodes on a real CQL server, executors and callers, and something that goes wrong; then the history checker's verdict. Each
//! scenario has a cluster of its own (a keyspace of the same server), and a network of its own where that is allowed.

mod act;
mod crowd;
mod net;
mod one;
mod probe;
pub mod relay;
pub mod scenario;
mod stage;
mod way;
mod world;

pub use act::When;

use crate::{checker::Kind, town::store::Store};
use clap::Args;
use net::Net;
use one::{Ground, Shown};
use scenario::Scenario;
use std::{error::Error, fs, path::PathBuf};
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
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only those of the short form.
    #[arg(long)]
    pub short: bool,
    /// Each scenario with its defect switched on in every node: each verdict must be red.
    #[arg(long)]
    pub broken: bool,
    /// Without namespaces: scenarios that need them are skipped.
    #[arg(long)]
    pub outside: bool,
    /// Nothing else runs here: what a misfire policy skips before the first act, or 8 s after the last one, is a defect; so is a trigger that is
    /// a second late in a restart in order.
    #[arg(long)]
    pub quiet_machine: bool,
    #[arg(long, default_value_t = 400)]
    pub jobs: u64,
    /// Due instants of all jobs, per second.
    #[arg(long, default_value_t = 60.0)]
    pub rate: f64,
    /// Jobs that are due at one moment in the scenario of that.
    #[arg(long, default_value_t = 100_000)]
    pub herd: u64,
    #[arg(long, default_value_t = 32)]
    pub shards: u16,
    /// At most 3: one more host is for executors that come later.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=3))]
    executor_count: u8,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Set by itself: this is the process in namespaces of its own.
    #[arg(long, hide = true)]
    inside: bool,
}

impl ChaosArgs {
    pub fn executors(&self) -> usize {
        usize::from(self.executor_count)
    }
}

/// True: every verdict is green; of broken nodes, every one is red.
pub async fn run(mut args: ChaosArgs) -> Result<bool, Box<dyn Error>> {
    let scenarios = chosen(&args)?;
    let mut why_not = args.outside.then(|| "--outside was asked for".to_owned());
    if args.inside {
        world::end_with_outer()?;
    } else if why_not.is_none() {
        why_not = block_in_place(world::missing);
        if why_not.is_none() {
            return Ok(block_in_place(world::run)?);
        }
    }
    fs::create_dir_all(&args.dir)?;
    if fs::read_dir(&args.dir)?.next().is_some() {
        return Err(format!("{} is not empty; name a new directory or empty it", args.dir.display()).into());
    }
    args.dir = args.dir.canonicalize()?;
    args.server_bin = args.server_bin.canonicalize()?;
    let net = if args.inside { Some(block_in_place(Net::new)?) } else { None };
    let mut run = Run { args: &args, net, table: Vec::new(), failed: 0, skipped: 0 };
    let possible = |scenario: &&&Scenario| run_is_possible(scenario, why_not.is_none());
    for scenario in scenarios.iter().filter(|scenario| !possible(scenario)) {
        let why = why_not.as_deref().unwrap_or_default();
        run.skipped += 1;
        run.row(format!("{:<19} SKIPPED: no namespaces here: {why}", scenario.name));
    }
    for servers in [1, 3] {
        let group: Vec<_> = scenarios.iter().filter(possible).filter(|scenario| scenario.stores == servers).collect();
        if group.is_empty() {
            continue;
        }
        let dir = args.dir.join(format!("store-{servers}"));
        fs::create_dir_all(&dir)?;
        let mut store = block_in_place(|| Store::start(&args.store, &dir, servers, run.net.is_some(), None))?;
        for scenario in group {
            run.scenario(scenario, &mut store).await;
        }
    }
    run.end()
}

fn run_is_possible(scenario: &Scenario, in_world: bool) -> bool {
    in_world || !scenario.needs_world()
}

fn chosen(args: &ChaosArgs) -> Result<Vec<&'static Scenario>, String> {
    if args.only.is_empty() {
        return Ok(Scenario::all().filter(|scenario| scenario.short || !args.short).collect());
    }
    let known: Vec<&str> = Scenario::all().map(|scenario| scenario.name).collect();
    let find = |name: &String| {
        Scenario::find(name).ok_or_else(|| format!("no scenario '{name}'; there are: {}", known.join(", ")))
    };
    args.only.iter().map(find).collect()
}

/// What has been shown so far.
struct Run<'a> {
    args: &'a ChaosArgs,
    net: Option<Net>,
    table: Vec<String>,
    failed: usize,
    skipped: usize,
}

impl Run<'_> {
    fn row(&mut self, line: String) {
        println!("{line}");
        self.table.push(line);
    }

    async fn scenario(&mut self, scenario: &Scenario, store: &mut Store) {
        println!("scenario {}: {}", scenario.name, scenario.what);
        let dir = self.args.dir.join(scenario.name);
        let keyspace = format!("chaos{}", self.table.len());
        let ground = Ground { args: self.args, net: self.net.as_ref(), dir: &dir, keyspace: &keyspace };
        let shown = one::run(&ground, scenario, store).await;
        // Whatever broke off, the next one finds the network whole and the store awake.
        let healed = self.net.as_ref().map_or(Ok(()), Net::heal_all);
        if let Err(error) = healed.and(block_in_place(|| store.wake())) {
            println!("what was cut or stands still did not come back: {error}");
        }
        let (good, line) = match shown {
            Ok(shown) if self.args.broken => is_found(scenario, &shown),
            Ok(shown) => {
                if !shown.verdict.green {
                    println!("{}", shown.verdict);
                }
                let good = shown.verdict.green && !shown.restless && !lost_one(scenario, &shown);
                (good && !self.too_late(scenario, &shown), row(scenario, &shown, self.too_late(scenario, &shown)))
            }
            Err(error) => (false, format!("{:<19} FAILED: {error}", scenario.name)),
        };
        self.failed += usize::from(!good);
        self.row(line);
    }

    /// Something was later than it may be where nothing has died. Where other work takes the processors, that says nothing.
    fn too_late(&self, scenario: &Scenario, shown: &Shown) -> bool {
        self.args.quiet_machine && scenario.latest_ms.is_some_and(|most| shown.latest_ms > most)
    }

    fn end(self) -> Result<bool, Box<dyn Error>> {
        let whole = self.table.join("\n");
        fs::write(self.args.dir.join("chaos.txt"), format!("{whole}\n"))?;
        let ran = self.table.len() - self.skipped;
        // Where nothing could be run nothing has passed.
        let word = match (self.failed, ran) {
            (0, 0) => "SKIPPED",
            (0, _) => "GREEN",
            (_, _) => "RED",
        };
        let broken = if self.args.broken { " with their defects switched on" } else { "" };
        println!(
            "\n{whole}\n{word} chaos: {ran} scenarios{broken}, {} not as they must be, {} SKIPPED",
            self.failed, self.skipped
        );
        Ok(self.failed == 0)
    }
}

/// A node lost its session, and none had to.
fn lost_one(scenario: &Scenario, shown: &Shown) -> bool {
    scenario.keeps_sessions && shown.sessions_lost > 0
}

/// A defect was switched on: whether the checker saw it.
fn is_found(scenario: &Scenario, shown: &Shown) -> (bool, String) {
    // Of these nothing follows but that nothing was shown.
    let nothing = [Kind::ExportIncomplete, Kind::LogDamaged, Kind::NotCheckable];
    let kinds: Vec<_> = shown.verdict.found.iter().filter(|found| !nothing.contains(&found.kind)).collect();
    let mut told: Vec<String> = kinds.iter().map(|found| format!("{:?} x {}", found.kind, found.count)).collect();
    if lost_one(scenario, shown) {
        told.push(format!("sessions lost x {}", shown.sessions_lost));
    }
    if shown.restless {
        told.push("shards that do not come to rest".to_owned());
    }
    let word = if told.is_empty() { "GREEN, not found" } else { "red, as it must be" };
    (!told.is_empty(), format!("{:<19} {word}; {}: {}", scenario.name, scenario.defect, told.join(", ")))
}

fn row(scenario: &Scenario, shown: &Shown, too_late: bool) -> String {
    let late = |share: f64| {
        let at = (shown.lateness_ms.len() as f64 * share) as usize;
        shown.lateness_ms.get(at.min(shown.lateness_ms.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    let word = match (shown.verdict.green, lost_one(scenario, shown), shown.restless) {
        (false, _, _) => "RED",
        (true, true, _) => "RED, for lost sessions",
        (true, false, true) => "RED, shards do not come to rest",
        (true, false, false) if too_late => "RED, too late",
        (true, false, false) => "green",
    };
    let what = if scenario.takes_over { "take-over" } else { "lateness" };
    format!(
        "{:<19} {word:<6} {what} p50 {} p99 {} worst {} ms of {} instants, {} ms of all; {} hand-overs; ready {} of {} s; {} runs wait for a \
         person; calls answered by each node: {}",
        scenario.name,
        late(0.5),
        late(0.99),
        late(1.0),
        shown.lateness_ms.len(),
        shown.latest_ms,
        shown.hand_overs,
        shown.availability.some(),
        shown.availability.seconds(),
        shown.open,
        shown.calls_answered.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
    )
}
