//! What the program says, word for word. A change of a text shows here as a difference; when it is meant, `make snapshots` writes it
//! down, and the difference is read with the rest of the change.
use crate::program::{Dev, Done, run};
use std::fs;

/// Ids, instants, addresses and lengths of time differ each time.
fn masked(text: &str, dev: Option<&Dev>, dir: Option<&std::path::Path>) -> String {
    let mut text = text.to_owned();
    if let Some(dev) = dev {
        text = text.replace(&dev.server, "SERVER").replace(&dev.token, "TOKEN");
    }
    if let Some(dir) = dir {
        text = text.replace(&dir.display().to_string(), "DIR");
    }
    let lines: Vec<String> = text.lines().map(masked_line).collect();
    lines.join("\n") + "\n"
}

fn masked_line(line: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    let flush = |word: &mut String, out: &mut String| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_instant = word.len() >= 20 && word.as_bytes().get(10) == Some(&b'T') && word.ends_with('Z');
        // Wide things are told by their width too, so that tables stay tables.
        let mask = if is_instant { Some('T') } else { (digits >= 7 && digits == word.len()).then_some('N') };
        match mask {
            Some('T') => out.push_str(&format!("{:<width$}", "INSTANT", width = word.len())),
            Some(_) => out.push_str("ID"),
            None => out.push_str(word),
        }
        word.clear();
    };
    for c in line.chars() {
        if c.is_ascii_alphanumeric() || "-:.".contains(c) {
            word.push(c);
        } else {
            flush(&mut word, &mut out);
            out.push(c);
        }
    }
    flush(&mut word, &mut out);
    // Columns are as wide as their ids are: one space says enough.
    let mut squeezed = String::new();
    for part in out.trim_end().split("  ") {
        let part = part.trim_start();
        if !part.is_empty() {
            squeezed.push_str(if squeezed.is_empty() { "" } else { "  " });
            squeezed.push_str(part);
        }
    }
    let indent = line.len() - line.trim_start().len();
    format!("{}{squeezed}", " ".repeat(indent))
}

fn told(done: &Done, dev: Option<&Dev>, dir: Option<&std::path::Path>) -> String {
    format!("exit code {}\n--- out\n{}--- err\n{}", done.code, masked(&done.out, dev, dir), masked(&done.err, dev, dir))
}

/// Names under `Commands:` of a help text.
fn commands(help: &str) -> Vec<String> {
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default().split("\n\n").next().unwrap_or_default();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn helps(path: &[String], all: &mut Vec<(String, String)>) {
    let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
    let help = run(&args).ok();
    all.push((if path.is_empty() { "campanile".to_owned() } else { path.join(" ") }, help.clone()));
    for name in commands(&help).into_iter().filter(|name| name != "help") {
        helps(&[path, &[name]].concat(), all);
    }
}

#[test]
fn every_help_text() {
    let mut all = Vec::new();
    helps(&[], &mut all);
    assert!(all.len() > 40, "{}", all.len());
    for (path, help) in all {
        insta::assert_snapshot!(format!("help-{}", path.replace(' ', "-")), help);
    }
}

#[test]
fn a_session() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = dir.path().join("jobs.yaml");
    let manifest = |schedule: &str| {
        format!(
            "apiVersion: campanile/v1\nkind: Job\nmetadata: {{name: report}}\nspec:\n  schedule: '{schedule}'\n  timeZone: Asia/Tokyo\n  suspend: true\n  command: [/bin/true]\n"
        )
    };
    fs::write(&jobs, manifest("30 2 * * *")).unwrap();
    let dev = Dev::start(&dir.path().join("data"), &["--no-demo", "--no-executor"]);
    let jobs = jobs.to_str().unwrap();
    let mut steps = 0;
    let mut step = |args: &[&str]| {
        let done = dev.run(args);
        steps += 1;
        insta::assert_snapshot!(
            format!("session-{steps:02}-{}", args[..2.min(args.len())].join("-").replace('/', "_")),
            format!(
                "$ campanile {}\n{}",
                args.join(" ").replace(dir.path().to_str().unwrap(), "DIR"),
                told(&done, Some(&dev), Some(dir.path()))
            )
        );
    };
    step(&["job", "list"]);
    step(&["apply", "-f", jobs, "--dry-run"]);
    step(&["apply", "-f", jobs]);
    fs::write(jobs, manifest("45 2 * * *")).unwrap();
    step(&["apply", "-f", jobs, "--dry-run"]);
    fs::write(jobs, manifest("75 2 * * *").replace("command:", "comand:")).unwrap();
    step(&["apply", "-f", jobs]);
    step(&["job", "list"]);
    step(&["job", "get", "report"]);
    step(&["job", "get", "report", "--manifest"]);
    step(&["job", "get", "reprot"]);
    step(&["job", "trigger", "report", "--id", "once"]);
    step(&["job", "create", "--name", "report", "--manual"]);
    step(&["job", "create", "--name", "x", "--cron", "61 * * * *"]);
    step(&["job", "runs", "report"]);
    step(&["job", "resume", "report"]);
    step(&["job", "delete", "report"]);
    step(&["tenant", "list"]);
    step(&["system", "pools"]);
    step(&["dlq", "list"]);
    step(&["cron", "explain", "0 2 * * 1-5", "--after", "2026-01-01T00:00:00Z"]);
}

/// Values of these fields are other ones each time, and short.
const VOLATILE: &[&str] = &[
    "startedAt",
    "uptimeSec",
    "version",
    "build",
    "tzdb",
    "clockOffsetMs",
    "session",
    "pid",
    "clusterId",
    "requestId",
];

/// Every list and every state that commands show, of a node with something of each.
#[test]
fn every_list_and_state() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("data"), &["--no-demo", "--no-executor"]);
    let noon = ["--cron", "0 12 * * *", "--tz", "Asia/Tokyo", "--sh", "true"];
    dev.run(&[&["job", "create", "--name", "report"], &noon[..]].concat()).ok();
    dev.run(&[
        "job",
        "create",
        "--name",
        "finance/end-of-month/a-report-with-a-name-that-is-long",
        "--manual",
        "--sh",
        "true",
    ])
    .ok();
    let run = dev.run(&["job", "trigger", "report", "--id", "once", "-o", "json"]).json()["runId"].to_string();
    dev.run(&["run", "cancel", &run]).ok();
    let step = |args: &[&str]| {
        let done = dev.run(args);
        let shown = told(&done, Some(&dev), Some(dir.path()));
        let line = |line: &str| match line.split_once("  ") {
            Some((name, _)) if VOLATILE.iter().any(|field| name.rsplit('.').next() == Some(field)) => {
                format!("{name}  VALUE")
            }
            Some(_) | None => line.to_owned(),
        };
        let shown: Vec<String> = shown.lines().map(line).collect();
        let told = args.join(" ").replace(&run, "RUN");
        insta::assert_snapshot!(format!("shown-{}", told.replace(' ', "-")), shown.join("\n"));
    };
    step(&["job", "list"]);
    step(&["job", "get", "report"]);
    step(&["job", "runs", "report"]);
    step(&["job", "ledger", "report"]);
    step(&["run", "get", &run]);
    step(&["run", "failed"]);
    step(&["dlq", "list"]);
    step(&["tenant", "list"]);
    step(&["tenant", "get", "default"]);
    step(&["system", "info"]);
    step(&["system", "executors"]);
    step(&["system", "pools"]);
    step(&["cluster", "members"]);
    step(&["cluster", "shards", "--node", "nobody"]);
    step(&["cluster", "plan"]);
    step(&["cluster", "events"]);
}
