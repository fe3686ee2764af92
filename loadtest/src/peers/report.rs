//! The result of all ladders: ratios, a table for people, and the same figures as JSON.

use super::{
    ladder::{LEAST_SHARE, LadderKind, MOST_P99_MS},
    ours,
    step::Step,
};
use crate::report::machine::Machine;
use serde::Serialize;
use std::fmt::Write;

/// One ladder of one system.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Climb {
    pub system: String,
    pub title: String,
    pub kind: LadderKind,
    pub version: String,
    pub settings: String,
    /// In the order in which they were tried.
    pub steps: Vec<Step>,
    /// Why it ended early.
    pub error: Option<String>,
    /// The last rate of its ladder held: what it can do is more than that.
    pub at_least: bool,
}

impl Climb {
    /// The highest rate that it held.
    pub fn best(&self) -> Option<&Step> {
        self.steps.iter().filter(|step| step.holds).max_by_key(|step| step.rate)
    }

    /// Nothing more is tried: by the ladder's length, when its last rate held.
    pub fn ends(&mut self) {
        self.at_least = self.error.is_none() && self.steps.last().is_some_and(|step| step.holds);
    }

    pub fn tried(&self) -> Vec<(u64, bool)> {
        self.steps.iter().map(|step| (step.rate, step.holds)).collect()
    }
}

/// A rival that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub system: String,
    pub reason: String,
}

/// Ours divided by theirs, each at the highest rate that it held.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ratio {
    pub rival: String,
    pub kind: LadderKind,
    pub our_kind: LadderKind,
    /// Above 1: ours is faster.
    pub rate: f64,
    /// Below 1: ours is cheaper.
    pub cpu_per_job: f64,
    /// Their ladder ended by its length, so `rate` is an upper bound; ours did, so it is a lower one.
    pub at_most: bool,
    pub at_least: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub machine: Machine,
    pub database: String,
    pub database_settings: String,
    pub seconds: u64,
    pub warm_seconds: u64,
    pub least_share: f64,
    pub most_p99_ms: f64,
    pub climbs: Vec<Climb>,
    pub left_out: Vec<LeftOut>,
    pub ratios: Vec<Ratio>,
}

/// For each ladder of a rival, against ours of the same kind; ours have no cron ladder, as FIXED_RATE jobs are due as often.
pub fn ratios(climbs: &[Climb]) -> Vec<Ratio> {
    let ratio = |theirs: &Climb| {
        let our_kind = if theirs.kind == LadderKind::Once { LadderKind::Once } else { LadderKind::Recurring };
        let our_climb = climbs.iter().find(|climb| climb.system == ours::NAME && climb.kind == our_kind)?;
        let (ours, best) = (our_climb.best()?, theirs.best()?);
        Some(Ratio {
            rival: theirs.title.clone(),
            kind: theirs.kind,
            our_kind,
            rate: ours.rate as f64 / best.rate as f64,
            cpu_per_job: ours.cpu_us_per_job / best.cpu_us_per_job,
            at_most: theirs.at_least,
            at_least: our_climb.at_least,
        })
    };
    climbs.iter().filter(|climb| climb.system != ours::NAME).filter_map(ratio).collect()
}

/// `bound` stands before the rate.
fn row(out: &mut String, climb: &Climb, step: &Step, bound: &str) {
    let parts: Vec<String> = step.cpu_parts_us_per_job.iter().map(|(name, us)| format!("{name} {us:.0}")).collect();
    let share = step.started as f64 * 100.0 / step.due.max(1) as f64;
    // Writing into a String cannot fail.
    let _ = writeln!(
        out,
        "| {} | {} | {bound}{} | {share:.1} | {:.0} / {:.0} / {:.0} | {:.0} ({}) | {} | {} |",
        climb.title,
        climb.kind.word(),
        step.rate,
        step.lateness.p50_ms,
        step.lateness.p99_ms,
        step.lateness.max_ms,
        step.cpu_us_per_job,
        parts.join(", "),
        step.others_cores.map_or("?".to_owned(), |cores| format!("{cores:.2}")),
        if step.holds { "yes" } else { "no" },
    );
}

const STEP_HEAD: &str = "| system | jobs | rate/s | started, % | p50 / p99 / max lateness, ms | CPU, us a job | others' cores | holds |\n\
                         |---|---|---|---|---|---|---|---|\n";

