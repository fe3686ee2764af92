//! Jobs with a calendar: which version decides an instant, what is held, and what the ledger is told.

use crate::support::make::plain;
use campanile_core::{
    calendar::book::CalendarBook,
    schedule::{RemovedBy, Schedule},
};
use campanile_schema::{
    calendar::CalendarSpec,
    event::SkipReason,
    job::{Dialect, Gap, Overlap},
    stored::{
        CalendarRecord, CalendarRules, CalendarVersion, StoredBlackout, StoredJob, StoredJobCalendar, StoredTrigger,
        StoredWindows,
    },
    time::Timestamp,
};
use std::sync::Arc;

const WORKING: &str = r#"{"exclude": {"weekly": ["SAT", "SUN"]}}"#;

fn ms(at: &str) -> i64 {
    at.parse::<Timestamp>().unwrap().ms()
}

/// Each day at noon in Berlin.
fn daily(not_on: bool) -> StoredJob {
    let mut def = plain(StoredTrigger::Cron {
        expr: "0 12 * * *".into(),
        dialect: Dialect::Unix,
        zone: "Europe/Berlin".into(),
        gap: Gap::default(),
        overlap: Overlap::default(),
    });
    def.calendar = Some(Box::new(StoredJobCalendar { name: "days".into(), not_on, zone: "Europe/Berlin".into() }));
    def
}

/// Versions with their beginnings; None: deleted.
fn book(def: &StoredJob, versions: &[(&str, Option<&str>)]) -> CalendarBook {
    let version = |(n, (from, spec)): (usize, &(&str, Option<&str>))| {
        let rules = spec.map(|text| {
            let spec: CalendarSpec = serde_json::from_str(text).unwrap();
            CalendarRules::new(&spec, Vec::new())
        });
        Arc::new(CalendarVersion { version: n as u64 + 1, from_ms: ms(from), rules })
    };
    let versions = versions.iter().enumerate().map(version).collect();
    CalendarBook::of_record(&CalendarRecord { tenant: def.tenant.clone(), name: "days".into(), versions })
}

fn schedule(def: &StoredJob, versions: &[(&str, Option<&str>)]) -> Schedule {
    let mut schedule = Schedule::compile(def).unwrap();
    schedule.find_calendar(def, &book(def, versions));
    schedule
}

/// Days of the next instants, at most so many.
fn days(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), ms(after));
    while found.len() < count
        && let Some(due) = schedule.next(after, None)
    {
        found.push(Timestamp(due).to_string()[..10].to_owned());
        after = due;
    }
    found
}

#[test]
fn instants_count_on_days_of_the_calendar_or_on_all_others() {
    let begun = [("2026-01-01T00:00:00Z", Some(WORKING))];
    let wanted = ["2026-06-05", "2026-06-08", "2026-06-09"];
    assert_eq!(days(&schedule(&daily(false), &begun), "2026-06-05T00:00:00Z", 3), wanted);
    let others = ["2026-06-06", "2026-06-07", "2026-06-13"];
    assert_eq!(days(&schedule(&daily(true), &begun), "2026-06-05T00:00:00Z", 3), others);
}

