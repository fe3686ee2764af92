//! `peers`: other schedulers (rivals) side by side with ours, on the same machine in the same run, equally durable,
//! with the same body that does nothing, and with lateness measured in the same way. See `docs/loadtest.md`, "Beside
//! rivals".
//!
//! It installs and builds nothing (`loadtest/peers/prepare.sh` does), changes no database but its own, and leaves no
//! process.

mod ladder;
mod lines;
mod ours;
mod postgres;
mod report;
mod rival;
mod step;

use crate::{process::proc_stat::machine_cpu_us, report::machine::Machine};
use clap::Args;
use ladder::{LadderKind, Ladders};
use postgres::Cluster;
use report::{Climb, LeftOut, Report};
use rival::{RIVALS, Rival, Rung};
use std::{
    error::Error,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};
use step::Step;
use tokio::task::block_in_place;

#[derive(Args, Clone, Debug)]
pub struct PeersArgs {
    /// The node's program, a release build.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// New or empty; the reports stay there, and what the programs printed.
    #[arg(long)]
    pub dir: PathBuf,
    /// What `loadtest/peers/prepare.sh` built, a directory for each rival.
    #[arg(long)]
    pub built: PathBuf,
    /// File of the rates that are tried.
    #[arg(long)]
    pub ladder: PathBuf,
    /// Length of a window, seconds.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Systems that are measured: campanile, graphile-worker, river, db-scheduler, quartz, temporal. Default: all.
    #[arg(long, num_args = 1..)]
    pub peers: Vec<String>,
    /// This file is locked while windows are measured: others that measure on the machine can lock it too.
    #[arg(long)]
    pub lock: Option<PathBuf>,
    /// The lock is free for a moment when it was held so long, seconds.
    #[arg(long, default_value_t = 180)]
    pub lock_seconds: u64,
    /// Before each window, wait at most so long until others use little of the machine, seconds. Then it is measured anyhow; the
    /// report tells what they used.
    #[arg(long, default_value_t = 0)]
    pub quiet_wait: u64,
}

/// Others use little when it is less than this, cores.
const QUIET_CORES: f64 = 0.2;
/// Looked at for so long.
const QUIET_LOOK: Duration = Duration::from_secs(1);

/// True: something was measured, and nothing ended early.
pub async fn run(args: PeersArgs) -> Result<bool, Box<dyn Error>> {
    let ladders = ladder::read(&fs::read_to_string(&args.ladder)?)?;
    let known: Vec<&str> = std::iter::once(ours::NAME).chain(RIVALS.iter().map(|rival| rival.name)).collect();
    if let Some(unknown) = args.peers.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("no system is called {unknown}: {}", known.join(", ")).into());
    }
    fs::create_dir_all(&args.dir)?;
    if fs::read_dir(&args.dir)?.next().is_some() {
        return Err(format!("{} is not empty; name a new directory or empty it", args.dir.display()).into());
    }
    let session = PeerComparison { dir: args.dir.canonicalize()?, ladders, args };
    let mut found =
        PeerMeasurements { machine: Machine::here(session.server_version()?), ..PeerMeasurements::default() };
    if session.wants(ours::NAME) {
        session.climb_ours(&mut found).await?;
    }
    for rival in RIVALS.iter().filter(|rival| session.wants(rival.name)) {
        block_in_place(|| session.climb_rival(rival, &mut found))?;
    }
    let report = session.write(&found)?;
    println!("\n{}", report::text(&report));
    Ok(!report.climbs.is_empty() && report.climbs.iter().all(|climb| climb.error.is_none()))
}

/// What was measured so far.
#[derive(Default)]
struct PeerMeasurements {
    machine: Machine,
    database: String,
    climbs: Vec<Climb>,
    left_out: Vec<LeftOut>,
    lock: Option<(File, Instant)>,
}

struct PeerComparison {
    args: PeersArgs,
    dir: PathBuf,
    ladders: Ladders,
}

impl PeerComparison {
    fn wants(&self, name: &str) -> bool {
        self.args.peers.is_empty() || self.args.peers.iter().any(|wanted| wanted == name)
    }

    fn rates(&self, system: &str, kind: LadderKind) -> Option<&[u64]> {
        self.ladders.get(system)?.get(&kind).map(Vec::as_slice)
    }

    fn server_version(&self) -> io::Result<String> {
        let out = Command::new(&self.args.server_bin).arg("--version").output()?;
        Ok(String::from_utf8_lossy(&out.stdout).trim().trim_start_matches("campanile ").to_owned())
    }

    async fn climb_ours(&self, found: &mut PeerMeasurements) -> Result<(), Box<dyn Error>> {
        for kind in LadderKind::ALL {
            let Some(rates) = self.rates(ours::NAME, kind) else { continue };
            found.climbs.push(Climb {
                system: ours::NAME.to_owned(),
                title: "Campanile".to_owned(),
                kind,
                version: found.machine.server_version.clone(),
                settings: ours::settings(),
                steps: Vec::new(),
                error: None,
                at_least: false,
            });
            let at = found.climbs.len() - 1;
            while let Some(rate) = ladder::next(rates, &found.climbs[at].tried()) {
                block_in_place(|| self.lock(&mut found.lock))?;
                let dir = self.dir.join("campanile");
                let step = ours::measure_rung(&self.args.server_bin, &dir, kind, rate, self.args.seconds).await;
                if !self.note(found, step.map_err(|error| error.to_string()))? {
                    break;
                }
            }
            found.climbs[at].ends();
        }
        Ok(())
    }

