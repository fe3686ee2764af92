//! A run that waits is given a priority of its own, which it keeps when the node dies.

use crate::program::{self, Dev};
use serde_json::{Value, json};

fn called(dev: &Dev, method: &str, path: &str, body: &Value) -> Value {
    let (status, answer) = dev.http(method, path, Some(body));
    assert!((200..300).contains(&status), "{path}: {answer}");
    answer
}

fn got(dev: &Dev, path: &str) -> Value {
    let (status, answer) = dev.http("GET", path, None);
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

fn until(dev: &Dev, run: u64, state: &str) -> Value {
    program::eventually(&format!("run {run} is {state}"), || {
        Some(got(dev, &format!("/api/v1/runs/{run}"))).filter(|view| view["state"] == state)
    })
}

#[test]
fn a_run_with_a_priority_of_its_own_overtakes_others_also_after_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    called(&dev, "PUT", "/api/v1/tenants/default", &json!({"maxConcurrentRuns": 1}));
    let gate = data.path().join("gate");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done", gate.display());
    let started = |dev: &Dev, name: &str, shell: &str| {
        let spec = json!({
            "name": name, "trigger": {"type": "MANUAL"},
            "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", shell]},
        });
        let job = called(dev, "POST", "/api/v1/jobs", &spec)["jobId"].as_u64().unwrap();
        called(dev, "POST", &format!("/api/v1/jobs/{job}/trigger"), &json!({}))["runId"].as_u64().unwrap()
    };
    let first = started(&dev, "first", &wait);
    until(&dev, first, "RUNNING");
    let [second, third] = [("second", "true"), ("third", "true")].map(|(name, shell)| started(&dev, name, shell));
    until(&dev, third, "QUEUED");

    let of = third.to_string();
    dev.run(&["run", "priority", &of, "900", "--reason", "the customer waits"]).ok();
    let explained = got(&dev, &format!("/api/v1/runs/{third}/explain"));
    let reasons = explained["reasons"].as_array().unwrap();
    let own = reasons.iter().find(|reason| reason["code"] == "OWN_PRIORITY").unwrap();
    assert!(own["sentence"].as_str().unwrap().contains("900 instead of its job's 100"), "{own}");

    dev.kill();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    assert_eq!(got(&dev, &format!("/api/v1/runs/{third}"))["priority"], 900);
    std::fs::write(gate, "").unwrap();
    let [_, second, third] = [first, second, third].map(|run| until(&dev, run, "SUCCESS"));
    let began = |run: &Value| run["startedAt"].as_str().unwrap().to_owned();
    assert!(began(&third) < began(&second), "{third} {second}");
    assert_eq!((&third["priority"], second.get("priority")), (&json!(900), None));

    let path = format!("/api/v1/runs/{of}/priority");
    let refused = |body: Value| {
        let (status, answer) = dev.http("POST", &path, Some(&body));
        (status, answer["detail"].as_str().unwrap().to_owned())
    };
    assert_eq!(refused(json!({"priority": 1})).0, 409, "it has ended");
    let (status, told) = refused(json!({"priority": 1001}));
    assert_eq!((status, told.contains("0 to 1000")), (400, true), "{told}");
    assert_eq!(dev.stop(), 0);
}
