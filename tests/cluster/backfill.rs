//! A backfill goes on where its job's shard is served next, and the clients of both nodes see and change it: each day runs once.

use crate::{
    spread,
    support::{self, eventually, now_ms},
    test_cluster::TestCluster,
};
use campanile_client::{Context, Executor, JobError};
use campanile_schema::{
    ids::JobId,
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    payload::Payload,
    record::{RunState, Source},
    stored::backfill::BackfillState,
    time::Timestamp,
    view::backfill::BackfillBody,
};
use serde_json::json;
use std::{collections::BTreeSet, time::Duration};

const DAY: i64 = 86_400_000;
/// Enough for jobs on many shards of both nodes.
const JOBS: usize = 6;
/// More than one job has open at once, so that a restart comes in the middle.
const DAYS: i64 = 60;

async fn created(cluster: &TestCluster, name: &str) -> JobId {
    let daily = serde_json::from_value::<Trigger>(json!({"type": "CRON", "expr": "0 2 * * *"})).unwrap();
    let mut spec = JobSpec::new("default", name, daily);
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    let create = || async { cluster.scheduler(1).create_job(spec.clone(), Some(spec.name.clone())).await.ok() };
    eventually("it is created", create).await.job_id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_day_runs_once_wherever_its_job_is_and_whoever_comes_and_goes() {
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let executor = Executor::builder([cluster.rpc(1), cluster.rpc(2)].join(","), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(|_: Context, _: Payload| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok::<_, JobError>(None)
        })
        .build()
        .unwrap()
        .start();
    let now = now_ms();
    let body = || BackfillBody { from: Timestamp(now - DAYS * DAY), to: Timestamp(now), ..BackfillBody::default() };
    let mut jobs = Vec::new();
    for n in 0..JOBS {
        let job = created(&cluster, &format!("daily-{n}")).await;
        let ask = || async { cluster.scheduler(1).backfill(job, body()).await.ok() };
        jobs.push((job, eventually("it is taken", ask).await.backfill_id.unwrap()));
    }
    // Shards of open backfills go to node 1, and come back.
    cluster.restart(2).await;
    spread(&cluster, 2).await;
    for (job, id) in &jobs {
        let done = || async {
            let view = cluster.scheduler(2).backfill_by_id(*id).await.ok()?;
            (view.state == Some(BackfillState::Done)).then_some(view)
        };
        let done = eventually("it is done", done).await;
        let told = done.progress.unwrap();
        assert_eq!((told.started, told.succeeded, told.failed), (DAYS as u64, DAYS as u64, 0), "{told:?}");
        let look = || async { cluster.scheduler(1).job_runs(*job, None, 1000).await.ok() };
        let runs = eventually("its runs are told", look).await.items;
        assert!(runs.iter().all(|run| (run.state, run.source) == (RunState::Success, Source::Backfill)), "{runs:?}");
        let instants: BTreeSet<i64> = runs.iter().filter_map(|run| Some(run.logical_time?.ms())).collect();
        assert_eq!((runs.len(), instants.len()), (DAYS as usize, DAYS as usize), "none twice");
    }
    executor.drain(Duration::from_secs(2)).await;
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}
