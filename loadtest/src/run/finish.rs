//! Turns what was seen into the report, and prints the verdict.

use super::{early::Early, observations::RunObservations, ramp::p99, watch::Probed};
use crate::{
    limits::OTHERS_CORES,
    report::{
        Figures, Report, Restarted, Second, Stretch, Totals,
        machine::Machine,
        verdict::{self, Figure},
    },
    scenario::Scenario,
};
use std::path::Path;

/// What a report is made of.
pub(super) struct Facts<'a> {
    pub scenario: &'a Scenario,
    pub short: bool,
    /// A target that is missed is a broken limit.
    pub strict: bool,
    pub file: &'a str,
    pub system: String,
    pub machine: Machine,
    pub seen: RunObservations,
    pub early: Option<&'a Early>,
    /// The checker's word: green, and its text.
    pub checker: Option<(bool, String)>,
}

pub(super) fn report(facts: Facts<'_>) -> Report {
    let Facts { scenario, short, strict, file, system, machine, mut seen, early, checker } = facts;
    let frame = seen.created.frame.clone();
    let until = seen.until_s;
    let all = seen.measure.all(until);
    let seconds = seconds(&mut seen);
    let due_phases = 0..frame.phases.len();
    let phases: Vec<Figures> =
        due_phases.map(|n| seen.measure.phase(n, until)).filter(|figures| figures.due > 0).collect();
    let groups = seen.measure.by_group(until);
    let groups_by_phase = if groups.len() > 1 && phases.len() > 1 || !scenario.expect.compare.is_empty() {
        seen.measure.by_group_and_phase(until)
    } else {
        Vec::new()
    };
    let until_us = (frame.start_ms + until * 1000) * 1000;
    let calls = seen.calls.series.iter().map(|series| series.figures(until_us)).collect();
    let stretches = frame.phases.iter().enumerate().map(|(n, phase)| {
        let seconds = frame.seconds_of(n);
        Stretch { name: phase.name.clone(), from_s: seconds.start, to_s: seconds.end }
    });
    let stopped = early.map(|early| match early {
        Early::Interrupted => "somebody stopped it".to_owned(),
        Early::Red(why) | Early::NotRun(why) => why.clone(),
    });
    let totals = totals(scenario, &seen, &seconds);
    let mut report = Report {
        scenario: scenario.clone(),
        short,
        file: file.to_owned(),
        start_ms: frame.start_ms,
        machine,
        system,
        stopped,
        green: false,
        verdict: Vec::new(),
        targets: Vec::new(),
        checker: checker.as_ref().map(|(_, text)| text.clone()),
        totals,
        all,
        groups,
        phases,
        groups_by_phase,
        calls,
        stretches: stretches.collect(),
        happened: seen.happened,
        seconds,
    };
    report.verdict = verdict::judge(&report, &scenario.expect).iter().map(Figure::as_limit).collect();
    report.targets = verdict::judge(&report, &scenario.target);
    let held = report.verdict.iter().all(|judged| judged.held);
    let reached = !strict || report.targets.iter().all(Figure::is_held);
    report.green = held && reached && report.stopped.is_none() && checker.is_none_or(|(green, _)| green);
    report
}

/// What executors told, laid over what was seen each second.
fn seconds(seen: &mut RunObservations) -> Vec<Second> {
    let told = seen.measure.seconds();
    let begin_s = seen.created.frame.start_ms / 1000;
    let up = seen.up.lock();
    let last = seen.seconds.keys().next_back().map_or(0, |last| last + 1).max(told.end);
    let mut seconds = Vec::new();
    for second in 0..last {
        let row = seen.measure.row(second);
        let mut s = seen.seconds.remove(&second).unwrap_or_else(|| Second { second, ..Second::default() });
        s.due = if second < seen.until_s { seen.measure.due_in(second) } else { 0 };
        (s.received, s.attempts, s.durable) = (row.received, row.attempts, row.durable);
        (s.start_p50_ms, s.start_p99_ms) = (row.start.map(|p| p.p50_ms), row.start.map(|p| p.p99_ms));
        (s.start_p999_ms, s.start_max_ms) = (row.start.map(|p| p.p999_ms), row.start.map(|p| p.max_ms));
        (s.end_p99_ms, s.durable_p99_ms) = (row.end_p99_ms, row.durable_p99_ms);
        s.up = up.get(&(begin_s + second)).map(|probed| *probed == Probed::Ready);
        let cores = s.node.map(|node| node.cores);
        s.node_cpu_us_per_trigger = cores.filter(|_| s.received > 0).map(|cores| cores * 1e6 / s.received as f64);
        seconds.push(s);
    }
    seconds
}

fn highest(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(f64::max)
}

