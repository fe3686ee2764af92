//! Nodes of two releases side by side: the later one knows formats that the earlier one does not.

use crate::{
    every_second, executor, is_ready, manual_jobs, nothing_missed_and_nothing_doubled, run_each, spread,
    support::eventually,
    town::{SHARDS, Town},
};
use campanile_ports::Leases;
use campanile_schema::format::Formats;
use std::time::Duration;

/// Of the release after this one.
const LATER: Formats = Formats { event: Formats::OURS.event + 1, wire: Formats::OURS.wire + 1 };

async fn written(town: &Town) -> Formats {
    town.end().formats().await.unwrap()
}

async fn three_nodes() -> Town {
    let mut town = Town::new();
    for node in [1, 2, 3] {
        town.start(node).await;
    }
    spread(&town, 3).await;
    town
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_misses_nothing_and_the_way_back_is_refused_in_words() {
    let mut town = three_nodes().await;
    let (executor, bodies) = executor(&town, &[1, 2, 3]);
    let jobs = every_second(&town, 1, 12).await;
    let manual = manual_jobs(&town, 1, 12).await;
    for node in [1, 2, 3] {
        assert_eq!(written(&town).await, Formats::OURS, "a node of the earlier release lives");
        town.replace(node, LATER).await.unwrap();
        spread(&town, 3).await;
        // Asked here, owned there, both ways.
        for asked in [1, 2, 3] {
            run_each(&town, asked, &manual, &format!("{node} is new, {asked} is asked")).await;
        }
    }
    eventually("all read the later formats, so they are written", || async {
        (written(&town).await == LATER).then_some(())
    })
    .await;
    nothing_missed_and_nothing_doubled(&town, 2, &jobs, &bodies, 5).await;
    // What is written now is read by those that take it over.
    run_each(&town, 1, &manual, "later").await;
    town.replace(2, LATER).await.unwrap();
    spread(&town, 3).await;
    nothing_missed_and_nothing_doubled(&town, 2, &jobs, &bodies, 10).await;

    let refused = town.replace(3, Formats::OURS).await.unwrap_err();
    let why =
        "written in event format 2 / wire format 2; this release knows 1 / 1. Start a release that is at least as new";
    assert!(refused.contains(why), "{refused}");
    spread(&town, 2).await;
    for node in [1, 2] {
        is_ready(&town, node).await;
    }
    nothing_missed_and_nothing_doubled(&town, 1, &jobs, &bodies, 10).await;
    executor.drain(Duration::from_secs(2)).await;
    for node in [1, 2] {
        town.stop(node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_release_that_runs_while_formats_are_raised_says_so_and_leaves_its_shards() {
    let mut town = Town::new();
    town.start(1).await;
    spread(&town, 1).await;
    town.end().raise_formats(LATER).await.unwrap();
    eventually("the node says why it has no session", || async {
        let reasons = town.scheduler(1).not_ready_reasons();
        reasons.iter().any(|reason| reason.contains("written in event format 2")).then_some(())
    })
    .await;
    town.start_later(2, LATER).await;
    eventually("the later release has everything", || async {
        (town.owned().get(&2) == Some(&usize::from(SHARDS))).then_some(())
    })
    .await;
    for node in [2, 1] {
        town.stop(node).await;
    }
}
