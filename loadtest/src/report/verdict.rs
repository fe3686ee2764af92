//! Which of the limits and targets that a workload states were held.

use super::{Figures, Report, Totals, in_phase};
use crate::scenario::{Expect, Limits};
use serde::Serialize;

/// One limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Judged {
    /// As it is named in the file.
    pub limit: String,
    pub wanted: String,
    pub got: String,
    pub held: bool,
}

impl Judged {
    /// A sentence for people.
    pub fn line(&self) -> String {
        let word = if self.held { "held  " } else { "BROKEN" };
        format!("{word} {:<40} wanted {:<22} got {}", self.limit, self.wanted, self.got)
    }
}

/// On which side of a limit a figure must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Bound {
    AtMost,
    AtLeast,
}

/// A figure beside what is wanted of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// As the limit is named in the file.
    pub name: String,
    pub bound: Bound,
    pub wanted: f64,
    /// None: it could not be measured.
    pub got: Option<f64>,
}

/// A value in few digits.
pub fn shown(value: f64) -> String {
    if value.abs() >= 100.0 || value == value.trunc() { format!("{value:.0}") } else { format!("{value:.2}") }
}

impl Figure {
    fn at_most(name: String, wanted: f64, got: Option<f64>) -> Self {
        Self { name, bound: Bound::AtMost, wanted, got }
    }

    fn at_least(name: String, wanted: f64, got: Option<f64>) -> Self {
        Self { name, bound: Bound::AtLeast, wanted, got }
    }

    /// What could not be measured was not shown to hold.
    pub fn is_held(&self) -> bool {
        self.got.is_some_and(|got| match self.bound {
            Bound::AtMost => got <= self.wanted,
            Bound::AtLeast => got >= self.wanted,
        })
    }

    /// What is wanted, for people.
    pub fn wish(&self) -> String {
        let word = match self.bound {
            Bound::AtMost => "at most",
            Bound::AtLeast => "at least",
        };
        format!("{word} {}", shown(self.wanted))
    }

    /// By how much it was missed, for people.
    pub fn missed_by(&self) -> Option<String> {
        let got = self.got.filter(|_| !self.is_held())?;
        let by = (got - self.wanted).abs();
        let part =
            if self.wanted == 0.0 { String::new() } else { format!(" ({:.0} %)", by * 100.0 / self.wanted.abs()) };
        Some(format!("missed by {}{part}", shown(by)))
    }

    /// As a limit of the verdict.
    pub fn as_limit(&self) -> Judged {
        let got = self.got.map_or("not measured".to_owned(), shown);
        Judged { limit: self.name.clone(), wanted: self.wish(), got, held: self.is_held() }
    }

    /// As a target: how far it is away belongs to it.
    pub fn as_target(&self) -> Judged {
        let limit = self.as_limit();
        let got = self.missed_by().map_or(limit.got.clone(), |by| format!("{}, {by}", limit.got));
        Judged { got, ..limit }
    }
}

fn of_figures(of: &str, limits: &Limits, f: Option<&Figures>, judged: &mut Vec<Figure>) {
    if limits.all_started == Some(true) {
        let due = f.map_or(0, |f| f.due) as f64;
        judged.push(Figure::at_least(format!("{of}all_started"), due, f.map(|f| f.start.count as f64)));
    }
    let start = f.filter(|f| f.start.count > 0).map(|f| f.start);
    let durable = f.filter(|f| f.durable.count > 0).map(|f| f.durable);
    let rows = [
        ("p50_ms", limits.p50_ms, start.map(|p| p.p50_ms)),
        ("p99_ms", limits.p99_ms, start.map(|p| p.p99_ms)),
        ("p999_ms", limits.p999_ms, start.map(|p| p.p999_ms)),
        ("max_ms", limits.max_ms, start.map(|p| p.max_ms)),
        ("durable_p99_ms", limits.durable_p99_ms, durable.map(|p| p.p99_ms)),
    ];
    let named = rows.into_iter().filter_map(|(name, wanted, got)| wanted.map(|wanted| (name, wanted, got)));
    judged.extend(named.map(|(name, wanted, got)| Figure::at_most(format!("{of}{name}"), wanted, got)));
}

