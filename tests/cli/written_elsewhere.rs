//! Files as editors of Windows write them, with a byte order mark and with comments in an older encoding, at every place
//! where the command line or a node reads a person's file.
use crate::program::{Dev, Done, campanile, eventually, run};
use serde_json::Value;
use std::{fs, io::Write, path::Path, process::Stdio};

const MARK: &str = "\u{feff}";
const YAML: &[u8] = b"\xef\xbb\xbf# caf\xe9\r\napiVersion: campanile/v1\r\nkind: Job\r\nmetadata: {name: \"yaml\"} # \xfc\r\nspec:\r\n  every: 1h\r\n";
const JSON: &str =
    r#"{"apiVersion": "campanile/v1", "kind": "Job", "metadata": {"name": "json"}, "spec": {"every": "1h"}}"#;
const CRONTAB: &[u8] = b"\xef\xbb\xbf# t\xe2ches\r\nAPP-ENV=prod\r\n0 5 * * * echo crontab\r\n";

fn names(dev: &Dev) -> Vec<String> {
    let list = dev.run(&["job", "list", "--all", "-o", "json"]).json();
    let mut names: Vec<String> =
        list["items"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// A file in `dir`, and its path for an argument.
fn write(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// With bytes on stdin.
fn fed(dev: &Dev, args: &[&str], input: &[u8]) -> String {
    let mut child = campanile()
        .args(args)
        .args(["--server", &dev.server, "--token", &dev.token])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    Done::new(&child.wait_with_output().unwrap()).ok()
}

#[test]
fn every_command_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let dev = Dev::start(&dir.join("data"), &["--no-demo", "--no-executor"]);
    let spec = |name: &str| format!("{MARK}{{\"name\": \"{name}\", \"trigger\": {{\"type\": \"MANUAL\"}}}}\r\n");

    dev.run(&["apply", "-f", &write(dir, "a.yaml", YAML)]).ok();
    dev.run(&["apply", "-f", &write(dir, "a.json", format!("{MARK}{JSON}"))]).ok();
    assert_eq!(fed(&dev, &["apply", "-f", "-"], YAML), "0 to create, 0 to change, 1 unchanged, 0 to delete\n");
    dev.run(&["import", "crontab", "--format", "user", "--apply", &write(dir, "tab", CRONTAB)]).ok();
    dev.run(&["job", "create", &write(dir, "spec.json", spec("created"))]).ok();
    fed(&dev, &["job", "create", "-"], spec("piped").as_bytes());
    dev.run(&["job", "create", "--bulk", &write(dir, "lines", spec("bulk"))]).ok();
    fed(&dev, &["job", "create", "--bulk", "-"], spec("bulk-piped").as_bytes());
    dev.run(&["job", "replace", "created", "--file", &write(dir, "new.json", spec("created"))]).ok();
    // The editor leaves the text as it is.
    let mut edit = campanile();
    edit.args(["job", "edit", "yaml", "--file", &write(dir, "edit.yaml", YAML), "--token", &dev.token]);
    edit.args(["--server", &dev.server]).env("EDITOR", "true").env("TMPDIR", dir).stdin(Stdio::null());
    Done::new(&edit.output().unwrap()).ok();
    let body = format!("@{}", write(dir, "body.json", format!("{MARK}{{\"n\": 1}}")));
    dev.run(&[
        "job",
        "create",
        "--name",
        "http",
        "--manual",
        "--http",
        "POST",
        "https://example.org/",
        "--body",
        &body,
    ])
    .ok();
    let http = dev.run(&["job", "get", "http", "-o", "json"]).json();
    assert_eq!(http["action"]["body"], serde_json::json!({"n": 1}));

    let made = names(&dev);
    for name in ["bulk", "bulk-piped", "created", "http", "json", "piped", "yaml"] {
        assert!(made.iter().any(|made| made == name), "{name} is missing in {made:?}");
    }
    let of_crontab: Vec<&String> = made.iter().filter(|name| name.contains("tab")).collect();
    let job: Value = dev.run(&["job", "get", of_crontab[0], "-o", "json"]).json();
    assert_eq!(job["action"]["env"]["APP-ENV"], "prod", "{job}");
}

#[test]
fn tokens_schedules_and_settings_are_read_from_them() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let dev = Dev::start(&dir.join("data"), &["--no-demo", "--no-executor"]);
    let token = write(dir, "token", format!("{MARK}{}\r\n", dev.token));
    run(&["job", "list", "--server", &dev.server, "--token-file", &token]).ok();
    let lines = fed(&dev, &["cron", "next", "--jsonl"], format!("{MARK}{{\"expr\": \"0 5 * * *\"}}\r\n").as_bytes());
    assert!(lines.starts_with("{\"next\":"), "{lines}");
    let config = write(dir, "node.toml", b"\xef\xbb\xbf# caf\xe9\r\n[http]\r\nlisten = \"127.0.0.1:0\" # \xfc\r\n");
    run(&["config", "check", &config]).ok();

    let tokens = write(dir, "tokens", b"\xef\xbb\xbf# t\xe2ches\r\n");
    for name in ["first", "second"] {
        run(&["token", "new", "--name", name, "--role", "operator", "--append", &tokens]).ok();
    }
    let read = campanile_security::auth::Authenticator::from_file(Path::new(&tokens));
    assert!(read.is_ok(), "{:?}", read.err());
}

#[test]
fn a_directory_of_files_is_read_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = dir.path().join("jobs");
    fs::create_dir(&jobs).unwrap();
    write(&jobs, "a.yaml", YAML);
    write(&jobs, "b.json", format!("{MARK}{JSON}"));
    write(&jobs, "night.cron", CRONTAB);
    let environment = [("CAMPANILE_FILES__DIR", jobs.to_str().unwrap()), ("CAMPANILE_FILES__SCAN_MS", "100")];
    let dev = Dev::start_with(&dir.path().join("data"), &["--no-demo", "--no-executor"], &environment);
    eventually("three jobs are made", || (names(&dev).len() == 3).then_some(()));
    let info = dev.run(&["system", "info", "-o", "json"]).json();
    assert_eq!(info["files"]["broken"].as_object().map(serde_json::Map::len).unwrap_or_default(), 0, "{info}");
}

