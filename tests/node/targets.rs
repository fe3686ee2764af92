//! Targets on a real node: each reason to wait for one is reached, named in the explanation, and gone with its fact.

use crate::support::{self, TestNode, eventually};
use campanile_client::{Client, Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    error::ErrorCode,
    ids::{JobId, RunId},
    job::{Backoff, ConcurrencyPolicy, JobSpec, RetryPolicy, Trigger},
    payload::Payload,
    record::RunState,
    view::{
        TriggerBody,
        explain::{HolderKind, ReasonView},
        targets::{BreakerState, TargetBody},
    },
    wait::WaitCode,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

/// A system that bodies call: they wait for a permit each, and fail while it is down.
struct Downstream {
    gate: Semaphore,
    down: AtomicBool,
}

fn executor(node: &TestNode, gated: bool) -> (ExecutorHandle, Arc<Downstream>) {
    let downstream = Arc::new(Downstream { gate: Semaphore::new(0), down: AtomicBool::new(false) });
    let calls = downstream.clone();
    let executor = Executor::builder(node.rpc(), support::TOKEN)
        .id("caller")
        .pool("default")
        .slots(16)
        .any_handler(move |_: Context, _: Payload| {
            let calls = calls.clone();
            async move {
                if gated {
                    calls.gate.acquire().await.unwrap().forget();
                }
                if calls.down.load(Ordering::SeqCst) { Err(JobError::new("DOWN", "it is down")) } else { Ok(None) }
            }
        })
        .build()
        .unwrap()
        .start();
    (executor, downstream)
}

fn spec(name: &str, target: Option<&str>, attempts: u32) -> JobSpec {
    JobSpec {
        concurrency_policy: ConcurrencyPolicy::Allow,
        target: target.map(str::to_owned),
        retry_policy: RetryPolicy {
            max_attempts: attempts,
            backoff: Backoff::Fixed,
            base_delay_sec: 0.0,
            jitter: 0.0,
            ..RetryPolicy::default()
        },
        ..JobSpec::new("default", name, Trigger::Manual {})
    }
}

async fn created(client: &Client, spec: JobSpec) -> JobId {
    client.job_create(spec).await.unwrap().job_id
}

async fn triggered(client: &Client, job: JobId) -> RunId {
    client.job_trigger(job, TriggerBody::default()).await.unwrap().run_id
}

async fn in_state(client: &Client, run: RunId, state: RunState) {
    eventually(state.as_str(), || async { (client.run_get(run).await.unwrap().state == state).then_some(()) }).await;
}

async fn reason(client: &Client, run: RunId, code: WaitCode) -> Option<ReasonView> {
    let view = client.run_explain(run).await.unwrap();
    view.reasons.into_iter().find(|reason| reason.code == code.as_str())
}

/// The run waits for the target because of this, and the explanation says for which one and what frees it.
async fn waits(client: &Client, run: RunId, code: WaitCode) {
    let reason = eventually(code.as_str(), || reason(client, run, code)).await;
    assert!(reason.sentence.contains("'db'"), "{reason:?}");
    assert!(reason.freed_by.is_some(), "{reason:?}");
    assert_eq!((reason.held_by[0].kind, reason.held_by[0].name.as_deref()), (HolderKind::Target, Some("db")));
}

async fn is_free_of(client: &Client, run: RunId, code: WaitCode) {
    eventually(&format!("no {}", code.as_str()), || async { reason(client, run, code).await.is_none().then_some(()) })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_a_target_hold_its_runs_and_nobody_elses() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let limited = |concurrent, rate| TargetBody {
        max_concurrent_runs: concurrent,
        max_runs_per_sec: rate,
        ..TargetBody::default()
    };
    client.target_set("default", "db", limited(1, 0.0)).await.unwrap();
    let (executor, downstream) = executor(&node, true);
    let job = created(&client, spec("calls", Some("db"), 1)).await;
    let other = created(&client, spec("calls-nobody", None, 1)).await;
    let first = triggered(&client, job).await;
    in_state(&client, first, RunState::Running).await;
    let second = triggered(&client, job).await;
    waits(&client, second, WaitCode::TargetConcurrency).await;
    let free = triggered(&client, other).await;
    in_state(&client, free, RunState::Running).await;
    let view = client.target_get("default", "db").await.unwrap();
    assert_eq!((view.running, view.waiting, view.breaker), (1, 1, BreakerState::Closed));
    client.target_set("default", "db", limited(2, 0.0)).await.unwrap();
    in_state(&client, second, RunState::Running).await;
    is_free_of(&client, second, WaitCode::TargetConcurrency).await;

    // After the burst of one start the next one waits for a thousand seconds.
    client.target_set("default", "db", limited(0, 0.001)).await.unwrap();
    let waiting = eventually("one over the rate", || async {
        let run = triggered(&client, job).await;
        reason(&client, run, WaitCode::TargetRate).await.map(|_| run)
    })
    .await;
    waits(&client, waiting, WaitCode::TargetRate).await;
    client.target_set("default", "db", limited(0, 0.0)).await.unwrap();
    is_free_of(&client, waiting, WaitCode::TargetRate).await;
    downstream.gate.add_permits(1_000);
    in_state(&client, waiting, RunState::Success).await;
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_is_down_gets_no_runs_and_comes_back_with_one_attempt_at_first() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let sensitive = |open_sec| TargetBody { failure_percent: 50, min_attempts: 3, open_sec, ..TargetBody::default() };
    client.target_set("default", "db", sensitive(3_600)).await.unwrap();
    let (executor, downstream) = executor(&node, true);
    let job = created(&client, spec("calls", Some("db"), 1)).await;
    downstream.down.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let run = triggered(&client, job).await;
        downstream.gate.add_permits(1);
        in_state(&client, run, RunState::Failed).await;
    }
    let held = triggered(&client, job).await;
    waits(&client, held, WaitCode::TargetBreakerOpen).await;
    assert_eq!(client.target_get("default", "db").await.unwrap().breaker, BreakerState::Open);
    // Without a breaker it starts, and the target is up again.
    client.target_set("default", "db", TargetBody { failure_percent: 0, ..sensitive(1) }).await.unwrap();
    in_state(&client, held, RunState::Running).await;
    is_free_of(&client, held, WaitCode::TargetBreakerOpen).await;
    downstream.down.store(false, Ordering::SeqCst);
    downstream.gate.add_permits(1);
    in_state(&client, held, RunState::Success).await;

    // Down once more, and open for a second: then one attempt is tried, and the others wait for it.
    client.target_set("default", "db", sensitive(1)).await.unwrap();
    downstream.down.store(true, Ordering::SeqCst);
    let failing: Vec<RunId> =
        [triggered(&client, job).await, triggered(&client, job).await, triggered(&client, job).await].into();
    for run in &failing {
        in_state(&client, *run, RunState::Running).await;
    }
    downstream.gate.add_permits(3);
    for run in failing {
        in_state(&client, run, RunState::Failed).await;
    }
    downstream.down.store(false, Ordering::SeqCst);
    let probe = triggered(&client, job).await;
    let behind = triggered(&client, job).await;
    in_state(&client, probe, RunState::Running).await;
    waits(&client, behind, WaitCode::TargetRecovering).await;
    assert_eq!(client.target_get("default", "db").await.unwrap().breaker, BreakerState::Recovering);
    downstream.gate.add_permits(1);
    in_state(&client, behind, RunState::Running).await;
    is_free_of(&client, behind, WaitCode::TargetRecovering).await;
    downstream.gate.add_permits(1);
    in_state(&client, behind, RunState::Success).await;
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_wait_for_the_budget_of_their_target() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let paying = |retry_percent| TargetBody { retry_percent, failure_percent: 0, ..TargetBody::default() };
    client.target_set("default", "db", paying(0)).await.unwrap();
    let (executor, downstream) = executor(&node, false);
    let job = created(&client, spec("calls", Some("db"), 100)).await;
    downstream.down.store(true, Ordering::SeqCst);
    // The reserve is used up by its first ten retries, and first attempts pay nothing.
    let run = triggered(&client, job).await;
    waits(&client, run, WaitCode::TargetRetryBudget).await;
    let tried = client.run_get(run).await.unwrap().attempt_count;
    assert!((11..=13).contains(&tried), "{tried} attempts");
    // First attempts pay now, and are not held up.
    client.target_set("default", "db", paying(100)).await.unwrap();
    downstream.down.store(false, Ordering::SeqCst);
    let paid = triggered(&client, job).await;
    in_state(&client, paid, RunState::Success).await;
    in_state(&client, run, RunState::Success).await;
    is_free_of(&client, run, WaitCode::TargetRetryBudget).await;
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_survive_a_restart_and_are_no_tenant() {
    let mut node = TestNode::start().await;
    let client = node.client().await;
    let settings = TargetBody { max_concurrent_runs: 3, open_sec: 7, ..TargetBody::default() };
    assert_eq!(client.target_set("acme", "db", settings.clone()).await.unwrap().version, 1);
    client.target_set("acme", "api", TargetBody::default()).await.unwrap();
    node = node.restart().await;
    let client = node.client().await;
    let view = client.target_get("acme", "db").await.unwrap();
    assert_eq!((view.settings, view.version), (settings, 1));
    let names: Vec<String> = client.target_list("acme").await.unwrap().into_iter().map(|view| view.target).collect();
    assert_eq!(names, ["api", "db"]);
    assert!(client.tenant_list().await.unwrap().iter().all(|tenant| !tenant.tenant_id.contains('/')));
    client.target_delete("acme", "db", None).await.unwrap();
    let gone = client.target_get("acme", "db").await.unwrap_err();
    assert_eq!(gone.api().map(|error| error.known()), Some(ErrorCode::NotFound));
    assert_eq!(client.target_list("acme").await.unwrap().len(), 1);
    node.stop().await;
}
