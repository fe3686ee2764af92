//! One node in this process on a directory of its own, a real executor over loopback: the whole way of a trigger, and that
//! a restart loses nothing.
#![allow(clippy::unwrap_used)]

mod support;

use campanile_client::{Context, Executor, JobError};
use campanile_schema::{
    error::ErrorCode,
    job::{JobSpec, Trigger},
    record::RunState,
    view::TriggerBody,
};
use std::time::Duration;
use support::{TestNode, eventually};

fn every_second() -> Trigger {
    serde_json::from_str(r#"{"type":"CRON","expr":"* * * * * *","dialect":"UNIX"}"#).unwrap()
}

fn executor(node: &TestNode) -> campanile_client::ExecutorHandle {
    Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(4)
        .any_handler(|ctx: Context, _: campanile_schema::payload::Payload| async move {
            ctx.log("hello from the body");
            Ok::<_, JobError>(None)
        })
        .build()
        .unwrap()
        .start()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cron_job_fires_runs_and_is_in_the_history_and_the_ledger() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let executor = executor(&node);
    let job = scheduler.create_job(JobSpec::new("default", "tick", every_second()), None).await.unwrap();
    let runs = eventually("three successful runs", || async {
        let page = scheduler.job_runs(job.job_id, None, 100).await.unwrap();
        let done = page.items.iter().filter(|r| r.state == RunState::Success).count();
        (done >= 3).then_some(page.items)
    })
    .await;
    let run = runs.iter().find(|r| r.state == RunState::Success).unwrap();
    assert_eq!(run.attempts.len(), 1);
    assert_eq!(run.logical_time.unwrap().0 % 1000, 0);
    let log = eventually("the log", || async {
        let log = scheduler.run_log(run.run_id, None, 0).await.unwrap();
        (!log.text.is_empty()).then_some(log)
    })
    .await;
    assert!(log.text.contains("hello from the body"), "{log:?}");
    let ledger = scheduler.ledger(job.job_id, 0, i64::MAX / 2, 1000).await.unwrap();
    assert!(ledger.items.len() >= 3, "{ledger:?}");
    for pair in ledger.items.windows(2) {
        assert_eq!(pair[1].logical_time.0 - pair[0].logical_time.0, 1000, "an instant is missing: {pair:?}");
    }
    executor.drain(Duration::from_secs(2)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_jobs_runs_and_keys() {
    let node = TestNode::start().await;
    let running = executor(&node);
    let job = node.scheduler().create_job(JobSpec::new("default", "by-hand", Trigger::Manual {}), None).await.unwrap();
    let body = TriggerBody { manual_run_id: Some("k1".into()), params: None, reason: None };
    let run = node.scheduler().trigger(job.job_id, body.clone()).await.unwrap();
    let again = node.scheduler().trigger(job.job_id, body.clone()).await.unwrap();
    assert_eq!(run.run_id, again.run_id);
    let ended = node.scheduler().wait_run(run.run_id, 10_000).await.unwrap();
    assert_eq!(ended.state, RunState::Success);
    running.drain(Duration::from_secs(2)).await;
    for _ in 0..3 {
        let node = node.restart().await;
        let scheduler = node.scheduler();
        assert_eq!(scheduler.job(job.job_id).await.unwrap().spec.name, "by-hand");
        assert_eq!(scheduler.trigger(job.job_id, body.clone()).await.unwrap().run_id, run.run_id);
        assert_eq!(scheduler.run(run.run_id).await.unwrap().state, RunState::Success);
        let twin = scheduler.create_job(JobSpec::new("default", "by-hand", Trigger::Manual {}), None).await;
        assert_eq!(twin.unwrap_err().known(), ErrorCode::DuplicateName);
    }
    node.stop().await;
}
