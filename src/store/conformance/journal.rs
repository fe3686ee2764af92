//! What every journal must do.

use super::{Store, benches};
use crate::samples::{batch, journal_batch, wait};
use campanile_ports::{Position, StoreError};
use campanile_schema::ids::SessionId;

/// Everything that is stored, read in small pages.
fn read_all(store: &dyn Store, mut after: Position) -> Vec<(Position, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        let page = wait(store.read_after(after, 2_000)).unwrap();
        let Some((last, _)) = page.last() else {
            return all;
        };
        after = *last;
        all.extend(page);
    }
}

fn at(session: u64, lane: u16, seq: u64) -> Position {
    Position { session: SessionId(session), lane, seq }
}

#[test]
fn batches_are_read_in_order_by_later_sessions_only() {
    for mut bench in benches() {
        let mut expected = Vec::new();
        for session in 1..=3 {
            assert_eq!(bench.opened.session, SessionId(session), "{}", bench.name);
            let store = bench.store();
            for seq in 1..=20 {
                let bytes = journal_batch(1, session * 1000 + seq * 10, 7);
                wait(store.append(0, seq, &bytes)).unwrap();
                expected.push((at(session, 0, seq), bytes));
            }
            let seen = read_all(store.as_ref(), Position::default());
            assert_eq!(seen, expected[..expected.len() - 20], "{}", bench.name);
            // The handle must go before the directory can be opened again.
            drop(store);
            bench.restart();
        }
        let store = bench.store();
        assert_eq!(read_all(store.as_ref(), Position::default()), expected, "{}", bench.name);
        assert_eq!(read_all(store.as_ref(), at(2, 0, 5)), expected[25..], "{}", bench.name);
        assert_eq!(read_all(store.as_ref(), at(2, 0, 99)), expected[40..], "{}", bench.name);
        assert!(store.stored_bytes() > 0, "{}", bench.name);
    }
}

#[test]
fn a_seq_that_is_not_due_is_refused_and_changes_nothing() {
    for mut bench in benches() {
        let store = bench.store();
        wait(store.append(0, 1, b"one")).unwrap();
        for seq in [0, 1, 3] {
            assert!(matches!(wait(store.append(0, seq, b"x")), Err(StoreError::Refused(_))), "{}", bench.name);
        }
        wait(store.append(0, 2, b"two")).unwrap();
        drop(store);
        let store = bench.restart();
        let all = read_all(store.as_ref(), Position::default());
        assert_eq!(all, [(at(1, 0, 1), b"one".to_vec()), (at(1, 0, 2), b"two".to_vec())], "{}", bench.name);
    }
}

#[test]
fn lanes_count_for_themselves_and_share_one_order() {
    for mut bench in benches() {
        let store = bench.store();
        let order = [(0, 1), (1, 1), (1, 2), (0, 2), (2, 1), (0, 3)];
        for (lane, seq) in order {
            wait(store.append(lane, seq, format!("{lane}/{seq}").as_bytes())).unwrap();
        }
        drop(store);
        let store = bench.restart();
        let all: Vec<_> =
            read_all(store.as_ref(), Position::default()).into_iter().map(|(p, _)| (p.lane, p.seq)).collect();
        assert_eq!(all, order, "{}", bench.name);
    }
}

#[test]
fn an_empty_batch_and_a_large_one_come_back_whole() {
    for mut bench in benches() {
        let store = bench.store();
        let large: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
        wait(store.append(0, 1, b"")).unwrap();
        wait(store.append(0, 2, &large)).unwrap();
        drop(store);
        let store = bench.restart();
        let all = read_all(store.as_ref(), Position::default());
        assert_eq!(all, [(at(1, 0, 1), Vec::new()), (at(1, 0, 2), large)], "{}", bench.name);
    }
}

#[test]
fn trim_keeps_what_comes_after_and_what_the_views_have_not_flushed() {
    for mut bench in benches() {
        let store = bench.store();
        for seq in 1..=40 {
            wait(store.append(0, seq, &[7; 3_000])).unwrap();
        }
        drop(store);
        let store = bench.restart();
        let before = store.stored_bytes();
        wait(store.trim(at(1, 0, 30))).unwrap();
        assert_eq!(read_all(store.as_ref(), Position::default()).len(), 40, "{}: nothing is flushed", bench.name);
        wait(store.apply(batch(at(1, 0, 25), &[(0, 1)], Vec::new()))).unwrap();
        wait(store.flush()).unwrap();
        wait(store.trim(at(1, 0, 30))).unwrap();
        let kept: Vec<u64> = read_all(store.as_ref(), Position::default()).into_iter().map(|(p, _)| p.seq).collect();
        assert!(kept.len() < 40, "{}: {} stay", bench.name, kept.len());
        assert!(kept.first().is_some_and(|first| *first <= 26), "{}: {kept:?}", bench.name);
        assert_eq!(kept.last(), Some(&40), "{}", bench.name);
        drop(store);
        let store = bench.restart();
        let again: Vec<u64> = read_all(store.as_ref(), Position::default()).into_iter().map(|(p, _)| p.seq).collect();
        assert_eq!(again, kept, "{}", bench.name);
        assert!(store.stored_bytes() <= before, "{}", bench.name);
    }
}

#[test]
fn after_a_failed_write_nothing_is_appended_until_the_store_is_reopened() {
    for mut bench in benches() {
        let store = bench.store();
        wait(store.append(0, 1, b"kept")).unwrap();
        if !bench.fail_next_append() {
            continue;
        }
        assert!(matches!(wait(store.append(0, 2, b"lost")), Err(StoreError::WriteFailed(_))), "{}", bench.name);
        assert!(matches!(wait(store.append(0, 2, b"lost")), Err(StoreError::WriteFailed(_))), "{}", bench.name);
        bench.reopen();
        assert_eq!(bench.opened.session, SessionId(2), "{}", bench.name);
        let kept = [(at(1, 0, 1), b"kept".to_vec())];
        assert_eq!(read_all(store.as_ref(), Position::default()), kept, "{}", bench.name);
        wait(store.append(0, 1, b"next")).unwrap();
        drop(store);
        let store = bench.restart();
        let all = read_all(store.as_ref(), Position::default());
        assert_eq!(all[..1], kept, "{}", bench.name);
        assert_eq!(all[1..], [(at(2, 0, 1), b"next".to_vec())], "{}", bench.name);
    }
}
