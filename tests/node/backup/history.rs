//! Days of history in files: written from a node and from a directory, read without either.

use super::*;
use campanile_ports::{Position, Row};
use campanile_schema::{
    format::{EVENT_FORMAT, FormatRow, WIRE_FORMAT},
    ids::{ClusterId, JobId, RunId, Token},
    payload::Payload,
    record::{AttemptRecord, AttemptState, RunRecord, RunState, Source},
    view::RunView,
};
use campanile_store::archive::ArchiveWriter;
use std::{collections::BTreeMap, fs, path::PathBuf};

const DAY: i64 = 86_400_000;
const HOUR: i64 = 3_600_000;
/// More than two blocks of each day.
const RUNS_A_DAY: u64 = 2_200;

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Noon of a day that was over so many days ago.
fn noon(days_ago: i64) -> i64 {
    now_ms().div_euclid(DAY) * DAY - days_ago * DAY + 12 * HOUR
}

fn day_of(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).unwrap().strftime("%Y-%m-%d").to_string()
}

fn record(run: u64, ended_ms: i64) -> RunRecord {
    let failed = run.is_multiple_of(7);
    let attempt = AttemptRecord {
        attempt: 1,
        generation: 1,
        state: if failed { AttemptState::Failed } else { AttemptState::Success },
        token: Token(run + 1),
        executor: "worker-1".into(),
        started_ms: ended_ms - 900,
        ended_ms: Some(ended_ms),
        error_code: failed.then(|| "EXIT_1".to_owned()),
        error_message: failed.then(|| format!("run {run} ended with 1")),
        cpu_ms: Some(run % 50),
        max_rss_kb: Some(2_048),
        permanent: failed,
    };
    RunRecord {
        run: RunId(run),
        job: JobId(4_096 * (1 + run % 3)),
        tenant: if run.is_multiple_of(5) { "finance" } else { "default" }.into(),
        state: if failed { RunState::Failed } else { RunState::Success },
        source: Source::Manual,
        logical_ms: None,
        key: Some(format!("key-{run}")),
        generation: 1,
        created_ms: ended_ms - 1_000,
        started_ms: Some(ended_ms - 900),
        ended_ms: Some(ended_ms),
        params: Some(Payload(format!("{{\"n\":{run}}}"))),
        result: (!failed).then(|| Payload("{\"ok\":true}".to_owned())),
        reason: Some("a test".to_owned()),
        by: None,
        dead_letter: failed,
        attempts: vec![attempt],
        dag: None,
        depth: 0,
        marked: false,
        failed_hooks: Vec::new(),
        timeout_sec: None,
        graph: None,
        backfill: None,
        budget: None,
        compensated: false,
        priority: None,
        timing: None,
        sealed: None,
    }
}

/// Runs of three days and of today.
fn three_days() -> Vec<RunRecord> {
    let mut records = Vec::new();
    for days_ago in 1..=3 {
        for n in 0..RUNS_A_DAY {
            // Ids do not follow time.
            let id = 16 * (1 + days_ago as u64 * 10_000 + (n * 7_919) % RUNS_A_DAY);
            records.push(record(id, noon(days_ago) + n as i64 * 10));
        }
    }
    records.push(record(16 * 99_999, now_ms() - 1_000));
    records
}

/// What one says of all runs is too much for a table, so every hundredth has a log.
fn log_of(run: &RunRecord) -> Option<String> {
    (run.run.0 / 16 % 100 == 1).then(|| format!("what run {} said\n", run.run.0).repeat(50))
}

/// A stopped node's directory with these runs, as a restore makes it.
fn directory(dir: &Path, cluster: u64, records: &[RunRecord]) -> PathBuf {
    let store = FormatRow {
        event_format: EVENT_FORMAT,
        wire_format: WIRE_FORMAT,
        cluster_id: ClusterId(cluster),
        shards: 16,
        created_ms: 1,
    };
    let mut bytes = Vec::new();
    let (begin, at) = (Position::default(), now_ms());
    let mut writer = ArchiveWriter::begin(&mut bytes, store, at, begin, begin).unwrap();
    for record in records {
        writer.row(Row::Run(record.clone().into())).unwrap();
    }
    for record in records {
        if let Some(log) = log_of(record) {
            writer.log(record.run, 1, log.into_bytes()).unwrap();
        }
    }
    writer.end().unwrap();
    let archive = archive_of(dir);
    fs::write(&archive, bytes).unwrap();
    restore(&archive, dir, &["--since", "now"]).ok();
    dir.join("data/node")
}

