//! Certificates that change while a node runs.

use crate::{
    secure_node::{SecureNode, get, shown},
    support::eventually,
};
use campanile_schema::view::JobFilter;
use std::fs;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_is_for_new_connections() {
    let node = SecureNode::start().await;
    let client = node.client().await;
    let mut old = node.raw(node.http()).await;
    let before = shown(&old);
    let made = node.authority.make("localhost", 2101);
    // Found by the node itself, within seconds.
    made.put(&node.authority.files());
    for address in [node.http(), node.rpc()] {
        eventually("the new certificate", || async {
            let certificate = shown(&node.raw(address).await);
            (certificate == made.der).then_some(())
        })
        .await;
    }
    assert_ne!(before, made.der);
    // What was there goes on.
    assert_eq!(get(&mut old, "/api/v1/jobs").await.0, "HTTP/1.1 200 OK");
    client.job_list(JobFilter::default()).await.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pair_that_cannot_be_used_changes_nothing() {
    let node = SecureNode::start().await;
    let before = shown(&node.raw(node.rpc()).await);
    let files = node.authority.files();
    // A certificate of another key, then half of one, then one that has expired: the good one behind them shows that they were looked at.
    let stranger = node.authority.make("localhost", 2102).certificate;
    let key = fs::read_to_string(&files.key).unwrap();
    let old = fs::read_to_string(&files.certificate).unwrap();
    for broken in [&stranger, &old[..old.len() / 2], &node.authority.make("localhost", 2021).certificate] {
        crate::authority::replace(&files.certificate, broken);
        node.certificate.look_now();
        for _ in 0..20 {
            assert_eq!(shown(&node.raw(node.rpc()).await), before);
        }
    }
    assert_eq!(fs::read_to_string(&files.key).unwrap(), key);
    let made = node.authority.make("localhost", 2103);
    made.put(&files);
    node.certificate.look_now();
    eventually("the good one", || async {
        let certificate = shown(&node.raw(node.rpc()).await);
        assert!(certificate == before || certificate == made.der, "a broken one was used");
        (certificate == made.der).then_some(())
    })
    .await;
    node.stop().await;
}
