//! The audit trail of the real node: each operation of the table leaves its record, durably, and nobody else reads it.

use crate::program::{Dev, Done, eventually, run};
use campanile_schema::{
    job::{JobSpec, Trigger},
    operations::{self, Audit, Row},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, io::Write, net::TcpStream, path::Path, time::Duration};

fn start(dir: &Path, more: &[&str]) -> Dev {
    Dev::start(&dir.join("data"), &[&["--no-demo"], more].concat())
}

/// A call with a request id of its own.
struct Call {
    method: &'static str,
    path: String,
    body: Value,
}

fn call(method: &'static str, path: impl Into<String>, body: Value) -> Call {
    Call { method, path: path.into(), body }
}

impl Call {
    /// Status and body.
    fn send(&self, dev: &Dev, request_id: &str) -> (u16, Value) {
        let agent = ureq::Agent::config_builder().http_status_as_error(false);
        let agent: ureq::Agent = agent.timeout_global(Some(Duration::from_secs(60))).build().into();
        let url = format!("{}{}", dev.server, self.path);
        let named = ("x-request-id", request_id);
        let mut answer = match self.method {
            "GET" => agent.get(&url).header(named.0, named.1).call(),
            "DELETE" => agent.delete(&url).header(named.0, named.1).call(),
            "PUT" => agent.put(&url).header(named.0, named.1).send_json(&self.body),
            "LINES" => {
                let typed = agent.post(&url).header(named.0, named.1).header("content-type", "application/x-ndjson");
                typed.send(self.body.to_string())
            }
            _ => agent.post(&url).header(named.0, named.1).send_json(&self.body),
        }
        .unwrap();
        let status = answer.status().as_u16();
        // An archive is read to its end, or its record would be of a caller who went away.
        let body = answer.body_mut().with_config().limit(u64::MAX).read_to_vec().unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }
}

fn records(dev: &Dev, query: &str) -> Vec<Value> {
    let (status, page) = dev.http("GET", &format!("/api/v1/audit?pageSize=1000&{query}"), None);
    assert_eq!(status, 200, "{page}");
    page["items"].as_array().unwrap().clone()
}

/// Those of one request and operation, once there are any.
fn of_request(dev: &Dev, request_id: &str, operation: &str) -> Vec<Value> {
    eventually(&format!("{operation} is in the audit trail"), || {
        let found = records(dev, &format!("operation={operation}"));
        let found: Vec<Value> = found.into_iter().filter(|record| record["requestId"] == request_id).collect();
        (!found.is_empty()).then_some(found)
    })
}

/// What the calls are about.
struct Things {
    job: u64,
    /// Ended with SUCCESS.
    run: u64,
    /// Dead letters.
    dead: [u64; 3],
}

