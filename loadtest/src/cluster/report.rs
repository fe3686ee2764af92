//! What a run found: a table for people, `report.json`, and `report.html`.

use super::ClusterBenchArgs;
use crate::{
    load::latency::Percentiles,
    report::{
        html::{STYLE, escaped, limits_table},
        machine::Machine,
        verdict::Judged,
    },
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt::Write, fs, io, path::Path};

/// What is aimed at: CPU of everybody and of nodes alone, microseconds a trigger; requests a trigger; how far numbers of nodes may lie apart; and a
/// take-over, milliseconds. The rate is one that was held.
const ALL_CPU_US_MAX: f64 = 200.0;
const NODES_CPU_US_MAX: f64 = 25.0;
const REQUESTS_MAX: f64 = 1.5;
const CPU_RATIO_MAX: f64 = 1.2;
const RATE: f64 = 5_000.0;
const TAKE_OVER_P99_MS: f64 = 5_000.0;
const TAKE_OVER_WORST_MS: f64 = 10_000.0;
/// The longest delay of any trigger when a node is stopped in order.
const DRAIN_WORST_MS: f64 = 1_000.0;
/// A rate is nominal: periods are whole seconds.
const RATE_SHARE_MIN: f64 = 0.99;

/// One number of nodes. CPU, bytes and requests are for each instant that was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    pub nodes: usize,
    /// Why it could not be measured.
    pub error: Option<String>,
    pub version: String,
    pub jobs: u64,
    pub create_ms: i64,
    /// Instants of the window, and those of which a body began.
    pub due: u64,
    pub started: u64,
    pub all_started: bool,
    /// From the end of the window until all of them were started; null: not in time.
    pub caught_up_ms: Option<i64>,
    pub started_per_s: f64,
    /// The fewest bodies of instants of one second.
    pub slowest_second: u64,
    /// From the due instant to the executor's receipt.
    pub lateness: Percentiles,
    pub nodes_us: f64,
    pub store_us: f64,
    pub executors_us: f64,
    /// Nodes, store and executors.
    pub all_us: f64,
    pub harness_us: f64,
    pub others_cores: f64,
    /// All nodes together.
    pub nodes_rss_mb: u64,
    pub store_rss_mb: u64,
    pub store_written_bytes: f64,
    pub requests: f64,
    pub requests_by_kind: BTreeMap<String, f64>,
    /// Requests in all that failed.
    pub errors: f64,
    /// Calls that each node answered while jobs were created.
    pub calls: BTreeMap<String, u64>,
    pub take_over: Option<TakeOver>,
}

/// After a kill -9, or a stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TakeOver {
    pub node: String,
    pub shards: u64,
    /// From the order to stop until it had ended; null: it was killed.
    pub stopped_ms: Option<i64>,
    /// Lateness of what was due after it: jobs of that node's shards, and all others.
    pub orphans: Percentiles,
    pub others: Percentiles,
    /// From then to the first body of each of that node's shards that was due after it.
    pub fires_again: Percentiles,
    /// Shards of that node of which no body began.
    pub never_again: u64,
    /// From then to the last body that began a quarter of a second late or more.
    pub quiet_ms: f64,
    /// Instants of the window of which a body began, as a first attempt or a later one.
    pub started: u64,
    pub shards_taken: u64,
    /// Of these, those of which something was read before they were claimed.
    pub read_ahead: u64,
    pub replayed_frames: u64,
    pub replayed_rows: u64,
    pub replayed_bytes: u64,
    pub snapshot_bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub machine: Machine,
    pub settings: BTreeMap<String, String>,
    /// All numbers of nodes that were asked for were measured, and everything that was due was started.
    pub whole: bool,
    /// Numbers of nodes that are not measured yet; the report of a run that was ended early tells them.
    pub outstanding: usize,
    pub targets: Vec<Judged>,
    pub measured: Vec<Measured>,
}

impl Measured {
    pub fn failed(nodes: usize, error: String) -> Self {
        Self { nodes, error: Some(error), ..Self::default() }
    }

