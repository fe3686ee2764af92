//! What every store of snapshots must do.

use super::benches;
use crate::samples::{at, wait};
use campanile_ports::{Manifest, PartRef, SnapshotPart, Snapshots, StoreError};
use campanile_schema::ids::{Epoch, ShardId};

const SHARD: ShardId = ShardId(3);

fn write(store: &dyn Snapshots, number: u64, part: SnapshotPart, fill: u8) -> PartRef {
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
        let parts = vec![
            write(store.as_ref(), 1, SnapshotPart::Definitions, 1),
            write(store.as_ref(), 1, SnapshotPart::Hot, 2),
            write(store.as_ref(), 1, SnapshotPart::Outbox, 3),
            write(store.as_ref(), 1, SnapshotPart::Graphs, 4),
        ];
        assert_eq!(wait(store.load(SHARD, None)).unwrap(), None, "{}: not published yet", bench.name);
        let published = manifest(1, parts);
        wait(store.publish(SHARD, published.clone())).unwrap();
        drop(store);
        let store = bench.restart();
        assert_eq!(wait(store.load(SHARD, None)).unwrap(), Some(published.clone()), "{}", bench.name);
        assert_eq!(wait(store.load(ShardId(2), None)).unwrap(), None, "{}", bench.name);
        for (fill, part) in (1..).zip(published.parts) {
            let chunks = wait(store.read_part(SHARD, part)).unwrap();
            assert_eq!(chunks, [vec![fill; 5_000], Vec::new(), vec![fill; 17]], "{}", bench.name);
        }
    }
}

#[test]
fn a_publish_removes_what_it_does_not_name() {
    for bench in benches() {
        let store = bench.store();
        let defs = write(store.as_ref(), 1, SnapshotPart::Definitions, 1);
        let old = write(store.as_ref(), 1, SnapshotPart::Hot, 2);
        wait(store.publish(SHARD, manifest(1, vec![defs.clone(), old.clone()]))).unwrap();
        let new = write(store.as_ref(), 2, SnapshotPart::Hot, 3);
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
        let five = manifest(5, vec![write(store.as_ref(), 5, SnapshotPart::Hot, 5)]);
        wait(store.publish(SHARD, five.clone())).unwrap();
        wait(store.publish(SHARD, five.clone())).unwrap();
        let rewritten = wait(store.write_part(SHARD, 5, SnapshotPart::Hot, Vec::new()));
        assert!(matches!(rewritten, Err(StoreError::Refused(_))), "{}: it is published", bench.name);
        let four = manifest(4, vec![write(store.as_ref(), 4, SnapshotPart::Hot, 4)]);
        assert!(matches!(wait(store.publish(SHARD, four)), Err(StoreError::Refused(_))), "{}", bench.name);
        assert_eq!(wait(store.load(SHARD, None)).unwrap(), Some(five), "{}", bench.name);
    }
}

every_store! {
    fn a_part_may_be_written_again_before_it_is_published(store: &dyn Snapshots, on: &str) {
        let longer = vec![vec![1; 40]; 7];
        wait(store.write_part(SHARD, 1, SnapshotPart::Hot, longer)).unwrap();
        let again = write(store, 1, SnapshotPart::Hot, 9);
        wait(store.publish(SHARD, manifest(1, vec![again.clone()]))).unwrap();
        let chunks = wait(store.read_part(SHARD, again)).unwrap();
        assert_eq!(chunks, [vec![9; 5_000], Vec::new(), vec![9; 17]], "{on}: nothing of the longer one");
    }

    fn what_is_published_is_read_by_its_number_and_stays_as_it_is(store: &dyn Snapshots, on: &str) {
        let parts = vec![write(store, 5, SnapshotPart::Definitions, 1), write(store, 5, SnapshotPart::Hot, 2)];
        assert_eq!(wait(store.load(SHARD, Some(5))).unwrap(), None, "{on}: not published yet");
        let five = manifest(5, parts);
        wait(store.publish(SHARD, five.clone())).unwrap();
        wait(store.publish(SHARD, five.clone())).unwrap();
        assert_eq!(wait(store.load(SHARD, Some(5))).unwrap(), Some(five.clone()), "{on}");
        assert_eq!(wait(store.load(SHARD, Some(4))).unwrap(), None, "{on}");
        assert_eq!(wait(store.load(ShardId(2), Some(5))).unwrap(), None, "{on}");
        let chunks = wait(store.read_part(SHARD, five.parts[1].clone())).unwrap();
        assert_eq!(chunks, [vec![2; 5_000], Vec::new(), vec![2; 17]], "{on}");
        let rewritten = wait(store.write_part(SHARD, 5, SnapshotPart::Hot, Vec::new()));
        assert!(matches!(rewritten, Err(StoreError::Refused(_))), "{on}: the part is published");
        let other = wait(store.publish(SHARD, Manifest { shard_seq: 1, ..five.clone() }));
        assert!(matches!(other, Err(StoreError::Refused(_))), "{on}: another one with its number");
        assert_eq!(wait(store.load(SHARD, Some(5))).unwrap(), Some(five), "{on}");
    }

    fn what_the_manifest_that_counts_does_not_name_goes(store: &dyn Snapshots, on: &str) {
        let defs = write(store, 1, SnapshotPart::Definitions, 1);
        let old = write(store, 1, SnapshotPart::Hot, 2);
        wait(store.publish(SHARD, manifest(1, vec![defs.clone(), old.clone()]))).unwrap();
        let abandoned = write(store, 2, SnapshotPart::Hot, 9);
        let new = write(store, 3, SnapshotPart::Hot, 3);
        let three = manifest(3, vec![defs.clone(), new.clone()]);
        wait(store.publish(SHARD, three.clone())).unwrap();
        wait(store.forget(SHARD, three.clone())).unwrap();
        assert_eq!(wait(store.load(SHARD, Some(1))).unwrap(), None, "{on}");
        assert_eq!(wait(store.load(SHARD, Some(3))).unwrap(), Some(three.clone()), "{on}");
        for kept in [defs, new] {
            assert!(wait(store.read_part(SHARD, kept)).is_ok(), "{on}: it is named");
        }
        for gone in [old, abandoned] {
            assert!(matches!(wait(store.read_part(SHARD, gone)), Err(StoreError::Corrupt(_))), "{on}");
        }
        wait(store.forget(SHARD, three)).unwrap();
    }

    fn a_large_part_comes_back_whole(store: &dyn Snapshots, on: &str) {
        let chunks: Vec<Vec<u8>> = (0..600_u32).map(|n| n.to_le_bytes().repeat(1 + n as usize)).collect();
        let part = wait(store.write_part(SHARD, 1, SnapshotPart::Definitions, chunks.clone())).unwrap();
        assert_eq!(part.crc, crc32c::crc32c(&chunks.concat()), "{on}: over all chunks in order");
        assert_eq!(wait(store.read_part(SHARD, part.clone())).unwrap(), chunks, "{on}");
        let other = PartRef { crc: part.crc ^ 1, ..part };
        assert!(matches!(wait(store.read_part(SHARD, other)), Err(StoreError::Corrupt(_))), "{on}");
    }
}
