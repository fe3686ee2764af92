//! All attempts of a run together are bounded in time, also when the node dies in between.

use crate::program::{self, Dev};
use serde_json::{Value, json};

fn posted(dev: &Dev, path: &str, body: &Value) -> Value {
    let (status, answer) = dev.http("POST", path, Some(body));
    assert!((200..300).contains(&status), "{path}: {answer}");
    answer
}

fn started(dev: &Dev, spec: &Value) -> u64 {
    let job = posted(dev, "/api/v1/jobs", spec)["jobId"].as_u64().unwrap();
    posted(dev, &format!("/api/v1/jobs/{job}/trigger"), &json!({}))["runId"].as_u64().unwrap()
}

fn got(dev: &Dev, run: u64) -> Value {
    dev.http("GET", &format!("/api/v1/runs/{run}"), None).1
}

fn until(dev: &Dev, run: u64, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    program::eventually(what, || Some(got(dev, run)).filter(|view| wanted(view)))
}

#[test]
fn a_run_ends_when_its_time_is_over_although_the_node_was_killed() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let run = started(
        &dev,
        &json!({
            "name": "in_time", "trigger": {"type": "MANUAL"},
            "retryPolicy": {"maxAttempts": 100, "backoff": "FIXED", "baseDelaySec": 1, "jitter": 0, "maxElapsedSec": 5},
            "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", "exit 3"]},
        }),
    );
    until(&dev, run, "an attempt has failed", |view| view["state"] == "RETRY_WAIT");
    dev.kill();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let ended = until(&dev, run, "its time is over", |view| view["state"] == "FAILED" || view["state"] == "TIMEOUT");
    let told = ended["lastError"].as_str().unwrap();
    assert!(told.contains("no further attempt"), "{told}");
    assert!(told.contains("retryPolicy.maxElapsedSec (5 s)"), "{told}");
    assert!(ended["attemptCount"].as_u64().unwrap() < 100, "{ended}");
    assert_eq!(ended["deadLetter"], true);
    assert_eq!(dev.stop(), 0);
}

#[test]
fn a_body_is_stopped_when_the_time_of_all_attempts_is_over() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let spec = json!({
        "name": "long", "trigger": {"type": "MANUAL"}, "maxRuntimeSec": 2,
        "action": {"kind": "COMMAND", "command": ["sleep", "300"]},
    });
    let run = started(&dev, &spec);
    let ended = until(&dev, run, "it was stopped", |view| view["state"] == "TIMEOUT");
    let told = ended["lastError"].as_str().unwrap();
    assert!(told.contains("maxRuntimeSec (2 s)"), "{told}");
    assert_eq!(ended["attemptCount"], 1);
    let said = dev.run(&["run", "explain", &run.to_string()]).ok();
    assert!(said.contains("maxRuntimeSec (2 s)"), "{said}");

    for (field, body) in [
        ("maxRuntimeSec", json!({"maxRuntimeSec": 0})),
        ("retryPolicy.maxElapsedSec", json!({"retryPolicy": {"maxElapsedSec": 0}})),
        (
            "maxRuntimeSec",
            json!({"maxRuntimeSec": 9, "action": {"kind": "DAG", "nodes": [{"id": "a", "job": "long"}], "edges": []}}),
        ),
    ] {
        let mut spec = json!({"name": "wrong", "trigger": {"type": "MANUAL"}});
        spec.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let (status, refused) = dev.http("POST", "/api/v1/jobs", Some(&spec));
        assert_eq!((status, &refused["code"]), (400, &json!("400_INVALID_ARGUMENT")), "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains(field), "{refused}");
    }
    assert_eq!(dev.stop(), 0);
}
