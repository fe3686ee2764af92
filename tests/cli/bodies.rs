//! An attempt ends when its body has ended: real commands that ignore SIGTERM, with the real limits.

use crate::program::{Dev, campanile, eventually, run};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// A body that ignores SIGTERM. It notes each start, and each body of its job that it finds alive.
fn deaf(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "trap '' TERM; cd {dir}; for p in $(cat pids 2>/dev/null); do kill -0 $p 2>/dev/null && echo $p >> overlaps; done; \
         echo $$ >> pids; while :; do sleep 0.05; done"
    )
}

fn noted(file: PathBuf) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

struct Bodies {
    dir: PathBuf,
    job: u64,
}

impl Bodies {
    fn of(dev: &Dev, root: &Path, name: &str, mut spec: Value) -> Self {
        let dir = root.join(name);
        fs::create_dir_all(&dir).unwrap();
        spec["name"] = name.into();
        spec["action"] = json!({"kind": "COMMAND", "command": ["/bin/sh", "-c", deaf(&dir)]});
        let (status, made) = dev.http("POST", "/api/v1/jobs", Some(&spec));
        assert_eq!(status, 201, "{made}");
        Self { dir, job: made["jobId"].as_u64().unwrap() }
    }

    fn starts(&self) -> usize {
        noted(self.dir.join("pids")).len()
    }

    /// Waits for so many bodies, and that no two of them were there at once.
    fn alone(&self, bodies: usize) {
        eventually(&format!("{bodies} bodies in {}", self.dir.display()), || (self.starts() >= bodies).then_some(()));
        assert_eq!(
            noted(self.dir.join("overlaps")),
            Vec::<String>::new(),
            "two bodies at once: {}",
            self.dir.display()
        );
    }

    fn trigger(&self, dev: &Dev) -> u64 {
        let (status, run) = dev.http("POST", &format!("/api/v1/jobs/{}/trigger", self.job), Some(&json!({})));
        assert!((200..300).contains(&status), "{run}");
        run["runId"].as_u64().unwrap()
    }
}

fn every_2s() -> Value {
    json!({"type": "FIXED_RATE", "everySec": 2})
}

fn run_view(dev: &Dev, run: u64) -> Value {
    dev.http("GET", &format!("/api/v1/runs/{run}"), None).1
}

/// FORBID, REPLACE, QUEUE_ONE and retries: the next body starts when the one before was killed and is gone.
#[test]
fn no_second_body_starts_while_one_ignores_sigterm() {
    let (data, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let once = json!({"maxAttempts": 1});
    let again = json!({"maxAttempts": 3, "backoff": "FIXED", "baseDelaySec": 0, "maxDelaySec": 0, "jitter": 0.0});
    let job = |name: &str, spec: Value| Bodies::of(&dev, root.path(), name, spec);
    let of_policy = |policy: &str| json!({"trigger": every_2s(), "timeoutSec": 1, "concurrencyPolicy": policy, "retryPolicy": once});
    let all = [
        job("forbid", of_policy("FORBID")),
        job("queue", of_policy("QUEUE_ONE")),
        job("replace", json!({"trigger": every_2s(), "concurrencyPolicy": "REPLACE", "retryPolicy": once})),
    ];
    let retry = job("retry", json!({"trigger": {"type": "MANUAL"}, "timeoutSec": 1, "retryPolicy": again}));
    let canceled = job("cancel", json!({"trigger": {"type": "MANUAL"}, "concurrencyPolicy": "QUEUE_ONE"}));
    let retried = retry.trigger(&dev);
    let run = canceled.trigger(&dev);
    eventually("it runs", || (canceled.starts() == 1).then_some(()));
    let next = canceled.trigger(&dev);
    dev.run(&["run", "cancel", &run.to_string()]).ok();

    // What people and programs see meanwhile.
    let view = run_view(&dev, run);
    assert_eq!((&view["state"], &view["stopping"]["reason"]), (&json!("RUNNING"), &json!("CANCEL")), "{view}");
    assert!(view["waitReason"].as_str().unwrap().starts_with("STOPPING"), "{view}");
    assert!(dev.run(&["job", "runs", "cancel"]).ok().contains("STOPPING"));
    eventually("the gauge is there", || {
        dev.metrics().lines().any(|line| line.starts_with("campanile_attempts_stop_overdue ")).then_some(())
    });

    canceled.alone(2);
    assert_eq!(run_view(&dev, run)["state"], "CANCELED");
    dev.run(&["run", "cancel", &next.to_string()]).ok();
    for bodies in &all {
        bodies.alone(3);
    }
    retry.alone(3);
    let ended = eventually("the retries are used up", || {
        let view = run_view(&dev, retried);
        (view["state"] == "TIMEOUT").then_some(view)
    });
    assert_eq!(ended["attempts"].as_array().unwrap().len(), 3, "{ended}");
}

/// A clean-up that takes three seconds ends in order: the grace is five.
#[test]
fn a_clean_up_after_sigterm_gets_its_grace() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let script = "trap 'sleep 3; echo cleaned up; exit 0' TERM; while :; do sleep 0.05; done";
    let spec = json!({"name": "tidy", "trigger": {"type": "MANUAL"}, "timeoutSec": 1, "retryPolicy": {"maxAttempts": 1},
        "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", script]}});
    let (status, made) = dev.http("POST", "/api/v1/jobs", Some(&spec));
    assert_eq!(status, 201, "{made}");
    let (_, run) = dev.http("POST", &format!("/api/v1/jobs/{}/trigger", made["jobId"]), Some(&json!({})));
    let run = run["runId"].as_u64().unwrap();
    let ended = eventually("it ends", || Some(run_view(&dev, run)).filter(|view| view["state"] == "TIMEOUT"));
    assert_eq!(ended["attempts"][0]["errorCode"], "TIMEOUT", "{ended}");
    assert!(dev.run(&["run", "log", &run.to_string()]).ok().contains("cleaned up"));
}

