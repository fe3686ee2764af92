//! Data directories that an earlier release wrote (`tests/fixtures`): this release starts on them, and says of jobs, final runs,
//! ledgers and dead letters what that release said.

use crate::{
    program::{Dev, run},
    support::now_ms,
};
use campanile_schema::format::EVENT_FORMAT;
use serde_json::Value;
use std::{path::Path, process::Command};
use tempfile::TempDir;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/8f373c3");

/// 2026-11-25T02:50:00Z, minutes after the fixtures were written. The node's clock starts here, because the ledger that a node shows
/// without an interval ends with its clock, and retention deletes what is old: what the node says must not depend on the test's day.
const WRITTEN_MS: i64 = 1_795_575_000_000;

/// A copy of a fixture as the data directory of `campanile dev`.
fn unpacked(name: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    let node = dir.path().join("node");
    std::fs::create_dir(&node).unwrap();
    let archive = Path::new(FIXTURES).join(name);
    let tar = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&node).status().unwrap();
    assert!(tar.success(), "{} cannot be unpacked", archive.display());
    dir
}

fn facts() -> Value {
    serde_json::from_str(&std::fs::read_to_string(Path::new(FIXTURES).join("facts.json")).unwrap()).unwrap()
}

/// Everything that the earlier release said stands in the answer of this one, which may say more.
fn says(answer: &Value, wanted: &Value, place: &str) {
    match (answer, wanted) {
        (Value::Object(answer), Value::Object(wanted)) => {
            for (name, value) in wanted {
                let there = answer.get(name).unwrap_or_else(|| panic!("{place}.{name} is missing"));
                says(there, value, &format!("{place}.{name}"));
            }
        }
        (Value::Array(answer), Value::Array(wanted)) => {
            assert_eq!(answer.len(), wanted.len(), "{place}: {answer:?} instead of {wanted:?}");
            for (n, (answer, wanted)) in answer.iter().zip(wanted).enumerate() {
                says(answer, wanted, &format!("{place}[{n}]"));
            }
        }
        (answer, wanted) => assert_eq!(answer, wanted, "{place}"),
    }
}

fn items(answer: Value) -> Vec<Value> {
    match answer {
        Value::Array(items) => items,
        Value::Object(mut page) => page["items"].as_array_mut().map(std::mem::take).unwrap_or_default(),
        other => panic!("no list: {other}"),
    }
}

fn is_read(directory: &str) {
    let data = unpacked(directory);
    assert_eq!(event_format(&data), 1, "of that release");
    let offset = data.path().join("offset");
    std::fs::write(&offset, (WRITTEN_MS - now_ms()).to_string()).unwrap();
    let environment = [("CAMPANILE_CLOCK_OFFSET_MS", offset.to_str().unwrap())];
    let dev = Dev::start_with(data.path(), &["--no-demo", "--no-executor"], &environment);
    let facts = facts();
    for wanted in facts["jobs"].as_array().unwrap() {
        let id = wanted["job"]["jobId"].to_string();
        let list = |what: &str| items(dev.run(&["job", what, &id, "-o", "json"]).json());
        let name = wanted["job"]["name"].as_str().unwrap();
        says(&dev.run(&["job", "get", &id, "-o", "json"]).json(), &wanted["job"], name);
        let (open, ended): (Vec<Value>, Vec<Value>) =
            list("runs").into_iter().partition(|run| run["endedAt"].is_null());
        assert_eq!(Value::from(open.len()), wanted["openRuns"], "{name}: open runs");
        for run in &open {
            // The facts only count them. Each was triggered once, with a key like the job's name: the open ones are runs of jobs "long-N".
            assert_eq!(run["key"], name.replace("long-", "l"), "{name}: {run}");
            assert_eq!((&run["source"], &run["generation"]), (&"MANUAL".into(), &1.into()), "{name}: {run}");
        }
        says(&Value::Array(ended), &wanted["runs"], &format!("{name}.runs"));
        says(&Value::Array(list("ledger")), &wanted["ledger"], &format!("{name}.ledger"));
    }
    let dead = items(dev.run(&["dlq", "list", "--tenant", "acme", "-o", "json"]).json());
    let mut dead: Vec<u64> = dead.iter().map(|letter| letter["runId"].as_u64().unwrap()).collect();
    dead.sort_unstable();
    assert_eq!(Value::from(dead), facts["deadLetters"]);
    assert_eq!(dev.stop(), 0);
    let checked = run(&["store", "check", data.path().join("node").to_str().unwrap()]);
    checked.ok();
    assert_eq!(event_format(&data), EVENT_FORMAT, "raised by the start");
    // And once more, with the snapshots of this release.
    let dev = Dev::start_with(data.path(), &["--no-demo", "--no-executor"], &environment);
    for wanted in facts["jobs"].as_array().unwrap() {
        let id = wanted["job"]["jobId"].to_string();
        says(&dev.run(&["job", "get", &id, "-o", "json"]).json(), &wanted["job"], "after the raise");
    }
    assert_eq!(dev.stop(), 0);
}

/// What the directory says of itself.
fn event_format(data: &TempDir) -> u32 {
    let text = std::fs::read_to_string(data.path().join("node/FORMAT")).unwrap();
    let row: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    u32::try_from(row["event_format"].as_u64().unwrap()).unwrap()
}

#[test]
fn a_directory_of_a_killed_node_is_read() {
    is_read("directory-killed.tar.gz");
}

#[test]
fn a_directory_with_snapshots_is_read() {
    is_read("directory-stopped.tar.gz");
}
