//! `run`: carries out workload files against a real system, second by second, and judges each by what its file expects.

mod calls;
mod close;
mod create;
mod early;
mod finish;
mod measure;
mod observations;
mod progress;
mod ramp;
mod run_workload;
mod seconds;
mod stop;
mod system;
mod traces;
mod watch;

use crate::{
    limits::{LEAST_FREE_MIB, REPEATS, WORKLOAD_BYTES},
    report::summary::{self, Runs},
    scenario::{
        Scenario, builtin,
        read::{Forms, read},
        words::closest,
    },
};
use clap::Args;
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use stop::Stop;

#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Workload files, or names of workloads that come with the program (`workloads` lists them)
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Each run gets the directory DIR/NAME, with --repeat DIR/NAME/1 and so on, which must be new or empty
    #[arg(long, default_value = "loadtest-runs")]
    pub dir: PathBuf,
    /// The node's program [default: `campanile` beside this one, or in PATH]
    #[arg(long)]
    pub server_bin: Option<PathBuf>,
    /// The short form of each file
    #[arg(long)]
    pub short: bool,
    /// Runs of each workload: medians, lowest and highest of them are in DIR/summary.md
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(REPEATS)))]
    pub repeat: u32,
    /// A target that is missed is a broken limit
    #[arg(long)]
    pub strict: bool,
    /// Judge the history of each workload that can be checked
    #[arg(long)]
    pub check: bool,
    /// RPC address, host:port, of a node that runs already; without it a node is started
    #[arg(long, requires = "token")]
    pub rpc: Option<String>,
    /// HTTP address of that node, for its metrics, the probe of availability, and jobs that are created through HTTP
    #[arg(long, requires = "rpc")]
    pub http: Option<String>,
    /// Token of role OPERATOR
    #[arg(long)]
    pub token: Option<String>,
    /// Token of role EXECUTOR [default: the one of --token]
    #[arg(long, requires = "rpc")]
    pub executor_token: Option<String>,
    /// Process of that node, when it is on this machine: its CPU and memory
    #[arg(long, requires = "rpc")]
    pub server_pid: Option<u32>,
    /// Leave the jobs on a node that runs already
    #[arg(long, requires = "rpc")]
    pub keep_jobs: bool,
    /// MiB that must stay free on the disk of DIR; below it a run does not start, or ends
    #[arg(long, default_value_t = LEAST_FREE_MIB)]
    pub least_free_mib: u64,
}

impl RunArgs {
    /// The node's program.
    fn server(&self) -> Result<PathBuf, String> {
        let advice = "name it with --server-bin, or a node that runs already with --rpc";
        if let Some(named) = &self.server_bin {
            return named.canonicalize().map_err(|error| format!("{}: {error}: {advice}", named.display()));
        }
        let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("campanile")));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&path).map(|dir| dir.join("campanile"));
        let found = beside.into_iter().chain(in_path).find(|file| file.is_file());
        found.ok_or_else(|| format!("there is no program `campanile` beside this one or in PATH: {advice}"))
    }
}

/// How a run, or all of them together, came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Green,
    /// A limit was broken.
    Red,
    /// It could not be made, or not to its end.
    NotRun,
    /// Somebody ended it.
    Interrupted,
}

impl Outcome {
    /// Of the process.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Green => 0,
            Self::Red => 1,
            Self::NotRun => 2,
            Self::Interrupted => 130,
        }
    }
}

/// A file with what was read from it.
struct Work {
    shown: String,
    forms: Forms,
}

