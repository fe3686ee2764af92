//! Executors follow the cluster, and what nodes say of them is one list.

use crate::{executor, manual_jobs, run_each, spread, support, support::eventually, test_cluster::TestCluster};
use campanile_client::{Client, Executor};
use campanile_schema::{
    ids::JobId,
    record::RunState,
    view::{ExecutorState, MissingNode, TriggerBody},
};
use std::{collections::BTreeSet, time::Duration};

async fn caller(cluster: &TestCluster, node: u64) -> Client {
    Client::connect(cluster.rpc(node), support::TOKEN).await.unwrap()
}

async fn registered(executor: &campanile_client::ExecutorHandle, count: usize) {
    let ready = executor.wait_until(|status| status.registered == count);
    tokio::time::timeout(Duration::from_secs(60), ready).await.expect("hangs").unwrap();
}

/// Nodes that own one of these jobs.
fn owners(cluster: &TestCluster, jobs: &[JobId]) -> BTreeSet<u64> {
    jobs.iter().filter_map(|job| cluster.owner_of(*job)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_that_knows_one_node_works_for_all_and_for_those_that_come_later() {
    let mut cluster = TestCluster::new();
    for node in [1, 2, 3] {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    let (executor, bodies) = executor(&cluster, &[1]);
    registered(&executor, 3).await;
    let jobs = manual_jobs(&cluster, 1, 40).await;
    assert_eq!(owners(&cluster, &jobs), BTreeSet::from([1, 2, 3]));
    run_each(&cluster, 2, &jobs, "of three").await;

    cluster.start(4).await;
    registered(&executor, 4).await;
    spread(&cluster, 4).await;
    assert_eq!(owners(&cluster, &jobs), BTreeSet::from([1, 2, 3, 4]));
    run_each(&cluster, 1, &jobs, "of four").await;

    // The only one that it was given goes; the others are enough, and one of them that left is let go of.
    for node in [1, 2] {
        cluster.stop(node).await;
        registered(&executor, if node == 1 { 3 } else { 2 }).await;
    }
    spread(&cluster, 2).await;
    run_each(&cluster, 3, &jobs, "without those").await;
    assert_eq!(bodies.lock().values().copied().max(), Some(1));
    executor.drain(Duration::from_secs(2)).await;
    for node in [3, 4] {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_of_all_nodes_and_name_those_that_did_not_answer() {
    let mut cluster = TestCluster::new();
    for node in [1, 2, 3] {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    let (executor, _) = executor(&cluster, &[2]);
    registered(&executor, 3).await;
    let other = Executor::builder(cluster.rpc(3), support::TOKEN)
        .pool("special")
        .slots(2)
        .any_handler(|_, _| async { Ok(None) })
        .build()
        .unwrap()
        .start();
    registered(&other, 3).await;
    let jobs = manual_jobs(&cluster, 1, 30).await;
    let client = caller(&cluster, 1).await;
    let (one, special) = eventually("both are known to all nodes, with all their credit", || async {
        let list = client.executor_list().await.unwrap();
        assert_eq!(list.missing, []);
        let [a, b] = list.items.as_slice() else { return None };
        let (one, special) = if a.pools == ["default"] { (a, b) } else { (b, a) };
        ((one.credit, special.credit) == (8, 2)).then(|| (one.clone(), special.clone()))
    })
    .await;
    let nodes: Vec<&str> = one.nodes.iter().map(|at| at.node.as_str()).collect();
    assert_eq!(nodes, ["n1", "n2", "n3"]);
    assert_eq!(one.nodes.iter().map(|at| at.credit).sum::<u32>(), 8);
    assert_eq!((one.slots, one.state, special.slots), (8, ExecutorState::Ready, 2));
    let pools = client.pool_list().await.unwrap();
    let counted: Vec<_> = pools.items.iter().map(|pool| (pool.name.as_str(), pool.executors)).collect();
    assert_eq!(counted, [("default", 1), ("special", 1)]);
    let info = eventually("all jobs are counted", || async {
        let info = client.system_info().await.unwrap();
        (info.jobs == 30).then_some(info)
    })
    .await;
    assert_eq!((info.executors, info.missing.len()), (2, 0));
    let by_node: Vec<_> = info.nodes.iter().map(|node| node.node.as_str()).collect();
    assert_eq!(by_node, ["n1", "n2", "n3"]);
    assert!(info.nodes.iter().all(|node| node.ready && node.jobs < 30), "{info:?}");

    // What waits on any node is in the list of each.
    executor.drain(Duration::from_secs(2)).await;
    for job in &jobs {
        // Again after a take-over, which a busy machine has.
        let once = TriggerBody { manual_run_id: Some("waits".to_owned()), ..TriggerBody::default() };
        eventually("it is triggered", || async { cluster.scheduler(1).trigger(*job, once.clone()).await.ok() }).await;
    }
    let other_client = caller(&cluster, 3).await;
    eventually("all wait", || async {
        let pools = other_client.pool_list().await.unwrap().items;
        pools.iter().any(|pool| pool.name == "default" && pool.waiting == 30).then_some(())
    })
    .await;
    assert_eq!(other_client.system_info().await.unwrap().open_runs, 30);

    // A node that does not answer is named.
    cluster.cut_off(2);
    let silent = |missing: &[MissingNode]| missing.iter().map(|one| one.node.clone()).collect::<Vec<_>>() == ["n2"];
    let (list, pools) = (client.executor_list().await.unwrap(), client.pool_list().await.unwrap());
    assert!(silent(&list.missing), "{list:?}");
    assert!(silent(&pools.missing), "{pools:?}");
    assert!(!pools.missing[0].reason.is_empty(), "{pools:?}");
    let info = client.system_info().await.unwrap();
    assert!(silent(&info.missing), "{info:?}");
    assert_eq!(info.nodes.len(), 2, "{info:?}");
    cluster.reconnect(2);
    spread(&cluster, 3).await;
    eventually("all are counted again", || async {
        let info = client.system_info().await.unwrap();
        assert_eq!(info.missing, []);
        // Jobs of a shard that is on its way between two nodes are counted at neither.
        (info.jobs == 30).then_some(())
    })
    .await;
    for job in jobs {
        for run in cluster.scheduler(1).job_runs(job, None, 10).await.unwrap().items {
            if run.state != RunState::Success {
                cluster.scheduler(1).cancel_run(run.run_id, None).await.unwrap();
            }
        }
    }
    other.drain(Duration::from_secs(2)).await;
    for node in [1, 2, 3] {
        cluster.stop(node).await;
    }
}
