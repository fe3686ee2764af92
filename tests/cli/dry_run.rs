//! `--dry-run` of every command that changes something: what is said, and that nothing is done.

use crate::program::{Dev, eventually};
use serde_json::{Value, json};
use std::fs;

/// Everything that a change could show in.
fn state(dev: &Dev) -> Value {
    let read = |args: &[&str]| dev.run(&[args, &["-o", "json"]].concat()).json();
    let mut node = read(&["system", "info"]);
    json!([
        read(&["job", "list"]),
        read(&["dlq", "list"]),
        read(&["run", "failed"])["items"].as_array().unwrap().len(),
        read(&["tenant", "list"]),
        node["paused"].take(),
    ])
}

#[test]
fn every_change_can_be_tried_without_being_made() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &["--no-demo"]);
    dev.run(&["job", "create", "--name", "report", "--manual", "--max-attempts", "1", "--sh", "exit 3"]).ok();
    let run = dev.run(&["job", "trigger", "report", "-o", "json"]).json()["runId"].to_string();
    assert!(dev.run(&["run", "wait", &run]).refused(8).contains("FAILED"));
    eventually("it is a dead letter", || {
        (dev.run(&["dlq", "list", "-o", "json"]).json()["items"].as_array().unwrap().len() == 1).then_some(())
    });
    let spec = |text: &str| {
        let file = dir.path().join("spec.yaml");
        fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let other = spec("name: report\ntrigger: {type: CRON, expr: '0 5 * * *'}\n");
    let before = state(&dev);
    let would = |args: &[&str], told: &str| {
        let done = dev.run(&[args, &["--dry-run"]].concat());
        assert!(done.err.contains("nothing was changed: a dry run"), "{done:?}");
        let out = done.ok();
        assert!(out.contains(told), "{args:?}: {out}");
        assert_eq!(state(&dev), before, "{args:?}");
    };
    would(&["job", "create", "--name", "new", "--cron", "0 5 * * *"], "CREATE  default/new");
    would(&["job", "replace", "report", "--file", &other], "~ spec.schedule: (none) -> 0 5 * * *");
    would(&["job", "rollback", "report", "--to", "1"], "the definition of version 1: nothing differs");
    would(&["job", "pause", "report"], "would pause job ");
    would(&["job", "resume", "report", "--reason", "x"], "default/report (ENABLED)");
    would(&["job", "delete", "report"], "would delete job ");
    would(&["job", "trigger", "report"], "would run job ");
    would(&["run", "retry", &run], &format!("would retry run {run} of job "));
    would(&["dlq", "redrive", &run], &format!("would redrive run {run} of job "));
    would(&["dlq", "discard", &run], "(FAILED)");
    would(&["tenant", "set", "default", "--max-jobs", "7"], "would set limits of default: maxJobs: 0 -> 7");
    would(&["tenant", "pause", "default"], "would pause the tenant default (not paused)");
    would(&["tenant", "resume", "default"], "would resume the tenant default");
    would(&["system", "pause"], "would stop firing and starting everywhere");
    would(&["system", "resume"], "would undo the system's pause");
    would(&["system", "accept-clock"], "would take the clock as right");

    // What would be refused is refused, by the same code.
    let refused = |args: &[&str], code: i32, told: &str| {
        let why = dev.run(&[args, &["--dry-run"]].concat()).refused(code);
        assert!(why.contains(told), "{args:?}: {why}");
        assert_eq!(state(&dev), before, "{args:?}");
    };
    refused(&["job", "create", "--name", "report", "--manual"], 5, "409_DUPLICATE_NAME");
    refused(&["job", "create", "--name", "x", "--cron", "61 * * * *"], 2, "400_INVALID");
    refused(&["job", "create", &spec("name: x\ntriger: {type: MANUAL}\n")], 2, "did you mean `trigger`?");
    refused(&["job", "replace", "report", "--version", "99", "--file", &other], 5, "409_STALE_VERSION");
    let renamed = spec("name: another\ntrigger: {type: MANUAL}\n");
    refused(&["job", "replace", "report", "--file", &renamed], 2, "cannot be changed");
    refused(&["job", "pause", "nothing"], 3, "404_NOT_FOUND");
    refused(&["run", "cancel", &run], 5, "there is nothing to cancel");
    refused(&["run", "confirm", &run, "rerun"], 5, "does not wait for a confirmation");
    refused(&["dlq", "discard", "4096"], 3, "404_NOT_FOUND");
    refused(&["outbox", "resend", &run], 5, "no message of the run was given up");
    refused(&["outbox", "discard", "4096"], 3, "404_NOT_FOUND");
    dev.run(&["dlq", "discard", &run]).ok();
    assert!(dev.run(&["dlq", "redrive", &run, "--dry-run"]).refused(5).contains("is not a dead letter"));
    dev.run(&["job", "pause", "report"]).ok();
    assert!(dev.run(&["job", "trigger", "report", "--dry-run"]).refused(5).contains("resume it first"));
}

#[test]
fn many_jobs_can_be_tried_and_each_wrong_line_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &["--no-demo", "--no-executor"]);
    let file = dir.path().join("jobs.ndjson");
    let try_out = |text: &str| {
        fs::write(&file, text).unwrap();
        dev.run(&["job", "create", "--bulk", file.to_str().unwrap(), "--dry-run"])
    };
    let job = |n: u32| format!(r#"{{"name":"job-{n}","trigger":{{"type":"MANUAL"}}}}"#) + "\n";
    let fine = try_out(&(0..1_500).map(job).collect::<String>());
    assert!(fine.out.contains("would create 1500 jobs"), "{fine:?}");
    assert_eq!(fine.code, 0, "{fine:?}");
    let wrong = try_out(&(job(1) + "{\n" + &job(2) + r#"{"name":"x","trigger":{"type":"NEVER"}}"#));
    assert!(wrong.out.contains("would create 2 jobs"), "{wrong:?}");
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.err.contains("line 2: "), "{wrong:?}");
    assert!(wrong.err.contains("line 4: trigger"), "{wrong:?}");
    assert!(wrong.err.contains("2 lines would be refused"), "{wrong:?}");
    assert_eq!(dev.run(&["job", "list", "-o", "json"]).json()["items"].as_array().unwrap().len(), 0);
}
