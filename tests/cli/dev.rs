//! A session against `campanile dev`, whose executor runs real commands.
use crate::program::{Dev, Done, campanile, run};
use std::{fs, os::unix::fs::PermissionsExt};

#[test]
fn a_session_from_the_first_job_to_the_store_check() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("dev");
    let dev = Dev::start(&data, &["--no-demo"]);
    let mode = |name: &str| fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("dev.json"), mode("secrets.key")), (0o700, 0o600, 0o600));

    let made = dev
        .run(&[
            "job",
            "create",
            "--name",
            "hello",
            "--manual",
            "--sh",
            "echo \"hello $CAMPANILE_PARAMS\"; echo oops >&2",
            "-o",
            "json",
        ])
        .json();
    assert_eq!(made["name"], "hello");
    let run_view =
        dev.run(&["job", "trigger", "hello", "--params", "{\"n\":1}", "--id", "a1", "--wait", "-o", "json"]).json();
    assert_eq!((&run_view["state"], &run_view["key"]), (&"SUCCESS".into(), &"a1".into()));
    let id = run_view["runId"].to_string();
    let log = dev.run(&["run", "log", &id]).ok();
    assert!(log.contains("hello {\"n\":1}\n"), "{log}");
    assert!(log.contains("oops\n"), "{log}");
    let runs = dev.run(&["job", "runs", "hello"]).ok();
    let mut lines = runs.lines();
    assert!(lines.next().unwrap().starts_with("RUN "), "{runs}");
    assert!(lines.next().unwrap().starts_with(&format!("{id} ")), "{runs}");
    let yaml = dev.run(&["run", "get", &id, "-o", "yaml"]).ok();
    assert!(yaml.contains("state: SUCCESS\n"), "{yaml}");

    dev.run(&["job", "create", "--name", "fails", "--manual", "--max-attempts", "1", "--sh", "echo no; exit 3"]).ok();
    let failed = dev.run(&["job", "trigger", "fails", "--wait", "-o", "json"]);
    assert!(failed.err.contains("ended as FAILED: exit code 3"), "{failed:?}");
    assert_eq!(failed.code, 8);
    let letters = dev.run(&["dlq", "list", "-o", "json"]).json();
    let dead = letters["items"][0]["runId"].to_string();
    assert_eq!(letters["items"][0]["jobName"], "fails");
    assert_eq!(dev.run(&["run", "failed", "-o", "json"]).json()["items"][0]["runId"].to_string(), dead);
    dev.run(&["dlq", "redrive", &dead, "--reason", "again"]).ok();
    dev.run(&["run", "wait", &dead]).refused(8);
    dev.run(&["dlq", "discard", &dead]).ok();
    assert_eq!(dev.run(&["dlq", "list"]).ok().lines().count(), 1);

    // Names, ids and slips.
    let by_id = dev.run(&["job", "get", &made["jobId"].to_string(), "-o", "json"]).json();
    assert_eq!(by_id["name"], "hello");
    assert!(dev.run(&["job", "get", "helo"]).refused(3).contains("404_NOT_FOUND"));
    assert!(dev.run(&["job", "create", "--name", "hello", "--manual"]).refused(5).contains("409_DUPLICATE_NAME"));
    assert!(
        dev.run(&["job", "create", "--name", "x", "--cron", "61 * * * *"]).refused(2).contains("400_INVALID_SCHEDULE")
    );
    let never = dev.run(&["job", "create", "--name", "x", "--cron", "0 0 30 2 *"]).refused(2);
    assert!(never.contains("400_SCHEDULE_NEVER_FIRES"), "{never}");
    assert!(never.contains("February has no 30th"), "{never}");
    assert!(dev.run(&["--token", "wrong", "job", "list"]).refused(4).contains("401_UNAUTHENTICATED"));

    // Files, JSON and YAML.
    let file = dir.path().join("jobs.yaml");
    fs::write(&file, "- name: from/yaml\n  trigger: {type: CRON, expr: '0 2 * * *', timezone: Europe/Berlin}\n- name: second\n  trigger: {type: MANUAL}\n").unwrap();
    let table = dev.run(&["job", "create", file.to_str().unwrap()]).ok();
    assert_eq!(table.lines().count(), 3, "{table}");
    fs::write(&file, "{\"name\": \"from/yaml\", \"trigger\": {\"type\": \"MANUAL\"}, \"priority\": 7}").unwrap();
    let replaced = dev.run(&["job", "replace", "from/yaml", "--file", file.to_str().unwrap(), "-o", "json"]).json();
    assert_eq!((&replaced["priority"], &replaced["version"]), (&7.into(), &2.into()));
    assert!(dev.run(&["job", "pause", "second", "--reason", "test"]).ok().contains("PAUSED"));
    assert!(dev.run(&["job", "trigger", "second"]).refused(5).contains("423_JOB_PAUSED"));
    assert_eq!(
        dev.run(&["job", "list", "--status", "paused", "--all", "-o", "json"]).json()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    dev.run(&["job", "delete", "second"]).ok();

    // Tenants and the system.
    dev.run(&["tenant", "set", "default", "--max-jobs", "50"]).ok();
    dev.run(&["tenant", "set", "default", "--max-queued-runs", "9"]).ok();
    let tenant = dev.run(&["tenant", "get", "default", "-o", "json"]).json();
    assert_eq!((&tenant["quota"]["maxJobs"], &tenant["quota"]["maxQueuedRuns"]), (&50.into(), &9.into()));
    dev.run(&["system", "pause", "--reason", "test"]).ok();
    assert!(dev.run(&["job", "trigger", "hello"]).refused(5).contains("423"));
    dev.run(&["system", "resume"]).ok();
    assert!(dev.run(&["system", "executors"]).ok().contains("READY"));

    // A crontab, twice.
    let crontab = dir.path().join("crontab");
    fs::write(&crontab, "CRON_TZ=UTC\n0 2 * * * /usr/bin/true\n").unwrap();
    let import = ["import", "crontab", crontab.to_str().unwrap(), "--format", "user"];
    assert!(dev.run(&import).ok().starts_with("1 to create"));
    assert!(dev.run(&[&import[..], &["--apply"]].concat()).ok().ends_with("created 1, changed 0\n"));
    let unchanged = "0 to create, 0 to change, 1 unchanged";
    assert!(dev.run(&import).ok().starts_with(unchanged));
    // Deleted by hand, it comes back with the next import, the same as it was.
    let imported = dev.run(&["job", "list", "--text", "cron/", "-o", "json"]).json();
    dev.run(&["job", "delete", &imported["items"][0]["jobId"].to_string()]).ok();
    assert!(dev.run(&[&import[..], &["--apply"]].concat()).ok().ends_with("created 1, changed 0\n"));
    assert!(dev.run(&import).ok().starts_with(unchanged));

    assert_eq!(dev.stop(), 0);
    let checked = run(&["store", "check", data.join("node").to_str().unwrap()]).ok();
    assert!(checked.trim_end().ends_with("whole"), "{checked}");
}

