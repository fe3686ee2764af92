//! A disk that is full, for real: the process may not write files beyond a limit, which is set and lifted while it runs.
use super::program::{Dev, eventually, run};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::{
    fs,
    time::{Duration, Instant},
};

/// Bytes; a few batches of the journal.
const LIMIT: u64 = 48 << 10;
/// Several rounds of the node's trying to open its store again.
const ROUNDS: Duration = Duration::from_millis(2_500);

fn limit_files(dev: &Dev, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(dev.pid()).unwrap()).unwrap();
    let old = prlimit(Some(pid), Resource::Fsize, Rlimit { current: None, maximum: None });
    // Only the soft limit is moved, so that it can be moved back.
    let maximum = old.unwrap().maximum;
    prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

fn manual(name: &str) -> Value {
    json!({"name": name, "trigger": {"type": "MANUAL"}, "action": {"kind": "COMMAND", "command": ["/bin/echo", name]}})
}

#[test]
fn a_full_disk_is_said_and_survived() {
    let dir = tempfile::tempdir().unwrap();
    // Its log is a file on the disk that is full: from the first line on.
    let log = dir.path().join("node.log");
    fs::write(&log, vec![b'\n'; LIMIT as usize]).unwrap();
    let log = fs::File::options().append(true).open(log).unwrap();
    let dev = Dev::start_logging(dir.path(), &["--no-demo"], &[], log);
    let post = |path: &str, body: &Value| dev.http("POST", path, Some(body));
    let tick = json!({"name": "tick", "trigger": {"type": "FIXED_RATE", "everySec": 1},
        "action": {"kind": "COMMAND", "command": ["/bin/true"]}});
    assert_eq!(post("/api/v1/jobs", &tick).0, 201);
    assert_eq!(post("/api/v1/jobs", &manual("speaks")).0, 201);
    let spoke = dev.run(&["job", "trigger", "speaks", "--wait", "-o", "json"]).json()["runId"].to_string();
    eventually("its log", || dev.run(&["run", "log", &spoke]).ok().contains("speaks").then_some(()));

    limit_files(&dev, Some(LIMIT));
    let mut acknowledged = vec!["tick".to_owned(), "speaks".to_owned()];
    let mut number = 0;
    let mut create = |acknowledged: &mut Vec<String>| {
        number += 1;
        let name = format!("job-{number:05}");
        let (status, answer) = post("/api/v1/jobs", &manual(&name));
        match status {
            201 => acknowledged.push(name),
            503 => assert_eq!(answer["code"], "503_NOT_READY", "{answer}"),
            _ => panic!("{status}: {answer}"),
        }
        (status, answer)
    };
    eventually("a full disk", || (create(&mut acknowledged).0 == 503).then_some(()));
    let reasons = eventually("a reason", || Some(dev.not_ready()).filter(|r| r.iter().any(|r| r.contains("os error"))));
    assert!(reasons[0].contains("the store cannot be written"), "{reasons:?}");
    assert!(reasons[0].contains("File too large"), "{reasons:?}");
    // As long as it is full nothing is taken and nothing pretends: each refusal says why.
    let began = Instant::now();
    let mut refused = 0;
    while began.elapsed() < ROUNDS {
        let (status, answer) = create(&mut acknowledged);
        assert_eq!(status, 503, "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains("the store cannot be written"), "{answer}");
        assert_eq!(dev.http("GET", "/healthz", None).0, 200);
        assert!(!dev.not_ready().is_empty(), "ready on a full disk");
        refused += 1;
    }
    assert!(refused > 0);

    limit_files(&dev, None);
    eventually("it goes on by itself", || dev.not_ready().is_empty().then_some(()));
    eventually("a job is taken", || (create(&mut acknowledged).0 == 201).then_some(()));
    let fires = |dev: &Dev| dev.run(&["job", "get", "tick", "-o", "json"]).json()["runCount"].as_u64().unwrap();
    let before = fires(&dev);
    eventually("fires", || (fires(&dev) >= before + 2).then_some(()));
    holds(&dev, &acknowledged, &spoke);
    assert_eq!(dev.stop(), 0);
    let checked = run(&["store", "check", dir.path().join("node").to_str().unwrap()]).ok();
    assert!(checked.ends_with("whole\n"), "{checked}");
    let dev = Dev::start(dir.path(), &["--no-demo"]);
    holds(&dev, &acknowledged, &spoke);
}

/// Everything that was acknowledged is there, the ledger has no hole, and what a body said before is kept.
fn holds(dev: &Dev, acknowledged: &[String], spoke: &str) {
    let list = dev.run(&["job", "list", "--all", "-o", "json"]).json();
    let there: Vec<&str> = list["items"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap()).collect();
    for name in acknowledged {
        assert!(there.contains(&name.as_str()), "{name} was acknowledged and is not there");
    }
    assert!(dev.run(&["run", "log", spoke]).ok().contains("speaks"));
    let lines = dev.ledger("tick");
    assert!(lines.windows(2).all(|pair| pair[1].at_ms - pair[0].at_ms == 1_000), "{lines:?}");
}
