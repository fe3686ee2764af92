//! Bulk create: an answer a line, in order, whatever the other lines are.
use super::{
    raw,
    server::{EXECUTOR, FINANCE, HttpAnswer, OPERATOR, Server},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

const PATH: &str = "/api/v1/jobs/bulk";

fn post(server: &Server, token: &str, key: Option<&str>, lines: &str) -> HttpAnswer {
    let authorization = format!("Bearer {token}");
    let mut headers = vec![("authorization", authorization.as_str()), ("content-type", "application/x-ndjson")];
    headers.extend(key.map(|key| ("idempotency-key", key)));
    raw::call(&server.address, "POST", PATH, &headers, lines.as_bytes())
}

/// The lines of a good answer, out of its chunks.
fn answers(answer: HttpAnswer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let (mut body, mut text) = (answer.body.as_slice(), Vec::new());
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        text.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 4 + size..];
    }
    String::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn told(answers: &[Value]) -> Vec<(u64, String)> {
    let word = |answer: &Value| answer["error"]["code"].as_str().unwrap_or("ok").to_owned();
    answers.iter().map(|answer| (answer["line"].as_u64().unwrap(), word(answer))).collect()
}

fn manual(name: &str) -> String {
    json!({"name": name, "trigger": {"type": "MANUAL"}}).to_string()
}

#[test]
fn each_line_has_its_answer_in_order() {
    let server = Server::start();
    let lines = [
        manual("a"),
        String::new(),
        "{".to_owned(),
        json!({"nmae": "x"}).to_string(),
        manual("a"),
        format!("\"{}\"", "x".repeat(256 << 10)),
        json!({"name": "c", "trigger": {"type": "CRON", "expr": "61 * * * *"}}).to_string(),
        manual("b"),
    ];
    let answers = answers(post(&server, OPERATOR, None, &lines.join("\n")));
    let wanted = [
        (1, "ok"),
        (3, "400_MALFORMED_BODY"),
        (4, "400_INVALID_ARGUMENT"),
        (5, "409_DUPLICATE_NAME"),
        (6, "413_BODY_TOO_LARGE"),
        (7, "400_INVALID_SCHEDULE"),
        (8, "ok"),
    ];
    assert_eq!(told(&answers), wanted.map(|(line, word)| (line, word.to_owned())), "{answers:?}");
    let error = &answers[2]["error"];
    assert!(error["detail"].as_str().unwrap().contains("did you mean `name`? (column "), "{error}");
    assert_eq!((&error["status"], &error["type"]), (&json!(400), &json!("/errors#400_INVALID_ARGUMENT")));
    let made = server.get(&format!("/api/v1/jobs/{}", answers[6]["ok"]["jobId"])).expect(200);
    assert_eq!(made["name"], "b");
}

#[test]
fn ten_thousand_go_in_one_call_and_no_more() {
    let server = Server::start();
    let lines: String = (0..10_002).map(|n| manual(&format!("job-{n}")) + "\n").collect();
    let answers = answers(post(&server, OPERATOR, None, &lines));
    let expected = |n: u64| (n, if n <= 10_000 { "ok" } else { "413_BODY_TOO_LARGE" }.to_owned());
    assert_eq!(told(&answers), (1..=10_001).map(expected).collect::<Vec<_>>());
    let last = server.get("/api/v1/jobs/by-name?name=job-9999").expect(200);
    assert_eq!(last["jobId"], answers[9_999]["ok"]["jobId"]);
    assert_eq!(server.get("/api/v1/jobs/by-name?name=job-10000").status, 404);
}

#[test]
fn with_a_key_the_same_call_again_makes_nothing_new() {
    let server = Server::start();
    let lines = format!("{}\n{}\n", manual("a"), manual("b"));
    let first = answers(post(&server, OPERATOR, Some("k"), &lines));
    let again = answers(post(&server, OPERATOR, Some("k"), &lines));
    assert_eq!(first, again);
    let changed = answers(post(&server, OPERATOR, Some("k"), &lines.replace("\"b\"", "\"c\"")));
    assert_eq!(told(&changed), [(1, "ok".to_owned()), (2, "409_IDEMPOTENCY_KEY_REUSED".to_owned())]);
    let twice = answers(post(&server, OPERATOR, None, &lines));
    assert_eq!(told(&twice)[0].1, "409_DUPLICATE_NAME");
    post(&server, OPERATOR, Some(&"k".repeat(250)), &lines).problem("400_INVALID_ARGUMENT");
}

