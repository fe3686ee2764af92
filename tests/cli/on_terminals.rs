//! Tables, instants, `--watch` and progress as people on a terminal have them, and as files and pipes do.

use crate::{
    program::{Dev, Done, campanile, run},
    terminal::Terminal,
};
use serde_json::json;
use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    process::Stdio,
};
use unicode_width::UnicodeWidthStr;

const LONG: &str = "finance/end-of-month/a-report-with-a-name-that-goes-on-and-on-and-on-and-on-until-nobody-reads-it";

/// Without what draws colours.
fn plain(text: &str) -> String {
    let mut parts = text.replace('\r', "").split('\u{1b}').map(str::to_owned).collect::<Vec<_>>();
    for part in parts.iter_mut().skip(1) {
        *part = part.split_once('m').map_or(String::new(), |(_, rest)| rest.to_owned());
    }
    parts.concat()
}

fn seen(dev: &Dev, columns: u16, args: &[&str], environment: &[(&str, &str)]) -> String {
    let (status, shown) = Terminal::start_with(dev, columns, args, environment).end();
    assert!(status.success(), "{status}: {shown}");
    shown
}

#[test]
fn a_table_fits_its_terminal_and_nothing_is_cut_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &["--no-demo", "--no-executor"]);
    let id = dev.job(LONG, json!({"type": "CRON", "expr": "0 12 * * *", "timezone": "Asia/Tokyo"})).to_string();
    for columns in [60, 80, 120, 200] {
        let shown = plain(&seen(&dev, columns, &["job", "list", "-q"], &[]));
        let widest = shown.lines().map(UnicodeWidthStr::width).max().unwrap();
        assert!(widest <= usize::from(columns), "{columns}:\n{shown}");
        assert!(shown.contains(&id), "{columns}:\n{shown}");
        assert!(shown.contains("  in "), "how long yet:\n{shown}");
        assert!(shown.contains("ENABLED"), "how long yet:\n{shown}");
    }
    let narrow = plain(&seen(&dev, 60, &["job", "list"], &[]));
    assert!(narrow.contains('…'), "{narrow}");
    assert!(narrow.contains("no room for"), "{narrow}");
    assert!(!narrow.contains("TRIGGER "), "{narrow}");
    let wide = plain(&seen(&dev, 60, &["job", "list", "--wide"], &[]));
    assert!(wide.contains(LONG), "{wide}");
    assert!(wide.contains("TRIGGER "), "{wide}");
    assert!(!wide.contains("no room"), "{wide}");
    let piped = dev.run(&["job", "list"]);
    assert!(piped.out.contains(LONG), "{piped:?}");
    assert!(piped.err.is_empty(), "{piped:?}");
    assert!(!piped.out.contains('\u{1b}'), "{piped:?}");

    let green = "\u{1b}[32mENABLED";
    assert!(seen(&dev, 120, &["job", "list"], &[]).contains(green));
    assert!(!seen(&dev, 120, &["job", "list"], &[("NO_COLOR", "1")]).contains(green));
    assert!(!seen(&dev, 120, &["job", "list", "--color", "never"], &[]).contains(green));
    assert!(dev.run(&["job", "list", "--color=always"]).ok().contains(green));
}

#[test]
fn instants_are_told_in_the_form_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &["--no-demo"]);
    dev.run(&["job", "create", "--name", "noon", "--cron", "0 12 * * *", "--tz", "Asia/Tokyo", "--sh", "true"]).ok();
    let view = plain(&seen(&dev, 100, &["job", "get", "noon"], &[]));
    let next = view.lines().find(|line| line.starts_with("nextFireAt ")).unwrap();
    assert!(next.contains(" 12:00:00 JST (+09:00), in "), "{view}");
    let run = dev.run(&["job", "trigger", "noon", "--wait", "-o", "json"]).json()["runId"].to_string();
    let view = plain(&seen(&dev, 100, &["run", "get", &run], &[]));
    let ended = view.lines().find(|line| line.starts_with("endedAt ")).unwrap();
    assert!(ended.contains("JST (+09:00), ") && ended.trim_end().ends_with(" ago") || ended.contains("now"), "{view}");

    // Elsewhere as nodes say it, unless it is asked for; JSON always.
    let form = |args: &[&str]| dev.run(&[&["job", "list"], args].concat()).ok();
    assert!(form(&[]).contains("T03:00:00.000Z"), "{}", form(&[]));
    assert!(form(&["--time", "relative"]).contains("  in "));
    assert!(form(&["--time", "job"]).contains(" 12:00:00 JST (+09:00)"));
    assert!(form(&["--time", "utc"]).contains("T03:00:00.000Z"));
    assert!(
        form(&["--time", "America/Bogota"]).contains(" 22:00:00 -05:00"),
        "{}",
        form(&["--time", "America/Bogota"])
    );
    assert!(form(&["--time", "job", "-o", "json"]).contains("T03:00:00.000Z"));
    let local = campanile()
        .env("CAMPANILE_SERVER", &dev.server)
        .env("TZ", "Europe/Helsinki")
        .args(["job", "list", "--time", "local"])
        .output()
        .unwrap();
    let local = Done::new(&local).ok();
    assert!(local.contains(" EET (+02:00)") || local.contains(" EEST (+03:00)"), "{local}");
    let runs = dev.run(&["job", "runs", "noon", "--time", "job"]).ok();
    assert!(runs.contains("JST (+09:00)"), "{runs}");
    assert!(run_refused("Europe/Berln").contains("did you mean Europe/Berlin?"));
    assert!(run_refused("relatve").contains("did you mean relative?"));
}

