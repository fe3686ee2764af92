//! SIGTERM while there is work.
use super::program::{Dev, eventually, run};
use serde_json::json;
use std::time::Instant;

/// How long it takes is a figure (docs/performance.md), not a test: a machine that runs tests is busy.
#[test]
fn a_node_that_is_told_to_stop_stops_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), &["--no-demo", "--no-executor"]);
    let jobs: Vec<serde_json::Value> = (0..200)
        .map(|n| json!({"name": format!("job-{n}"), "trigger": {"type": "FIXED_RATE", "everySec": 1}}))
        .collect();
    let file = dir.path().join("jobs.json");
    std::fs::write(&file, serde_json::to_vec(&jobs).unwrap()).unwrap();
    dev.run(&["job", "create", file.to_str().unwrap()]).ok();
    let fires = |dev: &Dev| dev.run(&["job", "get", "job-7", "-o", "json"]).json()["runCount"].as_u64().unwrap();
    eventually("fires", || (fires(&dev) > 0).then_some(()));
    let began = Instant::now();
    assert_eq!(dev.stop(), 0);
    println!("SIGTERM with 200 jobs that fire every second: stopped after {:?}", began.elapsed());
    let checked = run(&["store", "check", dir.path().join("node").to_str().unwrap()]).ok();
    assert!(checked.ends_with("whole\n"), "{checked}");
    assert!(!checked.contains("torn tail"), "{checked}");
    let dev = Dev::start(dir.path(), &["--no-demo", "--no-executor"]);
    let (_, info) = dev.http("GET", "/api/v1/cluster/node", None);
    assert_eq!((&info["jobs"], &info["ready"]), (&200.into(), &true.into()));
}