#[test]
fn the_demo_shows_what_happens_and_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data/campanile/dev");
    let mut dev = Dev::start(&data, &[]);
    dev.line(|line| line.contains("Demo jobs: demo/tick"));
    let fire = dev.line(|line| line.contains("demo/tick") && line.contains("SUCCESS"));
    assert_eq!(fire.as_bytes()[2], b':', "{fire}");
    assert!(fire.contains(" run "), "{fire}");
    assert_eq!(dev.run(&["job", "list", "-o", "json"]).json()["items"].as_array().unwrap().len(), 6);
    let token = dev.token.clone();
    assert_eq!(dev.stop(), 0);

    let dev = Dev::start(&data, &[]);
    assert_eq!(dev.token, token, "an earlier shell's token stays good");
    // The other commands find it, and its token, by themselves.
    let found =
        campanile().env("XDG_DATA_HOME", dir.path().join("data")).args(["job", "list", "-o", "json"]).output().unwrap();
    let jobs: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(jobs["items"].as_array().unwrap().len(), 6);
    assert_eq!(dev.stop(), 0);
}

/// What the first terminal suggests is typed into a second one: it asks this node, and names only what is there.
#[test]
fn what_dev_suggests_can_be_typed() {
    for (more, jobs) in [(&[][..], 6), (&["--no-demo"][..], 1)] {
        let dir = tempfile::tempdir().unwrap();
        // Neither the address nor the directory is the usual one.
        let mut dev = Dev::start(&dir.path().join("dev"), more);
        let line = dev.line(|line| line.starts_with("In another terminal: "));
        let typed = line.trim().strip_prefix("In another terminal: ").unwrap();
        assert_eq!(typed.matches("campanile ").count(), 2, "{typed}");
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_campanile"));
        let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
        let mut shell = std::process::Command::new("bash");
        shell.env_clear().env("PATH", path).env("HOME", dir.path()).args(["-euo", "pipefail", "-c", typed]);
        let done = Done::new(&shell.output().unwrap());
        assert_eq!(done.code, 0, "{typed}: {done:?}");
        let there = dev.run(&["job", "list", "-o", "json"]).json()["items"].as_array().unwrap().len();
        assert_eq!(there, jobs, "{typed}");
    }
}

