//! Nodes of DAGs run once and in order although the program dies in the middle.

use super::{chain, command, got, made, runs_of, started, until};
use crate::program::{self, Dev};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) fn settled(dev: &Dev) {
    program::eventually("nothing is owed any more", || {
        got(dev, "/api/v1/outbox")["items"].as_array().unwrap().is_empty().then_some(())
    });
}

#[test]
fn a_node_that_is_killed_again_and_again_runs_each_node_once_and_in_order() {
    const ROUNDS: usize = 3;
    const RUNS: usize = 10;
    let data = tempfile::tempdir().unwrap();
    let mut dev = Dev::start(data.path(), &["--no-demo"]);
    let jobs = ["a", "b", "c"].map(|name| command(&dev, name, "true"));
    let mut graph = chain(&["a", "b", "c"]);
    // Another rule that waits for its parent: `graph:AllDoneWaits` breaks it, and this test is to see that.
    graph["nodes"][2]["rule"] = json!("ALL_DONE");
    let job = made(&dev, &graph);
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        all.extend((0..RUNS).map(|n| started(&dev, job, &format!("{round}-{n}"))));
        // In the middle of their nodes.
        dev.kill();
        dev = Dev::start(data.path(), &["--no-demo"]);
    }
    for run in &all {
        until(&dev, *run, "SUCCESS");
    }
    let starts = |job: u64| -> BTreeMap<u64, (String, String)> {
        let of = |run: &Value| {
            let text = |field: &str| run[field].as_str().unwrap().to_owned();
            (run["dagRunId"].as_u64().unwrap(), (text("startedAt"), text("endedAt")))
        };
        runs_of(&dev, job).iter().map(of).collect()
    };
    let [a, b, c] = jobs.map(starts);
    for (of, job) in [(&a, jobs[0]), (&b, jobs[1]), (&c, jobs[2])] {
        assert_eq!((of.len(), runs_of(&dev, job).len()), (all.len(), all.len()), "one run for each DAG run");
    }
    for run in &all {
        assert!(a[run].1 <= b[run].0 && b[run].1 <= c[run].0, "{:?} {:?} {:?}", a[run], b[run], c[run]);
    }
    settled(&dev);
    assert_eq!(dev.stop(), 0);
}

/// The node ends itself when a message is about to leave, when its receiver is about to answer, and when that is about to be recorded.
#[test]
fn a_node_that_dies_at_each_step_of_a_message_runs_each_node_once() {
    const STEPS: [&str; 6] = [
        "outbox_send=kill:1",
        "outbox_answer=kill:1",
        "outbox_settle=kill:1",
        "outbox_send=kill:3",
        "outbox_answer=kill:2",
        "outbox_settle=kill:2",
    ];
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let jobs = ["a", "b"].map(|name| command(&dev, name, "true"));
    let job = made(&dev, &chain(&["a", "b"]));
    assert_eq!(dev.stop(), 0);
    for (round, step) in (0..).zip(STEPS) {
        let fault = format!("point:{step}");
        let dying = Dev::start_with(data.path(), &["--no-demo"], &[("CAMPANILE_FAULT", &fault)]);
        let body = json!({"manualRunId": format!("{round}")});
        // It may be dead by now.
        let _ = dying.try_http("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&body));
        program::eventually(&format!("the node has died at {step}"), || {
            dying.try_http("GET", "/healthz", None).is_none().then_some(())
        });
        dying.kill();
        let dev = Dev::start(data.path(), &["--no-demo"]);
        let run = started(&dev, job, &format!("{round}"));
        until(&dev, run, "SUCCESS");
        for job in jobs {
            assert_eq!(runs_of(&dev, job).len(), round + 1, "{step}");
        }
        settled(&dev);
        assert_eq!(dev.stop(), 0);
    }
}
