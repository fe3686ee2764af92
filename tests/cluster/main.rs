//! Several nodes, one store: shards spread, any node takes any call, and what a node leaves is served by others.
#![allow(clippy::unwrap_used)]

mod admin;
mod audit;
mod backfill;
mod bulk;
mod claims;
mod clocks;
mod dag;
mod executors;
mod hooks;
mod hops;
mod lag;
mod limits;
mod lists;
mod migrate;
mod migrate_bulk;
mod migrate_cql;
mod pauses;
#[path = "../cli/program.rs"]
mod program;
mod readiness;
mod releases;
mod roads;
mod story_01;
mod story_01_cql;
#[path = "../support/mod.rs"]
mod support;
mod test_cluster;
mod traces;

use campanile_actors::changes::ChangedItem;
use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    event::Outcome,
    ids::{JobId, RunId},
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    record::RunState,
    view::{JobFilter, TriggerBody},
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use support::eventually;
use test_cluster::{SHARDS, TestCluster};

/// How often each run's body ran.
type Bodies = Arc<Mutex<BTreeMap<RunId, u32>>>;

fn executor(cluster: &TestCluster, nodes: &[u64]) -> (ExecutorHandle, Bodies) {
    let bodies = Bodies::default();
    let ran = bodies.clone();
    let addresses: Vec<String> = nodes.iter().map(|node| cluster.rpc(*node)).collect();
    let executor = Executor::builder(addresses.join(","), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(move |context: Context, _: campanile_schema::payload::Payload| {
            *ran.lock().entry(context.run_id()).or_default() += 1;
            async move { Ok::<_, JobError>(None) }
        })
        .build()
        .unwrap()
        .start();
    (executor, bodies)
}

async fn spread(cluster: &TestCluster, nodes: usize) {
    eventually("shards on every node", || async {
        let owned = cluster.owned();
        let cap = campanile_core::placement::cap(usize::from(SHARDS), 1, nodes as u64);
        let whole = owned.values().sum::<usize>() == usize::from(SHARDS);
        (whole && owned.len() == nodes && owned.values().all(|n| *n <= cap)).then_some(())
    })
    .await;
}

async fn is_ready(cluster: &TestCluster, node: u64) {
    eventually(&format!("node {node} is ready"), || async {
        cluster.scheduler(node).not_ready_reasons().is_empty().then_some(())
    })
    .await;
}

async fn says(cluster: &TestCluster, node: u64, part: &str) {
    let what = format!("node {node} says: {part}");
    eventually(&what, || async {
        cluster.scheduler(node).not_ready_reasons().iter().any(|reason| reason.contains(part)).then_some(())
    })
    .await;
}

async fn manual_jobs(cluster: &TestCluster, node: u64, count: usize) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for n in 0..count {
        let spec = JobSpec::new("default", &format!("job-{n}"), Trigger::Manual {});
        // Again after a take-over, which a busy machine has.
        let create = || async { cluster.scheduler(node).create_job(spec.clone(), Some(spec.name.clone())).await.ok() };
        jobs.push(eventually("it is created", create).await.job_id);
    }
    jobs
}

