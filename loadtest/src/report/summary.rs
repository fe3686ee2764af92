//! All workloads of one call in one table, each with the medians of its runs: `summary.md`.

use super::{
    Report,
    verdict::{Figure, shown},
};
use crate::limits::OTHERS_CORES;
use std::{fmt::Write, fs, io, path::Path};

/// Name of the file.
pub const FILE: &str = "summary.md";

/// Reports of one workload, in the order of its runs.
#[derive(Debug, Default)]
pub struct Runs {
    pub name: String,
    pub reports: Vec<Report>,
    /// Runs without a report.
    pub failed: usize,
}

/// Figures that every workload has, where they could be measured, by the names of their limits.
fn always(r: &Report) -> Vec<(String, Option<f64>)> {
    let (t, start, durable) = (&r.totals, r.all.start, r.all.durable);
    // Of rates that rise until they are too high lateness says nothing.
    let late = |value: f64, count: u64| (r.scenario.ramp.is_none() && count > 0).then_some(value);
    [
        ("p50_ms", late(start.p50_ms, start.count)),
        ("p99_ms", late(start.p99_ms, start.count)),
        ("p999_ms", late(start.p999_ms, start.count)),
        ("durable_p99_ms", late(durable.p99_ms, durable.count)),
        ("received_per_s", Some(t.received_per_s)),
        ("created_per_s_at_least", Some(t.created_per_s)),
        ("ceiling_at_least", t.ceiling),
        ("cpu_us_per_trigger", t.node_cpu_us_per_trigger),
        ("rss_idle_mb", t.rss_idle_mb),
        ("rss_mb", t.rss_peak_mb),
        ("disk_bytes_per_trigger", t.disk_bytes_per_trigger),
        ("lag_p99_ms", t.lag_p99_ms),
        ("restart_s", t.restart_s()),
        ("restart_rss_mb", t.restart_rss_mb()),
        ("others_cores", t.others_cores),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// One figure over the runs.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    /// Lowest, median, highest; None: not measured in every run.
    spread: Option<(f64, f64, f64)>,
    target: Option<Figure>,
}

/// Of an even number the mean of the two in the middle.
fn spread(values: Option<Vec<f64>>) -> Option<(f64, f64, f64)> {
    let mut values = values?;
    values.sort_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    let half = values.len() / 2;
    let median = if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) };
    Some((low, median, high))
}

fn rows(reports: &[Report]) -> Vec<Row> {
    let Some(first) = reports.first() else { return Vec::new() };
    let over = |of: &dyn Fn(&Report) -> Option<f64>| spread(reports.iter().map(of).collect());
    let mut rows = Vec::new();
    for (n, target) in first.targets.iter().enumerate() {
        let spread = over(&|r| r.targets.get(n)?.got);
        // The median is what is judged.
        let target = Figure { got: spread.map(|(_, median, _)| median), ..target.clone() };
        rows.push(Row { name: target.name.clone(), spread, target: Some(target) });
    }
    for (n, (name, _)) in always(first).into_iter().enumerate() {
        let spread = over(&|r| always(r)[n].1);
        if spread.is_some() && rows.iter().all(|row| row.name != name) {
            rows.push(Row { name, spread, target: None });
        }
    }
    rows
}

/// The table, with what it was measured on.
pub fn text(all: &[Runs]) -> String {
    let mut text = String::from("# Workloads\n\n");
    if let Some(r) = all.iter().find_map(|runs| runs.reports.first()) {
        let m = &r.machine;
        let commit = if m.commit.is_empty() { "unknown" } else { &m.commit };
        let build = if m.release { "" } else { " (debug build: figures are not those of a release)" };
        let form = if r.short { ", short forms" } else { "" };
        let _ = writeln!(
            text,
            "Commit {commit}{build}{form}; {}, {} x {}, {} MB, {}; from {}.\n",
            m.host, m.cpus, m.cpu, m.memory_mb, m.kernel, m.date
        );
    }
    text.push_str("| workload | figure | median | lowest to highest | target | |\n|---|---|---|---|---|---|\n");
    for runs in all {
        let green = runs.reports.iter().filter(|report| report.green).count();
        let asked = runs.reports.len() + runs.failed;
        let _ = writeln!(text, "| **{}** | {green} of {asked} runs green | | | | |", runs.name);
        for row in rows(&runs.reports) {
            let (median, range) =
                row.spread.map_or(("not measured".to_owned(), String::new()), |(low, median, high)| {
                    (shown(median), format!("{} to {}", shown(low), shown(high)))
                });
            let (wish, word) = row.target.map_or((String::new(), String::new()), |target| {
                let word = if target.is_held() { "held" } else { "**missed**" };
                let by = target.missed_by().map_or(String::new(), |by| by.replacen("missed", "", 1));
                (target.wish(), format!("{word}{by}"))
            });
            let name = row.name.trim_end_matches("_at_least");
            let _ = writeln!(text, "| {} | {name} | {median} | {range} | {wish} | {word} |", runs.name);
        }
        let others = runs.reports.iter().filter_map(|r| r.totals.others_cores).fold(0.0, f64::max);
        if others > OTHERS_CORES {
            let _ = writeln!(
                text,
                "| {} | disturbed: others used up to {others:.2} processors | | | | measure again |",
                runs.name
            );
        }
    }
    text
}

/// Writes it into the directory.
pub fn write(all: &[Runs], dir: &Path) -> io::Result<()> {
    fs::write(dir.join(FILE), text(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::verdict::Bound;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(spread(Some(vec![9.0, 1.0, 5.0])), Some((1.0, 5.0, 9.0)));
        assert_eq!(spread(Some(vec![9.0, 1.0, 5.0, 7.0])), Some((1.0, 6.0, 9.0)));
        assert_eq!(spread(Some(Vec::new())), None);
    }

    #[test]
    fn a_target_is_held_by_its_median_and_missed_where_a_run_did_not_measure_it() {
        let text_of = |got: [Option<f64>; 3]| {
            let reports = got.map(|got| {
                let target = Figure { name: "p99_ms".to_owned(), bound: Bound::AtMost, wanted: 50.0, got };
                Report { targets: vec![target], green: true, ..Report::default() }
            });
            text(&[Runs { name: "steady".to_owned(), reports: reports.into(), failed: 1 }])
        };
        let held = text_of([Some(40.0), Some(90.0), Some(45.0)]);
        assert!(held.contains("| steady | p99_ms | 45 | 40 to 90 | at most 50 | held |"), "{held}");
        assert!(held.contains("3 of 4 runs green"), "{held}");
        let missed = text_of([Some(40.0), Some(90.0), Some(75.0)]);
        assert!(missed.contains("| 75 | 40 to 90 | at most 50 | **missed** by 25 (50 %) |"), "{missed}");
        let unknown = text_of([Some(40.0), None, Some(45.0)]);
        assert!(unknown.contains("| not measured |  | at most 50 | **missed** |"), "{unknown}");
    }
}
