//! Nodes whose wall clocks are wrong: due instants go on, and nothing is early, whosever clock it is.

use crate::{
    Bodies, every_second, is_ready, nothing_missed_and_nothing_doubled, says, spread, support,
    support::eventually,
    test_cluster::{SHARDS, TestCluster},
};
use campanile_client::{Context, Executor, ExecutorHandle, JobError};
use campanile_schema::payload::Payload;
use parking_lot::Mutex;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

async fn three_nodes() -> TestCluster {
    let mut cluster = TestCluster::with_gossip();
    for node in [1, 2, 3] {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    cluster
}

/// An executor with a clock that is right: it notes bodies that begin before they are due, by how many milliseconds.
fn executor(cluster: &TestCluster) -> (ExecutorHandle, Bodies, Arc<Mutex<Vec<i64>>>) {
    let (bodies, early) = (Bodies::default(), Arc::<Mutex<Vec<i64>>>::default());
    let (ran, noted) = (bodies.clone(), early.clone());
    let addresses: Vec<String> = [1, 2, 3].iter().map(|node| cluster.rpc(*node)).collect();
    let executor = Executor::builder(addresses.join(","), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(move |context: Context, _: Payload| {
            *ran.lock().entry(context.run_id()).or_default() += 1;
            let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
            let ahead_ms = context.logical_time().map_or(0, |due| due.0 - now_ms);
            if ahead_ms > 0 {
                noted.lock().push(ahead_ms);
            }
            async move { Ok::<_, JobError>(None) }
        })
        .build()
        .unwrap()
        .start();
    (executor, bodies, early)
}

/// The nodes own everything together, and the others nothing.
async fn only(cluster: &TestCluster, nodes: &[u64]) {
    eventually("shards on the nodes with right clocks only", || async {
        let owned = cluster.owned();
        let all = owned.values().sum::<usize>() == usize::from(SHARDS);
        (all && owned.keys().eq(nodes)).then_some(())
    })
    .await;
}

async fn stop(mut cluster: TestCluster) {
    for node in [1, 2, 3] {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_clock_is_wrong_gives_its_shards_away_and_takes_part_again_when_it_is_right() {
    let cluster = three_nodes().await;
    let (executor, bodies, early) = executor(&cluster);
    let jobs = every_second(&cluster, 1, 12).await;
    for (off_ms, how) in [(3_600_000, "ahead of"), (-90_000, "behind"), (10_000, "ahead of")] {
        cluster.set_clock(2, off_ms);
        says(&cluster, 2, &format!("{how} what most nodes of the cluster agree on")).await;
        only(&cluster, &[1, 3]).await;
        for node in [1, 3] {
            is_ready(&cluster, node).await;
        }
        nothing_missed_and_nothing_doubled(&cluster, 1, &jobs, &bodies, 5).await;
        cluster.set_clock(2, 0);
        spread(&cluster, 3).await;
        is_ready(&cluster, 2).await;
    }
    nothing_missed_and_nothing_doubled(&cluster, 2, &jobs, &bodies, 5).await;
    assert_eq!(*early.lock(), Vec::<i64>::new(), "bodies that began too early, ms");
    executor.drain(Duration::from_secs(2)).await;
    stop(cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_starts_with_a_wrong_clock_gets_nothing_until_it_is_right() {
    let mut cluster = TestCluster::with_gossip();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    for (off_ms, why) in [
        (3_600_000, "ahead of its clock; set the clock right"),
        (-3_600_000, "behind its clock; set the clock right"),
        (20_000, "ahead of what most nodes of the cluster agree on"),
    ] {
        cluster.start_off(3, off_ms).await;
        says(&cluster, 3, why).await;
        only(&cluster, &[1, 2]).await;
        for node in [1, 2] {
            is_ready(&cluster, node).await;
        }
        cluster.set_clock(3, 0);
        spread(&cluster, 3).await;
        is_ready(&cluster, 3).await;
        cluster.stop(3).await;
        only(&cluster, &[1, 2]).await;
    }
    for node in [1, 2] {
        cluster.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_never_agreed_go_on_each_by_its_own_clock() {
    let mut cluster = TestCluster::with_gossip();
    cluster.start(1).await;
    cluster.start_off(2, 20_000).await;
    spread(&cluster, 2).await;
    for node in [1, 2] {
        is_ready(&cluster, node).await;
        cluster.stop(node).await;
    }
}
