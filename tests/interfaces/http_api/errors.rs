//! Every way in which a request can be refused before the scheduler sees it, and the scheduler's refusals.
use super::{
    raw,
    server::{EXECUTOR, METRICS, OPERATOR, Server},
};
use campanile_security::secrets::{KeyRing, new_key_line};
use serde_json::json;

/// Method, path, headers, body, code, part of the detail.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [u8], &'a str, &'a str);

const TOKEN: (&str, &str) = ("authorization", "Bearer operator-token");
const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn each_refusal_has_its_code_and_says_what_to_do() {
    let server = Server::start();
    let paused = server.manual_job(OPERATOR, "paused");
    server.post(&format!("/api/v1/jobs/{paused}/pause"), &json!({})).expect(200);
    let (paused_path, paused_trigger) = (format!("/api/v1/jobs/{paused}"), format!("/api/v1/jobs/{paused}/trigger"));
    let replace = json!({"version": 99, "spec": {"name": "paused", "trigger": {"type": "MANUAL"}}}).to_string();
    let wrong_schedule = |expr: &str| json!({"name": "x", "trigger": {"type": "CRON", "expr": expr}}).to_string();
    let (bad_cron, never) = (wrong_schedule("61 * * * *"), wrong_schedule("0 0 30 2 *"));
    let over = wrong_schedule("0 0 0 1 1 ? 2020");
    let long_reason = json!({"reason": "x".repeat(2000)}).to_string();
    let with = &[TOKEN, JSON][..];
    let bare = &[TOKEN][..];
    let cases: &[Case] = &[
        // Who.
        ("GET", "/api/v1/jobs", &[], b"", "401_UNAUTHENTICATED", "Authorization: Bearer"),
        ("GET", "/api/v1/jobs", &[("authorization", "Bearer wrong")], b"", "401_UNAUTHENTICATED", "is not known"),
        ("GET", "/api/v1/jobs", &[("authorization", "Basic YTpi")], b"", "401_UNAUTHENTICATED", "not of the form"),
        ("POST", "/api/v1/jobs", &[JSON], b"not even JSON", "401_UNAUTHENTICATED", "Bearer"),
        // Where.
        ("GET", "/api/v2/jobs", bare, b"", "404_UNKNOWN_METHOD", "did you mean /api/v1/jobs?"),
        ("GET", "/api/v1/jobs/", bare, b"", "404_UNKNOWN_METHOD", "did you mean /api/v1/jobs?"),
        ("GET", "/nowhere", &[], b"", "404_UNKNOWN_METHOD", "there is no path /nowhere"),
        ("DELETE", "/api/v1/jobs", bare, b"", "405_METHOD_NOT_ALLOWED", "it takes POST, GET"),
        ("PATCH", "/api/v1/jobs/1", bare, b"", "405_METHOD_NOT_ALLOWED", "it takes"),
        ("GET", "/api/v1/jobs/abc", bare, b"", "404_NOT_FOUND", "ids are numbers below 2^53; find one by name"),
        ("GET", "/api/v1/jobs/9007199254740992", bare, b"", "404_NOT_FOUND", "below 2^53"),
        ("GET", "/api/v1/jobs/99999999999999999999999", bare, b"", "404_NOT_FOUND", "below 2^53"),
        ("GET", "/api/v1/jobs/-1", bare, b"", "404_NOT_FOUND", "below 2^53"),
        ("GET", "/api/v1/jobs/4096", bare, b"", "404_NOT_FOUND", "there is no job 4096"),
        ("GET", "/api/v1/runs/4096", bare, b"", "404_NOT_FOUND", "there is no run 4096"),
        (
            "GET",
            "/api/v1/jobs/by-name?name=none",
            bare,
            b"",
            "404_NOT_FOUND",
            "there is no job 'none' of tenant 'default'",
        ),
        ("GET", "/api/v1/tenants/%ff", bare, b"", "400_INVALID_ARGUMENT", "in the path"),
        // The query.
        ("GET", "/api/v1/jobs?pagesize=1", bare, b"", "400_INVALID_ARGUMENT", "did you mean `pageSize`?"),
        ("GET", "/api/v1/jobs?pageSize=many", bare, b"", "400_INVALID_ARGUMENT", "pageSize: invalid digit"),
        ("GET", "/api/v1/jobs?pageSize=0", bare, b"", "400_INVALID_ARGUMENT", "pageSize: is 1 to 1000"),
        ("GET", "/api/v1/jobs?pageSize=1001", bare, b"", "400_INVALID_ARGUMENT", "pageSize: is 1 to 1000"),
        ("GET", "/api/v1/jobs?page=0", bare, b"", "400_INVALID_ARGUMENT", "page: counts from 1"),
        ("GET", "/api/v1/jobs?page=11&pageSize=1000", bare, b"", "400_INVALID_ARGUMENT", "at most 10000"),
        ("GET", "/api/v1/jobs?page=1&pageToken=x", bare, b"", "400_INVALID_ARGUMENT", "either page or pageToken"),
        ("GET", "/api/v1/jobs?pageToken=x", bare, b"", "400_INVALID_ARGUMENT", "pageToken"),
        ("GET", "/api/v1/jobs?status=GONE", bare, b"", "400_INVALID_ARGUMENT", "'GONE' is not one of ENABLED"),
        (
            "GET",
            "/api/v1/jobs?labels=a=b,=c",
            bare,
            b"",
            "400_INVALID_ARGUMENT",
            "labels: term 2 '=c': the key is missing",
        ),
        ("GET", "/api/v1/jobs?tenantId=a%20b", bare, b"", "400_INVALID_ARGUMENT", "tenantId: 'a b' is not"),
        ("GET", "/api/v1/runs?state=DONE", bare, b"", "400_INVALID_ARGUMENT", "state: 'DONE' is not one of"),
        ("GET", "/api/v1/runs/4096?waitSec=61", bare, b"", "400_INVALID_ARGUMENT", "waitSec: at most 60"),
        ("GET", "/api/v1/dead-letters?pageToken=x", bare, b"", "400_INVALID_ARGUMENT", "pageToken"),
        ("GET", "/api/v1/outbox?pageToken=x", bare, b"", "400_INVALID_ARGUMENT", "pageToken"),
        ("GET", "/api/v1/pools?x=1", bare, b"", "400_INVALID_ARGUMENT", "unknown field `x`"),
        // The body.
        ("POST", "/api/v1/jobs", with, b"", "400_MALFORMED_BODY", "the body is missing"),
        (
            "POST",
            "/api/v1/jobs",
            with,
            br#"["posjob","default",{"type":"MANUAL"}]"#,
            "400_INVALID_ARGUMENT",
            "an object is wanted",
        ),
        (
            "POST",
            "/api/v1/jobs",
            with,
            br#"{"name":"a","trigger":["MANUAL"]}"#,
            "400_INVALID_ARGUMENT",
            "trigger: this is a list",
        ),
        (
            "POST",
            "/api/v1/jobs",
            with,
            br#"{"name":"a","trigger":{"type":"FIXED_RATE","everySec":"10"}}"#,
            "400_INVALID_ARGUMENT",
            "trigger.everySec: write the number 10 without quotes",
        ),
        (
            "POST",
            "/api/v1/jobs",
            with,
            br#"{"name":"a","labels":{"a":"1","a":"2"}}"#,
            "400_INVALID_ARGUMENT",
            "labels.a: stands here twice",
        ),
        (
            "POST",
            "/api/v1/jobs",
            with,
            br#"{"name":"a","params":{"a":[{"b":1,"b":2}]}}"#,
            "400_INVALID_ARGUMENT",
            "params.a[0].b: stands here twice",
        ),
        (
            "POST",
            "/api/v1/jobs",
            &[TOKEN, JSON, ("content-encoding", "gzip")],
            b"{}",
            "415_UNSUPPORTED_MEDIA_TYPE",
            "without Content-Encoding",
        ),
        (
            "POST",
            "/api/v1/jobs/bulk",
            &[TOKEN, ("content-type", "application/x-ndjson"), ("content-encoding", "zstd")],
            b"{}",
            "415_UNSUPPORTED_MEDIA_TYPE",
            "without Content-Encoding",
        ),
        ("POST", "/api/v1/jobs", with, b"{\"name\":", "400_MALFORMED_BODY", "(line 1, column 8)"),
        ("POST", "/api/v1/jobs", with, b"{\"name\":\"\xff\"}", "400_MALFORMED_BODY", "not UTF-8 from byte 9 on"),
        ("POST", "/api/v1/jobs", with, b"{\"nmae\":\"a\"}", "400_INVALID_ARGUMENT", "did you mean `name`?"),
        (
            "POST",
            "/api/v1/jobs",
            with,
            b"{\"name\":1}",
            "400_INVALID_ARGUMENT",
            "name: this is a number, and text is wanted",
        ),
        (
            "POST",
            "/api/v1/jobs",
            &[TOKEN, ("content-type", "text/plain")],
            b"{}",
            "415_UNSUPPORTED_MEDIA_TYPE",
            "text/plain",
        ),
        (
            "POST",
            "/api/v1/jobs",
            with,
            br#"{"name":"a b","trigger":{"type":"MANUAL"}}"#,
            "400_INVALID_ARGUMENT",
            "name",
        ),
        (
            "POST",
            "/api/v1/jobs",
            with,
            br#"{"name":"a","trigger":{"type":"MANUAL"},"params":{"n":123456789012345678901}}"#,
            "400_INVALID_ARGUMENT",
            "does not fit 64 bits",
        ),
        ("POST", "/api/v1/jobs", with, bad_cron.as_bytes(), "400_INVALID_SCHEDULE", "61"),
        ("POST", "/api/v1/jobs", with, never.as_bytes(), "400_SCHEDULE_NEVER_FIRES", "February has no 30th"),
        ("POST", "/api/v1/jobs", with, over.as_bytes(), "400_SCHEDULE_NEVER_FIRES", "has no instant after"),
        (
            "POST",
            "/api/v1/schedules/preview",
            with,
            br#"{"trigger":{"type":"CRON","expr":"0 0 24 12 *","endAt":"2020-01-01T00:00:00Z"}}"#,
            "400_SCHEDULE_NEVER_FIRES",
            "endAt 2020-01-01T00:00:00.000Z is not after",
        ),
        (
            "POST",
            "/api/v1/jobs",
            with,
            br#"{"name":"a","trigger":{"type":"CRON","expr":"0 0 * * *","timezone":"Europe/Berln"}}"#,
            "400_UNKNOWN_TIMEZONE",
            "Europe/Berlin",
        ),
        (
            "POST",
            "/api/v1/jobs",
            with,
            br#"{"name":"a","trigger":{"type":"MANUAL"},"secretParams":{"k":"v"}}"#,
            "400_NO_SECRET_KEY",
            "key_file",
        ),
        (
            "POST",
            "/api/v1/jobs",
            with,
            br#"{"name":"paused","trigger":{"type":"MANUAL"}}"#,
            "409_DUPLICATE_NAME",
            "paused",
        ),
        (
            "POST",
            "/api/v1/jobs",
            &[TOKEN, JSON, ("idempotency-key", "")],
            br#"{"name":"k","trigger":{"type":"MANUAL"}}"#,
            "400_INVALID_ARGUMENT",
            "Idempotency-Key",
        ),
        ("PUT", &paused_path, with, replace.as_bytes(), "409_STALE_VERSION", ""),
        (
            "POST",
            &paused_trigger,
            with,
            long_reason.as_bytes(),
            "400_INVALID_ARGUMENT",
            "reason: 2000 bytes; at most 1024",
        ),
        (
            "POST",
            &paused_trigger,
            with,
            br#"{"manualRunId":""}"#,
            "400_INVALID_ARGUMENT",
            "manualRunId: must not be empty",
        ),
        ("POST", &paused_trigger, with, br#"{"runId":"x"}"#, "400_INVALID_ARGUMENT", "did you mean `manualRunId`?"),
        ("POST", &paused_trigger, with, b"{}", "423_JOB_PAUSED", ""),
        ("POST", "/api/v1/runs/4096/cancel", bare, b"", "404_NOT_FOUND", "4096"),
        (
            "POST",
            "/api/v1/runs/4096/confirm",
            with,
            br#"{"decision":"MAYBE"}"#,
            "400_INVALID_ARGUMENT",
            "'MAYBE' is not one of RERUN, SUCCEEDED, FAILED",
        ),
        ("PUT", "/api/v1/tenants/t", with, br#"{"maxTriggersPerSec":-1}"#, "400_INVALID_ARGUMENT", "maxTriggersPerSec"),
        ("PUT", "/api/v1/tenants/a%20b", with, b"{}", "400_INVALID_ARGUMENT", "tenantId"),
        (
            "POST",
            "/api/v1/schedules/preview",
            with,
            br#"{"trigger":{"type":"MANUAL"},"count":101}"#,
            "400_INVALID_ARGUMENT",
            "count: at most 100",
        ),
    ];
    let mut wrong = Vec::new();
    for (method, path, headers, body, code, told) in cases {
        let answer = raw::call(&server.address, method, path, headers, body);
        let problem = answer.json();
        let detail = problem["detail"].as_str().unwrap_or_default();
        if problem["code"] != *code || !detail.contains(told) {
            wrong.push(format!(
                "{method} {path} {}\n  wanted {code}: {told}\n  got {}",
                String::from_utf8_lossy(body),
                answer.text()
            ));
        } else {
            answer.problem(code);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_body_over_the_limit_is_refused_and_the_answer_arrives() {
    let server = Server::start();
    let large = vec![b' '; (4 << 20) + 1];
    let refused = raw::call(&server.address, "POST", "/api/v1/jobs", &[TOKEN, JSON], &large);
    refused.problem("413_BODY_TOO_LARGE");
    let padded = |spec: &str| format!("{spec}{}", " ".repeat((4 << 20) - spec.len()));
    let fits = padded(r#"{"name":"large","trigger":{"type":"MANUAL"}}"#);
    raw::call(&server.address, "POST", "/api/v1/jobs", &[TOKEN, JSON], fits.as_bytes()).expect(201);
    let head =
        b"POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer operator-token\r\n\
                 transfer-encoding: chunked\r\n\r\n";
    let chunked = b"2d\r\n{\"name\":\"chunks\",\"trigger\":{\"type\":\"MANUAL\"}}\r\n0\r\n\r\n";
    raw::send(&server.address, head, chunked).expect(201);
}

/// Every route of the document, and every method of RPC at the hello.
#[test]
fn a_token_for_metrics_reads_metrics_and_nothing_else() {
    let server = Server::with(|options| options.open_metrics = false);
    let document = server.get("/openapi.json").expect(200);
    let mut refused = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let verbs = methods.as_object().unwrap().keys().map(|verb| verb.to_uppercase());
        for verb in verbs.filter(|verb| ["GET", "POST", "PUT", "DELETE"].contains(&verb.as_str())) {
            let path = path
                .split('/')
                .map(|part| if part.starts_with('{') { "1" } else { part })
                .collect::<Vec<_>>()
                .join("/");
            // What everybody may see, it may see too.
            if raw::call(&server.address, &verb, &path, &[], b"").status != 401 {
                assert!(
                    ["/", "/api", "/assets/1", "/errors", "/healthz", "/readyz", "/openapi.json"]
                        .contains(&path.as_str())
                        || path.contains("schema"),
                    "{path}"
                );
                continue;
            }
            if path == "/metrics" {
                continue;
            }
            server.call(METRICS, &verb, &path, None).problem("403_FORBIDDEN");
            refused += 1;
        }
    }
    assert!(refused > 40, "{refused} routes");
    // There are no metrics in this node: that is another answer than for who may not read them.
    server.call(METRICS, "GET", "/metrics", None).problem("404_NOT_FOUND");
    server.call(EXECUTOR, "GET", "/metrics", None).problem("403_FORBIDDEN");
    server.call(METRICS, "GET", "/readyz", None).expect(200);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let greeted = runtime.block_on(campanile_client::Client::connect(server.rpc(), METRICS));
    let refused = greeted.err().unwrap().to_string();
    assert!(refused.contains("a credential for metrics reads /metrics over HTTP only"), "{refused}");
}

#[test]
fn other_sites_pages_do_not_get_in_without_a_token() {
    let server = Server::with(|options| {
        options.open_to_loopback = Some(super::server::caller("dev", campanile_security::auth::Role::Operator, None));
    });
    let get = |headers: &[(&str, &str)]| raw::call(&server.address, "GET", "/api/v1/jobs", headers, b"");
    get(&[]).expect(200);
    get(&[("origin", &format!("http://{}", server.address))]).expect(200);
    get(&[("origin", "https://elsewhere.example")]).problem("401_UNAUTHENTICATED");
    get(&[("host", "rebound.example")]).problem("401_UNAUTHENTICATED");
    get(&[("sec-fetch-site", "cross-site")]).problem("401_UNAUTHENTICATED");
    get(&[("authorization", "Bearer wrong")]).problem("401_UNAUTHENTICATED");
}

#[test]
fn a_credential_that_calls_too_often_is_told_when_to_come_back() {
    let server = Server::with(|options| options.authenticator = options.authenticator.clone().limited(5));
    let mut refused = 0;
    for _ in 0..40 {
        let answer = server.call(OPERATOR, "GET", "/api/v1/pools", None);
        if answer.status != 200 {
            assert_eq!(answer.header("retry-after"), Some("1"));
            answer.problem("429_RATE_LIMITED");
            refused += 1;
        }
    }
    assert!(refused > 0, "40 calls at once, of 5 a second");
    server.call(super::server::FINANCE, "GET", "/api/v1/jobs", None).expect(200);
    assert_eq!(server.get("/healthz").status, 200, "pages are for everybody");
}

/// Nothing is opened to pages of other sites.
#[test]
fn other_origins_get_no_permission() {
    let server = Server::start();
    let origin = ("origin", "https://elsewhere.example");
    let asks = [origin, ("access-control-request-method", "POST")];
    let preflight = raw::call(&server.address, "OPTIONS", "/api/v1/jobs", &asks, b"");
    let answer = raw::call(&server.address, "GET", "/api/v1/jobs", &[TOKEN, origin], b"");
    assert_eq!((preflight.status, answer.status), (405, 200));
    for answer in [preflight, answer] {
        assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control-")), "{:?}", answer.headers);
    }
}

#[test]
fn a_request_names_one_host() {
    let server = Server::start();
    for (hosts, told) in [
        ("", "no Host header"),
        ("host: a\r\nhost: b\r\n", "several Host headers"),
        ("host: a\r\nhost: a\r\n", "several Host headers"),
        ("host: localhost:80@evil.example\r\n", "NAME:PORT"),
        ("host: [::1].evil:1\r\n", "NAME:PORT"),
        ("host: \r\n", "NAME:PORT"),
    ] {
        let head = format!("GET /healthz HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
        let problem = raw::send(&server.address, head.as_bytes(), b"").problem("400_INVALID_ARGUMENT");
        assert!(problem.contains(told), "{hosts:?}: {problem}");
    }
    let absolute = b"GET http://elsewhere.example/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert!(raw::send(&server.address, absolute, b"").problem("400_INVALID_ARGUMENT").contains("another host"));
    let old = b"GET /healthz HTTP/1.0\r\n\r\n";
    assert_eq!(raw::send(&server.address, old, b"").status, 200);
}

/// What a caller wrote comes back shortened, and what may be secret not at all.
#[test]
fn messages_do_not_repeat_what_they_were_sent() {
    let keys = KeyRing::parse(&new_key_line().unwrap()).map_err(|(_, why)| why).unwrap();
    let server = Server::with(|options| options.secrets = std::sync::Arc::new(keys));
    let long = "x".repeat(1 << 20);
    for body in [
        json!({"name": "a", long.clone(): 1}),
        json!({"name": "a", "trigger": {"type": long.clone()}}),
        json!({"name": long.clone(), "trigger": {"type": "MANUAL"}}),
        json!({"name": "a", "trigger": {"type": "CRON", "expr": long.clone()}}),
        json!({"name": "a", "trigger": {"type": "CRON", "expr": "* * * * *", "timezone": long.clone()}}),
        json!({"name": "a", "concurrencyPolicy": long.clone(), "trigger": {"type": "MANUAL"}}),
        json!({"name": "a", "tenantId": long.clone(), "trigger": {"type": "MANUAL"}}),
        json!({"name": "a", "labels": {long.clone(): "a"}, "trigger": {"type": "MANUAL"}}),
        json!({"name": "a", "secretParams": {long.clone(): "a"}, "trigger": {"type": "MANUAL"}}),
        json!({"name": "a", "timeoutSec": long.clone()}),
    ] {
        let answer = server.post("/api/v1/jobs", &body);
        assert_eq!(answer.status / 100, 4);
        assert!(answer.body.len() < 8 << 10, "{} bytes: {}", answer.body.len(), &answer.text()[..500]);
    }
    for (secrets, told) in [
        (json!({"k": 734_125}), "secretParams.k: this is a number"),
        (json!({"k": ["734125"]}), "secretParams.k: this is a list"),
        (json!({"a\u{0}b": "734125"}), "secretParams: 'a\\0b' is not a name"),
        (json!({"a b": "734125"}), "secretParams: 'a b' is not a name"),
        (json!({"": "734125"}), "secretParams: '' is not a name"),
    ] {
        let body = json!({"name": "a", "secretParams": secrets, "trigger": {"type": "MANUAL"}});
        let told_us = server.post("/api/v1/jobs", &body).problem("400_INVALID_ARGUMENT");
        assert!(told_us.contains(told), "{told_us}");
        assert!(!told_us.contains("734125"), "{told_us}");
    }
}

/// Who looks for workflows where others have them is told where they are.
#[test]
fn workflows_are_said_to_be_jobs() {
    let server = Server::start();
    for path in ["/api/v1/jobs/dags", "/api/v1/dags", "/api/v1/workflows/7"] {
        let told = server.post(path, &json!({})).problem("404_UNKNOWN_METHOD");
        assert!(told.contains("POST /api/v1/jobs/dag"), "{told}");
    }
    server.post("/api/v1/jobs/17", &json!({})).problem("405_METHOD_NOT_ALLOWED");
}
