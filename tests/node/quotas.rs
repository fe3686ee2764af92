//! Quotas of tenants: permits, rates, numbers of jobs and of waiting runs, pauses, fair turns.

use crate::support;

use campanile_actors::scheduler::Scheduler;
use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    error::ErrorCode,
    event::{Outcome, SkipReason},
    ids::{JobId, RunId},
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
use tokio::sync::Semaphore;

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
    assert_eq!(refused.known(), ErrorCode::TenantQuota);
    assert!(refused.message.contains("maxQueuedRuns"), "{refused}");
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

/// What is paused.
#[derive(Clone, Copy, Debug)]
enum Level {
    Job,
    Tenant,
    System,
}

/// Two jobs whose bodies wait for the gate, one of them with QUEUE_ONE, and one whose first attempt fails.
const JOBS: [&str; 3] = ["work", "one", "flaky"];

async fn pause(scheduler: &Scheduler, level: Level, jobs: &[JobId], paused: bool) {
    match level {
        Level::Job if paused => {
            for job in jobs {
                scheduler.pause_job(*job, None).await.unwrap();
            }
        }
        Level::Job => {
            for job in jobs {
                scheduler.resume_job(*job, None).await.unwrap();
            }
        }
        Level::Tenant => drop(scheduler.set_paused(Some("acme"), paused, None).await.unwrap()),
        Level::System => drop(scheduler.set_paused(None, paused, None).await.unwrap()),
    }
}

/// The executor has free places, and these runs wait all the same, for the pause alone.
async fn held(scheduler: &Scheduler, level: Level, runs: &[RunId]) {
    eventually("free places", || async {
        let executors = scheduler.executors().await.unwrap();
        executors.iter().any(|executor| executor.credit == 2 && executor.running == 0).then_some(())
    })
    .await;
    let reason = match level {
        Level::Job => "JOB_PAUSED",
        Level::Tenant | Level::System => "TENANT_PAUSED",
    };
    for run in runs {
        // The question makes the pool give what it can give.
        eventually("the reason", || async {
            let view = scheduler.run(*run).await.unwrap();
            let waits =
                view.state == RunState::Queued && view.wait_reason.as_ref().is_some_and(|w| w.starts_with(reason));
            assert!(
                !matches!(view.state, RunState::Running | RunState::Success),
                "{level:?}: started in a pause: {view:?}"
            );
            waits.then_some(())
        })
        .await;
    }
}

/// Open bodies go on; no retry, no run that waited for an executor and no held run starts, whatever is paused, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_of_any_level_lets_bodies_end_and_nothing_start() {
    let mut node = TestNode::start().await;
    let gate = Arc::new(Semaphore::new(0));
    let through = gate.clone();
    let executor = Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(2)
        .any_handler(move |ctx: Context, _: Payload| {
            let gate = through.clone();
            async move {
                if ctx.job_name() != "flaky" {
                    gate.acquire().await.unwrap().forget();
                } else if ctx.attempt() == 1 {
                    return Err(JobError::new("ONCE", "the first attempt fails"));
                }
                Ok(None)
            }
        })
        .build()
        .unwrap()
        .start();
    let mut jobs = Vec::new();
    for name in JOBS {
        let mut spec = manual("acme", name);
        if name == "one" {
            spec.concurrency_policy = ConcurrencyPolicy::QueueOne;
        }
        spec.retry_policy.base_delay_sec = 1.0;
        jobs.push(node.scheduler().create_job(spec, None).await.unwrap().job_id);
    }
    for level in [Level::Job, Level::Tenant, Level::System] {
        let scheduler = node.scheduler().clone();
        let trigger = async |job: usize| scheduler.trigger(jobs[job], TriggerBody::default()).await.unwrap().run_id;
        let retried = trigger(2).await;
        eventually("its first attempt fails", || async {
            (scheduler.run(retried).await.unwrap().state == RunState::RetryWait).then_some(())
        })
        .await;
        let bodies = [trigger(0).await, trigger(1).await];
        for run in bodies {
            eventually("a body", || async {
                (scheduler.run(run).await.unwrap().state == RunState::Running).then_some(())
            })
            .await;
        }
        let waiting = [trigger(0).await, trigger(1).await, retried];
        pause(&scheduler, level, &jobs, true).await;
        gate.add_permits(2);
        for run in bodies {
            let ended = scheduler.wait_run(run, 30_000).await.unwrap();
            assert_eq!(ended.state, RunState::Success, "an open body goes on: {level:?}");
        }
        held(&scheduler, level, &waiting).await;
        node = node.restart().await;
        let scheduler = node.scheduler().clone();
        held(&scheduler, level, &waiting).await;
        pause(&scheduler, level, &jobs, false).await;
        gate.add_permits(2);
        for run in waiting {
            let ended = scheduler.wait_run(run, 30_000).await.unwrap();
            assert_eq!(ended.state, RunState::Success, "{level:?}");
            assert_eq!(ended.attempts.len(), if run == retried { 2 } else { 1 }, "{level:?}: {ended:?}");
        }
    }
    executor.drain(Duration::from_secs(2)).await;
    node.stop().await;
}