    /// In a take-over shards may be moved back later; then too everything that was due is to be started.
    fn is_whole(&self) -> bool {
        self.error.is_none() && self.all_started
    }
}

impl Report {
    pub fn new(args: &ClusterBenchArgs, machine: Machine, measured: Vec<Measured>, asked: usize) -> Self {
        let size = args.size();
        let each = measured.iter().map(|one| format!("{} of {} nodes", args.threads_of(one.nodes), one.nodes));
        let threads = each.collect::<Vec<_>>().join(", ");
        let mut settings = BTreeMap::from([
            ("jobs".to_owned(), size.jobs.to_string()),
            ("rate".to_owned(), size.rate.to_string()),
            ("tenants".to_owned(), size.tenants.to_string()),
            ("seconds".to_owned(), args.seconds.to_string()),
            ("warmSeconds".to_owned(), args.warm_seconds().to_string()),
            ("executors".to_owned(), args.executors.to_string()),
            ("shards".to_owned(), args.shards.to_string()),
            ("leaseMs".to_owned(), args.lease.to_string()),
            ("threads".to_owned(), threads),
            ("storeHeap".to_owned(), args.store_heap.clone()),
        ]);
        settings.extend(args.set.iter().cloned());
        let outstanding = asked.saturating_sub(measured.len());
        let whole = outstanding == 0 && measured.iter().all(Measured::is_whole);
        Self { machine, settings, whole, outstanding, targets: targets(&measured, args.leaves()), measured }
    }

    pub fn is_good(&self, strict: bool) -> bool {
        self.whole && (!strict || self.targets.iter().all(|target| target.held))
    }

    pub fn word(&self) -> &'static str {
        if self.whole { "GREEN" } else { "RED" }
    }

    pub fn write(&self, dir: &Path) -> io::Result<()> {
        fs::write(dir.join("report.json"), serde_json::to_vec_pretty(self)?)?;
        fs::write(dir.join("report.html"), page(self))
    }
}

fn judged(limit: String, wanted: String, got: String, held: bool) -> Judged {
    Judged { limit, wanted, got, held }
}

/// Each target that this run can say something about.
fn targets(measured: &[Measured], leaves: bool) -> Vec<Judged> {
    let mut all = Vec::new();
    let good: Vec<&Measured> = measured.iter().filter(|one| one.error.is_none()).collect();
    for one in &good {
        let Some(take_over) = &one.take_over else { continue };
        let p = &take_over.orphans;
        if take_over.stopped_ms.is_some() {
            let got = p.max_ms.max(take_over.others.max_ms);
            // Of a small load some shard may have nothing due: that all was started says more.
            let held = got < DRAIN_WORST_MS && p.count > 0 && one.all_started;
            let limit = "a node is stopped in order, longest delay of any trigger".to_owned();
            all.push(judged(limit, format!("< {DRAIN_WORST_MS:.0} ms"), format!("{got:.0} ms"), held));
            continue;
        }
        for (what, wanted, got) in [("p99", TAKE_OVER_P99_MS, p.p99_ms), ("worst", TAKE_OVER_WORST_MS, p.max_ms)] {
            let limit = format!("shards of a killed node, lateness {what}");
            let held = got <= wanted && p.count > 0 && take_over.never_again == 0;
            all.push(judged(limit, format!("<= {wanted:.0} ms"), format!("{got:.0} ms"), held));
        }
    }
    if leaves {
        return all;
    }
    for one in &good {
        let of = |what: &str| format!("{} node(s): {what}", one.nodes);
        let mut at_most = |what: &str, wanted: f64, got: f64, unit: &str| {
            // Nothing started has no price.
            let held = got <= wanted && one.started > 0;
            all.push(judged(of(what), format!("<= {wanted:.1}{unit}"), format!("{got:.1}{unit}"), held));
        };
        at_most("CPU of all, a trigger", ALL_CPU_US_MAX, one.all_us, " us");
        at_most("CPU of nodes, a trigger", NODES_CPU_US_MAX, one.nodes_us, " us");
        at_most("requests to the store, a trigger", REQUESTS_MAX, one.requests, "");
        let held = one.started_per_s >= RATE * RATE_SHARE_MIN && one.is_whole();
        all.push(judged(of("rate"), format!(">= {RATE:.0}/s"), format!("{:.0}/s", one.started_per_s), held));
    }
    if good.len() > 1 {
        let costs = good.iter().map(|one| one.all_us);
        let (least, most) = costs.fold((f64::INFINITY, 0.0_f64), |(least, most), us| (least.min(us), most.max(us)));
        let apart = most / least.max(1e-9);
        let limit = "dearest number of nodes / cheapest, CPU of all".to_owned();
        all.push(judged(limit, format!("<= {CPU_RATIO_MAX}"), format!("{apart:.2}"), apart <= CPU_RATIO_MAX));
    }
    all
}