fn prepared(dev: &Dev) -> Things {
    let make = |name: &str, shell: &str| {
        let action = json!({"kind": "COMMAND", "command": ["/bin/sh", "-c", shell]});
        let retries = json!({"maxAttempts": 1});
        let spec = json!({"name": name, "trigger": {"type": "MANUAL"}, "action": action, "retryPolicy": retries});
        let (status, made) = dev.http("POST", "/api/v1/jobs", Some(&spec));
        assert_eq!(status, 201, "{made}");
        made["jobId"].as_u64().unwrap()
    };
    let ended = |job: u64| {
        let made = dev.http("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&json!({}))).1;
        let run = made["runId"].as_u64().unwrap();
        let view = dev.http("GET", &format!("/api/v1/runs/{run}?waitSec=30"), None).1;
        assert!(view["endedAt"].is_string(), "{view}");
        run
    };
    let (job, bad) = (make("good", "true"), make("bad", "exit 3"));
    Things { job, run: ended(job), dead: [ended(bad), ended(bad), ended(bad)] }
}

/// The call of an operation over HTTP. Each must be carried out, or be refused for a reason that is told here.
fn of(row: &Row, things: &Things) -> Call {
    let Things { job, run, dead } = things;
    let [redriven, discarded, retried] = dead;
    let reason = || json!({"reason": "the test asks for it"});
    let spec = |name: &str| json!({"name": name, "trigger": {"type": "MANUAL"}});
    let manifest = "apiVersion: campanile/v1\nkind: Job\nmetadata: {name: applied}\nspec: {handler: applied}\n";
    match row.name {
        "job.create" => call("POST", row.path(), spec("made")),
        "job.createLines" => call("LINES", row.path(), spec("line")),
        "job.apply" => call("POST", row.path(), json!({"files": [{"name": "a.yaml", "text": manifest}]})),
        "job.replace" => {
            let mut spec = spec("good");
            spec["priority"] = json!(200);
            call("PUT", row.path_of(job), json!({"version": 1, "spec": spec}))
        }
        "job.rollback" => call("POST", row.path_of(job), json!({"to": 1, "reason": "it was better"})),
        "job.pause" | "job.resume" | "job.trigger" => call("POST", row.path_of(job), reason()),
        "job.delete" => call("DELETE", format!("{}?reason=gone", row.path_of(job)), Value::Null),
        // Refused: the run has ended.
        "run.cancel" => call("POST", row.path_of(run), reason()),
        "run.confirm" => call("POST", row.path_of(run), json!({"decision": "RERUN", "reason": "it had not begun"})),
        "run.retry" => call("POST", row.path_of(retried), reason()),
        // Refused: the job has no instants, and there is no backfill. `backfill` has the records of those that are carried out.
        "job.backfill" | "job.replay" => {
            let (from, to) = ("2026-02-01T00:00:00Z", "2026-02-07T00:00:00Z");
            call("POST", row.path_of(job), json!({"from": from, "to": to, "reason": "lost"}))
        }
        "backfill.pause" | "backfill.resume" => call("POST", row.path_of(4_096), reason()),
        "backfill.cancel" => call("DELETE", row.path_of(4_096), Value::Null),
        // It names no job.
        "bulk.create" => {
            let filter = json!({"text": "no such job"});
            call(
                "POST",
                row.path(),
                json!({"action": "PAUSE", "tenantId": "default", "filter": filter, "reason": "by hand"}),
            )
        }
        // Refused: there is none. `bulk` has the records of those that are carried out.
        "bulk.abort" | "bulk.undo" => call("POST", row.path_of(24_576), reason()),
        "dag.create" => call("POST", row.path(), json!({"dagId": "dag", "nodes": [job]})),
        // Refused: the run is not one of a DAG. `dag` has the records of those that are carried out.
        "dag.retry" | "dag.pause" | "dag.resume" => call("POST", row.path_of(run), reason()),
        // Refused: the run has ended.
        "run.priority" => call("POST", row.path_of(run), json!({"priority": 900, "reason": "it is urgent"})),
        "dag.mark" => call("POST", row.path_of(run), json!({"node": "A", "state": "SUCCESS", "reason": "by hand"})),
        "dlq.redrive" => call("POST", row.path_of(redriven), reason()),
        "dlq.discard" => call("POST", row.path_of(discarded), reason()),
        // Refused: the run has no messages. `hooks` has the records of those that are carried out.
        "outbox.resend" | "outbox.discard" => call("POST", row.path_of(run), reason()),
        "tenant.set" => call("PUT", row.path_of("acme"), json!({"maxJobs": 7})),
        "target.set" => call("PUT", row.path_of("acme").replace("{target}", "db"), json!({"maxRunsPerSec": 5.0})),
        "target.delete" => {
            let path = row.path_of("acme").replace("{target}", "db");
            call("DELETE", format!("{path}?reason=gone"), Value::Null)
        }
        "calendar.set" => {
            let body = json!({"spec": {"exclude": {"weekly": ["SUN"]}}, "reason": "by hand"});
            call("PUT", row.path_of("acme").replace("{calendar}", "days"), body)
        }
        "calendar.delete" => {
            let path = row.path_of("acme").replace("{calendar}", "days");
            call("DELETE", format!("{path}?reason=gone"), Value::Null)
        }
        "tenant.pause" | "tenant.resume" => call("POST", row.path_of("acme"), reason()),
        "tenant.delete" => call("DELETE", format!("{}?reason=gone", row.path_of("acme")), Value::Null),
        "system.pause" | "system.resume" | "clock.accept" => call("POST", row.path(), reason()),
        // Refused: the node is alone.
        "cluster.cordon" | "cluster.uncordon" => call("POST", row.path_of("other"), reason()),
        "store.backup" | "store.history" => call("GET", row.path(), Value::Null),
        other => panic!("{other} is audited: say here how it is called"),
    }
}

/// What the record must name besides who and from where: a field, and what it holds.
fn about(row: &Row, things: &Things) -> BTreeMap<&'static str, Value> {
    let mut about = BTreeMap::new();
    match row.name {
        "job.replace" | "job.rollback" | "job.pause" | "job.resume" | "job.delete" => {
            about.insert("jobId", json!(things.job));
            about.insert("tenantId", json!("default"));
        }
        "job.create" | "job.createLines" | "dag.create" | "bulk.create" => {
            drop(about.insert("tenantId", json!("default")))
        }
        "dlq.redrive" => drop(about.insert("runId", json!(things.dead[0]))),
        "dlq.discard" => drop(about.insert("runId", json!(things.dead[1]))),
        "run.retry" => drop(about.insert("runId", json!(things.dead[2]))),
        "outbox.resend" | "outbox.discard" | "dag.retry" | "dag.mark" | "dag.pause" | "dag.resume" => {
            drop(about.insert("runId", json!(things.run)))
        }
        "tenant.set" | "tenant.pause" | "tenant.resume" | "tenant.delete" => {
            about.insert("tenantId", json!("acme"));
            about.insert("target", json!("acme"));
        }
        "target.set" | "target.delete" => {
            about.insert("tenantId", json!("acme"));
            about.insert("target", json!("db"));
        }
        "calendar.set" | "calendar.delete" => {
            about.insert("tenantId", json!("acme"));
            about.insert("target", json!("days"));
        }
        "job.backfill" | "job.replay" => drop(about.insert("jobId", json!(things.job))),
        "backfill.pause" | "backfill.resume" | "backfill.cancel" => {
            about.insert("target", json!("backfill 4096"));
        }
        "bulk.abort" | "bulk.undo" => drop(about.insert("target", json!("bulk 24576"))),
        "cluster.cordon" | "cluster.uncordon" => drop(about.insert("target", json!("other"))),
        _ => {}
    }
    about
}

