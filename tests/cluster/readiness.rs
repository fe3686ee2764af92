//! When a node says that it is ready, and what it says until then; and a store that is away for all of them.

use crate::{
    every_second, executor, is_ready, nothing_missed_and_nothing_doubled, says, spread,
    support::eventually,
    test_cluster::{SHARDS, TestCluster},
};
use campanile_schema::error::ErrorCode;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_ready_when_what_it_is_to_serve_has_come() {
    let mut cluster = TestCluster::new();
    cluster.start(1).await;
    is_ready(&cluster, 1).await;
    let served = |node: u64| cluster.scheduler(node).rows().unwrap().served.len();
    assert_eq!(served(1), usize::from(SHARDS));
    cluster.start(2).await;
    let mut told: Vec<String> = Vec::new();
    eventually("the second is ready", || {
        // In this order: it may come to rest in between.
        let (reasons, came) =
            (cluster.scheduler(2).not_ready_reasons(), cluster.scheduler(2).rows().unwrap().served.len());
        let of_first = cluster.scheduler(1).not_ready_reasons();
        assert_eq!(of_first, Vec::<String>::new(), "what leaves it is nothing to wait for");
        let ready = reasons.is_empty();
        told.extend(reasons);
        // `shards are on their way: 12 of 86 are served here`.
        let given = told.last().and_then(|reason| reason.split(" of ").nth(1)?.split(' ').next()?.parse().ok());
        assert!(!ready || given == Some(came), "ready with {came} shards: {told:?}");
        async move { ready.then_some(()) }
    })
    .await;
    assert!(told.iter().any(|reason| reason.starts_with("shards are on their way: ")), "{told:?}");
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_store_nodes_say_so_refuse_calls_and_go_on_by_themselves_when_it_is_back() {
    let mut cluster = TestCluster::new();
    for node in [1, 2, 3] {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    let (executor, bodies) = executor(&cluster, &[1, 2, 3]);
    let jobs = every_second(&cluster, 1, 12).await;
    nothing_missed_and_nothing_doubled(&cluster, 2, &jobs, &bodies, 2).await;
    cluster.cut_store(true);
    for node in [1, 2, 3] {
        says(&cluster, node, "the cluster's store does not answer: without a lease").await;
    }
    for node in [1, 2, 3] {
        let refused = cluster.scheduler(node).job(jobs[0]).await.unwrap_err();
        assert_eq!(refused.known(), ErrorCode::NotReady, "{refused}");
        assert!(refused.retry_after_sec.is_some(), "{refused}");
        assert!(refused.message.contains("store does not answer"), "{refused}");
    }
    cluster.cut_store(false);
    for node in [1, 2, 3] {
        is_ready(&cluster, node).await;
    }
    let before = cluster.scheduler(1).ledger(jobs[0], 0, i64::MAX / 2, 1000).await.unwrap().items.len();
    nothing_missed_and_nothing_doubled(&cluster, 3, &jobs, &bodies, before + 4).await;
    executor.drain(Duration::from_secs(2)).await;
    for node in [1, 2, 3] {
        cluster.stop(node).await;
    }
}
