//! What an executor does when connections break, nodes are silent, and results are not taken.
#![allow(clippy::unwrap_used)]

mod fake_node;

use campanile_client::{
    Context, Executor, ExecutorHandle, JobError,
    executor::ExecutorBuilder,
    schema::{
        ids::{RunId, Token},
        job::OnLostContact,
        limits::{FINISH_GATHER_MS, LOG_UNSENT_BYTES},
        record::AttemptState,
        rpc::{
            executor::{Announced, FinishOutcome, Held, LogChunk},
            method,
        },
    },
};
use fake_node::{FakeNode, assignment, within};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

fn builder(node: &FakeNode, gate: &Arc<Semaphore>) -> ExecutorBuilder {
    let gate = gate.clone();
    Executor::builder(node.address.to_string(), "token").slots(4).grace(Duration::from_millis(50)).handler(
        "wait",
        move |ctx: Context, _: serde_json::Value| {
            let gate = gate.clone();
            async move {
                ctx.log("begun");
                tokio::select! {
                    permit = gate.acquire() => permit?.forget(),
                    _ = ctx.canceled() => return Err(JobError::message("told to stop")),
                }
                Ok::<_, JobError>(7)
            }
        },
    )
}
fn start(node: &FakeNode, gate: &Arc<Semaphore>) -> ExecutorHandle {
    builder(node, gate).build().unwrap().start()
}

#[tokio::test]
async fn credit_comes_again_unasked() {
    let node = FakeNode::start().await;
    let _executor = start(&node, &Arc::new(Semaphore::new(0)));
    let mut link = node.executor(3).await;
    let mut last = link.credit.clone().unwrap().stamp_ms;
    // How soon is tested with given times in `upstream.rs`: here a busy machine may be late.
    for _ in 0..3 {
        let credit = link.credit().await;
        assert!(credit.stamp_ms > last, "a new one, and not the old one again");
        assert_eq!(credit.slots, 4);
        last = credit.stamp_ms;
    }
}

#[tokio::test]
async fn a_result_is_handed_in_until_a_node_calls_it_durable() {
    let node = FakeNode::start().await;
    let gate = Arc::new(Semaphore::new(0));
    let executor = start(&node, &gate);
    let mut link = node.executor(3).await;
    assert_eq!(link.announced.take().unwrap().held, []);
    link.assign(vec![assignment(1, 1, "wait"), assignment(2, 1, "wait")]).await;
    within(executor.wait_until(|status| status.running == 2)).await.unwrap();
    let log: LogChunk = link.next(method::EXECUTOR_LOG).await.read();
    assert_eq!(log.data, b"begun\n");
    drop(link);

    // Both run on without a connection, and one ends.
    gate.add_permits(1);
    within(executor.wait_until(|status| status.unacknowledged == 1)).await.unwrap();
    let mut link = node.executor(3).await;
    let mut held: Vec<(u64, u64)> = link.announced.take().unwrap().held.iter().map(|h| (h.run.0, h.token.0)).collect();
    held.sort();
    assert_eq!(held, [(1, 1), (2, 1)], "all that it holds, run or ended");
    let refused = link.finish(FinishOutcome::Again).await;
    assert_eq!((refused.len(), refused[0].state), (1, AttemptState::Success));
    let again = link.finish(FinishOutcome::Durable).await;
    assert_eq!(again, refused);
    within(executor.wait_until(|status| status.unacknowledged == 0)).await.unwrap();

    // A result on its way when the connection breaks is sent over the next one.
    gate.add_permits(1);
    let lost = link.next(method::EXECUTOR_FINISH).await;
    drop(link);
    let mut link = node.executor(3).await;
    let ended = link.finish(FinishOutcome::Stale).await;
    assert_eq!(ended, lost.read::<campanile_client::schema::rpc::executor::Finish>().items);
    within(executor.wait_until(|status| status.unacknowledged == 0 && status.running == 0)).await.unwrap();
}

#[tokio::test]
async fn what_the_announcement_is_answered_with_is_stopped() {
    let node = FakeNode::start().await;
    let executor = start(&node, &Arc::new(Semaphore::new(0)));
    let mut link = node.executor(3).await;
    link.assign(vec![assignment(1, 1, "wait"), assignment(2, 1, "wait")]).await;
    within(executor.wait_until(|status| status.running == 2)).await.unwrap();
    drop(link);
    let mut link = node.accept().await;
    let register = link.next(method::EXECUTOR_REGISTER).await;
    let nothing =
        campanile_client::schema::rpc::executor::Registered { cluster_id: fake_node::CLUSTER, epochs: vec![] };
    link.answer(register.id.unwrap(), &nothing).await;
    let announce = link.next(method::EXECUTOR_ANNOUNCE).await;
    let stop = vec![Held { run: RunId(2), job: assignment(1, 1, "").job, token: Token(1) }];
    link.answer(announce.id.unwrap(), &Announced { stop }).await;
    let ended = link.finish(FinishOutcome::Durable).await;
    assert_eq!((ended.len(), ended[0].run, ended[0].state), (1, RunId(2), AttemptState::Canceled));
    assert_eq!(executor.status().running, 1);
}