fn totals(scenario: &Scenario, seen: &RunObservations, seconds: &[Second]) -> Totals {
    let jobs = seen.created.all().count() as u64;
    let create_s = seen.created.took_ms as f64 / 1000.0;
    let attempts = seen.measure.attempts;
    let each = |value: f64| (attempts > 0).then(|| value / attempts as f64);
    let (start, end) = (&seen.at_start, &seen.at_end);
    let node = start.node.zip(end.node);
    let elapsed_s = (end.at_us - start.at_us).max(1) as f64 / 1e6;
    let received: u64 = seconds.iter().map(|s| s.received).sum();
    let last = seconds.iter().rposition(|s| s.received > 0).map_or(1, |last| last + 1);
    let in_run = || seconds.iter().filter(|s| s.second < seen.until_s);
    let probed = in_run().filter(|s| s.up.is_some()).count();
    let answered = in_run().filter(|s| s.up == Some(true)).count();
    let most_open = seconds
        .iter()
        .filter(|s| s.open_runs.is_some() && s.node.is_some())
        .max_by(|a, b| a.open_runs.unwrap_or(0.0).total_cmp(&b.open_runs.unwrap_or(0.0)));
    let idle_mb = start.node.map(|usage| usage.rss_kb as f64 / 1024.0);
    let kib_per_open_run = most_open.zip(idle_mb).and_then(|(s, idle)| {
        let (open, rss) = (s.open_runs?, s.node?.rss_mb);
        (open >= 1.0).then(|| (rss - idle).max(0.0) * 1024.0 / open)
    });
    Totals {
        jobs,
        create_s,
        created_per_s: if create_s > 0.0 { jobs as f64 / create_s } else { 0.0 },
        received_per_s: received as f64 / last as f64,
        attempts,
        outcomes: seen.measure.outcomes.clone(),
        drain_s: seen.drain_s,
        runs_left: seen.runs_left,
        max_open_runs: most_open.and_then(|s| s.open_runs).map(|open| open as u64),
        max_lag_events: highest(seconds.iter().map(|s| s.lag_events)),
        lag_p99_ms: p99(in_run().filter_map(|s| s.lag_ms)),
        others_cores: mean(in_run().filter_map(|s| s.others_cores)),
        availability_percent: (probed > 0).then(|| answered as f64 * 100.0 / probed as f64),
        node_cpu_us_per_trigger: node.and_then(|(a, b)| each(b.cpu_us.saturating_sub(a.cpu_us) as f64)),
        // Processes come and go, so that only the seconds tell.
        executors_cpu_us_per_trigger: each(seconds.iter().map(|s| s.executors.cores * 1e6).sum()),
        written_bytes_per_trigger: node.and_then(|(a, b)| each(b.write_bytes.saturating_sub(a.write_bytes) as f64)),
        disk_bytes_per_trigger: start.disk.zip(end.disk).and_then(|(a, b)| each(b.saturating_sub(a) as f64)),
        // A node that was started again counts from 0.
        syncs_per_s: start
            .metrics
            .batches
            .zip(end.metrics.batches)
            .filter(|_| seen.restarts.is_empty())
            .map(|(a, b)| (b - a) / elapsed_s),
        rss_idle_mb: idle_mb,
        rss_peak_mb: highest(seconds.iter().map(|s| s.node.map(|node| node.rss_mb))),
        rss_slope_mb_per_min: slope_per_min(in_run().filter(|s| s.second >= scenario.warmup_s as i64)),
        kib_per_open_run,
        ceiling: seen.ceiling,
        restarts: restarts(seen),
    }
}

fn restarts(seen: &RunObservations) -> Vec<Restarted> {
    let all = seen.restarts.iter().zip(&seen.measure.restarts);
    all.map(|((phase, signal, rss_mb), (begin_us, first_us))| Restarted {
        phase: phase.clone(),
        signal: (*signal).to_owned(),
        first_trigger_s: first_us.map(|first| (first - begin_us) as f64 / 1e6),
        rss_mb: *rss_mb,
    })
    .collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// Of the node's memory, by least squares.
fn slope_per_min<'a>(seconds: impl Iterator<Item = &'a Second>) -> Option<f64> {
    let points: Vec<(f64, f64)> = seconds.filter_map(|s| Some((s.second as f64, s.node?.rss_mb))).collect();
    if points.len() < 2 {
        return None;
    }
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let over: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let under: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    Some(over / under * 60.0)
}

/// The verdict, for people.
pub(super) fn print(report: &Report, dir: &Path) {
    let p = &report.all.start;
    println!(
        "\n{} due, {} received ({:.0}/s); lateness p50 {:.1}, p99 {:.1}, p99.9 {:.1}, max {:.1} ms; durable p99 {:.1} ms",
        report.all.due,
        p.count,
        report.totals.received_per_s,
        p.p50_ms,
        p.p99_ms,
        p.p999_ms,
        p.max_ms,
        report.all.durable.p99_ms
    );
    report.verdict.iter().for_each(|judged| println!("  {}", judged.line()));
    for target in report.targets.iter().map(Figure::as_target) {
        let word = if target.held { "target held:  " } else { "target missed:" };
        println!("  {word} {:<33} {:<22} got {}", target.limit, target.wanted, target.got);
    }
    for restarted in &report.totals.restarts {
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), verdict::shown);
        println!(
            "  {} in phase {}: first trigger {} s after the new process began, {} MB",
            restarted.signal,
            restarted.phase,
            shown(restarted.first_trigger_s),
            shown(restarted.rss_mb)
        );
    }
    if let Some(others) = report.totals.others_cores.filter(|cores| *cores > OTHERS_CORES) {
        println!("  disturbed: others used {others:.2} processors of this machine meanwhile");
    }
    if let Some(checker) = &report.checker {
        println!("  history checker: {checker}");
    }
    if let Some(why) = &report.stopped {
        println!("  stopped before its time: {why}");
    }
    let word = if report.green { "GREEN" } else { "RED" };
    println!("{word} {}: {}", report.scenario.name, dir.join("report.html").display());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Use;

    #[test]
    fn the_slope_is_told_per_minute() {
        let second =
            |n: i64, rss_mb| Second { second: n, node: Some(Use { rss_mb, ..Use::default() }), ..Second::default() };
        let rows: Vec<Second> = (0..120).map(|n| second(n, 100.0 + n as f64 / 30.0)).collect();
        assert!(slope_per_min(rows.iter()).is_some_and(|slope| (slope - 2.0).abs() < 1e-9));
        assert_eq!(slope_per_min(rows[..1].iter()), None);
    }
}
