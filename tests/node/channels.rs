//! Webhooks as a node sends them: signed, with the retries of any job, beside the pause and the limits of their tenant, and never to an
//! address inside.

use crate::{
    hooks::{all_runs, command, made, triggered},
    program::{self, Dev},
    receiver::Receiver,
};
use serde_json::{Value, json};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// Receivers of these tests are on this machine.
const ALLOW: (&str, &str) = ("CAMPANILE_CHANNELS__ALLOW", "127.0.0.1");

fn webhook(name: &str, url: &str) -> Value {
    json!({"name": name, "trigger": {"type": "MANUAL"}, "action": {"kind": "WEBHOOK", "url": url},
           "secretParams": {"secret": SECRET}, "retryPolicy": {"maxAttempts": 3, "baseDelaySec": 0.2}})
}

fn ended(dev: &Dev, job: u64, count: usize) -> Vec<Value> {
    program::eventually("its runs have ended", || {
        let runs = all_runs(dev, job);
        (runs.len() == count && runs.iter().all(|run| run["endedAt"].is_string())).then_some(runs)
    })
}

#[test]
fn a_hook_tells_somebody_signed_and_again_until_it_is_taken() {
    let receiver = Receiver::start(&["503 Service Unavailable"]);
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start_with(data.path(), &["--no-demo"], &[ALLOW]);
    let tell = made(&dev, &webhook("tell", &receiver.url("/told?by=campanile")));
    let read = dev.http("GET", &format!("/api/v1/jobs/{tell}"), None).1;
    assert_eq!(read["secretParams"]["secret"], "***");
    assert_eq!(read["action"], json!({"kind": "WEBHOOK", "url": receiver.url("/told?by=campanile"), "timeoutSec": 15}));
    let hooks = json!({"onFailure": [{"job": "tell", "params": {"to": "ops"}}]});
    let work = made(&dev, &command("work", &["/bin/false"], hooks));
    let failed = triggered(&dev, work, "first");
    let run = ended(&dev, tell, 1).remove(0);
    assert_eq!((&run["state"], &run["attemptCount"]), (&json!("SUCCESS"), &json!(2)), "{run}");
    let [first, second] = <[_; 2]>::try_from(receiver.messages()).unwrap();
    assert_eq!(first.line, "POST /told?by=campanile HTTP/1.1");
    assert_eq!((&first.headers["webhook-id"], &first.body), (&second.headers["webhook-id"], &second.body), "a repeat");
    assert_eq!(first.headers["content-type"], "application/json");
    for message in [&first, &second] {
        assert!(message.is_signed_with(SECRET), "{message:?}");
        assert!(!message.is_signed_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx"), "the check sees nothing");
    }
    let told = first.json();
    assert_eq!((&told["type"], &told["data"]["to"]), (&json!("onFailure"), &json!("ops")), "{told}");
    assert_eq!((&told["data"]["run"]["runId"], &told["data"]["run"]["state"]), (&json!(failed), &json!("FAILED")));
    assert!(told["timestamp"].is_string(), "{told}");
    let log = dev.run(&["run", "log", &run["runId"].to_string()]).ok();
    assert!(!log.contains("told?by"), "a URL may hold a token: {log}");
    assert_eq!(dev.stop(), 0);
}

#[test]
fn an_address_inside_is_refused_and_no_redirect_is_followed() {
    let inside = Receiver::start(&[]);
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let port = inside.address.port();
    for (name, host) in [("by-address", "127.0.0.1"), ("by-name", "localhost"), ("mapped", "[::ffff:127.0.0.1]")] {
        let mut spec = webhook(name, &format!("http://{host}:{port}/"));
        spec["retryPolicy"]["maxAttempts"] = json!(1);
        let job = made(&dev, &spec);
        triggered(&dev, job, "once");
        let run = ended(&dev, job, 1).remove(0);
        let error = run["lastError"].as_str().unwrap();
        assert!(error.contains("[channels] allow") && run["state"] == "FAILED", "{host}: {run}");
        assert!(!error.contains(&port.to_string()), "who reads it may not know what is inside: {error}");
    }
    assert_eq!(dev.stop(), 0);
    let moved = format!("302 Found\r\nLocation: {}", inside.url("/"));
    let outside = Receiver::start(&[&moved]);
    let dev = Dev::start_with(data.path(), &["--no-demo"], &[ALLOW]);
    let mut spec = webhook("moved", &outside.url("/"));
    spec["retryPolicy"]["maxAttempts"] = json!(1);
    let job = made(&dev, &spec);
    triggered(&dev, job, "once");
    let run = ended(&dev, job, 1).remove(0);
    assert_eq!((&run["state"], outside.messages().len()), (&json!("FAILED"), 1), "{run}");
    assert_eq!(inside.messages().len(), 0);
    assert_eq!(dev.stop(), 0);
}

#[test]
fn a_channel_runs_while_its_tenant_is_paused_and_has_used_its_quota() {
    let receiver = Receiver::start(&[]);
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start_with(data.path(), &["--no-demo", "--no-executor"], &[ALLOW]);
    let limits = json!({"maxConcurrentRuns": 1, "maxQueuedRuns": 1});
    let (status, answer) = dev.http("PUT", "/api/v1/tenants/acme", Some(&limits));
    assert!(status < 300, "{answer}");
    let of_acme = |mut spec: Value| {
        spec["tenantId"] = json!("acme");
        made(&dev, &spec)
    };
    let work = of_acme(command("work", &["/bin/true"], json!({})));
    let tell = of_acme(webhook("tell", &receiver.url("/")));
    // It waits for an executor that never comes, so no more of the tenant's runs may wait.
    triggered(&dev, work, "waits");
    let (status, refused) =
        dev.http("POST", &format!("/api/v1/jobs/{work}/trigger"), Some(&json!({"manualRunId": "more"})));
    assert_eq!(status, 429, "{refused}");
    let (status, answer) = dev.http("POST", "/api/v1/tenants/acme/pause", None);
    assert!(status < 300, "{answer}");
    let (status, refused) = dev.http("POST", &format!("/api/v1/jobs/{work}/trigger"), None);
    assert_eq!(status, 423, "the tenant is paused: {refused}");
    for key in ["one", "two", "three"] {
        triggered(&dev, tell, key);
    }
    assert!(ended(&dev, tell, 3).iter().all(|run| run["state"] == "SUCCESS"));
    assert_eq!(receiver.messages().len(), 3);
    assert_eq!(dev.run(&["executor", "list", "-o", "json"]).json().as_array().map(Vec::len), Some(0), "nobody's");
    assert_eq!(dev.stop(), 0);
}

#[test]
fn a_webhook_that_cannot_be_sent_is_refused_when_it_is_made() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    for (field, change) in [
        ("action.url", json!({"action": {"kind": "WEBHOOK", "url": "ftp://example.org/"}})),
        ("action.url", json!({"action": {"kind": "WEBHOOK", "url": "https://me:x@example.org/"}})),
        ("action.timeoutSec", json!({"action": {"kind": "WEBHOOK", "url": "https://example.org/", "timeoutSec": 61}})),
        ("executorSelector", json!({"executorSelector": "mine"})),
        ("target", json!({"target": "db"})),
        ("secretParams", json!({"secretParams": {"other": "0123456789abcdef"}})),
        ("secretParams.secret", json!({"secretParams": {"secret": "short"}})),
    ] {
        let mut spec = webhook("wrong", "https://example.org/");
        for (name, value) in change.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let (status, answer) = dev.http("POST", "/api/v1/jobs", Some(&spec));
        assert_eq!(status, 400, "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains(field), "{field}: {answer}");
    }
    let tell = made(&dev, &webhook("tell", "https://example.org/"));
    let callback = json!({"callback": {"url": "https://example.org/"}});
    let (status, refused) = dev.http("POST", &format!("/api/v1/jobs/{tell}/trigger"), Some(&callback));
    assert_eq!(status, 400, "a channel tells somebody itself: {refused}");
    assert!(refused["detail"].as_str().unwrap().contains("callback.url"), "{refused}");
    assert_eq!(dev.stop(), 0);
}

#[test]
fn the_channel_of_callbacks_does_not_keep_its_tenant_from_being_deleted() {
    let receiver = Receiver::start(&[]);
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start_with(data.path(), &["--no-demo"], &[ALLOW]);
    let mut spec = command("work", &["/bin/true"], json!({}));
    spec["tenantId"] = json!("acme");
    let work = made(&dev, &spec);
    let callback = json!({"callback": {"url": receiver.url("/")}});
    let (status, run) = dev.http("POST", &format!("/api/v1/jobs/{work}/trigger"), Some(&callback));
    assert!(status < 300, "{run}");
    program::eventually("the callback is taken", || (!receiver.messages().is_empty()).then_some(()));
    let (status, answer) = dev.http("DELETE", &format!("/api/v1/jobs/{work}"), None);
    assert!(status < 300, "{answer}");
    // Until the run of the channel has ended as well.
    program::eventually("nothing is left that anybody could delete", || {
        (dev.http("DELETE", "/api/v1/tenants/acme", None).0 < 300).then_some(())
    });
    assert_eq!(dev.stop(), 0);
}

#[test]
fn who_triggered_a_run_is_told_of_its_end_also_after_a_kill() {
    let receiver = Receiver::start(&["500 Internal Server Error"]);
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start_with(data.path(), &["--no-demo"], &[ALLOW]);
    let work = made(&dev, &command("work", &["/bin/sh", "-c", "sleep 2; exit 3"], json!({})));
    let url = receiver.url("/done/token-7");
    let body = json!({"manualRunId": "first", "callback": {"url": url, "secret": SECRET}});
    let path = format!("/api/v1/jobs/{work}/trigger");
    let (status, run) = dev.http("POST", &path, Some(&body));
    assert!(status < 300, "{run}");
    assert!(!run.to_string().contains("token-7"), "{run}");
    for (field, callback) in [
        ("callback.url", json!({"url": "ftp://example.org/"})),
        ("callback.secret", json!({"url": "https://example.org/", "secret": "short"})),
    ] {
        let (status, refused) = dev.http("POST", &path, Some(&json!({"callback": callback})));
        assert_eq!(status, 400, "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains(field), "{refused}");
    }
    // While it runs, and perhaps once more between its end and the message.
    dev.kill();
    let dev = Dev::start_with(data.path(), &["--no-demo"], &[ALLOW]);
    let run =
        program::eventually("it has ended", || all_runs(&dev, work).pop().filter(|run| run["endedAt"].is_string()));
    dev.kill();
    let dev = Dev::start_with(data.path(), &["--no-demo"], &[ALLOW]);
    let messages = program::eventually("the callback is taken", || {
        // The first one was answered with 500.
        Some(receiver.messages()).filter(|messages| messages.len() >= 2)
    });
    let last = messages.last().unwrap();
    assert_eq!(last.line, "POST /done/token-7 HTTP/1.1");
    assert!(messages.iter().all(|message| message.headers["webhook-id"] == last.headers["webhook-id"]), "{messages:?}");
    assert!(messages.iter().all(|message| message.is_signed_with(SECRET)), "{messages:?}");
    let told = last.json();
    assert_eq!((&told["type"], &told["data"]["run"]["runId"]), (&json!("callback"), &run["runId"]), "{told}");
    assert_eq!(told["data"]["run"]["state"], run["state"], "{told}");
    // Nobody sees the channel, nor where it tells.
    let (_, jobs) = dev.http("GET", "/api/v1/jobs", None);
    assert_eq!(jobs["items"].as_array().unwrap().len(), 1, "{jobs}");
    let (_, shown) = dev.http("GET", &format!("/api/v1/runs/{}", run["runId"]), None);
    assert!(!shown.to_string().contains("token-7"), "{shown}");
    let (_, refused) = dev.http("POST", "/api/v1/jobs", Some(&webhook("~callback", "https://example.org/")));
    assert!(refused["detail"].as_str().unwrap().contains("name"), "{refused}");
    assert_eq!(dev.stop(), 0);
}
