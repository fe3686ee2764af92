//! The report as one page that needs nothing else: tables, and plots as inline SVG.

use super::{
    CallFigures, Figures, Report, Second, Use,
    svg::{Curve, Plot, short},
    verdict::{Figure, Judged},
};

pub(crate) use super::svg::escaped;
use crate::limits::OTHERS_CORES;
use std::fmt::Write;

pub(crate) const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2430;--soft:#667084;--line:#d9dee7;--back:#fff;--tint:#f4f6fa;--c0:#2563eb;--c1:#d9480f;--c2:#7c3aed;--c3:#0f8a5f}\
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf2;--soft:#98a2b5;--line:#2e3747;--back:#12161d;--tint:#1a202b;--c0:#6ea0ff;--c1:#ff9a5c;--c2:#b794ff;--c3:#4ecb99}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:1040px;margin:2rem auto;padding:0 1rem}\
h1{margin:0 0 .3rem}h2{margin:2rem 0 .6rem;font-size:1.15rem}p{margin:.3rem 0}small,.soft{color:var(--soft)}\
.word{display:inline-block;padding:.1rem .7rem;border-radius:.4rem;color:#fff;font-weight:600}.green{background:#14804a}.red{background:#c0262d}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.25rem .8rem .25rem 0;text-align:right;border-bottom:1px solid var(--line)}\
th{font-weight:600;color:var(--soft)}th:first-child,td:first-child{text-align:left}td.broken{color:#c0262d;font-weight:600}\
figure{margin:0 0 1.4rem}figcaption{font-weight:600}svg{width:100%;height:auto}.legend{padding-left:4rem;font-size:.85rem}.legend span{margin-right:1.2rem}\
.legend span::before{content:'';display:inline-block;width:1.1rem;height:.2rem;margin:0 .4rem .2rem 0;background:currentColor}\
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}text.y{text-anchor:end}text.x{text-anchor:middle}.grid{stroke:var(--line)}\
.event{stroke:#c0262d;stroke-dasharray:3 3;stroke-width:1.5}.phase0{fill:none}.phase1{fill:var(--tint)}\
path{fill:none;stroke-width:1.4}.c0{stroke:var(--c0);stroke-width:3.6}.c1{stroke:var(--c1);stroke-width:2.4}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}\
.k0{color:var(--c0)}.k1{color:var(--c1)}.k2{color:var(--c2)}.k3{color:var(--c3)}\
pre{background:var(--tint);padding:.8rem;overflow-x:auto;border-radius:.4rem;font-size:.82rem}";

/// The page.
pub fn page(r: &Report) -> String {
    let word = if r.green { ("green", "GREEN") } else { ("red", "RED") };
    let form = if r.short { "short form" } else { "full form" };
    let m = &r.machine;
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{name}: {word}</title><style>{STYLE}</style></head><body><h1>{name} <span class=\"word {class}\">{word}</span></h1><p>{about}</p>\
         <p class=\"soft\">{form} of {file} · {date} · {system}</p>\n",
        name = escaped(&r.scenario.name),
        word = word.1,
        class = word.0,
        about = escaped(&r.scenario.about),
        file = escaped(&r.file),
        date = escaped(&m.date),
        system = escaped(&r.system),
    );
    if let Some(why) = &r.stopped {
        let _ = write!(
            page,
            "<p><b>It ended before its time:</b> {}. All below is what was seen until then.</p>",
            escaped(why)
        );
    }
    verdict(r, &mut page);
    lateness(r, &mut page);
    calls(&r.calls, &mut page);
    totals(r, &mut page);
    page.push_str("<h2>Second by second</h2>\n<p class=\"soft\">Lateness is drawn at the second in which the instant was due. A red line is something that happened.</p>\n");
    plots(r, &mut page);
    if !r.happened.is_empty() {
        page.push_str("<h2>What happened</h2><ul>");
        r.happened.iter().for_each(|h| {
            let _ = write!(page, "<li>second {}: {}</li>", h.second, escaped(&h.what));
        });
        page.push_str("</ul>");
    }
    machine(r, &mut page);
    page.push_str("</body></html>\n");
    page
}

/// A table of limits: each was held, or the word for that it was not.
pub(crate) fn limits_table(page: &mut String, kind: &str, limits: &[Judged], not_held: &str) {
    let _ = write!(page, "<div class=\"wide\"><table><tr><th>{kind}</th><th>wanted</th><th>got</th><th></th></tr>");
    for j in limits {
        let class = if j.held { "" } else { " class=\"broken\"" };
        let word = if j.held { "held" } else { not_held };
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td{class}>{}</td><td{class}>{word}</td></tr>",
            escaped(&j.limit),
            escaped(&j.wanted),
            escaped(&j.got)
        );
    }
    page.push_str("</table></div>\n");
}

