//! Jobs and runs over HTTP, from birth to end.
use super::{
    raw,
    server::{OPERATOR, Server, eventually},
};
use serde_json::{Value, json};

#[test]
fn a_job_is_made_read_changed_paused_triggered_and_deleted() {
    let server = Server::start();
    let spec = json!({
        "name": "daily_billing", "tenantId": "finance",
        "trigger": {"type": "CRON", "expr": "0 0 2 * * ?", "timezone": "Asia/Shanghai", "misfirePolicy": "FIRE_ONCE_NOW"},
        "retryPolicy": {"maxAttempts": 3, "backoff": "EXPONENTIAL", "baseDelaySec": 30},
        "timeoutSec": 600, "executorSelector": "billing_pool", "labels": {"team": "pay"},
        "params": {"big": 9007199254740993u64},
    });
    let made = server.post("/api/v1/jobs", &spec).expect(201);
    assert_eq!(made["status"], "ENABLED");
    let path = format!("/api/v1/jobs/{}", made["jobId"]);
    let read = server.get(&path).expect(200);
    assert_eq!(read["trigger"]["dialect"], "QUARTZ");
    assert_eq!(read["params"]["big"], 9007199254740993u64);
    assert_eq!(read["nextFireAt"], made["nextFireAt"]);
    assert!(read["nextFireAt"].as_str().unwrap().ends_with("T18:00:00.000Z"), "{read}");
    let found = server.get("/api/v1/jobs/by-name?name=daily_billing&tenantId=finance").expect(200);
    assert_eq!(found, read);

    let mut changed = read.clone();
    for added in
        ["jobId", "status", "version", "createdAt", "updatedAt", "nextFireAt", "lastRunAt", "lastRunState", "runCount"]
    {
        changed.as_object_mut().unwrap().remove(added);
    }
    changed["timeoutSec"] = json!(60);
    let body = json!({"version": read["version"], "spec": changed});
    let replaced = server.call(OPERATOR, "PUT", &path, Some(&body)).expect(200);
    assert_eq!(
        (&replaced["timeoutSec"], replaced["version"].as_u64()),
        (&json!(60), read["version"].as_u64().map(|v| v + 1))
    );
    server.call(OPERATOR, "PUT", &path, Some(&body)).problem("409_STALE_VERSION");

    let paused = server.post(&format!("{path}/pause"), &json!({"reason": "holiday"})).expect(200);
    assert_eq!((&paused["status"], &paused["nextFireAt"]), (&json!("PAUSED"), &Value::Null));
    server.post(&format!("{path}/trigger"), &json!({})).problem("423_JOB_PAUSED");
    let resumed = server.call(OPERATOR, "POST", &format!("{path}/resume"), None).expect(200);
    assert_eq!(resumed["status"], "ENABLED");

    let deleted = server.call(OPERATOR, "DELETE", &format!("{path}?reason=gone"), None);
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    server.post(&format!("{path}/trigger"), &json!({})).problem("404_NOT_FOUND");
}

