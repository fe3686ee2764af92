//! Schedules of other systems against their own parsers: Debian's cron, robfig/cron (by which Kubernetes reads a CronJob) and
//! Quartz. Each is asked through a small program that `tests/foreign/schedules/prepare.sh` builds around the real parser.
//!
//! Random expressions are read by both, and their next fires are compared, in UTC. What differs on purpose is listed by name;
//! anything else fails. `make foreign-schedules` runs it, and `docs/foreign-schedules.md` tells what was found.

mod generate;

use campanile_core::cron::{CronExpr, CronSchedule};
use campanile_jobfiles::{
    crontab::cron_fields,
    manifest::{KubernetesSchedule, kubernetes_schedule},
};
use campanile_schema::job::{Dialect, Gap, Overlap};
use generate::{Rng, Words};
use std::{
    collections::BTreeMap,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

/// 2026-11-25T00:00:00Z and 400 days later, seconds.
const FROM: i64 = 1_795_564_800;
const UNTIL: i64 = FROM + 400 * 86_400;
/// Fires compared of one expression.
const FIRES: usize = 8;
/// Expressions of each system, unless FOREIGN_CASES says otherwise.
const CASES: usize = 2_000;
/// With fewer not every listed difference needs to show.
const CASES_THAT_SHOW_ALL: usize = 2_000;

/// The fires, or that it was refused.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Refused,
    Fires(Vec<i64>),
}

/// A difference on purpose: its name, and where it may show, by the expression and what they and we say.
type Difference = (&'static str, fn(&str, &Said, &Said) -> bool);

/// What the other system says to each expression.
fn asked(name: &str, expressions: &[String]) -> Vec<Said> {
    let built = std::env::var_os("FOREIGN_SCHEDULES").expect("FOREIGN_SCHEDULES names what prepare.sh has built");
    let program = PathBuf::from(built).join(name).join("ask");
    let mut child = Command::new(&program)
        .args([FROM.to_string(), UNTIL.to_string(), FIRES.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut input = child.stdin.take().unwrap();
    let text: String = expressions.iter().map(|expression| format!("{expression}\n")).collect();
    let writing = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success(), "{name} ended with {}", output.status);
    let said: Vec<Said> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| match line {
            "ERR" => Said::Refused,
            fires => Said::Fires(fires.split_whitespace().map(|at| at.parse().unwrap()).collect()),
        })
        .collect();
    assert_eq!(said.len(), expressions.len(), "{name} did not answer every line");
    said
}

/// Our fires. What never fires has none.
fn fires(expr: &str, dialect: Dialect) -> Said {
    let parsed = match CronExpr::parse(expr, dialect, 0) {
        Ok((parsed, _)) => parsed,
        Err(error) if error.never_fires => return Said::Fires(Vec::new()),
        Err(_) => return Said::Refused,
    };
    let schedule = CronSchedule::new(parsed, "UTC", Gap::Shift, Overlap::First).unwrap();
    let next = |at: &i64| schedule.next_fire(*at * 1_000).map(|at| at / 1_000).filter(|at| *at <= UNTIL);
    Said::Fires(std::iter::successors(next(&FROM), next).take(FIRES).collect())
}

/// Compares; `ours` says what we make of an expression.
fn compare(name: &str, seed: u64, words: Words, known: &[Difference], ours: impl Fn(&str) -> Said) {
    let cases = std::env::var("FOREIGN_CASES").ok().map_or(CASES, |cases| cases.parse().unwrap());
    let mut rng = Rng(seed);
    let expressions: Vec<String> = (0..cases).map(|_| generate::expression(&mut rng, words)).collect();
    let theirs = asked(name, &expressions);
    let (mut taken, mut compared, mut unknown) = (0, 0, Vec::new());
    let mut shown: BTreeMap<&str, u32> = BTreeMap::new();
    for (expression, theirs) in expressions.iter().zip(&theirs) {
        if let Said::Fires(fires) = theirs {
            taken += 1;
            compared += fires.len();
        }
        let ours = ours(expression);
        if ours == *theirs {
            continue;
        }
        match known.iter().find(|(_, may_show)| may_show(expression, theirs, &ours)) {
            Some((difference, _)) => *shown.entry(difference).or_default() += 1,
            None => unknown.push(format!("{expression}\n  theirs {theirs:?}\n  ours   {ours:?}")),
        }
    }
    println!(
        "{name}: {cases} expressions, {taken} taken by it, {compared} fires compared; differences on purpose: {shown:#?}"
    );
    let total = unknown.len();
    unknown.truncate(20);
    assert!(unknown.is_empty(), "{total} differences without a name, the first:\n{}", unknown.join("\n"));
    // A parser that refuses everything would agree with anything.
    assert!(taken * 3 > cases, "only {taken} of {cases} were taken, with {compared} fires");
    assert!(compared > cases, "only {taken} of {cases} were taken, with {compared} fires");
    if cases >= CASES_THAT_SHOW_ALL {
        for (difference, _) in known {
            assert!(
                shown.contains_key(difference),
                "this difference shows no more, take it from the list: {difference}"
            );
        }
    }
}

/// Kubernetes: what it takes means the same here. What it refuses is told as such, and read as our own dialect.
#[test]
#[ignore = "make foreign-schedules builds the program that it asks"]
fn kubernetes_reads_the_same() {
    compare("robfig", 21, Words::Kubernetes, &[], |schedule| match kubernetes_schedule(schedule) {
        KubernetesSchedule::Every(_) => panic!("no interval is generated"),
        KubernetesSchedule::Cron { note: Some(note), .. } if note.contains("refuses") => Said::Refused,
        KubernetesSchedule::Cron { expr, .. } => fires(&expr, Dialect::Unix),
    });
}

/// Crontabs: what Debian's cron takes means the same here.
#[test]
#[ignore = "make foreign-schedules builds the program that it asks"]
fn debians_cron_reads_the_same() {
    let known: [Difference; 2] = [
        ("~ draws a time in cronie: such a line is refused here; Debian's cron passes over it", |text, _, _| {
            text.contains('~')
        }),
        ("FRI-SUN and 5-0 run up to Sunday, as in cronie; Debian's cron finds no day in them", |text, _, _| {
            let weekday = text.split(' ').nth(4).unwrap_or_default().to_lowercase();
            weekday.split(',').any(|item| {
                let range = item.split('/').next().unwrap_or_default().split_once('-');
                range.is_some_and(|(_, to)| to.trim_start_matches('0').is_empty() || to.starts_with("sun"))
            })
        }),
    ];
    compare("debian", 22, Words::Cron, &known, |fields| {
        // The importer writes these out as fields before.
        if fields.starts_with('@') {
            return fires(fields, Dialect::Unix);
        }
        let read = cron_fields(fields);
        match (read.is_refused, read.expr) {
            (true, _) => Said::Refused,
            (false, None) => Said::Fires(Vec::new()),
            (false, Some(expr)) => fires(&expr, Dialect::Unix),
        }
    });
}

/// Quartz: the QUARTZ dialect.
#[test]
#[ignore = "make foreign-schedules builds the program that it asks"]
fn quartz_reads_the_same() {
    compare("quartz", 23, Words::Quartz, &generate::QUARTZ_DIFFERS, |expr| fires(expr, Dialect::Quartz));
}
