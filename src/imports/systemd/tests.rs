#![allow(clippy::unwrap_used)]
use super::calendar::event;
use crate::{
    Import, Options, System,
    draft::{CronRules, cron, plain},
    render,
    testing::{fires, fixture, imported, options},
};
use campanile_schema::job::{Dialect, Gap, MisfirePolicy, Overlap};
use serde_json::json;
use std::process::Command;

fn read() -> Import {
    imported(System::Systemd, &[fixture("systemd")], &options())
}

#[test]
fn timers_with_their_services() {
    let import = read();
    let backup = import.job("systemd/backup");
    let spec = &backup.written()["spec"];
    assert_eq!(spec["schedule"], "30 2 * * *");
    assert_eq!((&spec["timeZone"], &spec["jitter"]), (&json!("Europe/Berlin"), &json!("15m")));
    assert_eq!((&spec["gap"], &spec["timeout"]), (&json!("Skip"), &json!("2h")));
    let action = &spec["action"];
    let line =
        "/usr/bin/backup --to /srv/backup/today --all --fast && { /usr/bin/prune '/srv/backup/old ones' || true; }";
    assert_eq!(action["command"], json!(["/bin/sh", "-c", line]));
    assert_eq!((&action["cwd"], &action["nice"]), (&json!("/srv"), &json!(10)));
    assert_eq!(action["limits"]["openFiles"], 4096);
    assert!(spec["misfirePolicy"].is_null(), "FireOnceNow is the default: {spec}");
    for told in ["ProtectSystem, PrivateTmp", "ConditionACPower", "other units", "one /bin/sh -c"] {
        assert!(backup.tells(told), "{told}: {:?}", backup.changed);
    }
    assert!(backup.place.file.ends_with("backup.timer"));
    assert_eq!(backup.place.line, 5);

    let clean = import.job("systemd/clean");
    assert_eq!(clean.written()["spec"]["every"], "1d");
    assert!(clean.tells("OnBootSec= is left out"), "{:?}", clean.changed);
    let poll = import.job("systemd/poll");
    assert_eq!(poll.written()["spec"]["afterLast"], "1m30s");
    assert_eq!(poll.written()["spec"]["action"]["command"], json!(["/usr/bin/poll", "--region", "eu"]));
    assert_eq!(import.job("systemd/twice").written()["spec"]["schedule"], "0 9 * * MON#1");
    assert_eq!(import.job("systemd/twice-2").written()["spec"]["schedule"], "0 18 L * *");
}

#[test]
fn what_cannot_be_said_is_refused_with_its_line() {
    let import = read();
    for (timer, line, told) in [
        ("boot.timer", 2, "OnBootSec= alone has no counterpart"),
        ("odd.timer", 2, "OnCalendar=Mon *-*-01,15: a weekday that must be on day 1,15"),
        ("secret.timer", 2, "EnvironmentFile= has no counterpart"),
        ("orphan.timer", 0, "its service orphan.service is neither beside it"),
    ] {
        let refused = import.refusal(timer);
        assert_eq!(refused.place.line, line, "{refused:?}");
        assert!(refused.reason.contains(told), "{refused:?}");
    }
    assert_eq!(import.refused.len(), 4, "{}", render(&import));
}

#[test]
fn services_of_other_users_are_refused_unless_asked_for() {
    let other = Options { self_user: "ada".to_owned(), ..options() };
    let import = imported(System::Systemd, &[fixture("systemd/backup.timer")], &other);
    assert!(import.refusal("backup").reason.contains("runs as root, and this import is for ada"));
    let as_self = Options { as_self: true, ..other };
    let import = imported(System::Systemd, &[fixture("systemd/backup.timer")], &as_self);
    assert!(import.job("systemd/backup").tells("here it runs as the executor's user"));
}