/// What an earlier attempt met stays with that attempt.
#[test]
fn a_run_that_succeeded_shows_no_error_of_an_earlier_attempt() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &["--no-demo"]);
    let mark = dir.path().join("mark");
    let script = format!("test -e {0} || {{ touch {0}; exit 3; }}", mark.display());
    let spec = serde_json::json!({"name": "second", "trigger": {"type": "MANUAL"},
        "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", script]},
        "retryPolicy": {"maxAttempts": 2, "backoff": "FIXED", "baseDelaySec": 0.05, "maxDelaySec": 0.05}});
    assert_eq!(dev.http("POST", "/api/v1/jobs", Some(&spec)).0, 201);
    let view = dev.run(&["job", "trigger", "second", "--wait", "-o", "json"]).json();
    assert_eq!((&view["state"], &view["lastError"]), (&"SUCCESS".into(), &serde_json::Value::Null), "{view}");
    assert_eq!(view["attempts"][0]["errorMessage"], "exit code 3", "{view}");
    let listed = dev.run(&["job", "runs", "second", "-o", "json"]).json();
    assert_eq!(listed["items"][0]["lastError"], serde_json::Value::Null, "{listed}");
}

#[test]
fn an_executor_of_its_own_runs_commands() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("dev");
    let dev = Dev::start(&data, &["--no-demo", "--no-executor"]);
    let executor = ["executor", "--rpc", &dev.rpc, "--pool", "default", "--slots", "2", "--id", "other"];
    let refused = campanile().args(executor).env("CAMPANILE_API_TOKEN", "wrong").output().unwrap();
    assert_eq!(refused.status.code(), Some(4), "{}", String::from_utf8_lossy(&refused.stderr));
    let mut child = campanile().args(executor).env("CAMPANILE_API_TOKEN", &dev.token).spawn().unwrap();
    dev.run(&["job", "create", "--name", "a", "--manual", "--", "/bin/echo", "by hand"]).ok();
    let made = dev.run(&["job", "trigger", "a", "--wait", "-o", "json"]).json();
    assert_eq!((&made["state"], &made["executorId"]), (&"SUCCESS".into(), &"other".into()));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

#[test]
fn it_takes_settings_from_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("dev");
    let dev = Dev::start_with(&data, &["--no-demo"], &[("CAMPANILE_JOURNAL__SEGMENT_MB", "32")]);
    dev.run(&["job", "create", "--name", "a", "--manual", "--", "/bin/true"]).ok();
    let longest =
        fs::read_dir(data.join("node/log")).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).max();
    assert_eq!(longest, Some(32 << 20), "room for a journal file is made with its first event");
    assert_eq!(dev.stop(), 0);
}

/// Whatever the umask of whoever starts it, which commands of jobs get back.
#[test]
fn what_a_node_makes_is_for_its_owner_only() {
    fn open(path: &std::path::Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            if metadata.permissions().mode() & 0o077 != 0 {
                found.push(format!("{} {:o}", entry.path().display(), metadata.permissions().mode()));
            }
            if metadata.is_dir() {
                open(&entry.path(), found);
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("dev");
    let dev = Dev::start(&data, &["--no-demo"]);
    dev.run(&["job", "create", "--name", "mask", "--manual", "--sh", "umask"]).ok();
    let view = dev.run(&["job", "trigger", "mask", "--wait", "-o", "json"]).json();
    let log = dev.run(&["run", "log", &view["runId"].to_string()]).ok();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let own = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap().trim().to_owned();
    assert!(log.contains(&own), "the command has {log}, not {own}");
    let archive = data.join("backup.archive");
    dev.run(&["store", "backup", archive.to_str().unwrap()]).ok();
    let mut found = Vec::new();
    open(&data, &mut found);
    assert_eq!(found, Vec::<String>::new());
    assert!(archive.exists());
}
