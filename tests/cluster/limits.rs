//! A tenant's limits hold over all nodes, whoever of them lives.

use crate::{
    manual_jobs, spread, support,
    support::eventually,
    test_cluster::{SHARDS, TestCluster},
};
use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    error::ErrorCode,
    ids::{JobId, RunId},
    job::{JobSpec, Trigger},
    record::RunState,
    view::{TenantBody, TriggerBody, targets::TargetBody},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const NODES: [u64; 3] = [1, 2, 3];

/// Bodies that run at once, and the most there ever were.
#[derive(Default)]
struct AtOnce {
    now: AtomicUsize,
    most: AtomicUsize,
}

async fn three_nodes() -> TestCluster {
    let mut cluster = TestCluster::new();
    for node in NODES {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    cluster
}

/// Runs bodies that take a while.
fn executor(cluster: &TestCluster, at_once: &Arc<AtOnce>, takes: Duration) -> ExecutorHandle {
    let addresses: Vec<String> = NODES.iter().map(|node| cluster.rpc(*node)).collect();
    let at_once = at_once.clone();
    Executor::builder(addresses.join(","), support::TOKEN)
        .pool("default")
        .slots(64)
        .any_handler(move |_: Context, _: campanile_schema::payload::Payload| {
            let at_once = at_once.clone();
            async move {
                at_once.most.fetch_max(at_once.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(takes).await;
                at_once.now.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, JobError>(None)
            }
        })
        .build()
        .unwrap()
        .start()
}

async fn trigger_all(cluster: &TestCluster, count: usize, key: &str) -> Vec<RunId> {
    trigger_each(cluster, &manual_jobs(cluster, 1, count).await, key).await
}

async fn trigger_each(cluster: &TestCluster, jobs: &[JobId], key: &str) -> Vec<RunId> {
    let mut runs = Vec::new();
    for (n, job) in jobs.iter().enumerate() {
        let body = TriggerBody { manual_run_id: Some(key.to_owned()), params: None, reason: None, callback: None };
        runs.push(cluster.scheduler(NODES[n % 3]).trigger(*job, body).await.unwrap().run_id);
    }
    runs
}

async fn all_succeed(cluster: &TestCluster, node: u64, runs: &[RunId]) {
    for run in runs {
        let ended = cluster.scheduler(node).wait_run(*run, 60_000).await.unwrap();
        assert_eq!(ended.state, RunState::Success, "{ended:?}");
    }
}

async fn stop(mut cluster: TestCluster, executor: ExecutorHandle, nodes: &[u64]) {
    executor.drain(Duration::from_secs(2)).await;
    for node in nodes {
        cluster.stop(*node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_to_run_are_shared_by_all_nodes_and_a_dead_ones_come_back() {
    let cluster = three_nodes().await;
    let limits = TenantBody { max_concurrent_runs: 4, ..TenantBody::default() };
    cluster.scheduler(2).set_tenant("default", limits).await.unwrap();
    let at_once = Arc::new(AtOnce::default());
    let executor = executor(&cluster, &at_once, Duration::from_millis(60));
    let runs = trigger_all(&cluster, 60, "shared").await;
    let known = eventually("the counts of all nodes are known on each", || async {
        let tenant = cluster.scheduler(3).tenant("default").await.unwrap();
        (tenant.jobs == 60).then_some(tenant)
    })
    .await;
    assert_eq!(known.quota.max_concurrent_runs, 4);
    cluster.cut_off(2);
    eventually("two nodes own everything", || async {
        let owned = cluster.owned();
        (!owned.contains_key(&2) && owned.values().sum::<usize>() == usize::from(SHARDS)).then_some(())
    })
    .await;
    all_succeed(&cluster, 3, &runs).await;
    let most = at_once.most.load(Ordering::SeqCst);
    assert!((2..=4).contains(&most), "{most} ran at once");
    // What the dead node had is lent again: all four can be in use by the two that are left.
    at_once.most.store(0, Ordering::SeqCst);
    let body = || TriggerBody { manual_run_id: None, params: None, reason: None, callback: None };
    eventually("all permits are in use again", || async {
        let mut runs = Vec::new();
        for job in cluster.scheduler(1).jobs(Default::default()).await.unwrap().items.iter().take(24) {
            runs.push(cluster.scheduler(1).trigger(job.job_id, body()).await.unwrap().run_id);
        }
        all_succeed(&cluster, 1, &runs).await;
        (at_once.most.load(Ordering::SeqCst) >= 4).then_some(())
    })
    .await;
    assert_eq!(at_once.most.load(Ordering::SeqCst), 4);
    stop(cluster, executor, &[1, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_while_nodes_leave_and_join_and_one_permit_goes_round() {
    let mut cluster = three_nodes().await;
    let limits = TenantBody { max_concurrent_runs: 1, ..TenantBody::default() };
    cluster.scheduler(1).set_tenant("default", limits).await.unwrap();
    let at_once = Arc::new(AtOnce::default());
    let executor = executor(&cluster, &at_once, Duration::from_millis(20));
    let runs = trigger_all(&cluster, 45, "one").await;
    cluster.restart(2).await;
    spread(&cluster, 3).await;
    all_succeed(&cluster, 3, &runs).await;
    assert_eq!(at_once.most.load(Ordering::SeqCst), 1);
    stop(cluster, executor, &NODES).await;
}

/// Limits that were set again and again have a high version; those of a tenant that is known anew begin at 1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_tenant_has_no_limits_on_any_node_and_new_ones_hold() {
    let cluster = three_nodes().await;
    let limits = |max_jobs| TenantBody { max_jobs, ..TenantBody::default() };
    for max_jobs in [7, 8, 1] {
        cluster.scheduler(2).set_tenant("acme", limits(max_jobs)).await.unwrap();
    }
    let job = JobSpec::new("acme", "only", Trigger::Manual {});
    let job = cluster.scheduler(1).create_job(job, None).await.unwrap();
    cluster.scheduler(2).set_paused(Some("acme"), true, None).await.unwrap();
    let refused = cluster.scheduler(3).delete_tenant("acme").await.unwrap_err();
    assert_eq!(refused.detail, Some(serde_json::json!({"jobs": 1, "openRuns": 0})), "{refused}");
    cluster.scheduler(1).delete_job(job.job_id, None).await.unwrap();
    cluster.scheduler(3).delete_tenant("acme").await.unwrap();
    for node in NODES {
        eventually("what the nodes said of its jobs is old", || async {
            let answer = cluster.scheduler(node).tenant("acme").await;
            answer.is_err_and(|error| error.known() == ErrorCode::NotFound).then_some(())
        })
        .await;
    }
    for node in NODES {
        for n in 0..3 {
            // What another node said before it heard of the deletion may come later than that; it is forgotten as well.
            let job = eventually("no limit holds", || async {
                let spec = JobSpec::new("acme", &format!("job-{node}-{n}"), Trigger::Manual {});
                match cluster.scheduler(node).create_job(spec, None).await {
                    Err(error) if error.known() == ErrorCode::TenantQuota => None,
                    made => Some(made.unwrap()),
                }
            })
            .await;
            cluster.scheduler(node).trigger(job.job_id, TriggerBody::default()).await.unwrap();
        }
    }
    cluster.scheduler(1).set_tenant("acme", limits(9)).await.unwrap();
    let more = AtomicUsize::new(0);
    for node in NODES {
        eventually("the new limit holds", || async {
            let name = format!("one-more-{}", more.fetch_add(1, Ordering::Relaxed));
            let spec = JobSpec::new("acme", &name, Trigger::Manual {});
            let refused = cluster.scheduler(node).create_job(spec, None).await.err()?;
            (refused.known() == ErrorCode::TenantQuota).then_some(())
        })
        .await;
    }
    let mut cluster = cluster;
    for node in NODES {
        cluster.stop(node).await;
    }
}

/// Nodes tell each other of a tenant's jobs a moment later; until then its home shard has heard of none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_without_limits_is_known_to_every_node_as_soon_as_it_has_a_job() {
    let mut cluster = three_nodes().await;
    for n in 0..12 {
        let tenant = format!("new-{n}");
        let absent = cluster.scheduler(2).set_paused(Some(&tenant), true, None).await.unwrap_err();
        assert_eq!(absent.known(), ErrorCode::NotFound, "{absent}");
        let job = JobSpec::new(&tenant, "only", Trigger::Manual {});
        cluster.scheduler(1).create_job(job, None).await.unwrap();
        for node in NODES {
            cluster.scheduler(node).tenant(&tenant).await.unwrap();
        }
        let spread = cluster.scheduler(3).set_paused(Some(&tenant), true, None).await.unwrap();
        assert!(spread.outstanding.is_empty(), "{spread:?}");
    }
    for node in NODES {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_and_a_number_of_jobs_hold_over_all_nodes() {
    let cluster = three_nodes().await;
    let limits = TenantBody { max_triggers_per_sec: 30.0, max_jobs: 61, ..TenantBody::default() };
    cluster.scheduler(3).set_tenant("default", limits).await.unwrap();
    let at_once = Arc::new(AtOnce::default());
    let executor = executor(&cluster, &at_once, Duration::from_millis(1));
    let jobs = manual_jobs(&cluster, 1, 60).await;
    let begin = Instant::now();
    let runs = trigger_each(&cluster, &jobs, "rate").await;
    all_succeed(&cluster, 2, &runs).await;
    // 30 of a full bucket, then 30 at 30 a second. Not before half of that, whatever the parts of nodes were while they heard of each
    // other; without a common limit each node would have had its 20 runs at once.
    assert!(begin.elapsed() > Duration::from_millis(500), "{:?}", begin.elapsed());
    eventually("each node knows of the jobs of all", || async {
        (cluster.scheduler(1).tenant("default").await.unwrap().jobs == 60).then_some(())
    })
    .await;
    let more = AtomicUsize::new(0);
    let spec =
        |name: &str| campanile_schema::job::JobSpec::new("default", name, campanile_schema::job::Trigger::Manual {});
    let refused = eventually("the limit of jobs is met", || async {
        let name = format!("one-more-{}", more.fetch_add(1, Ordering::SeqCst));
        cluster.scheduler(2).create_job(spec(&name), None).await.err()
    })
    .await;
    assert!(refused.to_string().contains("job"), "{refused}");
    stop(cluster, executor, &NODES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_of_a_target_are_shared_by_all_nodes_and_hold_up_nobody_else() {
    let cluster = three_nodes().await;
    let settings = TargetBody { max_concurrent_runs: 3, ..TargetBody::default() };
    cluster.scheduler(2).set_target("default", "db", &settings).await.unwrap();
    let at_once = Arc::new(AtOnce::default());
    let executor = executor(&cluster, &at_once, Duration::from_millis(60));
    let mut jobs = Vec::new();
    for n in 0..45 {
        let spec = JobSpec {
            target: Some("db".to_owned()),
            ..JobSpec::new("default", &format!("calls-{n}"), Trigger::Manual {})
        };
        let create = || async { cluster.scheduler(1).create_job(spec.clone(), Some(spec.name.clone())).await.ok() };
        jobs.push(eventually("it is created", create).await.job_id);
    }
    let runs = trigger_each(&cluster, &jobs, "shared").await;
    let seen = eventually("runs wait for the target on some node", || async {
        let view = cluster.scheduler(3).target("default", "db").await.unwrap();
        (view.waiting > 0 && view.running > 0).then_some(view)
    })
    .await;
    assert_eq!(seen.settings, settings);
    all_succeed(&cluster, 3, &runs).await;
    let most = at_once.most.load(Ordering::SeqCst);
    assert!((2..=3).contains(&most), "{most} ran at once");
    assert_eq!(cluster.scheduler(1).targets("default").await.unwrap().len(), 1);
    assert!(cluster.scheduler(1).tenants().await.unwrap().iter().all(|tenant| tenant.tenant_id == "default"));
    stop(cluster, executor, &NODES).await;
}
