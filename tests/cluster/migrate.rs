//! A directory of a node alone moves into the store of a cluster.

use super::{SHARDS, TestCluster, executor, spread, support};
use campanile_archive::{
    Report, directory,
    migrate::{Cluster, into_cluster},
};
use campanile_ports::StoreError;
use campanile_schema::{
    ids::{JobId, RunId},
    job::{ConcurrencyPolicy, Hook, JobSpec, Trigger},
    payload::Payload,
    record::RunState,
    view::{JobFilter, TenantBody, TriggerBody},
};
use campanile_store::{embedded::restore::mark_moved, memory::shared::SharedEnd};
use std::{
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::Duration,
};
use support::{TestNode, eventually};

fn move_into(dir: &Path, end: &SharedEnd) -> Result<Report, StoreError> {
    let to = Cluster { leases: end, snapshots: end, views: end, shards: SHARDS };
    directory::with_reader(dir, 1_000, |reader| into_cluster(reader, &to, &mut |_| {}))
}

/// Off the runtime: it waits for the store call by call.
pub async fn moved(dir: PathBuf, end: SharedEnd) -> Result<Report, StoreError> {
    tokio::task::spawn_blocking(move || move_into(&dir, &end)).await.unwrap()
}

/// What a node alone had before it was stopped.
struct Before {
    node: TestNode,
    jobs: Vec<JobId>,
    ticking: JobId,
    ended: RunId,
    waiting: RunId,
}