/// What is over blocks nothing, whichever way it comes: the node makes it without a next fire.
#[test]
fn a_schedule_that_is_over_in_a_directory_blocks_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = dir.path().join("jobs");
    fs::create_dir(&jobs).unwrap();
    let job = |name: &str, when: &str| {
        format!(
            "apiVersion: campanile/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec: {{{when}, command: [/bin/true]}}\n"
        )
    };
    write(&jobs, "a.yaml", job("once", "at: 2020-01-01T00:00:00Z") + "---\n" + &job("good", "every: 1h"));
    write(&jobs, "never.cron", "0 0 31 2 * echo never\n0 5 * * * echo good\n");
    let environment = [("CAMPANILE_FILES__DIR", jobs.to_str().unwrap()), ("CAMPANILE_FILES__SCAN_MS", "100")];
    let dev = Dev::start_with(&dir.path().join("data"), &["--no-demo", "--no-executor"], &environment);
    eventually("four jobs are made", || (names(&dev).len() == 4).then_some(()));
    let once = dev.run(&["job", "get", "once", "-o", "json"]).json();
    assert_eq!((&once["trigger"]["type"], &once["nextFireAt"]), (&"MANUAL".into(), &Value::Null));
}

/// What one node exports another one takes, also when an instant has passed since.
#[test]
fn what_was_exported_is_applied_elsewhere_after_its_instant() {
    let dir = tempfile::tempdir().unwrap();
    let here = Dev::start(&dir.path().join("here"), &["--no-demo"]);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(1);
    here.run(&["job", "create", "--name", "once", "--at", &soon.to_string(), "--sh", "true"]).ok();
    here.run(&["job", "create", "--name", "good", "--cron", "0 5 * * *", "--sh", "true"]).ok();
    eventually("its instant has passed", || {
        let runs = here.run(&["job", "runs", "once", "-o", "json"]).json();
        (runs["items"][0]["state"] == "SUCCESS").then_some(())
    });
    let exported = write(dir.path(), "exported.yaml", here.run(&["export"]).ok());

    // Where it comes from nothing is to be done.
    let same = here.run(&["apply", "-f", &exported]).ok();
    assert_eq!(same, "0 to create, 0 to change, 2 unchanged, 0 to delete\n");
    // Days later: a few seconds after its instant it would still be late there, not over.
    let instant = here.run(&["job", "get", "once", "-o", "json"]).json()["trigger"]["at"].as_str().unwrap().to_owned();
    let text = fs::read_to_string(&exported).unwrap();
    assert!(text.contains(&instant), "{instant} is not in {text}");
    fs::write(&exported, text.replace(&instant, "2026-01-01T00:00:00.000Z")).unwrap();
    let there = Dev::start(&dir.path().join("there"), &["--no-demo", "--no-executor"]);
    let done = there.run(&["apply", "-f", &exported]).ok();
    assert!(done.contains("lies in the past: the job is MANUAL and has no next fire"), "{done}");
    assert!(done.ends_with("created 2, changed 0, unchanged 0, deleted 0\n"), "{done}");
    assert_eq!(names(&there), ["good", "once"]);
}
