//! Which assignments an executor refuses, and that a refusal never ends an attempt that runs.
#![allow(clippy::unwrap_used)]

mod fake_node;

use campanile_client::{
    Context, Executor, ExecutorHandle, JobError,
    schema::{
        ids::{Epoch, RunId, ShardId, Token},
        record::AttemptState,
        rpc::{
            executor::{FinishOutcome, Held, Stop},
            method,
        },
    },
};
use fake_node::{FakeNode, assignment, within};
use std::{sync::Arc, time::Duration};
use tokio::sync::Semaphore;

/// Two slots; `wait` runs until it is let go or told to stop, `deaf` hears nothing.
fn start(node: &FakeNode, gate: &Arc<Semaphore>) -> ExecutorHandle {
    let gate = gate.clone();
    Executor::builder(node.address.to_string(), "token")
        .slots(2)
        .grace(Duration::from_millis(50))
        .handler("now", |_: Context, _: serde_json::Value| async { Ok::<_, JobError>("done") })
        .handler("shown", |ctx: Context, _: serde_json::Value| async move { Ok::<_, JobError>(format!("{ctx:?}")) })
        .handler("wait", move |ctx: Context, _: serde_json::Value| {
            let gate = gate.clone();
            async move {
                tokio::select! {
                    permit = gate.acquire() => permit?.forget(),
                    _ = ctx.canceled() => return Err(JobError::new("TOLD", "to stop")),
                }
                Ok::<_, JobError>("let go")
            }
        })
        .handler("deaf", |_: Context, _: serde_json::Value| async {
            std::future::pending::<()>().await;
            Ok::<_, JobError>(())
        })
        .build()
        .unwrap()
        .start()
}

#[tokio::test]
async fn void_credit_old_epochs_and_old_tokens_are_not_started() {
    let node = FakeNode::start().await;
    let _executor = start(&node, &Arc::new(Semaphore::new(0)));
    let mut link = node.executor(3).await;
    let mut refused = async |change: &dyn Fn(&mut campanile_client::schema::rpc::executor::Assignment)| {
        let mut a = assignment(10, 5, "now");
        change(&mut a);
        link.assign(vec![a]).await;
        let ended = link.finish(FinishOutcome::Durable).await.remove(0);
        (ended.state, ended.error_code.unwrap_or_default())
    };
    let not_started = |code: &str| (AttemptState::NotStarted, code.to_owned());
    assert_eq!(refused(&|a| a.credit_stamp_ms = 1).await, not_started("CREDIT_VOID"));
    assert_eq!(refused(&|a| a.epoch = Epoch(2)).await, not_started("OLD_EPOCH"));
    let done = (AttemptState::Success, String::new());
    assert_eq!(refused(&|a| (a.epoch, a.shard) = (Epoch(1), ShardId(2))).await, done, "of a shard not heard of");
    assert_eq!(refused(&|a| a.token = Token(5)).await, not_started("OLD_TOKEN"));
    assert_eq!(refused(&|a| a.token = Token(4)).await, not_started("OLD_TOKEN"));
    assert_eq!(refused(&|a| a.token = Token(6)).await, done);
    assert_eq!(refused(&|a| (a.run, a.cluster_id, a.epoch) = (RunId(11), 6, Epoch(1))).await, done, "another cluster");
}

