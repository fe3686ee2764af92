//! Story 1, as those who have the job see it: at two in the night A -> B -> C begins, B fails for good, C does not start, and somebody is
//! told. In the morning B is repaired and retried, C follows, and A does not run again.
//!
//! The node is killed at every turn of it. The executor is a process of its own, so that bodies go on meanwhile and each can be counted.

use super::{chain, kills::settled, nodes, posted, runs_of, until, waits};
use crate::program::{self, Dev, campanile};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const ALONE: [&str; 2] = ["--no-demo", "--no-executor"];

/// Ended with the test.
struct Worker(Child);

impl Worker {
    fn start(dev: &Dev) -> Self {
        let mut command = campanile();
        command.args(["executor", "--rpc", &dev.rpc, "--token", &dev.token, "--id", "worker"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready"), "{line}");
        Self(child)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fires once today, in a moment: two in the night.
fn at_two() -> Value {
    let soon = SystemTime::now() + Duration::from_secs(5);
    let second = soon.duration_since(UNIX_EPOCH).unwrap().as_secs() % 86_400;
    let expr = format!("{} {} {} * * *", second % 60, second / 60 % 60, second / 3_600);
    json!({"type": "CRON", "expr": expr, "dialect": "UNIX", "timezone": "UTC"})
}

/// As by `kill -9`, and started again where its executor looks for it.
fn killed(dev: Dev, data: &Path) -> Dev {
    let rpc = dev.rpc.clone();
    dev.kill();
    Dev::start_at_rpc(data, &rpc, &ALONE, &[])
}

/// A job whose bodies write its name down before all else.
fn job(dev: &Dev, place: &Path, name: &str, body: &str) -> u64 {
    let shell = format!("echo {name} >> {}; {body}", place.join("began").display());
    let retry = json!({"maxAttempts": 2, "backoff": "FIXED", "baseDelaySec": 0.1, "jitter": 0});
    let action = json!({"kind": "COMMAND", "command": ["/bin/sh", "-c", shell]});
    let spec = json!({"name": name, "trigger": {"type": "MANUAL"}, "retryPolicy": retry, "action": action});
    posted(dev, "/api/v1/jobs", &spec)["jobId"].as_u64().unwrap()
}

/// How many bodies each job had.
fn began(place: &Path) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for name in std::fs::read_to_string(place.join("began")).unwrap_or_default().lines() {
        *count.entry(name.to_owned()).or_default() += 1;
    }
    count
}

fn until_began(place: &Path, name: &str) {
    program::eventually(&format!("a body of {name} runs"), || began(place).contains_key(name).then_some(()));
}

fn states(dev: &Dev, run: u64) -> [String; 3] {
    let nodes = nodes(dev, run);
    ["a", "b", "c"].map(|name| nodes[name].clone())
}

#[test]
fn story_01_b_fails_at_night_and_in_the_morning_it_is_repaired_and_c_follows() {
    let (data, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (data, place) = (data.path(), place.path());
    let happens = |what: &str| std::fs::write(place.join(what), "").unwrap();
    let dev = Dev::start(data, &ALONE);
    let _worker = Worker::start(&dev);
    let a = job(&dev, place, "a", &waits(place, "a-may-end"));
    let b = job(&dev, place, "b", &format!("test -e {}", place.join("repaired").display()));
    let c = job(&dev, place, "c", &waits(place, "c-may-end"));
    let tell = job(&dev, place, "tell", "true");
    let mut action = chain(&["a", "b", "c"]);
    action["kind"] = json!("DAG");
    let hooks = json!({"onFailure": [{"job": "tell", "params": {"to": "somebody"}}]});
    let nightly = json!({"name": "nightly", "trigger": at_two(), "action": action, "hooks": hooks});
    let nightly = posted(&dev, "/api/v1/jobs", &nightly)["jobId"].as_u64().unwrap();

    // At two.
    until_began(place, "a");
    let run = runs_of(&dev, nightly)[0]["runId"].as_u64().unwrap();
    let dev = killed(dev, data);
    happens("a-may-end");
    let failed = until(&dev, run, "FAILED");
    let dev = killed(dev, data);
    assert_eq!((&failed["source"], &failed["generation"]), (&json!("SCHEDULE"), &json!(1)));
    assert_eq!(states(&dev, run), ["SUCCESS", "FAILED", "UPSTREAM_FAILED"]);
    assert_eq!((runs_of(&dev, b)[0]["attempts"].as_array().unwrap().len(), runs_of(&dev, c).len()), (2, 0));
    let told =
        program::eventually("somebody is told", || runs_of(&dev, tell).pop().filter(|told| told["state"] == "SUCCESS"));
    assert_eq!((&told["params"]["to"], &told["params"]["run"]["runId"]), (&json!("somebody"), &json!(run)), "{told}");

    // In the morning.
    happens("repaired");
    let of_b = runs_of(&dev, b)[0]["runId"].to_string();
    dev.run(&["run", "retry", &of_b, "--reason", "the disk has room again"]).ok();
    let dev = killed(dev, data);
    until_began(place, "c");
    let dev = killed(dev, data);
    happens("c-may-end");
    let done = until(&dev, run, "SUCCESS");
    let dev = killed(dev, data);
    assert_eq!(done["generation"], 2);
    assert_eq!(states(&dev, run), ["SUCCESS", "SUCCESS", "SUCCESS"]);
    let bodies = [("a", 1), ("b", 3), ("c", 1), ("tell", 1)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(began(place), BTreeMap::from(bodies));
    let of_job = |job: u64| match <[Value; 1]>::try_from(runs_of(&dev, job)) {
        Ok([run]) => run,
        Err(runs) => panic!("one run: {runs:?}"),
    };
    let [a, b, c] = [a, b, c].map(of_job);
    assert_eq!((&a["generation"], &b["generation"], &c["generation"]), (&json!(1), &json!(2), &json!(1)));
    let at = |run: &Value, field: &str| run[field].as_str().unwrap().to_owned();
    assert!(at(&a, "endedAt") <= at(&b, "startedAt") && at(&b, "endedAt") <= at(&c, "startedAt"), "{a} {b} {c}");
    assert_eq!([&a, &b, &c].map(|run| &run["logicalTime"]), [&failed["logicalTime"]; 3], "the instant of the night");
    settled(&dev);
    assert_eq!(dev.stop(), 0);
}
