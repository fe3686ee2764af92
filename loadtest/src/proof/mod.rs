//! `proof`: all slow checks of a commit, and one report of them. Each part is a target of the Makefile. The result of a
//! part is appended to `parts.jsonl`, so that the whole may be run in pieces (`--parts`), and a part that is green on
//! this commit is not run again. A part that was not run, or a scenario that was SKIPPED, proves nothing: the proof is
//! green only when everything is.

mod report;

use crate::{
    chaos::{
        results::{self, Row, Word},
        scenario::Scenario,
    },
    process::children::OwnChild,
    report::machine::Machine,
};
use clap::Args;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    error::Error,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Lines at the end of a part that tell its verdict and figures, at most.
const CLOSING_LINES: usize = 60;
/// What such lines begin with.
const CLOSING: [&str; 12] = [
    "test result:",
    "VERDICT:",
    "RED",
    "GREEN",
    "SKIPPED",
    "mutation ",
    "powercut:",
    "ownership",
    "fail points reached",
    "jobs ",
    "kills:",
    "error",
];

/// A part of the proof.
#[derive(Clone, Copy, Debug)]
pub struct ProofPart {
    pub name: &'static str,
    pub what: &'static str,
    /// Settings of the environment of its target that the proof chooses when nobody did.
    defaults: &'static [(&'static str, &'static str)],
    /// Its scenarios, with their defects or without.
    scenarios: Option<Broken>,
}

/// Whether defects are switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    No,
    Yes,
}

const fn part(name: &'static str, what: &'static str) -> ProofPart {
    ProofPart { name, what, defaults: &[], scenarios: None }
}

/// In the order in which they run: short ones first.
pub const PARTS: [ProofPart; 10] = [
    part("executor-loss", "an executor, then the node, is killed while bodies run"),
    part("restore", "a backup under load, the node's death, and a restore"),
    ProofPart { defaults: &[("FUZZ_SECONDS", "60")], ..part("fuzz", "damaged bytes for decoders and parsers") },
    ProofPart { defaults: &[("KILLS", "20")], ..part("kill9", "kills of a node under load") },
    ProofPart { defaults: &[("POWERCUT_SEEDS", "1000")], ..part("powercut", "power cuts on a simulated disk") },
    ProofPart {
        defaults: &[("OWNERSHIP_SEEDS", "10000")],
        ..part("ownership", "the protocol of ownership in a simulated world")
    },
    part("foreign-schedules", "random schedules beside the real parsers of cron, Kubernetes and Quartz"),
    part("mutations", "defects of a node, each found for its own reason"),
    ProofPart { scenarios: Some(Broken::No), ..part("chaos", "a cluster on a real store, and what goes wrong") },
    ProofPart {
        scenarios: Some(Broken::Yes),
        ..part("chaos-mutations", "the same with a defect in every node, each found")
    },
];

#[derive(Args, Clone, Debug)]
pub struct ProofArgs {
    /// Where results, logs and the report are kept: those of earlier runs are read.
    #[arg(long, default_value = "target/proof")]
    pub dir: PathBuf,
    /// Only these parts; default: all that are not green on this commit yet.
    #[arg(long, value_delimiter = ',')]
    pub parts: Vec<String>,
    /// Run nothing: write the report of what is known.
    #[arg(long)]
    pub only_report: bool,
    /// Run nothing: print the table of scenarios as docs/reliability.md has it.
    #[arg(long)]
    pub table: bool,
}

/// What a part showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartResult {
    pub commit: String,
    pub part: String,
    pub green: bool,
    pub seconds: u64,
    /// UTC.
    pub date: String,
    pub command: String,
    pub settings: BTreeMap<String, String>,
    /// Its verdict in its own words.
    pub closing: Vec<String>,
}

