//! What every read model must do.

use super::benches;
use crate::samples::{at, audited, batch, defined, fired, ledger, reopened, run, scheduled, wait};
use campanile_ports::{AuditQuery, DefinitionRow, EndedQuery, Row, RunPage, ViewBatch, Views};
use campanile_schema::{
    ids::{JobId, RunId, ShardId},
    limits,
    record::{RunRecord, RunState},
    stored::audit::AuditRecord,
};

const JOB: JobId = JobId(4);

fn apply(store: &dyn Views, seq: u64, rows: Vec<Row>) {
    wait(store.apply(batch(at(1, seq), &[(0, seq * 10)], rows))).unwrap();
}

fn ids(page: &RunPage) -> Vec<u64> {
    page.items.iter().map(|r| r.run.0).collect()
}

/// All pages of a list, two runs at a time.
fn pages(read: impl Fn(Option<Vec<u8>>) -> RunPage) -> Vec<u64> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = read(after);
        assert!(page.items.len() <= 2);
        all.extend(ids(&page));
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

fn dead_letters(store: &dyn Views) -> Vec<u64> {
    pages(|after| wait(store.dead_letters("finance", after, 2)).unwrap())
}

fn failed_runs(store: &dyn Views) -> Vec<u64> {
    pages(|after| wait(store.failed_runs("finance", after, 2)).unwrap())
}

fn job_runs(store: &dyn Views) -> Vec<u64> {
    pages(|after| wait(store.job_runs(JOB, after, 2)).unwrap())
}

/// Ids of all records that fit, two at a time.
fn audit(store: &dyn Views, query: &AuditQuery) -> Vec<u64> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = wait(store.audit(query.clone(), after, 2)).unwrap();
        assert!(page.items.len() <= 2);
        all.extend(page.items.iter().map(|record| record.id));
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

/// Five runs of a job, of which two failed and one timed out.
fn five() -> Vec<RunRecord> {
    vec![
        run(4, 10, RunState::Success, 1_000),
        run(4, 20, RunState::Failed, 2_000),
        run(4, 30, RunState::Timeout, 3_000),
        run(4, 40, RunState::Canceled, 4_000),
        run(4, 50, RunState::Failed, 5_000),
    ]
}

fn rows(records: &[RunRecord]) -> Vec<Row> {
    records.iter().cloned().map(|run| Row::Run(run.into())).collect()
}

