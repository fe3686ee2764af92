//! DAGs whose nodes are on both nodes of a cluster, while shards move and a node comes and goes: each node runs once, in order.

use crate::{
    spread,
    support::{self, eventually},
    test_cluster::{SHARDS, TestCluster},
};
use campanile_client::{Context, Executor, JobError};
use campanile_schema::{
    graph::{EdgeSpec, GraphSpec, NodeSpec},
    ids::{JobId, RunId, ShardId, shard_of_slot, slot_of},
    job::{Action, ConcurrencyPolicy, JobSpec, Trigger},
    limits::GATEWAY_MESSAGE_BYTES,
    payload::Payload,
    record::RunState,
    view::{JobFilter, RunView, TriggerBody},
};
use std::{collections::BTreeMap, time::Duration};

/// DAGs of three nodes each: enough for pairs of many shards.
const DAGS: usize = 8;
const ROUNDS: usize = 3;
const NODES: [&str; 3] = ["a", "b", "c"];
/// The clocks of two nodes may differ by so much, milliseconds.
const CLOCKS_MS: i64 = 100;

async fn created(cluster: &TestCluster, spec: JobSpec) -> JobId {
    let create = || async { cluster.scheduler(1).create_job(spec.clone(), Some(spec.name.clone())).await.ok() };
    eventually("it is created", create).await.job_id
}

fn spec(name: &str) -> JobSpec {
    let mut spec = JobSpec::new("default", name, Trigger::Manual {});
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    spec
}

/// The runs of a job, once there are so many and all have succeeded.
async fn succeeded(cluster: &TestCluster, job: JobId, count: usize) -> Vec<RunView> {
    let all = |runs: &Vec<RunView>| runs.len() >= count && runs.iter().all(|run| run.state == RunState::Success);
    let look = || async { Some(cluster.scheduler(1).job_runs(job, None, 1000).await.ok()?.items).filter(all) };
    eventually("all have succeeded", look).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_node_runs_once_wherever_its_job_is_and_whoever_comes_and_goes() {
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let executor = Executor::builder([cluster.rpc(1), cluster.rpc(2)].join(","), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(|_: Context, _: Payload| async move { Ok::<_, JobError>(None) })
        .build()
        .unwrap()
        .start();
    let mut dags = Vec::new();
    for n in 0..DAGS {
        let mut of_nodes = Vec::new();
        for name in NODES {
            of_nodes.push(created(&cluster, spec(&format!("{name}-{n}"))).await);
        }
        let nodes = NODES.iter().map(|name| NodeSpec::new(name, &format!("{name}-{n}"))).collect();
        let edges = vec![EdgeSpec::new("a", "b"), EdgeSpec::new("b", "c")];
        let mut dag = spec(&format!("dag-{n}"));
        dag.action = Some(Action::Dag(GraphSpec::new(nodes, edges)));
        dags.push((created(&cluster, dag).await, of_nodes));
    }
    for round in 0..ROUNDS {
        for (dag, _) in &dags {
            let body = || TriggerBody { manual_run_id: Some(format!("round-{round}")), ..TriggerBody::default() };
            eventually("it is triggered", || async { cluster.scheduler(1).trigger(*dag, body()).await.ok() }).await;
        }
        // Its shards go to node 1 and come back, with open DAG runs and messages that are not settled.
        cluster.restart(2).await;
        spread(&cluster, 2).await;
    }
    for (dag, of_nodes) in dags {
        let runs = succeeded(&cluster, dag, ROUNDS).await;
        let mut ends: BTreeMap<RunId, i64> = runs.iter().map(|run| (run.run_id, i64::MIN)).collect();
        for job in of_nodes {
            let of_job = succeeded(&cluster, job, ROUNDS).await;
            assert_eq!(of_job.len(), ROUNDS, "none twice");
            for run in of_job {
                let before = ends.get_mut(&run.dag_run_id.unwrap()).unwrap();
                assert!(*before <= run.created_at.ms() + CLOCKS_MS, "it was made before its parent had ended: {run:?}");
                *before = run.ended_at.unwrap().ms();
            }
        }
    }
    executor.drain(Duration::from_secs(2)).await;
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}

/// A list of them takes more than one message between nodes may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_dags_of_one_shard_are_listed_by_a_node_that_does_not_own_it() {
    const LARGE: usize = 60 << 10;
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let shard = (0..SHARDS).map(ShardId).find(|shard| cluster.owner_of_shard(*shard) == Some(2)).unwrap();
    let of_shard = (0..).map(|n| format!("dag-{n}"));
    let names: Vec<String> =
        of_shard.filter(|name| shard_of_slot(slot_of("default", name), SHARDS) == shard).take(4).collect();
    created(&cluster, spec("one")).await;
    let node = |n: usize| {
        let mut node = NodeSpec::new(&format!("n{n}"), "one");
        node.params = Payload(format!(r#"{{"text":"{}"}}"#, "x".repeat(LARGE)));
        node
    };
    let graph = GraphSpec::new((0..8).map(node).collect(), Vec::new());
    assert!(names.len() * graph.nodes.len() * LARGE > GATEWAY_MESSAGE_BYTES);
    for name in &names {
        let mut dag = spec(name);
        dag.action = Some(Action::Dag(graph.clone()));
        created(&cluster, dag).await;
    }
    for size in [1, 3, 100] {
        let (mut listed, mut token) = (Vec::new(), None);
        loop {
            let filter = JobFilter { page_size: Some(size), page_token: token, ..JobFilter::default() };
            let page = cluster.scheduler(1).jobs(filter).await.unwrap();
            listed.extend(page.items.into_iter().map(|job| job.spec.name));
            token = page.next_page_token;
            if token.is_none() {
                break;
            }
        }
        listed.sort();
        let mut wanted = [&names[..], &["one".to_owned()]].concat();
        wanted.sort();
        assert_eq!(listed, wanted, "{size} a page");
    }
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}