/// True: every part that was chosen is green on this commit.
pub fn run(args: &ProofArgs) -> Result<bool, Box<dyn Error>> {
    let chosen = chosen(&args.parts)?;
    fs::create_dir_all(&args.dir)?;
    let dir = args.dir.canonicalize()?;
    let machine = Machine::here(String::new());
    if machine.commit.is_empty() {
        return Err("the proof is of a commit: run it in the repository (make proof)".into());
    }
    if args.table {
        let rows = rows_of(&dir, Broken::No, &machine.commit)?;
        print!("{}", report::chaos_table(&rows, &rows_of(&dir, Broken::Yes, &machine.commit)?));
        return Ok(true);
    }
    if !args.only_report {
        for part in &chosen {
            if is_commit(&machine.commit) && is_green(part, &dir, &machine.commit)? {
                println!("== {}: green on {} before", part.name, machine.commit);
                continue;
            }
            let shown = carry_out(part, &dir, &machine.commit)?;
            append(&dir, &shown)?;
            // After each, so that a run that is cut short has a report.
            report::write(&dir, &machine)?;
        }
    }
    let whole = report::write(&dir, &machine)?;
    print!("{whole}");
    let mut green = true;
    for part in &chosen {
        green &= is_green(part, &dir, &machine.commit)?;
    }
    Ok(green)
}

fn chosen(names: &[String]) -> Result<Vec<ProofPart>, String> {
    if names.is_empty() {
        return Ok(PARTS.to_vec());
    }
    let find = |name: &String| {
        let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        let found = PARTS.iter().find(|part| part.name == name.as_str()).copied();
        found.ok_or_else(|| format!("no part '{name}'; there are: {}", known.join(", ")))
    };
    names.iter().map(find).collect()
}

/// A tree with changes is no commit: what it showed is not taken for proven later.
fn is_commit(commit: &str) -> bool {
    !commit.is_empty() && !commit.contains(' ')
}

fn parts_file(dir: &Path) -> PathBuf {
    dir.join("parts.jsonl")
}

fn results_file(dir: &Path, broken: Broken) -> PathBuf {
    dir.join(match broken {
        Broken::No => "chaos.jsonl",
        Broken::Yes => "chaos-mutations.jsonl",
    })
}

/// What parts showed on this commit: the last of each.
pub fn shown(dir: &Path, commit: &str) -> io::Result<BTreeMap<String, PartResult>> {
    let text = match fs::read_to_string(parts_file(dir)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let lines = text.lines().filter_map(|line| serde_json::from_str::<PartResult>(line).ok());
    Ok(lines.filter(|shown| shown.commit == commit).map(|shown| (shown.part.clone(), shown)).collect())
}

fn append(dir: &Path, shown: &PartResult) -> io::Result<()> {
    let mut line = serde_json::to_vec(shown)?;
    line.push(b'\n');
    OpenOptions::new().create(true).append(true).open(parts_file(dir))?.write_all(&line)
}

/// Rows of scenarios of this commit, the last of each, in the order of scenarios.
fn rows_of(dir: &Path, broken: Broken, commit: &str) -> io::Result<Vec<Row>> {
    let rows = results::read(&results_file(dir, broken))?;
    let last =
        |scenario: &Scenario| rows.iter().rfind(|row| row.scenario == scenario.name && row.commit == commit).cloned();
    Ok(Scenario::all().filter_map(last).collect())
}

/// Every scenario was run, and is green.
fn all_green(rows: &[Row]) -> bool {
    Scenario::all().all(|scenario| rows.iter().any(|row| row.scenario == scenario.name && row.word == Word::Green))
}

fn is_green(part: &ProofPart, dir: &Path, commit: &str) -> io::Result<bool> {
    Ok(shown(dir, commit)?.get(part.name).is_some_and(|shown| shown.green) && scenarios_green(part, dir, commit)?)
}

fn scenarios_green(part: &ProofPart, dir: &Path, commit: &str) -> io::Result<bool> {
    part.scenarios.map_or(Ok(true), |broken| Ok(all_green(&rows_of(dir, broken, commit)?)))
}

/// Runs a part's target, shows its output, and keeps it beside the report.
fn carry_out(part: &ProofPart, dir: &Path, commit: &str) -> Result<PartResult, Box<dyn Error>> {
    let mut command = Command::new("make");
    command.arg(part.name).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut settings = BTreeMap::new();
    for (name, value) in part.defaults {
        let value = std::env::var(name).unwrap_or_else(|_| (*value).to_owned());
        command.env(name, &value);
        settings.insert((*name).to_owned(), value);
    }
    if let Some(broken) = part.scenarios {
        let more = std::env::var("CHAOS_ARGS").unwrap_or_default();
        let results = results_file(dir, broken);
        if !is_commit(commit) {
            // Nothing of it is proven: results of an earlier run with other changes would be taken for this one's.
            fs::remove_file(&results).or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })?;
        }
        let args = format!("--results {} --commit '{commit}' {more}", results.display());
        command.env("CHAOS_ARGS", &args);
        settings.insert("CHAOS_ARGS".to_owned(), more);
    }
    println!("== {}: {}", part.name, part.what);
    let began = Instant::now();
    let log = File::create(dir.join(format!("{}.log", part.name)))?;
    command.stderr(log.try_clone()?);
    // It ends what it has started itself.
    let mut child = OwnChild::start_asked_by(&mut command, Signal::TERM)?;
    let stdout = child.child().stdout.take().ok_or("no output of make")?;
    let closing = follow(stdout, log)?;
    let status = loop {
        if let Some(status) = child.wait(Duration::from_secs(1))? {
            break status;
        }
    };
    let shown = PartResult {
        commit: commit.to_owned(),
        part: part.name.to_owned(),
        green: status.success(),
        seconds: began.elapsed().as_secs(),
        date: Machine::here(String::new()).date,
        command: format!("make {}", part.name),
        settings,
        closing,
    };
    println!("== {}: {} after {} s", part.name, if shown.green { "green" } else { "RED" }, shown.seconds);
    Ok(shown)
}

