//! What every store that a cluster shares must do with the rows of ownership and with lanes. Sessions and shards are the tests' own.

use crate::{
    cql::tests::{another, shared},
    memory::shared::SharedMemory,
    samples::wait,
};
use campanile_core::ownership::{
    rows::{Nonce, SessionRow, SessionState, ShardRow, SnapshotPointer, Span},
    store::{Batch, Statement, StoreAnswer},
};
use campanile_ports::Leases;
use campanile_schema::ids::{Epoch, SessionId, ShardId};
use std::sync::Arc;

const SHARDS: u16 = 256;

/// A store that nodes share.
trait LeaseStore {
    /// The way of a node that others have too.
    fn end(&self) -> Arc<dyn Leases>;
    /// A way of its own.
    fn another(&self) -> Arc<dyn Leases>;
}

impl LeaseStore for Arc<SharedMemory> {
    fn end(&self) -> Arc<dyn Leases> {
        Arc::new(SharedMemory::end(self))
    }
    fn another(&self) -> Arc<dyn Leases> {
        Arc::new(SharedMemory::end(self))
    }
}

/// The one that all tests share.
struct OnServer;

impl LeaseStore for OnServer {
    fn end(&self) -> Arc<dyn Leases> {
        shared().store.clone()
    }
    fn another(&self) -> Arc<dyn Leases> {
        another()
    }
}

/// The one on a CQL server needs it, and is left out by default.
macro_rules! every_shared_store {
    ($(fn $name:ident($lease_store:ident: &dyn LeaseStore) $body:block)+) => {$(
        mod $name {
            use super::*;

            fn check($lease_store: &dyn LeaseStore) $body

            #[test]
            fn memory() {
                check(&SharedMemory::new(SHARDS));
            }

            #[test]
            #[ignore = "needs a CQL server: make test-cql"]
            fn cql() {
                check(&OnServer);
            }
        }
    )+};
}

fn execute(store: &dyn Leases, own: SessionId, statement: Statement) -> StoreAnswer {
    let answer = store.execute(own, statement);
    wait(Box::pin(async move { Ok(answer.await) })).unwrap()
}

fn ask(lease_store: &dyn LeaseStore, statement: Statement) -> StoreAnswer {
    execute(lease_store.end().as_ref(), SessionId::default(), statement)
}

fn session_row(session: SessionId, version: u64, state: SessionState) -> SessionRow {
    SessionRow {
        version,
        nonce: Nonce { session, count: version + 7 },
        lease_ms: 2_500,
        window: 64,
        state,
        durable: vec![version, u64::MAX >> 1, 0, 4],
        sealed: state.is_over().then(|| vec![version, 1, 2, 3]),
    }
}

fn put(lease_store: &dyn LeaseStore, session: SessionId, expected: Option<u64>, row: &SessionRow) -> StoreAnswer {
    ask(lease_store, Statement::PutSession { session, expected, row: row.clone() })
}

fn read(lease_store: &dyn LeaseStore, session: SessionId) -> Option<SessionRow> {
    match ask(lease_store, Statement::ReadSession { session }) {
        StoreAnswer::Session(row) => row,
        other => panic!("{other:?}"),
    }
}

fn begin(lease_store: &dyn LeaseStore) -> SessionId {
    wait(lease_store.end().next_session()).unwrap()
}

fn shard_row(version: u64, owner: u64) -> ShardRow {
    let span = |from, to| Span { session: SessionId(owner), lane: 3, from, to };
    ShardRow {
        version,
        nonce: Nonce { session: SessionId(owner), count: version },
        owner: Some(SessionId(owner)),
        epoch: Epoch(version),
        spans: vec![span(1, Some(9)), span(10, None)],
        snapshot: (version > 1).then_some(SnapshotPointer { epoch: Epoch(1), number: version, seq: 77 }),
    }
}

fn put_shard(lease_store: &dyn LeaseStore, shard: ShardId, expected: u64, row: &ShardRow) -> StoreAnswer {
    ask(lease_store, Statement::PutShard { shard, expected, row: row.clone() })
}

fn batch(seq: u64) -> Batch {
    format!("row {seq}").into_bytes().into()
}

/// A session with a way to the store of its own.
struct AppendingNode {
    store: Arc<dyn Leases>,
    session: SessionId,
}