/// Of one number of nodes, for people.
pub fn lines(one: &Measured) -> String {
    if let Some(error) = &one.error {
        return format!("    could not be measured: {error}");
    }
    let p = &one.lateness;
    let kinds: Vec<String> = one.requests_by_kind.iter().map(|(kind, each)| format!("{kind} {each:.3}")).collect();
    let last = one.caught_up_ms.map_or("not all in time".to_owned(), |ms| format!("the last within {ms} ms"));
    let mut text = format!(
        "    {} of {} due were started, {}; {:.0}/s, fewest {} in a second; lateness p50 {:.1} p99 {:.1} max {:.1} ms\n    \
         CPU a trigger: {:.1} us = nodes {:.1} + store {:.1} + executors {:.1}; harness {:.1}, others {:.2} cores\n    \
         requests to the store a trigger: {:.3} ({}), {:.0} failed; {:.0} bytes written by the store\n    \
         RSS: nodes {} MB, store {} MB; {} jobs created in {:.1} s, batches by node: {}",
        one.started,
        one.due,
        last,
        one.started_per_s,
        one.slowest_second,
        p.p50_ms,
        p.p99_ms,
        p.max_ms,
        one.all_us,
        one.nodes_us,
        one.store_us,
        one.executors_us,
        one.harness_us,
        one.others_cores,
        one.requests,
        kinds.join(", "),
        one.errors,
        one.store_written_bytes,
        one.nodes_rss_mb,
        one.store_rss_mb,
        one.jobs,
        one.create_ms as f64 / 1000.0,
        one.calls.iter().map(|(node, calls)| format!("{node} {calls}")).collect::<Vec<_>>().join(", "),
    );
    if let Some(t) = &one.take_over {
        text.push_str(&left(t));
    }
    text
}

/// Of the node that was killed, or stopped.
fn left(t: &TakeOver) -> String {
    let mut text = format!(
        "\n    {} {} with {} shards: of {} instants due there after it, lateness p50 {:.0} p99 {:.0} worst {:.0} ms; elsewhere p99 {:.0} worst {:.0} ms",
        t.node,
        t.stopped_ms.map_or("killed".to_owned(), |ms| format!("stopped within {ms} ms")),
        t.shards,
        t.orphans.count,
        t.orphans.p50_ms,
        t.orphans.p99_ms,
        t.orphans.max_ms,
        t.others.p99_ms,
        t.others.max_ms,
    );
    // Shards that were given away in order were never nobody's, and what their new owners read was before the count.
    if t.stopped_ms.is_none() {
        // Writing into a text cannot fail.
        let _ = write!(
            text,
            "\n    shards fire again after p50 {:.0} p99 {:.0} worst {:.0} ms, {} never; all is quiet after {:.0} ms\n    \
             {} shards taken, {} of them read ahead: {} frames in {} rows, {:.1} MB read of lanes and {:.1} MB of snapshots",
            t.fires_again.p50_ms,
            t.fires_again.p99_ms,
            t.fires_again.max_ms,
            t.never_again,
            t.quiet_ms,
            t.shards_taken,
            t.read_ahead,
            t.replayed_frames,
            t.replayed_rows,
            t.replayed_bytes as f64 / 1e6,
            t.snapshot_bytes as f64 / 1e6,
        );
    }
    text
}

