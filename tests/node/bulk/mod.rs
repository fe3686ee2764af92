//! Bulk operations on a whole node: what a filter names is changed once, page by page; progress, abort, undo, grace.

mod changed_meanwhile;
mod compensated;
mod kills;
mod refusals;
mod restored;

use crate::support::{self, TestNode, eventually};
use campanile_client::{Client, ClientError, Context, Executor, ExecutorHandle, JobError};
use campanile_schema::{
    audit::AuditBody,
    error::ErrorCode,
    ids::{BulkId, JobId, RunId},
    job::{ConcurrencyPolicy, JobSpec, JobStatus, Trigger},
    payload::Payload,
    record::RunState,
    stored::bulk::{BulkAction, BulkState},
    view::{
        JobFilter, TenantPageBody, TriggerBody,
        bulk::{BulkBody, BulkFilter, BulkView},
    },
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// More than a page.
const JOBS: u64 = 150;

fn spec(name: &str) -> JobSpec {
    let mut spec = JobSpec::new("default", name, Trigger::Manual {});
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    spec.retry_policy.max_attempts = 1;
    spec
}

/// Jobs of team `pay`, and one of another team.
async fn jobs(client: &Client, count: u64) -> Vec<JobId> {
    let labeled = |name: &str, team: &str| {
        let mut spec = spec(name);
        spec.labels.insert("team".to_owned(), team.to_owned());
        spec
    };
    client.job_create(labeled("other", "web")).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(client.job_create(labeled(&format!("pay-{n}"), "pay")).await.unwrap().job_id);
    }
    ids
}

fn of_pay(action: BulkAction) -> BulkBody {
    let filter = BulkFilter { labels: Some("team=pay".to_owned()), ..BulkFilter::default() };
    BulkBody { action, filter, ..BulkBody::default() }
}

fn all(action: BulkAction) -> BulkBody {
    BulkBody { action, all: true, tenant_id: Some("default".to_owned()), ..BulkBody::default() }
}

async fn until(client: &Client, id: BulkId, state: BulkState) -> BulkView {
    let look = || async {
        let view = client.bulk_get(id).await.unwrap();
        (view.state == Some(state)).then_some(view)
    };
    eventually(&format!("bulk operation {id} is {state}"), look).await
}

async fn done(client: &Client, body: BulkBody) -> BulkView {
    let id = client.bulk_create(body).await.unwrap().bulk_id.unwrap();
    until(client, id, BulkState::Done).await
}

async fn with_status(client: &Client, status: JobStatus) -> usize {
    let filter = JobFilter { status: Some(status), page_size: Some(1_000), ..JobFilter::default() };
    client.job_list(filter).await.unwrap().items.len()
}

