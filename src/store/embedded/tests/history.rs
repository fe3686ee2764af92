//! The views in a real directory: what a flush covers survives without fjall's journal, and lost views are rebuilt or
//! refused.
#![allow(clippy::unwrap_used)]

use super::super::{EmbeddedOptions, EmbeddedStore, views::copy_flushed_to};
use crate::{
    conformance::options,
    samples::{at, batch, ledger, reopened, run, wait},
};
use campanile_ports::{Journal, LocalViews, Position, Row, StoreError, Views};
use campanile_schema::{
    ids::{JobId, RunId, ShardId},
    record::RunState,
};
use std::{fs, path::Path, sync::Arc};

fn open(options: EmbeddedOptions) -> Result<Arc<EmbeddedStore>, StoreError> {
    EmbeddedStore::open(options).map(|(store, _)| store)
}

/// Rows of the `n`th batch: a run that failed, and its interval.
fn rows(n: u64) -> Vec<Row> {
    let to = n as i64 * 100;
    vec![Row::Run(run(4, n * 10, RunState::Failed, to).into()), Row::Ledger(ledger(4, to - 100, to))]
}

/// Appends and applies batches `from..=to` of the first session.
fn fill(store: &EmbeddedStore, from: u64, to: u64) {
    for n in from..=to {
        wait(store.append(0, n, &vec![n as u8; 5_000])).unwrap();
        wait(store.apply(batch(at(1, n), &[(0, n)], rows(n)))).unwrap();
    }
}

fn failed(store: &EmbeddedStore) -> Vec<u64> {
    let page = wait(store.failed_runs("finance", None, 100)).unwrap();
    page.items.iter().map(|r| r.run.0 / 10).collect()
}