every_store! {
    fn runs_are_found_by_id_by_job_by_key_and_in_the_lists(store: &dyn Views, on: &str) {
        let mut all = rows(&five());
        all.push(Row::Run(RunRecord { tenant: "fin".into(), ..run(5, 60, RunState::Failed, 2_500) }.into()));
        apply(store, 1, all);
        assert_eq!(wait(store.run(RunId(30))).unwrap(), Some(five()[2].clone()), "{on}");
        assert_eq!(wait(store.run(RunId(31))).unwrap(), None, "{on}");
        assert_eq!(job_runs(store), [50, 40, 30, 20, 10], "{on}");
        assert_eq!(failed_runs(store), [50, 30, 20], "{on}");
        assert_eq!(dead_letters(store), [50, 20], "{on}");
        assert_eq!(wait(store.find_key(JOB, "key-40")).unwrap(), Some(RunId(40)), "{on}");
        assert_eq!(wait(store.find_key(JOB, "key-4")).unwrap(), None, "{on}");
        assert_eq!(wait(store.find_key(JobId(5), "key-40")).unwrap(), None, "{on}");
        assert_eq!(ids(&wait(store.dead_letters("fin", None, 9)).unwrap()), [60], "{on}");
        assert_eq!(ids(&wait(store.dead_letters("f", None, 9)).unwrap()), [0; 0], "{on}");
    }

    fn a_reopened_run_leaves_the_lists_until_it_ends_again(store: &dyn Views, on: &str) {
        apply(store, 1, rows(&five()));
        let active = reopened(&five()[1]);
        apply(store, 2, vec![Row::Reopened(active.clone().into())]);
        assert_eq!(dead_letters(store), [50], "{on}");
        assert_eq!(failed_runs(store), [50, 30], "{on}");
        assert_eq!(job_runs(store), [50, 40, 30, 10], "{on}: final runs only");
        assert_eq!(wait(store.run(RunId(20))).unwrap(), Some(active.clone()), "{on}");
        assert_eq!(wait(store.find_key(JOB, "key-20")).unwrap(), Some(RunId(20)), "{on}");
        let ended = RunRecord { generation: 2, ..run(4, 20, RunState::Failed, 9_000) };
        apply(store, 3, vec![Row::Run(ended.clone().into())]);
        assert_eq!(dead_letters(store), [20, 50], "{on}");
        assert_eq!(wait(store.run(RunId(20))).unwrap(), Some(ended), "{on}");
    }

    fn a_run_that_ends_is_reopened_and_ends_within_one_batch_stands_in_the_lists_once(store: &dyn Views, on: &str) {
        let first = run(4, 20, RunState::Failed, 2_000);
        let again = RunRecord { generation: 2, ..run(4, 20, RunState::Timeout, 9_000) };
        apply(store, 1, vec![Row::Run(first.clone().into()), Row::Reopened(reopened(&first).into()), Row::Run(again.into())]);
        assert_eq!(failed_runs(store), [20], "{on}");
        assert_eq!(dead_letters(store), [0; 0], "{on}");
    }

    fn a_discarded_dead_letter_stays_a_failed_run(store: &dyn Views, on: &str) {
        apply(store, 1, rows(&five()));
        apply(store, 2, vec![Row::DeadLetterDiscarded(five()[4].clone().into())]);
        assert_eq!(dead_letters(store), [20], "{on}");
        assert_eq!(failed_runs(store), [50, 30, 20], "{on}");
        assert!(!wait(store.run(RunId(50))).unwrap().unwrap().dead_letter, "{on}");
    }

    fn the_ledger_gives_intervals_that_touch_oldest_first(store: &dyn Views, on: &str) {
        let rows = [(-50, 0), (0, 100), (100, 200), (200, 300)].map(|(from, to)| Row::Ledger(ledger(4, from, to)));
        apply(store, 1, [rows.to_vec(), vec![Row::Ledger(ledger(5, 0, 100))]].concat());
        let read = |from, to, limit| -> Vec<i64> {
            wait(store.ledger(JOB, from, to, limit)).unwrap().iter().map(|r| r.to_ms).collect()
        };
        assert_eq!(read(i64::MIN, i64::MAX, 9), [0, 100, 200, 300], "{on}");
        assert_eq!(read(100, 200, 9), [200], "{on}: (100, 200] touches one");
        assert_eq!(read(99, 201, 9), [100, 200, 300], "{on}");
        assert_eq!(read(-50, 300, 2), [0, 100], "{on}");
        assert_eq!(wait(store.ledger(JOB, 150, 160, 9)).unwrap(), [ledger(4, 100, 200)], "{on}");
    }

    fn the_ledger_gives_one_interval_more_than_the_largest_page(store: &dyn Views, on: &str) {
        // By the one more that it asks for, the caller knows that there is another page.
        let asked = limits::PAGE_SIZE_MAX + 1;
        let rows = (0..asked as i64 + 1).map(|n| Row::Ledger(ledger(4, n, n + 1))).collect();
        apply(store, 1, rows);
        let told = wait(store.ledger(JOB, 0, i64::MAX, asked)).unwrap();
        assert_eq!(told.len(), asked, "{on}");
        assert_eq!(told.last().map(|row| row.to_ms), Some(asked as i64), "{on}");
    }

    fn what_a_schedule_fired_and_what_else_ran_stand_in_one_list_and_one_ledger(store: &dyn Views, on: &str) {
        const DAY: i64 = 86_400_000;
        let skipped = |from, to| Row::Ledger(ledger(4, from, to));
        let ended = |id, at| Row::Run(scheduled(4, id, RunState::Success, at).into());
        // Run 20 begins and is fired long before it ends; run 60 is open; 30 and 55 are started by hand; a record too large to share a row.
        let large = RunRecord { reason: Some("why ".repeat(4_000)), ..scheduled(4, 50, RunState::Failed, 5 * DAY + 20) };
        apply(store, 1, vec![Row::Ledger(fired(4, 10, 0, DAY)), skipped(DAY, DAY + 5), ended(10, DAY + 10)]);
        apply(store, 2, vec![Row::Ledger(fired(4, 20, DAY + 5, 2 * DAY)), Row::Run(run(4, 30, RunState::Success, 3 * DAY).into())]);
        apply(store, 3, vec![skipped(2 * DAY, 4 * DAY - 1), Row::Ledger(fired(4, 40, 4 * DAY - 1, 4 * DAY)), ended(40, 4 * DAY + 10)]);
        apply(store, 4, vec![Row::Ledger(fired(4, 50, 4 * DAY, 5 * DAY)), Row::Run(large.clone().into())]);
        apply(store, 5, vec![Row::Run(run(4, 55, RunState::Canceled, 5 * DAY + 30).into()), Row::Ledger(fired(4, 60, 5 * DAY, 6 * DAY))]);
        assert_eq!(job_runs(store), [55, 50, 40, 30, 10], "{on}: 20 has not ended");
        let late = RunRecord { created_ms: 2 * DAY, ..scheduled(4, 20, RunState::Success, 6 * DAY) };
        apply(store, 6, vec![Row::Run(late.clone().into())]);
        assert_eq!(job_runs(store), [55, 50, 40, 30, 20, 10], "{on}");
        assert_eq!(ids(&wait(store.job_runs(JOB, None, 99)).unwrap()), [55, 50, 40, 30, 20, 10], "{on}");
        assert_eq!(wait(store.run(RunId(50))).unwrap(), Some(large.clone()), "{on}");
        assert_eq!(wait(store.run(RunId(20))).unwrap(), Some(late), "{on}");
        assert_eq!(wait(store.run(RunId(60))).unwrap(), None, "{on}");
        assert_eq!(failed_runs(store), [50], "{on}");
        let told = wait(store.ledger(JOB, 0, 6 * DAY, 99)).unwrap();
        let ends = [DAY, DAY + 5, 2 * DAY, 4 * DAY - 1, 4 * DAY, 5 * DAY, 6 * DAY];
        assert_eq!(told.iter().map(|row| row.to_ms).collect::<Vec<_>>(), ends, "{on}");
        assert_eq!(told[2], fired(4, 20, DAY + 5, 2 * DAY), "{on}");
        assert_eq!(wait(store.ledger(JOB, DAY, 4 * DAY, 3)).unwrap(), told[1..4], "{on}: the oldest of both");
        // One that shrinks below the bound, and one that grows beyond it.
        let small = RunRecord { reason: None, generation: 2, ..large.clone() };
        apply(store, 7, vec![Row::Run(small.clone().into())]);
        assert_eq!(wait(store.run(RunId(50))).unwrap(), Some(small), "{on}");
        let again = RunRecord { generation: 3, ..large };
        apply(store, 8, vec![Row::Run(again.clone().into())]);
        assert_eq!(wait(store.run(RunId(50))).unwrap(), Some(again), "{on}");
        assert_eq!(job_runs(store), [55, 50, 40, 30, 20, 10], "{on}");
    }

    fn pages_go_over_runs_that_are_open(store: &dyn Views, on: &str) {
        let fires = (1..=9).map(|n| Row::Ledger(fired(4, n as u64 * 10, (n - 1) * 100, n * 100)));
        apply(store, 1, fires.collect());
        assert_eq!(job_runs(store), [0; 0], "{on}");
        apply(store, 2, [20, 30, 70].map(|id| Row::Run(scheduled(4, id, RunState::Success, 2_000).into())).to_vec());
        assert_eq!(job_runs(store), [70, 30, 20], "{on}");
    }

    fn the_audit_trail_is_listed_newest_first_of_a_tenant_and_of_all(store: &dyn Views, on: &str) {
        const HOUR: i64 = 3_600_000;
        let records = [
            audited(HOUR, 7, Some("finance"), "job.create"),
            audited(HOUR, 8, Some("fin"), "job.create"),
            audited(5 * HOUR, 9, None, "system.pause"),
            AuditRecord { refused: Some("423_JOB_PAUSED".into()), ..audited(5 * HOUR, 10, Some("finance"), "job.trigger") },
            audited(9 * HOUR, 3, Some("finance"), "job.pause"),
            audited(9 * HOUR, 4, Some("finance"), "job.resume"),
        ];
        let rows = records.iter().cloned().map(|record| Row::Audited(record.into()));
        apply(store, 1, rows.collect());
        let finance = || AuditQuery { tenant: Some("finance".to_owned()), ..AuditQuery::all() };
        assert_eq!(audit(store, &finance()), [4, 3, 10, 7], "{on}");
        assert_eq!(audit(store, &AuditQuery::all()), [4, 3, 10, 9, 8, 7], "{on}");
        let of = |query: AuditQuery| audit(store, &query);
        assert_eq!(of(AuditQuery { operation: Some("job.pause".to_owned()), ..finance() }), [3], "{on}");
        assert_eq!(of(AuditQuery { outcome: Some("REFUSED".to_owned()), ..finance() }), [10], "{on}");
        assert_eq!(of(AuditQuery { from_ms: 5 * HOUR, to_ms: 9 * HOUR - 1, ..AuditQuery::all() }), [10, 9], "{on}");
        assert_eq!(of(AuditQuery { job: Some(JobId(5)), ..AuditQuery::all() }), [0; 0], "{on}");
        assert_eq!(of(AuditQuery { tenant: Some("f".to_owned()), ..AuditQuery::all() }), [0; 0], "{on}");
        let whole = wait(store.audit(finance(), None, 9)).unwrap();
        assert_eq!(whole.items[0], records[5], "{on}");
        // A later row of the same time and id has the higher count, and takes the place of the first.
        let counted = AuditRecord { count: 40, ..records[3].clone() };
        apply(store, 2, vec![Row::Audited(counted.clone().into())]);
        apply(store, 2, vec![Row::Audited(counted.clone().into())]);
        assert_eq!(audit(store, &finance()), [4, 3, 10, 7], "{on}");
        assert_eq!(wait(store.audit(finance(), None, 9)).unwrap().items[2], counted, "{on}");
    }

    fn ended_runs_of_all_jobs_are_listed_last_first_where_there_is_a_list(store: &dyn Views, on: &str) {
        let mut all = rows(&five());
        all.push(Row::Run(RunRecord { tenant: "fin".into(), ..run(5, 60, RunState::Success, 2_500) }.into()));
        apply(store, 1, all);
        let read = |query: &EndedQuery| -> Option<Vec<u64>> {
            let (mut all, mut after) = (Vec::new(), None);
            loop {
                let page = wait(store.ended_runs(query.clone(), after, 2)).unwrap()?;
                assert!(page.items.len() <= 2);
                all.extend(ids(&page));
                match page.next {
                    Some(next) => after = Some(next),
                    None => return Some(all),
                }
            }
        };
        let finance = || EndedQuery { tenant: Some("finance".to_owned()), ..EndedQuery::all() };
        let Some(of_finance) = read(&finance()) else { return };
        assert_eq!(of_finance, [50, 40, 30, 20, 10], "{on}");
        let within = EndedQuery { from_ms: 2_000, to_ms: 3_000, ..EndedQuery::all() };
        assert_eq!(read(&within).unwrap(), [30, 60, 20], "{on}");
        let states = EndedQuery { states: vec![RunState::Success, RunState::Timeout], ..finance() };
        assert_eq!(read(&states).unwrap(), [30, 10], "{on}");
        let failed = EndedQuery { states: vec![RunState::Failed, RunState::Timeout], ..EndedQuery::all() };
        assert_eq!(read(&failed).unwrap(), [50, 30, 20], "{on}");
    }

    fn versions_of_a_definition_are_listed_newest_first_and_go_with_the_job(store: &dyn Views, on: &str) {
        let row = |job, version| Row::Defined(defined(job, version).into());
        let versions = |job, before, limit| -> Vec<u64> {
            wait(store.definitions(JobId(job), before, limit)).unwrap().iter().map(|row| row.version).collect()
        };
        apply(store, 1, vec![row(4, 1), row(4, 2), row(4, 3), row(8, 1)]);
        apply(store, 2, vec![row(4, 3)]);
        assert_eq!(versions(4, None, 9), [3, 2, 1], "{on}");
        assert_eq!(versions(4, None, 2), [3, 2], "{on}");
        assert_eq!(versions(4, Some(3), 9), [2, 1], "{on}");
        assert_eq!(versions(12, None, 9), [0; 0], "{on}");
        let whole: DefinitionRow = wait(store.definitions(JobId(4), None, 1)).unwrap().remove(0);
        assert_eq!(whole, defined(4, 3), "{on}");
        // One of another job within the same batch stays.
        apply(store, 3, vec![row(4, 4), row(8, 2), Row::JobDeleted(JobId(4))]);
        assert_eq!((versions(4, None, 9), versions(8, None, 9)), (vec![], vec![2, 1]), "{on}");
    }

    fn of_many_versions_the_newest_stay(store: &dyn Views, on: &str) {
        let last = limits::DEFINITIONS_KEPT + 3;
        for version in 1..=last {
            apply(store, version, vec![Row::Defined(defined(4, version).into())]);
        }
        let kept: Vec<u64> =
            wait(store.definitions(JOB, None, 1_000)).unwrap().iter().map(|row| row.version).collect();
        assert_eq!(kept, (4..=last).rev().collect::<Vec<_>>(), "{on}");
    }

    fn logs_are_read_from_any_byte_and_end_at_their_limit(store: &dyn Views, on: &str) {
        for chunk in [&b"hello "[..], b"", b"wide ", b"world"] {
            wait(store.append_log(RunId(9), 2, chunk.to_vec())).unwrap();
        }
        let read = |attempt, offset, max| wait(store.read_log(RunId(9), attempt, offset, max)).unwrap();
        assert_eq!(read(2, 0, 99), b"hello wide world", "{on}");
        assert_eq!(read(2, 4, 5), b"o wid", "{on}");
        assert_eq!(read(2, 16, 5), b"", "{on}");
        assert_eq!(read(1, 0, 99), b"", "{on}");
        wait(store.append_log(RunId(9), 3, vec![7; limits::LOG_BYTES_PER_ATTEMPT - 1])).unwrap();
        wait(store.append_log(RunId(9), 3, vec![8; 5])).unwrap();
        assert_eq!(read(3, limits::LOG_BYTES_PER_ATTEMPT as u64 - 2, 99), [7, 8], "{on}");
    }

    fn positions_are_kept_by_shard(store: &dyn Views, on: &str) {
        assert_eq!(wait(store.applied(ShardId(1))).unwrap(), 0, "{on}");
        wait(store.apply(batch(at(1, 1), &[(0, 10), (1, 7)], Vec::new()))).unwrap();
        wait(store.apply(batch(at(1, 2), &[(1, 9)], rows(&five())))).unwrap();
        let applied = [0, 1, 2].map(|shard| wait(store.applied(ShardId(shard))).unwrap());
        assert_eq!(applied, [10, 9, 0], "{on}");
    }

    fn rows_that_are_applied_again_change_nothing(store: &dyn Views, on: &str) {
        let again = RunRecord { generation: 2, ..run(4, 20, RunState::Success, 9_000) };
        let mut history = rows(&five());
        history.push(Row::Reopened(reopened(&five()[1]).into()));
        history.push(Row::Run(again.into()));
        history.push(Row::DeadLetterDiscarded(five()[4].clone().into()));
        history.push(Row::Ledger(ledger(4, 0, 9)));
        history.push(Row::JobDeleted(JOB));
        let history: Vec<(u64, Row)> = (1_000..).zip(history).collect();
        let apply = |rows: &[(u64, Row)]| {
            let batch = ViewBatch { rows: rows.to_vec(), applied: vec![(ShardId(0), 10)], position: at(1, 1) };
            wait(store.apply(batch)).unwrap();
        };
        apply(&history);
        let expected = (job_runs(store), failed_runs(store), dead_letters(store));
        assert_eq!(expected, (vec![50, 40, 30, 20, 10], vec![50, 30], vec![]), "{on}");
        for from in 0..history.len() {
            apply(&history[from..]);
            assert_eq!((job_runs(store), failed_runs(store), dead_letters(store)), expected, "{on} {from}");
        }
    }
}