fn verdict(r: &Report, page: &mut String) {
    page.push_str("<h2>Verdict</h2>\n");
    limits_table(page, "limit", &r.verdict, "broken");
    if !r.targets.is_empty() {
        let targets: Vec<Judged> = r.targets.iter().map(Figure::as_target).collect();
        limits_table(page, "target", &targets, "missed");
    }
    if let Some(told) = &r.checker {
        let _ = write!(page, "<p>History checker:</p><pre>{}</pre>", escaped(told));
    }
}

fn lateness(r: &Report, page: &mut String) {
    page.push_str(
        "<h2>Lateness, ms</h2>\n<div class=\"wide\"><table><tr><th></th><th>due</th><th>received</th><th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>max</th>\
         <th>body ended p99</th><th>durable p50</th><th>durable p99</th></tr>",
    );
    let mut row = |kind: &str, f: &Figures| {
        let s = &f.start;
        let _ = write!(page, "<tr><td>{kind}{}</td><td>{}</td><td>{}</td>", escaped(&f.name), f.due, s.count);
        for value in
            [s.p50_ms, s.p90_ms, s.p99_ms, s.p999_ms, s.max_ms, f.end.p99_ms, f.durable.p50_ms, f.durable.p99_ms]
        {
            let _ = write!(page, "<td>{}</td>", short(value));
        }
        page.push_str("</tr>");
    };
    row("", &r.all);
    let more = [("load ", &r.groups), ("phase ", &r.phases), ("", &r.groups_by_phase)];
    more.iter().filter(|(_, all)| all.len() > 1).for_each(|(kind, all)| all.iter().for_each(|f| row(kind, f)));
    page.push_str("</table></div>\n<p class=\"soft\">From the due instant to the executor's receipt; to the end of the body; to the node's word that the result is durable.</p>\n");
}

fn calls(calls: &[CallFigures], page: &mut String) {
    if calls.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Calls, ms from the due instant</h2>\n<div class=\"wide\"><table><tr><th></th><th>due</th><th>answered</th><th>p50</th><th>p99</th><th>p99.9</th><th>max</th><th>failed</th></tr>",
    );
    for c in calls {
        let l = &c.latency;
        let failed: Vec<String> = c.failed.iter().map(|(code, count)| format!("{count} {code}")).collect();
        let _ = write!(page, "<tr><td>{}</td><td>{}</td><td>{}</td>", escaped(&c.name), c.due, c.answered);
        for value in [l.p50_ms, l.p99_ms, l.p999_ms, l.max_ms] {
            let _ = write!(page, "<td>{}</td>", short(value));
        }
        let failed = if failed.is_empty() { "none".to_owned() } else { failed.join(", ") };
        let _ = write!(page, "<td>{}</td></tr>", escaped(&failed));
    }
    page.push_str("</table></div>\n");
}

fn totals(r: &Report, page: &mut String) {
    let t = &r.totals;
    let outcomes: Vec<String> = t.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    page.push_str("<h2>The system</h2>\n<div class=\"wide\"><table>");
    let mut row = |name: &str, value: String| {
        let _ = write!(page, "<tr><td>{}</td><td>{}</td></tr>", escaped(name), escaped(&value));
    };
    row("jobs created", format!("{} in {:.1} s ({:.0}/s)", t.jobs, t.create_s, t.created_per_s));
    row("received per second", format!("{:.0}", t.received_per_s));
    row("attempts", format!("{}: {}", t.attempts, outcomes.join(", ")));
    let figures = [
        ("highest rate that was followed, /s", t.ceiling),
        ("drained after the last instant, s", t.drain_s),
        ("runs left open", t.runs_left.map(|n| n as f64)),
        ("most runs open at once", t.max_open_runs.map(|n| n as f64)),
        ("highest history lag, events", t.max_lag_events),
        ("history lag p99, ms", t.lag_p99_ms),
        ("availability, % of seconds", t.availability_percent),
        ("node CPU per trigger, us", t.node_cpu_us_per_trigger),
        ("executors' CPU per trigger, us", t.executors_cpu_us_per_trigger),
        ("bytes written per trigger", t.written_bytes_per_trigger),
        ("bytes kept per trigger", t.disk_bytes_per_trigger),
        ("journal syncs per second", t.syncs_per_s),
        ("CPU of others on the machine, processors", t.others_cores),
        ("node memory with all jobs idle, MB", t.rss_idle_mb),
        ("node memory, highest, MB", t.rss_peak_mb),
        ("node memory, slope, MB/min", t.rss_slope_mb_per_min),
        ("node memory per open run, KiB", t.kib_per_open_run),
    ];
    for (name, value) in figures {
        if let Some(value) = value {
            row(name, short(value));
        }
    }
    for restarted in &t.restarts {
        let seconds = restarted.first_trigger_s.map_or("none".to_owned(), short);
        let memory = restarted.rss_mb.map_or("?".to_owned(), short);
        row(
            &format!("{} of the node, phase {}", restarted.signal, restarted.phase),
            format!("first trigger {seconds} s after the new process began, {memory} MB"),
        );
    }
    if t.others_cores.is_some_and(|cores| cores > OTHERS_CORES) {
        row("disturbed", "others used this machine meanwhile: measure again".to_owned());
    }
    page.push_str("</table></div>\n");
}

