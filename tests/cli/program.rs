//! Runs the binary, and keeps a `campanile dev` for a test.
#![allow(dead_code)]

use campanile_schema::time::Timestamp;
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::Duration,
};

#[path = "../support/poll.rs"]
mod poll;
pub use poll::eventually;

/// The binary without anything of the environment's own.
pub fn campanile() -> Command {
    alone(Command::new(BINARY))
}

/// [`campanile`] that an interrupt ends although whoever runs the tests ignores interrupts, as what a script starts behind itself does.
pub fn interruptible() -> Command {
    let mut command = Command::new("/usr/bin/env");
    command.args(["--default-signal=INT", BINARY]);
    alone(command)
}

const BINARY: &str = env!("CARGO_BIN_EXE_campanile");

fn alone(mut command: Command) -> Command {
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent").env("TZ", "UTC");
    command
}

/// What came of a run.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn new(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }
    pub fn json(self) -> serde_json::Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
    /// Failed with this code; the sentence.
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        self.err
    }
}

pub fn run(args: &[&str]) -> Done {
    Done::new(&campanile().args(args).output().unwrap())
}

pub fn run_with_input(args: &[&str], input: &str) -> Done {
    let mut child =
        campanile().args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writing = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // A program that refuses its arguments does not read.
    let _ = writing.join().unwrap();
    Done::new(&output)
}

/// What became of one instant.
#[derive(Clone, Debug)]
pub struct Line {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub outcome: String,
    pub reason: String,
}

/// A running `campanile dev`; ended with the test.
pub struct Dev {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub server: String,
    pub rpc: String,
    pub token: String,
}

impl Dev {
    pub fn start(data: &Path, more: &[&str]) -> Self {
        Self::start_with(data, more, &[])
    }

    /// With variables of the environment.
    pub fn start_with(data: &Path, more: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_logging(data, more, environment, Stdio::inherit())
    }

    /// Where another one was: callers find it again.
    pub fn start_at(data: &Path, http: &str, more: &[&str]) -> Self {
        Self::start_all(data, (http, "127.0.0.1:0"), more, &[], Stdio::inherit())
    }

    /// Where another one was: executors find it again.
    pub fn start_at_rpc(data: &Path, rpc: &str, more: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_all(data, ("127.0.0.1:0", rpc), more, environment, Stdio::inherit())
    }

    /// With its log somewhere else.
    pub fn start_logging(data: &Path, more: &[&str], environment: &[(&str, &str)], log: impl Into<Stdio>) -> Self {
        Self::start_all(data, ("127.0.0.1:0", "127.0.0.1:0"), more, environment, log)
    }

    fn start_all(
        data: &Path,
        (http, rpc): (&str, &str),
        more: &[&str],
        environment: &[(&str, &str)],
        log: impl Into<Stdio>,
    ) -> Self {
        let mut child = campanile()
            .args(["dev", "--http", http, "--rpc", rpc, "--data"])
            .arg(data)
            .args(more)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut setting = |name: &str| {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            line.trim_end().strip_prefix(name).unwrap_or_else(|| panic!("not {name}: {line}")).to_owned()
        };
        let (http, rpc, token) = (setting("http="), setting("rpc="), setting("token="));
        Self { child, stdout, server: format!("http://{http}"), rpc, token }
    }

    /// A start that must not succeed: its last words.
    pub fn refused(data: &Path) -> String {
        Self::refused_at(data, "127.0.0.1:0", "127.0.0.1:0")
    }

    pub fn refused_at(data: &Path, http: &str, rpc: &str) -> String {
        let mut child = campanile()
            .args(["dev", "--no-demo", "--no-executor", "--http", http, "--rpc", rpc, "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if !line.is_empty() {
            child.kill().unwrap();
        }
        let done = Done::new(&child.wait_with_output().unwrap());
        assert!(line.is_empty(), "it started: {line}");
        done.refused(1)
    }

    pub fn run(&self, args: &[&str]) -> Done {
        Done::new(&campanile().env("CAMPANILE_SERVER", &self.server).args(args).output().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// As by `kill -9`.
    pub fn kill(self) {
        drop(self);
    }

    /// What `/readyz` says: nothing when it is ready, else the reasons.
    pub fn not_ready(&self) -> Vec<String> {
        let (status, body) = self.http("GET", "/readyz", None);
        match status {
            200 => Vec::new(),
            503 => serde_json::from_value(body["context"]["reasons"].clone())
                .unwrap_or_else(|_| panic!("no reasons: {body}")),
            _ => panic!("{status}: {body}"),
        }
    }

    /// What it measures, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        ureq::get(format!("{}/metrics", self.server)).call().unwrap().body_mut().read_to_string().unwrap()
    }

    /// One call over HTTP: status and body.
    pub fn http(&self, method: &str, path: &str, body: Option<&serde_json::Value>) -> (u16, serde_json::Value) {
        self.try_http(method, path, body).unwrap()
    }

    /// The same of a node that may have ended.
    pub fn try_http(
        &self,
        method: &str,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> Option<(u16, serde_json::Value)> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .build()
            .into();
        let url = format!("{}{path}", self.server);
        let mut answer = match (method, body) {
            ("GET", _) => agent.get(&url).call(),
            ("DELETE", _) => agent.delete(&url).call(),
            ("PUT", Some(body)) => agent.put(&url).send_json(body),
            (_, None) => agent.post(&url).send_empty(),
            (_, Some(body)) => agent.post(&url).send_json(body),
        }
        .ok()?;
        Some((answer.status().as_u16(), answer.body_mut().read_json().unwrap_or(serde_json::Value::Null)))
    }

    /// The first line of its output from here on that `wanted` likes.
    pub fn line(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "dev ended");
            if wanted(&line) {
                return line;
            }
        }
    }

    /// A job of default policies; its id.
    pub fn job(&self, name: &str, trigger: serde_json::Value) -> u64 {
        let spec = serde_json::json!({"name": name, "trigger": trigger});
        let (status, made) = self.http("POST", "/api/v1/jobs", Some(&spec));
        assert_eq!(status, 201, "{made}");
        made["jobId"].as_u64().unwrap()
    }

    /// The whole ledger of a job that is due every second, a line an instant.
    pub fn ledger(&self, name: &str) -> Vec<Line> {
        let id = self.run(&["job", "get", name, "-o", "json"]).json()["jobId"].to_string();
        let path = format!("/api/v1/jobs/{id}/ledger?from=1970-01-01T00:00:00Z&to=2200-01-01T00:00:00Z&pageSize=1000");
        let (status, view) = self.http("GET", &path, None);
        assert_eq!((status, &view["truncated"]), (200, &false.into()), "{view}");
        let ms = |at: &serde_json::Value| at.as_str().unwrap().parse::<Timestamp>().unwrap().ms();
        let text = |of: &serde_json::Value| of.as_str().unwrap_or_default().to_owned();
        let mut lines = Vec::new();
        for entry in view["items"].as_array().unwrap() {
            let first = ms(&entry["logicalTime"]);
            lines.extend((0..entry["count"].as_i64().unwrap()).map(|n| Line {
                at_ms: first + n * 1_000,
                outcome: text(&entry["outcome"]),
                reason: text(&entry["reason"]),
            }));
        }
        lines
    }

    /// SIGTERM; its exit code.
    pub fn stop(mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let status = eventually("dev stops", || self.child.try_wait().unwrap());
        status.code().unwrap_or(-1)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