#[test]
fn what_a_flush_covered_is_there_without_the_views_own_journal() {
    let temp = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let store = open(options(temp.path())).unwrap();
    fill(&store, 1, 5);
    assert_eq!(wait(store.flush()).unwrap(), at(1, 5));
    copy_flushed_to(temp.path(), copy.path()).unwrap();
    fill(&store, 6, 9);
    drop(store);
    // As a power cut would leave it: the tables of the flush, and nothing of what came later.
    fs::remove_dir_all(temp.path().join("views")).unwrap();
    copy_flushed_to(copy.path(), temp.path()).unwrap();
    let store = open(options(temp.path())).unwrap();
    assert_eq!(store.flushed(), at(1, 5));
    assert_eq!(failed(&store), [5, 4, 3, 2, 1]);
    assert_eq!(wait(store.ledger(JobId(4), 0, 9_999, 100)).unwrap().len(), 5);
    for n in 6..=9 {
        wait(store.apply(batch(at(1, n), &[(0, n)], rows(n)))).unwrap();
    }
    assert_eq!(failed(&store), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn after_a_restart_new_rows_win_over_flushed_ones() {
    let temp = tempfile::tempdir().unwrap();
    let first = run(4, 10, RunState::Failed, 100);
    for round in 1..=3 {
        let store = open(options(temp.path())).unwrap();
        wait(store.append(0, 1, b"x")).unwrap();
        wait(store.apply(batch(at(round, 1), &[(0, round)], vec![Row::Run(first.clone().into())]))).unwrap();
        assert_eq!(failed(&store), [1], "round {round}");
        assert_eq!(wait(store.flush()).unwrap(), at(round, 1));
        wait(store.append(0, 2, b"x")).unwrap();
        wait(store.apply(batch(at(round, 2), &[(0, round)], vec![Row::Reopened(reopened(&first).into())]))).unwrap();
        assert_eq!(failed(&store), [0; 0], "round {round}");
        assert_eq!(wait(store.run(RunId(10))).unwrap(), Some(reopened(&first)), "round {round}");
        assert_eq!(wait(store.flush()).unwrap(), at(round, 2));
    }
}

#[test]
fn lost_views_are_rebuilt_when_the_journal_reaches_back_to_its_beginning() {
    let temp = tempfile::tempdir().unwrap();
    let store = open(options(temp.path())).unwrap();
    fill(&store, 1, 5);
    wait(store.flush()).unwrap();
    drop(store);
    fs::remove_dir_all(temp.path().join("views")).unwrap();
    let store = open(options(temp.path())).unwrap();
    assert_eq!(store.flushed(), Position::default());
    assert_eq!(wait(store.applied(ShardId(0))).unwrap(), 0);
    assert_eq!(wait(store.read_after(store.flushed(), 1 << 20)).unwrap().len(), 5);
}

/// A directory whose journal was trimmed, closed.
fn trimmed(dir: &Path) {
    let store = open(options(dir)).unwrap();
    fill(&store, 1, 20);
    wait(store.flush()).unwrap();
    wait(store.trim(at(1, 20))).unwrap();
}

#[test]
fn lost_views_of_a_trimmed_journal_are_refused_unless_the_loss_is_accepted() {
    for damage in ["missing", "unreadable"] {
        let temp = tempfile::tempdir().unwrap();
        trimmed(temp.path());
        let views = temp.path().join("views");
        match damage {
            "missing" => fs::remove_dir_all(&views).unwrap(),
            _ => fs::write(views.join("version"), b"garbage").unwrap(),
        }
        let mut advice = String::new();
        for _ in 0..2 {
            let Err(StoreError::Corrupt(why)) = open(options(temp.path())) else { panic!("{damage}: opened") };
            assert!(why.contains("dead letters"), "{damage}: {why}");
            advice = why;
        }
        // `config` tests that these settings do it.
        assert!(advice.contains("`accept_loss = true` in [history]"), "{advice}");
        assert!(advice.contains("CAMPANILE_HISTORY__ACCEPT_LOSS=true"), "{advice}");
        let accepting = EmbeddedOptions { accept_history_loss: true, ..options(temp.path()) };
        let store = open(accepting).unwrap();
        let from = store.flushed();
        assert!(from > Position::default(), "{damage}: what was trimmed is not asked for again");
        let rest = wait(store.read_after(from, 1 << 20)).unwrap();
        assert_eq!(rest.last().map(|(p, _)| *p), Some(at(1, 20)), "{damage}");
        assert!(failed(&store).is_empty(), "{damage}");
        drop(store);
        let store = open(options(temp.path())).unwrap();
        assert_eq!(store.flushed(), from, "{damage}: accepted once");
    }
}

#[test]
fn an_older_copy_of_the_views_is_not_taken_for_the_newer_one() {
    let temp = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let store = open(options(temp.path())).unwrap();
    fill(&store, 1, 2);
    wait(store.flush()).unwrap();
    copy_flushed_to(temp.path(), copy.path()).unwrap();
    fill(&store, 3, 20);
    wait(store.flush()).unwrap();
    wait(store.trim(at(1, 20))).unwrap();
    drop(store);
    let mark = fs::read(temp.path().join("FLUSHED")).unwrap();
    fs::remove_dir_all(temp.path().join("views")).unwrap();
    copy_flushed_to(copy.path(), temp.path()).unwrap();
    fs::write(temp.path().join("FLUSHED"), mark).unwrap();
    let Err(StoreError::Corrupt(why)) = open(options(temp.path())) else { panic!("opened") };
    assert!(why.contains("an older copy?"), "{why}");
}

#[test]
fn without_its_mark_the_views_stand_where_the_journal_begins() {
    let temp = tempfile::tempdir().unwrap();
    trimmed(temp.path());
    fs::remove_file(temp.path().join("FLUSHED")).unwrap();
    let store = open(options(temp.path())).unwrap();
    assert!(store.flushed() > Position::default());
    assert!(store.flushed() <= at(1, 20));
    assert_eq!(failed(&store).len(), 20);
}

#[test]
fn views_that_fail_do_so_loudly_and_come_back_with_a_reopen() {
    let temp = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let store = open(options(temp.path())).unwrap();
    fill(&store, 1, 5);
    wait(store.flush()).unwrap();
    copy_flushed_to(temp.path(), copy.path()).unwrap();
    // The disk goes away under the tables.
    fs::rename(temp.path().join("views"), temp.path().join("gone")).unwrap();
    wait(store.apply(batch(at(1, 6), &[(0, 6)], rows(6)))).unwrap();
    let Err(error) = wait(store.flush()) else { panic!("flushed") };
    assert!(error.to_string().contains("views"), "{error}");
    assert_eq!(store.flushed(), at(1, 5), "nothing is claimed");
    // What could not be written is still shown.
    assert!(wait(store.run(RunId(60))).unwrap().is_some());
    copy_flushed_to(copy.path(), temp.path()).unwrap();
    store.reopen().unwrap();
    assert_eq!(wait(store.applied(ShardId(0))).unwrap(), 5);
    assert_eq!(failed(&store), [5, 4, 3, 2, 1]);
    wait(store.apply(batch(at(1, 6), &[(0, 6)], rows(6)))).unwrap();
    assert_eq!(wait(store.flush()).unwrap(), at(1, 6));
}

#[test]
fn a_flush_ends_when_compaction_removes_all_that_a_table_held() {
    let temp = tempfile::tempdir().unwrap();
    let store = open(options(temp.path())).unwrap();
    for n in 1..=12 {
        let record = run(4, n * 10, RunState::Failed, n as i64);
        wait(store.apply(batch(at(1, 2 * n), &[(0, n)], vec![Row::Run(record.clone().into())]))).unwrap();
        wait(store.flush()).unwrap();
        wait(store.apply(batch(at(1, 2 * n + 1), &[(0, n)], vec![Row::Reopened(reopened(&record).into())]))).unwrap();
        assert_eq!(wait(store.flush()).unwrap(), at(1, 2 * n + 1));
        assert_eq!(failed(&store), [0; 0]);
    }
}
