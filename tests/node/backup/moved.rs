//! A node goes on in another place: nothing that was acknowledged before the backup is lost, and nothing fires silently.

use super::*;
use campanile_client::{Context, Executor, JobError};
use campanile_schema::payload::Payload;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::Semaphore;

#[test]
fn what_was_acknowledged_comes_back_and_every_instant_has_its_outcome() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dev = start(old.path());
    every_second(&dev, "tick", "SKIP");
    made(&dev, &json!({"name": "secretive", "trigger": {"type": "MANUAL"}, "secretParams": {"password": "swordfish"}}));
    dev.run(&["tenant", "set", "finance", "--max-jobs", "7"]).ok();
    let before = eventually("runs", || Some(ended(&dev, "tick")).filter(|runs| runs.len() >= 2));
    let archive = archive_of(old.path());
    let told = backup(&dev, &archive).ok();
    assert!(told.contains("whole"), "{told}");
    // After the cut: not in the archive.
    made(&dev, &json!({"name": "too-late", "trigger": {"type": "MANUAL"}}));
    let log = dev.run(&["run", "log", &before[0]["runId"].to_string()]).ok();
    // So much later that the restored node finds instants that are older than the misfire threshold.
    let cut_ms = dev.ledger("tick").last().unwrap().at_ms;
    eventually("some seconds", || (dev.ledger("tick").last()?.at_ms > cut_ms + 3_000).then_some(()));
    dev.kill();

    let report = run(&["store", "verify", text(&archive), "-o", "json"]).json();
    assert_eq!((&report["jobs"], &report["tenants"]), (&json!(2), &json!(1)), "{report}");
    assert_eq!(report["secretKeys"].as_array().unwrap().len(), 1, "the key is named: {report}");
    let dump = run(&["store", "dump", text(&archive)]).ok();
    assert!(!dump.contains("swordfish"), "{dump}");
    let dump = lines(&dump);
    let names: Vec<&Value> = of_kind(&dump, "job").iter().map(|job| &job["name"]).collect();
    assert!(names.contains(&&json!("tick")), "{names:?}");
    assert!(!names.contains(&&json!("too-late")), "{names:?}");
    assert!(of_kind(&dump, "run").len() >= 2);
    assert!(!of_kind(&dump, "ledger").is_empty());

    let told = restore(&archive, new.path(), &["--since", "backup"]).ok();
    assert!(told.contains("campanile server --data"), "{told}");
    std::fs::copy(old.path().join("data/secrets.key"), new.path().join("data/secrets.key")).unwrap();
    let whole_dir = run(&["store", "check", text(&new.path().join("data/node"))]).ok();
    assert!(whole_dir.contains("whole"), "{whole_dir}");
    let dev = start(new.path());
    for run in &before {
        let id = run["runId"].to_string();
        let back = dev.run(&["run", "get", &id, "-o", "json"]).json();
        assert_eq!((&back["state"], &back["attempts"]), (&run["state"], &run["attempts"]), "history");
    }
    assert_eq!(dev.run(&["run", "log", &before[0]["runId"].to_string()]).ok(), log);
    assert_eq!(dev.run(&["tenant", "get", "finance", "-o", "json"]).json()["quota"]["maxJobs"], 7);
    dev.run(&["job", "get", "too-late"]).refused(3);
    eventually("new runs", || Some(ended(&dev, "tick")).filter(|runs| runs.len() >= before.len() + 2));
    let ledger = dev.ledger("tick");
    whole(&ledger);
    assert!(ledger.iter().any(|line| line.reason == "MISFIRE"), "the time in between: {ledger:?}");
    // It restarts as any other.
    drop(dev);
    let dev = start(new.path());
    whole(&dev.ledger("tick"));
}

