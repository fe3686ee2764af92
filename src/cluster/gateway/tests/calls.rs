//! Calls, and what their callers are told.

use super::{
    super::GatewayError,
    nodes::{Files, SOON, ask, connected, eventually, introduce, node},
};
use crate::node_id;
use campanile_schema::limits::{GATEWAY_INBOX_REQUESTS, GATEWAY_MESSAGE_BYTES, GATEWAY_OUTBOX_BYTES};
use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_call_all() {
    let files = Files::of("bells");
    let (a, b, c) = (node("a", &files).await, node("b", &files).await, node("c", &files).await);
    let nodes = [&a, &b, &c];
    introduce(&nodes);
    connected(&nodes).await;
    for round in 0..3 {
        for from in nodes {
            for to in nodes.iter().filter(|to| to.name != from.name) {
                let request = format!("{} asks in round {round}", from.name);
                assert_eq!(ask(from, &to.name, &request).await.unwrap(), format!("{}: {request}", to.name));
            }
        }
    }
    let large = ask(&a, "b", &format!("large {GATEWAY_MESSAGE_BYTES}")).await.unwrap();
    assert_eq!(large.len(), GATEWAY_MESSAGE_BYTES);
    let mut most = b"count".to_vec();
    most.resize(GATEWAY_MESSAGE_BYTES, b'x');
    let counted = a.gateway.call(node_id("b"), most, SOON).await.unwrap();
    assert_eq!(counted, GATEWAY_MESSAGE_BYTES.to_string().into_bytes());
    for gateway in [a.gateway, b.gateway, c.gateway] {
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_answered_says_whether_it_may_have_been_executed() {
    let files = Files::of("bells");
    let (a, b) = (node("a", &files).await, node("b", &files).await);
    introduce(&[&a, &b]);
    connected(&[&a, &b]).await;
    // It began and never ends; the others that travelled with it are answered.
    let silent = a.gateway.call(node_id("b"), b"silence".to_vec(), Duration::from_millis(300));
    let (silent, other) = tokio::join!(silent, ask(&a, "b", "hello"));
    let silent = silent.unwrap_err();
    assert!(matches!(silent, GatewayError::TimedOut { sent: true, .. }), "{silent}");
    assert!(silent.may_have_run(), "{silent}");
    assert_eq!(silent.to_string(), "node 'b' did not answer within 300 ms");
    assert_eq!(other.unwrap(), "b: hello");
    let panicked = ask(&a, "b", "panic").await.unwrap_err();
    assert!(panicked.may_have_run());
    assert_eq!(panicked.to_string(), "node 'b' began and could not answer: it panicked");
    let long = ask(&a, "b", &format!("large {}", GATEWAY_MESSAGE_BYTES + 1)).await.unwrap_err();
    assert!(long.may_have_run(), "{long}");
    assert!(long.to_string().contains("the answer has 1048577 bytes"), "{long}");
    let large = a.gateway.call(node_id("b"), vec![0; GATEWAY_MESSAGE_BYTES + 1], SOON).await.unwrap_err();
    assert!(matches!(large, GatewayError::TooLarge(_)), "{large}");
    assert!(!large.may_have_run(), "{large}");
    let nobody = ask(&a, "nobody", "hello").await.unwrap_err();
    assert!(matches!(nobody, GatewayError::NotConnected(_)), "{nobody}");
    assert!(!nobody.may_have_run(), "{nobody}");
    assert_eq!(ask(&a, "b", "still there").await.unwrap(), "b: still there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_much_at_once_is_refused_and_nothing_of_it_is_executed() {
    let files = Files::of("bells");
    let (a, b) = (node("a", &files).await, node("b", &files).await);
    introduce(&[&a, &b]);
    connected(&[&a, &b]).await;
    let (a, b_begun) = (Arc::new(a), b.begun.clone());
    // More bytes at one moment than may wait.
    let large = 256 << 10;
    let calls = 2 * GATEWAY_OUTBOX_BYTES / large;
    let calls: Vec<_> = (0..calls)
        .map(|_| {
            let a = a.clone();
            tokio::spawn(async move { a.gateway.call(node_id("b"), vec![b'x'; large], SOON).await })
        })
        .collect();
    let mut answered = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => answered += 1,
            Err(error) => {
                assert!(matches!(error, GatewayError::OutboxFull(_)), "{error}");
                assert!(!error.may_have_run(), "{error}");
            }
        }
    }
    assert_eq!(answered, b_begun.load(Ordering::Relaxed), "what was refused was executed");
    assert!(answered > 0);
    // More calls under way than the other side takes.
    b_begun.store(0, Ordering::Relaxed);
    let more = GATEWAY_INBOX_REQUESTS + 100;
    let calls: Vec<_> = (0..more)
        .map(|_| {
            let a = a.clone();
            tokio::spawn(async move {
                a.gateway.call(node_id("b"), b"silence".to_vec(), Duration::from_millis(1_500)).await
            })
        })
        .collect();
    let mut overloaded = 0;
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        overloaded += u64::from(matches!(error, GatewayError::Overloaded(_)) && !error.may_have_run());
    }
    assert_eq!(overloaded + b_begun.load(Ordering::Relaxed), more as u64);
    assert_eq!(overloaded, 100);
    // All of it is over: there is room again.
    eventually("there is room", || async { ask(&a, "b", "hello").await.is_ok() }).await;
}

