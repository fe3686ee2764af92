//! Runs that are late, and instants that never began: the hooks of their deadline are started once, whatever dies in between.

use crate::{
    hooks::{all_runs, command, made, outbox, triggered},
    program::{self, Dev},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A job with a schedule and a deadline, whose runs do this. `tells`: the job of its hook.
fn timed(name: &str, program: &[&str], (trigger, deadline): (Value, Value), tells: &str) -> Value {
    let mut job = command(name, program, json!({"onDeadline": [{"job": tells}]}));
    (job["trigger"], job["deadline"]) = (trigger, deadline);
    job
}

fn tell(dev: &Dev, name: &str) -> u64 {
    made(dev, &command(name, &["/bin/true"], json!({})))
}

/// What the runs of a hook were told.
fn told(dev: &Dev, job: u64) -> Vec<Value> {
    all_runs(dev, job).iter().map(|run| run["params"]["run"].clone()).collect()
}

/// The nodes need so long, by the wall clock.
fn pass(time: Duration) {
    let since = Instant::now();
    program::eventually("time passes", || (since.elapsed() > time).then_some(()));
}

#[test]
fn a_run_that_is_late_is_told_once_while_it_runs_whatever_dies() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let tell = tell(&dev, "tell");
    let once = json!({"type": "ONCE", "delaySec": 1});
    let within = json!({"withinSec": 6, "of": "DUE"});
    let spec = timed("slow", &["/bin/sleep", "600"], (once, within.clone()), "tell");
    let slow = made(&dev, &spec);
    let job = dev.http("GET", &format!("/api/v1/jobs/{slow}"), None).1;
    assert_eq!((&job["deadline"], &job["hooks"]), (&within, &spec["hooks"]), "as they were given");
    let open = |dev: &Dev| all_runs(dev, slow).pop().filter(|run| run["state"] == "RUNNING");
    let before = program::eventually("it runs", || open(&dev));
    assert!(before["deadlineMissed"].is_null(), "{before}");
    assert!(before["deadlineAt"].is_string(), "{before}");
    // Before the deadline, so that the next process has it from its files.
    dev.kill();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let late = program::eventually("the deadline is missed", || {
        all_runs(&dev, slow).pop().filter(|run| run["deadlineMissed"].is_string())
    });
    assert_eq!((&late["endedAt"], &late["deadlineMissed"]), (&Value::Null, &before["deadlineAt"]), "it goes on");
    // Perhaps before the message has left, perhaps after.
    dev.kill();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let told_once = || program::eventually("it is told", || Some(told(&dev, tell)).filter(|told| !told.is_empty()));
    let of_run = &told_once()[0];
    let known = (&of_run["runId"], &of_run["hook"], &of_run["jobId"]);
    assert_eq!(known, (&late["runId"], &json!("onDeadline"), &json!(slow)), "{of_run}");
    let due_ms = of_run["logicalTimeMs"].as_i64().unwrap();
    assert_eq!(of_run["deadlineMs"].as_i64(), Some(due_ms + 6_000), "{of_run}");
    assert_eq!(all_runs(&dev, tell)[0]["source"], "EVENT");
    program::eventually("nothing is owed any more", || outbox(&dev).is_empty().then_some(()));
    let explained = dev.http("GET", &format!("/api/v1/runs/{}/explain", late["runId"]), None).1;
    assert!(explained.to_string().contains("DEADLINE_MISSED"), "{explained}");
    dev.run(&["run", "cancel", &late["runId"].to_string()]).ok();
    program::eventually("it is canceled", || all_runs(&dev, slow).pop().filter(|run| run["endedAt"].is_string()));
    assert_eq!(all_runs(&dev, slow)[0]["deadlineMissed"], before["deadlineAt"], "history says so too");
    assert_eq!(told(&dev, tell).len(), 1);
    assert_eq!(dev.stop(), 0);
}