fn run_refused(form: &str) -> String {
    run(&["job", "list", "--time", form]).refused(2)
}

#[test]
fn a_watch_on_a_terminal_goes_on_over_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("dev");
    let dev = Dev::start(&data, &["--no-demo", "--no-executor"]);
    let http = dev.server.strip_prefix("http://").unwrap().to_owned();
    dev.job("first", json!({"type": "MANUAL"}));
    let mut list = Terminal::start(&dev, 80, &["job", "list", "--watch=1s"]);
    let frame = list.until("first");
    assert!(frame.contains("every 1 s, "), "{frame:?}");
    dev.job("second", json!({"type": "MANUAL"}));
    list.until("second");
    dev.kill();
    let frame = list.until("no answer since");
    assert!(frame.contains("asking again"), "{frame:?}");
    let dev = Dev::start_at(&data, &http, &["--no-demo", "--no-executor"]);
    dev.job("third", json!({"type": "MANUAL"}));
    list.until("third");
    list.interrupt();
    let (status, _) = list.end();
    assert_eq!(status.signal(), Some(2), "as `run watch` ends");
}

#[test]
fn a_watch_without_a_terminal_tells_changes() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("dev");
    let dev = Dev::start(&data, &["--no-demo", "--no-executor"]);
    let http = dev.server.strip_prefix("http://").unwrap().to_owned();
    dev.job("first", json!({"type": "MANUAL"}));
    let mut child = campanile()
        .env("CAMPANILE_SERVER", &dev.server)
        .args(["job", "list", "--watch=1s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut err = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let block = |out: &mut dyn Iterator<Item = String>, rows: usize| -> Vec<String> { out.take(rows).collect() };
    let first = block(&mut out, 3);
    assert!(first[0].starts_with("--- 20"), "{first:?}");
    assert!(first[1].starts_with("ID"), "{first:?}");
    assert!(first[2].contains("first"), "{first:?}");
    dev.job("second", json!({"type": "MANUAL"}));
    // The next that is told is the next that differs.
    let next = block(&mut out, 4);
    assert!(next[0].starts_with("--- 20"), "{next:?}");
    assert!(next[3].contains("second"), "{next:?}");
    dev.kill();
    assert!(err.next().unwrap().contains("no answer, asking again: "));
    let dev = Dev::start_at(&data, &http, &["--no-demo", "--no-executor"]);
    // Starting, a node may refuse once more; that was told already.
    assert!(err.next().unwrap().ends_with("the node answers again"));
    child.kill().unwrap();
    child.wait().unwrap();

    // A question that is wrong is refused at once, and a node that was never there is not waited for.
    assert!(dev.run(&["job", "get", "nothing", "--watch"]).refused(3).contains("404_NOT_FOUND"));
    assert!(run(&["job", "list", "--watch", "--server", "http://127.0.0.1:1"]).refused(7).contains("is it running?"));
    // Every state that has no stream takes it: with nobody reading, the second answer ends it.
    for args in WATCHED {
        assert!(run(&[args, &["--help"][..]].concat()).ok().contains("--watch[=<TIME>]"), "{args:?}");
    }
}

const WATCHED: &[&[&str]] = &[
    &["job", "list"],
    &["job", "get"],
    &["job", "runs"],
    &["run", "get"],
    &["run", "failed"],
    &["dlq", "list"],
    &["outbox", "list"],
    &["tenant", "list"],
    &["tenant", "get"],
    &["system", "info"],
    &["system", "executors"],
    &["system", "pools"],
    &["cluster", "members"],
    &["cluster", "shards"],
    &["cluster", "plan"],
    &["cluster", "events"],
];

#[test]
fn a_wait_is_shown_on_a_terminal_unless_it_shall_be_quiet() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &["--no-demo"]);
    let end = dir.path().join("end");
    let script = format!("while [ ! -e {} ]; do sleep 0.1; done", end.display());
    dev.run(&["job", "create", "--name", "slow", "--manual", "--sh", &script]).ok();
    let run = dev.run(&["job", "trigger", "slow", "-o", "json"]).json()["runId"].to_string();
    // Begun before the other one, it has waited for longer when that one shows it.
    let quiet = Terminal::start(&dev, 80, &["run", "wait", &run, "--quiet"]);
    let mut told = Terminal::start(&dev, 80, &["run", "wait", &run]);
    told.until(&format!("waiting for run {run}"));
    fs::write(&end, "").unwrap();
    let (status, shown) = told.end();
    let last = shown.rsplit("waiting for run").next().unwrap();
    // The line is gone before the answer comes.
    assert!(status.success(), "{shown:?}");
    assert!(last.contains("\r\u{1b}[K"), "{shown:?}");
    assert!(last.contains("SUCCESS"), "{shown:?}");
    let (status, shown) = quiet.end();
    assert!(status.success(), "{shown:?}");
    assert!(shown.contains("SUCCESS"), "{shown:?}");
    assert!(!shown.contains("waiting for"), "{shown:?}");
}
