//! Connections that break the rules, and those beside them that must not notice.

use crate::support as rpc_support;

use campanile_schema::{
    error::ErrorCode,
    limits::{RPC_HELLO_MS, RPC_REQUESTS_IN_FLIGHT},
    operations::SystemInfo,
    rpc::{encode, executor::Register, hello::ConnectionRole, method},
};
use rpc_support::{EXECUTOR, Node, OPERATOR, RawMessage, register, within};
use serde_json::json;
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use tokio::io::AsyncWriteExt;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_hello_calls_are_refused_and_the_connection_stays() {
    let node = Node::start().await;
    let mut raw = node.raw().await;
    raw.notify("nvim_set_client_info", &json!({"name": "python"})).await;
    // Params that are no array of one map are nobody's business before the call is known.
    raw.send(&[0x94, 0, 5, 0xa1, b'x', 0x93, 1, 2, 3]).await;
    let (id, answer) = raw.answer().await;
    assert_eq!((id, answer.unwrap_err().known()), (5, ErrorCode::Unauthenticated));
    raw.hello(OPERATOR, ConnectionRole::Caller).await.unwrap();
    raw.send(&[0x94, 0, 6, 0xab, b's', b'y', b's', b't', b'e', b'm', b'.', b'i', b'n', b'f', b'o', 0x90]).await;
    assert!(raw.answer().await.1.is_ok(), "no params at all are an empty map");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_or_no_hello_ends_the_connection_with_a_reason() {
    let node = Node::start().await;
    let mut raw = node.raw().await;
    assert_eq!(raw.hello("guess", ConnectionRole::Caller).await.unwrap_err().known(), ErrorCode::Unauthenticated);
    assert_eq!(raw.farewell().await.known(), ErrorCode::Unauthenticated);
    let begun = Instant::now();
    let mut silent = node.raw().await;
    assert_eq!(silent.farewell().await.known(), ErrorCode::Unauthenticated);
    assert!(begun.elapsed() >= Duration::from_millis(RPC_HELLO_MS - 100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_this_protocol_is_told_so() {
    let node = Node::start().await;
    for (bytes, code) in [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".as_slice(), ErrorCode::MalformedBody),
        (&[0x16, 0x03, 0x01, 0x02, 0x00], ErrorCode::MalformedBody),
        (&[0x94, 0, 1, 0xdb, 0xff, 0xff, 0xff, 0xff], ErrorCode::BodyTooLarge),
        (&[0x94, 0, 1, 0xa1, b'm', 0xdd, 0xff, 0xff, 0xff, 0xff], ErrorCode::BodyTooLarge),
    ] {
        let mut raw = node.raw().await;
        raw.send(bytes).await;
        assert_eq!(raw.farewell().await.known(), code, "{bytes:02x?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_frame_and_silence_disturbs_nobody() {
    let node = Node::start().await;
    let mut halves = Vec::new();
    for _ in 0..50 {
        let mut raw = node.raw().await;
        raw.hello(OPERATOR, ConnectionRole::Caller).await.unwrap();
        raw.send(&[0x94, 0, 1, 0xa1]).await;
        halves.push(raw);
    }
    let client = node.client(OPERATOR).await;
    for _ in 0..100 {
        within(client.system_info()).await.unwrap();
    }
    // And each of them can still finish what it began.
    for raw in &mut halves {
        raw.send(&[b'm', 0x90]).await;
        assert_eq!(raw.answer().await.1.unwrap_err().known(), ErrorCode::UnknownMethod);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_calls_in_one_write_are_all_answered() {
    let node = Node::start().await;
    let mut raw = node.raw().await;
    raw.hello(OPERATOR, ConnectionRole::Caller).await.unwrap();
    let mut calls = Vec::new();
    let many = 3 * RPC_REQUESTS_IN_FLIGHT as u32;
    for id in 1..=many {
        encode::request(&mut calls, id, SystemInfo::NAME, &json!({})).unwrap();
    }
    raw.send(&calls).await;
    let mut open: BTreeSet<u32> = (1..=many).collect();
    while !open.is_empty() {
        let (id, answer) = raw.answer().await;
        assert!(answer.is_ok());
        assert!(open.remove(&id), "{id} was answered twice");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_does_not_read_is_not_read_and_others_are() {
    let node = Node::start().await;
    let mut greedy = node.raw().await;
    greedy.hello(OPERATOR, ConnectionRole::Caller).await.unwrap();
    let mut call = Vec::new();
    encode::request(&mut call, 9, SystemInfo::NAME, &json!({})).unwrap();
    let burst = call.repeat(1_000);
    // It writes until nothing more is taken: then all buffers on the way are full and the node has stopped reading.
    let mut written = 0usize;
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_secs(1) {
        match greedy.stream.try_write(&burst[written % burst.len()..]) {
            Ok(bytes) => {
                written += bytes;
                last = Instant::now();
                assert!(written < 64 << 20, "the node reads on and on");
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    let client = node.client(OPERATOR).await;
    within(client.system_info()).await.unwrap();
    // When it reads again, everything that was taken whole is answered.
    let expected = written / call.len();
    let mut answers = 0;
    while answers < expected {
        match greedy.hear().await {
            RawMessage::Answer(9, Ok(_)) => answers += 1,
            other => panic!("{other:?} after {answers} of {expected}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_said_all_gets_its_answers_and_one_that_vanishes_leaves_nothing() {
    let node = Node::start().await;
    let mut raw = node.raw().await;
    raw.hello(OPERATOR, ConnectionRole::Caller).await.unwrap();
    for id in 1..=20 {
        raw.request(id, SystemInfo::NAME, &json!({})).await;
    }
    raw.stream.shutdown().await.unwrap();
    for _ in 0..20 {
        assert!(raw.answer().await.1.is_ok());
    }
    assert!(matches!(raw.hear().await, RawMessage::Closed));
    for _ in 0..200 {
        let mut gone = node.raw().await;
        gone.send(&[0x94, 0]).await;
    }
    let client = node.client(OPERATOR).await;
    within(client.system_info()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_would_write_into_a_log_or_a_terminal_are_refused() {
    let node = Node::start().await;
    let mut raw = node.raw().await;
    raw.hello(EXECUTOR, ConnectionRole::Executor).await.unwrap();
    type Change = fn(&mut Register, String);
    let fields: [(&str, Change); 4] = [
        ("executorId", |register, text| register.executor_id = text),
        ("pools", |register, text| register.pools.push(text)),
        ("handlers", |register, text| register.handlers.push(text)),
        ("labels", |register, text| drop(register.labels.insert(text.clone(), text))),
    ];
    let mut id = 1;
    for (field, change) in fields {
        for c in ['\n', '\r', '\0', '\u{1b}', '\u{7f}', '\u{9b}', '\u{2028}', '\u{202e}', '\u{200b}', '\u{feff}'] {
            let mut wrong = register(1, &["default"]);
            change(&mut wrong, format!("a{c} INFO audit: done"));
            raw.request(id, method::EXECUTOR_REGISTER, &wrong).await;
            let error = raw.answer().await.1.unwrap_err();
            // A token may not serve such a pool in any case.
            let code = if field == "pools" { ErrorCode::Forbidden } else { ErrorCode::InvalidArgument };
            assert_eq!(error.known(), code, "{field} {c:?}");
            assert!(error.message.starts_with(field), "{}", error.message);
            assert!(!error.message.contains(c), "{}", error.message);
            id += 1;
        }
    }
    let mut right = register(1, &["default"]);
    right.executor_id = "Büro 3, \u{5317}\u{4eac} #1".to_owned();
    raw.request(id, method::EXECUTOR_REGISTER, &right).await;
    assert!(raw.answer().await.1.is_ok());
}
