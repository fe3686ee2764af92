//! Which of the limits that a workload states were held.

use super::{Figures, Report, in_phase};
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

fn shown(value: f64) -> String {
    if value.abs() >= 100.0 || value == value.trunc() { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn at_most(limit: String, wanted: f64, got: Option<f64>) -> Judged {
    // What could not be measured was not shown to hold.
    let held = got.is_some_and(|got| got <= wanted);
    Judged {
        limit,
        wanted: format!("at most {}", shown(wanted)),
        got: got.map_or("not measured".to_owned(), shown),
        held,
    }
}

fn at_least(limit: String, wanted: f64, got: Option<f64>) -> Judged {
    let held = got.is_some_and(|got| got >= wanted);
    Judged {
        limit,
        wanted: format!("at least {}", shown(wanted)),
        got: got.map_or("not measured".to_owned(), shown),
        held,
    }
}

fn of_figures(of: &str, limits: &Limits, f: Option<&Figures>, judged: &mut Vec<Judged>) {
    if limits.all_started == Some(true) {
        let (started, due) = f.map_or((0, 0), |f| (f.start.count, f.due));
        judged.push(Judged {
            limit: format!("{of}all_started"),
            wanted: format!("{due} started"),
            got: started.to_string(),
            held: f.is_some_and(Figures::all_started),
        });
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
    judged.extend(named.map(|(name, wanted, got)| at_most(format!("{of}{name}"), wanted, got)));
}

/// All limits of the workload against what was measured.
pub fn judge(report: &Report) -> Vec<Judged> {
    let expect = &report.scenario.expect;
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
        judged.extend(limits.p99_ms.map(|wanted| at_most(format!("call {name}: p99_ms"), wanted, p99)));
        let failed = call.map(|call| call.failures() as f64);
        judged.extend(limits.failed.map(|wanted| at_most(format!("call {name}: failed"), wanted as f64, failed)));
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
        judged.push(at_most(limit, most.unwrap_or(0.0), got.filter(|_| most.is_some())));
    }
    of_totals(report, &mut judged);
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

fn of_totals(report: &Report, judged: &mut Vec<Judged>) {
    let (e, t) = (&report.scenario.expect, &report.totals);
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
    ];
    let least = [
        ("open_runs_at_least", e.open_runs_at_least.map(|n| n as f64), t.max_open_runs.map(|n| n as f64)),
        ("availability_percent", e.availability_percent, t.availability_percent),
        ("ceiling_at_least", e.ceiling_at_least, t.ceiling),
    ];
    for (name, wanted, got) in most {
        judged.extend(wanted.map(|wanted| at_most(name.to_owned(), wanted, got)));
    }
    for (name, wanted, got) in least {
        judged.extend(wanted.map(|wanted| at_least(name.to_owned(), wanted, got)));
    }
}