/// Markdown, which is also what the terminal shows.
pub fn text(report: &Report) -> String {
    let mut out = String::from("# Beside rivals\n\n");
    let machine = &report.machine;
    let _ = writeln!(
        out,
        "{}; {} CPUs ({}), {} MB, {}; commit {}; {}; {}.\n",
        machine.date,
        machine.cpus,
        machine.cpu,
        machine.memory_mb,
        machine.kernel,
        machine.commit,
        format_args!("Campanile {}", machine.server_version),
        if machine.release { "release build" } else { "DEBUG BUILD OF THE HARNESS: these figures say little" },
    );
    let _ = writeln!(
        out,
        "Windows of {} s after {} s of the same load (ours: after nothing). A rate holds when at least {:.0} % of what was due was started \
         and p99 lateness (start of the body minus due time) is at most {:.0} ms; a rate that does not is tried twice. CPU is that of all \
         processes, for each body. Database, workers, node, executors and harness share the machine.\n",
        report.seconds,
        report.warm_seconds,
        report.least_share * 100.0,
        report.most_p99_ms,
    );
    let _ = write!(out, "## The highest rates that hold\n\n{STEP_HEAD}");
    for climb in &report.climbs {
        match climb.best() {
            Some(best) => row(&mut out, climb, best, if climb.at_least { "at least " } else { "" }),
            None => {
                let _ = writeln!(out, "| {} | {} | none | | | | | no |", climb.title, climb.kind.word());
            }
        }
    }
    let _ = write!(
        out,
        "\n## Ours divided by theirs\n\n| rival | its jobs, ours | rate | CPU a job |\n|---|---|---|---|\n"
    );
    for ratio in &report.ratios {
        let _ = writeln!(
            out,
            "| {} | {}, {} | {}{:.2} | {:.2} |",
            ratio.rival,
            ratio.kind.word(),
            ratio.our_kind.word(),
            match (ratio.at_least, ratio.at_most) {
                (true, true) => "both ladders ended: ",
                (true, false) => "at least ",
                (false, true) => "at most ",
                (false, false) => "",
            },
            ratio.rate,
            ratio.cpu_per_job
        );
    }
    for left in &report.left_out {
        let _ = writeln!(out, "\nNot measured: {}: {}", left.system, left.reason);
    }
    let _ = write!(out, "\n## All windows\n\n{STEP_HEAD}");
    for climb in &report.climbs {
        climb.steps.iter().for_each(|step| row(&mut out, climb, step, ""));
    }
    for (climb, error) in report.climbs.iter().filter_map(|climb| Some((climb, climb.error.as_ref()?))) {
        let _ = writeln!(out, "\n{}, {}: ended early: {error}", climb.title, climb.kind.word());
    }
    let _ = writeln!(out, "\n## Settings\n\nPostgreSQL {}: {}\n", report.database, report.database_settings);
    for climb in &report.climbs {
        let _ = writeln!(out, "- {} {}, {}: {}", climb.title, climb.version, climb.kind.word(), climb.settings);
    }
    out
}

/// A report of what was measured so far.
pub fn report(
    machine: Machine,
    (database, database_settings): (String, String),
    (seconds, warm_seconds): (u64, u64),
    climbs: Vec<Climb>,
    left_out: Vec<LeftOut>,
) -> Report {
    let ratios = ratios(&climbs);
    Report {
        machine,
        database,
        database_settings,
        seconds,
        warm_seconds,
        least_share: LEAST_SHARE,
        most_p99_ms: MOST_P99_MS,
        climbs,
        left_out,
        ratios,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rate: u64, cpu_us_per_job: f64, holds: bool) -> Step {
        Step { rate, cpu_us_per_job, holds, due: rate, started: rate, ..Step::default() }
    }

    fn climb(system: &str, kind: LadderKind, steps: Vec<Step>) -> Climb {
        let text = |t: &str| t.to_owned();
        Climb {
            system: text(system),
            title: text(system),
            kind,
            version: text("1"),
            settings: text("s"),
            steps,
            error: None,
            at_least: false,
        }
    }

    fn climbs() -> Vec<Climb> {
        vec![
            climb("campanile", LadderKind::Once, vec![step(20_000, 50.0, true), step(30_000, 40.0, false)]),
            climb("campanile", LadderKind::Recurring, vec![step(30_000, 45.0, true)]),
            climb(
                "river",
                LadderKind::Once,
                vec![step(2_000, 300.0, true), step(4_000, 200.0, true), step(8_000, 100.0, false)],
            ),
            climb("db-scheduler", LadderKind::Cron, vec![step(1_000, 450.0, true)]),
            climb("db-scheduler", LadderKind::Once, vec![step(2_000, 400.0, false)]),
        ]
    }

    #[test]
    fn ratios_compare_the_highest_rates_that_hold() {
        let ratios = ratios(&climbs());
        assert_eq!(ratios.len(), 2, "one that held nothing has no ratio: {ratios:?}");
        assert_eq!(
            (ratios[0].rival.as_str(), ratios[0].kind, ratios[0].our_kind),
            ("river", LadderKind::Once, LadderKind::Once)
        );
        assert!((ratios[0].rate - 5.0).abs() < 1e-9, "{ratios:?}");
        assert!((ratios[0].cpu_per_job - 0.25).abs() < 1e-9, "{ratios:?}");
        assert_eq!(ratios[1].our_kind, LadderKind::Recurring);
        assert!((ratios[1].rate - 30.0).abs() < 1e-9, "{ratios:?}");
        assert!((ratios[1].cpu_per_job - 0.1).abs() < 1e-9, "{ratios:?}");
    }

    #[test]
    fn a_ladder_that_ended_by_its_length_gives_bounds() {
        let mut climbs = climbs();
        climbs[3].at_least = true;
        let both = (String::new(), String::new());
        let text = text(&report(Machine::default(), both, (10, 3), climbs, Vec::new()));
        assert!(text.contains("| db-scheduler | cron | at least 1000 |"), "{text}");
        assert!(text.contains("| db-scheduler | cron, recurring | at most 30.00 | 0.10 |"), "{text}");
        assert!(text.contains("| river | once, once | 5.00 | 0.25 |"), "{text}");
    }

    #[test]
    fn without_ours_there_is_no_ratio() {
        assert_eq!(ratios(&climbs()[2..]), []);
    }

    #[test]
    fn the_text_names_what_was_left_out_and_what_held_nothing() {
        let left = LeftOut { system: "quartz".to_owned(), reason: "no Java".to_owned() };
        let both = (String::new(), String::new());
        let text = text(&report(Machine::default(), both, (10, 3), climbs(), vec![left]));
        assert!(text.contains("Not measured: quartz: no Java"), "{text}");
        assert!(text.contains("| db-scheduler | once | none |"), "{text}");
        assert!(text.contains("| river | once, once | 5.00 | 0.25 |"), "{text}");
        assert!(text.contains("DEBUG BUILD"), "{text}");
    }
}
