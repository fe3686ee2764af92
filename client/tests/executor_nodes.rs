//! An executor follows the nodes of a cluster, of which a node tells it.
#![allow(clippy::unwrap_used)]

mod fake_node;

use campanile_client::{
    Context, Executor, ExecutorHandle, JobError,
    executor::{ExecutorBuilder, Status},
    schema::{record::AttemptState, rpc::executor::FinishOutcome},
};
use fake_node::{FakeLink, FakeNode, assignment, within};
use std::{sync::Arc, time::Duration};
use tokio::{net::TcpSocket, sync::Semaphore, time::timeout};

fn start(addresses: &str, gate: &Arc<Semaphore>) -> ExecutorHandle {
    builder(addresses, gate).build().unwrap().start()
}

fn builder(addresses: &str, gate: &Arc<Semaphore>) -> ExecutorBuilder {
    let gate = gate.clone();
    Executor::builder(addresses, "token").slots(4).handler("wait", move |_: Context, _: serde_json::Value| {
        let gate = gate.clone();
        async move {
            gate.acquire().await?.forget();
            Ok::<_, JobError>(7)
        }
    })
}

async fn registered(executor: &ExecutorHandle, count: usize) -> Status {
    within(executor.wait_until(|status| status.registered == count)).await.unwrap()
}

fn at(node: &FakeNode) -> String {
    node.address.to_string()
}

/// A port at which nobody listens, for as long as the socket is kept.
fn nowhere() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    (socket, address)
}

#[tokio::test]
async fn it_connects_to_nodes_that_it_is_told_of_and_lets_go_of_those_that_left() {
    let (one, two) = (FakeNode::named("n1").await, FakeNode::named("n2").await);
    let gate = Arc::new(Semaphore::new(0));
    // The name of the machine and its address: one node all the same.
    let executor = start(&format!("localhost:{}", one.address.port()), &gate);
    let mut first = one.executor(3).await;
    first.tell_of(&[("n1", at(&one)), ("n2", at(&two))]).await;
    let mut second = two.executor(4).await;
    assert_eq!(registered(&executor, 2).await.last_error, None, "nobody was connected to twice");
    second
        .assign(vec![{
            let mut item = assignment(1, 1, "wait");
            item.epoch = campanile_client::schema::ids::Epoch(4);
            item
        }])
        .await;
    within(executor.wait_until(|status| status.running == 1)).await.unwrap();

    // It leaves, and what came over its connection is told to the other one.
    first.tell_of(&[("n1", at(&one))]).await;
    assert_eq!(executor.status().registered, 2, "it is still there");
    drop(second);
    gate.add_permits(1);
    registered(&executor, 1).await;
    let ended = finished(&mut first).await;
    assert_eq!(ended, [(1, AttemptState::Success)]);
    // It may have tried once before it let go; one that had not would be back each second or two.
    let mut tries = 0;
    while timeout(Duration::from_secs(4), two.accept_raw()).await.is_ok() {
        tries += 1;
        assert!(tries < 3, "it is tried again and again");
    }
    drop(two);

    // The next one takes its place.
    let three = FakeNode::named("n3").await;
    first.tell_of(&[("n1", at(&one)), ("n3", at(&three))]).await;
    let _third = three.executor(5).await;
    registered(&executor, 2).await;
}

/// The next results, whatever else is said before.
async fn finished(link: &mut FakeLink) -> Vec<(u64, AttemptState)> {
    within(link.finish(FinishOutcome::Durable)).await.iter().map(|ended| (ended.run.0, ended.state)).collect()
}

#[tokio::test]
async fn an_address_that_cannot_be_reached_changes_nothing_for_one_that_can() {
    let one = FakeNode::named("n1").await;
    let gate = Arc::new(Semaphore::new(0));
    let executor = start(&at(&one), &gate);
    let mut first = one.executor(3).await;
    // The node does not know how it is reached: not even its own address is right.
    let ((_one, address), (_two, another)) = (nowhere(), nowhere());
    first.tell_of(&[("n1", address), ("n2", another)]).await;
    first.assign(vec![assignment(1, 1, "wait")]).await;
    gate.add_permits(1);
    assert_eq!(finished(&mut first).await, [(1, AttemptState::Success)]);
    for _ in 0..3 {
        // All of them: nobody else takes any.
        assert_eq!(first.credit().await.slots, 4);
    }
    let status = executor.status();
    assert_eq!((status.registered, status.last_error), (1, None), "quietly");
}

#[tokio::test]
async fn an_address_that_leads_to_another_node_than_was_told_is_not_registered_with() {
    let (one, other) = (FakeNode::named("n1").await, FakeNode::named("of-another-cluster").await);
    let executor = start(&at(&one), &Arc::new(Semaphore::new(0)));
    let mut first = one.executor(3).await;
    first.tell_of(&[("n2", at(&other))]).await;
    let mut stranger = other.accept().await;
    assert!(stranger.hear().await.is_none(), "it hangs up");
    assert_eq!(executor.status().registered, 1);
    assert_eq!(first.credit().await.slots, 4);
}

#[tokio::test]
async fn two_addresses_of_one_node_do_not_take_its_session_from_each_other() {
    let node = FakeNode::named("n1").await;
    let executor = start(&format!("{0},localhost:{1}", at(&node), node.address.port()), &Arc::new(Semaphore::new(0)));
    let mut used = node.executor(3).await;
    registered(&executor, 1).await;
    // The other one is hung up on, each time that it comes.
    for _ in 0..2 {
        let mut second = node.accept().await;
        assert!(second.hear().await.is_none());
    }
    assert_eq!(used.credit().await.slots, 4);
    assert_eq!(executor.status().registered, 1);
}

#[tokio::test]
async fn one_that_does_not_follow_stays_with_what_it_was_given() {
    let (one, two) = (FakeNode::named("n1").await, FakeNode::named("n2").await);
    let executor = builder(&at(&one), &Arc::new(Semaphore::new(0))).follow(false).build().unwrap().start();
    let mut first = one.executor(3).await;
    first.tell_of(&[("n1", at(&one)), ("n2", at(&two))]).await;
    // What is told before is heard before: nothing was begun by the time that this is done.
    first.assign(vec![assignment(1, 1, "nobody has this")]).await;
    assert_eq!(finished(&mut first).await, [(1, AttemptState::Failed)]);
    assert!(!two.has_caller().await);
    assert_eq!(executor.status().registered, 1);
}
