//! Connections that never get through with their handshake.

use crate::secure_node::{SecureNode, get};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Of each port; both ends are files of this process.
const SILENT: usize = 150;
/// Far above what a handshake may take; reached only when one has no end.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_stop_nobody_and_end() {
    let node = SecureNode::start().await;
    let mut silent = Vec::new();
    for number in 0..SILENT {
        for address in [node.http(), node.rpc()] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if number % 2 == 0 {
                // The first bytes of a record that never comes.
                stream.write_all(&[0x16, 3, 1, 2, 0]).await.unwrap();
            }
            silent.push(stream);
        }
    }
    node.client().await;
    let mut stream = node.raw(node.http()).await;
    let (status, _) = get(&mut stream, "/api/v1/jobs").await;
    assert_eq!(status, "HTTP/1.1 200 OK");
    // None of them was displaced, and none is kept.
    for mut stream in silent {
        let mut said = Vec::new();
        // However it ends: what matters is that it does.
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut said)).await;
        assert!(ended.is_ok(), "it is still open");
    }
    node.stop().await;
}
