//! Jobs that somebody edits, relabels or pauses between the parts of an operation.

use super::{JOBS, all, jobs, of_pay, until, with_status};
use crate::support::{TestNode, eventually};
use campanile_client::Client;
use campanile_schema::{
    ids::JobId,
    job::{JobSpec, JobStatus},
    stored::bulk::{BulkAction, BulkState},
    view::bulk::{BulkBody, BulkFilter},
};

/// Changes a job's definition.
async fn edited(client: &Client, id: JobId, change: impl FnOnce(&mut JobSpec)) {
    let known = client.job_get(id).await.unwrap();
    let mut spec = known.spec;
    change(&mut spec);
    client.job_replace(id, known.version, spec).await.unwrap();
}

/// The pause is of the jobs, and not of what their labels were.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_resumes_jobs_that_were_edited_and_leaves_those_that_a_person_has_paused_once_more() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let ids = jobs(&client, 20).await;
    let pause = client.bulk_create(of_pay(BulkAction::Pause)).await.unwrap().bulk_id.unwrap();
    until(&client, pause, BulkState::Done).await;
    edited(&client, ids[3], |spec| spec.priority = 500).await;
    edited(&client, ids[4], |spec| spec.labels.clear()).await;
    client.job_pause(ids[5], Some("it is mine")).await.unwrap();
    let undo = client.bulk_undo(pause, None).await.unwrap().bulk_id.unwrap();
    assert_eq!(until(&client, undo, BulkState::Done).await.done, 19);
    assert_eq!(client.job_get(ids[5]).await.unwrap().status, JobStatus::Paused);
    assert_eq!(with_status(&client, JobStatus::Paused).await, 1);
    node.stop().await;
}

/// Once paused, the jobs do not fit the filter any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grace_ends_for_every_job_that_the_operation_has_paused_whatever_its_filter_says() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let ids = jobs(&client, 20).await;
    client.job_pause(ids[7], None).await.unwrap();
    let filter =
        BulkFilter { status: Some(JobStatus::Enabled), labels: Some("team=pay".to_owned()), ..BulkFilter::default() };
    let body = BulkBody { action: BulkAction::Delete, filter, grace_sec: Some(3), ..BulkBody::default() };
    let id = client.bulk_create(body).await.unwrap().bulk_id.unwrap();
    assert_eq!(until(&client, id, BulkState::Waiting).await.done, 19);
    edited(&client, ids[2], |spec| spec.labels.clear()).await;
    let deleted = until(&client, id, BulkState::Done).await;
    assert_eq!((deleted.done, deleted.failed), (19, 0), "{deleted:?}");
    assert_eq!(with_status(&client, JobStatus::Paused).await, 1, "the one that was paused before does not fit");
    assert_eq!(with_status(&client, JobStatus::Enabled).await, 1, "nor does the other team's");
    node.stop().await;
}

/// The node looks for the next page while the operation is aborted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_between_any_two_pages_leaves_what_it_counts() {
    let node = TestNode::start().await;
    let client = node.client().await;
    jobs(&client, 2 * JOBS).await;
    // Before a page, in the first ones, between two.
    for done in [0, 1, 1, 65, 65, 129] {
        let id = client.bulk_create(of_pay(BulkAction::Pause)).await.unwrap().bulk_id.unwrap();
        eventually("it goes on", || async { (client.bulk_get(id).await.unwrap().done >= done).then_some(()) }).await;
        client.bulk_abort(id, None).await.unwrap();
        let aborted = until(&client, id, BulkState::Aborted).await;
        assert_eq!(with_status(&client, JobStatus::Paused).await as u64, aborted.done, "{aborted:?}");
        let undo = client.bulk_undo(id, None).await.unwrap().bulk_id.unwrap();
        assert_eq!(until(&client, undo, BulkState::Done).await.done, aborted.done);
        assert_eq!(with_status(&client, JobStatus::Paused).await, 0);
    }
    let resumed = client.bulk_create(all(BulkAction::Resume)).await.unwrap().bulk_id.unwrap();
    assert_eq!(until(&client, resumed, BulkState::Done).await.done, 0, "nothing is left paused");
    node.stop().await;
}