/// All of it, for the terminal.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    if report.outstanding > 0 {
        let _ = writeln!(out, "{} more number(s) of nodes were asked for and not measured", report.outstanding);
    }
    for one in &report.measured {
        let _ = writeln!(out, "{} node(s)\n{}", one.nodes, lines(one));
    }
    report.targets.iter().for_each(|target| {
        let _ = writeln!(out, "  {}", target.line());
    });
    if !report.machine.release {
        out.push_str("  A debug build of the harness: these figures say little.\n");
    }
    out
}

type Row = (&'static str, fn(&Measured) -> String);

const ROWS: &[Row] = &[
    ("instants due", |m| m.due.to_string()),
    ("started", |m| m.started.to_string()),
    ("started a second", |m| format!("{:.0}", m.started_per_s)),
    ("all started, ms after the last second", |m| m.caught_up_ms.map_or("never".to_owned(), |ms| ms.to_string())),
    ("lateness p50, ms", |m| format!("{:.1}", m.lateness.p50_ms)),
    ("lateness p99, ms", |m| format!("{:.1}", m.lateness.p99_ms)),
    ("lateness max, ms", |m| format!("{:.1}", m.lateness.max_ms)),
    ("CPU of all a trigger, us", |m| format!("{:.1}", m.all_us)),
    ("CPU of nodes, us", |m| format!("{:.1}", m.nodes_us)),
    ("CPU of the store, us", |m| format!("{:.1}", m.store_us)),
    ("CPU of executors, us", |m| format!("{:.1}", m.executors_us)),
    ("CPU of others, cores", |m| format!("{:.2}", m.others_cores)),
    ("requests to the store a trigger", |m| format!("{:.3}", m.requests)),
    ("bytes written by the store a trigger", |m| format!("{:.0}", m.store_written_bytes)),
    ("RSS of nodes, MB", |m| m.nodes_rss_mb.to_string()),
    ("RSS of the store, MB", |m| m.store_rss_mb.to_string()),
    ("jobs", |m| m.jobs.to_string()),
    ("created in, s", |m| format!("{:.1}", m.create_ms as f64 / 1000.0)),
];

fn page(report: &Report) -> String {
    let class = report.word().to_ascii_lowercase();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>bench-cluster: {word}</title><style>{STYLE}</style></head><body><h1>bench-cluster <span class=\"word {class}\">{word}</span></h1>\
         <p>Nodes on one CQL server, all on this machine. A trigger is an instant of which a body began. GREEN: all were started.</p>\
         <h2>Targets</h2>",
        word = report.word(),
    );
    if report.outstanding > 0 {
        let _ = write!(page, "<p>{} more number(s) of nodes were asked for and not measured.</p>", report.outstanding);
    }
    limits_table(&mut page, "target", &report.targets, "missed");
    page.push_str("<h2>Figures</h2><div class=\"wide\"><table><tr><th></th>");
    for one in &report.measured {
        let _ = write!(page, "<th>{} node(s)</th>", one.nodes);
    }
    page.push_str("</tr>");
    for (name, value) in ROWS {
        let _ = write!(page, "<tr><td>{name}</td>");
        for one in &report.measured {
            let _ = write!(page, "<td>{}</td>", if one.error.is_some() { "?".to_owned() } else { value(one) });
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div><h2>In words</h2>");
    for one in &report.measured {
        let _ = write!(page, "<p>{} node(s)</p><pre>{}</pre>", one.nodes, escaped(&lines(one)));
    }
    let m = &report.machine;
    let build = if m.release { "release build" } else { "debug build: figures are not those of a release" };
    let _ = writeln!(
        page,
        "<h2>Machine and settings</h2><p>{} x {} · {} MB · {} · server {} · commit {} · harness {} ({build}) · {}</p><pre>{}</pre></body></html>",
        m.cpus,
        escaped(&m.cpu),
        m.memory_mb,
        escaped(&m.kernel),
        escaped(&m.server_version),
        escaped(&m.commit),
        escaped(&m.harness_version),
        escaped(&m.date),
        escaped(&serde_json::to_string_pretty(&report.settings).unwrap_or_default())
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(nodes: usize, all_us: f64) -> Measured {
        let started = 300_000;
        Measured {
            nodes,
            all_us,
            nodes_us: 20.0,
            requests: 0.6,
            due: started,
            started,
            all_started: true,
            started_per_s: 5_000.0,
            ..Measured::default()
        }
    }

    fn missed(measured: &[Measured], kill: bool) -> Vec<String> {
        targets(measured, kill).into_iter().filter(|t| !t.held).map(|t| t.limit).collect()
    }

    #[test]
    fn each_target_is_missed_by_itself() {
        let with = |change: fn(&mut Measured)| {
            let mut all = vec![good(1, 150.0), good(2, 160.0)];
            change(&mut all[1]);
            missed(&all, false)
        };
        assert_eq!(with(|_| {}), [""; 0]);
        assert_eq!(with(|m| m.nodes_us = 26.0), ["2 node(s): CPU of nodes, a trigger"]);
        assert_eq!(with(|m| m.requests = 1.6), ["2 node(s): requests to the store, a trigger"]);
        assert_eq!(with(|m| m.started_per_s = 4_000.0), ["2 node(s): rate"]);
        assert_eq!(with(|m| m.all_started = false), ["2 node(s): rate"]);
        assert_eq!(with(|m| m.all_us = 190.0), ["dearest number of nodes / cheapest, CPU of all"]);
        assert_eq!(missed(&[good(1, 201.0)], false), ["1 node(s): CPU of all, a trigger"]);
    }

    #[test]
    fn a_take_over_is_judged_by_what_its_orphans_saw() {
        let killed = |p99_ms, never_again| {
            let orphans = Percentiles { count: 9, p99_ms, max_ms: 6_000.0, ..Percentiles::default() };
            let take_over = Some(TakeOver { orphans, never_again, ..TakeOver::default() });
            missed(&[Measured { take_over, ..good(3, 900.0) }], true)
        };
        assert_eq!(killed(3_000.0, 0), [""; 0]);
        assert_eq!(killed(5_001.0, 0), ["shards of a killed node, lateness p99"]);
        assert_eq!(killed(3_000.0, 1).len(), 2, "a shard that never comes back has no lateness");
    }

    #[test]
    fn a_stop_in_order_is_judged_by_its_latest_trigger_wherever_it_was() {
        let late = |max_ms| Percentiles { count: 9, max_ms, ..Percentiles::default() };
        let stopped = |orphans, others| {
            let take_over = TakeOver { stopped_ms: Some(900), orphans, others, ..TakeOver::default() };
            let one = Measured { take_over: Some(take_over), ..good(3, 900.0) };
            assert_eq!(missed(&[Measured { all_started: false, ..one.clone() }], true).len(), 1);
            missed(&[one], true)
        };
        let limit = "a node is stopped in order, longest delay of any trigger";
        assert_eq!(stopped(late(400.0), late(999.0)), [""; 0]);
        assert_eq!(stopped(late(400.0), late(1_001.0)), [limit]);
        assert_eq!(stopped(late(1_001.0), late(400.0)), [limit]);
        assert_eq!(stopped(Percentiles::default(), late(400.0)), [limit], "nothing of it was seen");
    }

    #[test]
    fn what_could_not_be_measured_is_told_and_makes_the_whole_red() {
        let measured = vec![good(1, 150.0), Measured::failed(2, "no <store>".to_owned())];
        let report = Report {
            machine: Machine::default(),
            settings: BTreeMap::new(),
            whole: measured.iter().all(Measured::is_whole),
            outstanding: 1,
            targets: targets(&measured, false),
            measured,
        };
        assert!(!report.is_good(false));
        assert_eq!(report.word(), "RED");
        assert!(text(&report).contains("could not be measured: no <store>"));
        assert!(text(&report).contains("1 more number(s) of nodes"));
        let page = page(&report);
        assert!(page.contains("no &lt;store&gt;"), "{page}");
        assert!(page.contains("<td>?</td>"), "{page}");
    }
}
