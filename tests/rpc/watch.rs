//! Changes over RPC, as they become durable: what is told, to whom, how much, and where one goes on.

use crate::support as rpc_support;

use campanile_client::{Client, Context, ExecutorHandle, Job, JobError, WatchEvent};
use campanile_schema::{
    error::ErrorCode,
    ids::RunId,
    limits::{WATCHES, WATCHES_PER_CONNECTION},
    operations::RunGet,
    record::RunState,
    rpc::{codec::from_map, hello::ConnectionRole, method},
    view::TriggerBody,
    watch::{Changed, JobStep, RunChange, StopWatch, WatchEnded, WatchJobs, WatchRuns, Watching},
};
use rpc_support::{Node, OPERATOR, Raw, RawMessage, TENANT, within};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::sync::Semaphore;

/// Bodies that end when they may.
fn executor(node: &Node, gate: &Arc<Semaphore>) -> ExecutorHandle {
    let gate = gate.clone();
    node.executor()
        .pool("default")
        .slots(16)
        .any_handler(move |ctx: Context, _: campanile_schema::payload::Payload| {
            let gate = gate.clone();
            async move {
                gate.acquire().await?.forget();
                if ctx.job_name().starts_with("bad") { Err(JobError::new("BAD", "it is bad")) } else { Ok(None) }
            }
        })
        .build()
        .unwrap()
        .start()
}

async fn triggered(client: &Client, name: &str) -> RunId {
    let job = client.job_create(Job::manual(name).attempts(1).label("team", "pay")).await.unwrap().job_id;
    client.job_trigger(job, TriggerBody::default()).await.unwrap().run_id
}