async fn run_each(cluster: &TestCluster, node: u64, jobs: &[JobId], key: &str) {
    for job in jobs {
        let body = TriggerBody { manual_run_id: Some(key.to_owned()), params: None, reason: None, callback: None };
        let trigger = || async { cluster.scheduler(node).trigger(*job, body.clone()).await.ok() };
        let run = eventually("it is triggered", trigger).await;
        let ended = cluster.scheduler(node).wait_run(run.run_id, 20_000).await.unwrap();
        assert_eq!(ended.state, RunState::Success, "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_spread_and_any_node_takes_any_call() {
    let mut cluster = TestCluster::new();
    cluster.start(1).await;
    spread(&cluster, 1).await;
    let jobs = manual_jobs(&cluster, 1, 40).await;
    cluster.start(2).await;
    cluster.start(3).await;
    spread(&cluster, 3).await;
    let (executor, _) = executor(&cluster, &[1, 2, 3]);
    for node in [1, 2, 3] {
        run_each(&cluster, node, &jobs[..10], &format!("by {node}")).await;
        let page =
            cluster.scheduler(node).jobs(JobFilter { page_size: Some(100), ..JobFilter::default() }).await.unwrap();
        assert_eq!(page.items.len(), 40);
    }
    executor.drain(Duration::from_secs(2)).await;
    for node in [3, 2, 1] {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_shard_moves_once_to_a_node_that_comes_and_once_from_one_that_goes() {
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    let mut rest = eventually("two nodes are at rest", || async { cluster.at_rest() }).await;
    for (node, comes) in [(3, true), (2, false), (2, true)] {
        if comes {
            cluster.start(node).await;
        } else {
            cluster.stop(node).await;
        }
        let now = eventually("all nodes are at rest", || async { cluster.at_rest() }).await;
        for (shard, owner) in &now.0 {
            let (moved, claims) = (rest.0[shard] != *owner, now.1[shard].0 - rest.1[shard].0);
            assert_eq!(claims, u64::from(moved), "shard {shard}, from {:?} to {owner:?}", rest.0[shard]);
        }
        rest = now;
    }
    for node in [1, 2, 3] {
        cluster.stop(node).await;
    }
}

/// Jobs that fire each second, and what must be true of them at the end.
async fn every_second(cluster: &TestCluster, node: u64, count: usize) -> Vec<JobId> {
    let trigger: Trigger = serde_json::from_str(r#"{"type":"CRON","expr":"* * * * * *","dialect":"UNIX"}"#).unwrap();
    let mut jobs = Vec::new();
    for n in 0..count {
        let mut spec = JobSpec::new("default", &format!("tick-{n}"), trigger.clone());
        spec.concurrency_policy = ConcurrencyPolicy::Allow;
        jobs.push(cluster.scheduler(node).create_job(spec, None).await.unwrap().job_id);
    }
    jobs
}

async fn nothing_missed_and_nothing_doubled(
    cluster: &TestCluster,
    node: u64,
    jobs: &[JobId],
    bodies: &Bodies,
    least: usize,
) {
    for job in jobs {
        let lines = eventually("every fired run has succeeded", || async {
            let ledger = cluster.scheduler(node).ledger(*job, 0, i64::MAX / 2, 1000).await.unwrap();
            let page = cluster.scheduler(node).job_runs(*job, None, 1000).await.unwrap();
            let open = page.items.iter().filter(|run| run.state != RunState::Success).count();
            // The newest ones are on their way.
            (ledger.items.len() >= least && open <= 2).then_some(ledger.items)
        })
        .await;
        for pair in lines.windows(2) {
            let from = pair[0].until.unwrap_or(pair[0].logical_time).0;
            assert_eq!(pair[1].logical_time.0 - from, 1000, "missing or twice: {pair:?}");
        }
        for line in &lines {
            assert!(matches!(line.outcome, Outcome::Fired | Outcome::FiredLate), "{line:?}");
            let run = line.run_id.unwrap();
            let times = bodies.lock().get(&run).copied().unwrap_or(0);
            assert!(times <= 1, "run {run} of {line:?} ran {times} times");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_cut_off_node_owned_fires_on_others_and_it_comes_back_with_a_new_session() {
    let mut cluster = TestCluster::new();
    for node in [1, 2, 3] {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    let (executor, bodies) = executor(&cluster, &[1, 2, 3]);
    let jobs = every_second(&cluster, 1, 12).await;
    cluster.cut_off(2);
    eventually("two nodes own everything", || async {
        let owned = cluster.owned();
        (!owned.contains_key(&2) && owned.values().sum::<usize>() == usize::from(SHARDS)).then_some(())
    })
    .await;
    nothing_missed_and_nothing_doubled(&cluster, 1, &jobs, &bodies, 5).await;
    let reasons = cluster.scheduler(2).not_ready_reasons();
    assert!(reasons.iter().any(|reason| reason.contains("without a lease")), "{reasons:?}");
    cluster.reconnect(2);
    spread(&cluster, 3).await;
    run_each(&cluster, 2, &manual_jobs(&cluster, 2, 5).await, "again").await;
    nothing_missed_and_nothing_doubled(&cluster, 2, &jobs, &bodies, 10).await;
    executor.drain(Duration::from_secs(2)).await;
    for node in [1, 2, 3] {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_misses_nothing_although_answers_of_the_store_are_lost() {
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
        cluster.lose_every(node, 7);
    }
    spread(&cluster, 2).await;
    let (executor, bodies) = executor(&cluster, &[1, 2]);
    let jobs = every_second(&cluster, 1, 12).await;
    for node in [1, 2] {
        cluster.restart(node).await;
        spread(&cluster, 2).await;
    }
    nothing_missed_and_nothing_doubled(&cluster, 1, &jobs, &bodies, 5).await;
    executor.drain(Duration::from_secs(2)).await;
    for node in [1, 2] {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_outlive_their_owner_and_run_once() {
    let mut cluster = TestCluster::new();
    for node in [1, 2, 3] {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let (started, bodies) = (Arc::new(AtomicUsize::new(0)), Bodies::default());
    let executor = {
        let (gate, started, bodies) = (gate.clone(), started.clone(), bodies.clone());
        let addresses: Vec<String> = [1, 2, 3].iter().map(|node| cluster.rpc(*node)).collect();
        Executor::builder(addresses.join(","), support::TOKEN)
            .pool("default")
            .slots(64)
            .any_handler(move |context: Context, _: campanile_schema::payload::Payload| {
                *bodies.lock().entry(context.run_id()).or_default() += 1;
                started.fetch_add(1, Ordering::SeqCst);
                let gate = gate.clone();
                async move {
                    gate.acquire().await.unwrap().forget();
                    Ok::<_, JobError>(None)
                }
            })
            .build()
            .unwrap()
            .start()
    };
    let jobs = manual_jobs(&cluster, 1, 30).await;
    let mut runs = Vec::new();
    for job in &jobs {
        let body = TriggerBody { manual_run_id: Some("once".to_owned()), params: None, reason: None, callback: None };
        runs.push(cluster.scheduler(1).trigger(*job, body).await.unwrap().run_id);
    }
    eventually("all bodies run", || async { (started.load(Ordering::SeqCst) == 30).then_some(()) }).await;
    cluster.cut_off(2);
    // Half of them end while nobody owns what node 2 had.
    gate.add_permits(15);
    eventually("two nodes own everything", || async {
        let owned = cluster.owned();
        (!owned.contains_key(&2) && owned.values().sum::<usize>() == usize::from(SHARDS)).then_some(())
    })
    .await;
    gate.add_permits(15);
    for run in runs {
        let ended = cluster.scheduler(3).wait_run(run, 30_000).await.unwrap();
        assert_eq!((ended.state, ended.attempts.len()), (RunState::Success, 1), "{ended:?}");
    }
    assert!(bodies.lock().values().all(|times| *times == 1), "{bodies:?}");
    executor.drain(Duration::from_secs(2)).await;
    for node in [1, 3] {
        cluster.stop(node).await;
    }
}

/// Changes of every node's shards, in the order of each run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_on_one_node_hears_of_the_shards_of_all() {
    let mut cluster = TestCluster::new();
    for node in [1, 2, 3] {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    let wanted = campanile_schema::watch::WatchRuns::default();
    let mut watch = cluster.scheduler(2).watch((&wanted).into(), None).await.unwrap();
    let jobs = manual_jobs(&cluster, 1, 30).await;
    let (executor, _) = executor(&cluster, &[1, 2, 3]);
    run_each(&cluster, 3, &jobs, "watched").await;
    let mut told: BTreeMap<JobId, Vec<RunState>> = BTreeMap::new();
    while told.values().filter(|states| states.last() == Some(&RunState::Success)).count() < jobs.len() {
        let batch = tokio::time::timeout(Duration::from_secs(20), watch.next()).await.expect("hangs").unwrap().unwrap();
        assert_eq!(batch.dropped, 0, "nothing was lost");
        for change in batch.items {
            if let ChangedItem::Run(run) = &change.what {
                told.entry(run.job_id).or_default().push(run.state);
            }
        }
    }
    for states in told.values() {
        assert_eq!(states, &[RunState::Queued, RunState::Running, RunState::Success]);
    }
    // One run, of a shard that is elsewhere, to its end.
    let body = TriggerBody::default();
    executor.drain(Duration::from_secs(2)).await;
    for job in &jobs[..6] {
        let run = cluster.scheduler(1).trigger(*job, body.clone()).await.unwrap().run_id;
        let one = campanile_schema::watch::WatchRuns { run_id: Some(run), ..Default::default() };
        let mut watch = cluster.scheduler(2).watch((&one).into(), None).await.unwrap();
        cluster.scheduler(3).cancel_run(run, None).await.unwrap();
        let mut last = None;
        while let Some(batch) =
            tokio::time::timeout(Duration::from_secs(20), watch.next()).await.expect("hangs").unwrap()
        {
            for change in batch.items {
                if let ChangedItem::Run(run) = &change.what {
                    last = Some(run.state);
                }
            }
        }
        assert_eq!(last, Some(RunState::Canceled));
    }
    for node in [3, 2, 1] {
        cluster.stop(node).await;
    }
}