#[test]
fn retention_removes_the_oldest_with_keys_ledger_and_logs() {
    for bench in benches() {
        let store = bench.store();
        let store = store.as_ref();
        let mut all = rows(&five());
        all.extend([(0, 1_500), (1_500, 4_500)].map(|(from, to)| Row::Ledger(ledger(4, from, to))));
        apply(store, 1, all);
        apply(store, 2, vec![Row::Reopened(reopened(&five()[1]).into())]);
        wait(store.append_log(RunId(10), 1, b"output".to_vec())).unwrap();
        wait(store.append_log(RunId(40), 1, b"output".to_vec())).unwrap();
        assert_eq!(wait(store.retain(4_000, 1)).unwrap(), 1, "{}", bench.name);
        assert_eq!(job_runs(store), [50, 40, 30], "{}", bench.name);
        assert_eq!(wait(store.ledger(JOB, 0, 9_000, 9)).unwrap().len(), 2, "{}: more runs to go first", bench.name);
        assert_eq!(wait(store.retain(4_000, 100)).unwrap(), 1, "{}", bench.name);
        assert_eq!(job_runs(store), [50, 40], "{}", bench.name);
        assert_eq!(failed_runs(store), [50], "{}", bench.name);
        assert_eq!(wait(store.run(RunId(10))).unwrap(), None, "{}", bench.name);
        assert_eq!(wait(store.find_key(JOB, "key-10")).unwrap(), None, "{}", bench.name);
        assert!(wait(store.run(RunId(20))).unwrap().is_some(), "{}: it is active", bench.name);
        assert_eq!(wait(store.ledger(JOB, 0, 9_000, 9)).unwrap(), [ledger(4, 1_500, 4_500)], "{}", bench.name);
        assert_eq!(wait(store.read_log(RunId(10), 1, 0, 99)).unwrap(), b"", "{}", bench.name);
        assert_eq!(wait(store.read_log(RunId(40), 1, 0, 99)).unwrap(), b"output", "{}", bench.name);
        assert_eq!(wait(store.retain(4_000, 100)).unwrap(), 0, "{}", bench.name);
    }
}

