//! Quotas of tenants: permits, rates, numbers of jobs and of waiting runs, pauses, fair turns.
#![allow(clippy::unwrap_used)]

mod support;

use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    error::ErrorCode,
    event::{Outcome, SkipReason},
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    payload::Payload,
    record::RunState,
    view::{TenantBody, TriggerBody},
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use support::{TestNode, eventually};

fn executor(node: &TestNode, slots: u32, body: impl Fn(Context) + Send + Sync + 'static, ms: u64) -> ExecutorHandle {
    let body = Arc::new(body);
    Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(slots)
        .any_handler(move |ctx: Context, _: Payload| {
            body(ctx);
            async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok::<_, JobError>(None)
            }
        })
        .build()
        .unwrap()
        .start()
}

/// An executor with places for all, and how many bodies of 20 ms it had at once.
fn counting(node: &TestNode) -> (ExecutorHandle, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(0));
    let most = Arc::new(AtomicI64::new(0));
    let (n, m) = (now, most.clone());
    let executor = Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(50)
        .any_handler(move |_: Context, _: Payload| {
            let (n, m) = (n.clone(), m.clone());
            async move {
                m.fetch_max(n.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
                n.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, JobError>(None)
            }
        })
        .build()
        .unwrap()
        .start();
    (executor, most)
}

fn manual(tenant: &str, name: &str) -> JobSpec {
    let mut spec = JobSpec::new(tenant, name, Trigger::Manual {});
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    spec
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_runs_never_exceed_the_permits() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let quota = TenantBody { max_concurrent_runs: 3, ..TenantBody::default() };
    scheduler.set_tenant("acme", quota).await.unwrap();
    let (executor, most) = counting(&node);
    let job = scheduler.create_job(manual("acme", "many"), None).await.unwrap();
    let mut runs = Vec::new();
    for _ in 0..40 {
        runs.push(scheduler.trigger(job.job_id, TriggerBody::default()).await.unwrap().run_id);
    }
    let last = scheduler.run(*runs.last().unwrap()).await.unwrap();
    if last.state == RunState::Queued {
        let why = last.wait_reason.unwrap();
        assert!(why.starts_with("TENANT_CONCURRENCY"), "{why}");
    }
    for run in runs {
        assert_eq!(scheduler.wait_run(run, 30_000).await.unwrap().state, RunState::Success);
    }
    assert!((1..=3).contains(&most.load(Ordering::SeqCst)), "{most:?} at once");
    executor.drain(Duration::from_secs(2)).await;
    node.stop().await;
}

