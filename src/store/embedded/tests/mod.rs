//! The embedded store on real files.
#![allow(clippy::unwrap_used)]

mod bench;
mod crash;
mod damage;
mod history;
mod shrink;
mod world;

use super::*;
use crate::samples::{at, batch, journal_batch, run, wait};
use campanile_ports::{Journal, LocalViews, Row, Views};
use campanile_schema::record::RunState;

fn options(dir: &Path) -> EmbeddedOptions {
    EmbeddedOptions { shards: 4, segment_bytes: 64 << 10, ..EmbeddedOptions::new(dir) }
}

#[test]
fn what_was_appended_is_read_by_the_next_session() {
    let temp = tempfile::tempdir().unwrap();
    let (store, opened) = EmbeddedStore::open(options(temp.path())).unwrap();
    assert_eq!(opened.session, SessionId(1));
    for seq in 1..=50 {
        wait(store.append(0, seq, &journal_batch(0, seq, 30))).unwrap();
    }
    assert!(wait(store.read_after(Position::default(), 1 << 20)).unwrap().is_empty(), "not while it appends");
    wait(store.apply(batch(at(1, 50), &[(0, 1500)], vec![Row::Run(run(4, 8, RunState::Failed, 100).into())]))).unwrap();
    assert_eq!(wait(store.flush()).unwrap(), at(1, 50));
    drop(store);
    let (store, opened) = EmbeddedStore::open(options(temp.path())).unwrap();
    assert_eq!(opened.session, SessionId(2));
    assert_eq!(store.flushed(), at(1, 50));
    let mut after = Position::default();
    let mut seqs = Vec::new();
    loop {
        let page = wait(store.read_after(after, 3_000)).unwrap();
        let Some(last) = page.last() else { break };
        after = last.0;
        seqs.extend(page.iter().map(|(p, _)| p.seq));
    }
    assert_eq!(seqs, (1..=50).collect::<Vec<_>>());
    assert_eq!(wait(store.failed_runs("finance", None, 10)).unwrap().items.len(), 1);
    assert_eq!(wait(store.applied(ShardId(0))).unwrap(), 1500);
}

#[test]
fn its_room_is_that_of_its_directory_and_of_the_disk_below() {
    let temp = tempfile::tempdir().unwrap();
    let (store, _) = EmbeddedStore::open(options(temp.path())).unwrap();
    wait(store.append(0, 1, &journal_batch(0, 1, 30))).unwrap();
    wait(store.apply(batch(at(1, 1), &[(0, 30)], vec![Row::Run(run(4, 8, RunState::Failed, 100).into())]))).unwrap();
    wait(store.flush()).unwrap();
    let room = wait(store.room()).unwrap().unwrap();
    let used = store.disk_usage().unwrap();
    assert_eq!((room.journal, room.snapshots, room.history), (used.journal, used.snapshots, used.views));
    assert!(room.journal > 0, "{room:?}");
    assert!(room.history > 0, "{room:?}");
    // What others write and remove meanwhile aside.
    let free = available(temp.path());
    assert!(room.free.abs_diff(free) < 1 << 30, "{room:?}, {free} free by df");
    assert!(room.free < room.size, "{room:?}, {free} free by df");
}

/// Bytes that `df` calls available.
fn available(dir: &Path) -> u64 {
    let df = std::process::Command::new("df").args(["-B1", "--output=avail"]).arg(dir).output().unwrap();
    String::from_utf8(df.stdout).unwrap().lines().last().unwrap().trim().parse().unwrap()
}
