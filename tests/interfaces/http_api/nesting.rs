//! Values nested deeper than anybody means: refused by every reader, before they use up a stack.
use super::server::{OPERATOR, Server};
use campanile_schema::limits::RPC_FRAME_BEFORE_HELLO_BYTES;
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

const LEVELS: usize = 100_000;

fn bombs() -> Vec<String> {
    let open = |text: &str| text.repeat(LEVELS);
    let job = |params: &str| format!("{{\"name\":\"bomb\",\"trigger\":{{\"type\":\"MANUAL\"}},\"params\":{params}}}");
    let closed = format!("{}{}", open("["), open("]"));
    vec![open("["), open("{\"a\":"), closed.clone(), job(&closed), job(&open("[{\"a\":"))]
}

#[test]
fn deep_json_is_refused() {
    let server = Server::start();
    let authorization = format!("Bearer {OPERATOR}");
    for (path, media) in [("/api/v1/jobs", "application/json"), ("/api/v1/jobs/bulk", "application/x-ndjson")] {
        for bomb in bombs() {
            let headers = [("authorization", authorization.as_str()), ("content-type", media)];
            let answer = super::raw::call(&server.address, "POST", path, &headers, bomb.as_bytes());
            let text = answer.text();
            let refused = ["400_MALFORMED_BODY", "400_INVALID_ARGUMENT", "413_BODY_TOO_LARGE"];
            assert!(
                refused.iter().any(|code| text.contains(code)),
                "{path} {}...: {} {text}",
                &bomb[..20],
                answer.status
            );
        }
    }
    assert_eq!(server.get("/healthz").status, 200);
}

/// The YAML library takes the square of the nesting: each of these kept a processor busy for many seconds.
#[test]
fn deep_manifests_are_refused_at_once() {
    let server = Server::start();
    let texts = ["{a: [".repeat(60_000), "- [".repeat(100_000), format!("a: \"\n# ]\n\"\nb: {}", "[".repeat(200_000))];
    let callers: Vec<_> = texts
        .into_iter()
        .map(|text| {
            let address = server.address.clone();
            std::thread::spawn(move || {
                let body = serde_json::json!({"files": [{"name": "x.yaml", "text": text}]}).to_string();
                let authorization = format!("Bearer {OPERATOR}");
                let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
                super::raw::call(&address, "POST", "/api/v1/plan", &headers, body.as_bytes())
            })
        })
        .collect();
    assert_eq!(server.get("/healthz").status, 200);
    for caller in callers {
        let told = caller.join().unwrap().problem("400_INVALID_ARGUMENT");
        assert!(told.contains("nested deeper than 64 levels"), "{told}");
    }
}

#[test]
fn deep_messagepack_is_refused() {
    let server = Server::start();
    // Arrays of one array, and maps of one map.
    for (level, name) in [(&[0x91][..], "arrays"), (&[0x81, 0xa1, b'a'], "maps")] {
        let bomb = level.repeat(RPC_FRAME_BEFORE_HELLO_BYTES / level.len() - 1);
        let mut stream = TcpStream::connect(server.rpc()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // The node may hang up before all of it is written, and what it says then may be lost.
        let _ = stream.write_all(&bomb);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(text.is_empty() || text.contains("session.error"), "{name}: {text}");
    }
    assert_eq!(server.get("/healthz").status, 200);
}