fn counts(view: &BulkView) -> (u64, u64, u64, u64) {
    (view.matched, view.done, view.unchanged, view.failed)
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> (ErrorCode, String) {
    match answer {
        Err(ClientError::Api(error)) => (error.known(), error.message),
        other => panic!("{other:?}"),
    }
}

/// Its bodies fail as long as they are told to.
fn executor(node: &TestNode, failing: &Arc<AtomicBool>) -> ExecutorHandle {
    let failing = failing.clone();
    Executor::builder(node.rpc(), support::TOKEN)
        .pool("default")
        .slots(8)
        .any_handler(move |_: Context, _: Payload| {
            let fails = failing.load(Ordering::Relaxed);
            async move { if fails { Err(JobError::message("no luck")) } else { Ok(None) } }
        })
        .build()
        .unwrap()
        .start()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_counts_and_a_pause_pauses_what_fits_and_its_undo_resumes_what_it_paused() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let ids = jobs(&client, JOBS).await;
    client.job_pause(ids[7], Some("by hand")).await.unwrap();
    let dry = client.bulk_create(BulkBody { dry_run: true, ..of_pay(BulkAction::Pause) }).await.unwrap();
    assert_eq!((dry.bulk_id, dry.state, dry.matched, dry.matched_more), (None, None, JOBS, false));
    assert_eq!(dry.first.len(), 5, "it shows the first");
    assert!(dry.first.iter().all(|item| item.name.as_ref().is_some_and(|name| name.starts_with("pay-"))), "{dry:?}");
    assert_eq!(with_status(&client, JobStatus::Paused).await, 1, "and changes nothing");

    let body = BulkBody { reason: Some("the bank is closed".to_owned()), ..of_pay(BulkAction::Pause) };
    let paused = done(&client, body).await;
    assert_eq!(counts(&paused), (JOBS, JOBS - 1, 1, 0));
    assert_eq!((paused.left, paused.reason.as_deref()), (Some(0), Some("the bank is closed")));
    assert_eq!(with_status(&client, JobStatus::Paused).await as u64, JOBS);
    assert_eq!(with_status(&client, JobStatus::Enabled).await, 1, "the other team's job goes on");
    // Each change names the operation in the audit trail, and the operation has a record of its own.
    let look = || async {
        let audit =
            AuditBody { operation: Some("bulk.create".to_owned()), page_size: Some(1_000), ..AuditBody::default() };
        let items = client.audit_list(audit).await.unwrap().items;
        (items.len() as u64 == JOBS).then_some(items)
    };
    let trail = eventually("the trail shows them", look).await;
    let target = format!("bulk {}", paused.bulk_id.unwrap());
    assert!(trail.iter().all(|record| record.target.as_deref() == Some(target.as_str())), "{trail:?}");
    assert_eq!(trail.iter().filter(|record| record.job_id.is_some()).count() as u64, JOBS - 1);

    client.job_resume(ids[3], None).await.unwrap();
    client.job_pause(ids[3], None).await.unwrap();
    let undo = client.bulk_undo(paused.bulk_id.unwrap(), Some("it is open again")).await.unwrap();
    assert_eq!((undo.action, undo.undo_of), (BulkAction::Resume, paused.bulk_id));
    let undone = until(&client, undo.bulk_id.unwrap(), BulkState::Done).await;
    assert_eq!(undone.done, JOBS - 2, "but for the one that was paused before, and the one that somebody paused since");
    assert_eq!(with_status(&client, JobStatus::Paused).await, 2);
    let before = client.bulk_get(paused.bulk_id.unwrap()).await.unwrap();
    assert_eq!(before.undone_by, undo.bulk_id);
    let again = client.bulk_undo(paused.bulk_id.unwrap(), None).await;
    assert_eq!(refusal(again).0, ErrorCode::IllegalState);
    let listed = client.bulk_list(TenantPageBody::default()).await.unwrap().items;
    let listed: Vec<_> = listed.iter().map(|view| view.bulk_id).collect();
    assert_eq!(listed, [undo.bulk_id, paused.bulk_id], "the newest first");
    let page = TenantPageBody { page_size: Some(1), ..TenantPageBody::default() };
    let first = client.bulk_list(page.clone()).await.unwrap();
    let second = client.bulk_list(TenantPageBody { page_token: first.next_page_token, ..page }).await.unwrap();
    assert_eq!(second.items[0].bulk_id, paused.bulk_id);
    assert_eq!(second.next_page_token, None);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_leaves_what_was_done_and_what_has_ended_cannot_be_aborted() {
    let node = TestNode::start().await;
    let client = node.client().await;
    jobs(&client, JOBS).await;
    let id = client.bulk_create(of_pay(BulkAction::Pause)).await.unwrap().bulk_id.unwrap();
    let aborted = client.bulk_abort(id, Some("too many")).await.unwrap();
    assert!(matches!(aborted.state, Some(BulkState::Aborting | BulkState::Aborted)), "{aborted:?}");
    let ended = until(&client, id, BulkState::Aborted).await;
    assert!(ended.done < JOBS, "{ended:?}");
    assert_eq!(ended.state_reason.as_deref(), Some("too many"));
    assert_eq!(with_status(&client, JobStatus::Paused).await as u64, ended.done, "it counts what it did");
    assert_eq!(refusal(client.bulk_abort(id, None).await).0, ErrorCode::IllegalState);
    // It can be undone all the same.
    let undo = client.bulk_undo(id, None).await.unwrap().bulk_id.unwrap();
    assert_eq!(until(&client, undo, BulkState::Done).await.done, ended.done);
    assert_eq!(with_status(&client, JobStatus::Paused).await, 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_with_a_grace_pauses_first_and_is_undone_until_then() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let ids = jobs(&client, 20).await;
    let graced = |sec| BulkBody { grace_sec: Some(sec), ..of_pay(BulkAction::Delete) };
    let id = client.bulk_create(graced(3_600)).await.unwrap().bulk_id.unwrap();
    let waiting = until(&client, id, BulkState::Waiting).await;
    assert_eq!((waiting.done, waiting.grace_sec), (20, Some(3_600)));
    assert!(waiting.delete_at > waiting.created_at);
    assert_eq!(with_status(&client, JobStatus::Paused).await, 20);
    let undo = client.bulk_undo(id, None).await.unwrap().bulk_id.unwrap();
    assert_eq!(until(&client, undo, BulkState::Done).await.done, 20);
    until(&client, id, BulkState::Aborted).await;
    assert_eq!(with_status(&client, JobStatus::Paused).await, 0);

    let id = client.bulk_create(graced(1)).await.unwrap().bulk_id.unwrap();
    until(&client, id, BulkState::Waiting).await;
    client.job_resume(ids[4], None).await.unwrap();
    let deleted = until(&client, id, BulkState::Done).await;
    assert_eq!((deleted.done, deleted.failed), (19, 0), "what was resumed in the grace is spared");
    assert_eq!(with_status(&client, JobStatus::Enabled).await, 2);
    let (code, why) = refusal(client.bulk_undo(id, None).await);
    assert_eq!(code, ErrorCode::IllegalState, "{why}");
    assert!(why.contains("deleted"), "{why}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_are_triggered_once_and_their_runs_retried_redriven_and_canceled() {
    let node = TestNode::start().await;
    let client = node.client().await;
    let failing = Arc::new(AtomicBool::new(true));
    let executor = executor(&node, &failing);
    let ids = jobs(&client, 70).await;
    let triggered = done(&client, of_pay(BulkAction::Trigger)).await;
    assert_eq!(counts(&triggered), (70, 70, 0, 0));
    for id in &ids {
        let runs = || async {
            let runs = client.job_runs(*id, campanile_schema::view::PageBody::default()).await.unwrap().items;
            runs.iter().all(|run| run.state == RunState::Failed).then_some(runs)
        };
        assert_eq!(eventually("its run has failed", runs).await.len(), 1);
    }
    failing.store(false, Ordering::Relaxed);
    // Of one job first, by its id; the dead letters of the others after that.
    let filter = BulkFilter { job_id: Some(ids[0]), ..BulkFilter::default() };
    let retried = done(&client, BulkBody { action: BulkAction::Retry, filter, ..BulkBody::default() }).await;
    assert_eq!(counts(&retried), (1, 1, 0, 0));
    let none = BulkBody { action: BulkAction::Redrive, all: true, ..BulkBody::default() };
    let (code, why) = refusal(client.bulk_create(none).await);
    assert_eq!(code, ErrorCode::InvalidArgument);
    assert!(why.starts_with("tenantId: "), "{why}");
    let redriven = done(&client, all(BulkAction::Redrive)).await;
    assert_eq!((redriven.done, redriven.failed), (69, 0), "{redriven:?}");
    for id in &ids {
        let run = || async {
            let runs = client.job_runs(*id, campanile_schema::view::PageBody::default()).await.unwrap().items;
            (runs[0].state == RunState::Success).then_some(runs)
        };
        let runs = eventually("its run has succeeded", run).await;
        assert_eq!((runs.len(), runs[0].generation), (1, 2), "one run, in its second generation");
    }
    executor.drain(Duration::from_secs(2)).await;
    // Nobody runs these: they stay open until they are canceled.
    let mut open: Vec<RunId> = Vec::new();
    for id in ids.iter().take(10) {
        open.push(client.job_trigger(*id, TriggerBody::default()).await.unwrap().run_id);
    }
    let canceled = done(&client, all(BulkAction::Cancel)).await;
    assert_eq!(counts(&canceled), (10, 10, 0, 0));
    for run in open {
        assert_eq!(client.run_get(run).await.unwrap().state, RunState::Canceled);
    }
    node.stop().await;
}

/// A job that cannot be triggered is named with its reason; the rest goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_is_counted_and_the_first_are_named() {
    let node = TestNode::start().await;
    let client = node.client().await;
    for n in 0..15 {
        let mut spec = spec(&format!("forbid-{n}"));
        // One run is open at a time, and nobody runs it.
        spec.concurrency_policy = ConcurrencyPolicy::Forbid;
        let job = client.job_create(spec).await.unwrap().job_id;
        if n < 12 {
            client.job_trigger(job, TriggerBody::default()).await.unwrap();
        }
    }
    let ended = done(&client, all(BulkAction::Trigger)).await;
    assert_eq!(counts(&ended), (15, 3, 0, 12));
    assert_eq!(ended.failures.len(), 10);
    assert!(ended.failures.iter().all(|failure| failure.code == "409_RUN_ACTIVE"), "{ended:?}");
    node.stop().await;
}