#[test]
fn runs_of_messages_stay_as_long_as_they_are_to_be_kept() {
    for bench in benches() {
        let store = bench.store();
        let key = |n: u64| format!("\u{1}h{n}/1/0");
        let made = |n: u64| RunRecord { key: Some(key(n)), ..run(4, n, RunState::Success, n as i64 * 1_000) };
        apply(store.as_ref(), 1, rows(&[made(1), run(4, 2, RunState::Success, 2_000), made(3)]));
        store.keep_messages(2_500);
        assert_eq!(wait(store.retain(4_000, 100)).unwrap(), 2, "{}", bench.name);
        assert_eq!(job_runs(store.as_ref()), [3], "{}", bench.name);
        assert_eq!(wait(store.find_key(JOB, &key(3))).unwrap(), Some(RunId(3)), "{}", bench.name);
        store.keep_messages(3_500);
        assert_eq!(wait(store.retain(4_000, 100)).unwrap(), 1, "{}", bench.name);
    }
}

#[test]
fn the_audit_trail_has_a_retention_of_its_own() {
    for bench in benches() {
        let store = bench.store();
        let store = store.as_ref();
        let record =
            |n: u64| audited(n as i64 * 100, n, Some(if n.is_multiple_of(2) { "finance" } else { "fin" }), "job.pause");
        apply(store, 1, (1..=6).map(|n| Row::Audited(record(n).into())).collect());
        let finance = AuditQuery { tenant: Some("finance".to_owned()), ..AuditQuery::all() };
        wait(store.retain(i64::MAX, 99)).unwrap();
        assert_eq!(audit(store, &AuditQuery::all()), [6, 5, 4, 3, 2, 1], "{}: history goes earlier", bench.name);
        assert_eq!(wait(store.retain_audit(500, 3)).unwrap(), 3, "{}", bench.name);
        assert_eq!(audit(store, &AuditQuery::all()), [6, 5, 4], "{}: the oldest first", bench.name);
        wait(store.flush()).unwrap();
        assert_eq!(wait(store.retain_audit(500, 99)).unwrap(), 1, "{}", bench.name);
        assert_eq!(wait(store.retain_audit(500, 99)).unwrap(), 0, "{}", bench.name);
        assert_eq!(audit(store, &AuditQuery::all()), [6, 5], "{}", bench.name);
        assert_eq!(audit(store, &finance), [6], "{}", bench.name);
    }
}