/// A directory with unit files, `systemd/` in it or not.
fn units(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

#[test]
fn a_template_is_refused_and_its_instance_is_read() {
    let timer = "[Timer]\nOnCalendar=daily\n";
    let service = "[Service]\nExecStart=/usr/bin/scrub %i\n";
    let dir = units(&[("scrub@.timer", timer), ("scrub@home.timer", timer), ("scrub@.service", service)]);
    let import = imported(System::Systemd, &[dir.path().to_owned()], &options());
    assert!(import.refusal("scrub@.timer").reason.contains("it is a template"), "{}", render(&import));
    let command = &import.job("systemd/scrub_home").written()["spec"]["command"];
    assert_eq!(command, &json!(["/usr/bin/scrub", "home"]));
}

/// As systemd reads a drop-in that replaces when a timer is due.
#[test]
fn an_empty_schedule_takes_back_schedules_of_all_kinds() {
    let service = "[Service]\nExecStart=/usr/bin/clean\n";
    let timer = "[Timer]\nOnBootSec=5min\nOnUnitActiveSec=1h\n";
    let drop_in = "[Timer]\nOnCalendar=\nOnCalendar=03:00\n";
    let dir = units(&[("a.timer", timer), ("a.timer.d/x.conf", drop_in), ("a.service", service)]);
    let import = imported(System::Systemd, &[dir.path().join("a.timer")], &options());
    let job = import.job("systemd/a");
    assert_eq!(job.written()["spec"]["schedule"], "0 3 * * *");
    assert!(!job.tells("OnBootSec"), "{:?}", job.changed);
}

#[test]
fn only_units_below_systemd_user_are_of_a_user() {
    let files = [
        ("systemd/user/a.timer", "[Timer]\nOnCalendar=daily\n"),
        ("systemd/user/a.service", "[Service]\nExecStart=/usr/bin/a\n"),
        ("user/b.timer", "[Timer]\nOnCalendar=daily\n"),
        ("user/b.service", "[Service]\nExecStart=/usr/bin/b\n"),
    ];
    let dir = units(&files);
    let ada = Options { self_user: "ada".to_owned(), ..options() };
    let import = imported(System::Systemd, &[dir.path().join("systemd/user"), dir.path().join("user")], &ada);
    assert_eq!(import.jobs.len(), 1, "{}", render(&import));
    assert!(import.refusal("b.timer").reason.contains("runs as root"), "{}", render(&import));
}

#[test]
fn what_surrounds_a_command_is_told() {
    let service = "[Service]\nType=oneshot\nGroup=adm\nRemainAfterExit=yes\nStandardOutput=append:/var/log/a\nStandardError=journal\n\
                   ExecStart=/usr/bin/a\n";
    let dir = units(&[("a.timer", "[Timer]\nOnCalendar=daily\n"), ("a.service", service)]);
    let import = imported(System::Systemd, &[dir.path().to_owned()], &options());
    let job = import.job("systemd/a");
    for told in ["Group=adm is not kept", "systemd starts such a service once", "StandardOutput=append:/var/log/a"] {
        assert!(job.tells(told), "{told}: {:?}", job.changed);
    }
    assert!(!job.tells("StandardError"), "{:?}", job.changed);
}

/// Instants of `systemd-analyze calendar`, kept in a file; where there is a systemd it is asked again.
#[test]
fn events_are_due_when_systemd_says() {
    let text = std::fs::read_to_string(fixture("systemd/events.txt")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() > 50, "{} lines", lines.len());
    for line in &lines {
        let [text, base, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let expected: Vec<i64> = expected.split_whitespace().map(|at| at.parse::<i64>().unwrap() * 1_000).collect();
        let event = event(text).unwrap();
        let (gap, overlap, misfire) = (Gap::Skip, Overlap::First, MisfirePolicy::Skip);
        let rules = CronRules { dialect: Dialect::Unix, gap, overlap, misfire, threshold_sec: 60 };
        let spec = plain("default", "x", cron(&event.expr, event.zone.as_deref().unwrap(), rules));
        let ours = fires(&spec, base.parse::<i64>().unwrap() * 1_000, 12);
        assert_eq!(ours, expected, "{text} as {}", event.expr);
    }
}

/// The file says what systemd says.
#[test]
fn the_kept_instants_are_those_of_systemd() {
    let Ok(version) = Command::new("systemd-analyze").arg("--version").output() else { return };
    assert!(version.status.success());
    let text = std::fs::read_to_string(fixture("systemd/events.txt")).unwrap();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [event, base, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let count = expected.split_whitespace().count();
        let mut command = Command::new("systemd-analyze");
        command.args(["calendar", "--iterations=12", &format!("--base-time=@{base}"), event]).env("TZ", "UTC");
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let instants = told.lines().filter(|line| line.contains("Next elapse:") || line.contains("Iter. #"));
        let instants: Vec<String> = instants
            .map(|line| {
                let at = line.trim_end_matches(" UTC").rsplit(' ').take(2).collect::<Vec<_>>();
                let at = format!("{}T{}Z", at[1], at[0]).parse::<jiff::Timestamp>().unwrap();
                at.as_second().to_string()
            })
            .collect();
        assert_eq!(instants.join(" "), expected, "{event} from {base}, {count} instants");
    }
}

#[test]
fn files_that_are_no_units() {
    let told = crate::testing::refused(System::Systemd, "a.timer", &vec![b'x'; 2 << 20]);
    assert!(told.contains("larger than 1048576 bytes"), "{told}");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.timer"), "no unit\n=\n[Timer\n").unwrap();
    std::fs::write(dir.path().join("x.service"), "").unwrap();
    let import = imported(System::Systemd, &[dir.path().to_owned()], &options());
    assert!(import.refused[0].reason.contains("the timer has no schedule"), "{:?}", import.refused);
    assert!(import.notes.iter().any(|note| note.contains("x.timer:1: is not a setting")), "{:?}", import.notes);
}
