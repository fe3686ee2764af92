//! What of the read model only a CQL server shows: many partitions, timestamps, TTLs, and what it costs.

use super::{another, on_runtime, shared};
use crate::{
    cql::connection,
    samples::{at, fired, ledger, run, scheduled, wait},
};
use campanile_ports::{Row, RunPage, ViewBatch, Views};
use campanile_schema::{
    ids::{JobId, RunId, SLOTS, ShardId},
    record::{RunRecord, RunState},
};

const HOUR_MS: i64 = 3_600_000;
/// A job that no other test has, and one of those that look at single runs: all are made at the same time.
const JOB: u64 = 99 + SLOTS * 1_000_000;
const OTHER: u64 = JOB + SLOTS;

fn apply(rows: Vec<(u64, Row)>) {
    let batch = ViewBatch { rows, applied: vec![(ShardId(99), 1)], position: at(1, 1) };
    wait(shared().store.apply(batch)).unwrap();
}

/// Pages of seven.
fn pages(read: impl Fn(Option<Vec<u8>>) -> RunPage) -> Vec<u64> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = read(after);
        all.extend(page.items.iter().map(|r| r.run.0));
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn lists_and_ledgers_go_over_many_partitions() {
    const RUNS: u64 = 40;
    let record = |n: u64| RunRecord {
        tenant: "far".into(),
        ..run(JOB, JOB + SLOTS * 5_000 * n, RunState::Failed, n as i64 * 7 * HOUR_MS)
    };
    let interval = |n: u64| ledger(JOB, (n as i64 - 1) * 7 * HOUR_MS, n as i64 * 7 * HOUR_MS);
    let all: Vec<u64> = (1..=RUNS).map(|n| record(n).run.0).collect();
    apply((1..=RUNS).map(|n| (n, Row::Run(record(n).into()))).collect());
    apply((1..=RUNS).map(|n| (n, Row::Ledger(interval(n)))).collect());
    let newest_first: Vec<u64> = all.iter().rev().copied().collect();
    let store = &shared().store;
    assert_eq!(pages(|after| wait(store.job_runs(JobId(JOB), after, 7)).unwrap()), newest_first);
    assert_eq!(pages(|after| wait(store.failed_runs("far", after, 7)).unwrap()), newest_first);
    assert_eq!(pages(|after| wait(store.dead_letters("far", after, 40)).unwrap()), newest_first);
    let ends = |from: i64, to: i64, limit| -> Vec<i64> {
        let rows = wait(store.ledger(JobId(JOB), from * HOUR_MS, to * HOUR_MS, limit)).unwrap();
        rows.iter().map(|row| row.to_ms / HOUR_MS).collect()
    };
    assert_eq!(ends(0, 280, 99), (1..=40).map(|n| n * 7).collect::<Vec<i64>>());
    assert_eq!(ends(70, 90, 99), [77, 84, 91]);
    assert_eq!(ends(70, 280, 2), [77, 84]);
    assert_eq!(ends(300, 400, 9), [0; 0]);
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn the_newer_event_wins_whenever_it_comes() {
    let id = RunId(JOB + SLOTS * 7);
    let record = |state, ended| run(OTHER, id.0, state, ended);
    apply(vec![(2_000, Row::Run(record(RunState::Success, 90).into()))]);
    // An owner that was replaced writes late; its event is the older one.
    apply(vec![(1_000, Row::Run(record(RunState::Failed, 80).into()))]);
    assert_eq!(wait(shared().store.run(id)).unwrap(), Some(record(RunState::Success, 90)));
    // The same events cut into other batches, as another owner projects them again: neither takes the place of the other.
    let end = |n: u64, hlc| (hlc, Row::Run(run(OTHER, id.0 + SLOTS * (20 + n), RunState::Success, hlc as i64).into()));
    apply(vec![end(2, 3_000), end(3, 3_001), end(1, 3_002)]);
    apply(vec![end(3, 3_001), end(1, 3_002)]);
    for (n, ended) in [(2, 3_000), (3, 3_001), (1, 3_002)] {
        let found = wait(shared().store.run(RunId(id.0 + SLOTS * (20 + n)))).unwrap();
        assert_eq!(found.and_then(|record| record.ended_ms), Some(ended));
    }
    let late = ViewBatch { rows: Vec::new(), applied: vec![(ShardId(98), 5)], position: at(1, 1) };
    wait(shared().store.apply(late.clone())).unwrap();
    wait(shared().store.apply(ViewBatch { applied: vec![(ShardId(98), 4)], ..late })).unwrap();
    assert_eq!(wait(shared().store.applied(ShardId(98))).unwrap(), 5, "a position never goes back");
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn no_clock_of_a_client_is_in_what_is_written_and_history_ends_by_itself() {
    let hlc = 1_700_000_000_123_456;
    let id = JOB + SLOTS * 9;
    apply(vec![(hlc, Row::Run(run(OTHER, id, RunState::Success, 90).into()))]);
    let (time, ttl) = on_runtime(async move {
        let session = connection::open(&shared().options).await.unwrap();
        let text =
            "SELECT writetime(runs), ttl(runs) FROM shared.run_packs WHERE shard = 99 AND range = ? AND newest = ?";
        let range = (id / SLOTS / 512).cast_signed();
        let answer = session.query_unpaged(text, (range, hlc.cast_signed())).await.unwrap();
        answer.into_rows_result().unwrap().single_row::<(i64, i32)>().unwrap()
    });
    assert_eq!(time.cast_unsigned(), hlc);
    let days_30 = 30 * 24 * 3_600;
    assert!((days_30 - 600..=days_30).contains(&ttl), "{ttl}");
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn a_record_that_is_too_large_for_a_pack_is_only_named_there() {
    let id = JOB + SLOTS * 2_000;
    let reason = Some("why ".repeat(1_000));
    apply(vec![(5, Row::Run(RunRecord { reason, ..run(OTHER, id, RunState::Success, 90) }.into()))]);
    let (packed, alone) = on_runtime(async move {
        let session = connection::open(&shared().options).await.unwrap();
        let text = "SELECT runs FROM shared.run_packs WHERE shard = 99 AND range = ?";
        let of = async |text: &str, range: u64| {
            let answer = session.query_unpaged(text, (range.cast_signed(),)).await.unwrap();
            let rows = answer.into_rows_result().unwrap();
            rows.rows::<(Vec<u8>,)>().unwrap().map(|row| row.unwrap().0.len()).max()
        };
        let runs = "SELECT record FROM shared.runs WHERE shard = 99 AND range = ?";
        (of(text, id / SLOTS / 512).await, of(runs, id / SLOTS / 4_096).await)
    });
    assert!(packed.is_some_and(|bytes| bytes < 100), "{packed:?}");
    assert!(alone.is_some_and(|bytes| bytes > 4_000), "{alone:?}");
}

#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn lists_and_ledgers_of_schedules_go_over_many_partitions() {
    const RUNS: u64 = 100;
    const RARE: u64 = JOB + SLOTS * 2;
    let id = |n: u64| RARE + SLOTS * 600 * n;
    let at_ms = |n: u64| n as i64 * HOUR_MS * 5 / 2;
    let rows = |n: u64| {
        let record = RunRecord { created_ms: at_ms(n), ..scheduled(RARE, id(n), RunState::Success, at_ms(n) + 30) };
        [(n, Row::Ledger(fired(RARE, id(n), at_ms(n - 1), at_ms(n)))), (n, Row::Run(record.into()))]
    };
    apply((1..=RUNS).flat_map(rows).collect());
    let store = &shared().store;
    let newest_first: Vec<u64> = (1..=RUNS).rev().map(id).collect();
    assert_eq!(pages(|after| wait(store.job_runs(JobId(RARE), after, 7)).unwrap()), newest_first);
    assert_eq!(pages(|after| wait(store.job_runs(JobId(RARE), after, 99)).unwrap()), newest_first);
    let told = wait(store.ledger(JobId(RARE), at_ms(20), at_ms(40), 99)).unwrap();
    assert_eq!(told.iter().map(|row| row.to_ms).collect::<Vec<_>>(), (21..=40).map(at_ms).collect::<Vec<_>>());
}

/// The figures of `docs/adr/0021-packs.md`: 5,000 triggers/s on 256 shards, an apply each quarter of a second.
#[test]
#[ignore = "needs a CQL server: make test-cql"]
fn a_trigger_costs_a_tenth_of_a_request_and_little_more_than_a_row() {
    const EACH: u64 = 5;
    let triggers = 256 * EACH;
    let batch = |round: u64| {
        let mut rows = Vec::new();
        for shard in 0..256 {
            for n in 0..EACH {
                let id = shard + SLOTS * (2_000_000 + round * EACH + n);
                let at_ms = (round * 250 + n).cast_signed();
                rows.push((round * 1_000 + n, Row::Run(scheduled(id, id, RunState::Success, at_ms).into())));
                rows.push((round * 1_000 + n, Row::Ledger(fired(id, id, at_ms - 1, at_ms))));
            }
        }
        let applied = (0..256).map(|shard| (ShardId(shard), round)).collect();
        ViewBatch { rows, applied, position: at(1, round) }
    };
    let store = another();
    wait(store.apply(batch(1))).unwrap();
    let (before, written) = (store.requests(), store.written_rows());
    for round in 2..=4 {
        wait(store.apply(batch(round))).unwrap();
    }
    let requests = store.requests() - before;
    assert!(requests >= 3 * (64 + 4), "fires of four shards are too large to share a request");
    assert!(requests * 10 < 3 * triggers, "{requests} requests for {} triggers", 3 * triggers);
    assert_eq!(
        store.written_rows() - written,
        3 * (256 + triggers + 256),
        "a pack a shard, a fire a trigger, a position a shard"
    );
}
