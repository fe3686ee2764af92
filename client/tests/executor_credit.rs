//! An executor moves credit to the nodes where runs wait.
#![allow(clippy::unwrap_used)]

mod fake_node;

use campanile_client::{
    Context, Executor, ExecutorHandle, JobError,
    schema::{record::AttemptState, rpc::executor::FinishOutcome},
};
use fake_node::{FakeLink, FakeNode, assignment, within};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// An executor of so many slots that is ready on two nodes.
async fn ready(slots: u32, gate: &Arc<Semaphore>) -> (ExecutorHandle, FakeLink, FakeLink) {
    let (one, two) = (FakeNode::named("n1").await, FakeNode::named("n2").await);
    let gate = gate.clone();
    let executor = Executor::builder(format!("{},{}", one.address, two.address), "token")
        .slots(slots)
        .handler("wait", move |_: Context, _: serde_json::Value| {
            let gate = gate.clone();
            async move {
                gate.acquire().await?.forget();
                Ok::<_, JobError>(7)
            }
        })
        .build()
        .unwrap()
        .start();
    let (first, second) = (one.executor(3).await, two.executor(3).await);
    (executor, first, second)
}

#[tokio::test]
async fn all_slots_come_to_serve_the_node_where_runs_wait_and_the_parts_are_equal_afterwards() {
    let gate = Arc::new(Semaphore::new(0));
    let (executor, mut busy, mut idle) = ready(8, &gate).await;
    busy.hint(false).await;
    idle.hint(false).await;
    busy.until_credit(4).await;
    idle.until_credit(4).await;
    busy.hint(true).await;
    // The one that loses some is told first.
    idle.until_credit(1).await;
    busy.until_credit(7).await;
    busy.assign((1..=7).map(|run| assignment(run, run, "wait")).collect()).await;
    within(executor.wait_until(|status| status.running == 7)).await.unwrap();
    // The last free slot too: what may come to the other node is told of when it waits.
    idle.until_credit(0).await;
    busy.until_credit(1).await;
    busy.assign(vec![assignment(8, 8, "wait")]).await;
    within(executor.wait_until(|status| status.running == 8)).await.unwrap();

    // One ends and another one begins: none is kept for the idle node while runs wait at the busy one.
    gate.add_permits(1);
    assert_eq!(busy.finish(FinishOutcome::Durable).await[0].state, AttemptState::Success);
    assert_eq!(busy.credit.as_ref().unwrap().slots, 1);
    busy.assign(vec![assignment(9, 9, "wait")]).await;
    within(executor.wait_until(|status| status.running == 8 && status.ended == 1)).await.unwrap();

    busy.hint(false).await;
    gate.add_permits(8);
    let mut ended = 0;
    while ended < 8 {
        ended += busy.finish(FinishOutcome::Durable).await.len();
    }
    busy.until_credit(4).await;
    idle.until_credit(4).await;
}

#[tokio::test]
async fn what_was_moved_comes_back_when_the_other_node_has_runs_too_or_is_gone() {
    let gate = Arc::new(Semaphore::new(0));
    let (executor, mut one, mut two) = ready(8, &gate).await;
    one.hint(true).await;
    two.hint(false).await;
    one.until_credit(7).await;
    two.until_credit(1).await;
    two.hint(true).await;
    one.until_credit(4).await;
    two.until_credit(4).await;
    one.hint(false).await;
    one.until_credit(1).await;
    two.until_credit(7).await;
    drop(two);
    one.until_credit(8).await;
    within(executor.wait_until(|status| status.registered == 1)).await.unwrap();
}

#[tokio::test]
async fn a_node_of_an_older_release_says_nothing_and_keeps_its_part() {
    let gate = Arc::new(Semaphore::new(0));
    let (_executor, mut older, mut newer) = ready(1, &gate).await;
    newer.hint(true).await;
    // The one slot is each one's in turn.
    tokio::join!(three_turns(&mut older), three_turns(&mut newer));
}

/// The slot goes and comes back.
async fn three_turns(link: &mut FakeLink) {
    for _ in 0..3 {
        link.until_credit(0).await;
        link.until_credit(1).await;
    }
}