/// Those that this node must refuse.
const REFUSED: [&str; 18] = [
    "bulk.abort",
    "bulk.undo",
    "job.backfill",
    "job.replay",
    "backfill.pause",
    "backfill.resume",
    "backfill.cancel",
    "run.cancel",
    "run.confirm",
    "outbox.resend",
    "outbox.discard",
    "dag.retry",
    "dag.mark",
    "dag.pause",
    "dag.resume",
    "run.priority",
    "cluster.cordon",
    "cluster.uncordon",
];

#[test]
fn every_audited_operation_leaves_exactly_one_record_that_tells_who_from_where_and_in_which_request() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path(), &[]);
    let things = prepared(&dev);
    // In the order of the table a job is deleted before it is paused. A rollback needs a version to go back from. A tenant's targets are
    // deleted with it.
    let mut rows: Vec<&Row> = operations::all().filter(|row| row.audit.is_kept() && row.http.is_ok()).collect();
    rows.sort_by_key(|row| {
        let of_jobs = (row.name == "job.rollback", row.name == "job.replace");
        (row.name == "tenant.delete", row.name.ends_with(".delete"), of_jobs)
    });
    assert!(rows.len() > 20, "{}", rows.len());
    for row in rows {
        let id = format!("audit-{}", row.name);
        let (status, answer) = of(row, &things).send(&dev, &id);
        let is_refused = REFUSED.contains(&row.name);
        assert_eq!((200..300).contains(&status), !is_refused, "{}: {status} {answer}", row.name);
        if row.audit == Audit::Run {
            let by = &answer["triggeredBy"];
            assert_eq!(by, &json!({"who": "dev", "address": "127.0.0.1", "requestId": id}), "{}", row.name);
            assert_eq!(records(&dev, &format!("operation={}", row.name)), [Value::Null; 0], "no second row");
            continue;
        }
        let found = of_request(&dev, &id, row.name);
        assert_eq!(found.len(), 1, "{}: {found:?}", row.name);
        let record = &found[0];
        assert_eq!(record["who"], "dev", "{record}");
        assert_eq!(record["address"], "127.0.0.1", "{record}");
        let outcome = if is_refused { answer["code"].clone() } else { json!("DONE") };
        assert_eq!(record["outcome"], outcome, "{record}");
        assert_eq!(record["count"], 1, "{record}");
        for (field, wanted) in about(row, &things) {
            assert_eq!(record[field], wanted, "{}: {field} of {record}", row.name);
        }
        let reason = of(row, &things).body["reason"].clone();
        let reason = if row.name.ends_with(".delete") { json!("gone") } else { reason };
        assert_eq!(record["reason"], reason, "{}", row.name);
    }
    // What an apply changes is there as what it is, too.
    assert_eq!(of_request(&dev, "audit-job.apply", "job.create").len(), 1);
}

