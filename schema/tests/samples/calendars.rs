//! Calendars, as they are stored and as nodes send them.

use super::{AT, Sample, plain, sample};
use campanile_schema::{
    calendar::CalendarSpec,
    event::Event,
    peer::calendars::{CalendarCall, CalendarChange},
    stored::{CalendarRecord, CalendarRules, CalendarVersion, MinusRules, StoredJob, StoredJobCalendar, StoredTrigger},
};
use std::sync::Arc;

fn spec(text: &str) -> CalendarSpec {
    serde_json::from_str(text).unwrap()
}

pub fn rules() -> CalendarRules {
    let closed = spec(r#"{"include": {"ranges": [{"from": "2026-12-24", "to": "2026-12-31"}]}}"#);
    let days = r#"{
        "include": {"monthly": [{"day": -1}]}, "exclude": {"weekly": ["SAT", "SUN"], "easter": [-2, 1]},
        "makeUp": {"dates": ["2026-10-10"]}, "minus": ["closed"], "validThrough": "2026-12-31"
    }"#;
    CalendarRules::new(&spec(days), vec![MinusRules::new("closed", 4, &closed)])
}

/// A version with days, one that takes nothing away, and one that deletes the calendar.
pub fn versions() -> Vec<(&'static str, CalendarVersion)> {
    let short = CalendarRules::new(&CalendarSpec::default(), Vec::new());
    vec![
        ("every field", CalendarVersion { version: 2, from_ms: AT, rules: Some(rules()) }),
        ("short", CalendarVersion { version: 1, from_ms: AT, rules: Some(short) }),
        ("deleted", CalendarVersion { version: 3, from_ms: AT, rules: None }),
    ]
}

pub fn record() -> CalendarRecord {
    let versions = versions().into_iter().map(|(_, version)| Arc::new(version)).take(1).collect();
    CalendarRecord { tenant: "finance".into(), name: "working-days".into(), versions }
}

pub fn changes() -> Vec<(&'static str, CalendarChange)> {
    let deleted = CalendarChange {
        tenant: "finance".into(),
        name: "working-days".into(),
        rules: None,
        from_ms: None,
        seen: None,
    };
    let full = CalendarChange { rules: Some(rules()), from_ms: Some(AT), seen: Some(1), ..deleted.clone() };
    vec![("every field", full), ("deleted", deleted)]
}

pub fn calls() -> Vec<(&'static str, CalendarCall)> {
    vec![
        ("", CalendarCall::Set(Box::new(changes().remove(0).1))),
        ("", CalendarCall::Hold(vec![record()])),
        ("", CalendarCall::Get { tenant: "finance".into(), name: Some("working-days".into()) }),
        ("all", CalendarCall::Get { tenant: "finance".into(), name: None }),
    ]
}

/// A shard holds a version.
pub fn event() -> Event {
    let calendar = Arc::new(versions().remove(0).1);
    Event::CalendarSet { tenant: "finance".into(), name: "working-days".into(), calendar }
}

fn job(not_on: bool) -> StoredJob {
    let mut job = plain("working days", StoredTrigger::FixedRate { every_ms: 30_000, anchor_ms: AT });
    let calendar = StoredJobCalendar { name: "working-days".into(), not_on, zone: "Europe/Berlin".into() };
    job.calendar = Some(Box::new(calendar));
    job
}

pub fn samples() -> Vec<Sample> {
    vec![
        sample("event", "CalendarSet", &event()),
        sample("job", "fixed rate, on days of a calendar", &job(false)),
        sample("job", "fixed rate, not on days of a calendar", &job(true)),
    ]
}
