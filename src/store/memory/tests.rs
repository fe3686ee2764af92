//! Faults come when the script says so, and mean what they say.
#![allow(clippy::unwrap_used)]

use super::{
    MemoryStore,
    faults::{Fault, Op},
};
use crate::samples::{at, batch, run, wait};
use campanile_ports::{Journal, LocalViews, Manifest, Position, Row, Snapshots, StoreError, Views};
use campanile_schema::{
    ids::{ClusterId, Epoch, RunId, ShardId},
    record::RunState,
};
use std::sync::Arc;

fn open() -> Arc<MemoryStore> {
    MemoryStore::open(4, ClusterId(1)).0
}

fn stored(store: &MemoryStore) -> Vec<Vec<u8>> {
    store.restart();
    wait(store.read_after(Position::default(), 1 << 20)).unwrap().into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn an_append_whose_outcome_is_unknown_is_repeated_with_the_same_bytes() {
    for (fault, there) in [(Fault::AppliedUnknown, true), (Fault::NotApplied, false)] {
        let store = open();
        store.inject(Op::Append, 1, fault);
        wait(store.append(0, 1, b"one")).unwrap();
        assert!(matches!(wait(store.append(0, 2, b"two")), Err(StoreError::Unknown(_))));
        if there {
            assert!(
                matches!(wait(store.append(0, 2, b"other")), Err(StoreError::Refused(_))),
                "a row is never changed"
            );
        }
        store.inject(Op::Append, 0, Fault::Unavailable);
        assert!(matches!(wait(store.append(0, 3, b"x")), Err(StoreError::Unavailable(_))));
        if !there {
            wait(store.append(0, 2, b"two")).unwrap();
        }
        wait(store.append(0, 3, b"three")).unwrap();
        assert_eq!(stored(&store), [&b"one"[..], b"two", b"three"]);
    }
}

#[test]
fn an_applied_append_may_be_repeated() {
    let store = open();
    store.inject(Op::Append, 0, Fault::AppliedUnknown);
    assert!(wait(store.append(0, 1, b"one")).is_err());
    wait(store.append(0, 1, b"one")).unwrap();
    assert!(matches!(wait(store.append(0, 1, b"one")), Err(StoreError::Refused(_))), "only while it is unknown");
    assert_eq!(stored(&store), [b"one"]);
}

#[test]
fn a_stale_read_answers_what_was() {
    let store = open();
    let rows = |state| vec![Row::Run(run(4, 8, state, 100).into())];
    wait(store.apply(batch(at(1, 1), &[(0, 1)], rows(RunState::Failed)))).unwrap();
    wait(store.flush()).unwrap();
    wait(store.apply(batch(at(1, 2), &[(0, 2)], rows(RunState::Success)))).unwrap();
    store.inject(Op::Read, 0, Fault::Stale);
    store.inject(Op::Read, 2, Fault::Stale);
    assert_eq!(wait(store.applied(ShardId(0))).unwrap(), 1);
    assert_eq!(wait(store.applied(ShardId(0))).unwrap(), 2);
    assert_eq!(wait(store.run(RunId(8))).unwrap().unwrap().state, RunState::Failed);
    assert_eq!(wait(store.run(RunId(8))).unwrap().unwrap().state, RunState::Success);
    let manifest = |number| Manifest {
        number,
        epoch: Epoch(1),
        shard_seq: 0,
        replay_after: Position::default(),
        last_hlc: 0,
        parts: Vec::new(),
    };
    wait(store.publish(ShardId(1), manifest(1))).unwrap();
    store.inject(Op::Publish, 0, Fault::AppliedUnknown);
    assert!(wait(store.publish(ShardId(1), manifest(2))).is_err());
    store.inject(Op::Load, 0, Fault::Stale);
    assert_eq!(wait(store.load(ShardId(1), None)).unwrap(), Some(manifest(1)));
    assert_eq!(wait(store.load(ShardId(1), None)).unwrap(), Some(manifest(2)));
}
