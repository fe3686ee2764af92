//! What goes over TLS: everything that goes without.

use crate::{
    secure_node::{SecureNode, get},
    support::TOKEN,
};
use campanile_client::{Context, Executor, Job, JobError};
use campanile_schema::{record::RunState, view::JobFilter};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_and_executors_are_served_over_tls() {
    let node = SecureNode::start().await;
    let client = node.client().await;
    // More than a socket's buffers take in one piece, both ways.
    let large = "x".repeat(12 << 10);
    let executor = Executor::builder(format!("tls://{}", node.rpc_by_name()), TOKEN)
        .tls(node.authority.tls())
        .slots(8)
        .handler("echo", |_: Context, params: Value| async move { Ok::<_, JobError>(params) })
        .build()
        .unwrap()
        .start();
    let mut runs = Vec::new();
    for number in 0..200 {
        let job = Job::manual(&format!("echo-{number}")).handler("echo").params(&json!({"text": large})).unwrap();
        let job = client.job_create(job).await.unwrap().job_id;
        runs.push(client.job_trigger(job, Default::default()).await.unwrap().run_id);
    }
    for run in runs {
        let run = client.run_wait(run, Duration::from_secs(60)).await.unwrap();
        assert_eq!(run.state, RunState::Success, "{:?}", run.last_error);
        assert!(run.result.unwrap().0.contains(&large));
    }
    let listed = client.job_list(JobFilter::default()).await.unwrap();
    assert!(!listed.items.is_empty());
    assert_eq!(executor.drain(Duration::from_secs(10)).await.unacknowledged, 0);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_is_served_over_tls_and_says_which() {
    let node = SecureNode::start().await;
    let mut stream = node.raw(node.http()).await;
    // What is served, though the client would rather have had another.
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    for _ in 0..3 {
        let (status, body) = get(&mut stream, "/api/v1/jobs").await;
        assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
    }
    let (status, body) = get(&mut stream, "/openapi.json").await;
    assert!(status.contains("200"), "{status}: {} bytes", body.len());
    assert!(body.len() > 64 << 10, "{status}: {} bytes", body.len());
    node.stop().await;
}
