//! Hooks between shards of two nodes, while shards move and a node comes and goes: each is started once.

use crate::{
    spread,
    support::{self, eventually},
    test_cluster::{SHARDS, TestCluster},
};
use campanile_client::{Context, Executor, JobError};
use campanile_schema::{
    ids::{JobId, shard_of_slot, slot_of},
    job::{ConcurrencyPolicy, Hook, JobSpec, Trigger},
    payload::Payload,
    record::RunState,
    view::{RunView, TriggerBody},
};
use std::{collections::BTreeSet, time::Duration};

/// Jobs of each kind: enough for pairs of all shards.
const JOBS: usize = 24;

async fn created(cluster: &TestCluster, spec: JobSpec) -> JobId {
    let create = || async { cluster.scheduler(1).create_job(spec.clone(), Some(spec.name.clone())).await.ok() };
    eventually("it is created", create).await.job_id
}

async fn runs(cluster: &TestCluster, job: JobId) -> Option<Vec<RunView>> {
    Some(cluster.scheduler(1).job_runs(job, None, 1000).await.ok()?.items)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_is_started_once_wherever_its_job_is_and_whoever_comes_and_goes() {
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let executor = Executor::builder([cluster.rpc(1), cluster.rpc(2)].join(","), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(|context: Context, _: Payload| async move {
            if context.job_name().starts_with("work") { Err(JobError::message("no luck")) } else { Ok(None) }
        })
        .build()
        .unwrap()
        .start();
    let mut pairs = Vec::new();
    for n in 0..JOBS {
        let spec = |name: &str| {
            let mut spec = JobSpec::new("default", &format!("{name}-{n}"), Trigger::Manual {});
            spec.retry_policy.max_attempts = 1;
            spec.concurrency_policy = ConcurrencyPolicy::Allow;
            spec
        };
        let refund = created(&cluster, spec("refund")).await;
        let mut work = spec("work");
        work.hooks.on_failure = vec![Hook::new(format!("refund-{n}"))];
        pairs.push((created(&cluster, work).await, refund));
    }
    const ROUNDS: usize = 3;
    for round in 0..ROUNDS {
        for (work, _) in &pairs {
            let body = || TriggerBody { manual_run_id: Some(format!("round-{round}")), ..TriggerBody::default() };
            eventually("it is triggered", || async { cluster.scheduler(1).trigger(*work, body()).await.ok() }).await;
        }
        // Its shards go to node 1 and come back, some of them with messages that are not settled.
        cluster.restart(2).await;
        spread(&cluster, 2).await;
    }
    for (work, refund) in pairs {
        let failed = eventually("all have failed", || async {
            runs(&cluster, work)
                .await
                .filter(|runs| runs.len() == ROUNDS && runs.iter().all(|run| run.state == RunState::Failed))
        })
        .await;
        let wanted: BTreeSet<String> =
            failed.iter().map(|run| format!("onFailure of run {}, generation 1", run.run_id)).collect();
        let hooks = eventually("each has its hook", || async {
            runs(&cluster, refund)
                .await
                .filter(|runs| runs.len() >= ROUNDS && runs.iter().all(|run| run.state == RunState::Success))
        })
        .await;
        assert_eq!(hooks.len(), ROUNDS, "none twice");
        assert_eq!(hooks.into_iter().filter_map(|run| run.reason).collect::<BTreeSet<_>>(), wanted);
    }
    executor.drain(Duration::from_secs(2)).await;
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_waits_for_a_node_that_cannot_be_asked_and_is_started_when_it_can() {
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let executor = Executor::builder([cluster.rpc(1), cluster.rpc(2)].join(","), support::TOKEN)
        .pool("default")
        .slots(4)
        .any_handler(|context: Context, _: Payload| async move {
            if context.job_name().starts_with("work") { Err(JobError::message("no luck")) } else { Ok(None) }
        })
        .build()
        .unwrap()
        .start();
    // Its quota is kept on node 1: a run asks the node of its tenant's quota for a permit.
    let is_of_node_1 = |tenant: &String| cluster.owner_of_shard(shard_of_slot(slot_of(tenant, ""), SHARDS)) == Some(1);
    let tenant = (0..).map(|n| format!("tenant-{n}")).find(is_of_node_1).unwrap();
    let spec = |name: &str| {
        let mut spec = JobSpec::new(&tenant, name, Trigger::Manual {});
        spec.retry_policy.max_attempts = 1;
        spec
    };
    // A pair whose message goes from node 1 to node 2.
    let mut pair = None;
    for n in 0.. {
        let refund = created(&cluster, spec(&format!("refund-{n}"))).await;
        let mut work = spec(&format!("work-{n}"));
        work.hooks.on_failure = vec![Hook::new(format!("refund-{n}"))];
        let work = created(&cluster, work).await;
        if (cluster.owner_of(work), cluster.owner_of(refund)) == (Some(1), Some(2)) {
            pair = Some((work, refund));
            break;
        }
    }
    let (work, refund) = pair.unwrap();
    cluster.deafen(2);
    let run = cluster.scheduler(1).trigger(work, TriggerBody::default()).await.unwrap().run_id;
    eventually("it has failed", || async {
        let run = cluster.scheduler(1).run(run).await.ok()?;
        (run.state == RunState::Failed).then_some(())
    })
    .await;
    // Node 2 can ask all shards: the message of node 1 waits.
    eventually("the message waits", || async {
        let page = cluster.scheduler(2).outbox(None, None, 100).await.ok()?;
        page.items.iter().any(|message| message.run_id == run).then_some(())
    })
    .await;
    assert!(cluster.scheduler(2).job_runs(refund, None, 10).await.unwrap().items.is_empty());
    cluster.hear_again(2);
    eventually("the hook has run", || async {
        let runs = cluster.scheduler(2).job_runs(refund, None, 10).await.ok()?.items;
        (runs.len() == 1 && runs[0].state == RunState::Success).then_some(())
    })
    .await;
    eventually("the message is settled", || async {
        cluster.scheduler(1).outbox(None, None, 100).await.ok()?.items.is_empty().then_some(())
    })
    .await;
    executor.drain(Duration::from_secs(2)).await;
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}