#[test]
fn an_instant_that_was_skipped_is_late_too_and_one_in_a_pause_is_not() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let (tell, never) = (tell(&dev, "tell"), tell(&dev, "never"));
    let each_second = || json!({"type": "FIXED_RATE", "everySec": 1});
    let within = json!({"withinSec": 2});
    let mut held = timed("held", &["/bin/true"], (each_second(), within.clone()), "never");
    held["labels"] = json!({"is": "held"});
    let held = made(&dev, &held);
    let (status, answer) = dev.http("POST", &format!("/api/v1/jobs/{held}/pause"), None);
    assert_eq!(status, 200, "{answer}");
    let mut busy = timed("busy", &["/bin/sleep", "600"], (each_second(), within), "tell");
    busy["concurrencyPolicy"] = json!("FORBID");
    let busy = made(&dev, &busy);
    let unstarted = |told: &[Value]| told.iter().filter(|of| of["state"] == "NOT_STARTED").count();
    let all = program::eventually("skipped instants are told of", || {
        Some(told(&dev, tell)).filter(|told| unstarted(told) >= 2 && unstarted(told) < told.len())
    });
    let of_run = all.iter().find(|of| of["state"] == "RUNNING").unwrap();
    assert_eq!(all.iter().filter(|of| of["runId"] == of_run["runId"]).count(), 1, "{all:?}");
    for of in all.iter().filter(|of| of["state"] == "NOT_STARTED") {
        assert_eq!((&of["reason"], &of["jobId"], &of["runId"]), (&json!("RUN_ACTIVE"), &json!(busy), &Value::Null));
        assert_eq!(of["deadlineMs"].as_i64(), of["logicalTimeMs"].as_i64().map(|at| at + 2_000), "{of}");
    }
    // One at a time: the oldest that is not decided. So no two of them are of one stretch.
    let mut due: Vec<i64> = all.iter().filter_map(|of| of["logicalTimeMs"].as_i64()).collect();
    due.sort_unstable();
    due.dedup();
    assert_eq!(due.len(), all.len(), "{all:?}");
    let (status, answer) = dev.http("DELETE", &format!("/api/v1/jobs/{held}"), None);
    assert!(status < 300, "{answer}");
    assert_eq!(told(&dev, never), Vec::<Value>::new(), "more than two seconds of the pause are over");
    let metrics = dev.metrics();
    let counted = metrics.lines().find_map(|line| line.strip_prefix("campanile_deadlines_missed_total "));
    assert!(counted.unwrap().parse::<f64>().unwrap() >= 3.0, "{counted:?}");
    assert_eq!(dev.stop(), 0);
}

#[test]
fn a_stretch_that_one_run_carries_is_told_once() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let tell = tell(&dev, "tell");
    let each = json!({"type": "FIXED_RATE", "everySec": 3, "misfirePolicy": "FIRE_ONCE_NOW", "misfireThresholdSec": 1});
    let night = made(&dev, &timed("night", &["/bin/true"], (each, json!({"withinSec": 5})), "tell"));
    program::eventually("it has run", || all_runs(&dev, night).pop());
    dev.kill();
    pass(Duration::from_secs(13));
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let coalesced = program::eventually("one run carries what was missed", || {
        let (status, ledger) = dev.http("GET", &format!("/api/v1/jobs/{night}/ledger?pageSize=1000"), None);
        assert_eq!(status, 200, "{ledger}");
        ledger["items"].as_array().unwrap().iter().find(|entry| entry["outcome"] == "COALESCED").cloned()
    });
    assert!(coalesced["count"].as_u64().unwrap() >= 2, "{coalesced}");
    let of_stretch = || {
        let told = told(&dev, tell);
        told.into_iter().filter(|of| of["runId"] == coalesced["runId"]).collect::<Vec<Value>>()
    };
    let told_of = program::eventually("it is told of", || Some(of_stretch()).filter(|told| !told.is_empty()));
    let last_ms = told_of[0]["logicalTimeMs"].as_i64().unwrap();
    assert!(told_of[0]["deadlineMs"].as_i64().unwrap() < last_ms + 5_000, "that of the oldest instant: {told_of:?}");
    assert!(told(&dev, tell).iter().all(|of| of["state"] != "NOT_STARTED"), "what was coalesced has a run");
    program::eventually("nothing is owed any more", || outbox(&dev).is_empty().then_some(()));
    assert_eq!(of_stretch().len(), 1);
    assert_eq!(dev.stop(), 0);
}

#[test]
fn a_run_that_succeeds_too_soon_is_suspicious() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let mut short = command("short", &["/bin/true"], json!({}));
    short["minDurationSec"] = json!(60);
    let short = made(&dev, &short);
    let run = triggered(&dev, short, "first");
    let path = format!("/api/v1/runs/{run}");
    let ended = program::eventually("it has ended", || {
        let (_, run) = dev.http("GET", &path, None);
        (run["state"] == "SUCCESS").then_some(run)
    });
    assert_eq!(ended["suspicious"]["minDurationSec"], 60, "{ended}");
    assert!(ended["suspicious"]["durationMs"].as_u64().unwrap() < 60_000, "{ended}");
    let explained = dev.http("GET", &format!("{path}/explain"), None).1;
    assert!(explained.to_string().contains("TOO_SHORT"), "{explained}");
    assert!(dev.metrics().contains("\ncampanile_suspicious_runs_total 1\n"));
    dev.kill();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    assert_eq!(dev.http("GET", &path, None).1["suspicious"], ended["suspicious"], "history says so too");
    let wrong = json!({"withinSec": 1, "by": "04:00"});
    let mut refused = command("refused", &["/bin/true"], json!({}));
    refused["deadline"] = wrong;
    let (status, answer) = dev.http("POST", "/api/v1/jobs", Some(&refused));
    assert_eq!(status, 400, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("deadline: give exactly one of by and withinSec"), "{answer}");
    assert_eq!(dev.stop(), 0);
}
