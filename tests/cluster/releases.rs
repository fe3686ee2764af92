//! Nodes of two releases side by side: the later one knows formats that the earlier one does not.

use crate::{
    every_second, executor, is_ready, manual_jobs, nothing_missed_and_nothing_doubled, run_each, spread,
    support::eventually,
    test_cluster::{SHARDS, TestCluster},
};
use campanile_ports::Leases;
use campanile_schema::{
    error::ErrorCode,
    format::Formats,
    job::{Hook, JobSpec, Trigger},
};
use std::time::Duration;

/// Of the release after this one.
const LATER: Formats = Formats { event: Formats::OURS.event + 1, wire: Formats::OURS.wire + 1 };

async fn written(cluster: &TestCluster) -> Formats {
    cluster.end().formats().await.unwrap()
}

async fn three_nodes() -> TestCluster {
    let mut cluster = TestCluster::new();
    for node in [1, 2, 3] {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_misses_nothing_and_the_way_back_is_refused_in_words() {
    let mut cluster = three_nodes().await;
    let (executor, bodies) = executor(&cluster, &[1, 2, 3]);
    let jobs = every_second(&cluster, 1, 12).await;
    let manual = manual_jobs(&cluster, 1, 12).await;
    for node in [1, 2, 3] {
        assert_eq!(written(&cluster).await, Formats::OURS, "a node of the earlier release lives");
        cluster.replace(node, LATER).await.unwrap();
        spread(&cluster, 3).await;
        // Asked here, owned there, both ways.
        for asked in [1, 2, 3] {
            run_each(&cluster, asked, &manual, &format!("{node} is new, {asked} is asked")).await;
        }
    }
    eventually("all read the later formats, so they are written", || async {
        (written(&cluster).await == LATER).then_some(())
    })
    .await;
    nothing_missed_and_nothing_doubled(&cluster, 2, &jobs, &bodies, 5).await;
    // What is written now is read by those that take it over.
    run_each(&cluster, 1, &manual, "later").await;
    cluster.replace(2, LATER).await.unwrap();
    spread(&cluster, 3).await;
    nothing_missed_and_nothing_doubled(&cluster, 2, &jobs, &bodies, 10).await;

    let refused = cluster.replace(3, Formats::OURS).await.unwrap_err();
    let why =
        "written in event format 3 / wire format 2; this release knows 2 / 1. Start a release that is at least as new";
    assert!(refused.contains(why), "{refused}");
    spread(&cluster, 2).await;
    for node in [1, 2] {
        is_ready(&cluster, node).await;
    }
    nothing_missed_and_nothing_doubled(&cluster, 1, &jobs, &bodies, 10).await;
    executor.drain(Duration::from_secs(2)).await;
    for node in [1, 2] {
        cluster.stop(node).await;
    }
}

/// Before messages between jobs.
const EARLIER: Formats = Formats { event: 1, wire: 1 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_the_first_format_is_raised_when_its_last_node_of_that_release_is_replaced() {
    let mut cluster = TestCluster::of_formats(EARLIER);
    for node in [1, 2] {
        cluster.start_later(node, EARLIER).await;
    }
    spread(&cluster, 2).await;
    cluster.replace(1, Formats::OURS).await.unwrap();
    spread(&cluster, 2).await;
    assert_eq!(written(&cluster).await, EARLIER, "node 2 cannot read more");
    let mut hooked = JobSpec::new("default", "hooked", Trigger::Manual {});
    hooked.hooks.on_failure = vec![Hook::new("refund")];
    let refused = cluster.scheduler(1).create_job(hooked.clone(), None).await.unwrap_err();
    assert_eq!(refused.known(), ErrorCode::UpgradeUnderWay, "{refused}");
    cluster.replace(2, Formats::OURS).await.unwrap();
    spread(&cluster, 2).await;
    eventually("both read the second format, so it is written", || async {
        (written(&cluster).await == Formats::OURS).then_some(())
    })
    .await;
    eventually("a job with a hook is taken", || async {
        cluster.scheduler(1).create_job(hooked.clone(), Some("hooked".to_owned())).await.ok()
    })
    .await;
    let refused = cluster.replace(1, EARLIER).await.unwrap_err();
    assert!(refused.contains("written in event format 2 / wire format 1; this release knows 1 / 1"), "{refused}");
    cluster.stop(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_release_that_runs_while_formats_are_raised_says_so_and_leaves_its_shards() {
    let mut cluster = TestCluster::new();
    cluster.start(1).await;
    spread(&cluster, 1).await;
    cluster.end().raise_formats(LATER).await.unwrap();
    eventually("the node says why it has no session", || async {
        let reasons = cluster.scheduler(1).not_ready_reasons();
        reasons.iter().any(|reason| reason.contains("written in event format 3")).then_some(())
    })
    .await;
    cluster.start_later(2, LATER).await;
    eventually("the later release has everything", || async {
        (cluster.owned().get(&2) == Some(&usize::from(SHARDS))).then_some(())
    })
    .await;
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}
