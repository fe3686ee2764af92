//! What becomes of requests when the server stops, is stopped, or comes back. These tests have a server of their own, one at a time.

use super::{CqlStore, on_runtime, open, options, server::Server, session_row};
use crate::samples::{at, batch, run};
use campanile_core::ownership::{
    rows::SessionRow,
    store::{Statement, StoreAnswer},
};
use campanile_ports::{Leases, Row, StoreError, Views};
use campanile_schema::{
    ids::{RunId, SessionId},
    record::RunState,
};
use std::{
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

struct Faulty {
    server: Server,
    store: Arc<CqlStore>,
}

/// Gives up soon, so that a stopped server is a timeout.
fn faulty() -> &'static Mutex<Faulty> {
    static FAULTY: LazyLock<Mutex<Faulty>> = LazyLock::new(|| {
        let server = Server::start(1);
        open(options(&server, "faulty"));
        let mut options = options(&server, "faulty");
        options.request_timeout = Duration::from_millis(400);
        let store = on_runtime(async move { CqlStore::connect(&options).await.unwrap().0 });
        Mutex::new(Faulty { server, store })
    });
    &FAULTY
}

/// The one whose lanes are written.
const WRITER: SessionId = SessionId(20_000);
/// The one that begins while there is no server.
const LATE: SessionId = SessionId(20_001);

fn row(session: SessionId, count: u64) -> SessionRow {
    session_row(session, 1, count)
}

/// In the name of the session that writes rows here.
async fn ask(store: Arc<CqlStore>, statement: Statement) -> StoreAnswer {
    store.execute(WRITER, statement).await
}

