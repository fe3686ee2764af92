//! `chaos`: real nodes on a real CQL server, executors and callers, and a fault; then the history checker's verdict.
//! Each scenario has a cluster of its own (a keyspace of the same server), and a network of its own where that is
//! allowed.

mod act;
mod disturb;
mod fault_driver;
mod load_shape;
mod net;
mod probe;
pub mod relay;
mod relay_process;
pub mod results;
mod run_scenario;
pub mod scenario;
mod world;

use crate::{
    checker::{LONG_ENOUGH_MS, Usage},
    faults::mutation::expected_of,
    load::people::OF_ALL_JOBS,
    run_dir::lines::Verb,
    test_cluster::store::Store,
};
use act::Act;
use clap::Args;
use net::Net;
use results::{Figures, Row, Word};
use run_scenario::{Env, ScenarioResult};
use scenario::Scenario;
use std::{collections::HashSet, error::Error, fs, io, path::PathBuf, time::Instant};
use tokio::task::block_in_place;

#[derive(Args, Clone, Debug)]
pub struct ChaosArgs {
    /// The node's program.
    #[arg(long)]
    pub server_bin: PathBuf,
    /// The program of an earlier release, for scenarios that begin with it: without it they are SKIPPED.
    #[arg(long)]
    pub old_bin: Option<PathBuf>,
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
    /// Nothing else runs here: what may be late, and how long a take-over may last, has tighter bounds. See `Scenario::latest` and
    /// `Scenario::recovers`.
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
    /// Where this machine cannot make namespaces, scenarios that need them are SKIPPED and the whole is not RED for it.
    #[arg(long)]
    pub may_skip: bool,
    /// Each scenario's result is appended to this file, a line of JSON.
    #[arg(long)]
    pub results: Option<PathBuf>,
    /// Of the program that is run: what `--results` shows to be green of it is not run again.
    #[arg(long, default_value = "")]
    pub commit: String,
    /// Set by itself: this is the process in namespaces of its own.
    #[arg(long, hide = true)]
    inside: bool,
}

impl ChaosArgs {
    pub fn executors(&self) -> usize {
        usize::from(self.executor_count)
    }

    /// Misfire thresholds of jobs are at least this, seconds: more than anything may be late that no act explains.
    pub fn patience_sec(&self) -> u32 {
        if self.quiet_machine { 5 } else { 15 }
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
    args.old_bin = args.old_bin.map(|old| old.canonicalize()).transpose()?;
    let net = if args.inside { Some(block_in_place(Net::new)?) } else { None };
    let mut run = Run { args: &args, net, table: Vec::new(), before: Vec::new() };
    run.before = run.proven()?;
    let proven: HashSet<String> = run.before.iter().map(|row| row.scenario.clone()).collect();
    let (has_earlier, why_not) = (args.old_bin.is_some(), why_not.as_deref());
    for scenario in &scenarios {
        if let Some(why) = hindered(scenario, has_earlier, why_not) {
            run.row(Row { why, ..run.empty(scenario, Word::Skipped) })?;
        }
    }
    let is_due =
        |scenario: &&&Scenario| hindered(scenario, has_earlier, why_not).is_none() && !proven.contains(scenario.name);
    for scenario in scenarios.iter().filter(|scenario| proven.contains(scenario.name)) {
        println!("{:<19} was proven on this commit before", scenario.name);
    }
    for servers in [1, 3] {
        let group: Vec<_> = scenarios.iter().filter(is_due).filter(|scenario| scenario.stores == servers).collect();
        if group.is_empty() {
            continue;
        }
        let dir = args.dir.join(format!("store-{servers}"));
        fs::create_dir_all(&dir)?;
        let mut store = block_in_place(|| Store::start(&args.store, &dir, servers, run.net.is_some(), None))?;
        for scenario in group {
            run.scenario(scenario, &mut store).await?;
        }
    }
    run.end()
}

/// Why a scenario cannot be run here; None: it can. `why_not`: why there are no namespaces.
fn hindered(scenario: &Scenario, has_earlier: bool, why_not: Option<&str>) -> Option<String> {
    if scenario.needs_earlier() && !has_earlier {
        return Some("no program of an earlier release was given (--old-bin)".to_owned());
    }
    why_not.filter(|_| scenario.needs_world()).map(|why| format!("no namespaces here: {why}"))
}

fn chosen(args: &ChaosArgs) -> Result<Vec<&'static Scenario>, String> {
    if args.only.is_empty() {
        return Ok(Scenario::all().filter(|scenario| scenario.short || !args.short).collect());
    }
    let known: Vec<&str> = Scenario::known().map(|scenario| scenario.name).collect();
    let find = |name: &String| {
        Scenario::find(name).ok_or_else(|| format!("no scenario '{name}'; there are: {}", known.join(", ")))
    };
    args.only.iter().map(find).collect()
}

