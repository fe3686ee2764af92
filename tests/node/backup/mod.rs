//! Backups of the real node over its API, and what is made of them: restored, shown, refused.

mod damage;
mod history;
mod moved;
use crate::program;

use program::{Dev, Done, eventually, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const EVERY_SECOND: &str = "* * * * * *";

/// A node without demo jobs in `data` of a directory.
fn start(dir: &Path) -> Dev {
    start_with(dir, &[])
}

fn start_with(dir: &Path, environment: &[(&str, &str)]) -> Dev {
    Dev::start_with(&dir.join("data"), &["--no-demo"], environment)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Backs the node up into a new file.
fn backup(dev: &Dev, archive: &Path) -> Done {
    dev.run(&["store", "backup", text(archive)])
}

/// Restores into the node's place in `dir`.
fn restore(archive: &Path, dir: &Path, more: &[&str]) -> Done {
    run(&[&["store", "restore", text(archive), "--data", text(&dir.join("data/node"))], more].concat())
}

fn made(dev: &Dev, spec: &Value) -> u64 {
    let (status, made) = dev.http("POST", "/api/v1/jobs", Some(spec));
    assert_eq!(status, 201, "{made}");
    made["jobId"].as_u64().unwrap()
}

fn cron(misfire: &str) -> Value {
    json!({"type": "CRON", "expr": EVERY_SECOND, "dialect": "UNIX", "misfirePolicy": misfire, "misfireThresholdSec": 1})
}

/// A command job of every second, by its name and misfire policy.
fn every_second(dev: &Dev, name: &str, misfire: &str) -> u64 {
    let action = json!({"kind": "COMMAND", "command": ["/bin/sh", "-c", "echo one line"]});
    made(dev, &json!({"name": name, "trigger": cron(misfire), "action": action, "concurrencyPolicy": "ALLOW"}))
}

fn lines(dump: &str) -> Vec<Value> {
    dump.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

/// Every second between the first and the last line has exactly one outcome.
fn whole(ledger: &[program::Line]) {
    for pair in ledger.windows(2) {
        assert_eq!(pair[1].at_ms - pair[0].at_ms, 1_000, "an instant is missing or doubled: {pair:?}");
    }
}

fn ended(dev: &Dev, name: &str) -> Vec<Value> {
    let runs = dev.run(&["job", "runs", name, "-o", "json"]).json();
    runs["items"].as_array().unwrap().iter().filter(|run| run["state"] == "SUCCESS").cloned().collect()
}

fn archive_of(dir: &Path) -> PathBuf {
    dir.join("archive")
}