/// Processes without memory were not looked at in that second.
fn seen(used: &Use) -> Option<&Use> {
    (used.rss_mb > 0.0).then_some(used)
}

fn plots(r: &Report, page: &mut String) {
    let curve = |name: &'static str, of: fn(&Second) -> Option<f64>| Curve {
        name,
        points: r.seconds.iter().map(|s| (s.second as f64, of(s))).collect(),
    };
    let mut draw = |title: &str, unit: &str, log: bool, curves: Vec<Curve>| {
        page.push_str(&Plot { title, unit, log, curves, stretches: &r.stretches, happened: &r.happened }.draw());
        page.push('\n');
    };
    draw(
        "Rate",
        "per second",
        false,
        vec![
            curve("due", |s| Some(s.due as f64)),
            curve("received by executors", |s| Some(s.received as f64)),
            curve("durable", |s| Some(s.durable as f64)),
        ],
    );
    draw(
        "Lateness of starts",
        "ms, logarithmic",
        true,
        vec![curve("p50", |s| s.start_p50_ms), curve("p99", |s| s.start_p99_ms), curve("p99.9", |s| s.start_p999_ms)],
    );
    draw(
        "Lateness of durable ends",
        "ms, logarithmic",
        true,
        vec![curve("p99, body ended", |s| s.end_p99_ms), curve("p99, durable", |s| s.durable_p99_ms)],
    );
    draw("CPU per trigger", "us of the node", false, vec![curve("node", |s| s.node_cpu_us_per_trigger)]);
    draw(
        "Processors in use",
        "cores",
        false,
        vec![
            curve("node", |s| s.node.map(|u| u.cores)),
            curve("executors", |s| seen(&s.executors).map(|u| u.cores)),
            curve("harness", |s| seen(&s.harness).map(|u| u.cores)),
            curve("others", |s| s.others_cores),
        ],
    );
    draw(
        "Memory",
        "MB",
        false,
        vec![
            curve("node", |s| s.node.map(|u| u.rss_mb)),
            curve("executors", |s| seen(&s.executors).map(|u| u.rss_mb)),
            curve("harness", |s| seen(&s.harness).map(|u| u.rss_mb)),
        ],
    );
    draw(
        "Queue depth",
        "runs",
        false,
        vec![
            curve("open", |s| s.open_runs),
            curve("waiting for an executor", |s| s.waiting),
            curve("waiting for a retry", |s| s.retrying),
        ],
    );
    draw("History lag", "durable events not shown yet", false, vec![curve("events", |s| s.lag_events)]);
    draw("Age of the history", "ms that the oldest of them has waited", false, vec![curve("age", |s| s.lag_ms)]);
    draw("Journal syncs", "per second", false, vec![curve("syncs", |s| s.syncs)]);
    draw(
        "Disk",
        "MB",
        false,
        vec![curve("files of the node", |s| s.disk_mb), curve("written each second", |s| s.node.map(|u| u.written_mb))],
    );
    draw(
        "Availability",
        "1 = the node answered the probe",
        false,
        vec![curve("up", |s| s.up.map(|up| f64::from(u8::from(up))))],
    );
}

fn machine(r: &Report, page: &mut String) {
    let m = &r.machine;
    let build = if m.release { "release build" } else { "debug build: figures are not those of a release" };
    let _ = write!(
        page,
        "<h2>Machine and settings</h2><p>{} · {} x {} · {} MB · {} · server {} · commit {} · harness {} ({build})</p><pre>{}</pre>",
        escaped(&m.host),
        m.cpus,
        escaped(&m.cpu),
        m.memory_mb,
        escaped(&m.kernel),
        escaped(&m.server_version),
        escaped(if m.commit.is_empty() { "unknown" } else { &m.commit }),
        escaped(&m.harness_version),
        escaped(&serde_json::to_string_pretty(&r.scenario).unwrap_or_default())
    );
}