/// What has been shown so far.
struct Run<'a> {
    args: &'a ChaosArgs,
    net: Option<Net>,
    table: Vec<Row>,
    /// Shown on this commit before.
    before: Vec<Row>,
}

impl Run<'_> {
    /// Scenarios that were shown on this commit, in this form.
    fn proven(&self) -> io::Result<Vec<Row>> {
        let Some(path) = self.args.results.as_ref().filter(|_| !self.args.commit.is_empty()) else {
            return Ok(Vec::new());
        };
        let is_shown = |row: &Row| row.commit == self.args.commit && row.word == Word::Green;
        Ok(results::read(path)?
            .into_iter()
            .filter(|row| is_shown(row) && row.defect.is_some() == self.args.broken)
            .collect())
    }

    fn empty(&self, scenario: &Scenario, word: Word) -> Row {
        Row {
            commit: self.args.commit.clone(),
            scenario: scenario.name.to_owned(),
            what: scenario.what.to_owned(),
            word,
            why: String::new(),
            defect: self.args.broken.then(|| scenario.defect.to_owned()),
            found: Vec::new(),
            figures: None,
            used: Usage::default(),
            load_ms: 0,
            took_s: 0,
        }
    }

    fn row(&mut self, row: Row) -> io::Result<()> {
        println!("{}", row.line());
        if let Some(path) = &self.args.results {
            results::append(path, &row)?;
        }
        self.table.push(row);
        Ok(())
    }

    async fn scenario(&mut self, scenario: &Scenario, store: &mut Store) -> io::Result<()> {
        println!("scenario {}: {}", scenario.name, scenario.what);
        let began = Instant::now();
        let dir = self.args.dir.join(scenario.name);
        let keyspace = format!("chaos{}", self.table.len());
        let env = Env { args: self.args, net: self.net.as_ref(), dir: &dir, keyspace: &keyspace };
        let shown = run_scenario::run(&env, scenario, store).await;
        // Whatever broke off, the next one finds the network whole and the store awake.
        let healed = self.net.as_ref().map_or(Ok(()), Net::heal_all);
        if let Err(error) = healed.and(block_in_place(|| store.wake())) {
            println!("what was cut or stands still did not come back: {error}");
        }
        let row = match shown {
            Ok(shown) => {
                if !self.args.broken && !shown.verdict.green {
                    println!("{}", shown.verdict);
                }
                let (word, why) = judge(scenario, &shown, self.args.broken);
                let found = shown.verdict.found.iter().map(|found| format!("{:?} x {}", found.kind, found.count));
                let figures = Some(Figures::of(scenario, &shown, self.args.quiet_machine));
                let used = shown.verdict.counts.used.clone();
                let load_ms = shown.load_ms;
                Row { why, found: found.collect(), figures, used, load_ms, ..self.empty(scenario, word) }
            }
            Err(error) => Row { why: format!("it broke off: {error}"), ..self.empty(scenario, Word::Red) },
        };
        self.row(Row { took_s: began.elapsed().as_secs(), ..row })
    }

    /// Whether all is as it must be. What was not run shows nothing, so it is not green.
    fn end(self) -> Result<bool, Box<dyn Error>> {
        let lines: Vec<String> = self.table.iter().map(Row::line).collect();
        let whole = lines.join("\n");
        fs::write(self.args.dir.join("chaos.txt"), format!("{whole}\n"))?;
        let of = |word: Word| self.table.iter().filter(|row| row.word == word).count();
        let (red, skipped) = (of(Word::Red), of(Word::Skipped));
        let unused = if self.args.broken { Vec::new() } else { unused(self.before.iter().chain(&self.table)) };
        let word = closing(red, skipped, self.args.may_skip, &unused);
        let broken = if self.args.broken { " with their defects switched on" } else { "" };
        let ran = self.table.len() - skipped;
        println!(
            "\n{whole}\n{}{word} chaos: {ran} scenarios{broken}, {red} failed, {skipped} SKIPPED (a skipped scenario proves nothing)",
            unused
                .iter()
                .map(|what| format!("RED: {what} in all of these scenarios: nothing is shown of it\n"))
                .collect::<String>()
        );
        Ok(word != "RED")
    }
}