#[test]
fn the_same_key_again_makes_nothing_new() {
    let server = Server::start();
    let post = |path: &str, key: &str, body: &Value| {
        let headers = [
            ("authorization", "Bearer operator-token"),
            ("content-type", "application/json"),
            ("idempotency-key", key),
        ];
        raw::call(&server.address, "POST", path, &headers, body.to_string().as_bytes())
    };
    let spec = json!({"name": "once", "trigger": {"type": "MANUAL"}, "concurrencyPolicy": "ALLOW"});
    let first = post("/api/v1/jobs", "k1", &spec).expect(201);
    assert_eq!(post("/api/v1/jobs", "k1", &spec).expect(201), first);
    server.post("/api/v1/jobs", &spec).problem("409_DUPLICATE_NAME");
    let job = format!("/api/v1/jobs/{}", first["jobId"]);
    // Another body, be it another name, is another request.
    for (field, value) in [("priority", json!(7)), ("name", json!("other"))] {
        let mut other = spec.clone();
        other[field] = value;
        post("/api/v1/jobs", "k1", &other).problem("409_IDEMPOTENCY_KEY_REUSED");
    }
    post("/api/v1/jobs", "k2", &spec).problem("409_DUPLICATE_NAME");
    // Keys are a tenant's own.
    let mut theirs = spec.clone();
    theirs["tenantId"] = json!("finance");
    assert_ne!(post("/api/v1/jobs", "k1", &theirs).expect(201)["jobId"], first["jobId"]);
    // The answer is about what was made, whatever became of it.
    let mut edited = spec.clone();
    edited["priority"] = json!(9);
    server.call(OPERATOR, "PUT", &job, Some(&json!({"version": 1, "spec": edited}))).expect(200);
    assert_eq!(post("/api/v1/jobs", "k1", &spec).expect(201), first);
    let gone = json!({"name": "gone", "trigger": {"type": "MANUAL"}});
    let made = post("/api/v1/jobs", "k3", &gone).expect(201);
    server.call(OPERATOR, "DELETE", &format!("/api/v1/jobs/{}", made["jobId"]), None);
    let again = post("/api/v1/jobs", "k3", &gone).expect(201);
    assert_eq!((&again["jobId"], &again["status"]), (&made["jobId"], &json!("DELETED")));

    let trigger = format!("/api/v1/jobs/{}/trigger", first["jobId"]);
    let run = post(&trigger, "t1", &json!({"params": {"bizDate": "2026-02-23"}})).expect(200);
    assert_eq!((&run["key"], &run["source"]), (&json!("t1"), &json!("MANUAL")));
    // The run is open: it waits for an executor.
    let same = json!({"params": {"bizDate": "2026-02-23"}, "reason": "asked again"});
    assert_eq!(post(&trigger, "t1", &same).expect(200)["runId"], run["runId"]);
    for other in
        [json!({}), json!({"params": {"bizDate": "2026-02-24"}}), json!({"params": {"bizDate": "2026-02-23", "n": 1}})]
    {
        let reused = post(&trigger, "t1", &other).problem("409_IDEMPOTENCY_KEY_REUSED");
        assert!(reused.contains(&run["runId"].to_string()), "{reused}");
    }
    let named = json!({"manualRunId": "t1", "params": {"bizDate": "2026-02-23"}});
    let named = server.post(&trigger, &named).expect(200);
    assert_eq!(named["runId"], run["runId"], "the header and the field are one key");
    // The run has ended.
    server.post(&format!("/api/v1/runs/{}/cancel", run["runId"]), &json!({})).expect(200);
    assert_eq!(post(&trigger, "t1", &same).expect(200)["state"], "CANCELED");
    let reused = post(&trigger, "t1", &json!({})).problem("409_IDEMPOTENCY_KEY_REUSED");
    assert!(reused.contains(&run["runId"].to_string()), "{reused}");
    let other = post(&trigger, "t2", &json!({"manualRunId": "mine"})).expect(200);
    assert_eq!(other["key"], "mine", "the field wins");
    let runs = server.get(&format!("/api/v1/jobs/{}/runs", first["jobId"])).expect(200);
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);
}

#[test]
fn a_run_waits_with_its_reason_and_can_be_canceled_and_run_again() {
    let server = Server::start();
    let job = server.manual_job(OPERATOR, "no-executor");
    let trigger = format!("/api/v1/jobs/{job}/trigger");
    let run = server.post(&trigger, &json!({"reason": "re-run after fix"})).expect(200);
    assert_eq!((&run["reason"], &run["waitReason"]), (&json!("re-run after fix"), &Value::Null));
    let path = format!("/api/v1/runs/{}", run["runId"]);
    let waiting = server.get(&format!("{path}?waitSec=1")).expect(200);
    assert_eq!(waiting["state"], "QUEUED");
    eventually("the true reason", || {
        let waiting = server.get(&path).expect(200);
        waiting["waitReason"].as_str().filter(|why| why.starts_with("NO_EXECUTOR: ")).map(drop)
    });
    server.post(&trigger, &json!({})).problem("409_RUN_ACTIVE");
    server.post(&format!("{path}/retry"), &json!({})).problem("409_ILLEGAL_STATE");
    server.post(&format!("{path}/confirm"), &json!({"decision": "RERUN"})).problem("409_ILLEGAL_STATE");
    let canceled = server.post(&format!("{path}/cancel"), &json!({"reason": "mistake"})).expect(200);
    assert_eq!(canceled["state"], "CANCELED");
    let again = server.get(&format!("{path}?waitSec=60")).expect(200);
    assert_eq!(again["state"], "CANCELED");
    server.post(&format!("/api/v1/dead-letters/{}/redrive", run["runId"]), &json!({})).problem("409_ILLEGAL_STATE");
    let retried = server.post(&format!("{path}/retry"), &json!({})).expect(200);
    assert_eq!((&retried["runId"], &retried["generation"]), (&run["runId"], &json!(2)));
}

