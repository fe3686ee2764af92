//! A client's clock, however wrong, decides nothing: what is written plainly carries timestamps that are part of what it says, and rows of LWTs
//! get theirs from the servers.

use super::{on_runtime, session_row, shared};
use crate::cql::connection;
use campanile_core::ownership::{
    rows::SessionRow,
    store::{Statement, StoreAnswer},
};
use campanile_ports::Leases;
use campanile_schema::ids::SessionId;
use scylla::DeserializeRow;

/// Whose rows no other test writes.
const SESSION: SessionId = SessionId(30_000);
/// A minute: by how much the clocks of a test and its server may differ, microseconds.
const NEAR_US: i64 = 60_000_000;

async fn ask(statement: Statement) -> StoreAnswer {
    shared().store.execute(SESSION, statement).await
}

#[derive(DeserializeRow)]
struct Time {
    time: i64,
}

async fn time_of(text: &str) -> i64 {
    let session = connection::open(&shared().options).await.unwrap();
    let answer = session.query_unpaged(text, ()).await.unwrap();
    answer.into_rows_result().unwrap().single_row::<Time>().unwrap().time
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn a_row_of_a_lane_that_was_deleted_stays_deleted_however_late_it_is_written_again() {
    let append = Statement::Append { lane: 3, seq: 1, batch: (*b"frames").into() };
    on_runtime(async move {
        assert_eq!(ask(append.clone()).await, StoreAnswer::Done);
        let time = time_of(
            "SELECT writetime(frames) AS time FROM shared.lanes WHERE session = 30000 AND lane = 3 AND bucket = 0",
        )
        .await;
        assert_eq!(time, 1, "no clock");
        assert_eq!(ask(Statement::DeleteRows { session: SESSION, lane: 3, upto: u64::MAX }).await, StoreAnswer::Done);
        assert_eq!(ask(append).await, StoreAnswer::Done, "a packet that was on its way for long");
        assert_eq!(
            ask(Statement::ReadLane { session: SESSION, lane: 3, after: 0 }).await,
            StoreAnswer::Lane(Vec::new())
        );
    });
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn rows_of_ownership_have_the_servers_time_and_the_version_alone_decides() {
    let row = |version, lease_ms| SessionRow { lease_ms, ..session_row(SESSION, version, version) };
    on_runtime(async move {
        let put = |expected, row| Statement::PutSession { session: SESSION, expected, row };
        assert_eq!(ask(put(None, row(1, 2_500))).await, StoreAnswer::Done);
        let time = time_of("SELECT writetime(version) AS time FROM shared.sessions WHERE session = 30000").await;
        let now_us = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap();
        assert!((time - now_us).abs() < NEAR_US, "{time} is no time of the server, which has {now_us}");
        assert_eq!(ask(put(Some(1), row(2, 3_000))).await, StoreAnswer::Done);
        // Later by every clock, and by an older version: it does not stand.
        assert_eq!(ask(put(Some(1), row(2, 9_999))).await, StoreAnswer::Session(Some(row(2, 3_000))));
    });
}
