//! Pauses of a tenant and of all: the last change that was acknowledged counts in every shard, whichever clock is ahead, whatever shards do
//! meanwhile, and whoever dies.

use crate::{
    spread,
    support::{TOKEN, eventually},
    test_cluster::{SHARDS, TestCluster},
};
use campanile_schema::{
    error::ErrorCode,
    ids::{JobId, ShardId, shard_of_slot, slot_of},
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    view::{Spread, TriggerBody},
};
use std::{collections::BTreeMap, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A job of the tenant in each shard.
async fn a_job_in_each_shard(cluster: &TestCluster, node: u64, tenant: &str) -> BTreeMap<ShardId, JobId> {
    let mut jobs = BTreeMap::new();
    for n in 0.. {
        let name = format!("job-{n}");
        let shard = shard_of_slot(slot_of(tenant, &name), SHARDS);
        if let std::collections::btree_map::Entry::Vacant(place) = jobs.entry(shard) {
            let mut spec = JobSpec::new(tenant, &name, Trigger::Manual {});
            spec.concurrency_policy = ConcurrencyPolicy::Allow;
            let create = || async { cluster.scheduler(node).create_job(spec.clone(), Some(name.clone())).await.ok() };
            place.insert(eventually("it is created", create).await.job_id);
        }
        if jobs.len() == usize::from(SHARDS) {
            break;
        }
    }
    jobs
}

/// A tenant whose home shard this node has.
fn at_home_at(cluster: &TestCluster, node: u64) -> String {
    let is_home = |tenant: &String| cluster.owner_of_shard(shard_of_slot(slot_of(tenant, ""), SHARDS)) == Some(node);
    (0..).map(|n| format!("tenant-{n}")).find(is_home).unwrap()
}

/// Shards that take a trigger by this node, and not those that say that it is paused.
async fn at_work(cluster: &TestCluster, node: u64, jobs: &BTreeMap<ShardId, JobId>) -> Vec<u16> {
    let mut at_work = Vec::new();
    for (shard, job) in jobs {
        let trigger = || async {
            match cluster.scheduler(node).trigger(*job, TriggerBody::default()).await {
                Ok(run) => {
                    // So that they do not become many. One whose answer is lost does no harm.
                    let _ = cluster.scheduler(node).cancel_run(run.run_id, None).await;
                    Some(true)
                }
                Err(error) if error.known() == ErrorCode::JobPaused => Some(false),
                Err(_) => None,
            }
        };
        if eventually("the shard answers", trigger).await {
            at_work.push(shard.0);
        }
    }
    at_work
}

/// Asked until it is known to be kept: without an answer nobody knows.
async fn set(cluster: &TestCluster, node: u64, tenant: Option<&str>, paused: bool) -> Spread {
    eventually("it is kept", || async { cluster.scheduler(node).set_paused(tenant, paused, None).await.ok() }).await
}

async fn come_to_be(cluster: &TestCluster, node: u64, jobs: &BTreeMap<ShardId, JobId>, paused: bool) {
    let wanted = if paused { 0 } else { jobs.len() };
    eventually("all shards hold the last change", || async {
        (at_work(cluster, node, jobs).await.len() == wanted).then_some(())
    })
    .await;
}

/// Status and body of the answer.
async fn post(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: 0\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

async fn stop(mut cluster: TestCluster, nodes: &[u64]) {
    for node in nodes {
        cluster.stop(*node).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_is_not_lost_to_a_pause_by_a_node_whose_clock_is_ahead() {
    let mut cluster = TestCluster::new();
    // Not so far that the others would not believe it.
    cluster.start_off(1, 1_900).await;
    cluster.start(2).await;
    spread(&cluster, 2).await;
    let jobs = a_job_in_each_shard(&cluster, 1, "acme").await;
    for tenant in [Some("acme"), None] {
        assert_eq!(set(&cluster, 1, tenant, true).await, Spread::default());
        assert_eq!(at_work(&cluster, 2, &jobs).await, [0; 0], "{tenant:?}");
        assert_eq!(set(&cluster, 2, tenant, false).await, Spread::default());
        assert_eq!(at_work(&cluster, 1, &jobs).await.len(), jobs.len(), "{tenant:?}: the resume was acknowledged");
    }
    stop(cluster, &[1, 2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_holds_everywhere_although_shards_move_while_it_is_made() {
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let jobs = a_job_in_each_shard(&cluster, 1, "acme").await;
    // A third of the shards begin to move to it.
    cluster.start(3).await;
    for (node, paused) in [(1, true), (3, false), (2, true)] {
        set(&cluster, node, Some("acme"), paused).await;
        come_to_be(&cluster, node, &jobs, paused).await;
    }
    spread(&cluster, 3).await;
    assert_eq!(at_work(&cluster, 1, &jobs).await, [0; 0]);
    cluster.stop(2).await;
    set(&cluster, 1, Some("acme"), false).await;
    come_to_be(&cluster, 3, &jobs, false).await;
    cluster.start(2).await;
    set(&cluster, 3, None, true).await;
    come_to_be(&cluster, 1, &jobs, true).await;
    stop(cluster, &[1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_outstanding_is_named_and_goes_on_by_itself_also_when_the_node_that_was_asked_dies() {
    let mut cluster = TestCluster::new();
    for node in [1, 2, 3] {
        cluster.start(node).await;
    }
    spread(&cluster, 3).await;
    let tenant = at_home_at(&cluster, 1);
    let jobs = a_job_in_each_shard(&cluster, 1, &tenant).await;
    cluster.deafen(2);
    let deaf: Vec<u16> = (0..SHARDS).filter(|shard| cluster.owner_of_shard(ShardId(*shard)) == Some(2)).collect();
    let Spread { outstanding } = set(&cluster, 1, Some(&tenant), true).await;
    // Others may be late as well on a busy machine.
    assert!(deaf.iter().all(|shard| outstanding.contains(shard)), "{outstanding:?}: all of {deaf:?} cannot be asked");
    eventually("the shards that cannot be asked go on", || async {
        (at_work(&cluster, 2, &jobs).await == deaf).then_some(())
    })
    .await;
    // Only its home shard knows what is to be done, and who served it is gone.
    cluster.cut_off(1);
    eventually("two nodes own everything", || async {
        let owned = cluster.owned();
        (!owned.contains_key(&1) && owned.values().sum::<usize>() == usize::from(SHARDS)).then_some(())
    })
    .await;
    cluster.hear_again(2);
    come_to_be(&cluster, 3, &jobs, true).await;

    // The same without a death, as callers of HTTP are told, and with a newer change in its place.
    spread(&cluster, 2).await;
    let tenant = at_home_at(&cluster, 3);
    let jobs = a_job_in_each_shard(&cluster, 3, &tenant).await;
    assert_eq!(set(&cluster, 2, Some(&tenant), true).await, Spread::default());
    cluster.deafen(2);
    let deaf: Vec<u16> = (0..SHARDS).filter(|shard| cluster.owner_of_shard(ShardId(*shard)) == Some(2)).collect();
    let path = format!("/api/v1/tenants/{tenant}/resume");
    assert_eq!(post(cluster.http(3), &path).await, (202, serde_json::json!({"outstanding": deaf}).to_string()));
    assert_eq!(at_work(&cluster, 2, &jobs).await.len(), jobs.len() - deaf.len());
    assert_eq!(set(&cluster, 3, Some(&tenant), true).await.outstanding, deaf);
    cluster.hear_again(2);
    come_to_be(&cluster, 2, &jobs, true).await;
    assert_eq!(post(cluster.http(3), &path).await, (204, String::new()));
    come_to_be(&cluster, 2, &jobs, false).await;
    stop(cluster, &[2, 3]).await;
}
