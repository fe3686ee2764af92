//! What every store of snapshots must do.

use super::{Store, benches};
use crate::store::samples::{at, wait};
use campanile_actors::ports::{Manifest, Part, PartRef, StoreError};
use campanile_schema::ids::{Epoch, ShardId};

const SHARD: ShardId = ShardId(3);

fn write(store: &dyn Store, number: u64, part: Part, fill: u8) -> PartRef {
    let chunks = vec![vec![fill; 5_000], Vec::new(), vec![fill; 17]];
    wait(store.write_part(SHARD, number, part, chunks)).unwrap()
}

fn manifest(number: u64, parts: Vec<PartRef>) -> Manifest {
    Manifest { number, epoch: Epoch(2), shard_seq: number * 10, replay_after: at(0, 0), last_hlc: 99, parts }
}

#[test]
fn what_is_published_is_read_after_a_restart() {
    for mut bench in benches() {
        let store = bench.store();
        assert_eq!(wait(store.load(SHARD, None)).unwrap(), None, "{}", bench.name);
        let parts = vec![write(store.as_ref(), 1, Part::Definitions, 1), write(store.as_ref(), 1, Part::Hot, 2)];
        assert_eq!(wait(store.load(SHARD, None)).unwrap(), None, "{}: not published yet", bench.name);
        let published = manifest(1, parts);
        wait(store.publish(SHARD, published.clone())).unwrap();
        drop(store);
        let store = bench.restart();
        assert_eq!(wait(store.load(SHARD, None)).unwrap(), Some(published.clone()), "{}", bench.name);
        assert_eq!(wait(store.load(ShardId(2), None)).unwrap(), None, "{}", bench.name);
        let chunks = wait(store.read_part(SHARD, published.parts[1].clone())).unwrap();
        assert_eq!(chunks, [vec![2; 5_000], Vec::new(), vec![2; 17]], "{}", bench.name);
    }
}

#[test]
fn a_publish_removes_what_it_does_not_name() {
    for bench in benches() {
        let store = bench.store();
        let defs = write(store.as_ref(), 1, Part::Definitions, 1);
        let old = write(store.as_ref(), 1, Part::Hot, 2);
        wait(store.publish(SHARD, manifest(1, vec![defs.clone(), old.clone()]))).unwrap();
        let new = write(store.as_ref(), 2, Part::Hot, 3);
        wait(store.publish(SHARD, manifest(2, vec![defs.clone(), new.clone()]))).unwrap();
        assert!(wait(store.read_part(SHARD, defs)).is_ok(), "{}: still named", bench.name);
        assert!(wait(store.read_part(SHARD, new)).is_ok(), "{}", bench.name);
        assert!(matches!(wait(store.read_part(SHARD, old)), Err(StoreError::Corrupt(_))), "{}", bench.name);
    }
}

#[test]
fn a_snapshot_is_published_once_and_never_goes_back() {
    for bench in benches() {
        let store = bench.store();
        let five = manifest(5, vec![write(store.as_ref(), 5, Part::Hot, 5)]);
        wait(store.publish(SHARD, five.clone())).unwrap();
        wait(store.publish(SHARD, five.clone())).unwrap();
        let rewritten = wait(store.write_part(SHARD, 5, Part::Hot, Vec::new()));
        assert!(matches!(rewritten, Err(StoreError::Refused(_))), "{}: it is published", bench.name);
        let four = manifest(4, vec![write(store.as_ref(), 4, Part::Hot, 4)]);
        assert!(matches!(wait(store.publish(SHARD, four)), Err(StoreError::Refused(_))), "{}", bench.name);
        assert_eq!(wait(store.load(SHARD, None)).unwrap(), Some(five), "{}", bench.name);
    }
}

#[test]
fn a_part_may_be_written_again_before_it_is_published() {
    for bench in benches() {
        let store = bench.store();
        write(store.as_ref(), 1, Part::Hot, 1);
        let again = write(store.as_ref(), 1, Part::Hot, 9);
        wait(store.publish(SHARD, manifest(1, vec![again.clone()]))).unwrap();
        assert_eq!(wait(store.read_part(SHARD, again)).unwrap()[2], [9; 17], "{}", bench.name);
    }
}
