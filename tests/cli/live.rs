//! `tail`, `top` and the search in a run's log, against a node.

use crate::program::{Dev, campanile, eventually};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc,
};

/// Lines of a command that runs; it ends with the test.
struct Lines {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Lines {
    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (say, lines) = mpsc::channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).all(|line| say.send(line).is_ok()));
        Self { child, lines }
    }

    /// Lines up to one that `wanted` likes, which does its `part` again and again until the command hears.
    fn until(&self, what: &str, wanted: impl Fn(&str) -> bool, mut part: impl FnMut()) -> Vec<String> {
        let mut heard = Vec::new();
        eventually(what, || {
            part();
            heard.extend(self.lines.try_iter());
            heard.iter().any(|line| wanted(line)).then_some(())
        });
        heard
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn dev(dir: &tempfile::TempDir) -> Dev {
    Dev::start(&dir.path().join("dev"), &["--no-demo"])
}

/// A run of a job that writes lines of several levels.
fn logged(dev: &Dev) -> String {
    let script = "for n in 1 2 3; do echo \"INFO customer $n\"; done; echo 'ERROR Customer 4 refused'; echo '  at line 7'; echo done";
    dev.run(&["job", "create", "--name", "billing", "--manual", "--sh", script]).ok();
    let run = dev.run(&["job", "trigger", "billing", "--wait", "-o", "json"]).json()["runId"].to_string();
    eventually("all of its log is there", || dev.run(&["run", "log", &run]).ok().ends_with("done\n").then_some(()));
    run
}

#[test]
fn lines_of_a_log_are_found_by_text_by_level_and_from_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let dev = dev(&dir);
    let run = logged(&dev);
    let log = |flags: &[&str]| dev.run(&[&["run", "log", run.as_str()], flags].concat()).ok();
    assert_eq!(log(&["--tail", "2"]), "  at line 7\ndone\n");
    assert_eq!(log(&["--grep", "CUSTOMER 4"]), "ERROR Customer 4 refused\n");
    assert_eq!(log(&["--level", "error"]), "ERROR Customer 4 refused\n  at line 7\ndone\n");
    assert_eq!(
        log(&["--level", "info", "--grep", "customer", "--tail", "2"]),
        "INFO customer 3\nERROR Customer 4 refused\n"
    );
    assert_eq!(log(&["--grep", "nobody"]), "");
    // The last lines, and all that come: here none.
    assert_eq!(log(&["--tail", "1", "--follow"]), "done\n");
    assert_eq!(log(&["--follow", "--grep", "refused"]), "ERROR Customer 4 refused\n");
    let view = dev.run(&["run", "log", &run, "--grep", "customer", "-o", "json"]).json();
    assert_eq!(view["lines"], json!([1, 2, 3, 4]));
    assert_eq!(view["end"], true);
    let (status, refused) = dev.http("GET", &format!("/api/v1/runs/{run}/log?level=loud"), None);
    assert_eq!((status, refused["code"].as_str()), (400, Some("400_INVALID_ARGUMENT")), "{refused}");
    assert!(dev.run(&["run", "log", &run, "--level", "loud"]).refused(2).contains("TRACE"));
    let long = "x".repeat(257);
    assert!(dev.run(&["run", "log", &run, "--grep", &long]).refused(2).contains("contains"));
}

#[test]
fn tail_tells_runs_and_what_they_write_as_it_happens() {
    let dir = tempfile::tempdir().unwrap();
    let dev = dev(&dir);
    for (name, text) in [("mine", "hello from mine"), ("other", "hello from other")] {
        dev.run(&["job", "create", "--name", name, "--manual", "--sh", &format!("echo '{text}'; sleep 0.2")]).ok();
    }
    let mut command = campanile();
    command.env("CAMPANILE_SERVER", &dev.server).args(["tail", "mine", "--logs"]);
    let tail = Lines::of(&mut command);
    let trigger = || {
        dev.run(&["job", "trigger", "other"]).ok();
        dev.run(&["job", "trigger", "mine", "--wait"]).ok();
    };
    let heard = tail.until("a line of the log", |line| line.ends_with(" | hello from mine"), trigger);
    let written = heard.iter().find(|line| line.ends_with(" | hello from mine")).unwrap();
    assert!(written.starts_with("mine "), "{written}");
    assert!(heard.iter().any(|line| line.contains("RUNNING") && line.contains("mine")), "{heard:?}");
    assert!(!heard.iter().any(|line| line.contains("other")), "{heard:?}");
    // For programs, a line of JSON each; and only changes to a state.
    let mut command = campanile();
    command.env("CAMPANILE_SERVER", &dev.server).args(["tail", "--state", "success", "-o", "json"]);
    let tail = Lines::of(&mut command);
    let heard = tail.until("a change", |_| true, trigger);
    for line in heard {
        let change: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(change["state"], "SUCCESS", "{line}");
    }
    assert!(dev.run(&["tail", "--grep", "x"]).refused(2).contains("--logs"));
    assert!(dev.run(&["tail", "nothing"]).refused(3).contains("404_NOT_FOUND"));
    assert_eq!(dev.run(&["tail", "--logs", "--for", "1s"]).ok(), "");
}

#[test]
fn top_prints_once_what_runs_and_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let dev = dev(&dir);
    dev.run(&["job", "create", "--name", "bad", "--manual", "--sh", "exit 3", "--max-attempts", "1"]).ok();
    dev.run(&["job", "create", "--name", "lost", "--manual", "--pool", "nowhere", "--sh", "true"]).ok();
    dev.run(&["job", "trigger", "bad", "--wait"]).refused(8);
    dev.run(&["job", "trigger", "lost"]).ok();
    let board = eventually("the board has all of it", || {
        let board = dev.run(&["top", "--once", "-o", "json"]).json();
        let pools = board["pools"].as_array().unwrap().clone();
        let waits = pools.iter().any(|pool| pool["pool"] == "nowhere" && pool["waiting"] == 1);
        (waits && board["failed_last"][0]["state"] == "FAILED").then_some(board)
    });
    assert_eq!(board["executors"][0]["state"], "READY", "{board}");
    assert!(board["ended"].as_str().unwrap().contains("1 failed"), "{board}");
    assert!(board["begun"].as_str().unwrap().starts_with("0 by schedule, 2 by hand"), "{board}");
    let text = dev.run(&["top", "--once"]).ok();
    for part in ["ready", "pools\n", "tenants\n", "executors\n", "failed last\n", "nowhere", "exit code 3"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(dev.run(&["top"]).refused(2).contains("--once"));
}
