//! A token is taken back while something long is open with it: every kind of stream and wait ends, and those of another token go on.

use crate::{
    program::{campanile, eventually},
    tokens::{Node, token, without},
};
use campanile_client::{Changes, Client, ClientError, Context, Executor, ExecutorHandle, JobError, WatchEvent};
use campanile_schema::{
    error::ErrorCode,
    ids::RunId,
    payload::Payload,
    record::RunState,
    watch::{JobChange, JobStep, RunChange, WatchJobs, WatchRuns},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Stdio},
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// Far above what anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const NOT_VALID: &str = "this token is not valid any more";

/// A request whose answer is under way.
struct Open(TcpStream, Instant);

impl Open {
    fn new(node: &Node, head: &str, token: &str, body: &str) -> Self {
        let mut stream = TcpStream::connect(&node.http).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "{head} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{body}").unwrap();
        Self(stream, Instant::now())
    }

    fn get(node: &Node, path: &str, token: &str) -> Self {
        Self::new(node, &format!("GET {path}"), token, "\r\n")
    }

    /// What comes, up to this text at least.
    fn until(&mut self, wanted: &str) -> String {
        let mut text = String::new();
        while !text.contains(wanted) {
            assert!(self.more(&mut text), "it ended without '{wanted}': {text}");
        }
        text
    }

    /// All that comes up to the last chunk.
    fn rest(mut self) -> String {
        let mut text = String::new();
        while !text.ends_with("\r\n0\r\n\r\n") {
            assert!(self.more(&mut text), "broken off: {text}");
        }
        text
    }

    fn more(&mut self, text: &mut String) -> bool {
        let mut bytes = [0; 4096];
        // A stream that goes on says so now and then, and must not hold the test for that.
        assert!(self.1.elapsed() < 2 * PATIENCE, "it goes on: {text}");
        let read = self.0.read(&mut bytes).unwrap_or_else(|error| panic!("{error} after: {text}"));
        text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        read > 0
    }
}

