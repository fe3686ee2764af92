//! The golden schedules: each line of `schema/golden/cron.jsonl` gives exactly its five next fires, each line of
//! `cron_invalid.jsonl` is refused with a position and a message.

use campanile_core::cron::{CronExpr, CronSchedule, OccurrenceKind};
use campanile_schema::job::{Dialect, Gap, Overlap};
use jiff::Timestamp;
use serde_json::Value;

const GOLDEN: &str = include_str!("../../../schema/golden/cron.jsonl");
const INVALID: &str = include_str!("../../../schema/golden/cron_invalid.jsonl");
/// The instant of "now" for lines that are refused because their years are over: 2026-01-01T00:00:00Z.
const NOW_MS: i64 = 1_767_225_600_000;

fn lines(text: &'static str) -> impl Iterator<Item = Value> {
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap())
}

fn text(line: &Value, field: &str) -> String {
    line[field].as_str().unwrap().to_owned()
}

fn dialect(line: &Value) -> Dialect {
    text(line, "dialect").parse().unwrap()
}

fn policy(line: &Value) -> (Gap, Overlap) {
    match line["policy"].as_str() {
        None => (Gap::default(), Overlap::default()),
        Some("gap-shift") => (Gap::Shift, Overlap::default()),
        Some("gap-skip") => (Gap::Skip, Overlap::default()),
        Some("overlap-first") => (Gap::default(), Overlap::First),
        Some("overlap-second") => (Gap::default(), Overlap::Second),
        Some("overlap-both") => (Gap::default(), Overlap::Both),
        Some(other) => panic!("unknown policy {other}"),
    }
}

fn schedule(line: &Value) -> CronSchedule {
    let (expr, resolved) = CronExpr::parse(&text(line, "expr"), dialect(line), 7).unwrap();
    assert_eq!(resolved, dialect(line));
    let (gap, overlap) = policy(line);
    CronSchedule::new(expr, &text(line, "tz"), gap, overlap).unwrap()
}

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

/// Zones whose clocks the bundled database (2026) knows better than the one that the lines were made with (2025b, the
/// one of chrono-tz): from this instant on only the wall-clock times of the lines hold.
const CHANGED_SINCE: [(&str, &str); 4] = [
    ("Africa/Casablanca", "2026-09-20T01:00:00Z"), // +00 for good
    ("America/Vancouver", "2026-11-01T09:00:00Z"), // -07 for good
    ("America/Edmonton", "2026-11-01T08:00:00Z"),  // -06 for good
    ("America/Winnipeg", "2026-11-01T07:00:00Z"),  // -05 for good
];

/// The fires of a line, moved to where the newer database puts their wall-clock times.
fn expected(line: &Value) -> Vec<i64> {
    let name = text(line, "tz");
    let instants = line["next"].as_array().unwrap().iter().map(|instant| ms(instant.as_str().unwrap()));
    match CHANGED_SINCE.iter().find(|(zone, _)| *zone == name) {
        None => instants.collect(),
        Some((_, since)) => instants.map(|at| if at < ms(since) { at } else { with_newer_offset(at, &name) }).collect(),
    }
}

fn with_newer_offset(at_ms: i64, name: &str) -> i64 {
    let old: chrono_tz::Tz = name.parse().unwrap();
    let wall = chrono::DateTime::from_timestamp_millis(at_ms).unwrap().with_timezone(&old).naive_local();
    let wall: jiff::civil::DateTime = wall.format("%Y-%m-%dT%H:%M:%S").to_string().parse().unwrap();
    wall.to_zoned(jiff::tz::TimeZone::get(name).unwrap()).unwrap().timestamp().as_millisecond()
}

#[test]
fn every_golden_line_gives_its_five_next_fires() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for line in lines(GOLDEN) {
        seen += 1;
        let schedule = schedule(&line);
        let mut at = ms(&text(&line, "after"));
        let mut fires = Vec::new();
        while fires.len() < 5
            && let Some(next) = schedule.next_fire(at)
        {
            fires.push(next);
            at = next;
        }
        if fires != expected(&line) {
            let got: Vec<_> = fires.iter().map(|at| Timestamp::from_millisecond(*at).unwrap().to_string()).collect();
            wrong.push(format!("{line}\n   got {got:?}"));
        }
    }
    assert!(seen > 200);
    assert!(wrong.is_empty(), "{} of {seen} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn golden_fires_are_counted_and_come_among_the_occurrences() {
    for line in lines(GOLDEN) {
        let schedule = schedule(&line);
        let after = ms(&text(&line, "after"));
        let fires = expected(&line);
        let last = *fires.last().unwrap();
        assert_eq!(schedule.count_fires(after, last), 5, "{line}");
        assert_eq!(schedule.count_fires(after, last - 1), 4, "{line}");
        let mut at = after;
        let mut seen = Vec::new();
        while let Some(occurrence) = schedule.next_occurrence(at, last) {
            assert!(occurrence.at_ms > at);
            at = occurrence.at_ms;
            if occurrence.kind == OccurrenceKind::Fire {
                seen.push(at);
            }
        }
        assert_eq!(seen, fires, "{line}");
    }
}

#[test]
fn every_invalid_line_is_refused_with_a_position_and_a_message() {
    let mut accepted = Vec::new();
    for line in lines(INVALID) {
        let expr = text(&line, "expr");
        match CronExpr::parse(&expr, dialect(&line), 7) {
            Err(error) => {
                assert!(error.position <= expr.len(), "{line}: {error:?}");
                assert!(expr.is_char_boundary(error.position), "{line}: {error:?}");
                assert!(!error.message.is_empty(), "{line}: {error}");
                assert_eq!(error.to_string().lines().count(), 1, "{line}: {error}");
                assert!(error.to_string().len() < 250, "{line}: {error}");
            }
            Ok((expr, _)) => {
                // Years that are over are refused by whoever creates the job, who knows the time.
                let schedule = CronSchedule::new(expr, "UTC", Gap::Shift, Overlap::First).unwrap();
                if schedule.next_fire(NOW_MS).is_some() || !text(&line, "why").contains("past") {
                    accepted.push(line.to_string());
                }
            }
        }
    }
    assert!(accepted.is_empty(), "accepted:\n{}", accepted.join("\n"));
}
