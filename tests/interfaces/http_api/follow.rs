//! A log that is followed: while it grows, over attempts, after a broken connection, until the node stops.
use super::{
    raw,
    server::{EXECUTOR, OPERATOR, SHOP, Server},
};
use campanile_client::{Context, Executor, JobError, executor::ExecutorHandle};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// Events as they come.
pub struct Events(BufReader<TcpStream>);

#[derive(Debug)]
pub struct Event {
    pub id: Option<String>,
    pub name: String,
    pub data: Value,
}

impl Events {
    fn of(server: &Server, run: u64, more: &str, last: Option<&str>) -> Self {
        Self::ask(server, &format!("/api/v1/runs/{run}/log?follow=true{more}"), OPERATOR, last)
    }

    /// Begun: what happens from now on is told.
    pub fn get(server: &Server, path: &str, token: &str, last: Option<&str>) -> Self {
        let mut events = Self::ask(server, path, token, last);
        let mut line = String::new();
        while !line.starts_with("retry: ") {
            line.clear();
            assert!(events.0.read_line(&mut line).unwrap() > 0, "over before it began");
        }
        events
    }

    fn ask(server: &Server, path: &str, token: &str, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\
             authorization: Bearer {token}\r\n{last}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// The next event; None when the answer is over.
    pub fn next(&mut self) -> Option<Event> {
        let (mut id, mut name) = (None, String::new());
        loop {
            let mut line = String::new();
            // `0` is the last chunk; nothing at all, a closed connection.
            if self.0.read_line(&mut line).unwrap() == 0 || line == "0\r\n" {
                return None;
            }
            if let Some(value) = line.strip_prefix("id: ") {
                id = Some(value.trim_end().to_owned());
            } else if let Some(value) = line.strip_prefix("event: ") {
                value.trim_end().clone_into(&mut name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some(Event { id, name, data: serde_json::from_str(data).unwrap() });
            }
        }
    }

    /// Text of logs until this much was told; the id of the last one.
    fn until(&mut self, wanted: &str) -> String {
        let mut text = String::new();
        loop {
            let event = self.next().unwrap_or_else(|| panic!("over after {text:?}"));
            assert_eq!(event.name, "log", "{event:?} after {text:?}");
            text.push_str(event.data["text"].as_str().unwrap());
            assert!(wanted.starts_with(&text), "{text:?} is not the beginning of {wanted:?}");
            if text == wanted {
                return event.id.unwrap();
            }
        }
    }
}

/// Writes a line, waits until it may go on, and fails at first.
fn executor(server: &Server, gate: &Arc<Semaphore>) -> ExecutorHandle {
    let gate = gate.clone();
    let _inside = server.runtime();
    Executor::builder(server.rpc(), EXECUTOR)
        .pool("default")
        .handler("grows", move |ctx: Context, _: Value| {
            let gate = gate.clone();
            async move {
                ctx.log(format!("attempt {} begins ü", ctx.attempt()));
                gate.acquire().await?.forget();
                ctx.log("and ends");
                if ctx.attempt() == 1 { Err(JobError::new("FIRST", "once more")) } else { Ok(()) }
            }
        })
        .build()
        .unwrap()
        .start()
}

fn run(server: &Server) -> u64 {
    let spec =
        json!({"name": "grows", "trigger": {"type": "MANUAL"}, "retryPolicy": {"maxAttempts": 2, "baseDelaySec": 0}});
    let job = server.post("/api/v1/jobs", &spec).expect(201)["jobId"].clone();
    server.post(&format!("/api/v1/jobs/{job}/trigger"), &json!({})).expect(200)["runId"].as_u64().unwrap()
}

#[test]
fn what_is_written_comes_at_once_over_all_attempts() {
    let server = Server::start();
    let run = run(&server);
    // Nothing runs yet: it is waited for.
    let mut events = Events::of(&server, run, "", None);
    let gate = Arc::new(Semaphore::new(0));
    let _executor = executor(&server, &gate);
    let begun = events.until("attempt 1 begins ü\n");
    assert_eq!(begun, "1-20", "attempt and bytes");
    gate.add_permits(1);
    let second = events.until("and ends\n");
    events.until("attempt 2 begins ü\n");
    gate.add_permits(1);
    events.until("and ends\n");
    let end = events.next().unwrap();
    assert_eq!((end.name.as_str(), &end.data["runState"], &end.data["attempt"]), ("end", &json!("SUCCESS"), &json!(2)));
    assert!(events.next().is_none(), "the end is the end");

    // From where a connection broke; one attempt alone.
    let mut events = Events::of(&server, run, "", Some(&begun));
    events.until("and ends\n");
    events.until("attempt 2 begins ü\nand ends\n");
    assert_eq!(events.next().unwrap().name, "end");
    let mut events = Events::of(&server, run, "&attempt=1", Some(&second));
    let end = events.next().unwrap();
    assert_eq!((end.name.as_str(), &end.data["attemptState"]), ("end", &json!("FAILED")));
}

/// A caller may come back with a place that an earlier release, or another tool, cut inside of a character.
#[test]
fn a_place_inside_of_a_character_is_the_one_before_it() {
    let server = Server::start();
    let gate = Arc::new(Semaphore::new(2));
    let _executor = executor(&server, &gate);
    let run = run(&server);
    server.get(&format!("/api/v1/runs/{run}?waitSec=30")).expect(200);
    // "attempt 1 begins " has 17 bytes, then come the two of the letter.
    let mut events = Events::of(&server, run, "&attempt=1", Some("1-18"));
    let first = events.next().unwrap();
    assert_eq!((&first.data["text"], &first.data["offset"]), (&json!("ü\nand ends\n"), &json!(17)));
    assert_eq!(first.id.as_deref(), Some("1-29"));
    let piece = server.get(&format!("/api/v1/runs/{run}/log?attempt=1&offset=18")).expect(200);
    assert_eq!((&piece["text"], &piece["offset"]), (&json!("ü\nand ends\n"), &json!(17)));
    let text = server.get(&format!("/api/v1/runs/{run}/log?attempt=1&offset=18&format=text")).text();
    assert_eq!(text, "ü\nand ends\n");
    // Between characters a place is what it is, also at the end and behind it.
    for (offset, text) in [(17, "ü\nand ends\n"), (19, "\nand ends\n"), (29, ""), (400, "")] {
        let piece = server.get(&format!("/api/v1/runs/{run}/log?attempt=1&offset={offset}")).expect(200);
        assert_eq!((&piece["text"], &piece["offset"]), (&json!(text), &json!(offset)));
    }
}

#[test]
fn followers_are_refused_as_readers_are() {
    let server = Server::start();
    let run = run(&server);
    let path = format!("/api/v1/runs/{run}/log?follow=true");
    server.call(SHOP, "GET", &path, None).problem("404_NOT_FOUND");
    server.get("/api/v1/runs/4096/log?follow=true").problem("404_NOT_FOUND");
    server.get(&format!("{path}&attempt=0")).problem("400_INVALID_ARGUMENT");
    let authorization = format!("Bearer {OPERATOR}");
    let headers = [("authorization", authorization.as_str()), ("last-event-id", "here")];
    let told = raw::call(&server.address, "GET", &path, &headers, b"").problem("400_INVALID_ARGUMENT");
    assert!(told.contains("ATTEMPT-OFFSET"), "{told}");
}

/// Followers do not hold up a node that stops: it ends their answers first. One that waits for them in vain stops all the same
/// after its patience, and they are told of a node that is not ready.
#[test]
fn a_stopping_node_lets_go_of_its_followers() {
    let server = Server::start();
    let run = run(&server);
    let mut events: Vec<Events> = (0..3).map(|_| Events::of(&server, run, "", None)).collect();
    let mut line = String::new();
    events.iter_mut().for_each(|events| assert!(events.0.read_line(&mut line).unwrap() > 0));
    let runtime = server.stop();
    let deadline = Instant::now() + Duration::from_secs(60);
    for events in &mut events {
        let mut rest = String::new();
        while events.0.read_line(&mut rest).unwrap() > 0 {
            assert!(Instant::now() < deadline, "it is still open: {rest:?}");
        }
        assert!(rest.ends_with("0\r\n\r\n"), "it was cut off, without the last chunk: {rest:?}");
        // A follower that outlives the node's last session is told that nobody can read the log any more.
        assert!(!rest.contains("event: problem"), "{rest:?}");
    }
    drop(runtime);
}
