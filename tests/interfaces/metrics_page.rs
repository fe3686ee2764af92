//! `docs/reference/metrics.md` is the table of metrics, and `/metrics` of a real node is what it says.

use crate::{
    program::{Dev, eventually},
    reference::holds,
};
use campanile_actors::measure::{Metric, table};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// What is said before the table.
const BEGINNING: &str = "# Metrics

Every metric that `/metrics` of a node shows. Written by `tests/interfaces/metrics_page.rs` from `actors/src/measure.rs`, and
compared with the page of a real node: change the table there, not this page. [observability.md](../observability.md)
describes recording rules, alerts and boards.

A new node shows every metric of this table, with zeros, unless the last column says when it does. Metrics with labels have
the series of those values that the node knows from the start, and others as they occur. The labels `tenant` and `pool` name
at most 20 of each, those with most activity; all others together are `other`. A histogram has the series `_bucket`, `_sum`
and `_count`.

| metric | type | labels | meaning | shown when |
|---|---|---|---|---|
";

#[test]
fn every_metric_is_in_the_reference() {
    let mut text = String::from(BEGINNING);
    let mut metrics = table();
    metrics.sort_by_key(|metric| metric.name);
    for Metric { name, kind, labels, help, when, .. } in &metrics {
        let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let when = when.unwrap_or_default();
        assert!(!format!("{help}{when}").contains('|'), "{name}");
        writeln!(text, "| `{name}` | {} | {labels} | {help} | {when} |", kind.as_str()).unwrap();
    }
    assert!(metrics.len() > 100, "{} metrics", metrics.len());
    holds("metrics.md", &text);
}

/// What a page has of one metric.
#[derive(Default)]
struct Shown {
    kind: String,
    samples: usize,
    labels: BTreeSet<String>,
}

/// The metrics of a page by their names. Samples of a histogram are those of its parts.
fn read(page: &str) -> BTreeMap<String, Shown> {
    let mut metrics: BTreeMap<String, Shown> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.is_empty()) {
        if let Some(said) = line.strip_prefix("# TYPE ") {
            let (name, kind) = said.split_once(' ').unwrap();
            let before = metrics.insert(name.to_owned(), Shown { kind: kind.to_owned(), ..Shown::default() });
            assert!(before.is_none(), "{name} is on the page twice");
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let of = |name: &str| {
                ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part).map(str::to_owned))
            };
            let family = of(name).filter(|family| metrics.get(family).is_some_and(|shown| shown.kind == "histogram"));
            let name = family.unwrap_or_else(|| name.to_owned());
            let shown = metrics.get_mut(&name).unwrap_or_else(|| panic!("{name} has no type"));
            shown.samples += 1;
            let keys = labels.trim_end_matches('}').split("\",").filter_map(|pair| pair.split_once('='));
            shown.labels.extend(keys.map(|(key, _)| key.to_owned()).filter(|key| key != "le"));
        }
    }
    metrics
}

/// What is not as the table says, one line each.
fn differences(shown: &BTreeMap<String, Shown>) -> Vec<String> {
    let table = table();
    let mut found: Vec<String> = Vec::new();
    for Metric { name, kind, labels, when, .. } in &table {
        match shown.get(*name) {
            // A limit of a tenant has its type on the page, and no sample while no tenant has the limit.
            Some(shown) if shown.samples == 0 && when.is_some() => {}
            Some(shown) => {
                let keys: BTreeSet<String> = labels.iter().map(|label| (*label).to_owned()).collect();
                if shown.kind != kind.as_str() || shown.samples == 0 || shown.labels != keys {
                    found.push(format!(
                        "{name}: {} with the labels {:?}, {} samples",
                        shown.kind, shown.labels, shown.samples
                    ));
                }
            }
            None if when.is_none() => found.push(format!("{name} is not shown")),
            None => {}
        }
    }
    let unknown = shown.keys().filter(|name| table.iter().all(|metric| metric.name != name.as_str()));
    found.extend(unknown.map(|name| format!("{name} is not in the table")));
    found
}

#[test]
fn a_new_node_shows_what_the_reference_says() {
    let directory = tempfile::tempdir().unwrap();
    let dev = Dev::start(directory.path(), &["--no-demo"]);
    // These come with the first look at what they are about, and the first request.
    let late = ["campanile_executor_sessions{", "campanile_disk_free_bytes ", "campanile_http_request_ms_count{"];
    let page = eventually("the first looks", || {
        let page = dev.metrics();
        late.iter().all(|sample| page.contains(&format!("\n{sample}"))).then_some(page)
    });
    let shown = read(&page);
    let found = differences(&shown);
    assert!(found.is_empty(), "/metrics is not what docs/reference/metrics.md says:\n  {}", found.join("\n  "));
    assert_eq!(shown["runs_ended_total"].samples, 5, "one for each state that is final");
}

/// A page of one metric, and what is found of it.
fn found_of(kind: &str, samples: &str) -> Vec<String> {
    let page = format!("# HELP campanile_jobs x\n# TYPE campanile_jobs {kind}\n{samples}\n");
    let found = differences(&read(&page)).into_iter();
    found.filter(|line| line.starts_with("campanile_jobs ") || line.starts_with("campanile_jobs:")).collect()
}

#[test]
fn the_comparison_sees_what_is_missing_or_unknown_or_of_another_type() {
    assert_eq!(found_of("gauge", "campanile_jobs 1"), Vec::<String>::new());
    assert_eq!(found_of("counter", "campanile_jobs 1").len(), 1);
    assert_eq!(found_of("gauge", "campanile_jobs{pool=\"a\"} 1").len(), 1);
    assert_eq!(found_of("gauge", "").len(), 1);
    assert!(differences(&read("")).contains(&"campanile_jobs is not shown".to_owned()));
    let unknown = differences(&read("# TYPE campanile_invented gauge\ncampanile_invented 1\n"));
    assert!(unknown.contains(&"campanile_invented is not in the table".to_owned()));
}
