//! Who is let in, and what happens when a peer goes and comes.

use super::{
    super::{
        Gateway, GatewayError, Options,
        hello::{Hello, VERSION, Welcome, hear, say},
        tls::Tls,
    },
    nodes::{Files, SOON, ask, connected, eventually, handler, introduce, members, node, node_at, options, write},
};
use crate::{keys::Authority, node_id};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::{io::AsyncReadExt, net::TcpStream};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_goes_and_comes_is_called_again() {
    let files = Files::of("bells");
    let (a, b, c) = (node("a", &files).await, node("b", &files).await, node("c", &files).await);
    introduce(&[&a, &b, &c]);
    connected(&[&a, &b, &c]).await;
    assert_eq!(ask(&a, "b", "hello").await.unwrap(), "b: hello");
    assert_eq!(ask(&b, "c", "hello").await.unwrap(), "c: hello");
    // What is under way when it goes may have been executed.
    let a = Arc::new(a);
    let caller = a.clone();
    let silent = tokio::spawn(async move { caller.gateway.call(node_id("b"), b"silence".to_vec(), SOON).await });
    eventually("it has begun", || async { b.begun.load(Ordering::Relaxed) == 2 }).await;
    let address = b.gateway.address();
    drop(b);
    let lost = tokio::time::timeout(SOON, silent).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(lost, GatewayError::Lost(_)), "{lost}");
    assert!(lost.may_have_run(), "{lost}");
    eventually("nobody is there", || async { ask(&a, "b", "hello").await.is_err_and(|error| !error.may_have_run()) })
        .await;
    assert_eq!(ask(&a, "c", "hello").await.unwrap(), "c: hello", "others are not disturbed");
    eventually("its address is free", || async { std::net::TcpListener::bind(address).is_ok() }).await;
    let b = node_at("b", &files, address).await;
    introduce(&[&a, &b, &c]);
    connected(&[&a, &b, &c]).await;
    assert_eq!(ask(&a, "b", "again").await.unwrap(), "b: again");
    assert_eq!(ask(&b, "a", "again").await.unwrap(), "a: again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_handshakes_hold_nobody_up() {
    let files = Files::of("bells");
    let (a, b) = (node("a", &files).await, node("b", &files).await);
    let (connecting, mut first) = tokio::sync::mpsc::unbounded_channel();
    let mut stalled = tokio::task::JoinSet::new();
    for address in [a.gateway.address(), b.gateway.address()].repeat(20) {
        let connecting = connecting.clone();
        stalled.spawn(async move {
            loop {
                let mut silent = TcpStream::connect(address).await.unwrap();
                connecting.send(()).unwrap();
                // When the node gives it up the next one is there, so that handshakes made one after the other would never get to an end.
                let _ = silent.read(&mut [0]).await;
            }
        });
    }
    for _ in 0..40 {
        first.recv().await.unwrap();
    }
    introduce(&[&a, &b]);
    connected(&[&a, &b]).await;
    assert_eq!(ask(&a, "b", "hello").await.unwrap(), "b: hello");
    assert_eq!(stalled.len(), 40);
    drop(stalled);
}

