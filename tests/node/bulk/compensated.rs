//! A bulk retry forces nothing: runs whose compensation was started stay as they are.

use super::kills::{posted, until};
use crate::{
    hooks::{all_runs, command, made, triggered},
    program::{self, Dev},
};
use serde_json::{Value, json};

/// A run of its own, and the run of a DAG's node, which its DAG would start again.
#[test]
fn a_retry_leaves_runs_whose_compensation_was_started_and_says_how_many() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    made(&dev, &command("refund", &["/bin/true"], json!({})));
    let hooks = json!({"onFailure": [{"job": "refund", "compensation": true}]});
    let work = made(&dev, &command("work", &["/bin/false"], hooks));
    let flow = made(
        &dev,
        &json!({
            "name": "flow", "trigger": {"type": "MANUAL"},
            "action": {"kind": "DAG", "nodes": [{"id": "A", "job": "work"}], "edges": []},
        }),
    );
    triggered(&dev, work, "alone");
    triggered(&dev, flow, "flow");
    let all_in = |generation: u64| {
        program::eventually("both are undone", || {
            let runs = all_runs(&dev, work);
            let undone = |run: &&Value| run["compensated"] == true && run["generation"] == generation;
            (runs.iter().filter(undone).count() == 2).then_some(())
        });
    };
    all_in(1);
    for action in ["RETRY", "REDRIVE"] {
        let body = json!({"action": action, "tenantId": "default", "filter": {"jobId": work}});
        let begun = posted(&dev, "/api/v1/bulk", &body);
        let done = until(&dev, begun["bulkId"].as_u64().unwrap(), "DONE");
        let counts =
            ["matched", "done", "unchanged", "failed", "compensated"].map(|count| done[count].as_u64().unwrap());
        assert_eq!(counts, [2, 0, 0, 0, 2], "{action}: {done}");
    }
    all_in(1);
    assert_eq!(dev.stop(), 0);
}
