//! What needs no node.
use crate::program::{campanile, run, run_with_input};
use std::fs;

#[test]
fn the_bare_program_says_what_to_do_next() {
    let out = run(&[]).ok();
    for hint in ["campanile dev", "campanile job list", "campanile --help"] {
        assert!(out.contains(hint), "{out}");
    }
    let help = run(&["--help"]).ok();
    assert!(help.contains("Exit codes:"), "{help}");
    assert!(help.contains("CAMPANILE_API_TOKEN"), "{help}");
    assert!(run(&["--version"]).ok().starts_with("campanile "));
    let slip = run(&["jobs"]).refused(2);
    assert!(slip.contains("'job'"), "{slip}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).ok().contains("campanile"));
    }
}

#[test]
fn cron_next_and_explain() {
    let args =
        ["cron", "next", "30 2 * * *", "--tz", "Europe/Berlin", "--after", "2026-03-28T12:00:00", "--count", "2"];
    let golden =
        "2026-03-29T01:00:00Z  Sun 2026-03-29 03:00:00 +02:00\n2026-03-30T00:30:00Z  Mon 2026-03-30 02:30:00 +02:00\n";
    assert_eq!(run(&args).ok(), golden);
    let skip = run(&[&args[..], &["--gap", "SKIP", "-o", "json"]].concat()).json();
    assert_eq!(skip, serde_json::json!({"next": ["2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]}));
    let yaml = run(&[&args[..], &["-o", "yaml"]].concat()).ok();
    assert_eq!(yaml, "next:\n- 2026-03-29T01:00:00Z\n- 2026-03-30T00:30:00Z\n");
    let explained = run(&["cron", "explain", "0 0 31 * *", "--after", "2026-01-01T00:00:00Z", "--compare"]).ok();
    for part in ["UNIX", "2026-01-31T00:00:00Z", "hazards:", "croner says the same"] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    let refused = run(&["cron", "next", "* * * * 8"]).refused(2);
    assert!(refused.contains("at character 9"), "{refused}");
    let never = run(&["cron", "next", "0 0 30 2 *"]).refused(2);
    assert!(never.contains("400_SCHEDULE_NEVER_FIRES: this never fires: February has no 30th"), "{never}");
    let over = run(&["cron", "next", "0 0 0 1 1 ? 2020"]).refused(2);
    assert!(over.contains("400_SCHEDULE_NEVER_FIRES: this never fires after"), "{over}");
    assert!(run(&["cron", "next", "0 0 * * *", "--tz", "Europe/Berln"]).refused(2).contains("Europe/Berlin"));
    assert!(run(&["cron", "next", "0 0 * * *", "--count", "101"]).refused(2).contains("at most 100"));
}

#[test]
fn cron_lines_in_answers_out() {
    let input = "{\"expr\":\"0 12 * * *\",\"dialect\":\"unix\",\"tz\":\"Africa/Casablanca\",\"after\":\"2023-03-17T01:00:00+01:00\",\"next\":[],\"policy\":false,\"agree\":[\"x\"]}\n{\"expr\":\"x\"}\n";
    let out = run_with_input(&["cron", "next", "--jsonl"], input).ok();
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["next"][2], "2023-03-19T12:00:00Z");
    assert!(lines[1]["error"].is_string());
}

#[test]
fn configuration_is_printed_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("campanile.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, run(&["config", "default"]).ok()).unwrap();
    assert!(run(&["config", "check", path]).ok().ends_with(": ok\n"));
    fs::write(&file, "[http]\nlisten = \"127.0.0.1:7700\"\nopenmetrics = true\n").unwrap();
    let refused = run(&["config", "check", path]).refused(2);
    assert!(refused.contains("line 3: unknown field `openmetrics`"), "{refused}");
    assert!(refused.contains("did you mean `open_metrics`?"), "{refused}");
    assert!(run(&["config", "check", "/nonexistent.toml"]).refused(2).contains("cannot be read"));
}

#[test]
fn credentials_are_made_and_a_server_without_them_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens");
    let path = file.to_str().unwrap();
    let token = run(&["token", "new", "--name", "me", "--role", "operator", "--append", path]).ok();
    assert!(token.starts_with("cmp_"), "{token}");
    let made = run(&["token", "new", "--name", "box", "--role", "executor", "--pools", "a,b", "-o", "json"]).json();
    assert!(made["line"].as_str().unwrap().starts_with("box executor pools=a,b sha256:"), "{made}");
    let lines = fs::read_to_string(&file).unwrap();
    assert!(lines.starts_with("me operator sha256:"), "{lines}");
    assert!(!lines.contains(token.trim()), "{lines}");
    assert!(run(&["token", "new", "--name", "x", "--role", "tenant"]).refused(2).contains("needs tenant="));
    assert!(
        run(&["token", "new", "--name", "x", "--role", "boss"])
            .refused(2)
            .contains("operator, tenant, executor or metrics")
    );
    let key = run(&["secrets", "new-key"]).ok();
    assert!(key.starts_with("key-"), "{key}");
    assert_eq!(key.split(' ').count(), 2, "{key}");

    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    let refused = run(&["server", "--data", data]).refused(2);
    assert!(refused.contains("campanile token new"), "{refused}");
    assert!(refused.contains("campanile dev"), "{refused}");
    let missing = run(&["server", "--data", data, "--token-file", "/nonexistent"]).refused(2);
    assert!(missing.contains("/nonexistent"), "{missing}");
    assert!(run(&["executor"]).refused(4).contains("CAMPANILE_API_TOKEN"));
    // The number of a command's attempt is no credential.
    let inside_a_command = campanile().arg("executor").env("CAMPANILE_TOKEN", "44").output().unwrap();
    assert_eq!(inside_a_command.status.code(), Some(4));
    assert!(run(&["dev", "--http", "0.0.0.0:0"]).refused(2).contains("loopback"));
}

#[test]
fn files_of_a_cluster_are_made_once_and_fit_the_configuration() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    let args = ["cluster", "new-keys", keys.to_str().unwrap(), "--name", "bells"];
    let lines = run(&args).ok();
    for file in ["gossip.keys", "node.pem", "node-key.pem", "ca.pem", "ca-key.pem"] {
        let mode = fs::metadata(keys.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let file = dir.path().join("campanile.toml");
    fs::write(&file, &lines).unwrap();
    run(&["config", "check", file.to_str().unwrap()]).ok();
    let before = fs::read(keys.join("ca.pem")).unwrap();
    assert!(run(&args).refused(2).contains("is there already"));
    assert_eq!(fs::read(keys.join("ca.pem")).unwrap(), before);
    let slip = run(&["cluster", "new-keys", dir.path().join("x").to_str().unwrap(), "--name", "Bells"]).refused(2);
    assert!(slip.contains("cluster.name is empty"), "{slip}");
    assert!(!dir.path().join("x").exists());
}

#[test]
fn a_node_that_is_not_there_is_said_to_be_so() {
    let refused = run(&["--server", "http://127.0.0.1:1", "job", "list"]).refused(7);
    assert!(refused.contains("http://127.0.0.1:1"), "{refused}");
    assert!(refused.contains("is it running?"), "{refused}");
    assert!(run(&["--server", "ftp://127.0.0.1:1", "job", "list"]).refused(2).contains("http:// or https://"));
}

#[test]
fn a_directory_that_is_no_store_is_not_checked() {
    let dir = tempfile::tempdir().unwrap();
    assert!(run(&["store", "check", dir.path().to_str().unwrap()]).refused(2).contains("no store here"));
}

#[test]
fn the_schema_of_a_cluster_is_printed_as_it_is_configured() {
    let refused = run(&["schema", "print"]).refused(2);
    assert!(refused.contains("set [cql] contact_points"), "{refused}");
    let settings =
        [("CONTACT_POINTS", "db1:9042"), ("KEYSPACE", "jobs"), ("DATA_CENTER", "east"), ("REPLICATION", "5")];
    let mut command = campanile();
    command.args(["schema", "print"]);
    for (name, value) in settings {
        command.env(format!("CAMPANILE_CQL__{name}"), value);
    }
    let output = command.output().unwrap();
    let script = String::from_utf8(output.stdout).unwrap();
    for part in [
        "CREATE KEYSPACE IF NOT EXISTS jobs_logs WITH replication = {'class': 'NetworkTopologyStrategy', 'east': 5};",
        "CREATE TABLE IF NOT EXISTS jobs.sessions (",
        "CREATE TABLE IF NOT EXISTS jobs_logs.chunks (",
        "TimeWindowCompactionStrategy",
    ] {
        assert!(script.contains(part), "{part}: {script}");
    }
    assert!(!script.contains("{keyspace}"), "{script}");
    assert!(!script.contains("{history}"), "{script}");
}
