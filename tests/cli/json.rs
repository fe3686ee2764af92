//! `-o json` over all commands: each gives JSON and nothing else on stdout, or says that it has no answer to give.
use crate::program::{Dev, Done, campanile, run};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path};

/// Commands that go on or print for a shell: they refuse it.
const WITHOUT_ANSWER: [&str; 6] = ["dev", "server", "executor", "bench", "man", "completions"];
/// Commands that need what is not here, a CQL store; they give their answers by the same means as the others.
const NOT_RUN: [&str; 3] = ["schema apply", "schema check", "store migrate"];

/// The commands without commands of their own, as the help lists them.
fn leaves(path: &[&str], found: &mut BTreeSet<String>) {
    let help = run(&[path, &["--help"]].concat()).ok();
    let listed: Vec<&str> = help
        .split_once("\nCommands:\n")
        .map(|(_, rest)| rest.lines().take_while(|line| !line.is_empty()))
        .into_iter()
        .flatten()
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split(' ').next())
        .collect();
    if listed.is_empty() {
        found.insert(path.join(" "));
    }
    for name in listed {
        leaves(&[path, &[name]].concat(), found);
    }
}

/// The values of a stream of JSON; a failure when there is anything else.
fn values(command: &str, done: &Done) -> Vec<Value> {
    let read: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&done.out).into_iter().collect();
    let values = read.unwrap_or_else(|error| panic!("{command}: {error}: {done:?}"));
    assert!(!values.is_empty(), "{command}: no answer: {done:?}");
    values
}

struct JsonCommands<'a> {
    dev: &'a Dev,
    seen: BTreeSet<String>,
}

impl JsonCommands<'_> {
    /// Runs `command` with `-o json`; ends with one of `codes`.
    fn ends(&mut self, command: &str, args: &[&str], codes: &[i32]) -> Value {
        let words: Vec<&str> = command.split(' ').collect();
        let done = self.dev.run(&[&words[..], args, &["-o", "json"]].concat());
        assert!(codes.contains(&done.code), "{command}: {done:?}");
        self.seen.insert(command.to_owned());
        values(command, &done).swap_remove(0)
    }
    fn ok(&mut self, command: &str, args: &[&str]) -> Value {
        self.ends(command, args, &[0])
    }
}

