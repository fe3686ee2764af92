//! A tenant's credential sees and touches its tenant and nothing else.
use super::server::{FINANCE, OPERATOR, SHOP, Server};
use serde_json::json;

#[test]
fn what_belongs_to_another_tenant_does_not_exist() {
    let server = Server::start();
    let job = server.manual_job(SHOP, "theirs");
    let view = server.get(&format!("/api/v1/jobs/{job}")).expect(200);
    assert_eq!(view["tenantId"], "shop", "the tenant comes from the credential");
    let run = server.call(SHOP, "POST", &format!("/api/v1/jobs/{job}/trigger"), None).expect(200)["runId"].clone();
    let replace = json!({"version": 1, "spec": {"name": "theirs", "trigger": {"type": "MANUAL"}}});
    let confirm = json!({"decision": "RERUN"});
    let mut asked = Vec::new();
    for (method, path, body) in [
        ("GET", "", None),
        ("PUT", "", Some(&replace)),
        ("DELETE", "", None),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/trigger", None),
        ("GET", "/runs", None),
        ("GET", "/ledger", None),
    ] {
        asked.push((method, format!("/api/v1/jobs/{job}{path}"), body));
    }
    for (method, path, body) in [
        ("GET", format!("/api/v1/runs/{run}"), None),
        ("GET", format!("/api/v1/runs/{run}?waitSec=1"), None),
        ("POST", format!("/api/v1/runs/{run}/cancel"), None),
        ("POST", format!("/api/v1/runs/{run}/retry"), None),
        ("POST", format!("/api/v1/runs/{run}/confirm"), Some(&confirm)),
        ("GET", format!("/api/v1/runs/{run}/log"), None),
        ("POST", format!("/api/v1/dead-letters/{run}/redrive"), None),
        ("POST", format!("/api/v1/dead-letters/{run}/discard"), None),
        ("POST", format!("/api/v1/outbox/{run}/resend"), None),
        ("POST", format!("/api/v1/outbox/{run}/discard"), None),
    ] {
        asked.push((method, path, body));
    }
    for (method, path, body) in asked {
        let detail = server.call(FINANCE, method, &path, body).problem("404_NOT_FOUND");
        // Word for word what is said of an id that nobody has.
        let nobody = path.replacen(&job.to_string(), "1228800000", 1).replacen(&run.to_string(), "1228800000", 1);
        let unknown = server.call(FINANCE, method, &nobody, body).problem("404_NOT_FOUND");
        let plain = |text: &str| {
            text.replace(&job.to_string(), "ID").replace(&run.to_string(), "ID").replace("1228800000", "ID")
        };
        assert_eq!(plain(&detail), plain(&unknown), "{method} {path} tells that it exists");
    }
    server.call(FINANCE, "GET", "/api/v1/jobs/by-name?name=theirs", None).problem("404_NOT_FOUND");
    let still = server.get(&format!("/api/v1/jobs/{job}")).expect(200);
    assert_eq!(still["status"], "ENABLED");
}

#[test]
fn a_body_or_query_that_names_another_tenant_is_refused() {
    let server = Server::start();
    let spec = |tenant: &str| json!({"name": "a", "tenantId": tenant, "trigger": {"type": "MANUAL"}});
    for other in ["shop", "default"] {
        server.call(FINANCE, "POST", "/api/v1/jobs", Some(&spec(other))).problem("403_FORBIDDEN");
    }
    let made = server.call(FINANCE, "POST", "/api/v1/jobs", Some(&spec("finance"))).expect(201);
    let path = format!("/api/v1/jobs/{}", made["jobId"]);
    let body = json!({"version": 1, "spec": spec("default")});
    server.call(FINANCE, "PUT", &path, Some(&body)).problem("403_FORBIDDEN");
    for path in ["/api/v1/jobs", "/api/v1/dead-letters", "/api/v1/outbox", "/api/v1/runs"] {
        server.call(FINANCE, "GET", &format!("{path}?tenantId=shop"), None).problem("403_FORBIDDEN");
        server.call(FINANCE, "GET", &format!("{path}?tenantId=finance"), None).expect(200);
    }
    server.call(FINANCE, "GET", "/api/v1/jobs/by-name?name=a&tenantId=shop", None).problem("403_FORBIDDEN");
    server.call(FINANCE, "GET", "/api/v1/tenants/shop", None).problem("404_NOT_FOUND");
}

#[test]
fn lists_show_only_the_callers_tenant() {
    let server = Server::start();
    server.manual_job(SHOP, "same-name");
    server.manual_job(FINANCE, "same-name");
    let names = |token: &str| {
        let page = server.call(token, "GET", "/api/v1/jobs", None).expect(200);
        let mut tenants: Vec<String> =
            page["items"].as_array().unwrap().iter().map(|job| job["tenantId"].as_str().unwrap().to_owned()).collect();
        tenants.sort();
        tenants
    };
    assert_eq!(names(FINANCE), ["finance"]);
    assert_eq!(names(SHOP), ["shop"]);
    assert_eq!(names(OPERATOR), ["finance", "shop"]);
    let tenants = server.call(FINANCE, "GET", "/api/v1/tenants", None).expect(200);
    assert!(tenants["items"].as_array().unwrap().iter().all(|tenant| tenant["tenantId"] == "finance"), "{tenants}");
}

#[test]
fn limits_and_pauses_of_a_tenant_are_for_operators() {
    let server = Server::start();
    let quota = json!({"maxJobs": 1});
    for (method, path, body) in [
        ("PUT", "/api/v1/tenants/finance", Some(&quota)),
        ("POST", "/api/v1/tenants/finance/pause", None),
        ("POST", "/api/v1/tenants/finance/resume", None),
        ("POST", "/api/v1/system/pause", None),
        ("POST", "/api/v1/system/resume", None),
        ("POST", "/api/v1/cluster/clock/accept", None),
        ("GET", "/api/v1/executors", None),
        ("GET", "/api/v1/pools", None),
        ("GET", "/api/v1/cluster/node", None),
    ] {
        server.call(FINANCE, method, path, body).problem("403_FORBIDDEN");
    }
    let set = server.call(OPERATOR, "PUT", "/api/v1/tenants/finance", Some(&quota)).expect(200);
    assert_eq!(set["quota"]["maxJobs"], 1);
    assert_eq!(server.call(FINANCE, "GET", "/api/v1/tenants/finance", None).expect(200)["quota"]["maxJobs"], 1);
    let job = server.manual_job(FINANCE, "first");
    let second = json!({"name": "second", "trigger": {"type": "MANUAL"}});
    server.call(FINANCE, "POST", "/api/v1/jobs", Some(&second)).problem("429_TENANT_QUOTA_EXCEEDED");

    let reason = json!({"reason": "too many fires"});
    assert_eq!(server.call(OPERATOR, "POST", "/api/v1/tenants/finance/pause", Some(&reason)).status, 204);
    assert_eq!(server.get("/api/v1/tenants/finance").expect(200)["paused"], true);
    server.call(FINANCE, "POST", &format!("/api/v1/jobs/{job}/trigger"), None).problem("423_JOB_PAUSED");
    assert_eq!(server.call(OPERATOR, "POST", "/api/v1/tenants/finance/resume", None).status, 204);
    server.call(FINANCE, "POST", &format!("/api/v1/jobs/{job}/trigger"), None).expect(200);
}