/// Copies the output to the log and to ours; gives the lines that tell the verdict.
fn follow(output: impl io::Read, mut log: File) -> io::Result<Vec<String>> {
    let mut closing: Vec<String> = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        writeln!(log, "{line}")?;
        println!("{line}");
        if CLOSING.iter().any(|begin| line.starts_with(begin)) {
            closing.push(line);
        }
        if closing.len() > CLOSING_LINES {
            closing.remove(0);
        }
    }
    Ok(closing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_row(scenario: &str, word: Word) -> Row {
        Row {
            commit: "abc".to_owned(),
            scenario: scenario.to_owned(),
            what: String::new(),
            word,
            why: String::new(),
            defect: None,
            found: Vec::new(),
            figures: None,
            used: Default::default(),
            load_ms: 0,
            took_s: 1,
        }
    }

    fn a_part(name: &str, commit: &str, green: bool) -> PartResult {
        PartResult {
            commit: commit.to_owned(),
            part: name.to_owned(),
            green,
            seconds: 3,
            date: String::new(),
            command: String::new(),
            settings: BTreeMap::new(),
            closing: Vec::new(),
        }
    }

    #[test]
    fn a_skipped_scenario_or_one_that_was_not_run_is_not_proven() {
        let all = |word: Word| Scenario::all().map(|s| a_row(s.name, word)).collect::<Vec<_>>();
        assert!(all_green(&all(Word::Green)));
        for word in [Word::Skipped, Word::Red] {
            let mut rows = all(Word::Green);
            rows[3].word = word;
            assert!(!all_green(&rows), "{word:?}");
        }
        assert!(!all_green(&all(Word::Green)[1..]));
    }

    #[test]
    fn the_last_result_of_a_part_on_this_commit_counts() {
        let dir = tempfile::tempdir().unwrap();
        let kill9 = PARTS.iter().find(|part| part.name == "kill9").unwrap();
        for (commit, green, wanted) in
            [("abc", false, false), ("abd", true, false), ("abc", true, true), ("abc", false, false)]
        {
            append(dir.path(), &a_part("kill9", commit, green)).unwrap();
            assert_eq!(is_green(kill9, dir.path(), "abc").unwrap(), wanted);
        }
        let chaos = PARTS.iter().find(|part| part.name == "chaos").unwrap();
        append(dir.path(), &a_part("chaos", "abc", true)).unwrap();
        assert!(!is_green(chaos, dir.path(), "abc").unwrap(), "no scenario was run");
    }

    #[test]
    fn parts_are_targets_of_the_makefile_and_an_unknown_one_is_refused() {
        let makefile = include_str!("../../../Makefile");
        for part in PARTS {
            assert!(makefile.contains(&format!("\n{}: ", part.name)), "{} is no target", part.name);
        }
        assert!(chosen(&["kill8".to_owned()]).unwrap_err().contains("kill9"));
    }
}
