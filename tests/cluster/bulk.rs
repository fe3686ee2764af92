//! A bulk operation goes on where its home shard is served next, with items in shards of all nodes: each item is done once.

use crate::{
    spread,
    support::{eventually, now_ms},
    test_cluster::{SHARDS, TestCluster},
};
use campanile_schema::{
    ids::{BulkId, JobId, shard_of_slot, slot_of},
    job::{ConcurrencyPolicy, JobSpec, JobStatus, Trigger},
    stored::bulk::{BulkAction, BulkState, StoredBulk},
    view::bulk::BulkView,
};

/// Some in each shard, and more than a page in all.
const JOBS: usize = 240;

/// A tenant whose home shard this node has.
fn at_home_at(cluster: &TestCluster, node: u64) -> String {
    let is_home = |tenant: &String| cluster.owner_of_shard(shard_of_slot(slot_of(tenant, ""), SHARDS)) == Some(node);
    (0..).map(|n| format!("tenant-{n}")).find(is_home).unwrap()
}

async fn created(cluster: &TestCluster, tenant: &str) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for n in 0..JOBS {
        let mut spec = JobSpec::new(tenant, &format!("job-{n}"), Trigger::Manual {});
        spec.concurrency_policy = ConcurrencyPolicy::Allow;
        let create = || async { cluster.scheduler(1).create_job(spec.clone(), Some(spec.name.clone())).await.ok() };
        jobs.push(eventually("it is created", create).await.job_id);
    }
    jobs
}

async fn begun(cluster: &TestCluster, tenant: &str, action: BulkAction) -> BulkId {
    let asked = StoredBulk { action, tenant: Some(tenant.into()), ..StoredBulk::default() };
    let view = cluster.scheduler(1).create_bulk(asked, false).await.unwrap();
    assert_eq!(view.matched, JOBS as u64, "{view:?}");
    view.bulk_id.unwrap()
}

fn seen(view: &BulkView) -> u64 {
    view.done + view.unchanged + view.failed
}

async fn progressed(cluster: &TestCluster, node: u64, id: BulkId, to: u64) {
    let look = || async { (seen(&cluster.scheduler(node).bulk(id).await.ok()?) >= to).then_some(()) };
    eventually("it goes on", look).await;
}

async fn done(cluster: &TestCluster, node: u64, id: BulkId) -> BulkView {
    let look = || async {
        let view = cluster.scheduler(node).bulk(id).await.ok()?;
        (view.state == Some(BulkState::Done)).then_some(view)
    };
    eventually("it is done", look).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_of_all_nodes_are_done_once_whoever_is_cut_off_or_comes_and_goes() {
    let mut cluster = TestCluster::new();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    // Node 2 carries it on, and leaves in the middle: its shards go to node 1 and come back.
    let tenant = at_home_at(&cluster, 2);
    let jobs = created(&cluster, &tenant).await;
    let id = begun(&cluster, &tenant, BulkAction::Trigger).await;
    progressed(&cluster, 1, id, 1).await;
    cluster.restart(2).await;
    let triggered = done(&cluster, 1, id).await;
    assert_eq!((triggered.done, triggered.unchanged, triggered.failed), (JOBS as u64, 0, 0), "{triggered:?}");
    spread(&cluster, 2).await;
    for job in &jobs {
        let look = || async { cluster.scheduler(2).job(*job).await.ok() };
        assert_eq!(eventually("it is told", look).await.run_count, 1, "job {job} has one run");
    }
    // The node that carries it on cannot reach the others for a while, nor they the node.
    let before = now_ms();
    let id = begun(&cluster, &tenant, BulkAction::Pause).await;
    progressed(&cluster, 1, id, 1).await;
    cluster.cut_off(2);
    let look = || async { (cluster.owned().get(&1) == Some(&usize::from(SHARDS))).then_some(()) };
    eventually("node 1 takes all shards over", look).await;
    let paused = done(&cluster, 1, id).await;
    assert_eq!((paused.done, paused.unchanged, paused.failed), (JOBS as u64, 0, 0), "{paused:?}");
    cluster.reconnect(2);
    spread(&cluster, 2).await;
    for job in &jobs {
        let look = || async { cluster.scheduler(2).job(*job).await.ok() };
        let view = eventually("it is told", look).await;
        assert_eq!(view.status, JobStatus::Paused);
        assert!(view.updated_at.ms() >= before, "{view:?}");
    }
    // Its undo goes on too, while shards go to the other node and come back.
    let undo = || async { cluster.scheduler(1).undo_bulk(id, None).await.ok()?.bulk_id };
    let undo = eventually("it is undone", undo).await;
    progressed(&cluster, 1, undo, 1).await;
    cluster.restart(2).await;
    let undone = done(&cluster, 1, undo).await;
    assert_eq!((undone.done, undone.unchanged, undone.failed), (JOBS as u64, 0, 0), "{undone:?}");
    spread(&cluster, 2).await;
    for job in &jobs {
        let look = || async { cluster.scheduler(2).job(*job).await.ok() };
        assert_eq!(eventually("it is told", look).await.status, JobStatus::Enabled);
    }
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}
