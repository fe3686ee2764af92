//! Traces: the whole way of a run, from a caller's span to the end, with the spans that bodies see; and what happens without them.

use crate::support::{
    self, TestNode, eventually,
    spans::{CALLER, Spans, caller, tree},
};
use campanile_actions::executor::Traced;
use campanile_client::{Client, Context, Executor, ExecutorHandle, JobError};
use campanile_ports::spans::{Span, Tracer};
use campanile_schema::{
    graph::{ShortEdgeSpec, ShortGraphSpec},
    ids::{JobId, RunId},
    job::{JobSpec, Trigger},
    payload::Payload,
    record::RunState,
    trace::{ALL, TraceContext},
    view::TriggerBody,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

/// The `traceparent` that each body saw, by the name of its job and the number of its attempt.
type Seen = Arc<Mutex<BTreeMap<(String, u32), Option<String>>>>;

async fn traced(tracer: &Tracer) -> TestNode {
    let tracer = tracer.clone();
    TestNode::with(move |options| options.tracer = tracer).await
}

/// The first attempt of `flaky` fails, and every attempt of `broken`.
fn executor(node: &TestNode, tracer: &Tracer) -> (ExecutorHandle, Seen) {
    let seen = Seen::default();
    let told = seen.clone();
    let executor = Executor::builder(node.rpc(), support::TOKEN)
        .slots(4)
        .traced(tracer)
        .any_handler(move |context: Context, _: Payload| {
            let at = (context.job_name().to_owned(), context.attempt());
            told.lock().unwrap().insert(at, context.traceparent().map(str::to_owned));
            async move {
                let fails = context.job_name() == "broken" || context.job_name() == "flaky" && context.attempt() == 1;
                if fails { Err(JobError::message("no luck")) } else { Ok(None) }
            }
        })
        .build()
        .unwrap()
        .start();
    (executor, seen)
}

async fn created(node: &TestNode, name: &str, attempts: u32) -> JobId {
    let mut spec = JobSpec::new("default", name, Trigger::Manual {});
    spec.retry_policy.max_attempts = attempts;
    spec.retry_policy.base_delay_sec = 0.05;
    node.scheduler().create_job(spec, None).await.unwrap().job_id
}

async fn triggered_over_http(node: &TestNode, job: JobId, traceparent: &'static str) -> RunId {
    let url = format!("{}/api/v1/jobs/{job}/trigger", node.http());
    let call = move || {
        let request = ureq::post(&url)
            .header("authorization", format!("Bearer {}", support::TOKEN))
            .header("content-type", "application/json")
            .header("traceparent", traceparent);
        request.send("{}").unwrap().body_mut().read_json::<Value>().unwrap()
    };
    let made = tokio::task::spawn_blocking(call).await.unwrap();
    RunId(made["runId"].as_u64().unwrap())
}

async fn triggered_over_rpc(node: &TestNode, job: JobId, span: TraceContext) -> RunId {
    let client: Client = node.client().await.in_trace(span);
    client.job_trigger(job, TriggerBody::default()).await.unwrap().run_id
}

async fn ended(node: &TestNode, run: RunId) -> RunState {
    node.scheduler().wait_run(run, 30_000).await.unwrap().state
}

fn find<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    spans.iter().find(|span| span.name == name).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_has_the_whole_way_of_a_run_and_its_bodies_know_their_place() {
    let spans = Spans::default();
    // Nothing begins a trace by itself.
    let tracer = spans.tracer(0);
    let node = traced(&tracer).await;
    let (executor, seen) = executor(&node, &tracer);
    let job = created(&node, "flaky", 3).await;
    let run = triggered_over_http(&node, job, CALLER).await;
    assert_eq!(ended(&node, run).await, RunState::Success);
    let expected = tree(&[
        ("job.trigger", "CALLER"),
        ("run flaky", "job.trigger"),
        ("append RunCreated", "run flaky"),
        ("wait", "run flaky"),
        ("append AttemptStarted", "attempt 1"),
        ("dispatch", "attempt 1"),
        ("body flaky", "attempt 1"),
        ("attempt 1", "run flaky"),
        ("append AttemptEnded", "run flaky"),
        ("wait", "run flaky"),
        ("append AttemptStarted", "attempt 2"),
        ("dispatch", "attempt 2"),
        ("body flaky", "attempt 2"),
        ("attempt 2", "run flaky"),
        ("append RunEnded", "run flaky"),
    ]);
    let trace = caller().trace;
    eventually("all spans are there", || async { (spans.tree(trace).len() >= expected.len()).then_some(()) }).await;
    assert_eq!(spans.tree(trace), expected);
    assert_eq!(spans.all().len(), expected.len(), "and of no other trace");

    let all = spans.of(trace);
    let bodies: Vec<String> =
        all.iter().filter(|span| span.name == "body flaky").map(|span| span.context.to_string()).collect();
    let saw: Vec<String> = seen.lock().unwrap().values().cloned().map(Option::unwrap).collect();
    assert_eq!(saw.len(), 2);
    assert!(saw.iter().all(|span| bodies.contains(span)), "{saw:?}, {bodies:?}");
    assert_eq!(find(&all, "attempt 1").error.as_deref(), Some("no luck"));
    assert_eq!(find(&all, "attempt 2").error, None);
    assert_eq!(find(&all, "run flaky").error, None, "it succeeded in the end");
    let view = node.scheduler().run(run).await.unwrap();
    assert_eq!(view.trace_id, Some(trace.to_string()));
    executor.drain(std::time::Duration::from_secs(2)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_generation_of_a_run_has_a_span_of_its_own() {
    let spans = Spans::default();
    let tracer = spans.tracer(0);
    let node = traced(&tracer).await;
    let (executor, _) = executor(&node, &tracer);
    let job = created(&node, "broken", 1).await;
    let run = triggered_over_http(&node, job, CALLER).await;
    assert_eq!(ended(&node, run).await, RunState::Failed);
    node.scheduler().retry_run(run, false, None).await.unwrap();
    assert_eq!(ended(&node, run).await, RunState::Failed);
    let of = |part: &str| -> Vec<Span> {
        spans.of(caller().trace).into_iter().filter(|span| span.name.starts_with(part)).collect()
    };
    eventually("both have ended", || async { (of("run ").len() == 2 && of("attempt ").len() == 2).then_some(()) })
        .await;
    let runs: BTreeSet<_> = of("run ").iter().map(|span| span.context.span).collect();
    let above: BTreeSet<_> = of("attempt ").iter().map(|span| span.parent.unwrap()).collect();
    assert_eq!((runs.len(), above), (2, runs), "each attempt belongs to its generation");
    executor.drain(std::time::Duration::from_secs(2)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callers_span_reaches_the_body_also_of_a_node_that_records_none() {
    let off = Tracer::default();
    let node = traced(&off).await;
    let (executor, seen) = executor(&node, &off);
    let (one, two, three) =
        (created(&node, "one", 1).await, created(&node, "two", 1).await, created(&node, "three", 1).await);
    let unsampled: TraceContext = CALLER.replace("-01", "-00").parse().unwrap();
    let runs = [
        triggered_over_http(&node, one, CALLER).await,
        triggered_over_rpc(&node, two, unsampled).await,
        triggered_over_http(&node, three, "not a span").await,
    ];
    for run in runs {
        assert_eq!(ended(&node, run).await, RunState::Success);
    }
    let saw = seen.lock().unwrap().clone();
    assert_eq!(saw[&("one".to_owned(), 1)].as_deref(), Some(CALLER));
    assert_eq!(saw[&("two".to_owned(), 1)], Some(unsampled.to_string()));
    assert_eq!(saw[&("three".to_owned(), 1)], None, "a header that cannot be read is no reason to refuse the call");
    assert_eq!(node.scheduler().run(runs[2]).await.unwrap().trace_id, None);
    executor.drain(std::time::Duration::from_secs(2)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_a_schedule_begins_a_trace_of_its_own() {
    let spans = Spans::default();
    let tracer = spans.tracer(ALL);
    let node = traced(&tracer).await;
    let (executor, seen) = executor(&node, &tracer);
    node.scheduler().create_job(JobSpec::new("default", "tick", Trigger::fixed_rate(1)), None).await.unwrap();
    let trace = eventually("a run of it has ended", || async {
        spans.all().into_iter().find(|span| span.name == "run tick").map(|span| span.context.trace)
    })
    .await;
    let expected = tree(&[
        ("schedule tick", "-"),
        ("run tick", "schedule tick"),
        ("append RunCreated", "run tick"),
        ("wait", "run tick"),
        ("append AttemptStarted", "attempt 1"),
        ("dispatch", "attempt 1"),
        ("body tick", "attempt 1"),
        ("attempt 1", "run tick"),
        ("append RunEnded", "run tick"),
    ]);
    eventually("all its spans are there", || async { (spans.tree(trace).len() >= expected.len()).then_some(()) }).await;
    assert_eq!(spans.tree(trace), expected);
    assert!(seen.lock().unwrap().values().all(Option::is_some));
    executor.drain(std::time::Duration::from_secs(2)).await;
    node.stop().await;
}

/// The runs of a DAG's nodes, and that of a hook, are children of the run that sent for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_starts_is_in_its_trace() {
    let spans = Spans::default();
    let tracer = spans.tracer(0);
    let node = traced(&tracer).await;
    let (executor, _) = executor(&node, &tracer);
    let (first, second) = (created(&node, "first", 1).await, created(&node, "second", 1).await);
    let dag = ShortGraphSpec {
        dag_id: "dag".to_owned(),
        tenant_id: "default".to_owned(),
        nodes: vec![first, second],
        edges: vec![ShortEdgeSpec { from: first, to: second }],
        trigger: None,
    };
    let dag = node.client().await.dag_create(dag, None).await.unwrap().job_id;
    created(&node, "refund", 1).await;
    let mut broken = JobSpec::new("default", "broken", Trigger::Manual {});
    broken.retry_policy.max_attempts = 1;
    broken.hooks = serde_json::from_value(serde_json::json!({"onFailure": [{"job": "refund"}]})).unwrap();
    let broken = node.scheduler().create_job(broken, None).await.unwrap().job_id;
    let run = triggered_over_rpc(&node, dag, caller()).await;
    assert_eq!(ended(&node, run).await, RunState::Success);
    let run = triggered_over_rpc(&node, broken, caller()).await;
    assert_eq!(ended(&node, run).await, RunState::Failed);
    let runs = || {
        let tree = spans.tree(caller().trace);
        tree.into_iter().filter(|(name, _)| name.starts_with("run ")).collect::<Vec<_>>()
    };
    eventually("all runs have ended", || async { (runs().len() >= 5).then_some(()) }).await;
    let expected = tree(&[
        ("run dag", "job.trigger"),
        ("run first", "run dag"),
        ("run second", "run dag"),
        ("run broken", "job.trigger"),
        ("run refund", "run broken"),
    ]);
    assert_eq!(runs(), expected);
    executor.drain(std::time::Duration::from_secs(2)).await;
    node.stop().await;
}