#[tokio::test]
async fn a_context_is_shown_without_its_secrets() {
    let node = FakeNode::start().await;
    let _executor = start(&node, &Arc::new(Semaphore::new(0)));
    let mut link = node.executor(3).await;
    let mut with_secret = assignment(1, 1, "shown");
    with_secret.secrets.insert("api-key".to_owned(), "hunter2".to_owned());
    link.assign(vec![with_secret]).await;
    let shown = format!("{:?}", link.finish(FinishOutcome::Durable).await.remove(0).result);
    assert!(shown.contains("api-key"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn what_does_not_fit_the_slots_is_not_started_and_a_repeated_assignment_is_ignored() {
    let node = FakeNode::start().await;
    let gate = Arc::new(Semaphore::new(0));
    let executor = start(&node, &gate);
    let mut link = node.executor(3).await;
    assert_eq!(link.credit.as_ref().unwrap().slots, 2);
    let (first, second) = (assignment(1, 1, "wait"), assignment(2, 1, "wait"));
    link.assign(vec![first.clone(), second, first, assignment(3, 1, "wait")]).await;
    let ended = link.finish(FinishOutcome::Durable).await;
    assert_eq!(ended.len(), 1, "the repeated one has no result of its own");
    assert_eq!((ended[0].run, ended[0].error_code.as_deref()), (RunId(3), Some("NO_SLOT")));
    assert_eq!(link.credit.as_ref().unwrap().slots, 0);
    assert_eq!(link.credit.as_ref().unwrap().received, Some(4), "the repeated one was received too");
    gate.add_permits(2);
    let mut runs = Vec::new();
    while runs.len() < 2 {
        runs.extend(link.finish(FinishOutcome::Durable).await.into_iter().map(|e| (e.run.0, e.state)));
    }
    runs.sort();
    assert_eq!(runs, [(1, AttemptState::Success), (2, AttemptState::Success)]);
    within(executor.wait_until(|s| s.unacknowledged == 0 && s.running == 0)).await.unwrap();
}

#[tokio::test]
async fn an_assignment_of_a_newer_release_is_refused_by_name() {
    let node = FakeNode::start().await;
    let _executor = start(&node, &Arc::new(Semaphore::new(0)));
    let mut link = node.executor(3).await;
    let item = serde_json::json!({"r": 8, "j": 1, "k": 4, "a": {"kind": "TELEPORT"}, "new": true});
    link.notify(method::ASSIGN, &serde_json::json!({"items": [item]})).await;
    let ended = link.finish(FinishOutcome::Durable).await.remove(0);
    assert_eq!((ended.run, ended.token, ended.state), (RunId(8), Token(4), AttemptState::NotStarted));
    assert_eq!(ended.error_code.as_deref(), Some("UNKNOWN_ASSIGNMENT"));
}

#[tokio::test]
async fn only_the_right_token_stops_a_body_and_a_deaf_one_is_dropped() {
    let node = FakeNode::start().await;
    let executor = start(&node, &Arc::new(Semaphore::new(0)));
    let mut link = node.executor(3).await;
    let mut deaf = assignment(2, 7, "deaf");
    deaf.timeout_sec = 1;
    link.assign(vec![assignment(1, 7, "wait"), deaf]).await;
    within(executor.wait_until(|status| status.running == 2)).await.unwrap();
    let held = |run: u64, token: u64| Held { run: RunId(run), job: assignment(1, 1, "").job, token: Token(token) };
    link.notify(method::STOP, &Stop { items: vec![held(1, 6), held(9, 1)], ended: Vec::new() }).await;
    let timed_out = link.finish(FinishOutcome::Durable).await.remove(0);
    assert_eq!((timed_out.run, timed_out.state), (RunId(2), AttemptState::Timeout), "the other one goes on");
    link.notify(method::STOP, &Stop { items: vec![held(1, 7)], ended: Vec::new() }).await;
    let stopped = link.finish(FinishOutcome::Durable).await.remove(0);
    assert_eq!((stopped.run, stopped.state), (RunId(1), AttemptState::Canceled));
    assert!(stopped.error_message.unwrap().contains("TOLD"), "what the body said is kept");
    within(executor.wait_until(|status| status.running == 0)).await.unwrap();
}

/// A thread cannot be ended from outside: the slot stays taken, and no end is told, until it returns or an operator says that it has.
#[tokio::test]
async fn blocking_work_keeps_its_slot_until_it_returns() {
    let node = FakeNode::start().await;
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Arc::new(std::sync::Mutex::new(gate));
    let wait = move || gate.lock().unwrap().recv().map_err(|_| JobError::message("the test is over"));
    let dropped = wait.clone();
    let executor = Executor::builder(node.address.to_string(), "token")
        .slots(1)
        .grace(Duration::from_millis(10))
        .blocking_handler("blocks", move |_: Context, _: serde_json::Value| wait())
        .handler("drops", move |ctx: Context, _: serde_json::Value| {
            let work = ctx.spawn_blocking(dropped.clone());
            async move { work.await? }
        })
        .build()
        .unwrap()
        .start();
    let mut link = node.executor(3).await;
    let held = |run: u64| Held { run: RunId(run), job: assignment(1, 1, "").job, token: Token(1) };
    for (run, handler) in [(1, "blocks"), (2, "drops")] {
        link.assign(vec![assignment(run, 1, handler)]).await;
        within(executor.wait_until(|status| status.running == 1)).await.unwrap();
        link.notify(method::STOP, &Stop { items: vec![held(run)], ended: Vec::new() }).await;
        // Credits come long after the grace.
        for _ in 0..3 {
            assert_eq!(link.credit().await.slots, 0, "{handler}: no slot is free");
        }
        link.assign(vec![assignment(run + 10, 1, handler)]).await;
        let refused = link.finish(FinishOutcome::Durable).await.remove(0);
        assert_eq!((refused.run, refused.error_code.as_deref()), (RunId(run + 10), Some("NO_SLOT")), "{handler}");
        release.send(()).unwrap();
        let ended = link.finish(FinishOutcome::Durable).await.remove(0);
        assert_eq!((ended.run, ended.state), (RunId(run), AttemptState::Canceled), "{handler}");
    }
    // An operator's word frees the slot; the body's own end is nobody's news then.
    link.assign(vec![assignment(3, 1, "blocks")]).await;
    within(executor.wait_until(|status| status.running == 1)).await.unwrap();
    link.notify(method::STOP, &Stop { items: Vec::new(), ended: vec![held(3)] }).await;
    within(executor.wait_until(|status| status.running == 0)).await.unwrap();
    release.send(()).unwrap();
    link.assign(vec![assignment(4, 1, "blocks")]).await;
    release.send(()).unwrap();
    let ended = link.finish(FinishOutcome::Durable).await.remove(0);
    assert_eq!((ended.run, ended.state), (RunId(4), AttemptState::Success), "of run 3 nothing was handed in");
}

#[test]
fn a_grace_that_does_not_fit_the_lease_is_refused() {
    let build = |sec| {
        Executor::builder("127.0.0.1:1", "t").grace(Duration::from_secs(sec)).command_runner(|_| unreachable!()).build()
    };
    assert!(build(6).is_ok());
    let error = build(7).err().unwrap().to_string();
    assert!(error.contains("the grace for stopping is 7 s; it must be at most 6 s"), "{error}");
}