#[test]
fn after_a_restart_only_what_a_flush_covered_counts_as_applied() {
    for mut bench in benches() {
        let store = bench.store();
        wait(store.append(0, 1, b"batch")).unwrap();
        wait(store.append(0, 2, b"batch")).unwrap();
        apply(store.as_ref(), 1, rows(&five()[..2]));
        assert_eq!(wait(store.flush()).unwrap(), at(1, 1), "{}", bench.name);
        apply(store.as_ref(), 2, rows(&five()[2..]));
        assert_eq!(wait(store.applied(ShardId(0))).unwrap(), 20, "{}", bench.name);
        assert_eq!(store.flushed(), at(1, 1), "{}", bench.name);
        drop(store);
        let store = bench.restart();
        assert_eq!(store.flushed(), at(1, 1), "{}", bench.name);
        assert_eq!(wait(store.applied(ShardId(0))).unwrap(), 10, "{}", bench.name);
        assert_eq!(wait(store.applied(ShardId(1))).unwrap(), 0, "{}", bench.name);
        assert!(job_runs(store.as_ref()).ends_with(&[20, 10]), "{}", bench.name);
        apply(store.as_ref(), 2, rows(&five()[2..]));
        assert_eq!(job_runs(store.as_ref()), [50, 40, 30, 20, 10], "{}", bench.name);
        assert_eq!(failed_runs(store.as_ref()), [50, 30, 20], "{}", bench.name);
    }
}
