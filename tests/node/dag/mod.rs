//! DAGs: nodes run in the order of their edges, whatever dies in between, and a retry goes on where the run stopped.

mod kills;
mod pause;
mod refusals;
mod results;
mod story_01;

use crate::{
    program::{self, Dev},
    support::{self, TestNode, eventually},
};
use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    error::ErrorCode,
    graph::state::NodeState,
    ids::{JobId, RunId},
    job::{Action, JobSpec, Trigger},
    payload::Payload,
    record::{RunState, Source},
    view::{RunView, TriggerBody, dag::DagDrawing},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

/// What bodies were started with, by the name of their job, and which jobs fail.
#[derive(Default)]
struct Bodies {
    params: BTreeMap<String, Vec<Value>>,
    failing: Vec<String>,
    results: BTreeMap<String, Value>,
}

type Shared = Arc<Mutex<Bodies>>;

fn executor(node: &TestNode, shared: &Shared) -> ExecutorHandle {
    let shared = shared.clone();
    Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(move |context: Context, params: Payload| {
            let shared = shared.clone();
            async move {
                let name = context.job_name().to_owned();
                let mut bodies = shared.lock().unwrap();
                bodies.params.entry(name.clone()).or_default().push(params.to_value());
                if bodies.failing.contains(&name) {
                    return Err(JobError::message("no luck"));
                }
                Ok(bodies.results.get(&name).map(Payload::from_value))
            }
        })
        .build()
        .unwrap()
        .start()
}

fn count(shared: &Shared, job: &str) -> usize {
    shared.lock().unwrap().params.get(job).map_or(0, Vec::len)
}

async fn plain(node: &TestNode, name: &str) -> JobId {
    let mut spec = JobSpec::new("default", name, Trigger::Manual {});
    spec.retry_policy.max_attempts = 1;
    node.scheduler().create_job(spec, None).await.unwrap().job_id
}

fn dag(graph: &Value) -> JobSpec {
    let mut spec = JobSpec::new("default", "dag", Trigger::Manual {});
    spec.action = Some(Action::Dag(serde_json::from_value(graph.clone()).unwrap()));
    spec
}

async fn triggered(node: &TestNode, graph: &Value) -> RunId {
    let job = node.scheduler().create_job(dag(graph), None).await.unwrap().job_id;
    node.scheduler().trigger(job, TriggerBody::default()).await.unwrap().run_id
}

/// The run once it has ended so.
async fn ended(node: &TestNode, run: RunId, state: RunState) -> RunView {
    let look = || async {
        let view = node.scheduler().run(run).await.unwrap();
        (view.state == state).then_some(view)
    };
    eventually(&format!("the run is {state}"), look).await
}

async fn states(node: &TestNode, run: RunId) -> Vec<(String, NodeState)> {
    let view = node.scheduler().dag_nodes(run, None).await.unwrap();
    view.nodes.into_iter().map(|node| (node.id, node.state)).collect()
}

