//! What is sent, and what becomes of the answer.
use super::{
    LOOPBACK,
    target::{Say, Target, ok},
    world::World,
};
use campanile_client::{Context, Executor, JobError};
use campanile_schema::payload::Payload;
use serde_json::{Value, json};

#[test]
fn a_request_tells_of_its_attempt_and_the_log_of_the_answer() {
    let target = Target::start(|_| ok("thanks, hunter2"));
    let world = World::start(&LOOPBACK);
    let action = json!({
        "method": "put", "url": target.url("/orders/{{params.order}}?at={{invocationId}}"),
        "headers": {"X-Who": "<{{params.who}}>", "Authorization": "Bearer {{secrets.key}}", "User-Agent": "mine"},
        "body": {"text": "Dear {{params.who}}", "run": "{{runId}}", "list": "{{params.list}}", "n": 7},
    });
    let params = json!({"order": "a/b c", "who": "Ada \"A\"", "list": [1, {"x": null}]});
    let id = world.fire(action, json!({"params": params, "secretParams": {"key": "hunter2"}}));
    let run = world.ended(id);
    assert_eq!(run["state"], "SUCCESS", "{run}");
    assert_eq!(run["result"], json!({"status": 200, "bodyBytes": 15}));
    let [heard] = &target.heard()[..] else { panic!("{:?}", target.heard()) };
    assert_eq!((heard.method.as_str(), heard.path.clone()), ("PUT", format!("/orders/a%2Fb%20c?at={id}%2F1")));
    let body: Value = serde_json::from_str(&heard.body).unwrap();
    assert_eq!(body, json!({"text": "Dear Ada \"A\"", "run": id, "list": [1, {"x": null}], "n": 7}));
    let job = run["jobId"].to_string();
    let (key, run_id, host) = (format!("{id}/1"), id.to_string(), target.address.to_string());
    let token = run["attempts"][0]["token"].to_string();
    for (name, value) in [
        ("host", host.as_str()),
        ("x-who", "<Ada \"A\">"),
        ("authorization", "Bearer hunter2"),
        ("content-type", "application/json"),
        ("user-agent", "mine"),
        ("idempotency-key", &key),
        ("x-campanile-job-id", &job),
        ("x-campanile-run-id", &run_id),
        ("x-campanile-attempt", "1"),
        ("x-campanile-token", &token),
        ("x-campanile-source", "MANUAL"),
    ] {
        assert_eq!(heard.headers.get(name).map(String::as_str), Some(value), "{name} {heard:?}");
    }
    assert!(heard.headers["x-campanile-job-name"].starts_with("job"));
    assert_eq!(heard.headers["x-campanile-logical-time"], run["logicalTime"].as_str().unwrap());
    let log = world.log(id);
    for line in [&format!("> PUT http://{host}/orders/{{{{params.order}}}}\n"), "< 200 OK\n", "thanks, ***\n"] {
        assert!(log.contains(line), "{line} {log}");
    }
    // An instant, in the headers and wherever it is asked for.
    let once = json!({"trigger": {"type": "ONCE", "delaySec": 0}, "name": "once", "action": {
        "kind": "HTTP", "method": "GET", "url": target.url("/?at={{logicalTime}}")}});
    let (status, made) = world.dev.http("POST", "/api/v1/jobs", Some(&once));
    assert_eq!(status, 201, "{made}");
    let heard = super::program::eventually("the instant", || target.heard().get(1).cloned());
    let at = &heard.headers["x-campanile-logical-time"];
    assert_eq!(heard.path, format!("/?at={}", at.replace(':', "%3A")));
}

#[test]
fn a_wrong_status_is_tried_again_and_ends_as_a_dead_letter() {
    let target = Target::start(|heard| match heard.headers["idempotency-key"].ends_with("/1") {
        true => Say::Answer(503, Vec::new(), "out of bells".to_owned()),
        false => Say::Answer(404, Vec::new(), String::new()),
    });
    let world = World::start(&LOOPBACK);
    let policy = json!({"retryPolicy": {"maxAttempts": 2, "baseDelaySec": 0, "jitter": 0}});
    let id = world.fire(json!({"url": target.url("/x"), "body": "text", "expectStatus": [200, 404]}), policy);
    let run = world.ended(id);
    assert_eq!((&run["state"], &run["deadLetter"]), (&json!("FAILED"), &json!(true)), "{run}");
    let codes: Vec<&Value> = run["attempts"].as_array().unwrap().iter().map(|a| &a["errorCode"]).collect();
    assert_eq!(codes, ["HTTP_STATUS", "HTTP_STATUS"]);
    let why = "status 503 Service Unavailable, expected 200 to 404: out of bells";
    assert_eq!(run["lastError"], why);
    let attempts: Vec<String> = target.heard().iter().map(|h| h.headers["x-campanile-attempt"].clone()).collect();
    assert_eq!(attempts, ["1", "2"]);
    assert!(target.heard()[0].headers["content-type"].starts_with("text/plain"));
    assert_eq!(world.dev.run(&["dlq", "list", "-o", "json"]).json()["items"][0]["runId"], id);
    // The next generation is another key, and 404 is what this job expects.
    world.dev.run(&["dlq", "redrive", &id.to_string()]).ok();
    assert_eq!(world.in_state(id, "SUCCESS")["result"]["status"], 404);
    assert_eq!(target.heard()[2].headers["idempotency-key"], format!("{id}/2"));
}

