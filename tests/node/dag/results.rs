//! What a node returned, and what others read of it: what is too large, is missing or is of another type fails a node, and the view
//! of the run says so with a code and a sentence.

use super::{got, plain_job, posted, until};
use crate::program::Dev;
use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    limits::{GRAPH_RESULT_BYTES, NODE_RESULT_BYTES, PARAMS_BYTES},
    payload::Payload,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Bodies return their params.
fn echo(dev: &Dev) -> ExecutorHandle {
    Executor::builder(&dev.rpc, &dev.token)
        .pool("default")
        .slots(8)
        .any_handler(|_: Context, params: Payload| async move { Ok::<_, JobError>(Some(params)) })
        .build()
        .unwrap()
        .start()
}

/// A result whose field `rows` takes so many bytes with its name.
fn sized(bytes: usize) -> Value {
    json!({"rows": "x".repeat(bytes - r#"{"rows":""}"#.len())})
}

/// The nodes of a run of this graph once it is FAILED, and what the command line shows of them.
fn failed(dev: &Dev, name: &str, mut graph: Value) -> (Value, String) {
    graph["kind"] = json!("DAG");
    let spec = json!({"name": name, "trigger": {"type": "MANUAL"}, "action": graph});
    let job = posted(dev, "/api/v1/jobs", &spec)["jobId"].as_u64().unwrap();
    let run = posted(dev, &format!("/api/v1/jobs/{job}/trigger"), &json!({}))["runId"].as_u64().unwrap();
    until(dev, run, "FAILED");
    let shown = dev.run(&["dag", "nodes", &run.to_string()]).ok();
    (got(dev, &format!("/api/v1/runs/{run}/nodes")), shown)
}

/// A and then B, which reads the rows of A.
fn reading(of_a: &Value) -> Value {
    json!({
        "nodes": [
            {"id": "A", "job": "one", "params": of_a},
            {"id": "B", "job": "two", "params": {"rows": "{{nodes.A.result.rows}}"}},
        ],
        "edges": [{"from": "A", "to": "B"}],
    })
}

fn is_failed(node: &Value, failure: &str, part: &str) {
    assert_eq!((&node["state"], &node["failure"]), (&json!("FAILED"), &json!(failure)), "{node}");
    assert!(node["error"].as_str().unwrap().contains(part), "{node}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_cannot_read_fails_a_node_with_a_code_and_a_sentence() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo", "--no-executor"]);
    let executor = echo(&dev);
    for name in ["one", "two"] {
        plain_job(&dev, name);
    }
    let (view, shown) = failed(&dev, "large", reading(&sized(NODE_RESULT_BYTES + 1)));
    is_failed(&view["nodes"][0], "RESULT_TOO_LARGE", &format!("more than {NODE_RESULT_BYTES} bytes"));
    assert_eq!(view["nodes"][1]["state"], "UPSTREAM_FAILED");
    assert!(shown.contains("RESULT_TOO_LARGE"), "{shown}");
    let of_a = got(&dev, &format!("/api/v1/runs/{}", view["nodes"][0]["runId"]));
    assert_eq!(of_a["state"], "SUCCESS", "its run says nothing of it");

    let (view, _) = failed(&dev, "missing", reading(&json!({"other": 1})));
    is_failed(&view["nodes"][1], "RESULT_MISSING", "does not have");

    // Each as large as it may be, and one too many.
    let many = GRAPH_RESULT_BYTES / NODE_RESULT_BYTES + 1;
    let nodes: Vec<Value> = (0..many)
        .map(|n| json!({"id": format!("n{n}"), "job": "one", "params": sized(NODE_RESULT_BYTES)}))
        .chain([json!({"id": "last", "job": "two", "params": {
            "all": (0..many).map(|n| format!("{{{{nodes.n{n}.result.rows}}}}")).collect::<Vec<_>>(),
        }})])
        .collect();
    let edges: Vec<Value> = (0..many).map(|n| json!({"from": format!("n{n}"), "to": "last"})).collect();
    let (view, _) = failed(&dev, "together", json!({"nodes": nodes, "edges": edges}));
    let too_large: Vec<&Value> =
        view["nodes"].as_array().unwrap().iter().filter(|node| node["state"] == "FAILED").collect();
    assert_eq!(too_large.len(), 1, "{view}");
    is_failed(too_large[0], "RESULT_TOO_LARGE", &format!("of all nodes more than {GRAPH_RESULT_BYTES}"));

    // Read again and again, what is small becomes large.
    let again = "{{nodes.A.result.rows}}".repeat(PARAMS_BYTES / 900);
    let mut graph = reading(&sized(NODE_RESULT_BYTES));
    graph["nodes"][1]["params"] = json!({"rows": again});
    let (view, _) = failed(&dev, "params", graph);
    is_failed(&view["nodes"][1], "PARAMS_TOO_LARGE", &format!("more than {PARAMS_BYTES} bytes"));

    // A condition that has no value for what was returned.
    let mut graph = reading(&json!({"rows": "many"}));
    graph["edges"][0]["when"] = json!("parent.result.rows > 0");
    let (view, _) = failed(&dev, "broken", graph);
    assert_eq!(
        (&view["nodes"][1]["state"], &view["edges"][0]["outcome"]),
        (&json!("UPSTREAM_FAILED"), &json!("BROKEN"))
    );

    // A job that went after the DAG was made. A retry forgets the reason.
    let gone = plain_job(&dev, "gone");
    let mut graph = reading(&json!({"rows": 1}));
    graph["nodes"][0]["job"] = json!("gone");
    graph["kind"] = json!("DAG");
    let spec = json!({"name": "deleted", "trigger": {"type": "MANUAL"}, "action": graph});
    let job = posted(&dev, "/api/v1/jobs", &spec)["jobId"].as_u64().unwrap();
    assert_eq!(dev.http("DELETE", &format!("/api/v1/jobs/{gone}"), None).0, 204);
    let run = posted(&dev, &format!("/api/v1/jobs/{job}/trigger"), &json!({}))["runId"].as_u64().unwrap();
    until(&dev, run, "FAILED");
    let nodes = || got(&dev, &format!("/api/v1/runs/{run}/nodes"))["nodes"].clone();
    is_failed(&nodes()[0], "REFUSED", "the job was deleted");
    plain_job(&dev, "gone");
    posted(&dev, &format!("/api/v1/runs/{run}/nodes/retry"), &json!({}));
    until(&dev, run, "SUCCESS");
    assert_eq!(nodes()[0]["failure"], Value::Null);
    executor.drain(Duration::from_secs(2)).await;
    assert_eq!(dev.stop(), 0);
}