/// A single scenario, or few, may leave something out: while nodes or the store are away callers wait.
const ALL_LONG_ENOUGH_MS: i64 = 4 * LONG_ENOUGH_MS;

/// What no caller of these scenarios ever used. A run waits for a person only after its executor was lost, and nobody pauses all jobs
/// where nodes begin with an earlier release.
fn unused<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<String> {
    let (mut used, mut load_ms) = (Usage::default(), 0);
    let mut scenarios: Vec<&Scenario> = Vec::new();
    for row in rows {
        used.add(&row.used);
        load_ms += row.load_ms;
        scenarios.extend(Scenario::find(&row.scenario));
    }
    if load_ms < ALL_LONG_ENOUGH_MS {
        return Vec::new();
    }
    let mut except = Vec::new();
    if !scenarios.iter().any(|scenario| scenario.has(Act::loses_executor)) {
        except.push(Verb::Confirm);
    }
    if scenarios.iter().all(|scenario| scenario.needs_earlier()) {
        except.extend(OF_ALL_JOBS);
    }
    used.missing(&except)
}

/// The closing word of all scenarios. What was not run shows nothing, so it is not green.
fn closing(red: usize, skipped: usize, may_skip: bool, unused: &[String]) -> &'static str {
    match (red, skipped) {
        _ if !unused.is_empty() => "RED",
        (0, 0) => "GREEN",
        (0, _) if may_skip => "SKIPPED",
        (_, _) => "RED",
    }
}

/// A node lost its session, and none had to.
fn lost_one(scenario: &Scenario, shown: &ScenarioResult) -> bool {
    scenario.keeps_sessions && shown.sessions_lost > 0
}

