//! Bulk operations that have not ended move with the directory of a node alone into the store of a cluster, and go on there.

use crate::{
    migrate::moved,
    spread,
    support::{TestNode, eventually},
    test_cluster::TestCluster,
};
use campanile_actors::scheduler::Scheduler;
use campanile_schema::{
    ids::BulkId,
    job::{JobSpec, JobStatus, Trigger},
    stored::bulk::{BulkAction, BulkState, StoredBulk, StoredBulkFilter},
    view::{JobFilter, bulk::BulkView},
};

/// Five pages, and a part of one.
const PAUSED: usize = 340;
const HELD: usize = 20;
const HOUR_MS: i64 = 3_600_000;

async fn created(scheduler: &Scheduler, tenant: &str, count: usize) {
    for n in 0..count {
        scheduler.create_job(JobSpec::new(tenant, &format!("job-{n}"), Trigger::Manual {}), None).await.unwrap();
    }
}

async fn begun(scheduler: &Scheduler, asked: StoredBulk) -> BulkId {
    scheduler.create_bulk(asked, false).await.unwrap().bulk_id.unwrap()
}

async fn until(scheduler: &Scheduler, id: BulkId, state: BulkState) -> BulkView {
    let look = || async { scheduler.bulk(id).await.ok().filter(|view| view.state == Some(state)) };
    eventually(&format!("bulk operation {id} is {state}"), look).await
}

async fn with_status(scheduler: &Scheduler, tenant: &str, status: JobStatus) -> usize {
    let filter = JobFilter {
        tenant_id: Some(tenant.to_owned()),
        status: Some(status),
        page_size: Some(1_000),
        ..JobFilter::default()
    };
    scheduler.jobs(filter).await.unwrap().items.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_that_have_not_ended_move_with_the_directory_and_count_each_item_once() {
    let node = TestNode::start().await;
    let scheduler = node.scheduler();
    created(scheduler, "paused", PAUSED).await;
    created(scheduler, "held", HELD).await;
    let of = |action, tenant: &str| StoredBulk { action, tenant: Some(tenant.into()), ..StoredBulk::default() };
    let held = begun(scheduler, StoredBulk { grace_ms: Some(HOUR_MS), ..of(BulkAction::Delete, "held") }).await;
    assert_eq!(until(scheduler, held, BulkState::Waiting).await.done, HELD as u64);
    // What it has paused does not fit its filter any more.
    let filter = StoredBulkFilter { status: Some(JobStatus::Enabled.code()), ..StoredBulkFilter::default() };
    let pause = begun(scheduler, StoredBulk { filter, ..of(BulkAction::Pause, "paused") }).await;
    eventually("it has begun", || async { (scheduler.bulk(pause).await.unwrap().done > 0).then_some(()) }).await;
    let (dir, _keep) = (node.dir(), node.dir_handle());
    node.stop().await;

    let mut cluster = TestCluster::new();
    moved(dir, cluster.end()).await.unwrap();
    for node in [1, 2] {
        cluster.start(node).await;
    }
    spread(&cluster, 2).await;
    let scheduler = cluster.scheduler(2);
    let done = until(scheduler, pause, BulkState::Done).await;
    assert_eq!((done.done, done.unchanged, done.failed), (PAUSED as u64, 0, 0), "{done:?}");
    assert_eq!(with_status(scheduler, "paused", JobStatus::Paused).await, PAUSED);
    let waiting = until(scheduler, held, BulkState::Waiting).await;
    assert_eq!((waiting.done, waiting.failed), (HELD as u64, 0), "{waiting:?}");
    let undo = scheduler.undo_bulk(held, None).await.unwrap().bulk_id.unwrap();
    assert_eq!(until(scheduler, undo, BulkState::Done).await.done, HELD as u64);
    until(scheduler, held, BulkState::Aborted).await;
    assert_eq!(with_status(scheduler, "held", JobStatus::Enabled).await, HELD);
    for node in [2, 1] {
        cluster.stop(node).await;
    }
}
