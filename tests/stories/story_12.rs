//! Story 12: a job has a secret param. Its body gets the value, and nobody else sees it: no interface, no log, no record, no backup, no
//! file of the store.

use super::Story;
use serde_json::json;
use std::{
    path::Path,
    process::{Command, Stdio},
};

const SECRET: &str = "correct-horse-battery-staple";

/// Files below a directory that have the secret in them, as they lie there.
fn found_in(dir: &Path) -> String {
    let found = Command::new("grep").args(["-rlaF", SECRET]).arg(dir).stderr(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&found.stdout).into_owned()
}

pub fn story_12_a_secret_param_is_masked_everywhere(story: &Story) {
    // The body proves that it has the value, then a careless line writes it into the log, and the attempt fails.
    let shell = format!(
        "printf %s \"$CAMPANILE_SECRET_password\" | sha256sum > {}; echo \"login with $CAMPANILE_SECRET_password\"; \
         echo \"refused: $CAMPANILE_SECRET_password\" >&2; exit 3",
        story.path("sum")
    );
    let spec = json!({
        "secretParams": {"password": SECRET}, "params": {"user": "report"}, "retryPolicy": {"maxAttempts": 1},
        "action": story.body("report", &shell),
    });
    let job = story.job("report", &spec);
    let _executor = story.executor("one", 1);
    let run = story.trigger(job);
    let failed = story.until(run, "FAILED");
    let sum = Command::new("sh").args(["-c", &format!("printf %s {SECRET} | sha256sum")]).output().unwrap();
    assert_eq!(story.lines("sum"), [String::from_utf8(sum.stdout).unwrap().trim_end()], "the body has the value");

    // What shows it at all, shows a mask.
    let log = story.place.run(&["run", "log", &run.to_string()]).ok();
    assert!(log.contains("login with ***") && log.contains("refused: ***"), "{log}");
    let shown = story.get(&format!("/api/v1/jobs/{job}"));
    assert_eq!(shown["secretParams"], json!({"password": "***"}), "{shown}");
    assert_eq!(failed["secretParams"], json!({"password": "***"}), "{failed}");

    // A change that sends the mask back keeps the value.
    let mut edited = shown.clone();
    edited["params"] = json!({"user": "auditor"});
    story.done("PUT", &format!("/api/v1/jobs/{job}"), Some(&edited));
    let again = story.trigger(job);
    story.until(again, "FAILED");
    assert_eq!(story.lines("sum").len(), 1);
    assert_eq!(story.lines("began").len(), 2);

    let (job_id, run_id) = (job.to_string(), run.to_string());
    let tenant = story.name.as_str();
    let audit = format!("/api/v1/audit?tenantId={tenant}");
    let paths = [
        &format!("/api/v1/jobs/{job}"),
        &format!("/api/v1/jobs?tenantId={tenant}"),
        &format!("/api/v1/jobs/{job}/versions"),
        &format!("/api/v1/jobs/{job}/runs"),
        &format!("/api/v1/jobs/{job}/explain"),
        &format!("/api/v1/runs/{run}"),
        &format!("/api/v1/runs/{run}/log"),
        &format!("/api/v1/runs/{run}/explain"),
        &audit,
    ];
    for path in paths {
        let answer = story.get(path).to_string();
        assert!(!answer.contains(SECRET), "{path}: {answer}");
    }
    let commands: [&[&str]; 10] = [
        &["job", "get", &job_id],
        &["job", "get", &job_id, "-o", "yaml"],
        &["job", "get", &job_id, "--manifest"],
        &["job", "versions", &job_id],
        &["run", "get", &run_id],
        &["run", "list", "--tenant", tenant],
        &["dlq", "list", "--tenant", tenant, "-o", "json"],
        &["dlq", "causes", "--tenant", tenant],
        &["audit", "export", "--tenant", tenant],
        &["export", "--tenant", tenant],
    ];
    for command in commands {
        let done = story.place.run(command);
        assert_eq!(done.code, 0, "{command:?}: {done:?}");
        assert!(!done.out.contains(SECRET) && !done.err.contains(SECRET), "{command:?}: {done:?}");
    }

    // A backup, which a cluster leaves to its store, and all files: of the store, and logs of nodes and executors.
    if !story.place.is_cluster() {
        let archive = story.path("backup.archive");
        story.place.run(&["store", "backup", &archive]).ok();
        let dump = story.place.run(&["store", "dump", &archive]).ok();
        assert!(dump.contains("\"***\"") && dump.contains("password"), "{dump}");
        assert!(!dump.contains(SECRET), "{dump}");
        assert_eq!(found_in(story.dir.path()), "");
    }
    assert_eq!(found_in(story.place.home()), "");
}
