//! Three servers with each row on all of them, and requests that need two: what is told, and what becomes of it, when one server is gone or
//! stands still, when two are gone, and when the schema is made while one cannot hear of it. One test, because three servers are dear.

use super::{CqlOptions, CqlStore, on_runtime, options, schema, server::Server, session_row};
use crate::{
    cql::connection,
    samples::{at, batch, run},
};
use campanile_core::ownership::{
    rows::SessionRow,
    store::{Statement, StoreAnswer},
};
use campanile_ports::{Leases, Row, StoreError, ViewBatch, Views};
use campanile_schema::{
    ids::{RunId, SessionId, ShardId},
    record::RunState,
};
use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// The one whose lanes are written.
const WRITER: SessionId = SessionId(40_000);
/// The one that begins while two servers are gone.
const LATE: SessionId = SessionId(40_001);
/// For whatever the servers need to find out about each other.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

fn row(session: SessionId, version: u64) -> SessionRow {
    session_row(session, version, version)
}

fn put(session: SessionId, expected: Option<u64>) -> Statement {
    Statement::PutSession { session, expected, row: row(session, expected.map_or(1, |version| version + 1)) }
}

fn append(seq: u64) -> Statement {
    Statement::Append { lane: 0, seq, batch: [seq as u8; 100].into() }
}

/// One run of a shard.
fn view(seq: u64) -> ViewBatch {
    let record = run(9, 9 + 4_096 * seq, RunState::Failed, 9);
    batch(at(1, seq), &[(9, seq)], vec![Row::Run(record.into())])
}

async fn ask(store: &Arc<CqlStore>, statement: &Statement) -> StoreAnswer {
    store.execute(WRITER, statement.clone()).await
}

/// Asks until there is an answer.
async fn answered(store: &Arc<CqlStore>, statement: &Statement) -> StoreAnswer {
    let begin = Instant::now();
    loop {
        match ask(store, statement).await {
            StoreAnswer::Unknown => assert!(begin.elapsed() < PATIENCE, "no answer to {statement:?}"),
            answer => return answer,
        }
        sleep(PAUSE).await;
    }
}

/// The same of a port: a server that stands still is asked again and again before the driver leaves it out.
pub(super) async fn patiently<T, F: Future<Output = Result<T, StoreError>>>(ask: impl Fn() -> F) -> T {
    let begin = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(begin.elapsed() < PATIENCE, "{error}");
                assert!(matches!(error, StoreError::Unavailable(_) | StoreError::Unknown(_)), "{error}");
            }
        }
        sleep(PAUSE).await;
    }
}

/// An LWT whose answer was lost finds its own row.
async fn stands(store: &Arc<CqlStore>, session: SessionId, expected: Option<u64>) {
    match answered(store, &put(session, expected)).await {
        StoreAnswer::Done => {}
        found => assert_eq!(found, StoreAnswer::Session(Some(row(session, expected.map_or(1, |version| version + 1))))),
    }
}

/// Rows of the lane, a heartbeat for each and a run for each: all of it stands when it returns.
async fn write(store: &Arc<CqlStore>, seqs: std::ops::RangeInclusive<u64>) {
    for seq in seqs {
        assert_eq!(answered(store, &append(seq)).await, StoreAnswer::Done);
        stands(store, WRITER, seq.checked_sub(1).filter(|before| *before > 0)).await;
        patiently(|| store.apply(view(seq))).await;
    }
}

/// Everything up to `seq` is there, and nothing else.
async fn holds(store: &Arc<CqlStore>, seq: u64) {
    let lane = answered(store, &Statement::ReadLane { session: WRITER, lane: 0, after: 0 }).await;
    assert_eq!(lane, StoreAnswer::Lane((1..=seq).map(|n| (n, [n as u8; 100].into())).collect()));
    let session = answered(store, &Statement::ReadSession { session: WRITER }).await;
    assert_eq!(session, StoreAnswer::Session(Some(row(WRITER, seq))));
    assert_eq!(patiently(|| store.applied(ShardId(9))).await, seq);
    for n in 1..=seq {
        assert!(patiently(|| store.run(RunId(9 + 4_096 * n))).await.is_some(), "run {n}");
    }
}

/// Asks for what needs two servers until the one that is left knows that it is alone, and gives what it says then.
async fn turned_away(store: &Arc<CqlStore>, batch: &ViewBatch) -> StoreError {
    let begin = Instant::now();
    loop {
        let error = store.apply(batch.clone()).await.expect_err("one of three servers took a write for two");
        if error.to_string().contains("alive: 1") {
            return error;
        }
        assert!(begin.elapsed() < PATIENCE, "{error}");
        sleep(PAUSE).await;
    }
}