/// The operations that the walk over HTTP cannot call: RPC alone has them.
#[test]
fn many_jobs_of_one_message_leave_a_record_each_and_so_does_the_refusal_of_one() {
    let only_rpc: Vec<&str> =
        operations::all().filter(|row| row.audit.is_kept() && row.http.is_err()).map(|row| row.name).collect();
    assert_eq!(only_rpc, ["job.createMany"], "say here how the others are called");
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path(), &["--no-executor"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let made = runtime.block_on(async {
        let client = campanile_client::Client::connect(dev.rpc.clone(), dev.token.clone()).await.unwrap();
        let spec = |name: &str| JobSpec::new("default", name, Trigger::Manual {});
        client.job_create_many(vec![spec("one"), spec("two"), spec("one")]).await.unwrap()
    });
    let jobs: Vec<Value> = made.iter().flatten().map(|made| json!(made.job_id)).collect();
    assert_eq!(jobs.len(), 2, "{made:?}");
    let found = eventually("all three are in the audit trail", || {
        Some(records(&dev, "operation=job.createMany")).filter(|found| found.len() == 3)
    });
    let (done, refused): (Vec<&Value>, Vec<&Value>) = found.iter().partition(|record| record["outcome"] == "DONE");
    let about: Vec<&Value> = done.iter().map(|record| &record["jobId"]).collect();
    assert_eq!(about.len(), 2, "{found:?}");
    assert!(jobs.iter().all(|job| about.contains(&job)), "{found:?}");
    assert_eq!(refused[0]["outcome"], "409_DUPLICATE_NAME", "{found:?}");
    for record in &found {
        assert_eq!((&record["who"], &record["address"]), (&json!("dev"), &json!("127.0.0.1")), "{record}");
        assert_eq!(record["requestId"], found[0]["requestId"], "all are of one call");
        assert!(record["requestId"].is_string(), "{record}");
    }
    assert!(done.iter().all(|record| record["tenantId"] == "default"), "{found:?}");
}

#[test]
fn a_change_that_the_job_fails_on_is_told_as_refused_also_when_the_job_is_put_aside_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path(), &["--no-executor"]);
    let labels = json!({"campanile.fault": "panic_on_pause"});
    let spec = json!({"name": "poisoned", "trigger": {"type": "MANUAL"}, "labels": labels});
    let (status, made) = dev.http("POST", "/api/v1/jobs", Some(&spec));
    assert_eq!(status, 201, "{made}");
    let job = &made["jobId"];
    for _ in 0..3 {
        assert_eq!(dev.http("POST", &format!("/api/v1/jobs/{job}/pause"), None).0, 500);
    }
    assert!(dev.http("GET", &format!("/api/v1/jobs/{job}"), None).1["quarantineReason"].is_string());
    let found = eventually("the refusals are in the audit trail", || {
        Some(records(&dev, "operation=job.pause")).filter(|found| !found.is_empty())
    });
    assert!(found.iter().all(|record| record["outcome"] == "500_INTERNAL"), "{found:?}");
}