/// Asks until there is an answer.
async fn answered(store: &Arc<CqlStore>, statement: &Statement) -> StoreAnswer {
    let begin = Instant::now();
    loop {
        match ask(store.clone(), statement.clone()).await {
            StoreAnswer::Unknown => assert!(begin.elapsed() < Duration::from_secs(90), "no answer to {statement:?}"),
            answer => return answer,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What a node does after `Unknown`: it reads, and sends the same LWT again while the row lacks.
async fn pursued(store: &Arc<CqlStore>, session: SessionId, count: u64) -> SessionRow {
    let insert = Statement::PutSession { session, expected: None, row: row(session, count) };
    loop {
        if let StoreAnswer::Session(Some(row)) = answered(store, &Statement::ReadSession { session }).await {
            return row;
        }
        answered(store, &insert).await;
    }
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn an_lwt_that_a_stopped_server_does_not_answer_is_unknown_and_a_read_tells() {
    let mut faulty = faulty().lock().unwrap_or_else(PoisonError::into_inner);
    let store = faulty.store.clone();
    faulty.server.tell("pause 1", "paused 1");
    let answers = on_runtime({
        let store = store.clone();
        async move {
            let mut answers = Vec::new();
            for number in 1..=4 {
                let session = SessionId(10_000 + number);
                let insert = Statement::PutSession { session, expected: None, row: row(session, 1) };
                answers.push(ask(store.clone(), insert).await);
            }
            answers.push(ask(store.clone(), Statement::ReadShards).await);
            answers.push(ask(store.clone(), Statement::Append { lane: 0, seq: 1, batch: (*b"x").into() }).await);
            (answers, store.next_session().await, store.run(RunId(1)).await)
        }
    });
    faulty.server.tell("resume 1", "resumed 1");
    let (answers, number, run) = answers;
    assert!(answers.iter().all(|answer| *answer == StoreAnswer::Unknown), "{answers:?}");
    assert!(matches!(number, Err(StoreError::Unavailable(_))), "{number:?}");
    assert!(matches!(run, Err(StoreError::Unavailable(_))), "{run:?}");
    on_runtime(async move {
        for number in 1..=4 {
            let session = SessionId(10_000 + number);
            assert_eq!(pursued(&store, session, 1).await, row(session, 1), "whichever of the two was executed");
            let again = Statement::PutSession { session, expected: None, row: row(session, 2) };
            assert_eq!(answered(&store, &again).await, StoreAnswer::Session(Some(row(session, 1))), "one of them was");
        }
        assert!(
            matches!(answered(&store, &Statement::ReadShards).await, StoreAnswer::Shards(rows) if rows.len() == 256)
        );
    });
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn what_a_killed_server_acknowledged_is_there_and_all_goes_on() {
    let mut faulty = faulty().lock().unwrap_or_else(PoisonError::into_inner);
    let store = faulty.store.clone();
    let view =
        |seq: u64| batch(at(1, seq), &[(7, seq)], vec![Row::Run(run(7, 7 + 4_096 * seq, RunState::Failed, 9).into())]);
    on_runtime({
        let (store, view) = (store.clone(), view(1));
        async move {
            let session = WRITER;
            let insert = Statement::PutSession { session, expected: None, row: row(session, 1) };
            answered(&store, &insert).await;
            for seq in 1..=20 {
                let append = Statement::Append { lane: 1, seq, batch: [seq as u8; 100].into() };
                assert_eq!(answered(&store, &append).await, StoreAnswer::Done);
            }
            store.apply(view).await.unwrap();
        }
    });
    faulty.server.tell("kill 1", "killed 1");
    on_runtime({
        let (store, view) = (store.clone(), view(2));
        async move {
            let session = WRITER;
            assert_eq!(ask(store.clone(), Statement::ReadSession { session }).await, StoreAnswer::Unknown);
            let append = Statement::Append { lane: 1, seq: 21, batch: [21; 100].into() };
            assert_eq!(ask(store.clone(), append).await, StoreAnswer::Unknown);
            let insert = Statement::PutSession { session: LATE, expected: None, row: row(LATE, 1) };
            assert_eq!(ask(store.clone(), insert).await, StoreAnswer::Unknown);
            let applied = store.apply(view).await;
            assert!(matches!(applied, Err(StoreError::Unavailable(_) | StoreError::Unknown(_))), "{applied:?}");
        }
    });
    faulty.server.tell("start 1", "ready 1");
    // With time: what is asked once below must be answered.
    let patient = options(&faulty.server, "faulty");
    on_runtime(async move {
        let session = WRITER;
        let read = Statement::ReadSession { session };
        assert_eq!(answered(&store, &read).await, StoreAnswer::Session(Some(row(session, 1))));
        // Nobody was there to execute it, and nobody does so later: it is made again.
        assert_eq!(answered(&store, &Statement::ReadSession { session: LATE }).await, StoreAnswer::Session(None));
        let patient = CqlStore::connect(&patient).await.unwrap().0;
        let insert = Statement::PutSession { session: LATE, expected: None, row: row(LATE, 2) };
        assert_eq!(ask(patient.clone(), insert.clone()).await, StoreAnswer::Done);
        assert_eq!(ask(patient, insert).await, StoreAnswer::Session(Some(row(LATE, 2))));
        let append = Statement::Append { lane: 1, seq: 21, batch: [21; 100].into() };
        assert_eq!(answered(&store, &append).await, StoreAnswer::Done, "the same row again");
        let lane = answered(&store, &Statement::ReadLane { session, lane: 1, after: 0 }).await;
        let StoreAnswer::Lane(rows) = lane else { panic!("{lane:?}") };
        assert_eq!(rows, (1..=21).map(|seq| (seq, [seq as u8; 100].into())).collect::<Vec<_>>());
        assert!(store.run(RunId(7 + 4_096)).await.unwrap().is_some());
        while store.apply(view(2)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(store.applied(campanile_schema::ids::ShardId(7)).await.unwrap(), 2);
    });
}

/// More is asked than may be under way, of a server that stands still: requests wait for their turn here, and none is lost or told too early.
#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn what_waits_for_its_turn_at_a_slow_server_is_done_in_the_end() {
    const CALLS: u64 = 48;
    let mut faulty = faulty().lock().unwrap_or_else(PoisonError::into_inner);
    let mut narrow = options(&faulty.server, "faulty");
    (narrow.max_in_flight, narrow.request_timeout) = (2, Duration::from_secs(60));
    let store = on_runtime(async move { CqlStore::connect(&narrow).await.unwrap().0 });
    let view = |n: u64| {
        let shard = 100 + n;
        let record = run(shard, shard + 4_096 * n, RunState::Success, 9);
        batch(at(3, n), &[(shard as u16, 1)], vec![Row::Run(record.into())])
    };
    faulty.server.tell("pause 1", "paused 1");
    let before = store.requests();
    let calls: Vec<_> = (1..=CALLS)
        .map(|n| {
            let (store, view) = (store.clone(), view(n));
            super::runtime().spawn(async move { store.apply(view).await })
        })
        .collect();
    // All of them have asked; two are under way.
    while store.requests() < before + CALLS {
        std::thread::yield_now();
    }
    assert!(calls.iter().all(|call| !call.is_finished()), "nobody was told anything");
    faulty.server.tell("resume 1", "resumed 1");
    on_runtime(async move {
        for call in calls {
            call.await.unwrap().unwrap();
        }
        for n in 1..=CALLS {
            let shard = 100 + n;
            assert!(store.run(RunId(shard + 4_096 * n)).await.unwrap().is_some(), "{n}");
            assert_eq!(store.applied(campanile_schema::ids::ShardId(shard as u16)).await.unwrap(), 1);
        }
    });
}