fn archived(data: &Path, to: &Path) -> Done {
    run(&["history", "archive", text(to), "--data", text(data), "-o", "json"])
}

fn items(done: Value) -> Vec<Value> {
    done["items"].as_array().unwrap().clone()
}

fn listed(from: &Path, more: &[&str]) -> Vec<Value> {
    items(run(&[&["run", "list", "--archive", text(from), "-o", "json"], more].concat()).json())
}

/// Names and bytes of the files of days.
fn files(of: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    let days = entries.filter(|path| path.extension().is_some_and(|extension| extension == "history"));
    days.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())).collect()
}

/// As `run list` shows them: the last that ended first.
fn views<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Vec<Value> {
    let mut records: Vec<&RunRecord> = records.collect();
    records.sort_by_key(|record| std::cmp::Reverse((record.ended_ms, record.run)));
    records.into_iter().map(|record| serde_json::to_value(RunView::from(record)).unwrap()).collect()
}

#[test]
fn days_of_a_running_node_are_read_without_it_and_archiving_again_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let records = three_days();
    let closed: Vec<&RunRecord> = records.iter().filter(|r| r.ended_ms.unwrap() < noon(0) - 12 * HOUR).collect();
    let data = directory(dir.path(), 77, &records);
    let days = dir.path().join("days");
    let dev = start(dir.path());
    let archive = || dev.run(&["history", "archive", text(&days), "-o", "json"]);
    // Before ten minutes past midnight yesterday is not closed: then the last day waits for the next time.
    let first = items(archive().json());
    assert!(first.len() >= 2, "{first:?}");
    let closed: Vec<&RunRecord> = closed
        .into_iter()
        .filter(|record| first.iter().any(|kept| kept["day"] == day_of(record.ended_ms.unwrap())))
        .collect();
    for kept in &first {
        assert_eq!((&kept["runs"], &kept["known"]), (&json!(RUNS_A_DAY), &json!(0)), "{kept}");
    }
    let some =
        || closed.iter().step_by(97).copied().chain(closed.iter().copied().filter(|r| log_of(r).is_some()).take(3));
    for record in some() {
        let id = record.run.0.to_string();
        let live = dev.run(&["run", "get", &id, "-o", "json"]).json();
        let kept = run(&["run", "get", &id, "--archive", text(&days), "-o", "json"]).json();
        assert_eq!(kept, live);
        let log = run(&["run", "log", &id, "--archive", text(&days)]).ok();
        assert_eq!(log, dev.run(&["run", "log", &id]).ok());
        assert_eq!(log, log_of(record).unwrap_or_default());
    }
    let before = files(&days);
    let again = items(archive().json());
    assert!(again.iter().all(|kept| kept["file"].is_null() && kept["known"] == RUNS_A_DAY), "{again:?}");
    assert_eq!(dev.stop(), 0);
    let of_directory = archived(&data, &days);
    assert!(of_directory.err.contains("0 of"), "it says so: {}", of_directory.err);
    of_directory.ok();
    assert_eq!(files(&days), before);
    // Without a node.
    let all = listed(&days, &["--all"]);
    assert_eq!(all, views(closed.iter().copied()));
    let (mut pages, mut token) = (Vec::new(), None::<String>);
    loop {
        let mut args = vec!["run", "list", "--archive", text(&days), "-o", "json", "--page-size", "1000"];
        args.extend(token.iter().flat_map(|token| ["--page-token", token]));
        let page = run(&args).json();
        pages.extend(items(page.clone()));
        let Some(next) = page["nextPageToken"].as_str() else { break };
        token = Some(next.to_owned());
    }
    assert_eq!(pages, all, "pages have everything once, in the same order");
    let of = |wanted: &dyn Fn(&RunRecord) -> bool| views(closed.iter().copied().filter(|record| wanted(record)));
    assert_eq!(listed(&days, &["--all", "--tenant", "finance"]), of(&|r| r.tenant == "finance"));
    assert_eq!(listed(&days, &["--all", "--state", "failed"]), of(&|r| r.state == RunState::Failed));
    assert_eq!(listed(&days, &["--all", "--job", "8192"]), of(&|r| r.job == JobId(8_192)));
    let (from, to) = (noon(3) + 500, noon(2) + 700);
    let instant = |ms: i64| jiff::Timestamp::from_millisecond(ms).unwrap().to_string();
    let between = of(&|r| (from..=to).contains(&r.ended_ms.unwrap()));
    assert!(!between.is_empty());
    assert_eq!(listed(&days, &["--all", "--from", &instant(from), "--to", &instant(to)]), between);
    let shown = run(&["run", "list", "--archive", text(&days), "--all"]).ok();
    assert_eq!(shown.lines().count(), all.len() + 1, "titles stand once");
    run(&["run", "get", "4096", "--archive", text(&days)]).refused(3);
    let listed = items(run(&["history", "list", text(&days), "-o", "json"]).json());
    assert_eq!(listed.len(), before.len());
    let verified = items(run(&["history", "verify", text(&days), "-o", "json"]).json());
    assert_eq!(verified, listed);
    // A day is no backup.
    let file = days.join(before.keys().next().unwrap());
    assert!(run(&["store", "verify", text(&file)]).refused(2).contains("history verify"));
}