/// A caller who closes its connection leaves no change without a record.
#[test]
fn an_apply_whose_caller_goes_away_is_carried_on_and_recorded() {
    const JOBS: usize = 300;
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path(), &["--no-executor"]);
    let manifest = |n: usize| {
        format!("apiVersion: campanile/v1\nkind: Job\nmetadata: {{name: job-{n}}}\nspec: {{handler: work}}\n")
    };
    let text: Vec<String> = (0..JOBS).map(manifest).collect();
    let body = json!({"files": [{"name": "all.yaml", "text": text.join("---\n")}]}).to_string();
    let address = dev.server.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /api/v1/apply HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\nx-request-id: gone\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        dev.token,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    eventually("the apply has begun", || {
        let (_, page) = dev.http("GET", "/api/v1/jobs?pageSize=1", None);
        page["items"].as_array().is_some_and(|items| !items.is_empty()).then_some(())
    });
    drop(stream);
    let found = of_request(&dev, "gone", "job.apply");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["outcome"], &found[0]["count"]), (&json!("DONE"), &json!(JOBS)), "{found:?}");
    assert_eq!(records(&dev, "operation=job.create").len(), JOBS);
}

#[test]
fn what_was_answered_is_in_the_audit_trail_after_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let mut dev = start(dir.path(), &["--no-executor"]);
    for round in 0..3 {
        let name = format!("made-{round}");
        let job = dev.job(&name, json!({"type": "MANUAL"}));
        let (status, _) = call("POST", format!("/api/v1/jobs/{job}/pause"), json!({"reason": name})).send(&dev, &name);
        assert_eq!(status, 200);
        let (status, _) = call("POST", "/api/v1/cluster/clock/accept", json!({"reason": name})).send(&dev, &name);
        assert_eq!(status, 204);
        dev.kill();
        dev = start(dir.path(), &["--no-executor"]);
        for (operation, about) in [("job.create", &job), ("job.pause", &job)] {
            let found = records(&dev, &format!("operation={operation}&jobId={about}"));
            assert_eq!(found.len(), 1, "{operation}: {found:?}");
            assert_eq!(found[0]["who"], "dev");
        }
        let accepted = records(&dev, "operation=clock.accept");
        assert_eq!(accepted.len(), round + 1, "{accepted:?}");
        assert_eq!(accepted[0]["reason"], name.as_str());
    }
}

/// A call without a token that this node knows.
fn unknown(dev: &Dev, path: &str) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let answer = agent.get(format!("{}{path}", dev.server)).header("authorization", "Bearer wrong").call().unwrap();
    assert_eq!(answer.status(), 401);
}

#[test]
fn a_flood_of_equal_refusals_is_one_record() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path(), &["--no-executor"]);
    for _ in 0..200 {
        unknown(&dev, "/api/v1/jobs");
    }
    unknown(&dev, "/api/v1/tenants");
    let found = eventually("both operations are in the audit trail", || {
        let found = records(&dev, "outcome=401_UNAUTHENTICATED");
        let has = |operation: &str| found.iter().any(|record| record["operation"] == operation);
        (has("job.list") && has("tenant.list")).then_some(found)
    });
    // Should the calls have taken longer than a minute there are two.
    let lists: Vec<&Value> = found.iter().filter(|record| record["operation"] == "job.list").collect();
    assert!((1..=2).contains(&lists.len()), "{lists:?}");
    for record in &found {
        assert!(record["who"].is_null(), "{record}");
        assert_eq!(record["address"], "127.0.0.1");
    }
    assert!(dev.metrics().contains("campanile_audit_refusals_total 201"));
    assert!(dev.metrics().contains("campanile_audit_lost_total 0"));
    // An orderly end tells the whole count.
    assert_eq!(dev.stop(), 0);
    let dev = start(dir.path(), &["--no-executor"]);
    let found = records(&dev, "operation=job.list&outcome=REFUSED");
    let total: u64 = found.iter().map(|record| record["count"].as_u64().unwrap()).sum();
    assert_eq!(total, 200, "{found:?}");
}