/// All limits of `[expect]` or `[target]` against what was measured.
pub fn judge(report: &Report, expect: &Expect) -> Vec<Figure> {
    let mut judged = Vec::new();
    of_figures("", &overall(expect), Some(&report.all), &mut judged);
    let find = |all: &'_ [Figures], name: &str| all.iter().find(|f| f.name == name).cloned();
    for (name, limits) in &expect.groups {
        of_figures(&format!("group {name}: "), limits, find(&report.groups, name).as_ref(), &mut judged);
    }
    for (name, limits) in &expect.phases {
        of_figures(&format!("phase {name}: "), limits, find(&report.phases, name).as_ref(), &mut judged);
    }
    for (name, limits) in &expect.calls {
        let call = report.calls.iter().find(|call| call.name == *name);
        let p99 = call.filter(|call| call.answered > 0).map(|call| call.latency.p99_ms);
        judged.extend(limits.p99_ms.map(|wanted| Figure::at_most(format!("call {name}: p99_ms"), wanted, p99)));
        let failed = call.map(|call| call.failures() as f64);
        judged
            .extend(limits.failed.map(|wanted| Figure::at_most(format!("call {name}: failed"), wanted as f64, failed)));
    }
    for compare in &expect.compare {
        let of = |phase: &str| {
            let found = find(&report.groups_by_phase, &in_phase(&compare.group, phase)).filter(|f| f.start.count > 0);
            found.map(|f| f.start.p99_ms)
        };
        let (got, measure) = (of(&compare.phase), of(&compare.with));
        let most = measure.map(|measure| (measure * compare.p99_ratio).max(compare.or_p99_ms));
        let limit =
            format!("{}: p99_ms of {} in {} beside {}", compare.name, compare.group, compare.phase, compare.with);
        judged.push(Figure::at_most(limit, most.unwrap_or(0.0), got.filter(|_| most.is_some())));
    }
    of_totals(expect, &report.totals, &mut judged);
    judged
}

fn overall(e: &Expect) -> Limits {
    Limits {
        all_started: e.all_started,
        p50_ms: e.p50_ms,
        p99_ms: e.p99_ms,
        p999_ms: e.p999_ms,
        max_ms: e.max_ms,
        durable_p99_ms: e.durable_p99_ms,
    }
}

fn of_totals(e: &Expect, t: &Totals, judged: &mut Vec<Figure>) {
    let most = [
        ("runs_left", e.runs_left.map(|n| n as f64), t.runs_left.map(|n| n as f64)),
        ("drain_s", e.drain_s, t.drain_s),
        ("cpu_us_per_trigger", e.cpu_us_per_trigger, t.node_cpu_us_per_trigger),
        ("rss_mb", e.rss_mb, t.rss_peak_mb),
        ("rss_idle_mb", e.rss_idle_mb, t.rss_idle_mb),
        ("rss_slope_mb_per_min", e.rss_slope_mb_per_min, t.rss_slope_mb_per_min),
        ("kib_per_open_run", e.kib_per_open_run, t.kib_per_open_run),
        ("disk_bytes_per_trigger", e.disk_bytes_per_trigger, t.disk_bytes_per_trigger),
        ("lag_events", e.lag_events, t.max_lag_events),
        ("lag_p99_ms", e.lag_p99_ms, t.lag_p99_ms),
        ("restart_s", e.restart_s, t.restart_s()),
        ("restart_rss_mb", e.restart_rss_mb, t.restart_rss_mb()),
    ];
    let least = [
        ("open_runs_at_least", e.open_runs_at_least.map(|n| n as f64), t.max_open_runs.map(|n| n as f64)),
        ("availability_percent", e.availability_percent, t.availability_percent),
        ("ceiling_at_least", e.ceiling_at_least, t.ceiling),
        ("created_per_s_at_least", e.created_per_s_at_least, Some(t.created_per_s).filter(|rate| *rate > 0.0)),
    ];
    for (name, wanted, got) in most {
        judged.extend(wanted.map(|wanted| Figure::at_most(name.to_owned(), wanted, got)));
    }
    for (name, wanted, got) in least {
        judged.extend(wanted.map(|wanted| Figure::at_least(name.to_owned(), wanted, got)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_told_with_how_much() {
        let figure = |bound, wanted, got| Figure { name: "x".to_owned(), bound, wanted, got };
        let told = |figure: Figure| (figure.is_held(), figure.as_target().got);
        assert_eq!(told(figure(Bound::AtMost, 10.0, Some(10.0))), (true, "10".to_owned()));
        assert_eq!(told(figure(Bound::AtMost, 10.0, Some(14.0))), (false, "14, missed by 4 (40 %)".to_owned()));
        assert_eq!(told(figure(Bound::AtLeast, 100.0, Some(90.0))), (false, "90, missed by 10 (10 %)".to_owned()));
        assert_eq!(told(figure(Bound::AtMost, 0.0, Some(3.0))), (false, "3, missed by 3".to_owned()));
        assert_eq!(told(figure(Bound::AtLeast, 1.0, None)), (false, "not measured".to_owned()));
    }

    #[test]
    fn all_started_needs_every_one() {
        let started = |count| {
            let start = crate::load::latency::Percentiles { count, ..Default::default() };
            let figures = Figures { due: 5, start, ..Figures::default() };
            let mut judged = Vec::new();
            of_figures("", &Limits { all_started: Some(true), ..Limits::default() }, Some(&figures), &mut judged);
            judged[0].is_held()
        };
        assert!(started(5));
        assert!(!started(4));
    }
}
