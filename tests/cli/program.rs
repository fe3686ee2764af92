//! Runs the binary, and keeps a `campanile dev` for a test.
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::{Duration, Instant},
};

/// The binary without anything of the environment's own.
pub fn campanile() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_campanile"));
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
    fn new(output: &Output) -> Self {
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
        let mut child = campanile()
            .args(["dev", "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(more)
            .stdout(Stdio::piped())
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

    pub fn run(&self, args: &[&str]) -> Done {
        Done::new(&campanile().env("CAMPANILE_SERVER", &self.server).args(args).output().unwrap())
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

    /// SIGTERM; its exit code.
    pub fn stop(mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(began.elapsed() < Duration::from_secs(60), "dev does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
