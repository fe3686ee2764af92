//! What an executor may call itself: its names are shown to people and written to logs.

use crate::support::{EXECUTOR, Node, register};
use campanile_schema::{
    error::ErrorCode,
    rpc::{executor::Register, hello::ConnectionRole, method},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_with_characters_that_are_not_shown_are_refused() {
    let node = Node::start().await;
    let mut raw = node.raw().await;
    raw.hello(EXECUTOR, ConnectionRole::Executor).await.unwrap();
    let named = |change: &dyn Fn(&mut Register, &str), text: &str| {
        let mut register = register(1, &["default"]);
        change(&mut register, text);
        register
    };
    let fields: [(&str, &dyn Fn(&mut Register, &str)); 4] = [
        ("executorId", &|register, text| register.executor_id = text.to_owned()),
        ("handlers", &|register, text| register.handlers.push(text.to_owned())),
        ("labels", &|register, text| drop(register.labels.insert(text.to_owned(), "x".to_owned()))),
        ("labels", &|register, text| drop(register.labels.insert("x".to_owned(), text.to_owned()))),
    ];
    let mut id = 0;
    for (field, change) in fields {
        for text in ["a\n INFO audit: all is well", "a\r", "\u{1b}[2J", "a\u{9b}1m", "\u{202e}a", "a\0"] {
            id += 1;
            raw.request(id, method::EXECUTOR_REGISTER, &named(change, text)).await;
            let error = raw.answer().await.1.unwrap_err();
            assert_eq!(error.known(), ErrorCode::InvalidArgument, "{field}: {text:?}");
            assert!(error.message.starts_with(field) && error.message.contains("cannot stand in it"), "{error}");
        }
        id += 1;
        raw.request(id, method::EXECUTOR_REGISTER, &named(change, "Zürich 1 / \u{1f514}")).await;
        raw.answer().await.1.unwrap();
    }
}
