//! Who may read the audit trail, and whose refusals it tells.

use super::server::{EXECUTOR, FINANCE, OPERATOR, SHOP, Server, eventually};
use serde_json::{Value, json};

fn records(server: &Server, token: &str, query: &str) -> Vec<Value> {
    let page = server.call(token, "GET", &format!("/api/v1/audit?{query}"), None).expect(200);
    page["items"].as_array().unwrap().clone()
}

#[test]
fn a_tenant_reads_its_own_records_and_an_operator_all() {
    let server = Server::start();
    let job = server.manual_job(FINANCE, "theirs");
    server.manual_job(SHOP, "others");
    server.call(OPERATOR, "PUT", "/api/v1/tenants/finance", Some(&json!({"maxJobs": 5}))).expect(200);
    server.call(OPERATOR, "POST", "/api/v1/cluster/clock/accept", None).expect(204);
    let own = records(&server, FINANCE, "");
    let told: Vec<(&str, &str)> =
        own.iter().map(|record| (record["operation"].as_str().unwrap(), record["who"].as_str().unwrap())).collect();
    assert_eq!(told, [("tenant.set", "ops"), ("job.create", "fin")]);
    assert!(own.iter().all(|record| record["tenantId"] == "finance"), "{own:?}");
    server.call(FINANCE, "GET", "/api/v1/audit?tenantId=shop", None).problem("403_FORBIDDEN");
    server.call(EXECUTOR, "GET", "/api/v1/audit", None).problem("403_FORBIDDEN");
    assert_eq!(records(&server, SHOP, &format!("jobId={job}")), [Value::Null; 0]);
    let all = records(&server, OPERATOR, "outcome=DONE");
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!(records(&server, OPERATOR, "tenantId=finance&outcome=DONE"), own);
}

#[test]
fn an_export_is_narrowed_as_the_list_is_and_says_that_it_is_whole() {
    let server = Server::start();
    server.manual_job(FINANCE, "theirs");
    server.manual_job(SHOP, "others");
    let lines = |token: &str| {
        let answer = server.call(token, "GET", "/api/v1/audit/export?operation=job.create", None);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let own = lines(FINANCE);
    assert_eq!(own.len(), 2, "{own:?}");
    assert_eq!(own[0]["tenantId"], "finance");
    assert_eq!(own[1], json!({"end": true, "records": 1}));
    assert_eq!(lines(OPERATOR).last(), Some(&json!({"end": true, "records": 2})));
    server.call(FINANCE, "GET", "/api/v1/audit/export?tenantId=shop", None).problem("403_FORBIDDEN");
    server.call(OPERATOR, "GET", "/api/v1/audit/export?page=1", None).problem("400_INVALID_ARGUMENT");
}

#[test]
fn a_refused_tenant_finds_it_among_its_own_records_and_learns_nothing_of_others() {
    let server = Server::start();
    let job = server.manual_job(SHOP, "secret");
    for _ in 0..3 {
        server.call(FINANCE, "POST", &format!("/api/v1/jobs/{job}/pause"), None).problem("404_NOT_FOUND");
    }
    server.call(FINANCE, "PUT", "/api/v1/tenants/shop", Some(&json!({}))).problem("403_FORBIDDEN");
    let refused = eventually("both refusals are in the audit trail", || {
        Some(records(&server, FINANCE, "outcome=REFUSED")).filter(|found| found.len() == 2)
    });
    let told: Vec<Value> = refused.iter().map(|r| json!([r["operation"], r["outcome"], r["who"]])).collect();
    assert!(told.contains(&json!(["job.pause", "404_NOT_FOUND", "fin"])), "{told:?}");
    assert!(told.contains(&json!(["tenant.set", "403_FORBIDDEN", "fin"])), "{told:?}");
    assert_eq!(records(&server, SHOP, "outcome=REFUSED"), [Value::Null; 0]);
}

#[test]
fn a_run_tells_who_triggered_it() {
    let server = Server::start();
    let job = server.manual_job(FINANCE, "theirs");
    let run = server.call(FINANCE, "POST", &format!("/api/v1/jobs/{job}/trigger"), None).expect(200);
    let by = &run["triggeredBy"];
    assert_eq!(by["who"], "fin");
    assert_eq!(by["address"], "127.0.0.1");
    assert!(by["requestId"].is_string(), "{run}");
    let read = server.call(FINANCE, "GET", &format!("/api/v1/runs/{}", run["runId"]), None).expect(200);
    assert_eq!(&read["triggeredBy"], by);
}
