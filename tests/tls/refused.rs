//! Who is refused, and how both sides say why.

use crate::{
    authority::Authority,
    secure_node::{SecureNode, connect},
    support::TestNode,
};
use campanile_client::{Context, Executor, JobError};
use campanile_schema::error::ErrorCode;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The words of a connection that must not come about.
async fn refusal(address: String, authority: Option<&Authority>) -> String {
    match connect(address, authority.map(Authority::tls)).await {
        Ok(_) => panic!("it was let in"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_must_show_a_certificate_of_the_ca_for_its_name() {
    let node = SecureNode::start().await;
    let other = Authority::new();
    let anew = Authority::called(node.authority.name.clone());
    for authority in [&other, &anew] {
        let said = refusal(node.rpc_by_name(), Some(authority)).await;
        assert!(said.contains("not of a CA that this client trusts"), "{said}");
    }
    let said = refusal(node.rpc().to_string(), Some(&node.authority)).await;
    assert!(said.contains("does not name 127.0.0.1"), "{said}");
    // Nothing is wrong with the node.
    node.client().await;
    // An executor says the same, and no body of its is ever started.
    let executor = Executor::builder(node.rpc_by_name(), crate::support::TOKEN)
        .tls(other.tls())
        .handler("x", |_: Context, (): ()| async { Ok::<_, JobError>(()) })
        .build()
        .unwrap()
        .start();
    let status = executor.wait_until(|status| status.last_error.is_some()).await.unwrap();
    let said = status.last_error.unwrap();
    assert_eq!(status.registered, 0, "{said}");
    assert!(said.contains("not of a CA"), "{said}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_speaks_in_clear_to_a_port_with_tls_is_told() {
    let node = SecureNode::start().await;
    let Err(error) = connect(node.rpc().to_string(), None).await else { panic!("it was let in") };
    assert_eq!(error.api().map(|error| error.known()), Some(ErrorCode::InvalidArgument), "{error}");
    assert!(error.to_string().contains("this port speaks TLS"), "{error}");
    assert!(error.to_string().contains("tls://"), "{error}");
    let mut stream = TcpStream::connect(node.http()).await.unwrap();
    stream.write_all(b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("application/problem+json"), "{answer}");
    assert!(answer.contains("write https://"), "{answer}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_speaks_tls_to_a_port_in_clear_is_told() {
    let node = TestNode::start().await;
    let authority = Authority::new();
    let said = refusal(format!("tls://{}", node.rpc()), Some(&authority)).await;
    assert!(said.contains("the other side does not speak TLS"), "{said}");
    let said = refusal(format!("https://{}", node.rpc()), Some(&authority)).await;
    assert!(said.contains("tls://host:port"), "{said}");
    // With an address that says so it is in clear, whatever else is set up.
    connect(format!("tcp://{}", node.rpc()), Some(authority.tls())).await.unwrap();
    node.stop().await;
}