/// A command that goes on; ended with the test.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    /// Once it has said this.
    fn start(world: &World, token: &str, args: &[&str], says: &str) -> Self {
        let mut command = campanile();
        command
            .args(args)
            .env("CAMPANILE_SERVER", format!("http://{}", world.node.http))
            .env("CAMPANILE_API_TOKEN", token);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains(says) {
            assert!(lines.read_line(&mut said).unwrap() > 0, "{args:?} did not say '{says}': {said}");
        }
        Self { child, lines }
    }

    /// Its exit code, and what it said last.
    fn ended(&mut self) -> (Option<i32>, String) {
        let status = eventually("it ends", || self.child.try_wait().unwrap());
        let mut said = String::new();
        self.lines.read_to_string(&mut said).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn post(node: &Node, path: &str, token: &str, body: &Value) -> Value {
    let body = body.to_string();
    let head =
        format!("content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut answer = String::new();
    Open::new(node, &format!("POST {path}"), token, &head).0.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{answer}"))
}

/// A node, two operators, and a run whose body writes a line and goes on.
struct World {
    home: tempfile::TempDir,
    node: Node,
    /// The first is taken back.
    tokens: [String; 2],
    run: u64,
    _executor: ExecutorHandle,
    runtime: Runtime,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let tokens = ["leaver", "stayer"].map(|name| token(home.path(), &format!("--name {name} --role operator")));
        let node = Node::start(home.path());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let executor = runtime.block_on(async {
            let builder = Executor::builder(&node.rpc, &tokens[1]).pool("default").slots(1);
            let body = |ctx: Context, _: Payload| async move {
                ctx.log("it begins");
                std::future::pending::<Result<_, JobError>>().await
            };
            builder.any_handler(body).build().unwrap().start()
        });
        let job = &post(&node, "/api/v1/jobs", &tokens[1], &job("long"))["jobId"];
        let run =
            post(&node, &format!("/api/v1/jobs/{job}/trigger"), &tokens[1], &json!({}))["runId"].as_u64().unwrap();
        Self { home, node, tokens, run, _executor: executor, runtime }
    }

    fn take_back(&self) {
        without(self.home.path(), "leaver ");
    }

    /// What all that watches and waits hears of.
    fn change(&self) {
        post(&self.node, &format!("/api/v1/runs/{}/cancel", self.run), &self.tokens[1], &json!({}));
        post(&self.node, "/api/v1/jobs", &self.tokens[1], &job("later"));
    }
}

fn job(name: &str) -> Value {
    json!({"name": name, "trigger": {"type": "MANUAL"}, "retryPolicy": {"maxAttempts": 1}})
}

#[test]
fn what_is_open_over_http_ends() {
    let world = World::new();
    let node = &world.node;
    // What is asked, what shows that it is open, and what the one that stays hears in the end.
    let streams = [
        ("/api/v1/runs/watch".to_owned(), "retry: ", "CANCELED"),
        ("/api/v1/jobs/watch".to_owned(), "retry: ", "CREATED"),
        (format!("/api/v1/runs/{}/watch", world.run), "RUNNING", "CANCELED"),
        (format!("/api/v1/runs/{}/log?follow=true", world.run), "it begins", "event: end"),
    ];
    let [leaving, staying] = world.tokens.each_ref().map(|token| {
        streams.each_ref().map(|(path, begins, _)| {
            let mut open = Open::get(node, path, token);
            open.until(begins);
            open
        })
    });
    let wait = format!("/api/v1/runs/{}?waitSec=60", world.run);
    let [mut waits_in_vain, mut waits] = world.tokens.each_ref().map(|token| Open::get(node, &wait, token));
    // A bulk create of which a line came, and a create of which half came.
    let [cut_off, mut bulk] = ["first-a", "first-b"].map(|name| {
        let token = &world.tokens[usize::from(name == "first-b")];
        let body = format!("transfer-encoding: chunked\r\n\r\n{}", chunk(&job(name)));
        let mut open = Open::new(node, "POST /api/v1/jobs/bulk", token, &body);
        open.until("\"ok\"");
        open
    });
    let whole = job("whole").to_string();
    let (half, rest) = whole.split_at(10);
    let head = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{half}", whole.len());
    let [mut never_whole, mut create] =
        world.tokens.each_ref().map(|token| Open::new(node, "POST /api/v1/jobs", token, &head));

    world.take_back();
    for (open, (path, ..)) in leaving.into_iter().zip(&streams) {
        let said = open.rest();
        assert!(said.contains("event: problem"), "{path}: {said}");
        assert!(said.contains(NOT_VALID), "{path}: {said}");
    }
    for refused in [&mut waits_in_vain, &mut never_whole] {
        let said = refused.until(NOT_VALID);
        assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    }
    let said = cut_off.rest();
    assert!(said.contains("\"line\":2"), "{said}");
    assert!(said.contains(NOT_VALID), "{said}");

    world.change();
    for (mut open, (path, _, wanted)) in staying.into_iter().zip(&streams) {
        let said = open.until(wanted);
        assert!(!said.contains("problem"), "{path}: {said}");
    }
    assert!(waits.until("CANCELED").starts_with("HTTP/1.1 200"));
    write!(bulk.0, "{}0\r\n\r\n", chunk(&job("second"))).unwrap();
    let said = bulk.until("\"line\":2");
    assert!(said.contains("\"ok\""), "{said}");
    create.0.write_all(rest.as_bytes()).unwrap();
    assert!(create.until("\r\n").starts_with("HTTP/1.1 201"));
}

/// A line of a bulk create, as it is sent.
fn chunk(job: &Value) -> String {
    let line = format!("{job}\n");
    format!("{:x}\r\n{line}\r\n", line.len())
}

/// Why a watch ends; None: in good order.
async fn failed<T: DeserializeOwned>(mut changes: Changes<T>) -> Option<ClientError> {
    loop {
        match changes.next().await {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    }
}

/// Ends in good order when its run has, and at its first change of a job.
async fn heard<T: DeserializeOwned>(mut changes: Changes<T>, is_wanted: impl Fn(T) -> bool) {
    while let Some(heard) = changes.next().await.unwrap() {
        if let WatchEvent::Change(change) = heard
            && is_wanted(change)
        {
            return;
        }
    }
    panic!("it ended before");
}

fn unknown(error: &ClientError) -> bool {
    error.api().is_some_and(|error| error.known() == ErrorCode::Unauthenticated)
}

#[test]
fn what_is_open_over_rpc_ends() {
    let world = World::new();
    let run = RunId(world.run);
    let of_run = || WatchRuns { run_id: Some(run), ..WatchRuns::default() };
    world.runtime.block_on(async {
        let [leaver, stayer] = world.tokens.each_ref().map(|token| Client::connect(&world.node.rpc, token));
        let (leaver, stayer) = (leaver.await.unwrap(), stayer.await.unwrap());
        let runs = [leaver.run_watch(WatchRuns::default()).await, leaver.run_watch(of_run()).await];
        let jobs = leaver.job_watch(WatchJobs::default()).await.unwrap();
        let staying = [stayer.run_watch(WatchRuns::default()).await, stayer.run_watch(of_run()).await];
        let staying_jobs = stayer.job_watch(WatchJobs::default()).await.unwrap();
        let waits = |client: &Client| {
            let client = client.clone();
            tokio::spawn(async move { client.run_wait(run, PATIENCE).await })
        };
        let (waits_in_vain, waits) = (waits(&leaver), waits(&stayer));

        world.take_back();
        for changes in runs {
            let error = within(failed(changes.unwrap())).await.unwrap();
            assert!(unknown(&error), "{error}");
        }
        let error = within(failed(jobs)).await.unwrap();
        assert!(unknown(&error), "{error}");
        let error = within(waits_in_vain).await.unwrap().unwrap_err();
        assert!(unknown(&error) || error.to_string().contains(NOT_VALID), "{error}");

        tokio::task::block_in_place(|| world.change());
        for changes in staying {
            within(heard(changes.unwrap(), |change: RunChange| change.state == RunState::Canceled)).await;
        }
        within(heard(staying_jobs, |change: JobChange| change.change == JobStep::Created)).await;
        assert_eq!(within(waits).await.unwrap().unwrap().state, RunState::Canceled);
    });
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it goes on")
}

#[test]
fn commands_that_follow_end_and_say_why() {
    let world = World::new();
    let run = world.run.to_string();
    let follows: [(&[&str], &str); 3] = [
        (&["run", "log", &run, "-f"], "it begins"),
        (&["run", "watch", &run], "RUNNING"),
        (&["run", "watch", &run, "-o", "json"], "RUNNING"),
    ];
    let [leaving, staying] =
        world.tokens.each_ref().map(|token| follows.map(|(args, begins)| Running::start(&world, token, args, begins)));
    world.take_back();
    for (mut running, (args, _)) in leaving.into_iter().zip(follows) {
        let (code, said) = running.ended();
        assert_eq!(code, Some(4), "{args:?}: {said}");
        assert!(said.contains(NOT_VALID), "{args:?}: {said}");
    }
    world.change();
    for (mut running, (args, _)) in staying.into_iter().zip(follows) {
        let (code, said) = running.ended();
        assert!(matches!(code, Some(0 | 8)), "{args:?}: {said}");
        assert!(!said.contains("token"), "{args:?}: {said}");
    }
}