#[test]
fn a_tenant_creates_its_own_jobs_only() {
    let server = Server::start();
    let of = |tenant: &str, name: &str| json!({"name": name, "tenantId": tenant, "trigger": {"type": "MANUAL"}});
    let lines = format!("{}\n{}\n{}\n", of("finance", "a"), of("shop", "b"), manual("c"));
    let answers = answers(post(&server, FINANCE, None, &lines));
    assert_eq!(told(&answers).iter().map(|(_, word)| word.as_str()).collect::<Vec<_>>(), ["ok", "403_FORBIDDEN", "ok"]);
    post(&server, EXECUTOR, None, &lines).problem("403_FORBIDDEN");
    post(&server, "wrong", None, &lines).problem("401_UNAUTHENTICATED");
    server.call(OPERATOR, "POST", PATH, Some(&json!({}))).problem("415_UNSUPPORTED_MEDIA_TYPE");
}

#[test]
fn what_the_tenant_may_not_have_is_refused_by_line_and_the_rest_is_made() {
    let server = Server::start();
    server.call(OPERATOR, "PUT", "/api/v1/tenants/finance", Some(&json!({"maxJobs": 3}))).expect(200);
    let lines: String = (0..5).map(|n| manual(&format!("job-{n}")) + "\n").collect();
    let answers = answers(post(&server, FINANCE, None, &lines));
    let refused = told(&answers).into_iter().filter(|(_, word)| word == "429_TENANT_QUOTA_EXCEEDED").count();
    assert_eq!((answers.len(), refused), (5, 2), "{answers:?}");
}

/// The answer of a line comes while the next one has not been written.
#[test]
fn answers_come_while_lines_are_sent() {
    let server = Server::start();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {OPERATOR}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for (n, name) in ["first", "second", "third"].iter().enumerate() {
        let line = manual(name) + "\n";
        stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes()).unwrap();
        let answer = loop {
            let mut line = String::new();
            assert_ne!(reader.read_line(&mut line).unwrap(), 0);
            if line.starts_with('{') {
                break serde_json::from_str::<Value>(&line).unwrap();
            }
        };
        assert_eq!(answer["line"], n as u64 + 1);
        assert!(answer["ok"]["jobId"].is_u64(), "{answer}");
    }
}

/// A byte order mark, which editors of Windows write, is passed over in every body and in every text of a file.
#[test]
fn a_byte_order_mark_is_passed_over() {
    const MARK: &str = "\u{feff}";
    let server = Server::start();
    let authorization = format!("Bearer {OPERATOR}");
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let call = |path: &str, body: String| raw::call(&server.address, "POST", path, &headers, body.as_bytes());
    call("/api/v1/jobs", format!("{MARK}{}\r\n", manual("one"))).expect(201);
    let lines = answers(post(&server, OPERATOR, None, &format!("{MARK}{}\r\n{}\r\n", manual("two"), manual("three"))));
    assert_eq!(told(&lines), [(1, "ok".to_owned()), (2, "ok".to_owned())]);
    let manifest =
        r#"{"apiVersion": "campanile/v1", "kind": "Job", "metadata": {"name": "four"}, "spec": {"every": "1h"}}"#;
    let texts = json!({"files": [{"name": "a.json", "text": format!("{MARK}{manifest}")}]});
    let plan = call("/api/v1/plan", format!("{MARK}{texts}")).expect(200);
    assert_eq!((&plan["create"], &plan["items"][0]["line"]), (&json!(1), &json!(1)));
    // Columns are counted without it.
    let slip = json!({"files": [{"name": "a.json", "text": format!("{MARK}{{\"kind\": \"Job\"}}")}]});
    let told = server.post("/api/v1/plan", &slip).problem("400_INVALID_ARGUMENT");
    assert!(told.contains("a.json:1:1: apiVersion: is missing"), "{told}");
    // Anywhere else it is no blank.
    call("/api/v1/jobs", format!("{}{MARK}", manual("five"))).problem("400_MALFORMED_BODY");
}
