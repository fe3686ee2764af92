//! What cannot be a DAG is refused when it is made.

use super::{chain, got, made, posted};
use crate::program::Dev;
use serde_json::{Value, json};

#[test]
fn a_dag_is_checked_when_it_is_made_and_each_refusal_says_what_to_do() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo", "--no-executor"]);
    for name in ["a", "b", "c"] {
        dev.job(name, json!({"type": "MANUAL"}));
    }
    let mut other = json!({"name": "theirs", "trigger": {"type": "MANUAL"}, "tenantId": "acme"});
    let theirs = posted(&dev, "/api/v1/jobs", &other)["jobId"].as_u64().unwrap();
    other["name"] = json!("gone");
    other["tenantId"] = json!("default");
    let gone = posted(&dev, "/api/v1/jobs", &other)["jobId"].as_u64().unwrap();
    assert_eq!(dev.http("DELETE", &format!("/api/v1/jobs/{gone}"), None).0, 204);
    made(&dev, &chain(&["a", "b"]));
    let answer = |action: Value, more: Value| {
        let mut spec = json!({"name": "new", "trigger": {"type": "MANUAL"}, "action": action});
        spec["action"]["kind"] = json!("DAG");
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        dev.http("POST", "/api/v1/jobs", Some(&spec))
    };
    let refused = |action: Value, code: &str, part: &str| {
        let (status, answer) = answer(action, json!({}));
        assert!(status >= 400 && answer["code"] == code, "{part}: {status} {answer}");
        assert!(answer.to_string().contains(part), "{part}: {answer}");
    };
    const INVALID: &str = "400_INVALID_ARGUMENT";
    let mut circle = chain(&["a", "b", "c"]);
    circle["edges"].as_array_mut().unwrap().push(json!({"from": "c", "to": "b"}));
    refused(circle, "409_DAG_CYCLE_DETECTED", "b -> c -> b");
    let with_edge = |edge: Value| {
        let mut graph = chain(&["a", "b"]);
        graph["edges"] = json!([edge]);
        graph
    };
    refused(with_edge(json!({"from": "a", "to": "a"})), "409_DAG_CYCLE_DETECTED", "a -> a");
    refused(with_edge(json!({"from": "a", "to": "x"})), INVALID, "action.edges[0].to: there is no node 'x'");
    let when = |when: &str| with_edge(json!({"from": "a", "to": "b", "when": when}));
    refused(when("parent.result.rows >"), INVALID, "action.edges[0].when");
    // None of these could end in time.
    refused(when("[1].exists(x, x > 0)"), INVALID, "action.edges[0].when");
    refused(when(&format!("{}1{} > 0", "(".repeat(200), ")".repeat(200))), INVALID, "action.edges[0].when");
    refused(when(&format!("parent.result.rows > {}", "1 + ".repeat(1_000))), INVALID, "a condition has at most");
    refused(when("parent.rows > 0"), INVALID, "action.edges[0].when");
    let mut twice = chain(&["a", "b"]);
    twice["edges"] = json!([{"from": "a", "to": "b"}, {"from": "a", "to": "b"}]);
    refused(twice, INVALID, "the edge from 'a' to 'b' is there twice");
    let node = |node: Value| json!({"nodes": [node]});
    refused(
        node(json!({"id": "A", "job": "nobody"})),
        INVALID,
        "action.nodes[0].job: tenant 'default' has no job 'nobody'",
    );
    refused(node(json!({"id": "A", "job": "theirs"})), INVALID, "has no job 'theirs'");
    refused(node(json!({"id": "A", "job": "gone"})), INVALID, "has no job 'gone'");
    refused(node(json!({"id": "A", "job": "dag"})), INVALID, "a DAG cannot be a node");
    refused(node(json!({"id": "A b", "job": "a"})), INVALID, "action.nodes[0].id");
    refused(node(json!({"id": "A", "job": "a", "rule": "ANY_FAILED"})), INVALID, "action.nodes[0].rule");
    refused(
        node(json!({"id": "A", "job": "a", "params": {"x": "{{nodes.B.result.x}}"}})),
        INVALID,
        "there is no node 'B'",
    );
    refused(node(json!({"id": "A", "job": "a", "params": {"x": "{{run.id}}"}})), INVALID, "'{{run.id}}' is not known");
    let mut beside = chain(&["a", "b"]);
    beside["nodes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": "c", "job": "c", "params": {"x": "{{nodes.b.result.x}}"}}));
    refused(beside, INVALID, "no path of edges leads from 'b'");
    refused(json!({"nodes": [{"id": "a", "job": "a"}, {"id": "a", "job": "b"}]}), INVALID, "'a' is there twice");
    refused(json!({"nodes": []}), INVALID, "a DAG has 1 to 1000 nodes");
    let many: Vec<Value> = (0..1_001).map(|n| json!({"id": format!("n{n}"), "job": "a"})).collect();
    refused(json!({"nodes": many.clone()}), INVALID, "this one has 1001");
    let edges = vec![json!({"from": "n0", "to": "n1"}); 10_001];
    refused(json!({"nodes": many[..2], "edges": edges}), INVALID, "at most 10000 edges; this one has 10001");
    refused(json!({"nodes": many[..1], "unknown": 1}), INVALID, "unknown");
    let more = |more: Value, part: &str| {
        let (status, answer) = answer(chain(&["a", "b"]), more);
        assert!(status == 400 && answer.to_string().contains(part), "{part}: {status} {answer}");
    };
    more(json!({"retryPolicy": {"maxAttempts": 5}}), "retryPolicy: a DAG has no attempts");
    more(json!({"timeoutSec": 60}), "action.timeoutSec");
    // A job stays what it is.
    let job = got(&dev, "/api/v1/jobs/by-name?name=a")["jobId"].as_u64().unwrap();
    let mut action = chain(&["b", "c"]);
    action["kind"] = json!("DAG");
    let spec = json!({"version": 1, "spec": {"name": "a", "trigger": {"type": "MANUAL"}, "action": action}});
    let (status, answer) = dev.http("PUT", &format!("/api/v1/jobs/{job}"), Some(&spec));
    assert!(status == 400 && answer.to_string().contains("cannot become a DAG"), "{answer}");
    // The short form.
    let short = |nodes: Value, edges: Value| {
        dev.http("POST", "/api/v1/jobs/dag", Some(&json!({"dagId": "short", "nodes": nodes, "edges": edges})))
    };
    for unknown in [theirs, gone, 4_096] {
        let (status, answer) = short(json!([job, unknown]), json!([]));
        assert_eq!((status, &answer["code"]), (400, &json!(INVALID)), "{answer}");
        let told = format!("nodes[1]: tenant 'default' has no job {unknown}");
        assert!(answer.to_string().contains(&told), "{answer}");
    }
    let (status, answer) = short(json!(vec![job; 1_001]), json!([]));
    assert!(status == 400 && answer.to_string().contains("this one has 1001"), "{answer}");
    let (status, answer) = short(json!([job]), json!(vec![json!({"from": job, "to": job}); 10_001]));
    assert!(status == 400 && answer.to_string().contains("this one has 10001"), "{answer}");
    let (status, answer) = short(json!([job]), json!([{"from": job, "to": 4_096}]));
    assert!(status == 400 && answer.to_string().contains("there is no node '4096'"), "{answer}");
    let (status, answer) = short(json!([job]), json!([{"from": job, "to": job}]));
    assert_eq!((status, &answer["code"]), (409, &json!("409_DAG_CYCLE_DETECTED")), "{answer}");
    assert_eq!(dev.stop(), 0);
}