/// What a scenario's result is, and why it is not green.
fn judge(scenario: &Scenario, shown: &ScenarioResult, broken: bool) -> (Word, String) {
    let mut wrong = Vec::new();
    if lost_one(scenario, shown) {
        wrong.push(format!("sessions lost x {}", shown.sessions_lost));
    }
    if shown.restless {
        wrong.push("shards do not come to rest".to_owned());
    }
    if broken {
        let expected = expected_of(scenario.defect);
        let found = shown.verdict.found.iter().any(|found| expected.contains(&found.kind));
        // Only where nothing else tells of the defect: a session that is lost is no violation of its own.
        let by_sessions = expected.is_empty() && lost_one(scenario, shown);
        return if found || by_sessions {
            (Word::Green, wrong.join(", "))
        } else {
            wrong.insert(0, format!("wanted one of {expected:?}"));
            (Word::Red, wrong.join(", "))
        };
    }
    let word = if shown.verdict.green && wrong.is_empty() { Word::Green } else { Word::Red };
    (word, wrong.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::checker::{Feature, Findings, History, ViolationKind};
    use clap::ValueEnum;

    fn shown(found: &[ViolationKind], sessions_lost: usize, restless: bool) -> ScenarioResult {
        let history = History::default();
        let mut findings = Findings::new(&history);
        found.iter().for_each(|kind| findings.of_all(*kind, "x"));
        ScenarioResult {
            verdict: findings.into_verdict(),
            lateness_ms: Vec::new(),
            latest_ms: 0,
            availability: Default::default(),
            open: 0,
            sessions_lost,
            hand_overs: 0,
            restless,
            calls_answered: Vec::new(),
            load_ms: 0,
        }
    }

    #[test]
    fn a_defect_is_found_only_by_what_it_must_be_found_as() {
        for scenario in Scenario::known() {
            let word = |shown: ScenarioResult| judge(scenario, &shown, true).0;
            let expected = expected_of(scenario.defect);
            for kind in ViolationKind::ALL {
                let wanted = if expected.contains(kind) { Word::Green } else { Word::Red };
                assert_eq!(word(shown(&[*kind], 0, false)), wanted, "{} {kind:?}", scenario.name);
            }
            assert_eq!(word(shown(&[], 0, false)), Word::Red, "nothing was found in {}", scenario.name);
            assert_eq!(word(shown(&[], 0, true)), Word::Red, "{} is red for another reason", scenario.name);
            let by_sessions = if expected.is_empty() { Word::Green } else { Word::Red };
            assert_eq!(word(shown(&[], 1, false)), by_sessions, "{}", scenario.name);
        }
    }

    #[test]
    fn without_a_defect_only_what_kept_everything_is_green() {
        let stall = Scenario::find("store-stall").unwrap();
        let word = |shown: ScenarioResult| judge(stall, &shown, false).0;
        assert_eq!(word(shown(&[], 0, false)), Word::Green);
        assert_eq!(word(shown(&[], 1, false)), Word::Red);
        assert_eq!(word(shown(&[], 0, true)), Word::Red);
        assert_eq!(word(shown(&[ViolationKind::OutcomeMissing], 0, false)), Word::Red);
    }

    #[test]
    fn what_was_skipped_or_never_used_is_not_green() {
        let unused = ["x".to_owned()];
        let words = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(red, skipped)| closing(red, skipped, false, &[]));
        assert_eq!(words, ["GREEN", "RED", "RED", "RED"]);
        let words = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(red, skipped)| closing(red, skipped, true, &[]));
        assert_eq!(words, ["GREEN", "SKIPPED", "RED", "RED"]);
        let words = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(red, skipped)| closing(red, skipped, true, &unused));
        assert_eq!(words, ["RED"; 4]);
    }

    #[test]
    fn a_verb_must_be_used_in_all_scenarios_together() {
        let row = |scenario: &str, load_ms: i64, without: &[Verb]| Row {
            commit: String::new(),
            scenario: scenario.to_owned(),
            what: String::new(),
            word: Word::Green,
            why: String::new(),
            defect: None,
            found: Vec::new(),
            figures: None,
            used: Usage {
                backfilled: false,
                bulked: false,
                dags: false,
                calls: Verb::value_variants().iter().filter(|v| !without.contains(v)).map(|v| (*v, 1)).collect(),
                features: Feature::value_variants().iter().map(|feature| (*feature, 1)).collect(),
            },
            load_ms,
            took_s: 1,
        };
        let of = |rows: &[Row]| unused(rows.iter());
        let (long_ms, short_ms) = (ALL_LONG_ENOUGH_MS, ALL_LONG_ENOUGH_MS / 4);
        assert_eq!(of(&[row("split", long_ms, &[Verb::Edit])]), ["no call Edit was accepted"]);
        assert_eq!(of(&[row("split", short_ms, &[Verb::Edit])]), [""; 0], "it is too short");
        let others = [row("split", short_ms, &[Verb::Edit]), row("loss", long_ms, &[])];
        assert_eq!(of(&others), [""; 0], "another scenario shows it");
        // Nobody waits for a person where no executor is lost.
        assert_eq!(of(&[row("split", long_ms, &[Verb::Confirm])]), [""; 0]);
        assert_eq!(of(&[row("kill-executor", long_ms, &[Verb::Confirm])]), ["no call Confirm was accepted"]);
        // Nobody pauses all jobs where nodes are of an earlier release.
        let paused = "no call PauseTenant was accepted";
        assert_eq!(of(&[row("release-upgrade", long_ms, &[Verb::PauseTenant])]), [""; 0]);
        assert_eq!(of(&[row("release-upgrade", long_ms, &[Verb::Edit])]), ["no call Edit was accepted"]);
        let both = ["release-upgrade", "split"].map(|name| row(name, long_ms, &[Verb::PauseTenant]));
        assert_eq!(of(&both), [paused]);
    }

    #[test]
    fn what_cannot_be_run_here_says_why_and_only_that() {
        let (upgrade, split) = (Scenario::find("release-upgrade").unwrap(), Scenario::find("split").unwrap());
        assert!(hindered(upgrade, false, None).unwrap().contains("--old-bin"));
        assert_eq!(hindered(upgrade, true, Some("not allowed")), None, "it cuts nothing");
        assert_eq!(hindered(split, false, None), None);
        assert_eq!(hindered(split, true, Some("not allowed")).unwrap(), "no namespaces here: not allowed");
    }

    #[test]
    fn a_proof_of_a_commit_does_not_need_another_commits_program() {
        assert!(Scenario::all().all(|scenario| !scenario.needs_earlier()));
        assert!(Scenario::with_earlier().all(Scenario::needs_earlier));
    }
}
