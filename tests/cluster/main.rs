//! Several nodes, one store: shards spread, any node takes any call, and what a node leaves is served by others.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;
mod town;

use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    ids::JobId,
    job::{JobSpec, Trigger},
    record::RunState,
    view::{JobFilter, TriggerBody},
};
use std::time::Duration;
use support::eventually;
use town::{SHARDS, Town};

fn executor(town: &Town, nodes: &[u64]) -> ExecutorHandle {
    let addresses: Vec<String> = nodes.iter().map(|node| town.rpc(*node)).collect();
    Executor::builder(addresses.join(","), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(|_: Context, _: campanile_schema::payload::Payload| async move { Ok::<_, JobError>(None) })
        .build()
        .unwrap()
        .start()
}

async fn spread(town: &Town, nodes: usize) {
    eventually("shards on every node", || async {
        let owned = town.owned();
        let cap = campanile_core::placement::cap(usize::from(SHARDS), 1, nodes as u64);
        let whole = owned.values().sum::<usize>() == usize::from(SHARDS);
        (whole && owned.len() == nodes && owned.values().all(|n| *n <= cap)).then_some(())
    })
    .await;
}

async fn manual_jobs(town: &Town, node: u64, count: usize) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for n in 0..count {
        let spec = JobSpec::new("default", &format!("job-{n}"), Trigger::Manual {});
        jobs.push(town.scheduler(node).create_job(spec, None).await.unwrap().job_id);
    }
    jobs
}

async fn run_each(town: &Town, node: u64, jobs: &[JobId], key: &str) {
    for job in jobs {
        let body = TriggerBody { manual_run_id: Some(key.to_owned()), params: None, reason: None };
        let run = town.scheduler(node).trigger(*job, body).await.unwrap();
        let ended = town.scheduler(node).wait_run(run.run_id, 20_000).await.unwrap();
        assert_eq!(ended.state, RunState::Success, "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_spread_and_any_node_takes_any_call() {
    let mut town = Town::new();
    town.start(1).await;
    spread(&town, 1).await;
    let jobs = manual_jobs(&town, 1, 40).await;
    town.start(2).await;
    town.start(3).await;
    spread(&town, 3).await;
    let executor = executor(&town, &[1, 2, 3]);
    for node in [1, 2, 3] {
        run_each(&town, node, &jobs[..10], &format!("by {node}")).await;
        let page = town.scheduler(node).jobs(JobFilter { page_size: Some(100), ..JobFilter::default() }).await.unwrap();
        assert_eq!(page.items.len(), 40);
    }
    executor.drain(Duration::from_secs(2)).await;
    for node in [3, 2, 1] {
        town.stop(node).await;
    }
}
