//! Plans and applies over HTTP: who may, what is answered, and what becomes of a set of which some is refused.
use super::server::{EXECUTOR, FINANCE, OPERATOR, Server};
use serde_json::{Value, json};

fn manifest(name: &str, more: &str) -> Value {
    let mut manifest = json!({
        "apiVersion": "campanile/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"every": "1h"},
    });
    if !more.is_empty() {
        manifest["metadata"]["namespace"] = json!(more);
    }
    manifest
}

fn apply(server: &Server, token: &str, body: &Value) -> Value {
    server.call(token, "POST", "/api/v1/apply", Some(body)).expect(200)
}

#[test]
fn values_and_files_mean_the_same() {
    let server = Server::start();
    let text = manifest("a", "").to_string();
    let file = json!({"files": [{"name": "a.json", "text": text}]});
    let plan = server.post("/api/v1/plan", &file).expect(200);
    assert_eq!(
        (&plan["create"], &plan["items"][0]["file"], &plan["items"][0]["line"]),
        (&json!(1), &json!("a.json"), &json!(1))
    );
    server.get("/api/v1/jobs/by-name?name=a").problem("404_NOT_FOUND");
    let mut agreed = file.clone();
    agreed["planId"] = plan["planId"].clone();
    let done = apply(&server, OPERATOR, &agreed);
    assert_eq!((&done["created"], &done["items"][0]["outcome"]), (&json!(1), &json!("DONE")));
    // The plan has been carried out: there is another one by now.
    server.post("/api/v1/apply", &agreed).problem("409_STALE_VERSION");
    let again = apply(&server, OPERATOR, &json!({"manifests": [manifest("a", "")]}));
    assert_eq!((&again["unchanged"], &again["changed"]), (&json!(1), &json!(0)));
    let job = server.get("/api/v1/jobs/by-name?name=a").expect(200);
    assert_eq!((&job["version"], &job["trigger"]["everySec"]), (&json!(1), &json!(3600)));
}

#[test]
fn what_is_wrong_is_told_for_programs_too() {
    let server = Server::start();
    let wrong = json!({"manifests": [manifest("a", ""), {"kind": "Job"}, manifest("a b", "")]});
    let answer = server.post("/api/v1/plan", &wrong);
    let context = answer.json()["context"]["errors"].clone();
    let told = answer.problem("400_INVALID_ARGUMENT");
    assert!(
        told.starts_with("2 things are wrong, nothing was changed:\nmanifests[1]:1:1: apiVersion: is missing"),
        "{told}"
    );
    assert_eq!((&context[1]["file"], &context[1]["path"]), (&json!("manifests[2]"), &json!("metadata.name")));
    assert!(
        server
            .post("/api/v1/plan", &json!({"fils": []}))
            .problem("400_INVALID_ARGUMENT")
            .contains("did you mean `files`?")
    );
    assert!(server.post("/api/v1/apply", &json!({})).problem("400_INVALID_ARGUMENT").contains("no manifest"));
    let prune = json!({"manifests": [manifest("a", "")], "prune": true});
    assert!(server.post("/api/v1/apply", &prune).problem("400_INVALID_ARGUMENT").contains("needs an owner"));
    let own = json!({"apiVersion": "campanile/v1", "kind": "Job", "metadata": {"name": "a", "labels": {"apply.owner": "x"}}, "spec": {}});
    assert!(
        server
            .post("/api/v1/apply", &json!({"manifests": [own]}))
            .problem("400_INVALID_ARGUMENT")
            .contains("set by apply itself")
    );
}

#[test]
fn tenants_keep_to_their_own() {
    let server = Server::start();
    let done =
        apply(&server, FINANCE, &json!({"manifests": [manifest("a", ""), manifest("b", "finance")], "owner": "x"}));
    assert_eq!((&done["created"], &done["items"][0]["tenantId"]), (&json!(2), &json!("finance")));
    let of_shop = json!({"manifests": [manifest("c", "shop")]});
    server.call(FINANCE, "POST", "/api/v1/plan", Some(&of_shop)).problem("403_FORBIDDEN");
    server.call(EXECUTOR, "POST", "/api/v1/plan", Some(&of_shop)).problem("403_FORBIDDEN");
    // The same owner's name with another tenant touches nothing of this one.
    let pruned =
        apply(&server, super::server::SHOP, &json!({"manifests": [manifest("a", "")], "owner": "x", "prune": true}));
    assert_eq!((&pruned["created"], &pruned["deleted"]), (&json!(1), &json!(0)));
    let pruned = apply(&server, FINANCE, &json!({"manifests": [manifest("a", "")], "owner": "x", "prune": true}));
    assert_eq!((&pruned["unchanged"], &pruned["deleted"]), (&json!(1), &json!(1)));
}

#[test]
fn what_is_refused_in_the_middle_is_told_and_a_repeat_goes_on() {
    let server = Server::start();
    let limits = |jobs: u64| {
        let body = json!({"maxConcurrentRuns": 0, "maxTriggersPerSec": 0.0, "maxJobs": jobs, "maxQueuedRuns": 0});
        server.call(OPERATOR, "PUT", "/api/v1/tenants/finance", Some(&body)).expect(200);
    };
    limits(2);
    let all = ["a", "b", "c", "d"].map(|name| manifest(name, ""));
    let four = json!({"manifests": all, "owner": "x", "prune": true});
    let done = apply(&server, FINANCE, &four);
    assert_eq!((&done["created"], &done["failed"], &done["notBegun"]), (&json!(2), &json!(2), &json!(0)), "{done}");
    let failed = done["items"].as_array().unwrap().iter().filter(|item| item["outcome"] == "FAILED");
    assert!(failed.clone().all(|item| item["error"]["code"] == "429_TENANT_QUOTA_EXCEEDED"), "{done}");
    assert_eq!(failed.count(), 2);
    limits(0);
    let done = apply(&server, FINANCE, &four);
    assert_eq!((&done["created"], &done["unchanged"], &done["failed"]), (&json!(2), &json!(2), &json!(0)), "{done}");
}

/// While one is refused nothing is deleted: it may be what takes the place of what goes.
#[test]
fn nothing_is_deleted_when_something_failed() {
    let server = Server::start();
    let body = |names: &[&str]| {
        let all: Vec<Value> = names.iter().map(|name| manifest(name, "")).collect();
        json!({"manifests": all, "owner": "x", "prune": true})
    };
    apply(&server, FINANCE, &body(&["old"]));
    let limit = json!({"maxConcurrentRuns": 0, "maxTriggersPerSec": 0.0, "maxJobs": 1, "maxQueuedRuns": 0});
    server.call(OPERATOR, "PUT", "/api/v1/tenants/finance", Some(&limit)).expect(200);
    let done = apply(&server, FINANCE, &body(&["new"]));
    assert_eq!((&done["failed"], &done["notBegun"], &done["deleted"]), (&json!(1), &json!(1), &json!(0)), "{done}");
    server.call(FINANCE, "GET", "/api/v1/jobs/by-name?name=old", None).expect(200);
}