#[test]
fn instants_in_between_are_skipped_when_told_so_and_nothing_fires_when_nothing_was_told() {
    let old = tempfile::tempdir().unwrap();
    let dev = start(old.path());
    every_second(&dev, "tick", "FIRE_ALL_MISSED");
    eventually("runs", || Some(ended(&dev, "tick")).filter(|runs| runs.len() >= 2));
    let archive = archive_of(old.path());
    backup(&dev, &archive).ok();
    let cut_ms = dev.ledger("tick").last().unwrap().at_ms;
    eventually("some seconds", || (dev.ledger("tick").last()?.at_ms > cut_ms + 2_000).then_some(()));
    dev.kill();

    let new = tempfile::tempdir().unwrap();
    let told = restore(&archive, new.path(), &["--since", "now"]).ok();
    assert!(told.contains("skipped"), "{told}");
    let dev = start(new.path());
    let ledger = eventually("new fires", || {
        let ledger = dev.ledger("tick");
        ledger.last().filter(|line| line.outcome.starts_with("FIRED") && line.at_ms > cut_ms)?;
        Some(ledger)
    });
    whole(&ledger);
    let skipped: Vec<_> = ledger.iter().filter(|line| line.reason == "RESTORED").collect();
    assert!(skipped.len() >= 2, "{ledger:?}");
    assert!(skipped.iter().all(|line| line.outcome == "SKIPPED"), "{ledger:?}");
    drop(dev);

    let new = tempfile::tempdir().unwrap();
    let told = restore(&archive, new.path(), &[]).ok();
    assert!(told.contains("system resume"), "{told}");
    let dev = start(new.path());
    let paused = |ledger: &[program::Line]| ledger.iter().filter(|line| line.reason == "SYSTEM_PAUSED").count();
    eventually("paused instants", || (paused(&dev.ledger("tick")) >= 3).then_some(()));
    let fired = |ledger: &[program::Line]| ledger.iter().filter(|line| line.outcome.starts_with("FIRED")).count();
    let before = fired(&dev.ledger("tick"));
    dev.run(&["system", "resume"]).ok();
    let ledger = eventually("fires after the resume", || Some(dev.ledger("tick")).filter(|l| fired(l) > before));
    whole(&ledger);
    let last_paused = ledger.iter().rposition(|line| line.reason == "SYSTEM_PAUSED").unwrap();
    let new = ledger.iter().enumerate().filter(|(_, line)| line.at_ms > cut_ms && line.outcome.starts_with("FIRED"));
    assert!(new.map(|(at, _)| at).all(|at| at > last_paused), "it fired before it was told to: {ledger:?}");
}

#[test]
fn what_may_have_run_after_the_backup_waits_for_a_person_unless_it_is_idempotent() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dev = start(old.path());
    let job = |name: &str, idempotent: bool| {
        made(
            &dev,
            &json!({"name": name, "trigger": {"type": "MANUAL"}, "idempotent": idempotent, "executorSelector": "nobody"}),
        )
    };
    let run_of = |job: u64| {
        let (status, run) = dev.http("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&json!({})));
        assert!(status < 300, "{run}");
        run["runId"].as_u64().unwrap()
    };
    let (once, again) = (run_of(job("once", false)), run_of(job("again", true)));
    let archive = archive_of(old.path());
    backup(&dev, &archive).ok();
    dev.kill();
    // Another number of shards besides.
    let told = restore(&archive, new.path(), &["--since", "now", "--shards", "8"]).ok();
    assert!(told.contains("confirm    1 runs"), "{told}");
    let dev = start(new.path());
    let state = |run: u64| dev.run(&["run", "get", &run.to_string(), "-o", "json"]).json();
    assert_eq!(state(once)["state"], "NEEDS_CONFIRMATION", "{}", state(once));
    assert_eq!(state(once)["attempts"][0]["errorCode"], "RESTORED");
    assert_eq!(state(again)["state"], "QUEUED");
    assert_eq!(dev.run(&["system", "info", "-o", "json"]).json()["shards"], 8);
    // Its new ids and tokens lie above all that the old node may have given out.
    let later = made(&dev, &json!({"name": "later", "trigger": {"type": "MANUAL"}}));
    assert!(later / 4096 > 1 << 32, "{later}");
    assert!(state(once)["attempts"][0]["token"].as_u64().unwrap() > 1 << 32);
}

#[test]
fn a_stopped_nodes_directory_is_backed_up_and_shown_without_a_node() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dev = start(old.path());
    every_second(&dev, "tick", "SKIP");
    eventually("runs", || Some(ended(&dev, "tick")).filter(|runs| !runs.is_empty()));
    let data = old.path().join("data/node");
    let archive = archive_of(old.path());
    let refused = run(&["store", "backup", text(&archive), "--data", text(&data)]).refused(2);
    assert!(refused.contains("another process uses this directory"), "{refused}");
    assert_eq!(dev.stop(), 0);
    run(&["store", "backup", text(&archive), "--data", text(&data)]).ok();
    run(&["store", "backup", text(&archive), "--data", text(&data)]).refused(2);
    let (of_archive, of_directory) = (run(&["store", "dump", text(&archive)]), run(&["store", "dump", text(&data)]));
    let things = |done: Done| {
        let lines = lines(&done.ok());
        let mut things: Vec<String> = lines[1..lines.len() - 1].iter().map(Value::to_string).collect();
        things.sort();
        things
    };
    assert_eq!(things(of_archive), things(of_directory));
    restore(&archive, new.path(), &["--since", "now"]).ok();
    let full = restore(&archive, new.path(), &["--since", "now"]).refused(2);
    assert!(full.contains("not empty"), "{full}");
}