/// The version of the schema that each server has.
async fn schemas(server: &CqlOptions, addresses: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for address in addresses {
        let alone = CqlOptions { contact_points: vec![address.clone()], ..server.clone() };
        let session = patiently(|| connection::open(&alone)).await;
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        let asked = "SELECT CAST(schema_version AS text), CAST(rpc_address AS text) FROM system.local";
        // A server tells of itself only, so each is asked until it was the one that answered.
        let begin = Instant::now();
        loop {
            let rows = session.query_unpaged(asked, ()).await.ok().and_then(|answer| answer.into_rows_result().ok());
            let found = rows.and_then(|rows| rows.single_row::<(String, String)>().ok());
            if let Some((version, _)) = found.filter(|(_, told)| told.trim_start_matches('/') == host) {
                all.push(version);
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{address} does not tell its schema");
            sleep(PAUSE).await;
        }
    }
    all
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn two_of_three_servers_are_enough_and_one_turns_away_what_it_does_not_do() {
    let mut server = Server::start(3);
    let mut all = options(&server, "replicas");
    (all.replication, all.request_timeout) = (3, Duration::from_secs(2));
    let store = {
        let all = all.clone();
        on_runtime(async move {
            patiently(|| schema::apply(&all, "tests", 1_000)).await;
            patiently(|| CqlStore::connect(&all)).await.0
        })
    };
    on_runtime({
        let store = store.clone();
        async move {
            write(&store, 1..=3).await;
            holds(&store, 3).await;
        }
    });

    // One is gone, and then one stands still: what is asked of it is not answered, the others do it.
    for (down, told, up, back, seqs) in
        [("kill 3", "killed 3", "start 3", "ready 3", 4..=6), ("pause 2", "paused 2", "resume 2", "resumed 2", 7..=9)]
    {
        server.tell(down, told);
        on_runtime({
            let (store, last) = (store.clone(), *seqs.end());
            async move {
                write(&store, seqs).await;
                holds(&store, last).await;
            }
        });
        server.tell(up, back);
    }

    two_are_gone(&mut server, &all, &store);
    one_cannot_hear_of_the_schema(&mut server, &all);
    on_runtime(async move { holds(&store, 10).await });
}

/// The one that is left says so, does nothing, and all goes on when a second one is back.
fn two_are_gone(server: &mut Server, all: &CqlOptions, store: &Arc<CqlStore>) {
    server.tell("kill 2", "killed 2");
    server.tell("kill 3", "killed 3");
    on_runtime({
        let (store, all, first) = (store.clone(), all.clone(), server.addresses[0].clone());
        async move {
            let told = turned_away(&store, &view(10)).await;
            assert!(matches!(told, StoreError::Unavailable(_)), "it may be made again as it is: {told:?}");
            for statement in [put(LATE, None), append(10), Statement::ReadSession { session: WRITER }] {
                assert_eq!(ask(&store, &statement).await, StoreAnswer::Unknown, "{statement:?}");
            }
            let run = store.run(RunId(9 + 4_096)).await;
            assert!(matches!(run, Err(StoreError::Unavailable(_))), "{run:?}");
            let number = store.next_session().await;
            assert!(matches!(number, Err(StoreError::Unavailable(_) | StoreError::Unknown(_))), "{number:?}");
            // A node that starts meanwhile is told to try again, not that it is configured wrongly.
            let alone = CqlOptions { contact_points: vec![first], ..all };
            let connected = CqlStore::connect(&alone).await.map(|_| ());
            assert!(matches!(connected, Err(StoreError::Unavailable(_))), "{connected:?}");
            let later = CqlOptions { keyspace: "later".to_owned(), ..alone };
            let made = schema::apply(&later, "tests", 1_000).await;
            assert!(matches!(made, Err(StoreError::Unavailable(_) | StoreError::Unknown(_))), "{made:?}");
        }
    });
    server.tell("start 2", "ready 2");
    on_runtime({
        let store = store.clone();
        async move {
            let late = answered(&store, &Statement::ReadSession { session: LATE }).await;
            assert_eq!(late, StoreAnswer::Session(None), "what was turned away is not done later");
            stands(&store, LATE, None).await;
            write(&store, 10..=10).await;
            holds(&store, 10).await;
        }
    });
    server.tell("start 3", "ready 3");
}

/// Tables are made while one server stands still: servers disagree about the schema until it has heard of it, and it works then.
fn one_cannot_hear_of_the_schema(server: &mut Server, all: &CqlOptions) {
    let later = CqlOptions { keyspace: "later".to_owned(), ..all.clone() };
    server.tell("pause 3", "paused 3");
    let made = on_runtime({
        let later = later.clone();
        // Twice at most: the try while two were gone may have made half of it, and a table may be made as the servers notice the pause.
        async move {
            match schema::apply(&later, "tests", 2_000).await {
                Ok(report) => report,
                Err(error) => {
                    assert!(matches!(error, StoreError::Unavailable(_) | StoreError::Unknown(_)), "{error:?}");
                    schema::apply(&later, "tests", 2_000).await.unwrap()
                }
            }
        }
    });
    assert_eq!(made.missing, []);
    server.tell("resume 3", "resumed 3");
    let addresses = server.addresses.clone();
    on_runtime(async move {
        let begin = Instant::now();
        loop {
            let mut versions = schemas(&later, &addresses).await;
            versions.dedup();
            if versions.len() == 1 {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{versions:?}");
            sleep(PAUSE).await;
        }
        let last = CqlOptions { contact_points: vec![addresses[2].clone()], ..later };
        assert_eq!(patiently(|| schema::check(&last)).await, made);
        let store = patiently(|| CqlStore::connect(&last)).await.0;
        stands(&store, WRITER, None).await;
    });
}
