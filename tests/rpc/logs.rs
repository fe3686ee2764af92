//! Logs as they are read, while their bytes arrive one by one.

use crate::{
    executors::{assigned, executor},
    support::{EXECUTOR, Node, OPERATOR},
};
use campanile_schema::{
    rpc::{executor::LogChunk, method},
    view::LogBody,
};

/// However the bytes of a log arrive, what is read ends and begins between characters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_read_between_characters_whatever_arrives() {
    let node = Node::start().await;
    let client = node.client(OPERATOR).await;
    let mut own = executor(&node, EXECUTOR, 1).await;
    let a = assigned(&client, &mut own).await;
    let text = "ab\u{4e2d}cd\u{1f600}\u{e9}\n";
    for (id, byte) in (10..).zip(text.bytes()) {
        let chunk = LogChunk { run: a.run, token: a.token, attempt: 1, data: vec![byte] };
        own.request(id, method::EXECUTOR_LOG, &chunk).await;
        own.answer().await.1.unwrap();
        let arrived = (id - 10) as usize + 1;
        let whole = (0..=arrived).rev().find(|end| text.is_char_boundary(*end)).unwrap();
        for from in 0..=arrived {
            let begin = (0..=from).rev().find(|begin| text.is_char_boundary(*begin)).unwrap();
            let body = LogBody::at(None, Some(from as u64));
            let log = client.run_log(a.run, body).await.unwrap();
            assert_eq!(
                (log.text.as_str(), log.next_offset),
                (&text[begin..whole], whole as u64),
                "{from} of {arrived}"
            );
            assert!(log.text.is_empty() || log.offset == begin as u64, "{from} of {arrived}: {log:?}");
        }
    }
}