#[test]
fn backup_and_restore_keep_the_audit_trail() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path(), &["--no-executor"]);
    let job = dev.job("made", json!({"type": "MANUAL"}));
    let pause = call("POST", format!("/api/v1/jobs/{job}/pause"), json!({"reason": "before the backup"}));
    assert_eq!(pause.send(&dev, "one").0, 200);
    let triggered = dev.job("run", json!({"type": "MANUAL"}));
    let run_id =
        call("POST", format!("/api/v1/jobs/{triggered}/trigger"), json!({})).send(&dev, "two").1["runId"].clone();
    let before = records(&dev, &format!("jobId={job}"));
    assert_eq!(before.len(), 2);
    let archive = dir.path().join("archive");
    let archive = archive.to_str().unwrap();
    dev.run(&["store", "backup", archive]).ok();
    let resumed = call("POST", format!("/api/v1/jobs/{job}/resume"), json!({})).send(&dev, "three");
    assert_eq!(resumed.0, 200);
    dev.kill();
    let dumped: Done = run(&["store", "dump", archive]);
    let lines = dumped.ok();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(lines.filter(|line| line["kind"] == "audit" && line["jobId"] == job).count(), 2);
    let restored = dir.path().join("restored");
    let place = restored.join("data/node");
    run(&["store", "restore", archive, "--data", place.to_str().unwrap()]).ok();
    let dev = start(&restored, &["--no-executor"]);
    assert_eq!(records(&dev, &format!("jobId={job}")), before, "what came after the backup is not there");
    let (_, view) = dev.http("GET", &format!("/api/v1/runs/{run_id}"), None);
    assert_eq!(view["triggeredBy"]["requestId"], "two", "{view}");
}

#[test]
fn the_command_line_lists_and_exports_it() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path(), &["--no-executor"]);
    let job = dev.job("made", json!({"type": "MANUAL"}));
    for n in 0..5 {
        let verb = if n % 2 == 0 { "pause" } else { "resume" };
        let (status, _) = call("POST", format!("/api/v1/jobs/{job}/{verb}"), json!({})).send(&dev, &n.to_string());
        assert_eq!(status, 200);
    }
    let id = job.to_string();
    let list = |more: &[&str]| {
        let page = dev.run(&[&["audit", "list", "--job", &id, "-o", "json"], more].concat()).json();
        let names = page["items"].as_array().unwrap().iter().map(|record| record["operation"].clone());
        (names.collect::<Vec<_>>(), page["nextPageToken"].clone())
    };
    let expected = ["job.pause", "job.resume", "job.pause", "job.resume", "job.pause", "job.create"];
    assert_eq!(list(&[]).0, expected, "newest first");
    assert_eq!(list(&["--all", "--operation", "job.resume"]).0, ["job.resume", "job.resume"]);
    let (first, token) = list(&["--page-size", "4"]);
    assert_eq!(first, expected[..4]);
    let (rest, token) = list(&["--page-size", "4", "--page-token", token.as_str().unwrap()]);
    assert_eq!(rest, expected[4..]);
    assert!(token.is_null());
    let exported = dev.run(&["audit", "export", "--job", &id]).ok();
    let lines: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, records(&dev, &format!("jobId={job}")));
    let first_at = lines[5]["at"].as_str().unwrap();
    let until = dev.run(&["audit", "export", "--job", &id, "--to", first_at]).ok();
    let until: Vec<Value> = until.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(until.last(), lines.last(), "its end is included");
    assert!(until.iter().all(|record| record["at"] == first_at), "{until:?}");
    dev.run(&["audit", "list", "--from", "yesterday"]).refused(2);
    let shown = dev.run(&["audit", "list", "--job", &id]).ok();
    assert!(shown.contains("job.create") && shown.contains("DONE"), "{shown}");
}