fn job(dir: &Path, name: &str, command: &str) -> String {
    let file = dir.join(format!("{name}.json"));
    let spec = json!({
        "name": name, "trigger": {"type": "MANUAL"}, "retryPolicy": {"maxAttempts": 1}, "idempotent": true,
        "action": {"kind": "COMMAND", "command": ["/bin/sh", "-c", command]},
    });
    fs::write(&file, spec.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

fn calendars(asked: &mut JsonCommands<'_>, dir: &Path) {
    let file = dir.join("days.json");
    std::fs::write(&file, json!({"exclude": {"weekly": ["SAT", "SUN"]}}).to_string()).unwrap();
    let set = ["other", "days", "--file", file.to_str().unwrap()];
    assert!(asked.ok("calendar set", &[&set[..], &["--dry-run"]].concat())["days"].is_array());
    assert_eq!(asked.ok("calendar set", &set)["version"], 1);
    asked.ok("calendar list", &["other"]);
    asked.ok("calendar get", &["other", "days"]);
    assert_eq!(asked.ok("calendar preview", &["other", "days", "--days", "7"])["days"].as_array().unwrap().len(), 5);
    assert!(asked.ok("calendar delete", &["other", "days", "--dry-run"])["would"].is_string());
    assert_eq!(asked.ok("calendar delete", &["other", "days"])["done"], "delete");
}

fn bulk(asked: &mut JsonCommands<'_>) {
    const NONE: [&str; 3] = ["--text", "no such job", "--yes"];
    for command in ["bulk resume", "bulk trigger"] {
        assert_eq!(asked.ok(command, &NONE)["matched"], 0, "{command}");
    }
    for command in ["bulk cancel", "bulk retry", "bulk redrive"] {
        assert!(asked.ok(command, &["--tenant", "default", "--all", "--dry-run"])["matched"].is_u64(), "{command}");
    }
    let id = asked.ok("bulk pause", &[&NONE[..], &["--wait"]].concat())["bulkId"].to_string();
    asked.ok("bulk list", &[]);
    assert_eq!(asked.ok("bulk get", &[&id])["state"], "DONE");
    assert!(asked.ok("bulk undo", &[&id, "--dry-run"])["would"].is_string());
    asked.ok("bulk undo", &[&id]);
    let later = asked.ok("bulk delete", &["--text", "unfit", "--grace", "1h", "--yes"])["bulkId"].to_string();
    assert!(asked.ok("bulk abort", &[&later, "--dry-run"])["would"].is_string());
    asked.ok("bulk abort", &[&later]);
}

/// Of a job whose runs wait, because its pool has no executor.
fn backfills(asked: &mut JsonCommands<'_>, dir: &Path) {
    let hourly = dir.join("hourly.json");
    let spec = json!({
        "name": "hourly", "executorSelector": "nowhere", "trigger": {"type": "CRON", "expr": "0 * * * *"},
        "action": {"kind": "COMMAND", "command": ["true"]},
    });
    fs::write(&hourly, spec.to_string()).unwrap();
    asked.ok("job create", &[hourly.to_str().unwrap()]);
    let stretch = ["hourly", "--from", "2026-02-01T00:00:00Z", "--to", "2026-02-01T03:00:00Z"];
    let dry = [&stretch[..], &["--dry-run"]].concat();
    assert_eq!(asked.ok("backfill create", &dry)["toRun"], 4);
    let id = asked.ok("backfill create", &stretch)["backfillId"].to_string();
    assert_eq!(asked.ok("backfill of", &["hourly"])["backfillId"].to_string(), id);
    assert_eq!(asked.ok("backfill pause", &[&id])["state"], "PAUSED");
    assert_eq!(asked.ok("backfill resume", &[&id])["state"], "RUNNING");
    asked.ok("backfill cancel", &[&id]);
    assert_eq!(asked.ok("backfill get", &[&id])["mode"], "MISSING");
    assert!(asked.ok("backfill replay", &dry)["toRun"].is_u64());
}

#[test]
fn every_command_gives_json_or_says_that_it_cannot() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let data = path("data");
    let dev = Dev::start(Path::new(&data), &["--no-demo"]);
    let mut asked = JsonCommands { dev: &dev, seen: BTreeSet::new() };

    let fails = job(dir, "fails", "exit 3");
    assert_eq!(asked.ok("job create", &[&fails, "--dry-run"])["create"], 1);
    asked.ok("job create", &[&fails]);
    asked.ok("job create", &[&job(dir, "waits", "sleep 100")]);
    asked.ok("job get", &["fails"]);
    asked.ok("job list", &[]);
    asked.ok("job replace", &["fails", "--file", &fails]);
    let edited = campanile()
        .env("CAMPANILE_SERVER", &dev.server)
        .env("EDITOR", "true")
        .args(["job", "edit", "fails", "-o", "json"])
        .output()
        .unwrap();
    assert_eq!(values("job edit", &Done::new(&edited)), [json!({"changed": false})]);
    asked.seen.insert("job edit".to_owned());
    assert!(asked.ok("job pause", &["fails", "--dry-run"])["would"].is_string());
    asked.ok("job pause", &["fails"]);
    asked.ok("job resume", &["fails"]);
    let failed = asked.ends("job trigger", &["fails", "--wait"], &[8])["runId"].to_string();
    asked.ok("job runs", &["fails"]);
    asked.ok("job ledger", &["fails"]);
    asked.ok("run get", &[&failed]);
    asked.ends("run wait", &[&failed], &[8]);
    asked.ok("run log", &[&failed]);
    asked.ok("run failed", &[]);
    asked.ok("run list", &[]);
    asked.ok("run explain", &[&failed]);
    asked.ok("job explain", &["fails"]);
    asked.ok("job statistics", &["fails"]);
    asked.ok("job load", &[]);
    asked.ok("job versions", &["fails"]);
    assert!(asked.ok("job rollback", &["fails", "--to", "1", "--dry-run"])["would"].is_string());
    asked.ok("job rollback", &["fails", "--to", "1"]);
    asked.ok("dlq causes", &[]);
    asked.ok("dlq list", &[]);
    assert_eq!(asked.ok("dlq redrive", &[&failed, "--dry-run"])["items"][0]["dryRun"], true);
    asked.ok("dlq redrive", &[&failed]);
    asked.ends("run wait", &[&failed], &[8]);
    assert_eq!(asked.ok("dlq discard", &[&failed])["items"][0]["done"], "discard");
    assert!(asked.ends("dlq discard", &[&failed], &[5])["items"][0]["error"].is_string());
    // Its hook is refused: there is no job of that name.
    let hooked = job(dir, "hooked", "exit 3");
    let hook = "\"hooks\":{\"onFailure\":[{\"job\":\"nobody\"}]},\"idempotent\"";
    fs::write(&hooked, fs::read_to_string(&hooked).unwrap().replace("\"idempotent\"", hook)).unwrap();
    asked.ok("job create", &[&hooked]);
    let hooked = asked.ends("job trigger", &["hooked", "--wait"], &[8])["runId"].to_string();
    crate::program::eventually("the hook is refused", || {
        (asked.ok("outbox list", &[])["items"][0]["state"] == "REFUSED").then_some(())
    });
    assert_eq!(asked.ok("outbox discard", &[&hooked, "--dry-run"])["items"][0]["dryRun"], true);
    assert!(asked.ends("outbox resend", &[&hooked], &[5])["items"][0]["error"].is_string());
    assert_eq!(asked.ok("outbox discard", &[&hooked])["items"][0]["done"], "discard");
    asked.ok("run retry", &[&failed]);
    let waits = asked.ok("job trigger", &["waits"])["runId"].to_string();
    assert!(asked.ok("run cancel", &[&waits, "--dry-run"])["would"].is_string());
    asked.ok("run cancel", &[&waits]);
    let unfit = job(dir, "unfit", "true");
    let of_nobody = fs::read_to_string(&unfit).unwrap().replacen('{', "{\"executorSelector\":\"nobody\",", 1);
    fs::write(&unfit, of_nobody).unwrap();
    asked.ok("job create", &[&unfit]);
    let unfit = asked.ok("job trigger", &["unfit"])["runId"].to_string();
    assert!(asked.ok("run priority", &[&unfit, "900", "--dry-run"])["would"].is_string());
    assert_eq!(asked.ok("run priority", &[&unfit, "900"])["priority"], 900);
    asked.ok("run cancel", &[&unfit]);
    // A run that waits for a person.
    let unsure = job(dir, "unsure", "exit 1");
    fs::write(&unsure, fs::read_to_string(&unsure).unwrap().replace("\"idempotent\":true", "\"idempotent\":false"))
        .unwrap();
    asked.ok("job create", &[&unsure]);
    let unsure = asked.ok("job trigger", &["unsure"])["runId"].to_string();
    let state = crate::program::eventually("it waits for a person or has ended", || {
        let state = dev.run(&["run", "get", &unsure, "-o", "json"]).json()["state"].as_str()?.to_owned();
        ["NEEDS_CONFIRMATION", "FAILED"].contains(&state.as_str()).then_some(state)
    });
    match state.as_str() {
        "NEEDS_CONFIRMATION" => drop(asked.ok("run confirm", &[&unsure, "succeeded"])),
        // Refusals go to stderr, for every command.
        _ => drop(asked.seen.insert("run confirm".to_owned())),
    }
    for (command, args) in [
        ("job watch", ["fails", "--for", "1s"]),
        ("run watch", ["--job=fails", "--for", "1s"]),
        ("tail", ["fails", "--for", "1s"]),
    ] {
        // A line for each change, if there is one.
        let words: Vec<&str> = command.split(' ').collect();
        let done = dev.run(&[&words[..], &args, &["-o", "json"]].concat()).ok();
        assert!(done.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{command}: {done}");
        asked.seen.insert(command.to_owned());
    }
    assert!(asked.ok("top", &["--once"])["pools"].is_array());
    backfills(&mut asked, dir);
    assert_eq!(asked.ok("dag create", &["graph", "--job", "fails"])["dagId"], "graph");
    let graph = asked.ends("job trigger", &["graph", "--wait"], &[8])["runId"].to_string();
    let node = asked.ok("dag nodes", &[&graph])["nodes"][0]["id"].as_str().unwrap().to_owned();
    assert!(asked.ok("dag retry", &[&graph, &node, "--dry-run"])["would"].is_string());
    asked.ok("dag retry", &[&graph, &node]);
    asked.ends("run wait", &[&graph], &[8]);
    assert!(asked.ok("dag mark", &[&graph, &node, "skipped", "--dry-run"])["would"].is_string());
    asked.ok("dag mark", &[&graph, &node, "skipped"]);
    asked.ok("dag create", &["held", "--job", "unfit"]);
    let held = asked.ok("job trigger", &["held"])["runId"].to_string();
    for command in ["dag pause", "dag resume"] {
        assert!(asked.ok(command, &[&held, "--dry-run"])["would"].is_string());
        asked.ok(command, &[&held]);
    }
    asked.ok("run cancel", &[&held]);
    asked.ok("job delete", &["waits"]);

    assert_eq!(asked.ok("audit list", &["--operation", "job.delete"])["items"][0]["outcome"], "DONE");
    assert_eq!(asked.ok("audit export", &["--operation", "job.delete"])["operation"], "job.delete");
    asked.ok("tenant list", &[]);
    asked.ok("tenant set", &["other", "--max-jobs", "5"]);
    asked.ok("tenant get", &["other"]);
    assert_eq!(asked.ok("target set", &["other", "db", "--max-concurrent-runs", "5"])["target"], "db");
    asked.ok("target list", &["other"]);
    asked.ok("target get", &["other", "db"]);
    assert_eq!(asked.ok("target delete", &["other", "db"])["done"], "delete");
    calendars(&mut asked, dir);
    bulk(&mut asked);
    assert_eq!(asked.ok("tenant pause", &["other"])["tenantId"], "other");
    asked.ok("tenant resume", &["other"]);
    assert_eq!(asked.ok("tenant delete", &["other"])["done"], "delete");
    for command in
        ["system info", "system executors", "system pools", "system pause", "system resume", "system accept-clock"]
    {
        asked.ok(command, &[]);
    }
    // A node alone is no cluster; refusals go to stderr, for every command.
    for command in ["members", "shards", "plan", "events", "cordon", "uncordon"] {
        let node: &[&str] = if command.ends_with("cordon") { &["n1"] } else { &[] };
        let refused = dev.run(&[&["cluster", command], node, &["-o", "json"]].concat());
        assert!(refused.out.is_empty(), "{command}: {refused:?}");
        assert_eq!(refused.code, 5, "{command}: {refused:?}");
        asked.seen.insert(format!("cluster {command}"));
    }
    asked.ok("cluster new-keys", &[&path("keys")]);

    fs::write(dir.join("a.yaml"), "{apiVersion: campanile/v1, kind: Job, metadata: {name: m}, spec: {every: 1h}}\n")
        .unwrap();
    asked.ok("apply", &["-f", &path("a.yaml"), "--dry-run"]);
    assert_eq!(asked.ends("plan", &[&path("a.yaml"), "--detailed-exitcode"], &[9])["forecast"]["truncated"], false);
    asked.ok("apply", &["-f", &path("a.yaml")]);
    asked.ok("export", &[]);
    fs::write(dir.join("crontab"), "0 2 * * * true\n99 * * * * false\n").unwrap();
    let import = [path("crontab"), "--format".to_owned(), "user".to_owned()];
    let import: Vec<&str> = import.iter().map(String::as_str).collect();
    let plan = asked.ends("import crontab", &import, &[2]);
    assert_eq!(
        (&plan["dryRun"], &plan["items"][0]["action"], &plan["refused"][0]["line"]),
        (&json!(true), &json!("CREATE"), &json!(2))
    );
    let done = asked.ends("import crontab", &[&import[..], &["--apply"]].concat(), &[2]);
    assert_eq!((&done["created"], &done["changed"], &done["dryRun"]), (&json!(1), &json!(0), &json!(false)));

    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/imports/fixtures");
    for (system, code) in [("kubernetes", 2), ("systemd", 2), ("quartz", 2), ("xxl-job", 2)] {
        let files = fixtures.join(system.replace('-', "_"));
        let read = asked.ends(&format!("import {system}"), &[files.to_str().unwrap()], &[code]);
        assert!(read["refused"][0]["reason"].is_string(), "{read}");
    }

    asked.ok("cron next", &["0 2 * * *"]);
    asked.ok("cron explain", &["0 2 * * *"]);
    asked.ok("config default", &[]);
    fs::write(dir.join("good.toml"), "\u{feff}[http]\nlisten = \"127.0.0.1:0\"\n").unwrap();
    assert_eq!(asked.ok("config check", &[&path("good.toml")])["ok"], true);
    fs::write(dir.join("bad.toml"), "[http]\nlisen = 1\n").unwrap();
    assert_eq!(asked.ends("config check", &[&path("bad.toml")], &[2])["ok"], false);
    asked.ok("token new", &["--name", "a", "--role", "operator"]);
    assert!(asked.ok("secrets new-key", &[])["line"].is_string());
    asked.ends("doctor", &[], &[0, 1]);
    let printed = campanile()
        .env("CAMPANILE_CQL__CONTACT_POINTS", "127.0.0.1:9042")
        .args(["schema", "print", "-o", "json"])
        .output()
        .unwrap();
    assert!(values("schema print", &Done::new(&printed))[0]["script"].is_string());
    asked.seen.insert("schema print".to_owned());
    asked.ok("store backup", &[&path("backup")]);
    asked.ok("store verify", &[&path("backup")]);
    asked.ok("store dump", &[&path("backup")]);
    asked.ok("store restore", &[&path("backup"), "--data", &path("restored"), "--since", "now"]);
    asked.ok("history archive", &[&path("days")]);
    asked.ok("history list", &[&path("days")]);
    asked.ok("history verify", &[&path("days")]);
    asked.ok("run list", &["--archive", &path("days")]);
    let node_dir = dir.join("data/node");
    let JsonCommands { mut seen, .. } = asked;
    assert_eq!(dev.stop(), 0);
    let checked = run(&["store", "check", node_dir.to_str().unwrap(), "-o", "json"]);
    values("store check", &checked);
    seen.insert("store check".to_owned());

    for command in WITHOUT_ANSWER {
        let more = match command {
            "man" => vec![path("man")],
            "completions" => vec!["bash".to_owned()],
            "executor" => vec!["--rpc".to_owned(), "127.0.0.1:1".to_owned()],
            _ => Vec::new(),
        };
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let refused = run(&[&[command], &more[..], &["-o", "json"]].concat()).refused(2);
        assert!(refused.contains("gives no answer") || command == "executor", "{command}: {refused}");
        seen.insert(command.to_owned());
    }
    seen.extend(NOT_RUN.map(str::to_owned));
    let mut all = BTreeSet::new();
    leaves(&[], &mut all);
    let missed: Vec<&String> = all.difference(&seen).collect();
    assert!(all.len() > 40, "commands that this test does not know: {missed:?}");
    assert!(missed.is_empty(), "commands that this test does not know: {missed:?}");
}