async fn a_life_alone() -> Before {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let trigger =
        |key: &str| TriggerBody { manual_run_id: Some(key.to_owned()), params: None, reason: None, callback: None };
    let mut jobs = Vec::new();
    for n in 0..40 {
        let spec = JobSpec::new("default", &format!("job-{n}"), Trigger::Manual {});
        jobs.push(scheduler.create_job(spec, Some(format!("key-{n}"))).await.unwrap().job_id);
    }
    scheduler.set_tenant("finance", TenantBody { max_jobs: 7, ..TenantBody::default() }).await.unwrap();
    let every: Trigger = serde_json::from_str(r#"{"type":"CRON","expr":"* * * * * *","dialect":"UNIX"}"#).unwrap();
    let mut tick = JobSpec::new("default", "tick", every);
    tick.concurrency_policy = ConcurrencyPolicy::Allow;
    let ticking = scheduler.create_job(tick, None).await.unwrap().job_id;
    let running = campanile_client::Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .any_handler(|ctx: campanile_client::Context, _: campanile_schema::payload::Payload| async move {
            ctx.log("a line");
            Ok::<_, campanile_client::JobError>(None)
        })
        .build()
        .unwrap()
        .start();
    let ended = scheduler.trigger(jobs[0], trigger("first")).await.unwrap().run_id;
    assert_eq!(scheduler.wait_run(ended, 20_000).await.unwrap().state, RunState::Success);
    eventually("the log", || async {
        let log = scheduler.run_log(ended, None, 0, usize::MAX).await.unwrap();
        (!log.bytes.is_empty()).then_some(())
    })
    .await;
    eventually("three fires", || async {
        (scheduler.job_runs(ticking, None, 100).await.unwrap().items.len() >= 3).then_some(())
    })
    .await;
    running.drain(Duration::from_secs(2)).await;
    // Nobody runs it any more: it is open when the node stops.
    let waiting = scheduler.trigger(jobs[1], trigger("second")).await.unwrap().run_id;
    Before { node, jobs, ticking, ended, waiting }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_moves_with_all_it_has_and_goes_on_where_it_broke_off() {
    let before = a_life_alone().await;
    let dir = before.node.dir();
    // Kept: the directory lives as long as the node's handle.
    let keep = before.node.dir_handle();
    before.node.stop().await;
    let mut cluster = TestCluster::new();
    let end = cluster.end();
    // Answers are lost, and then all of them: the first tries break off.
    end.weather().cut.store(true, Ordering::Release);
    moved(dir.clone(), end.clone()).await.unwrap_err();
    end.weather().cut.store(false, Ordering::Release);
    end.weather().lose_every.store(3, Ordering::Release);
    let report = eventually("the move", || async { moved(dir.clone(), end.clone()).await.ok() }).await;
    assert_eq!((report.jobs, report.tenants), (41, 1), "{report:?}");
    end.weather().lose_every.store(0, Ordering::Release);
    // Again is as once.
    moved(dir.clone(), end.clone()).await.unwrap();
    mark_moved(&dir, "a cluster").unwrap();
    let refused = moved(dir.clone(), end.clone()).await.unwrap_err().to_string();
    assert!(refused.contains("moved to a cluster"), "{refused}");

    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let scheduler = cluster.scheduler(2);
    let page = scheduler.jobs(JobFilter { page_size: Some(100), ..JobFilter::default() }).await.unwrap();
    assert_eq!(page.items.len(), 41);
    assert_eq!(scheduler.run(before.ended).await.unwrap().state, RunState::Success);
    let log = scheduler.run_log(before.ended, None, 0, usize::MAX).await.unwrap();
    let text = String::from_utf8(log.bytes).unwrap();
    assert_eq!(text.matches("a line").count(), 1, "{text:?}");
    assert_eq!(scheduler.tenant("finance").await.unwrap().quota.max_jobs, 7);
    let again = JobSpec::new("default", "job-3", Trigger::Manual {});
    let made = scheduler.create_job(again, Some("key-3".to_owned())).await.unwrap();
    assert_eq!(made.job_id, before.jobs[3], "the key of a create is known");
    let (executor, _) = executor(&cluster, &[1, 2]);
    assert_eq!(scheduler.wait_run(before.waiting, 20_000).await.unwrap().state, RunState::Success);
    let first = TriggerBody { manual_run_id: Some("first".to_owned()), params: None, reason: None, callback: None };
    assert_eq!(scheduler.trigger(before.jobs[0], first).await.unwrap().run_id, before.ended, "its key is known");
    let ledger = eventually("new fires", || async {
        let ledger = scheduler.ledger(before.ticking, 0, i64::MAX / 2, 1000).await.unwrap();
        (ledger.items.len() >= 7).then_some(ledger)
    })
    .await;
    for pair in ledger.items.windows(2) {
        let from = pair[0].until.unwrap_or(pair[0].logical_time).0;
        assert_eq!(pair[1].logical_time.0 - from, 1000, "missing or twice: {pair:?}");
    }
    // A cluster that nodes have used takes no directory.
    std::fs::remove_file(dir.join("MOVED")).unwrap();
    let refused = moved(dir, end).await.unwrap_err().to_string();
    assert!(refused.contains("not empty"), "{refused}");
    executor.drain(Duration::from_secs(2)).await;
    for node in [2, 1] {
        cluster.stop(node).await;
    }
    drop(keep);
}

/// A hook that its receiver puts off, because as many runs of the tenant wait as may: it moves, and is started where it moved to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_not_settled_moves_with_the_directory_and_is_delivered_once() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    let spec = |name: &str, pool: &str| {
        let mut spec = JobSpec::new("default", name, Trigger::Manual {});
        spec.retry_policy.max_attempts = 1;
        spec.executor_selector = pool.to_owned();
        spec
    };
    // After a restore its run would wait for a person.
    let refund = JobSpec { idempotent: false, ..spec("refund", "nobody") };
    let refund = scheduler.create_job(refund, None).await.unwrap().job_id;
    let filler = scheduler.create_job(spec("filler", "nobody"), None).await.unwrap().job_id;
    let mut work = spec("work", "default");
    work.hooks.on_failure = vec![Hook::new("refund")];
    let work = scheduler.create_job(work, None).await.unwrap().job_id;
    let (go_on, goes_on) = tokio::sync::watch::channel(false);
    let running = campanile_client::Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .any_handler(move |_: campanile_client::Context, _: Payload| {
            let mut goes_on = goes_on.clone();
            async move {
                let _ = goes_on.wait_for(|on| *on).await;
                Err::<Option<Payload>, _>(campanile_client::JobError::message("no luck"))
            }
        })
        .build()
        .unwrap()
        .start();
    let run = scheduler.trigger(work, TriggerBody::default()).await.unwrap().run_id;
    eventually("it runs", || async { (scheduler.run(run).await.unwrap().state == RunState::Running).then_some(()) })
        .await;
    scheduler.set_tenant("default", TenantBody { max_queued_runs: 1, ..TenantBody::default() }).await.unwrap();
    scheduler.trigger(filler, TriggerBody::default()).await.unwrap();
    go_on.send(true).unwrap();
    eventually("the hook is put off", || async {
        let page = scheduler.outbox(None, None, 10).await.unwrap();
        page.items.iter().any(|message| message.run_id == run).then_some(())
    })
    .await;
    running.drain(Duration::from_secs(2)).await;
    let (dir, _keep) = (node.dir(), node.dir_handle());
    node.stop().await;

    let mut cluster = TestCluster::new();
    moved(dir, cluster.end()).await.unwrap();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let scheduler = cluster.scheduler(2);
    let owed = eventually("the outbox is read", || async { scheduler.outbox(None, None, 10).await.ok() }).await.items;
    // It waits until the cluster has counted the tenant's runs, or is taken before.
    assert!(owed.iter().all(|message| message.run_id == run && !message.may_have_run), "{owed:?}");
    scheduler.set_tenant("default", TenantBody::default()).await.unwrap();
    let runs = eventually("the hook is started", || async {
        let runs = scheduler.job_runs(refund, None, 10).await.ok()?.items;
        (!runs.is_empty()).then_some(runs)
    })
    .await;
    assert_eq!((runs.len(), runs[0].state), (1, RunState::Queued), "a move is no restore");
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}