/// Shards start one after the other: some tell of waiting runs before another tells of the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_gives_no_permit_before_it_knows_the_limit() {
    let node = TestNode::start().await;
    let quota = TenantBody { max_concurrent_runs: 2, ..TenantBody::default() };
    node.scheduler().set_tenant("acme", quota).await.unwrap();
    let mut runs = Vec::new();
    for n in 0..40 {
        let job = node.scheduler().create_job(manual("acme", &format!("job-{n}")), None).await.unwrap();
        runs.push(node.scheduler().trigger(job.job_id, TriggerBody::default()).await.unwrap().run_id);
    }
    let node = node.restart().await;
    let (executor, most) = counting(&node);
    for run in runs {
        assert_eq!(node.scheduler().wait_run(run, 30_000).await.unwrap().state, RunState::Success);
    }
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)), "{most:?} at once");
    executor.drain(Duration::from_secs(2)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_jobs_and_of_waiting_runs_are_bounded_and_said() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let quota = TenantBody { max_jobs: 2, max_queued_runs: 3, ..TenantBody::default() };
    scheduler.set_tenant("small", quota).await.unwrap();
    let job = scheduler.create_job(manual("small", "one"), None).await.unwrap();
    let rate = serde_json::from_str(r#"{"type":"FIXED_RATE","everySec":1}"#).unwrap();
    let mut timed = JobSpec::new("small", "timed", rate);
    timed.concurrency_policy = ConcurrencyPolicy::Allow;
    let timed = scheduler.create_job(timed, None).await.unwrap();
    let third = scheduler.create_job(manual("small", "three"), None).await.unwrap_err();
    assert_eq!(third.known(), ErrorCode::TenantQuota);
    // No executor: runs wait. Over the limit a caller is refused and an instant is skipped, both by name.
    let refused =
        eventually("a refusal", || async { scheduler.trigger(job.job_id, TriggerBody::default()).await.err() }).await;
    assert_eq!(refused.known(), ErrorCode::JobQueueFull);
    eventually("a skipped instant", || async {
        let ledger = scheduler.ledger(timed.job_id, 0, i64::MAX / 2, 100).await.unwrap();
        ledger
            .items
            .iter()
            .any(|e| e.outcome == Outcome::Skipped && e.reason == Some(SkipReason::QueueFull))
            .then_some(())
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_tenant_waits_and_goes_on() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let executor = executor(&node, 4, |_| {}, 0);
    let job = scheduler.create_job(manual("acme", "job"), None).await.unwrap();
    scheduler.set_paused(Some("acme"), true, None).await.unwrap();
    let error = scheduler.trigger(job.job_id, TriggerBody::default()).await.unwrap_err();
    assert_eq!(error.known(), ErrorCode::JobPaused);
    let node = node.restart().await;
    let scheduler = node.scheduler();
    assert!(scheduler.tenant("acme").await.unwrap().paused, "a pause survives a restart");
    scheduler.set_paused(Some("acme"), false, None).await.unwrap();
    let run = scheduler.trigger(job.job_id, TriggerBody::default()).await.unwrap();
    assert_eq!(scheduler.wait_run(run.run_id, 30_000).await.unwrap().state, RunState::Success);
    executor.drain(Duration::from_secs(2)).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_tenant_has_neither_limits_nor_a_pause_and_its_history_stays() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let quota = TenantBody { max_jobs: 1, max_concurrent_runs: 1, ..TenantBody::default() };
    scheduler.set_tenant("acme", quota).await.unwrap();
    let executor = executor(&node, 4, |_| {}, 0);
    let job = scheduler.create_job(manual("acme", "only"), None).await.unwrap();
    let run = scheduler.trigger(job.job_id, TriggerBody::default()).await.unwrap();
    assert_eq!(scheduler.wait_run(run.run_id, 30_000).await.unwrap().state, RunState::Success);
    executor.drain(Duration::from_secs(2)).await;
    let open = scheduler.trigger(job.job_id, TriggerBody::default()).await.unwrap();
    scheduler.set_paused(Some("acme"), true, None).await.unwrap();
    let refused = scheduler.delete_tenant("acme").await.unwrap_err();
    assert_eq!(refused.known(), ErrorCode::IllegalState);
    assert_eq!(refused.detail, Some(serde_json::json!({"jobs": 1, "openRuns": 1})), "{refused}");
    assert!(scheduler.tenant("acme").await.unwrap().paused, "a refusal changes nothing");
    scheduler.cancel_run(open.run_id, None).await.unwrap();
    scheduler.delete_job(job.job_id, None).await.unwrap();
    scheduler.delete_tenant("acme").await.unwrap();
    let node = node.restart().await;
    let scheduler = node.scheduler();
    assert_eq!(scheduler.tenant("acme").await.unwrap_err().known(), ErrorCode::NotFound);
    assert_eq!(scheduler.delete_tenant("acme").await.unwrap_err().known(), ErrorCode::NotFound);
    assert!(scheduler.tenants().await.unwrap().iter().all(|tenant| tenant.tenant_id != "acme"));
    assert_eq!(scheduler.run(run.run_id).await.unwrap().state, RunState::Success, "its history stays");
    // As a tenant that nobody has ever heard of.
    for name in ["one", "two"] {
        let job = scheduler.create_job(manual("acme", name), None).await.unwrap();
        scheduler.trigger(job.job_id, TriggerBody::default()).await.unwrap();
    }
    let again = scheduler.tenant("acme").await.unwrap();
    assert_eq!((again.quota, again.paused, again.version, again.jobs), (TenantBody::default(), false, 0, 2));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_one_tenant_does_not_starve_another() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let loud = scheduler.create_job(manual("loud", "flood"), None).await.unwrap();
    let quiet = scheduler.create_job(manual("quiet", "drop"), None).await.unwrap();
    for _ in 0..200 {
        scheduler.trigger(loud.job_id, TriggerBody::default()).await.unwrap();
    }
    let last = scheduler.trigger(quiet.job_id, TriggerBody::default()).await.unwrap();
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = order.clone();
    let executor = executor(&node, 1, move |ctx| seen.lock().unwrap().push(ctx.tenant().to_owned()), 1);
    assert_eq!(scheduler.wait_run(last.run_id, 30_000).await.unwrap().state, RunState::Success);
    let place = order.lock().unwrap().iter().position(|t| t == "quiet").unwrap();
    assert!(place < 5, "the quiet tenant's only run came as number {place}");
    executor.drain(Duration::from_secs(5)).await;
    node.stop().await;
}
