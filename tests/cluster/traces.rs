//! A trace goes on across nodes: one takes the call, another owns the job, and whoever takes its shard over ends the run.

use crate::{
    spread,
    support::{
        self, eventually,
        spans::{Spans, caller, tree},
    },
    test_cluster::{SHARDS, TestCluster},
};
use campanile_actions::executor::Traced;
use campanile_client::{Context, Executor, JobError};
use campanile_schema::{
    ids::{JobId, ShardId, shard_of_slot, slot_of},
    job::{JobSpec, Trigger},
    payload::Payload,
    record::RunState,
    stored::audit::{AuditRecord, CallOrigin},
    trace::SpanOf,
    view::TriggerBody,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::Semaphore;

/// A job that this node owns.
async fn job_of(cluster: &TestCluster, node: u64) -> JobId {
    let shard = (0..SHARDS).map(ShardId).find(|shard| cluster.owner_of_shard(*shard) == Some(node)).unwrap();
    let is_there = |name: &String| shard_of_slot(slot_of("default", name), SHARDS) == shard;
    let name = (0..).map(|n| format!("job-{n}")).find(is_there).unwrap();
    let spec = JobSpec::new("default", &name, Trigger::Manual {});
    cluster.scheduler(1).create_job(spec, None).await.unwrap().job_id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_stays_in_its_trace_when_its_shard_moves_while_its_body_runs() {
    let spans = Spans::default();
    let tracer = spans.tracer(0);
    let mut cluster = TestCluster::traced(&tracer);
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let go_on = Arc::new(Semaphore::new(0));
    let gate = go_on.clone();
    let executor = Executor::builder(format!("{},{}", cluster.rpc(1), cluster.rpc(2)), support::TOKEN)
        .slots(2)
        .traced(&tracer)
        .any_handler(move |context: Context, _: Payload| {
            let gate = gate.clone();
            async move {
                let _passed = gate.acquire().await;
                Ok::<_, JobError>(context.traceparent().map(|span| Payload::from_value(&serde_json::json!(span))))
            }
        })
        .build()
        .unwrap()
        .start();
    let job = job_of(&cluster, 2).await;
    let name = cluster.scheduler(1).job(job).await.unwrap().spec.name;
    // Node 1 takes the call, and node 2 makes the run.
    let origin = CallOrigin { who: Some("olga".into()), ..CallOrigin::in_trace(caller()) };
    let record = AuditRecord { origin, operation: "job.trigger".into(), count: 1, ..AuditRecord::default() };
    let called = cluster.scheduler(1).audited(record);
    let run = called.trigger(job, TriggerBody::default()).await.unwrap().run_id;
    eventually("its body runs", || async {
        let run = cluster.scheduler(1).run(run).await.ok()?;
        (run.state == RunState::Running).then_some(())
    })
    .await;
    cluster.stop(2).await;
    spread(&cluster, 1).await;
    go_on.add_permits(1);
    let ended = cluster.scheduler(1).wait_run(run, 30_000).await.unwrap();
    assert_eq!(ended.state, RunState::Success, "{ended:?}");
    assert_eq!(ended.attempts.len(), 1, "the body went on");
    let trace = caller().trace;
    let of_run = format!("run {name}");
    let expected = tree(&[
        (&of_run, "CALLER"),
        ("append RunCreated", &of_run),
        ("wait", &of_run),
        ("append AttemptStarted", "attempt 1"),
        ("dispatch", "attempt 1"),
        (&format!("body {name}"), "attempt 1"),
        ("attempt 1", &of_run),
        ("append RunEnded", &of_run),
    ]);
    eventually("all spans are there", || async { (spans.tree(trace).len() >= expected.len()).then_some(()) }).await;
    assert_eq!(spans.tree(trace), expected);
    let token = campanile_schema::ids::Token(ended.attempts[0].token);
    let body = caller().at(SpanOf::Body(run, token));
    assert_eq!(ended.result.map(|result| result.to_value()), Some(serde_json::json!(body.to_string())));
    executor.drain(Duration::from_secs(2)).await;
    cluster.stop(1).await;
}