    fn climb_rival(&self, rival: &Rival, found: &mut PeerMeasurements) -> Result<(), Box<dyn Error>> {
        // Written when it could not be installed or built.
        let missing = self.args.built.join(rival.name).join("missing");
        let reason = match fs::read_to_string(&missing) {
            Ok(reason) => Some(reason.trim().to_owned()),
            Err(_) if !self.args.built.join(rival.name).exists() => Some("it was not built".to_owned()),
            Err(_) => None,
        };
        let cluster = match reason {
            Some(reason) => Err(reason),
            None => Cluster::start(&self.dir.join("postgresql")).map_err(|error| error.to_string()),
        };
        let cluster = match cluster {
            Ok(cluster) => cluster,
            Err(reason) => {
                println!("{}: left out: {reason}", rival.title);
                found.left_out.push(LeftOut { system: rival.title.to_owned(), reason });
                return Ok(());
            }
        };
        found.database.clone_from(&cluster.version);
        for kind in rival.kinds {
            self.climb_kind(rival, *kind, &cluster, found)?;
        }
        drop(cluster);
        // The next rival begins with a new one.
        fs::remove_dir_all(self.dir.join("postgresql"))?;
        Ok(())
    }

    fn climb_kind(
        &self,
        rival: &Rival,
        kind: LadderKind,
        cluster: &Cluster,
        found: &mut PeerMeasurements,
    ) -> Result<(), Box<dyn Error>> {
        let Some(rates) = self.rates(rival.name, kind) else { return Ok(()) };
        found.climbs.push(Climb {
            system: rival.name.to_owned(),
            title: rival.title.to_owned(),
            kind,
            version: String::new(),
            settings: String::new(),
            steps: Vec::new(),
            error: None,
            at_least: false,
        });
        let at = found.climbs.len() - 1;
        while let Some(rate) = ladder::next(rates, &found.climbs[at].tried()) {
            self.lock(&mut found.lock)?;
            let log = self.dir.join(format!("{}.log", rival.name));
            let seconds = self.args.seconds;
            let measured = Rung { rival, kind, rate, seconds, built: &self.args.built, cluster, log }.measure();
            let step = measured.map(|measured| {
                (found.climbs[at].version, found.climbs[at].settings) = (measured.version, measured.settings);
                measured.step
            });
            if !self.note(found, step.map_err(|error| error.to_string()))? {
                break;
            }
        }
        found.climbs[at].ends();
        Ok(())
    }

    /// Adds a step to the last climb and writes the report, so that a run that is stopped leaves what it saw. False: the climb is over.
    fn note(&self, found: &mut PeerMeasurements, step: Result<Step, String>) -> Result<bool, Box<dyn Error>> {
        let Some(climb) = found.climbs.last_mut() else { return Ok(false) };
        let goes_on = step.is_ok();
        match step {
            Ok(step) => {
                println!(
                    "{}, {}, {}/s: {} of {} started, p99 {:.0} ms, {:.0} us of CPU a job: {}",
                    climb.title,
                    climb.kind.word(),
                    step.rate,
                    step.started,
                    step.due,
                    step.lateness.p99_ms,
                    step.cpu_us_per_job,
                    if step.holds { "holds" } else { "does not hold" }
                );
                climb.steps.push(step);
            }
            Err(error) => {
                println!("{}, {}: {error}", climb.title, climb.kind.word());
                climb.error = Some(error);
            }
        }
        self.write(found)?;
        Ok(goes_on)
    }

    fn write(&self, found: &PeerMeasurements) -> Result<Report, Box<dyn Error>> {
        let report = report::report(
            found.machine.clone(),
            (found.database.clone(), postgres::settings()),
            (self.args.seconds, rival::WARM_SECONDS),
            found.climbs.clone(),
            found.left_out.clone(),
        );
        fs::write(self.dir.join("report.json"), serde_json::to_string_pretty(&report)?)?;
        fs::write(self.dir.join("report.md"), report::text(&report))?;
        Ok(report)
    }

    /// Takes the lock, or keeps it when it was not held for long, and waits for a quiet moment.
    fn lock(&self, held: &mut Option<(File, Instant)>) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(self.args.quiet_wait);
        if held.as_ref().is_some_and(|(_, since)| since.elapsed().as_secs() >= self.args.lock_seconds) {
            // Who waits for it gets it before we ask again.
            *held = None;
            std::thread::sleep(QUIET_LOOK);
        }
        if let (Some(path), None) = (&self.args.lock, &held) {
            let file = open_for_lock(path)?;
            file.lock()?;
            *held = Some((file, Instant::now()));
        }
        while Instant::now() < deadline && busy_cores(QUIET_LOOK)? >= QUIET_CORES {}
        Ok(())
    }
}

/// What the machine is busy with now; nothing of ours is.
fn busy_cores(look: Duration) -> io::Result<f64> {
    let (before, begin) = (machine_cpu_us()?, Instant::now());
    std::thread::sleep(look);
    Ok(machine_cpu_us()?.saturating_sub(before) as f64 / 1e6 / begin.elapsed().as_secs_f64())
}

fn open_for_lock(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}
