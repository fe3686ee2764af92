//! History that takes more room than it may, in a real directory: what goes, when its room is given back, and that a session's own
//! maintenance does it.
#![allow(clippy::unwrap_used)]

use super::super::EmbeddedStore;
use crate::{
    conformance::options,
    samples::{at, batch, ledger, run, session, wait},
};
use campanile_actors::maintenance::Retention;
use campanile_ports::{LocalViews, Row, Views};
use campanile_schema::{
    ids::{JobId, RunId},
    record::{RunRecord, RunState},
};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

const RUNS: u64 = 20_000;
/// Some rounds of maintenance, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn open(dir: &Path) -> Arc<EmbeddedStore> {
    EmbeddedStore::open(options(dir)).unwrap().0
}

/// Runs `1..=RUNS` that ended at their number, milliseconds, each with a key that does not shrink when it is packed; on disk.
fn fill(store: &EmbeddedStore) {
    for n in 0..RUNS / 1_000 {
        let rows = (n * 1_000 + 1..=(n + 1) * 1_000).flat_map(|id| {
            let noise: String =
                (0..16).map(|part| format!("{:016x}", (id * 16 + part).wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
            let record = RunRecord { key: Some(noise), ..run(4, id, RunState::Success, id as i64) };
            [Row::Run(record.into()), Row::Ledger(ledger(4, id as i64 - 1, id as i64))]
        });
        wait(store.apply(batch(at(1, n + 1), &[(0, n + 1)], rows.collect()))).unwrap();
    }
    wait(store.flush()).unwrap();
}

fn shown(store: &EmbeddedStore, id: u64) -> bool {
    wait(store.run(RunId(id))).unwrap().is_some()
}

#[test]
fn history_that_takes_too_much_room_loses_its_oldest() {
    let temp = tempfile::tempdir().unwrap();
    let store = open(temp.path());
    fill(&store);
    let whole = store.disk_usage().unwrap().views;
    assert_eq!(wait(store.shrink(whole, i64::MAX)).unwrap(), 0, "there is room");
    let gone = wait(store.shrink(whole / 2, i64::MAX)).unwrap();
    assert!((RUNS / 2..RUNS * 6 / 10).contains(&gone), "{gone} of {RUNS}");
    let left = store.disk_usage().unwrap().views;
    assert!(left <= whole / 2, "{left} of {whole} bytes");
    assert_eq!((shown(&store, gone), shown(&store, gone + 1), shown(&store, RUNS)), (false, true, true));
    let rows = wait(store.ledger(JobId(4), 0, RUNS as i64, 1)).unwrap();
    assert!(rows[0].to_ms >= gone as i64, "the ledger begins where the runs do");
    // What ended after the second argument stays, whatever room it takes.
    assert_eq!(wait(store.shrink(1, 0)).unwrap(), 0);
    assert!(shown(&store, gone + 1));
}

#[test]
fn all_history_is_written_anew_only_when_enough_of_it_has_gone() {
    let temp = tempfile::tempdir().unwrap();
    let store = open(temp.path());
    fill(&store);
    let compactions = || store.inner.shrinking.compactions();
    for _ in 0..10 {
        assert_eq!(wait(store.shrink(1, 0)).unwrap(), 0, "all of it is too young");
    }
    assert_eq!(compactions(), 0, "nothing had gone");
    // One in a hundred is old enough at each round, as where a minute of runs takes more than the limit.
    let hundredth = RUNS / 100;
    for round in 1..=10 {
        assert_eq!(wait(store.shrink(1, (round * hundredth + 1) as i64)).unwrap(), hundredth);
        assert!(!shown(&store, round * hundredth));
        assert!(shown(&store, round * hundredth + 1));
    }
    assert!((1..=2).contains(&compactions()), "{} for a tenth of all runs", compactions());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_lets_the_oldest_go_when_history_takes_too_much_room_and_keeps_the_last_minute() {
    let temp = tempfile::tempdir().unwrap();
    let (store, opened) = EmbeddedStore::open(options(temp.path())).unwrap();
    let now = jiff::Timestamp::now().as_millisecond();
    let young = |id: u64| Row::Run(run(4, id, RunState::Success, now).into());
    std::thread::scope(|scope| {
        // Without a runtime, as the store is filled in other tests.
        scope.spawn(|| {
            fill(&store);
            let rows = (RUNS + 1..=RUNS + 100).map(young).collect();
            wait(store.apply(batch(at(1, RUNS), &[(0, RUNS)], rows))).unwrap();
            wait(store.flush()).unwrap();
        });
    });
    let before = store.disk_usage().unwrap().views;
    // Less than anything takes: all goes that may.
    let session = session(&store, opened, Retention { max_bytes: 1, ..Retention::default() }).await;
    let deadline = Instant::now() + PATIENCE;
    while store.inner.shrinking.compactions() == 0 {
        assert!(Instant::now() < deadline, "nothing went in {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    session.stop();
    let left = store.disk_usage().unwrap().views;
    assert!(left < before / 2, "{left} of {before} bytes");
    let ended = store.run(RunId(RUNS)).await.unwrap();
    let kept = store.run(RunId(RUNS + 1)).await.unwrap();
    assert_eq!((ended, kept.is_some()), (None, true), "who ran it a minute ago may still ask for it");
}