#[test]
fn lists_are_paged_by_token_and_by_number_and_filtered() {
    let server = Server::start();
    let mut ids = Vec::new();
    for n in 0..7 {
        let spec = json!({
            "name": format!("job-{n}"), "trigger": {"type": "MANUAL"}, "labels": {"parity": if n % 2 == 0 { "even" } else { "odd" }},
        });
        ids.push(server.post("/api/v1/jobs", &spec).expect(201)["jobId"].as_u64().unwrap());
    }
    ids.sort_unstable();
    let items = |page: &Value| -> Vec<u64> {
        page["items"].as_array().unwrap().iter().map(|job| job["jobId"].as_u64().unwrap()).collect()
    };
    let (mut walked, mut path) = (Vec::new(), "/api/v1/jobs?pageSize=3".to_owned());
    loop {
        let page = server.get(&path).expect(200);
        walked.extend(items(&page));
        let Some(token) = page["nextPageToken"].as_str() else { break };
        path = format!("/api/v1/jobs?pageSize=3&pageToken={token}");
    }
    assert_eq!(walked, ids);
    assert_eq!(items(&server.get("/api/v1/jobs?page=2&pageSize=3").expect(200)), ids[3..6]);
    assert_eq!(items(&server.get("/api/v1/jobs?page=9&pageSize=3").expect(200)), [0u64; 0]);
    let count = |query: &str| items(&server.get(&format!("/api/v1/jobs?{query}")).expect(200)).len();
    assert_eq!(count("labels=parity=even"), 4);
    assert_eq!(count("labels=parity!=even"), 3);
    assert_eq!(count("labels=parity,none"), 0);
    assert_eq!(count("text=JOB-3"), 1);
    assert_eq!(count("tenantId=other"), 0);
    assert_eq!(count("status=paused"), 0);
}

#[test]
fn every_due_instant_is_in_the_ledger() {
    let server = Server::start();
    let spec =
        json!({"name": "often", "trigger": {"type": "CRON", "expr": "* * * * * *"}, "concurrencyPolicy": "FORBID"});
    let job = &server.post("/api/v1/jobs", &spec).expect(201)["jobId"];
    let path = format!("/api/v1/jobs/{job}/ledger");
    let ledger = eventually("three instants", || {
        let ledger = server.get(&path).expect(200);
        let counted: u64 = ledger["items"].as_array()?.iter().filter_map(|item| item["count"].as_u64()).sum();
        (counted >= 3).then_some(ledger)
    });
    let first = &ledger["items"][0];
    assert!(first["outcome"].as_str().unwrap().starts_with("FIRED"), "{ledger}");
    assert!(first["runId"].is_u64());
    let skipped = ledger["items"].as_array().unwrap().iter().any(|item| item["reason"] == "RUN_ACTIVE");
    assert!(skipped, "{ledger}");
    // Both ends are included, and pages repeat nothing.
    let items = ledger["items"].as_array().unwrap();
    let (begin, end) = (first["logicalTime"].as_str().unwrap(), ledger["to"].as_str().unwrap());
    let at = server.get(&format!("{path}?from={begin}&to={begin}")).expect(200);
    assert_eq!(at["items"], json!([first]), "{at}");
    let (mut paged, mut from) = (Vec::new(), begin.to_owned());
    loop {
        let page = server.get(&format!("{path}?from={from}&to={end}&pageSize=1")).expect(200);
        paged.extend(page["items"].as_array().unwrap().iter().cloned());
        let to = page["to"].as_str().unwrap().to_owned();
        assert!(page["truncated"] == false || to != from, "the next page is this one again: {page}");
        from = to;
        if page["truncated"] == false {
            break;
        }
    }
    assert_eq!(&paged, items, "{ledger}");
    server.get(&format!("{path}?from=2030-01-01T00:00:00Z&to=2029-01-01T00:00:00Z")).problem("400_INVALID_ARGUMENT");
    let none = server.get(&format!("{path}?from=2019-01-01T00:00:00Z&to=2020-01-01T00:00:00Z")).expect(200);
    assert_eq!(none["items"], json!([]));
}

#[test]
fn a_preview_tells_and_creates_nothing() {
    let server = Server::start();
    let body = json!({
        "trigger": {"type": "CRON", "expr": "30 2 * * *", "timezone": "Europe/Berlin"},
        "after": "2026-03-28T12:00:00Z", "count": 2,
    });
    let preview = server.post("/api/v1/schedules/preview", &body).expect(200);
    assert_eq!(preview["next"], json!(["2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"]));
    assert_eq!(preview["trigger"]["dialect"], "UNIX");
    assert!(preview["description"].as_str().unwrap().contains("02:30"), "{preview}");
    assert!(!preview["hazards"].as_array().unwrap().is_empty());
    assert_eq!(server.get("/api/v1/jobs").expect(200)["items"], json!([]));
}
