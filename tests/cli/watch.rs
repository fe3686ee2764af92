//! `run watch` and `job watch` against a node that is killed and comes back meanwhile.

use crate::program::{Dev, campanile};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Stdio},
};

/// A watch that runs; ended with the test.
struct Watching {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watching {
    fn start(dev: &Dev, args: &[&str]) -> Self {
        let mut child = campanile()
            .env("CAMPANILE_SERVER", &dev.server)
            .args(args)
            .args(["-o", "json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn changes_come_a_line_each_and_one_run_ends_its_watch() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &["--no-demo"]);
    dev.run(&["job", "create", "--name", "slow", "--manual", "--sh", "sleep 1"]).ok();
    let run = dev.run(&["job", "trigger", "slow", "-o", "json"]).json()["runId"].to_string();
    // Until its end, which ends the command too.
    let table = dev.run(&["run", "watch", &run]).ok();
    let last = table.lines().last().unwrap_or_default();
    assert!(last.contains("SUCCESS"), "{table}");
    assert!(last.contains("slow"), "{table}");
    assert!(last.contains(&run), "{table}");
    // For so long only.
    assert_eq!(dev.run(&["run", "watch", "--job", "slow", "--for", "1s"]).ok(), "");
    assert!(dev.run(&["run", "watch", "4096"]).refused(3).contains("404_NOT_FOUND"));
    assert!(dev.run(&["run", "watch", "--labels", "=x"]).refused(2).contains("400_INVALID_ARGUMENT"));
    assert!(dev.run(&["job", "watch", "nothing"]).refused(3).contains("404_NOT_FOUND"));
    assert!(dev.run(&["run", "watch", "--for", "2h"]).refused(2).contains("3600"));

    let mut jobs = Watching::start(&dev, &["job", "watch"]);
    // Begun when it tells something: until then each try is a change of its own.
    let done = std::sync::atomic::AtomicBool::new(false);
    let first = std::thread::scope(|scope| {
        let changing = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                dev.run(&["job", "pause", "slow"]).ok();
                dev.run(&["job", "resume", "slow"]).ok();
            }
        });
        let first = jobs.next();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        changing.join().unwrap();
        first
    });
    assert_eq!(first["jobName"], "slow");
    dev.run(&["job", "delete", "slow"]).ok();
    while jobs.next()["change"] != "DELETED" {}
}