#[tokio::test]
async fn a_full_outbox_is_a_clear_error() {
    let files = Files::of("bells");
    let (a, b) = (node("a", &files).await, node("b", &files).await);
    introduce(&[&a, &b]);
    connected(&[&a, &b]).await;
    // On one thread: nothing is sent between the calls.
    let calls = (0..=GATEWAY_OUTBOX_BYTES / GATEWAY_MESSAGE_BYTES)
        .map(|_| Box::pin(a.gateway.call(node_id("b"), vec![0; GATEWAY_MESSAGE_BYTES], SOON)));
    let mut calls: Vec<_> = calls.collect();
    let mut full = 0;
    for call in &mut calls {
        let now = std::future::poll_fn(|context| {
            std::task::Poll::Ready(match call.as_mut().poll(context) {
                std::task::Poll::Ready(result) => Some(result),
                std::task::Poll::Pending => None,
            })
        });
        if let Some(Err(error)) = now.await {
            assert!(error.to_string().contains("wait already for node 'b'"), "{error}");
            assert!(!error.may_have_run(), "{error}");
            full += 1;
        }
    }
    assert!(full >= 1, "{full}");
}

/// Figures: `cargo test --features faults -p campanile --lib gateway_figures -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a benchmark"]
async fn gateway_figures() {
    let files = Files::of("bells");
    let (a, b) = (node("a", &files).await, node("b", &files).await);
    introduce(&[&a, &b]);
    connected(&[&a, &b]).await;
    let mut took = Vec::new();
    for _ in 0..5_000 {
        let began = Instant::now();
        ask(&a, "b", &"x".repeat(200)).await.unwrap();
        took.push(began.elapsed());
    }
    took.sort();
    println!("one at a time, 200 bytes: p50 {:?}, p99 {:?}", took[2_500], took[4_950]);
    let a = Arc::new(a);
    for at_once in [16, 128, 1_000] {
        let began = Instant::now();
        let each = 100_000 / at_once;
        let callers: Vec<_> = (0..at_once)
            .map(|_| {
                let a = a.clone();
                tokio::spawn(async move {
                    for _ in 0..each {
                        ask(&a, "b", &"x".repeat(200)).await.unwrap();
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        let rate = f64::from(at_once * each) / began.elapsed().as_secs_f64();
        println!("{at_once} at once, 200 bytes: {rate:.0} calls/s");
    }
}