#[tokio::test]
async fn a_new_epoch_is_told_what_is_held() {
    let node = FakeNode::start().await;
    let _executor = start(&node, &Arc::new(Semaphore::new(0)));
    let mut link = node.executor(3).await;
    let mut newer = assignment(1, 1, "wait");
    newer.epoch = campanile_client::schema::ids::Epoch(4);
    link.assign(vec![newer]).await;
    let announce = loop {
        let said = link.hear().await.unwrap();
        if said.method == method::EXECUTOR_ANNOUNCE {
            break said.read::<campanile_client::schema::rpc::executor::Announce>();
        }
    };
    assert_eq!(announce.held.iter().map(|h| h.run.0).collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn bodies_that_must_not_outlive_their_lease_stop_while_the_node_is_silent() {
    let node = FakeNode::start().await;
    let executor = start(&node, &Arc::new(Semaphore::new(0)));
    let mut link = node.executor(3).await;
    let mut must_stop = assignment(1, 1, "wait");
    must_stop.on_lost_contact = OnLostContact::Stop;
    link.assign(vec![must_stop, assignment(2, 1, "wait")]).await;
    within(executor.wait_until(|status| status.running == 2)).await.unwrap();
    // From now on the node hears nothing and says nothing, and refuses no connection either. After how long it must be is tested with given
    // times in `upstream.rs`: here a busy machine may be late.
    within(executor.wait_until(|status| status.running == 1)).await.unwrap();
    drop(link);
    let mut link = loop {
        // Connections that were begun while it was silent are given up by now.
        let mut link = node.accept().await;
        if let Some(said) = link.hear().await
            && said.method == method::EXECUTOR_REGISTER
        {
            let none = campanile_client::schema::rpc::executor::Registered { cluster_id: 5, epochs: vec![] };
            link.answer(said.id.unwrap(), &none).await;
            if let Some(said) = link.hear().await {
                link.answer(said.id.unwrap(), &Announced::default()).await;
                break link;
            }
        }
    };
    let ended = link.finish(FinishOutcome::Durable).await;
    assert_eq!((ended.len(), ended[0].run, ended[0].state), (1, RunId(1), AttemptState::Failed));
    assert_eq!(ended[0].error_code.as_deref(), Some("LOST_CONTACT"));
}

#[tokio::test]
async fn logs_go_before_the_result_in_order_and_say_what_was_dropped() {
    let node = FakeNode::start().await;
    let _executor = Executor::builder(node.address.to_string(), "token")
        .handler("loud", |ctx: Context, _: serde_json::Value| async move {
            // More than fits, without a chance to send in between.
            for n in 0..=LOG_UNSENT_BYTES / 10 {
                ctx.log(format!("{n:09}"));
            }
            Ok::<_, JobError>(())
        })
        .build()
        .unwrap()
        .start();
    let mut link = node.executor(3).await;
    link.assign(vec![assignment(1, 1, "loud")]).await;
    let mut log = String::new();
    loop {
        let said = link.hear().await.unwrap();
        match said.method.as_str() {
            method::EXECUTOR_LOG => {
                log.push_str(std::str::from_utf8(&said.read::<LogChunk>().data).unwrap());
                if let Some(id) = said.id {
                    link.answer(id, &Announced::default()).await;
                }
            }
            method::EXECUTOR_FINISH => break,
            _ => {}
        }
    }
    let (lines, note) = log.split_at(log.find("\n[").unwrap());
    for (n, line) in lines.lines().enumerate() {
        assert_eq!(line, format!("{n:09}"));
    }
    assert!(note.contains("bytes of log dropped]"), "{note}");
}

#[tokio::test]
async fn a_drain_that_takes_too_long_stops_bodies_and_hands_in_why() {
    let node = FakeNode::start().await;
    let executor = start(&node, &Arc::new(Semaphore::new(0)));
    let mut link = node.executor(3).await;
    link.assign(vec![assignment(1, 1, "wait")]).await;
    within(executor.wait_until(|status| status.running == 1)).await.unwrap();
    let _log = link.next(method::EXECUTOR_LOG).await;
    let drained = tokio::spawn(executor.drain(Duration::from_millis(300)));
    link.next(method::EXECUTOR_DRAIN).await;
    let ended = link.finish(FinishOutcome::Durable).await.remove(0);
    assert_eq!((ended.state, ended.error_code.as_deref()), (AttemptState::Failed, Some("EXECUTOR_SHUTDOWN")));
    let status = within(drained).await.unwrap();
    assert_eq!((status.running, status.unacknowledged), (0, 0));
    assert!(link.hear().await.is_none(), "the connection is closed");
}

#[tokio::test]
async fn a_dropped_handle_ends_bodies_and_connections() {
    let node = FakeNode::start().await;
    let gate = Arc::new(Semaphore::new(0));
    let executor = start(&node, &gate);
    let mut link = node.executor(3).await;
    link.assign(vec![assignment(1, 1, "wait")]).await;
    within(executor.wait_until(|status| status.running == 1)).await.unwrap();
    drop(executor);
    while link.hear().await.is_some() {}
    // The body's share of the gate is gone with it.
    within(async {
        while Arc::strong_count(&gate) > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_short_bodies_share_messages_and_one_that_comes_alone_goes_at_once() {
    const RUNS: u64 = 1_000;
    let node = FakeNode::start().await;
    let _executor = Executor::builder(node.address.to_string(), "token")
        .slots(RUNS as u32)
        .handler("now", |_: Context, _: serde_json::Value| async { Ok::<_, JobError>(()) })
        .build()
        .unwrap()
        .start();
    let mut link = node.executor(3).await;
    link.assign(vec![assignment(1, 1, "now")]).await;
    assert_eq!(link.finish(FinishOutcome::Durable).await.len(), 1);
    let began = Instant::now();
    for first in (2..RUNS).step_by(100) {
        link.assign((first..first + 100).map(|run| assignment(run, 1, "now")).collect()).await;
    }
    let (mut ended, mut messages) = (0, 0);
    while ended < RUNS as usize {
        ended += link.finish(FinishOutcome::Durable).await.len();
        messages += 1;
    }
    // At most one in a gathering time, however fast or slow the machine is.
    let most = began.elapsed().as_millis() / u128::from(FINISH_GATHER_MS) + 2;
    assert!(messages <= most, "{messages} messages in a time for {most}");
}
