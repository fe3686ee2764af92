//! A backfill goes on where it stood when the program dies in the middle: each instant runs once.

use crate::program::{self, Dev};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn posted(dev: &Dev, path: &str, body: &Value) -> (u16, Value) {
    let (status, answer) = dev.http("POST", path, Some(body));
    assert!((200..300).contains(&status), "{path}: {answer}");
    (status, answer)
}

fn got(dev: &Dev, path: &str) -> Value {
    let (status, answer) = dev.http("GET", path, None);
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

/// A job that is due each hour of the past, whose bodies leave a line each.
fn hourly(dev: &Dev, name: &str, policy: &str) -> u64 {
    let spec = json!({
        "name": name, "trigger": {"type": "CRON", "expr": "0 * * * *"}, "concurrencyPolicy": policy,
        "retryPolicy": {"maxAttempts": 1}, "action": {"kind": "COMMAND", "command": ["/bin/true"]},
    });
    posted(dev, "/api/v1/jobs", &spec).1["jobId"].as_u64().unwrap()
}

fn until(dev: &Dev, id: u64, state: &str) -> Value {
    program::eventually(&format!("backfill {id} is {state}"), || {
        Some(got(dev, &format!("/api/v1/backfills/{id}"))).filter(|view| view["state"] == state)
    })
}

/// Runs of the job by their instant.
fn runs(dev: &Dev, job: u64) -> BTreeMap<String, usize> {
    let page = got(dev, &format!("/api/v1/jobs/{job}/runs?pageSize=1000"));
    let mut runs = BTreeMap::new();
    for run in page["items"].as_array().unwrap() {
        *runs.entry(run["logicalTime"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    runs
}

fn hours_ago(hours: i64) -> String {
    let now = jiff::Timestamp::now();
    (now - jiff::SignedDuration::from_hours(hours)).to_string()
}

#[test]
fn a_node_that_is_killed_again_and_again_runs_each_instant_once() {
    const HOURS: i64 = 200;
    let data = tempfile::tempdir().unwrap();
    let mut dev = Dev::start(data.path(), &["--no-demo"]);
    let jobs = [hourly(&dev, "allow", "ALLOW"), hourly(&dev, "forbid", "FORBID")];
    let body = json!({"from": hours_ago(HOURS), "to": hours_ago(0), "parallelism": 4});
    let made = jobs.map(|job| posted(&dev, &format!("/api/v1/jobs/{job}/backfill"), &body));
    assert!(made.iter().all(|(status, answer)| *status == 202 && answer["missing"] == HOURS), "{made:?}");
    let ids = made.map(|(_, answer)| answer["backfillId"].as_u64().unwrap());
    for round in 1..=4_u64 {
        program::eventually("it goes on", || {
            let view = got(&dev, &format!("/api/v1/backfills/{}", ids[0]));
            (view["progress"]["started"].as_u64().unwrap() >= round * 10).then_some(())
        });
        dev.kill();
        dev = Dev::start(data.path(), &["--no-demo"]);
    }
    for (job, id) in jobs.into_iter().zip(ids) {
        let done = until(&dev, id, "DONE");
        assert_eq!(done["progress"]["started"], HOURS, "{done}");
        let runs = runs(&dev, job);
        assert_eq!(runs.len() as i64, HOURS);
        assert!(runs.values().all(|count| *count == 1), "{runs:?}");
    }
    // Over HTTP a dry run is a 200, and the command line shows the same.
    let dry = json!({"from": hours_ago(HOURS), "to": hours_ago(0), "dryRun": true});
    let (status, answer) = posted(&dev, &format!("/api/v1/jobs/{}/backfill", jobs[0]), &dry);
    assert_eq!(
        (status, answer["missing"].as_u64(), answer["existing"].as_u64()),
        (200, Some(0), Some(200)),
        "{answer}"
    );
    let shown = dev.run(&["backfill", "of", "allow", "-o", "json"]).json();
    assert_eq!((&shown["backfillId"], &shown["state"]), (&json!(ids[0]), &json!("DONE")));
    let would = dev.run(&["backfill", "cancel", &ids[0].to_string(), "--dry-run"]).refused(5);
    assert!(would.contains("the backfill is DONE"), "{would}");
    let trail = got(&dev, "/api/v1/audit?operation=job.backfill&outcome=DONE");
    assert_eq!(trail["items"].as_array().unwrap().len(), 2, "{trail}");
    assert_eq!(dev.stop(), 0);
}

/// It is canceled, and the program dies before all of its runs have ended.
#[test]
fn a_cancel_goes_on_after_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let spec = json!({
        "name": "long", "trigger": {"type": "CRON", "expr": "0 * * * *"}, "concurrencyPolicy": "ALLOW",
        "action": {"kind": "COMMAND", "command": ["/bin/sleep", "300"]},
    });
    let job = posted(&dev, "/api/v1/jobs", &spec).1["jobId"].as_u64().unwrap();
    let body = json!({"from": hours_ago(300), "to": hours_ago(0), "parallelism": 120});
    let id = posted(&dev, &format!("/api/v1/jobs/{job}/backfill"), &body).1["backfillId"].as_u64().unwrap();
    program::eventually("120 runs are open", || {
        let view = got(&dev, &format!("/api/v1/backfills/{id}"));
        (view["progress"]["active"] == 120).then_some(())
    });
    let (status, answer) = dev.http("DELETE", &format!("/api/v1/backfills/{id}?reason=wrong"), None);
    assert_eq!(status, 200, "{answer}");
    dev.kill();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let view = until(&dev, id, "CANCELED");
    assert_eq!((&view["progress"]["canceled"], &view["stateReason"]), (&json!(120), &json!("wrong")), "{view}");
    let page = got(&dev, &format!("/api/v1/jobs/{job}/runs?pageSize=1000"));
    assert!(page["items"].as_array().unwrap().iter().all(|run| run["state"] == "CANCELED"));
    assert_eq!(dev.stop(), 0);
}
