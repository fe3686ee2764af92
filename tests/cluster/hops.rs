//! Calls that go to the wrong node, and calls that are too large for one message between nodes.

use crate::{
    spread,
    test_cluster::{SHARDS, TestCluster},
};
use campanile_core::job::Claimant;
use campanile_schema::{
    error::ErrorCode,
    ids::{ExecutorSession, JobId, RunId, SLOTS, ShardId, Token, shard_of_slot, slot_of},
    job::{JobSpec, Trigger},
    limits::{CALL_PART_BYTES, GATEWAY_MESSAGE_BYTES, PARAMS_BYTES, RESULT_BYTES},
    payload::Payload,
    record::AttemptState,
    rpc::executor::{Ended, Finish, FinishOutcome},
};
use std::sync::Arc;

async fn cluster(nodes: &[u64]) -> TestCluster {
    let mut cluster = TestCluster::new();
    for node in nodes {
        cluster.start(*node).await;
    }
    spread(&cluster, nodes.len()).await;
    cluster
}

async fn stop(mut cluster: TestCluster, nodes: &[u64]) {
    for node in nodes {
        cluster.stop(*node).await;
    }
}

fn owned_by(cluster: &TestCluster, node: u64) -> ShardId {
    (0..SHARDS).map(ShardId).find(|shard| cluster.owner_of_shard(*shard) == Some(node)).unwrap()
}

/// Jobs of one shard.
fn specs(shard: ShardId, count: usize) -> Vec<JobSpec> {
    let names = (0..).map(|n| format!("job-{n}"));
    let here = names.filter(|name| shard_of_slot(slot_of("default", name), SHARDS) == shard);
    here.take(count).map(|name| JobSpec::new("default", &name, Trigger::Manual {})).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_to_a_node_that_is_not_the_owner_is_made_again_by_the_asker_and_goes_no_further() {
    let cluster = cluster(&[1, 2, 3]).await;
    let shard = owned_by(&cluster, 2);
    let job = cluster.scheduler(1).create_job(specs(shard, 1).remove(0), None).await.unwrap().job_id;
    // A read, and a change.
    cluster.lead_astray(shard, 3, 2);
    assert_eq!(cluster.scheduler(1).job(job).await.unwrap().job_id, job);
    assert_eq!(cluster.hops(), [(1, 3), (1, 3), (1, 2)]);
    cluster.lead_astray(shard, 3, 1);
    cluster.scheduler(1).pause_job(job, None).await.unwrap();
    assert_eq!(cluster.hops(), [(1, 3), (1, 2), (1, 2)], "the change, and the job as it is read then");
    // Who never learns better gives up, and nobody sends it on.
    cluster.lead_astray(shard, 3, usize::MAX);
    let refused = cluster.scheduler(1).job(job).await.unwrap_err();
    assert_eq!(refused.known(), ErrorCode::NotReady, "{refused}");
    assert!(refused.retry_after_sec.is_some());
    let hops = cluster.hops();
    assert!((2..=200).contains(&hops.len()), "{hops:?}");
    assert!(hops.iter().all(|hop| *hop == (1, 3)), "{hops:?}");
    cluster.lead_astray(shard, 3, 0);
    assert_eq!(cluster.scheduler(3).job(job).await.unwrap().job_id, job);
    stop(cluster, &[1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_jobs_for_a_shard_of_another_node_are_made_however_large_they_are() {
    let cluster = cluster(&[1, 2]).await;
    let shard = owned_by(&cluster, 2);
    let large = Payload::from_value(&serde_json::json!({"text": "x".repeat(PARAMS_BYTES - 100)}));
    let count = GATEWAY_MESSAGE_BYTES / PARAMS_BYTES + 4;
    let mut specs = specs(shard, count);
    specs.iter_mut().for_each(|spec| spec.params = large.clone());
    specs.push(specs[0].clone());
    let answers = cluster.scheduler(1).create_jobs(specs).await;
    let (last, first) = answers.split_last().unwrap();
    let made: Vec<JobId> = first.iter().map(|made| made.as_ref().unwrap().job_id).collect();
    assert_eq!(last.as_ref().unwrap_err().known(), ErrorCode::DuplicateName, "the first of one name is made");
    for job in made {
        assert_eq!(job.shard(SHARDS), shard);
        assert_eq!(cluster.scheduler(2).job(job).await.unwrap().spec.params, large);
    }
    stop(cluster, &[1, 2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_for_a_shard_of_another_node_come_there_however_large_they_are() {
    let cluster = cluster(&[1, 2]).await;
    let shard = owned_by(&cluster, 2);
    let large = Payload::from_value(&serde_json::json!({"text": "x".repeat(RESULT_BYTES - 100)}));
    let ended = |n: u64| Ended {
        run: RunId(n * SLOTS + u64::from(shard.0)),
        job: JobId(SLOTS + u64::from(shard.0)),
        token: Token(n),
        state: AttemptState::Success,
        error_code: None,
        error_message: None,
        result: Some(large.clone()),
        cpu_ms: None,
        max_rss_kb: None,
        permanent: false,
    };
    let count = 3 * GATEWAY_MESSAGE_BYTES / RESULT_BYTES;
    assert!(count > 2 * CALL_PART_BYTES / RESULT_BYTES);
    let items: Vec<Ended> = (1..=count as u64).map(ended).collect();
    assert!(items.iter().all(|ended| ended.run.shard(SHARDS) == shard));
    let finish = Finish { items, credit: None };
    let by = Arc::new(Claimant { session: ExecutorSession(1), credential: "x".into(), pools: None });
    let finished = cluster.scheduler(1).executor_finish(&by, finish).await.unwrap();
    // Nobody knows these runs any more: what came back in vain would be sent again for ever.
    assert_eq!(finished.outcomes, vec![FinishOutcome::Stale; count]);
    stop(cluster, &[1, 2]).await;
}
