//! The client of callers: pipelined answers in any order, deadlines, broken connections.
#![allow(clippy::unwrap_used)]

mod fake_node;

use campanile_client::{
    Client, ClientError, ClientOptions,
    schema::{
        error::{ApiError, ErrorCode},
        ids::JobId,
        job::{JobSpec, JobStatus, Trigger},
        operations::{JobCreate, SystemInfo, SystemPause},
        rpc::method,
        view::{Created, NodeView, Spread},
    },
};
use fake_node::{FakeLink, FakeNode, within};
use serde_json::json;
use std::time::Duration;

async fn connected(node: &FakeNode) -> (Client, FakeLink) {
    let (client, link) = tokio::join!(Client::connect(node.address.to_string(), "token"), node.accept());
    (client.unwrap(), link)
}

fn created(id: u64) -> Created {
    Created { job_id: JobId(id), status: JobStatus::Enabled, next_fire_at: None }
}

fn info() -> NodeView {
    serde_json::from_value(json!({"version":"1","clusterId":5,"shards":1,"epoch":1,"tzdb":"x","ready":true,
        "notReadyReasons":[],"jobs":3,"openRuns":0,"executors":0,"now":0}))
    .unwrap()
}

#[test]
fn options_are_shown_without_the_token() {
    let shown = format!("{:?}", ClientOptions::new(vec!["node:7701".to_owned()], "cmp_hunter2"));
    assert!(shown.contains("node:7701"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn answers_find_their_calls_in_any_order() {
    let node = FakeNode::start().await;
    let (client, mut link) = connected(&node).await;
    let calls: Vec<_> = (0..20)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.job_create(JobSpec::new("t", &n.to_string(), Trigger::Manual {})).await })
        })
        .collect();
    let mut asked = Vec::new();
    for _ in 0..20 {
        asked.push(link.expect::<JobSpec>(JobCreate::NAME).await);
    }
    for (id, spec) in asked.iter().rev() {
        let n: u64 = spec.name.parse().unwrap();
        if n == 13 {
            link.fail(*id, &ApiError::new(ErrorCode::DuplicateName, "taken")).await;
        } else {
            link.answer(*id, &created(n)).await;
        }
    }
    for (n, call) in calls.into_iter().enumerate() {
        match within(call).await.unwrap() {
            Ok(created) => assert_eq!(created.job_id, JobId(n as u64)),
            Err(error) => {
                assert_eq!((n, error.api().unwrap().known()), (13, ErrorCode::DuplicateName));
            }
        }
    }
}

#[tokio::test]
async fn a_pause_tells_which_shards_do_not_hold_it_yet() {
    let node = FakeNode::start().await;
    let (client, mut link) = connected(&node).await;
    for outstanding in [vec![], vec![7, 201]] {
        let asked = tokio::spawn({
            let client = client.clone();
            async move { client.system_pause(None).await }
        });
        let (id, _) = link.expect::<serde_json::Value>(SystemPause::NAME).await;
        link.answer(id, &Spread { outstanding: outstanding.clone() }).await;
        assert_eq!(within(asked).await.unwrap().unwrap().outstanding, outstanding);
    }
}

#[tokio::test]
async fn a_call_without_an_answer_ends_at_its_deadline_and_hurts_no_other() {
    let node = FakeNode::start().await;
    let (client, mut link) = connected(&node).await;
    let hasty = client.with_timeout(Duration::from_millis(50));
    let late = hasty.job_create(JobSpec::new("t", "a", Trigger::Manual {})).await;
    assert!(matches!(late, Err(ClientError::Timeout { method: JobCreate::NAME, .. })), "{late:?}");
    let (id, _) = link.expect::<JobSpec>(JobCreate::NAME).await;
    link.answer(id, &created(1)).await;
    let answering = async {
        let (id, _) = link.expect::<JobSpec>(JobCreate::NAME).await;
        link.answer(id, &created(2)).await;
    };
    let (second, ()) = tokio::join!(client.job_create(JobSpec::new("t", "b", Trigger::Manual {})), answering);
    assert_eq!(second.unwrap().job_id, JobId(2));
}

#[tokio::test]
async fn when_the_connection_breaks_reads_are_asked_again_and_writes_are_not() {
    let node = FakeNode::start().await;
    let (client, mut link) = connected(&node).await;
    let write = tokio::spawn({
        let client = client.clone();
        async move { client.job_create(JobSpec::new("t", "a", Trigger::Manual {})).await }
    });
    let _ = link.expect::<JobSpec>(JobCreate::NAME).await;
    let read = tokio::spawn({
        let client = client.clone();
        async move { client.system_info().await }
    });
    let _ = link.expect::<serde::de::IgnoredAny>(SystemInfo::NAME).await;
    drop(link);
    assert!(matches!(within(write).await.unwrap(), Err(ClientError::Io { .. })), "it may have been carried out");
    let mut link = node.accept().await;
    let (id, _) = link.expect::<serde::de::IgnoredAny>(SystemInfo::NAME).await;
    link.answer(id, &info()).await;
    assert_eq!(within(read).await.unwrap().unwrap().jobs, 3);
    // And the next write goes over the new connection.
    let answering = async {
        let (id, _) = link.expect::<JobSpec>(JobCreate::NAME).await;
        link.answer(id, &created(9)).await;
    };
    let (written, ()) = tokio::join!(client.job_create(JobSpec::new("t", "b", Trigger::Manual {})), answering);
    assert_eq!(written.unwrap().job_id, JobId(9));
}

/// What the node says is about the connection. It had read the call, which may have been carried out.
#[tokio::test]
async fn a_node_that_ends_the_connection_has_not_refused_the_calls_that_wait() {
    let node = FakeNode::start().await;
    let (client, mut link) = connected(&node).await;
    let write = tokio::spawn(async move { client.job_create(JobSpec::new("t", "a", Trigger::Manual {})).await });
    let _ = link.expect::<JobSpec>(JobCreate::NAME).await;
    link.notify(method::SESSION_ERROR, &ApiError::new(ErrorCode::NotReady, "the node stops")).await;
    match within(write).await.unwrap() {
        Err(ClientError::Io { reason, .. }) => assert!(reason.contains("the node stops"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_next_address_is_tried_and_a_refusal_is_told() {
    let gone = FakeNode::start().await;
    let gone_address = gone.address.to_string();
    drop(gone);
    let node = FakeNode::start().await;
    let options =
        ClientOptions::new(vec![gone_address, node.address.to_string()], "token").timeout(Duration::from_secs(5));
    let (client, _link) = tokio::join!(Client::connect_with(options), node.accept());
    assert_eq!(client.unwrap().welcome().node, "fake");

    let refusing = async {
        let mut link = node.accept_raw().await;
        let (id, _) = link.expect::<serde::de::IgnoredAny>(method::HELLO).await;
        link.fail(id, &ApiError::new(ErrorCode::Unauthenticated, "who?")).await;
        link
    };
    let (refused, _link) = tokio::join!(Client::connect(node.address.to_string(), "wrong"), refusing);
    assert_eq!(refused.err().unwrap().api().unwrap().known(), ErrorCode::Unauthenticated);
}