/// An executor of its own process.
struct Executor(Child);

impl Executor {
    fn start(dev: &Dev, more: &[&str]) -> Self {
        let mut child = campanile()
            .args(["executor", "--rpc", &dev.rpc, "--token", &dev.token])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready"), "{line}");
        Self(child)
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// The node does not answer: a body with `onLostContact: STOP` is killed before its lease ends, and what starts then starts alone.
/// An executor that dies by kill -9 takes a deaf body with it before its lease ends.
#[test]
fn a_deaf_body_has_ended_before_its_lease_has() {
    let (data, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dev = Dev::start(data.path(), &["--no-demo", "--no-executor"]);
    let first = Executor::start(&dev, &["--id", "first"]);
    let spec = json!({"trigger": {"type": "MANUAL"}, "onLostContact": "STOP", "retryPolicy": {"maxAttempts": 1}});
    let bodies = Bodies::of(&dev, root.path(), "lost", spec);
    let run = bodies.trigger(&dev);
    bodies.alone(1);
    let pid = noted(bodies.dir.join("pids"))[0].clone();
    signal(dev.pid(), "-STOP");
    eventually("the body is killed", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
    signal(dev.pid(), "-CONT");
    // Its executor could not help it: the attempt is not counted, and the run goes on though it has one attempt only.
    bodies.alone(2);
    let second = Executor::start(&dev, &["--id", "second", "--drain-sec", "0"]);
    drop(first);
    bodies.alone(3);
    let view = run_view(&dev, run);
    assert_eq!((&view["state"], view["attempts"].as_array().unwrap().len()), (&json!("RUNNING"), 3), "{view}");
    assert!(
        view["attempts"][0]["errorMessage"].as_str().unwrap().contains("not counted against maxAttempts"),
        "{view}"
    );

    // A deploy that does not wait for it: that attempt is not counted either.
    signal(second.0.id(), "-TERM");
    let third = Executor::start(&dev, &["--id", "third"]);
    bodies.alone(4);
    drop(third);
    drop(second);
}

#[test]
fn a_grace_that_does_not_fit_the_lease_is_refused() {
    let args = ["executor", "--rpc", "127.0.0.1:1", "--token", "t", "--stop-grace-sec", "7"];
    let said = run(&args).refused(2);
    assert!(said.contains("the grace for stopping is 7 s; it must be at most 6 s"), "{said}");
}

/// A command runs as the executor's user, and must not read the executor's token from its environment or memory.
#[test]
fn what_an_executor_holds_is_closed_to_its_own_user() {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    fs::write(&token, "a-token\n").unwrap();
    let mut command = campanile();
    command.args(["executor", "--rpc", "127.0.0.1:1"]).env("CAMPANILE_API_TOKEN", "a-token");
    // Root may read everything: as root the executor is another user's.
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let owner = fs::metadata(format!("/proc/{}/environ", child.id())).map(|file| file.uid());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(owner.unwrap(), 0, "root's alone, once it runs ({line})");
}

#[test]
fn a_token_can_come_from_a_file() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo", "--no-executor"]);
    let file = data.path().join("token-of-dev");
    let name = file.to_str().unwrap();
    let list = || dev.run(&["job", "list", "--token-file", name]);
    let missing = list().refused(2);
    assert!(missing.contains("--token-file"), "{missing}");
    fs::write(&file, "two words\n").unwrap();
    let wrong = list().refused(2);
    assert!(wrong.contains("one token and nothing else"), "{wrong}");
    fs::write(&file, "not-the-token\n").unwrap();
    list().refused(4);
    fs::write(&file, format!("{}\n", dev.token)).unwrap();
    list().ok();
    let executor = campanile()
        .args(["executor", "--rpc", &dev.rpc, "--token-file", name])
        .stdout(Stdio::piped())
        .spawn()
        .map(Executor)
        .unwrap();
    let executors = || dev.run(&["system", "executors", "-o", "json"]).ok();
    eventually("it is registered", || executors().contains("READY").then_some(()));
    drop(executor);
}