#[test]
fn nobody_unknown_is_given_a_backup() {
    let dir = tempfile::tempdir().unwrap();
    let dev = start(dir.path());
    let (archive, wrong) = (archive_of(dir.path()), ["--token", "not-a-token"]);
    let refused = dev.run(&[&["store", "backup", text(&archive)], &wrong[..]].concat()).refused(4);
    assert!(refused.contains("401"), "{refused}");
    assert!(!archive.exists());
    assert!(!dir.path().join("archive.partial").exists());
}

/// The defect that the tests above would find, put in on purpose.
#[test]
fn a_cut_that_lies_before_what_was_acknowledged_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    for (fault, there) in [("mutation:backup_early_cut", false), ("", true)] {
        let dev = start_with(dir.path(), &[("CAMPANILE_FAULT", fault)]);
        let name = format!("job-{there}");
        made(&dev, &json!({"name": name, "trigger": {"type": "MANUAL"}}));
        let archive = dir.path().join(&name);
        backup(&dev, &archive).ok();
        let dump = lines(&run(&["store", "dump", text(&archive)]).ok());
        assert_eq!(of_kind(&dump, "job").iter().any(|job| job["name"] == *name), there, "{fault}");
    }
}

/// The body ended after the backup, so its executor does not hold the attempt that the restored node remembers. The node remembers it only
/// after the executor has announced what it holds: each shard is loaded by itself.
#[test]
fn an_attempt_that_ended_after_the_backup_is_lost_however_late_the_node_remembers_it() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let alone = ["--no-demo", "--no-executor"];
    let dev = Dev::start(&old.path().join("data"), &alone);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (starts, gate) = (Arc::new(AtomicU32::new(0)), Arc::new(Semaphore::new(0)));
    let of_body = (starts.clone(), gate.clone());
    let executor = runtime.block_on(async {
        let building = Executor::builder(&dev.rpc, &dev.token).id("outlives").pool("default").slots(2);
        let building = building.any_handler(move |_: Context, _: Payload| {
            let (starts, gate) = of_body.clone();
            async move {
                starts.fetch_add(1, Ordering::SeqCst);
                gate.acquire().await.map_err(|_| JobError::new("CLOSED", "the test is over"))?.forget();
                Ok::<_, JobError>(None)
            }
        });
        building.build().unwrap().start()
    });
    let job = made(&dev, &json!({"name": "long", "trigger": {"type": "MANUAL"}}));
    let (status, run) = dev.http("POST", &format!("/api/v1/jobs/{job}/trigger"), Some(&json!({})));
    assert!(status < 300, "{run}");
    let run = format!("/api/v1/runs/{}", run["runId"]);
    let state = |dev: &Dev, state: &str| {
        eventually(state, || Some(dev.http("GET", &run, None).1).filter(|run| run["state"] == state))
    };
    state(&dev, "RUNNING");
    eventually("the body", || (starts.load(Ordering::SeqCst) == 1).then_some(()));
    let archive = archive_of(old.path());
    backup(&dev, &archive).ok();
    gate.add_permits(1);
    state(&dev, "SUCCESS");
    // Until it has heard that its result is kept it holds the attempt.
    runtime.block_on(executor.wait_until(|status| (status.running, status.unacknowledged) == (0, 0))).unwrap();
    let rpc = dev.rpc.clone();
    dev.kill();
    restore(&archive, new.path(), &["--since", "now"]).ok();
    for kept in ["secrets.key", "dev.json"] {
        std::fs::copy(old.path().join("data").join(kept), new.path().join("data").join(kept)).unwrap();
    }
    let late = [("CAMPANILE_FAULT", "mutation:late_attempts")];
    let dev = Dev::start_at_rpc(&new.path().join("data"), &rpc, &alone, &late);
    // The second attempt may end.
    gate.add_permits(1);
    let run = state(&dev, "SUCCESS");
    assert_eq!(run["attempts"][0]["state"], "LOST", "{run}");
    assert_eq!((run["attempts"][1]["state"].as_str(), starts.load(Ordering::SeqCst)), (Some("SUCCESS"), 2), "{run}");
}