/// Two that do not trust each other: why, as the one that calls is told.
async fn refused(first: Options, second: Options) -> String {
    let start = |options: Options| async {
        let name = options.name.clone();
        Gateway::start(options, handler(&name, Arc::new(AtomicU64::new(0)))).await.unwrap()
    };
    // The one that dials is the one with the lower id.
    let (low, high) = if first.node < second.node { (first, second) } else { (second, first) };
    let (low_name, high_name) = (low.name.clone(), high.name.clone());
    let (low, high) = (start(low).await, start(high).await);
    let names = [(low_name.as_str(), low.address()), (high_name.as_str(), high.address())];
    low.set_peers(&members(&names, &low_name));
    high.set_peers(&members(&names, &high_name));
    let told = Mutex::new(String::new());
    eventually("it is told why", || async {
        let error = low.call(node_id(&high_name), b"hello".to_vec(), SOON).await.unwrap_err();
        assert!(!error.may_have_run());
        *told.lock() = error.to_string();
        error.to_string().contains('(')
    })
    .await;
    assert!(!high.is_connected(node_id(&low_name)));
    assert!(!low.is_connected(node_id(&high_name)));
    told.into_inner()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_certificate_is_refused() {
    let (ours, theirs) = (Files::of("bells"), Files::of("bells"));
    let told = refused(options("bells", "a", &ours), options("bells", "b", &theirs)).await;
    assert!(told.contains("invalid peer certificate"), "{told}");
    // The one that is called has the right CA for servers, and ours does not know the caller.
    let ours = Files::of("bells");
    let theirs = Files::of("bells");
    let trusted = std::fs::read_to_string(ours.dir.path().join("ca.pem")).unwrap();
    let low = if node_id("a") < node_id("b") { "a" } else { "b" };
    let high = if low == "a" { "b" } else { "a" };
    write(&theirs.dir.path().join("ca.pem"), &trusted);
    let told = refused(options("bells", high, &ours), options("bells", low, &theirs)).await;
    assert!(told.contains("it refuses this node's certificate"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_another_cluster_is_refused() {
    // One CA for both clusters.
    let files = Files::of("bells");
    let wrong = Gateway::start(options("chimes", "a", &files), handler("a", Arc::default())).await.err().unwrap();
    assert!(wrong.contains("does not name the cluster 'chimes'"), "{wrong}");
    let empty = Files::of("bells");
    write(&empty.dir.path().join("ca.pem"), "");
    let wrong = Gateway::start(options("bells", "a", &empty), handler("a", Arc::default())).await.err().unwrap();
    assert!(wrong.contains("there is no certificate in it"), "{wrong}");
    let open = Files::of("bells");
    let key = open.dir.path().join("node-key.pem");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let wrong = Gateway::start(options("bells", "a", &open), handler("a", Arc::default())).await.err().unwrap();
    assert!(wrong.contains("chmod 600"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_of_the_same_ca_needs_the_clusters_name_too() {
    let ca = Authority::new("bells").unwrap();
    let files = |cluster| Files::with(&ca.keys(cluster).unwrap());
    let (ours, theirs) = (files("bells"), files("chimes"));
    let b = node("b", &ours).await;
    let mut tls = Tls::load(&theirs.tls(), "chimes").unwrap();
    // It looks for a server of the cluster whose name its own certificate lacks.
    tls.name = Tls::load(&ours.tls(), "bells").unwrap().name;
    let stream = TcpStream::connect(b.gateway.address()).await.unwrap();
    let mut stream = tls.connector.connect(tls.name.clone(), stream).await.unwrap();
    let hello = |cluster: &str| Hello {
        version: VERSION,
        cluster: cluster.to_owned(),
        node: 1,
        name: "x".to_owned(),
        wants: node_id("b").0,
        actor: 1,
    };
    say(&mut stream, &hello("bells")).await.unwrap();
    let welcome: Welcome = hear(&mut stream).await.unwrap();
    assert!(welcome.refused.as_ref().unwrap().contains("does not name the cluster 'bells'"), "{welcome:?}");
    // With a right one, what it says of itself is looked at.
    let tls = Tls::load(&ours.tls(), "bells").unwrap();
    for (hello, why) in [
        (hello("chimes"), "it belongs to cluster 'chimes', this node to 'bells'"),
        (Hello { version: 9, ..hello("bells") }, "it speaks version 9 of the gateway, this node 1"),
        (Hello { node: node_id("b").0, ..hello("bells") }, "it has this node's own name, 'b'"),
    ] {
        let stream = TcpStream::connect(b.gateway.address()).await.unwrap();
        let mut stream = tls.connector.connect(tls.name.clone(), stream).await.unwrap();
        say(&mut stream, &hello).await.unwrap();
        let welcome: Welcome = hear(&mut stream).await.unwrap();
        assert_eq!(welcome.refused.as_deref(), Some(why));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_changed_hands_is_noticed() {
    let files = Files::of("bells");
    let (a, b) = (node("a", &files).await, node("b", &files).await);
    // Both look for a third one where the other is; the one that dials has the lower id.
    let dials = if node_id("a") < node_id("b") { &a } else { &b };
    let third = ["c", "d", "e", "f", "g", "h"].into_iter().find(|name| node_id(name) > node_id(&dials.name)).unwrap();
    for (node, other) in [(&a, &b), (&b, &a)] {
        node.gateway
            .set_peers(&members(&[(&node.name, node.gateway.address()), (third, other.gateway.address())], &node.name));
    }
    eventually("it is told", || async {
        ask(dials, third, "hello").await.is_err_and(|error| error.to_string().contains("the address has changed hands"))
    })
    .await;
}