impl AppendingNode {
    fn begin(lease_store: &dyn LeaseStore) -> Self {
        let (store, session) = (lease_store.another(), begin(lease_store));
        let new = Self { store, session };
        let row = session_row(session, 1, SessionState::Active);
        assert_eq!(new.ask(Statement::PutSession { session, expected: None, row }), StoreAnswer::Done);
        new
    }

    fn ask(&self, statement: Statement) -> StoreAnswer {
        execute(self.store.as_ref(), self.session, statement)
    }

    fn append(&self, lane: u16, seq: u64) {
        assert_eq!(self.ask(Statement::Append { lane, seq, batch: batch(seq) }), StoreAnswer::Done);
    }

    fn rewrite(&self, lane: u16, rows: impl Iterator<Item = u64>) {
        let rows = rows.map(|seq| (seq, batch(seq))).collect();
        assert_eq!(self.ask(Statement::Rewrite { session: self.session, lane, rows }), StoreAnswer::Done);
    }

    fn lane(&self, lane: u16, after: u64) -> Vec<u64> {
        let read = Statement::ReadLane { session: self.session, lane, after };
        let StoreAnswer::Lane(rows) = self.ask(read) else { panic!("no lane") };
        assert!(rows.iter().all(|(seq, bytes)| *bytes == batch(*seq)));
        rows.into_iter().map(|(seq, _)| seq).collect()
    }

    fn delete(&self, lane: u16, upto: u64) {
        assert_eq!(self.ask(Statement::DeleteRows { session: self.session, lane, upto }), StoreAnswer::Done);
    }
}