#[test]
fn what_is_no_answer_has_a_code_of_its_own() {
    let garbage = Target::start(|_| Say::Bytes(b"SSH-2.0-x\r\n\r\n"));
    let cut = Target::start(|_| Say::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"));
    let closing = Target::start(|_| Say::Bytes(b""));
    let world = World::start(&LOOPBACK);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let code = |url: String| world.outcome(json!({"url": url})).1;
    assert_eq!(code(garbage.url("/")), "HTTP_ANSWER_INVALID");
    assert_eq!(code(cut.url("/")), "HTTP_CONNECT_FAILED");
    assert_eq!(code(closing.url("/")), "HTTP_CONNECT_FAILED");
    assert_eq!(code(format!("http://{nobody}/")), "HTTP_CONNECT_FAILED");
    // Longer than a label may be: no server of names is asked.
    assert_eq!(code(format!("http://{}.invalid/", "a".repeat(64))), "HTTP_NAME_NOT_FOUND");
    // The same params would give the same request: there is no second attempt.
    let more = json!({"retryPolicy": {"maxAttempts": 5, "baseDelaySec": 0}});
    let run = world.ended(world.fire(json!({"url": garbage.url("/{{params.missing}}")}), more));
    assert_eq!(
        (&run["attempts"][0]["errorCode"], run["attempts"].as_array().unwrap().len()),
        (&json!("HTTP_TEMPLATE"), 1)
    );
    assert_eq!(run["lastError"], "action.url: params have no 'missing'");
}

#[test]
fn of_a_long_answer_the_head_is_kept() {
    let target = Target::start(|_| ok(&"0123456789".repeat(100_000)));
    let world = World::start(&LOOPBACK);
    let id = world.fire(json!({"method": "GET", "url": target.url("/")}), json!({}));
    assert_eq!(world.ended(id)["state"], "SUCCESS");
    let log = world.log(id);
    assert!(log.len() > 200_000, "{}", log.len());
    assert!(log.len() < 300_000, "{}", log.len());
    assert!(log.contains("only the first 262144 bytes"), "{}", log.len());
}

#[test]
fn slips_are_told_when_the_job_is_created() {
    let world = World::alone();
    let create = |more: &[&str]| {
        let args = ["job", "create", "--name", "hook", "--manual"];
        world.dev.run(&[&args[..], more].concat())
    };
    let url = "https://example.org/hook";
    for (flags, told) in [
        (&["--http", "POST", "https://example.org/?x={{runid}}"][..], "'{{runid}}' is not known; there are runId"),
        (&["--http", "POST", "ftp://example.org/"], "action.url must begin with http:// or https://"),
        (&["--http", "POST", "https://{{params.host}}/"], "may stand only after the host"),
        (&["--http", "FETCH", url], "'FETCH' is not one of GET, HEAD, POST"),
        (
            &["--http", "POST", url, "--header", "X-Campanile-Token: 7"],
            "action.headers.X-Campanile-Token is set by Campanile",
        ),
        (
            &["--http", "POST", url, "--body", "{\"a\": \"{{secrets.key}}\"}"],
            "action.body: the job has no secret param 'key'",
        ),
        (&["--http", "GET", url, "--body", "x"], "action.body: a GET request has none"),
        (&["--http", "POST", url, "--expect-status", "300-200"], "action.expectStatus must be"),
        (&["--http", "POST", url, "--http-timeout", "9d"], "action.timeoutSec must be 1 to 86400"),
        (&["--http", "POST"], "2 values required"),
    ] {
        let refused = create(flags).refused(2);
        assert!(refused.contains(told), "{flags:?}\n  told: {refused}\n  not: {told}");
    }
    let slip = json!({"name": "x", "trigger": {"type": "MANUAL"}, "action": {"kind": "HTTP", "url": url, "expectStats": [200, 200]}});
    let (status, problem) = world.dev.http("POST", "/api/v1/jobs", Some(&slip));
    assert_eq!(status, 400);
    assert!(problem.to_string().contains("did you mean `expectStatus`?"), "{problem}");
    create(&["--http", "post", url, "--header", "X-Team: pay", "--body", "{\"run\": \"{{runId}}\"}"]).ok();
    let made = world.dev.run(&["job", "get", "hook", "-o", "json"]).json();
    let action = json!({
        "kind": "HTTP", "method": "POST", "url": url, "headers": {"X-Team": "pay"}, "body": {"run": "{{runId}}"},
        "expectStatus": [200, 299], "timeoutSec": 30, "maxRedirects": 0,
    });
    assert_eq!(made["action"], action);
    // Nobody here can run it, and that is told.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let other = Executor::builder(&world.dev.rpc, &world.dev.token)
        .any_handler(|_: Context, _: Payload| async { Ok::<_, JobError>(None) });
    let _other = runtime.block_on(async { other.build().unwrap().start() });
    let run = world.dev.run(&["job", "trigger", "hook", "-o", "json"]).json()["runId"].as_u64().unwrap();
    super::program::eventually("the reason", || {
        world.run(run)["waitReason"].as_str().filter(|why| why.contains("runs HTTP actions")).map(str::to_owned)
    });
}
