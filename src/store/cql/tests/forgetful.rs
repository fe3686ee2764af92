//! A server without room for all prepared statements, as one has that is shared with programs that prepare a lot: it drops some at once.

use super::{
    CqlOptions, CqlStore, on_runtime, open, options, replicas::patiently, runtime, server::Server, session_row,
};
use crate::{
    cql::connection,
    samples::{at, batch, run},
};
use campanile_core::ownership::store::{Statement, StoreAnswer};
use campanile_ports::{Leases, Row, Views};
use campanile_schema::{ids::SessionId, record::RunState};
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Holds some of a node's statements only.
const SETTINGS: &str = "prepared_statements_cache_size: 1MiB\n";
/// Statements of others, which ask for them all the time.
const OTHERS: usize = 400;
/// Times that each of them is asked for before: the server keeps what it is asked for more often.
const ROUNDS: usize = 10;
const CONNECTS: usize = 20;
const WRITES: u64 = 200;

/// With a value each, so that they are prepared.
async fn others_ask(options: CqlOptions, rounds: usize, stop: Arc<AtomicBool>) {
    let session = patiently(|| connection::open(&options)).await;
    for n in (0..rounds).flat_map(|_| 0..OTHERS).take_while(|_| !stop.load(Ordering::Relaxed)) {
        let text = format!("SELECT key AS k{n} FROM system.local WHERE key = ?");
        session.query_unpaged(text, ("local",)).await.unwrap();
    }
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn statements_that_the_server_dropped_are_prepared_again() {
    let dir = tempfile::tempdir().unwrap();
    let settings = dir.path().join("settings.yaml");
    fs::write(&settings, SETTINGS).unwrap();
    let server = Server::start_with(1, &[("SETTINGS", settings.to_str().unwrap())]);
    let options = options(&server, "forgetful");
    let store = open(options.clone());
    let stop = Arc::new(AtomicBool::new(false));
    on_runtime(others_ask(options.clone(), ROUNDS, stop.clone()));
    let beside = runtime().spawn(others_ask(options.clone(), usize::MAX, stop.clone()));
    on_runtime(async move {
        for _ in 0..CONNECTS {
            patiently(|| CqlStore::connect(&options)).await;
        }
        let session = SessionId(1);
        for version in 0..WRITES {
            let expected = (version > 0).then_some(version);
            let put = Statement::PutSession { session, expected, row: session_row(session, version + 1, version) };
            assert_eq!(store.execute(session, put).await, StoreAnswer::Done, "{version}");
            let rows = vec![Row::Run(run(7, 7 + 4_096 * version, RunState::Failed, 9).into())];
            store.apply(batch(at(1, version), &[(7, version)], rows)).await.unwrap();
        }
        let session = patiently(|| connection::open(&options)).await;
        let kept = session.query_unpaged("SELECT prepared_id FROM system.prepared_statements", ()).await.unwrap();
        let kept = kept.into_rows_result().unwrap().rows_num();
        assert!(kept < OTHERS, "the server was to have no room for all, and keeps {kept}");
    });
    stop.store(true, Ordering::Relaxed);
    on_runtime(async move { beside.await.unwrap() });
}