async fn next<T: serde::de::DeserializeOwned>(changes: &mut campanile_client::Changes<T>) -> T {
    match within(changes.next()).await.unwrap() {
        Some(WatchEvent::Change(change)) => change,
        Some(WatchEvent::Dropped(n)) => panic!("{n} dropped"),
        None => panic!("ended"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_run_is_told_from_now_to_its_end() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let run = triggered(&client, "a").await;
    let mut changes = client.run_watch(WatchRuns { run_id: Some(run), ..WatchRuns::default() }).await.unwrap();
    // What it is now comes first, although nothing changes.
    assert_eq!(next(&mut changes).await.state, RunState::Queued);
    let gate = Arc::new(Semaphore::new(0));
    let _executor = executor(&node, &gate);
    let running = next(&mut changes).await;
    assert_eq!((running.state, running.attempt_count, running.job_name.as_str()), (RunState::Running, 1, "a"));
    gate.add_permits(1);
    assert_eq!(next(&mut changes).await.state, RunState::Success);
    assert!(within(changes.next()).await.unwrap().is_none(), "the end is the end");
    // One that is over is told, and ends at once.
    let mut changes = client.run_watch(WatchRuns { run_id: Some(run), ..WatchRuns::default() }).await.unwrap();
    assert_eq!(next(&mut changes).await.state, RunState::Success);
    assert!(within(changes.next()).await.unwrap().is_none());
    // What is not there is not waited for.
    let nothing = client.run_watch(WatchRuns { run_id: Some(RunId(4096)), ..WatchRuns::default() }).await;
    assert_eq!(nothing.err().unwrap().api().unwrap().known(), ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_are_told_by_what_was_asked_for() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let gate = Arc::new(Semaphore::new(1_000));
    let _executor = executor(&node, &gate);
    let mut all = client.run_watch(WatchRuns::default()).await.unwrap();
    let failed = WatchRuns { state: Some(RunState::Failed), ..WatchRuns::default() };
    let mut failed = client.run_watch(failed).await.unwrap();
    let other = WatchRuns { labels: Some("team!=pay".to_owned()), ..WatchRuns::default() };
    let mut other = client.run_watch(other).await.unwrap();
    let mut jobs = client.job_watch(WatchJobs::default()).await.unwrap();
    let (good, bad) = (triggered(&client, "good").await, triggered(&client, "bad").await);
    let plain = client.job_create(Job::manual("plain")).await.unwrap().job_id;
    let plain_run = client.job_trigger(plain, TriggerBody::default()).await.unwrap().run_id;
    // Each run in its own order.
    let mut ended = 0;
    let mut seen: std::collections::BTreeMap<RunId, Vec<RunState>> = std::collections::BTreeMap::new();
    while ended < 3 {
        let change = next(&mut all).await;
        ended += usize::from(change.state.is_final());
        seen.entry(change.run_id).or_default().push(change.state);
    }
    assert_eq!(seen[&good], [RunState::Queued, RunState::Running, RunState::Success]);
    assert_eq!(seen[&bad], [RunState::Queued, RunState::Running, RunState::Failed]);
    let change = next(&mut failed).await;
    assert_eq!((change.run_id, change.last_error.as_deref()), (bad, Some("it is bad")));
    assert_eq!(next(&mut other).await.run_id, plain_run);
    // Definitions.
    client.job_pause(plain, None).await.unwrap();
    client.job_resume(plain, None).await.unwrap();
    client.job_delete(plain, None).await.unwrap();
    let mut steps = Vec::new();
    while steps.last() != Some(&JobStep::Deleted) {
        let change = next(&mut jobs).await;
        if change.job_id == plain {
            steps.push(change.change);
        }
    }
    assert_eq!(steps, [JobStep::Created, JobStep::Paused, JobStep::Resumed, JobStep::Deleted]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_hears_only_of_its_own() {
    let node = Node::start().await;
    let (operator, tenant) = (node.client(OPERATOR).await, node.client(TENANT).await);
    let mut changes = tenant.run_watch(WatchRuns::default()).await.unwrap();
    let foreign = triggered(&operator, "foreign").await;
    let own = triggered(&tenant, "own").await;
    let change = next(&mut changes).await;
    assert_eq!((change.run_id, change.tenant_id.as_str()), (own, "fin"));
    let code = |answer: Result<campanile_client::Changes<RunChange>, _>| {
        let error: campanile_client::ClientError = answer.err().unwrap();
        error.api().unwrap().known()
    };
    let named = WatchRuns { tenant_id: Some("default".to_owned()), ..WatchRuns::default() };
    assert_eq!(code(tenant.run_watch(named).await), ErrorCode::Forbidden);
    let one = WatchRuns { run_id: Some(foreign), ..WatchRuns::default() };
    assert_eq!(code(tenant.run_watch(one).await), ErrorCode::NotFound);
    let job = operator.run_get(foreign).await.unwrap().job_id;
    let of_job = WatchRuns { job_id: Some(job), ..WatchRuns::default() };
    assert_eq!(code(tenant.run_watch(of_job).await), ErrorCode::NotFound);
    let wrong = WatchRuns { labels: Some("=x".to_owned()), ..WatchRuns::default() };
    assert_eq!(code(operator.run_watch(wrong).await), ErrorCode::InvalidArgument);
    let wrong = WatchRuns { after: Some("x".to_owned()), ..WatchRuns::default() };
    assert_eq!(code(operator.run_watch(wrong).await), ErrorCode::InvalidArgument);
}

async fn hello(node: &Node) -> Raw {
    let mut raw = node.raw().await;
    raw.hello(OPERATOR, ConnectionRole::Caller).await.unwrap();
    raw
}

/// The answer to a request; notifications that come meanwhile are passed over.
async fn answer(raw: &mut Raw, id: u32) -> Result<Vec<u8>, campanile_schema::error::ApiError> {
    loop {
        match raw.hear().await {
            RawMessage::Answer(answered, outcome) if answered == id => return outcome,
            RawMessage::Closed => panic!("closed"),
            RawMessage::Answer(..) | RawMessage::Notification(..) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_goes_on_where_a_connection_broke() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let mut raw = hello(&node).await;
    raw.request(2, method::RUN_WATCH, &WatchRuns::default()).await;
    let watching: Watching = from_map(&answer(&mut raw, 2).await.unwrap()).unwrap();
    drop(raw);
    let missed = triggered(&client, "while.away").await;
    let mut raw = hello(&node).await;
    raw.request(3, method::RUN_WATCH, &WatchRuns { after: Some(watching.cursor), ..WatchRuns::default() }).await;
    answer(&mut raw, 3).await.unwrap();
    let RawMessage::Notification(name, params) = raw.hear().await else { panic!() };
    let changed: Changed<RunChange> = from_map(&params).unwrap();
    assert_eq!((name.as_str(), changed.items[0].run_id, changed.dropped), (method::RUN_CHANGED, missed, 0));
    // A place of another start of the node: something may have been lost, and that is told.
    raw.request(4, method::RUN_WATCH, &WatchRuns { after: Some("1-1".to_owned()), ..WatchRuns::default() }).await;
    let other: Watching = from_map(&answer(&mut raw, 4).await.unwrap()).unwrap();
    let RawMessage::Notification(_, params) = raw.hear().await else { panic!() };
    let changed: Changed<RunChange> = from_map(&params).unwrap();
    assert_eq!((changed.watch_id, changed.items.len(), changed.dropped), (other.watch_id, 0, 1));
    // Stopped: nothing more of it, and its place is free.
    raw.request(5, method::WATCH_STOP, &StopWatch { watch_id: other.watch_id }).await;
    answer(&mut raw, 5).await.unwrap();
    raw.request(6, method::WATCH_STOP, &StopWatch { watch_id: other.watch_id }).await;
    assert_eq!(answer(&mut raw, 6).await.unwrap_err().known(), ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_and_a_node_have_so_many_watches() {
    let node = Node::start().await;
    let mut connections = Vec::new();
    for number in 0..WATCHES / WATCHES_PER_CONNECTION {
        let mut raw = hello(&node).await;
        for id in 10..10 + WATCHES_PER_CONNECTION as u32 {
            raw.request(id, method::JOB_WATCH, &WatchJobs::default()).await;
            answer(&mut raw, id).await.unwrap_or_else(|error| panic!("{number}: {error}"));
        }
        raw.request(5, method::JOB_WATCH, &WatchJobs::default()).await;
        assert_eq!(answer(&mut raw, 5).await.unwrap_err().known(), ErrorCode::IllegalState);
        connections.push(raw);
    }
    let mut raw = hello(&node).await;
    raw.request(5, method::JOB_WATCH, &WatchJobs::default()).await;
    assert_eq!(answer(&mut raw, 5).await.unwrap_err().known(), ErrorCode::Overloaded);
    // A connection that is gone gives its places back.
    drop(connections.pop());
    let mut id = 6;
    within(async {
        loop {
            raw.request(id, method::JOB_WATCH, &WatchJobs::default()).await;
            if answer(&mut raw, id).await.is_ok() {
                break;
            }
            id += 1;
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_does_not_read_holds_up_nobody_and_is_told() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let mut raw = hello(&node).await;
    raw.request(2, method::JOB_WATCH, &WatchJobs::default()).await;
    answer(&mut raw, 2).await.unwrap();
    // Far more than the log, the sockets and the notification under way hold.
    let name = "x".repeat(100);
    let total = 120_000usize;
    for batch in 0..total / 2_000 {
        let specs = (0..2_000).map(|n| Job::manual(&format!("{name}-{batch}-{n}")).into()).collect();
        let made = client.with_timeout(Duration::from_secs(60)).job_create_many(specs).await.unwrap();
        assert!(made.iter().all(Result::is_ok), "nobody is held up");
    }
    let (mut heard, mut dropped) = (0usize, 0u64);
    while heard as u64 + dropped < total as u64 {
        let RawMessage::Notification(name, params) = raw.hear().await else { panic!() };
        assert_eq!(name, method::JOB_CHANGED);
        let changed: Changed<Value> = from_map(&params).unwrap();
        heard += changed.items.len();
        dropped += changed.dropped;
    }
    assert!(dropped > 0, "{heard} heard");
    assert_eq!(heard as u64 + dropped, total as u64, "each is heard or counted as lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_can_wait_for_the_end() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let run = triggered(&client, "a").await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.run_wait(run, Duration::from_secs(60)).await }
    });
    let early = client.run_wait(run, Duration::from_millis(50)).await.unwrap();
    assert_eq!(early.state, RunState::Queued);
    let gate = Arc::new(Semaphore::new(1));
    let _executor = executor(&node, &gate);
    assert_eq!(within(waiting).await.unwrap().unwrap().state, RunState::Success);
    let mut raw = hello(&node).await;
    let long = serde_json::json!({"runId": run, "waitMs": 60_001});
    raw.request(2, RunGet::NAME, &long).await;
    assert_eq!(answer(&mut raw, 2).await.unwrap_err().known(), ErrorCode::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_is_told_when_its_node_stops() {
    let mut node = Node::start().await;
    let mut raw = hello(&node).await;
    raw.request(2, method::RUN_WATCH, &WatchRuns::default()).await;
    answer(&mut raw, 2).await.unwrap();
    node.stop().await;
    let mut told = Vec::new();
    loop {
        match raw.hear().await {
            RawMessage::Notification(name, params) => told.push((name, params)),
            RawMessage::Closed => break,
            RawMessage::Answer(..) => panic!(),
        }
    }
    assert!(told.iter().any(|(name, _)| name == method::SESSION_ERROR), "{told:?}");
    assert!(told.iter().all(|(name, params)| name != method::WATCH_ENDED
        || from_map::<WatchEnded>(params).unwrap().code.is_some()));
}
