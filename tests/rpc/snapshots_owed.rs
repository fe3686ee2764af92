//! A shard whose snapshots fail for a day takes no new jobs and triggers, says why, and goes on by itself with the next snapshot.

use crate::support as rpc_support;

use campanile_actors::maintenance;
use campanile_client::{Client, ClientError, ClientOptions, Retry};
use campanile_schema::{
    error::{ApiError, ErrorCode},
    ids::{ClusterId, JobId},
    job::{ConcurrencyPolicy, JobSpec, Trigger},
    view::TriggerBody,
};
use campanile_store::memory::{
    MemoryStore,
    faults::{Fault, Op},
};
use rpc_support::{Ahead, Node, OPERATOR, within};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

const HOUR_US: i64 = 3_600_000_000;

async fn create(client: &Client, name: &str) -> Result<JobId, ClientError> {
    let mut spec = JobSpec::new("fin", name, Trigger::Manual {});
    spec.concurrency_policy = ConcurrencyPolicy::Allow;
    Ok(client.job_create(spec).await?.job_id)
}

fn refused<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Option<ApiError> {
    match result {
        Ok(_) => None,
        Err(ClientError::Api(error)) => Some(error),
        Err(other) => panic!("{other:?}"),
    }
}

/// Polls until there is something.
async fn eventually<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> T {
    within(async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_without_a_snapshot_ends_the_taking_of_jobs_and_triggers_until_there_is_one() {
    let (store, opened) = MemoryStore::open(4, ClusterId(77));
    for nth in 0..1_000 {
        store.inject(Op::WritePart, nth, Fault::Unavailable);
    }
    let clock = Arc::new(Ahead::default());
    let node = Node::on((store.clone(), opened), clock.clone(), 0).await;
    // Repeats of refused calls are the test's.
    let mut options = ClientOptions::new(vec![node.address.to_string()], OPERATOR);
    options.retry = Retry::NEVER;
    let client = Client::connect_with(options).await.unwrap();
    let mut jobs = Vec::new();
    for n in 0..40 {
        jobs.push(create(&client, &format!("before-{n}")).await.unwrap());
    }
    let once = TriggerBody { manual_run_id: Some("once".to_owned()), ..TriggerBody::default() };
    let run = client.job_trigger(jobs[0], once.clone()).await.unwrap().run_id;
    let owed_hours = || async {
        let facts = maintenance::facts(&node.session.handles.client).await;
        assert_eq!(facts.len(), 4);
        facts.iter().map(|facts| facts.snapshot_owed_ms / 3_600_000).min().unwrap()
    };

    clock.0.fetch_add(23 * HOUR_US, Ordering::Relaxed);
    eventually(|| async { (store.calls(Op::WritePart) >= 4).then_some(()) }).await;
    assert_eq!(owed_hours().await, 23, "a snapshot that failed is none");
    create(&client, "in-time").await.unwrap();
    client.job_trigger(jobs[1], TriggerBody::default()).await.unwrap();

    clock.0.fetch_add(2 * HOUR_US, Ordering::Relaxed);
    let mut late = 0;
    let error = eventually(|| {
        late += 1;
        let name = format!("late-{late}");
        let client = &client;
        async move { refused(create(client, &name).await) }
    })
    .await;
    assert_eq!(error.known(), ErrorCode::NotReady);
    assert!(error.message.contains("no snapshot for 25 h"), "{}", error.message);
    assert!(error.retry_after_sec.is_some());
    for job in &jobs {
        eventually(|| async { refused(client.job_trigger(*job, TriggerBody::default()).await) }).await;
    }
    let again = client.job_trigger(jobs[0], once).await.unwrap();
    assert_eq!(again.run_id, run, "what was taken before is answered");
    assert!(client.job_get(jobs[0]).await.is_ok(), "reads go on");
    assert_eq!(owed_hours().await, 25);

    store.forget_faults();
    // The next try is due.
    clock.0.fetch_add(HOUR_US / 30, Ordering::Relaxed);
    eventually(|| async { client.job_trigger(jobs[0], TriggerBody::default()).await.ok() }).await;
    let mut again = 0;
    eventually(|| {
        again += 1;
        let name = format!("again-{again}");
        let client = &client;
        async move { create(client, &name).await.ok() }
    })
    .await;
    eventually(|| async { (owed_hours().await == 0).then_some(()) }).await;
}