#[test]
fn a_day_that_grew_has_a_further_part_with_what_is_new_and_another_store_is_refused() {
    let (first, second, other) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let days = first.path().join("days");
    let old: Vec<RunRecord> = (1..=100).map(|n| record(16 * n, noon(2) + n as i64)).collect();
    archived(&directory(first.path(), 77, &old), &days).ok();
    let before = files(&days);
    // One more between the others, and a dead letter that was put away.
    let mut new = old.clone();
    new.push(record(16 * 500, noon(2) + 50));
    let discarded = new.iter_mut().find(|record| record.dead_letter).unwrap();
    discarded.dead_letter = false;
    let data = directory(second.path(), 77, &new);
    let kept = items(archived(&data, &days).json());
    assert_eq!((&kept[0]["runs"], &kept[0]["known"]), (&json!(2), &json!(99)), "{kept:?}");
    assert!(kept[0]["file"].as_str().unwrap().ends_with(".2.history"), "{kept:?}");
    let after = files(&days);
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)), "what was whole is as it was");
    assert_eq!(listed(&days, &["--all"]), views(new.iter()));
    assert!(items(archived(&data, &days).json())[0]["file"].is_null());
    assert_eq!(files(&days), after);
    let refused = archived(&directory(other.path(), 78, &old), &days).refused(2);
    assert!(refused.contains("another directory"), "{refused}");
}

#[test]
fn a_damaged_day_is_named_and_the_others_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let records: Vec<RunRecord> = (1..=3)
        .flat_map(|ago| (0..1_500).map(move |n| record(16 * (ago as u64 * 5_000 + n), noon(ago + 1) + n as i64)))
        .collect();
    let data = directory(dir.path(), 77, &records);
    let days = dir.path().join("days");
    archived(&data, &days).ok();
    let damaged = days.join(format!("{}.1.history", day_of(noon(3))));
    let whole = fs::read(&damaged).unwrap();
    let others = views(records.iter().filter(|record| day_of(record.ended_ms.unwrap()) != day_of(noon(3))));
    let mut wrong = Vec::new();
    for n in 0..24 {
        let at = whole.len() * n / 24;
        let mut altered = whole.clone();
        altered[at] ^= 0x10;
        wrong.push((format!("byte {at} altered"), altered));
        wrong.push((format!("cut at {at}"), whole[..at].to_vec()));
    }
    for (what, bytes) in wrong {
        fs::write(&damaged, bytes).unwrap();
        let verified = run(&["history", "verify", text(&days), "-o", "json"]);
        assert_eq!(verified.code, 1, "{what}: {verified:?}");
        let verified = items(serde_json::from_str(&verified.out).unwrap());
        let told: Vec<&str> = verified.iter().filter_map(|file| file["error"].as_str()).collect();
        assert_eq!(told.len(), 1, "{what}: {told:?}");
        assert!(told[0].contains(text(&damaged)), "{what}: {told:?}");
        assert!(told[0].contains("offset"), "{what}: {told:?}");
    }
    // In the middle of its rows: what is around the block is still read.
    let mut altered = whole.clone();
    altered[8 + 16 + 2_000] ^= 0x10;
    for bytes in [altered, whole[..whole.len() / 2].to_vec()] {
        fs::write(&damaged, bytes).unwrap();
        let done = run(&["run", "list", "--archive", text(&days), "--all", "-o", "json"]);
        assert_eq!(done.code, 1, "{}", done.err);
        assert!(done.err.contains(text(&damaged)), "{}", done.err);
        assert!(done.err.contains("offset"), "{}", done.err);
        let shown = items(serde_json::from_str(&done.out).unwrap());
        assert!(shown.len() < records.len());
        assert!(others.iter().all(|view| shown.contains(view)));
        // It is not taken for archived, nor written over; the others are as they were.
        let again = archived(&data, &days);
        assert_eq!(again.code, 1, "{again:?}");
        let again = items(serde_json::from_str(&again.out).unwrap());
        let failed: Vec<&Value> = again.iter().filter(|kept| !kept["error"].is_null()).collect();
        assert_eq!(failed.len(), 1, "{again:?}");
        assert_eq!(failed[0]["day"], day_of(noon(3)), "{again:?}");
        assert!(again.iter().all(|kept| kept["file"].is_null()), "{again:?}");
    }
    // Moved away, it is written again.
    fs::remove_file(&damaged).unwrap();
    archived(&data, &days).ok();
    assert_eq!(listed(&days, &["--all"]), views(records.iter()));
}

