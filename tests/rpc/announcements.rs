//! Announcements that come in parts: bounded, and gone when they are broken off.

use crate::{
    executors::executor,
    support::{EXECUTOR, Node, Raw, register},
};
use campanile_schema::{
    error::ErrorCode,
    ids::{JobId, RunId, Token},
    limits::EXECUTOR_BATCH,
    rpc::{
        codec::from_map,
        executor::{Announce, Announced, Held},
        hello::ConnectionRole,
        method,
    },
};

/// An attempt that the node knows nothing of.
fn nothing(n: u64) -> Held {
    Held { run: RunId(n), job: JobId(n), token: Token(n) }
}

fn part(numbers: std::ops::RangeInclusive<u64>, more: bool) -> Announce {
    Announce { held: numbers.map(nothing).collect(), more }
}

async fn announced(raw: &mut Raw, id: u32, part: &Announce) -> Result<Vec<Held>, ErrorCode> {
    raw.request(id, method::EXECUTOR_ANNOUNCE, part).await;
    let answer = raw.answer().await.1.map_err(|error| error.known())?;
    let mut stop = from_map::<Announced>(&answer).unwrap().stop;
    stop.sort_by_key(|held| held.run);
    Ok(stop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_are_one_announcement_and_are_bounded() {
    let node = Node::start().await;
    let mut raw = executor(&node, EXECUTOR, 1).await;
    assert_eq!(announced(&mut raw, 10, &part(1..=2, true)).await, Ok(vec![]));
    assert_eq!(announced(&mut raw, 11, &part(3..=3, false)).await, Ok(vec![nothing(1), nothing(2), nothing(3)]));
    assert_eq!(announced(&mut raw, 12, &part(1..=4_000, true)).await, Ok(vec![]));
    let over = announced(&mut raw, 13, &part(1..=4_000, true)).await;
    assert_eq!(over, Err(ErrorCode::InvalidArgument), "more than four slots explain");
    assert_eq!(announced(&mut raw, 14, &part(5..=5, false)).await, Ok(vec![nothing(5)]), "nothing stays of it");
}

/// Whatever breaks it off: a part that is refused or cannot be read, or another connection of the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_stays_of_an_announcement_that_was_broken_off() {
    let node = Node::start().await;
    let mut raw = executor(&node, EXECUTOR, 1).await;
    let begun = part(1..=2, true);
    let alone = || part(7..=7, false);

    assert_eq!(announced(&mut raw, 10, &begun).await, Ok(vec![]));
    let too_many = part(1..=EXECUTOR_BATCH as u64 + 1, true);
    assert_eq!(announced(&mut raw, 11, &too_many).await, Err(ErrorCode::InvalidArgument));
    assert_eq!(announced(&mut raw, 12, &alone()).await, Ok(vec![nothing(7)]));

    assert_eq!(announced(&mut raw, 13, &begun).await, Ok(vec![]));
    raw.request(14, method::EXECUTOR_ANNOUNCE, &serde_json::json!({"held": "none"})).await;
    assert!(raw.answer().await.1.is_err());
    assert_eq!(announced(&mut raw, 15, &alone()).await, Ok(vec![nothing(7)]));

    assert_eq!(announced(&mut raw, 16, &begun).await, Ok(vec![]));
    let mut other = node.raw().await;
    other.hello(EXECUTOR, ConnectionRole::Executor).await.unwrap();
    other.request(1, method::EXECUTOR_REGISTER, &register(1, &["default"])).await;
    other.answer().await.1.unwrap();
    assert_eq!(announced(&mut other, 2, &alone()).await, Ok(vec![nothing(7)]));
}
