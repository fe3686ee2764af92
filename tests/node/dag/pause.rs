//! One run of a DAG is paused and resumed, and a node that dies in between starts nothing of it.

use super::{chain, command, got, made, nodes, posted, runs_of, started, until, until_node, waits};
use crate::program::Dev;
use serde_json::json;

#[test]
fn a_paused_dag_run_starts_no_node_until_it_is_resumed_also_after_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let [_, b] = [command(&dev, "a", &waits(data.path(), "go")), command(&dev, "b", "true")];
    let job = made(&dev, &chain(&["a", "b"]));
    let run = started(&dev, job, "paused");
    until_node(&dev, run, "a", "ACTIVE");

    let of = run.to_string();
    dev.run(&["dag", "pause", &of, "--reason", "the disk is full"]).ok();
    let path = format!("/api/v1/runs/{run}");
    dev.kill();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let view = got(&dev, &path);
    assert_eq!(view["state"], "RUNNING");
    assert!(view["waitReason"].as_str().unwrap().starts_with("DAG_PAUSED: "), "{view}");
    assert_eq!(got(&dev, &format!("{path}/nodes"))["paused"]["reason"], "the disk is full");
    let explained = got(&dev, &format!("{path}/explain"));
    let reasons = explained["reasons"].as_array().unwrap();
    let paused = reasons.iter().find(|reason| reason["code"] == "DAG_PAUSED").unwrap();
    assert_eq!(paused["heldBy"][0]["reason"], "the disk is full", "{paused}");
    assert_eq!(paused["freedBy"], format!("campanile dag resume {run}"));

    // What runs goes on. Another run of the DAG comes to its end meanwhile, so the paused one had the time to go on.
    std::fs::write(data.path().join("go"), "").unwrap();
    until_node(&dev, run, "a", "SUCCESS");
    let other = started(&dev, job, "other");
    until(&dev, other, "SUCCESS");
    assert_eq!(nodes(&dev, run)["b"], "WAITING");
    assert_eq!(runs_of(&dev, b).len(), 1, "only the other one's");

    let resumed = posted(&dev, &format!("{path}/nodes/resume"), &json!({"reason": "the disk has room"}));
    assert_eq!(resumed["waitReason"], json!(null));
    until(&dev, run, "SUCCESS");
    let (status, refused) = dev.http("POST", &format!("{path}/nodes/pause"), Some(&json!({})));
    assert_eq!((status, &refused["code"]), (409, &json!("409_ILLEGAL_STATE")), "{refused}");
    assert_eq!(dev.stop(), 0);
}