/// 23:30 in Berlin on Sunday is Sunday there, and 21:30 in UTC; 00:30 on Monday is Sunday in UTC.
#[test]
fn a_day_is_read_by_the_clock_of_the_zone_of_the_calendar() {
    let mut def = daily(false);
    def.trigger = StoredTrigger::FixedRate { every_ms: 3_600_000, anchor_ms: ms("2026-06-05T00:30:00Z") };
    let begun = [("2026-01-01T00:00:00Z", Some(r#"{"include": {"dates": ["2026-06-08"]}}"#))];
    let schedule = schedule(&def, &begun);
    let from = ms("2026-06-05T00:00:00Z");
    assert_eq!(schedule.next(from, None), Some(ms("2026-06-07T22:30:00Z")));
    assert_eq!(schedule.count(from, ms("2026-06-12T00:00:00Z"), None), 24);
    assert_eq!(schedule.last(from, ms("2026-06-12T00:00:00Z"), None), Some(ms("2026-06-08T21:30:00Z")));
}

#[test]
fn the_version_in_force_decides_and_a_later_one_changes_nothing_before_its_beginning() {
    let first = ("2026-01-01T00:00:00Z", Some(WORKING));
    let every_day = ("2026-06-10T00:00:00Z", Some("{}"));
    let schedule = schedule(&daily(false), &[first, every_day]);
    let wanted = ["2026-06-05", "2026-06-08", "2026-06-09", "2026-06-10", "2026-06-11", "2026-06-12", "2026-06-13"];
    assert_eq!(days(&schedule, "2026-06-05T00:00:00Z", 7), wanted);
}

#[test]
fn what_no_version_says_anything_of_is_held_until_one_does() {
    let until_friday =
        ("2026-01-01T00:00:00Z", Some(r#"{"exclude": {"weekly": ["SUN"]}, "validThrough": "2026-06-05"}"#));
    let held = schedule(&daily(false), &[until_friday]);
    assert_eq!(days(&held, "2026-06-04T00:00:00Z", 9), ["2026-06-04", "2026-06-05"]);
    // A version that begins later fills what nobody could decide.
    let next = ("2026-06-09T00:00:00Z", Some(WORKING));
    let filled = schedule(&daily(false), &[until_friday, next]);
    assert_eq!(days(&filled, "2026-06-04T00:00:00Z", 3), ["2026-06-04", "2026-06-05", "2026-06-08"]);

    let deleted = [("2026-01-01T00:00:00Z", Some(WORKING)), ("2026-06-09T00:00:00Z", None)];
    assert_eq!(days(&schedule(&daily(false), &deleted), "2026-06-05T00:00:00Z", 9), ["2026-06-05", "2026-06-08"]);
    let unknown = Schedule::compile(&daily(false)).unwrap();
    assert_eq!(unknown.next(ms("2026-06-05T00:00:00Z"), None), None, "nobody guesses");
}

#[test]
fn a_definition_of_a_later_release_is_not_guessed() {
    let def = daily(false);
    let rules = CalendarRules { spec: r#"{"lunar": {"month": 1}}"#.to_owned(), minus: Vec::new() };
    let version = Arc::new(CalendarVersion { version: 1, from_ms: 0, rules: Some(rules) });
    let record = CalendarRecord { tenant: def.tenant.clone(), name: "days".into(), versions: vec![version] };
    let mut schedule = Schedule::compile(&def).unwrap();
    schedule.find_calendar(&def, &CalendarBook::of_record(&record));
    assert_eq!(schedule.next(ms("2026-06-05T00:00:00Z"), None), None);
}

#[test]
fn removed_instants_are_told_with_their_reason() {
    let mut def = daily(false);
    let blackout =
        StoredBlackout { from_ms: ms("2026-06-07T00:00:00Z"), to_ms: ms("2026-06-09T00:00:00Z"), reason: None };
    def.windows = Some(Box::new(StoredWindows { windows: Vec::new(), blackouts: vec![blackout] }));
    let until = r#"{"exclude": {"weekly": ["SAT", "SUN"]}, "validThrough": "2026-06-10"}"#;
    let schedule = schedule(&def, &[("2026-01-01T00:00:00Z", Some(until))]);
    let removed = schedule.removed(ms("2026-06-05T00:00:00Z"), ms("2026-06-13T00:00:00Z"));
    let told: Vec<_> = removed
        .iter()
        .map(|gone| (Timestamp(gone.first_ms).to_string()[..10].to_owned(), gone.count, gone.by))
        .collect();
    let by = RemovedBy::Reason;
    let wanted = [
        ("2026-06-06".to_owned(), 1, by(SkipReason::Calendar)),
        // A blackout goes first: Sunday and Monday.
        ("2026-06-07".to_owned(), 2, by(SkipReason::Blackout)),
        ("2026-06-11".to_owned(), 2, by(SkipReason::NoCalendar)),
    ];
    assert_eq!(told, wanted);
}