#[test]
fn a_process_that_dies_leaves_no_day_that_is_taken_for_whole() {
    let dir = tempfile::tempdir().unwrap();
    let records = three_days();
    let data = directory(dir.path(), 77, &records);
    for (point, whole) in [("history_name=kill:1", 0), ("history_name=kill:2", 1), ("history_day=kill:2", 1)] {
        let days = dir.path().join(point.replace([':', '='], "-"));
        let mut killed = program::campanile();
        killed.args(["history", "archive", text(&days), "--data", text(&data)]);
        let killed = killed.env("CAMPANILE_FAULT", format!("point:{point}")).output().unwrap();
        assert!(!killed.status.success());
        assert_eq!(files(&days).len(), whole, "{point}");
        run(&["history", "verify", text(&days)]).ok();
        assert_eq!(listed(&days, &["--all"]).len(), whole * RUNS_A_DAY as usize, "{point}");
        archived(&data, &days).ok();
        let left: Vec<_> = fs::read_dir(&days).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_str().unwrap().ends_with(".partial")), "{left:?}");
        run(&["history", "verify", text(&days)]).ok();
        assert!(files(&days).len() > whole);
    }
}

/// The node knows the job, and an archive only the run.
fn without_effective_params(mut run: Value) -> Value {
    assert_eq!(run.as_object_mut().unwrap().remove("effectiveParams"), Some(json!({})));
    run
}

#[test]
fn a_run_that_was_started_again_later_is_shown_once_as_it_ended_last() {
    let dir = tempfile::tempdir().unwrap();
    let days = dir.path().join("days");
    let offset = dir.path().join("offset");
    let at = |ms: i64| {
        fs::write(&offset, (ms - now_ms()).to_string()).unwrap();
        let dev = start_with(dir.path(), &[("CAMPANILE_CLOCK_OFFSET_MS", text(&offset))]);
        dev.run(&["system", "accept-clock"]).ok();
        dev
    };
    let archive = |dev: &Dev| items(dev.run(&["history", "archive", text(&days), "-o", "json"]).json());
    let good = dir.path().join("good");
    let dev = at(noon(5));
    let action = json!({"kind": "COMMAND", "command": ["/usr/bin/test", "-e", text(&good)]});
    let job =
        made(&dev, &json!({"name": "again", "trigger": {"type": "MANUAL"}, "action": action, "idempotent": true}));
    dev.run(&["job", "trigger", &job.to_string(), "--wait"]).refused(8);
    let failed = items(dev.run(&["run", "failed", "-o", "json"]).json());
    let id = failed[0]["runId"].to_string();
    assert!(archive(&dev).is_empty(), "its day is not over");
    assert_eq!(dev.stop(), 0);
    let dev = at(noon(4));
    assert_eq!(archive(&dev).len(), 1);
    let first = listed(&days, &[]);
    assert_eq!(first, [without_effective_params(dev.run(&["run", "get", &id, "-o", "json"]).json())]);
    fs::write(&good, "").unwrap();
    dev.run(&["run", "retry", &id]).ok();
    dev.run(&["run", "wait", &id]).ok();
    // It ended on another day, which is not over.
    assert!(archive(&dev).is_empty());
    assert_eq!(listed(&days, &[]), first);
    assert_eq!(dev.stop(), 0);
    let dev = at(noon(3));
    assert_eq!(archive(&dev)[0]["runs"], 1);
    let live = without_effective_params(dev.run(&["run", "get", &id, "-o", "json"]).json());
    assert_eq!((&live["generation"], &live["state"]), (&json!(2), &json!("SUCCESS")));
    assert_eq!(listed(&days, &[]), std::slice::from_ref(&live), "once, as it ended last");
    assert_eq!(run(&["run", "get", &id, "--archive", text(&days), "-o", "json"]).json(), live);
    // Nor as it was before, when only that day is asked for.
    let day = day_of(noon(5));
    assert!(listed(&days, &["--from", &format!("{day}T00:00:00Z"), "--to", &format!("{day}T23:59:59Z")]).is_empty());
    assert_eq!(files(&days).len(), 2);
}