/// Runs all files, one after the other. All are read before the first is run: a slip in the last one should not cost an hour.
pub async fn run(args: RunArgs) -> Outcome {
    let stop = Stop::on_signals();
    let mut works = Vec::new();
    let mut wrong = false;
    for file in &args.files {
        match work(file) {
            Ok(work) => works.push(work),
            Err(message) => {
                eprintln!("error: {message}");
                wrong = true;
            }
        }
    }
    if wrong {
        return Outcome::NotRun;
    }
    let mut outcomes = Vec::new();
    let mut all: Vec<Runs> = Vec::new();
    'works: for work in &works {
        let scenario = if args.short { &work.forms.short } else { &work.forms.full };
        let most = if scenario.repeat_at_most == 0 { args.repeat } else { args.repeat.min(scenario.repeat_at_most) };
        all.push(Runs { name: scenario.name.clone(), ..Runs::default() });
        for n in 1..=most {
            let name = if args.repeat == 1 { scenario.name.clone() } else { format!("{}/{n}", scenario.name) };
            let (outcome, report) = match directory(&args.dir, &name) {
                Ok(dir) => run_workload::run(&args, &work.shown, scenario, &dir, stop.clone()).await,
                Err(message) => {
                    eprintln!("error: {message}");
                    (Outcome::NotRun, None)
                }
            };
            outcomes.push((name, outcome));
            if let Some(runs) = all.last_mut() {
                runs.failed += usize::from(report.is_none());
                runs.reports.extend(report);
            }
            // After each run, so that one that is stopped leaves what it saw.
            summarize(&all, &args.dir);
            if outcome == Outcome::Interrupted {
                break 'works;
            }
        }
    }
    if outcomes.len() > 1 {
        println!("\n{}", summary::text(&all));
        outcomes.iter().for_each(|(name, outcome)| println!("{:<16} {outcome:?}", name));
    }
    outcomes.iter().map(|(_, outcome)| *outcome).max().unwrap_or(Outcome::NotRun)
}

/// Nothing where there is nothing to tell.
fn summarize(all: &[Runs], dir: &Path) {
    if all.iter().any(|runs| !runs.reports.is_empty())
        && let Err(error) = summary::write(all, dir)
    {
        eprintln!("error: {}: {error}", dir.join(summary::FILE).display());
    }
}

/// A file, or a workload that comes with the program.
fn work(file: &Path) -> Result<Work, String> {
    let shown = file.display().to_string();
    if !file.exists() {
        let known = builtin::WORKLOADS;
        if let Some((name, text)) = known.iter().find(|(name, _)| *name == shown) {
            let forms = read(&format!("{name}.toml"), text).map_err(|wrong| wrong.to_string())?;
            return Ok(Work { shown: format!("{name} (comes with the program)"), forms });
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let hint = match closest(&shown, names.iter().copied()) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("the workloads that come with the program are {}", names.join(", ")),
        };
        return Err(format!("{shown}: there is no such file; {hint}"));
    }
    let size = fs::metadata(file).map_err(|error| format!("{shown}: {error}"))?.len();
    if size > WORKLOAD_BYTES {
        return Err(format!("{shown}: {size} bytes; a workload file has at most {WORKLOAD_BYTES}"));
    }
    let text = fs::read_to_string(file).map_err(|error| format!("{shown}: {error}"))?;
    let forms = read(&shown, &text).map_err(|wrong| wrong.to_string())?;
    Ok(Work { shown, forms })
}

/// Makes the run's directory: two histories in one prove nothing.
fn directory(base: &Path, name: &str) -> Result<PathBuf, String> {
    let dir = base.join(name);
    let told = |error: io::Error| format!("{}: {error}", dir.display());
    fs::create_dir_all(&dir).map_err(told)?;
    if fs::read_dir(&dir).map_err(told)?.next().is_some() {
        return Err(format!(
            "{} is not empty, it holds an earlier run: remove it, or name another directory with --dir",
            dir.display()
        ));
    }
    dir.canonicalize().map_err(told)
}

#[derive(Args, Clone, Debug)]
pub struct WorkloadsArgs {
    /// Write the files into this directory, to be copied and changed
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
}

/// `workloads`: lists what comes with the program, or writes it as files. Existing files are not overwritten.
pub fn workloads(args: &WorkloadsArgs) -> Result<(), String> {
    for (name, text) in builtin::WORKLOADS {
        match &args.write {
            None => {
                let forms = read(name, text).map_err(|wrong| wrong.to_string())?;
                let Scenario { about, .. } = &forms.full;
                println!("{name:<14} {:>5} s, short {:>3} s  {about}", forms.full.length_s(), forms.short.length_s());
            }
            Some(dir) => {
                let path = dir.join(format!("{name}.toml"));
                let told = |error: io::Error| format!("{}: {error}", path.display());
                fs::create_dir_all(dir).map_err(told)?;
                if path.exists() {
                    return Err(format!("{} is there already, and is not overwritten", path.display()));
                }
                fs::write(&path, text).map_err(told)?;
                println!("{}", path.display());
            }
        }
    }
    Ok(())
}