every_shared_store! {
    fn a_session_is_inserted_once_and_changed_at_its_version_only(lease_store: &dyn LeaseStore) {
        let session = begin(lease_store);
        let first = session_row(session, 1, SessionState::Active);
        assert_eq!(read(lease_store, session), None);
        assert_eq!(put(lease_store, session, Some(1), &first), StoreAnswer::Session(None), "there is none to change");
        assert_eq!(put(lease_store, session, None, &first), StoreAnswer::Done);
        assert_eq!(read(lease_store, session), Some(first.clone()));
        let other = session_row(session, 1, SessionState::Draining);
        assert_eq!(put(lease_store, session, None, &other), StoreAnswer::Session(Some(first.clone())), "it is there");
        let fenced = session_row(session, 2, SessionState::Fenced);
        assert_eq!(put(lease_store, session, Some(1), &fenced), StoreAnswer::Done);
        let late = session_row(session, 2, SessionState::Active);
        let refused = StoreAnswer::Session(Some(fenced.clone()));
        assert_eq!(put(lease_store, session, Some(1), &late), refused, "a heartbeat that comes late");
        assert_eq!(read(lease_store, session), Some(fenced.clone()));
        let drop = |expected| ask(lease_store, Statement::DropSession { session, expected });
        assert_eq!(drop(1), StoreAnswer::Session(Some(fenced)));
        assert_eq!(drop(2), StoreAnswer::Done);
        assert_eq!(drop(2), StoreAnswer::Session(None), "it is gone");
        assert_eq!(read(lease_store, session), None);
    }

    fn a_shard_that_nobody_has_owned_is_claimed_once_and_changed_at_its_version_only(lease_store: &dyn LeaseStore) {
        let shard = ShardId(200);
        assert_eq!(ask(lease_store, Statement::ReadShard { shard }), StoreAnswer::Shard(ShardRow::default()));
        let first = shard_row(1, 4);
        assert_eq!(put_shard(lease_store, shard, 1, &first), StoreAnswer::Shard(ShardRow::default()), "there is no version 1");
        assert_eq!(put_shard(lease_store, shard, 0, &first), StoreAnswer::Done);
        let refused = StoreAnswer::Shard(first);
        assert_eq!(put_shard(lease_store, shard, 0, &shard_row(1, 5)), refused, "the second claims too late");
        let second = ShardRow { spans: Vec::new(), owner: None, ..shard_row(2, 5) };
        assert_eq!(put_shard(lease_store, shard, 1, &second), StoreAnswer::Done);
        assert_eq!(put_shard(lease_store, shard, 1, &shard_row(2, 6)), StoreAnswer::Shard(second.clone()));
        assert_eq!(ask(lease_store, Statement::ReadShard { shard }), StoreAnswer::Shard(second.clone()));
        let third = ShardRow { snapshot: None, ..shard_row(3, 6) };
        assert_eq!(put_shard(lease_store, shard, 2, &third), StoreAnswer::Done);
        let StoreAnswer::Shards(all) = ask(lease_store, Statement::ReadShards) else { panic!("no rows") };
        assert_eq!(all.len(), 256);
        assert!(all.iter().zip(0..).all(|((shard, _), number)| shard.0 == number), "each once, in order");
        assert_eq!(all[200].1, third);
        assert_eq!(all[201].1, ShardRow::default());
    }

    fn of_many_who_claim_at_once_one_wins(lease_store: &dyn LeaseStore) {
        let (end, shard) = (lease_store.end(), ShardId(100));
        let claim = |owner| Statement::PutShard { shard, expected: 0, row: shard_row(1, owner) };
        let claims: Vec<_> = (1..=8).map(|owner| end.execute(SessionId::default(), claim(owner))).collect();
        let mut answers = Vec::new();
        for claim in claims {
            answers.push(wait(Box::pin(async move { Ok(claim.await) })).unwrap());
        }
        let StoreAnswer::Shard(stands) = ask(lease_store, Statement::ReadShard { shard }) else { panic!("no row") };
        let lost = StoreAnswer::Shard(stands);
        assert_eq!(answers.iter().filter(|answer| **answer == StoreAnswer::Done).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| **answer == lost).count(), 7, "{answers:?}");
    }

    fn a_lane_is_read_up_to_its_first_gap(lease_store: &dyn LeaseStore) {
        let node = AppendingNode::begin(lease_store);
        assert_eq!(node.lane(0, 0), [0; 0]);
        for seq in [1, 2, 3, 5, 6] {
            node.append(0, seq);
        }
        node.append(1, 1);
        assert_eq!(node.lane(0, 0), [1, 2, 3]);
        assert_eq!(node.lane(0, 2), [3]);
        assert_eq!(node.lane(0, 3), [0; 0]);
        assert_eq!(node.lane(0, 4), [5, 6]);
        assert_eq!(node.lane(1, 0), [1]);
        node.rewrite(0, 4..=5);
        assert_eq!(node.lane(0, 0), [1, 2, 3, 4, 5, 6]);
        let read = |after, upto, bytes| -> Vec<u64> {
            let rows = wait(lease_store.end().read_lane(node.session, 0, after, upto, bytes)).unwrap();
            rows.into_iter().map(|(seq, _)| seq).collect()
        };
        assert_eq!(read(0, 4, 1 << 20), [1, 2, 3, 4], "by another node");
        assert_eq!(read(1, 99, 1), [2], "one row at least");
        assert_eq!(read(1, 99, 6), [2, 3]);
        assert_eq!(read(5, 5, 9), [0; 0]);
    }

    fn whole_buckets_are_deleted_and_the_lane_goes_on(lease_store: &dyn LeaseStore) {
        let node = AppendingNode::begin(lease_store);
        node.rewrite(2, 1..=8_200);
        assert_eq!(node.lane(2, 0), (1..=8_200).collect::<Vec<u64>>(), "over partitions and pages");
        node.delete(2, 4_094);
        assert_eq!(node.lane(2, 0).len(), 8_200, "the bucket is not whole yet");
        node.delete(2, 4_095);
        assert_eq!(node.lane(2, 0), [0; 0]);
        assert_eq!(node.lane(2, 4_095).len(), 8_200 - 4_095);
        node.rewrite(2, 1..=1);
        assert_eq!(node.lane(2, 0), [0; 0], "a write that arrives late does not bring the row back");
        node.delete(2, 4_096);
        assert_eq!(node.lane(2, 4_095).len(), 8_200 - 4_095, "nothing more is whole");
        node.delete(2, 8_195);
        assert_eq!(node.lane(2, 8_191), (8_192..=8_200).collect::<Vec<u64>>());
        // Who removes it need not be who deleted before.
        let all = Statement::DeleteRows { session: node.session, lane: 2, upto: u64::MAX };
        assert_eq!(execute(lease_store.end().as_ref(), node.session, all), StoreAnswer::Done);
        assert_eq!(node.lane(2, 8_191), [0; 0], "the session is over");
    }
}