fn wanted(states: &[(&str, NodeState)]) -> Vec<(String, NodeState)> {
    states.iter().map(|(id, state)| ((*id).to_owned(), *state)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failure_a_retry_of_the_node_goes_on_and_runs_nothing_twice() {
    let node = TestNode::start().await;
    let shared = Shared::default();
    let executor = executor(&node, &shared);
    for name in ["load", "summary", "report"] {
        plain(&node, name).await;
    }
    shared.lock().unwrap().failing.push("summary".to_owned());
    shared.lock().unwrap().results.insert("load".to_owned(), json!({"rows": 3, "unread": "x"}));
    let graph = json!({
        "nodes": [
            {"id": "A", "job": "load"},
            {"id": "B", "job": "summary", "params": {"rows": "{{nodes.A.result.rows}}"}},
            {"id": "C", "job": "report", "params": {"text": "{{nodes.A.result.rows}} rows"}, "timeoutSec": 600},
        ],
        "edges": [{"from": "A", "to": "B"}, {"from": "B", "to": "C"}],
    });
    let run = triggered(&node, &graph).await;
    let failed = ended(&node, run, RunState::Failed).await;
    assert_eq!((failed.generation, failed.dead_letter, failed.attempts.len()), (1, false, 0));
    use NodeState::{Failed, Success, UpstreamFailed};
    assert_eq!(states(&node, run).await, wanted(&[("A", Success), ("B", Failed), ("C", UpstreamFailed)]));
    assert_eq!(["load", "summary", "report"].map(|job| count(&shared, job)), [1, 1, 0]);
    let view = node.scheduler().dag_nodes(run, Some(DagDrawing::Ascii)).await.unwrap();
    let of_b = node.scheduler().run(view.nodes[1].run_id.unwrap()).await.unwrap();
    assert_eq!((of_b.source, of_b.dag_run_id, of_b.dag_node), (Source::Dag, Some(run), Some(1)));
    assert_eq!(
        (of_b.logical_time, of_b.dead_letter),
        (failed.logical_time, true),
        "the failed node is the dead letter"
    );
    assert!(view.drawing.unwrap().contains("[B]  FAILED"), "drawn with its states");
    assert_eq!(view.nodes.iter().map(|node| node.layer).collect::<Vec<_>>(), [0, 1, 2]);

    // Somebody retries the run of B, not knowing that it is a node.
    shared.lock().unwrap().failing.clear();
    let again = node.scheduler().retry_run(of_b.run_id, false, Some("after the fix".to_owned())).await.unwrap();
    assert_eq!(again.run_id, of_b.run_id);
    let done = ended(&node, run, RunState::Success).await;
    assert_eq!(done.generation, 2);
    assert_eq!(states(&node, run).await, wanted(&[("A", Success), ("B", Success), ("C", Success)]));
    assert_eq!(["load", "summary", "report"].map(|job| count(&shared, job)), [1, 2, 1], "A does not run again");
    let params = |job: &str| shared.lock().unwrap().params[job].last().unwrap().clone();
    assert_eq!((params("summary"), params("report")), (json!({"rows": 3}), json!({"text": "3 rows"})));
    let of_b = node.scheduler().run(of_b.run_id).await.unwrap();
    assert_eq!((of_b.state, of_b.generation), (RunState::Success, 2));
    executor.drain(Duration::from_secs(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_choose_the_branch_and_a_join_takes_either() {
    let node = TestNode::start().await;
    let shared = Shared::default();
    let executor = executor(&node, &shared);
    for name in ["load", "many", "none", "join"] {
        plain(&node, name).await;
    }
    shared.lock().unwrap().results.insert("load".to_owned(), json!({"rows": 0}));
    let graph = json!({
        "nodes": [
            {"id": "A", "job": "load"}, {"id": "B", "job": "many"}, {"id": "C", "job": "none"},
            {"id": "D", "job": "join", "rule": "NONE_FAILED"},
        ],
        "edges": [
            {"from": "A", "to": "B", "when": "parent.result.rows > 0"},
            {"from": "A", "to": "C", "when": "parent.result.rows == 0"},
            {"from": "B", "to": "D"}, {"from": "C", "to": "D"},
        ],
    });
    let run = triggered(&node, &graph).await;
    ended(&node, run, RunState::Success).await;
    use NodeState::{Skipped, Success};
    let all = wanted(&[("A", Success), ("B", Skipped), ("C", Success), ("D", Success)]);
    assert_eq!(states(&node, run).await, all);
    assert_eq!(count(&shared, "many"), 0);
    executor.drain(Duration::from_secs(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_job_is_deleted_fails_and_a_mark_lets_the_rest_go_on() {
    let node = TestNode::start().await;
    let shared = Shared::default();
    let executor = executor(&node, &shared);
    let gone = plain(&node, "gone").await;
    plain(&node, "next").await;
    let graph = json!({
        "nodes": [{"id": "A", "job": "gone"}, {"id": "B", "job": "next"}], "edges": [{"from": "A", "to": "B"}],
    });
    let scheduler = node.scheduler();
    let job = scheduler.create_job(dag(&graph), None).await.unwrap().job_id;
    scheduler.delete_job(gone, None).await.unwrap();
    let run = scheduler.trigger(job, TriggerBody::default()).await.unwrap().run_id;
    ended(&node, run, RunState::Failed).await;
    use NodeState::{Failed, Success, UpstreamFailed};
    assert_eq!(states(&node, run).await, wanted(&[("A", Failed), ("B", UpstreamFailed)]));
    let unknown = scheduler.mark_node(run, "X".to_owned(), Success, None).await.unwrap_err();
    assert_eq!((unknown.known(), &*unknown.message), (ErrorCode::NotFound, "the DAG has no node 'X'"));
    scheduler.mark_node(run, "A".to_owned(), Success, Some("done by hand".to_owned())).await.unwrap();
    ended(&node, run, RunState::Success).await;
    let view = scheduler.dag_nodes(run, None).await.unwrap();
    assert_eq!(
        view.nodes.iter().map(|node| (node.state, node.marked)).collect::<Vec<_>>(),
        [(Success, true), (Success, false)]
    );
    assert_eq!(count(&shared, "next"), 1);
    executor.drain(Duration::from_secs(2)).await;
}

/// A job of one attempt that runs this program, in a node that is a program.
fn command(dev: &Dev, name: &str, shell: &str) -> u64 {
    let spec = json!({
        "name": name, "trigger": {"type": "MANUAL"}, "retryPolicy": {"maxAttempts": 1}, "concurrencyPolicy": "ALLOW",
        "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", shell]},
    });
    posted(dev, "/api/v1/jobs", &spec)["jobId"].as_u64().unwrap()
}

/// The same for whichever executor there is.
fn plain_job(dev: &Dev, name: &str) -> u64 {
    let spec = json!({
        "name": name, "trigger": {"type": "MANUAL"}, "retryPolicy": {"maxAttempts": 1}, "concurrencyPolicy": "ALLOW",
    });
    posted(dev, "/api/v1/jobs", &spec)["jobId"].as_u64().unwrap()
}

fn posted(dev: &Dev, path: &str, body: &Value) -> Value {
    let (status, answer) = dev.http("POST", path, Some(body));
    assert!((200..300).contains(&status), "{path}: {answer}");
    answer
}

fn got(dev: &Dev, path: &str) -> Value {
    let (status, answer) = dev.http("GET", path, None);
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

fn made(dev: &Dev, graph: &Value) -> u64 {
    let mut action = graph.clone();
    action["kind"] = json!("DAG");
    let spec = json!({"name": "dag", "trigger": {"type": "MANUAL"}, "concurrencyPolicy": "ALLOW", "action": action});
    posted(dev, "/api/v1/jobs", &spec)["jobId"].as_u64().unwrap()
}

fn chain(names: &[&str]) -> Value {
    let nodes: Vec<Value> = names.iter().map(|name| json!({"id": name, "job": name})).collect();
    let edges: Vec<Value> = names.windows(2).map(|pair| json!({"from": pair[0], "to": pair[1]})).collect();
    json!({"nodes": nodes, "edges": edges})
}

fn started(dev: &Dev, job: u64, key: &str) -> u64 {
    let body = json!({"manualRunId": key});
    posted(dev, &format!("/api/v1/jobs/{job}/trigger"), &body)["runId"].as_u64().unwrap()
}

fn until(dev: &Dev, run: u64, state: &str) -> Value {
    program::eventually(&format!("run {run} is {state}"), || {
        Some(got(dev, &format!("/api/v1/runs/{run}"))).filter(|view| view["state"] == state)
    })
}

/// States of the nodes, by their ids.
fn nodes(dev: &Dev, run: u64) -> BTreeMap<String, String> {
    let view = got(dev, &format!("/api/v1/runs/{run}/nodes"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    view["nodes"].as_array().unwrap().iter().map(|node| (text(&node["id"]), text(&node["state"]))).collect()
}

fn until_node(dev: &Dev, run: u64, node: &str, state: &str) {
    program::eventually(&format!("node {node} is {state}"), || (nodes(dev, run)[node] == state).then_some(()));
}

fn runs_of(dev: &Dev, job: u64) -> Vec<Value> {
    got(dev, &format!("/api/v1/jobs/{job}/runs?pageSize=1000"))["items"].as_array().unwrap().clone()
}

/// Waits for a file.
fn waits(data: &Path, file: &str) -> String {
    format!("until [ -e {} ]; do sleep 0.05; done", data.join(file).display())
}

#[test]
fn an_open_run_goes_on_after_a_stop_with_the_graph_that_it_began_with() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let [a, b, c] = ["a", "b", "c"].map(|name| command(&dev, name, "true"));
    let job = made(&dev, &chain(&["a", "b"]));
    posted(&dev, &format!("/api/v1/jobs/{a}/pause"), &json!({}));
    let run = started(&dev, job, "once");
    until_node(&dev, run, "a", "ACTIVE");
    // Edited while it runs: later runs end with another node.
    let mut graph = chain(&["a", "c"]);
    graph["kind"] = json!("DAG");
    let spec = json!({"name": "dag", "trigger": {"type": "MANUAL"}, "concurrencyPolicy": "ALLOW", "action": graph});
    let body = json!({"version": 1, "spec": spec});
    let (status, answer) = dev.http("PUT", &format!("/api/v1/jobs/{job}"), Some(&body));
    assert_eq!(status, 200, "{answer}");
    // A stop writes snapshots.
    assert_eq!(dev.stop(), 0);
    let dev = Dev::start(data.path(), &["--no-demo"]);
    posted(&dev, &format!("/api/v1/jobs/{a}/resume"), &json!({}));
    until(&dev, run, "SUCCESS");
    assert_eq!(nodes(&dev, run).keys().collect::<Vec<_>>(), ["a", "b"], "its own graph, also in the history");
    assert_eq!((runs_of(&dev, b).len(), runs_of(&dev, c).len()), (1, 0));
    let next = started(&dev, job, "twice");
    until(&dev, next, "SUCCESS");
    assert_eq!((runs_of(&dev, b).len(), runs_of(&dev, c).len()), (1, 1));
    assert_eq!(dev.stop(), 0);
}

#[test]
fn a_cancel_a_timeout_and_fail_fast_end_what_runs_and_start_nothing_more() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let [long, _] = [command(&dev, "long", "sleep 300"), command(&dev, "bad", "exit 3")];
    let next = command(&dev, "next", "true");
    let graph = |more: Value| {
        let mut graph = chain(&["long", "next"]);
        graph.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        graph
    };
    let job = made(&dev, &graph(json!({})));
    let run = started(&dev, job, "cancel");
    until_node(&dev, run, "long", "ACTIVE");
    posted(&dev, &format!("/api/v1/runs/{run}/cancel"), &json!({"reason": "not today"}));
    until(&dev, run, "CANCELED");
    assert_eq!(nodes(&dev, run).values().collect::<Vec<_>>(), ["CANCELED", "CANCELED"]);
    assert_eq!(runs_of(&dev, long)[0]["state"], "CANCELED", "its child has ended before it");
    let of = |name: &str, mut graph: Value| {
        graph["kind"] = json!("DAG");
        let spec = json!({"name": name, "trigger": {"type": "MANUAL"}, "action": graph});
        posted(&dev, "/api/v1/jobs", &spec)["jobId"].as_u64().unwrap()
    };
    let timed = started(&dev, of("timed", graph(json!({"timeoutSec": 1}))), "timeout");
    until(&dev, timed, "TIMEOUT");
    let mut fast = graph(json!({"failFast": true}));
    fast["nodes"].as_array_mut().unwrap().push(json!({"id": "bad", "job": "bad"}));
    let fast = started(&dev, of("fast", fast), "fast");
    until(&dev, fast, "FAILED");
    let states = nodes(&dev, fast);
    assert_eq!((&*states["bad"], &*states["long"], &*states["next"]), ("FAILED", "CANCELED", "CANCELED"));
    assert_eq!(runs_of(&dev, next).len(), 0);
    assert_eq!(dev.stop(), 0);
}

#[test]
fn the_short_form_makes_a_dag_that_the_command_line_shows_and_changes() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let [load, bad] = [command(&dev, "load", "true"), command(&dev, "bad", "exit 3")];
    let report = command(&dev, "report", "true");
    let body = json!({
        "dagId": "billing_dag_v1", "nodes": [load, bad, report],
        "edges": [{"from": load, "to": bad}, {"from": bad, "to": report}],
    });
    let (status, made) = dev.http("POST", "/api/v1/jobs/dag", Some(&body));
    assert_eq!((status, &made["dagId"], &made["status"]), (201, &json!("billing_dag_v1"), &json!("ENABLED")), "{made}");
    let job = made["jobId"].as_u64().unwrap();
    let run = started(&dev, job, "once");
    until(&dev, run, "FAILED");
    let run = run.to_string();
    let shown = dev.run(&["dag", "nodes", &run]).ok();
    assert!(shown.contains("UPSTREAM_FAILED") && shown.contains("report"), "{shown}");
    let drawn = dev.run(&["dag", "nodes", &run, "--draw", "mermaid"]).ok();
    assert!(drawn.starts_with("flowchart LR") && drawn.contains("n0 --> n1"), "{drawn}");
    let would = dev.run(&["dag", "retry", &run, &bad.to_string(), "--dry-run"]).ok();
    assert!(would.contains(&format!("would retry {bad} of run {run}")), "{would}");
    dev.run(&["dag", "mark", &run, &bad.to_string(), "skipped"]).ok();
    program::eventually("the run has ended again", || {
        let view = got(&dev, &format!("/api/v1/runs/{run}"));
        (view["generation"] == 2 && view["state"] == "SUCCESS").then_some(())
    });
    let states = nodes(&dev, run.parse().unwrap());
    assert_eq!(states[&report.to_string()], "SKIPPED", "its only parent was skipped: {states:?}");
    let trail = got(&dev, "/api/v1/audit?operation=dag.mark&outcome=DONE");
    assert_eq!(trail["items"][0]["runId"], json!(run.parse::<u64>().unwrap()), "{trail}");
    let made = dev.run(&[
        "dag",
        "create",
        "second",
        "--job",
        "load",
        "--job",
        "report",
        "--edge",
        "load:report",
        "-o",
        "json",
    ]);
    assert_eq!(made.json()["dagId"], "second");
    assert_eq!(dev.stop(), 0);
}

/// Pauses hold the runs of nodes back; FORBID lets them wait for each other, and REPLACE stops none.
#[test]
fn the_runs_of_nodes_wait_for_pauses_and_for_each_other() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &["--no-demo"]);
    let shell = |name: &str, policy: &str, text: &str| {
        let spec = json!({
            "name": name, "trigger": {"type": "MANUAL"}, "retryPolicy": {"maxAttempts": 1}, "concurrencyPolicy": policy,
            "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", text]},
        });
        posted(&dev, "/api/v1/jobs", &spec)["jobId"].as_u64().unwrap()
    };
    let paused = shell("paused", "FORBID", "true");
    let one = shell("one", "FORBID", "true");
    let long = shell("long", "REPLACE", &waits(data.path(), "go-on"));
    posted(&dev, &format!("/api/v1/jobs/{paused}/pause"), &json!({}));
    let job = made(
        &dev,
        &json!({"nodes": [
            {"id": "p", "job": "paused"}, {"id": "x", "job": "one"}, {"id": "y", "job": "one"}, {"id": "z", "job": "one"},
            {"id": "l", "job": "long"},
        ]}),
    );
    let run = started(&dev, job, "once");
    for node in ["x", "y", "z"] {
        until_node(&dev, run, node, "SUCCESS");
    }
    assert_eq!(runs_of(&dev, one).len(), 3, "one after the other, and none was refused");
    until_node(&dev, run, "p", "ACTIVE");
    let waiting = &runs_of(&dev, paused)[0];
    assert!(waiting["waitReason"].as_str().unwrap().starts_with("JOB_PAUSED"), "{waiting}");
    until_node(&dev, run, "l", "ACTIVE");
    // An instant of its own would replace its runs, but for that of a node.
    let by_hand = started(&dev, long, "by-hand");
    let of_hand = got(&dev, &format!("/api/v1/runs/{by_hand}"));
    assert_eq!(of_hand["state"], "PENDING", "{of_hand}");
    posted(&dev, &format!("/api/v1/jobs/{paused}/resume"), &json!({}));
    until_node(&dev, run, "p", "SUCCESS");
    std::fs::write(data.path().join("go-on"), "").unwrap();
    until(&dev, run, "SUCCESS");
    until(&dev, by_hand, "SUCCESS");
    assert_eq!(dev.stop(), 0);
}
