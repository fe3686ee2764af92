//! What is said of daylight saving, in the hazards and in the line that sums them up, against what a walk along the time
//! line sees at each change of the clock.

use crate::cron_model::generate::{Shape, model};
use crate::cron_model::oracle::Walk;
use crate::cron_model::{Model, Rng};
use campanile_core::cron::{CronExpr, CronSchedule, OccurrenceKind, daylight_saving, hazards};
use campanile_schema::job::{Dialect, Gap, Overlap};
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;

/// Changes of an hour, of half an hour, of two hours, at midnight, negative summer time, four changes a year, and none.
const ZONES: [&str; 10] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Pacific/Chatham",
    "America/St_Johns",
    "Asia/Kolkata",
];
/// Hours in which clocks change, as fixed ones and as open ones.
const HOURS: [(&str, &[i64], bool); 5] = [
    ("0-3", &[0, 1, 2, 3], false),
    ("1,2", &[1, 2], false),
    ("2", &[2], false),
    ("*/2", &[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22], true),
    ("1/4", &[1, 5, 9, 13, 17, 21], true),
];
const HOUR: i64 = 3_600;
const TWO_YEARS: i64 = 731 * 86_400;

const NOT_MADE_UP: &str = "a time that the clock skips does not fire and is not made up";
const REGULAR_STAYS: &str = "a time that the clock skips does not fire, the regular fire after it stays";
const MADE_UP: &str = "a time that the clock skips fires at the first instant after it";
const BOTH_TIMES: &str = "a time that comes twice fires both times";
const FIRST_TIME: &str = "a time that comes twice fires the first time";
const SECOND_TIME: &str = "a time that comes twice fires the second time";
const NO_CHANGE: &str = "in the next two years the clock of its zone does not change";
const UNTOUCHED: &str = "no change of the clock in the next two years removes or repeats one of its times";
const AS_EVER: &str = "changes of the clock in the next two years leave its fires as far apart as ever in elapsed time";

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

fn schedule(text: &str, dialect: Dialect, zone: &str, gap: Gap, overlap: Overlap) -> CronSchedule {
    CronSchedule::new(CronExpr::parse(text, dialect, 1).unwrap().0, zone, gap, overlap).unwrap()
}

#[test]
fn the_line_of_daylight_saving_follows_from_the_fires() {
    use {Gap::*, Overlap::*};
    let from = ms("2026-01-01T00:00:00Z");
    for (text, zone, gap, overlap, said) in [
        // The hour of the change is named: a list, a step, a minute alone, steps in one hour.
        ("30 2 * * *", "Europe/Berlin", Shift, First, &[MADE_UP, FIRST_TIME] as &[&str]),
        ("30 2 * * *", "Europe/Berlin", Skip, Both, &[NOT_MADE_UP, BOTH_TIMES]),
        ("0 2,3 * * *", "Europe/Berlin", Shift, Second, &[REGULAR_STAYS, SECOND_TIME]),
        ("0 2,3 * * *", "Europe/Berlin", Skip, Second, &[REGULAR_STAYS, SECOND_TIME]),
        ("0 0,2,4,6 * * *", "Europe/Berlin", Shift, First, &[MADE_UP, FIRST_TIME]),
        ("0 */2 * * *", "Europe/Berlin", Shift, First, &[NOT_MADE_UP, BOTH_TIMES]),
        ("*/20 2,3 * * *", "Europe/Berlin", Shift, First, &[REGULAR_STAYS, BOTH_TIMES]),
        // Not named: it says so instead of naming a rule that never comes to bear.
        ("0 1/2 * * *", "America/New_York", Shift, First, &[BOTH_TIMES]),
        ("0 3/3 * * *", "Europe/Berlin", Shift, First, &[UNTOUCHED]),
        ("30 12 * * *", "Europe/Berlin", Shift, First, &[UNTOUCHED]),
        ("15 * * * *", "Asia/Kolkata", Shift, First, &[NO_CHANGE]),
        ("30 2 * * *", "UTC", Shift, First, &[NO_CHANGE]),
        // Every hour: an hour more or less changes nothing, half an hour does.
        ("15 * * * *", "Europe/Berlin", Shift, First, &[AS_EVER]),
        ("*/7 * * * *", "America/New_York", Shift, First, &[AS_EVER]),
        ("15 * * * *", "Australia/Lord_Howe", Shift, First, &[NOT_MADE_UP]),
        ("45 * * * *", "Australia/Lord_Howe", Shift, First, &[BOTH_TIMES]),
        ("*/20 * * * *", "Australia/Lord_Howe", Shift, First, &[NOT_MADE_UP, BOTH_TIMES]),
        ("*/30 * * * *", "Australia/Lord_Howe", Shift, First, &[AS_EVER]),
        ("15 2 * * *", "Australia/Lord_Howe", Shift, First, &[MADE_UP]),
        // Ireland's winter time is the changed one.
        ("30 1 * * *", "Europe/Dublin", Shift, First, &[MADE_UP, FIRST_TIME]),
        ("0 */2 * * *", "Europe/Dublin", Shift, First, &[UNTOUCHED]),
        ("*/15 1 * * *", "Europe/Dublin", Shift, First, &[NOT_MADE_UP, BOTH_TIMES]),
    ] {
        let schedule = schedule(text, Dialect::Unix, zone, gap, overlap);
        let line = daylight_saving(&schedule, from);
        let (kind, summary) = line.split_once("; ").unwrap();
        assert_eq!(summary, said.join(", "), "{text} {zone} {gap} {overlap}");
        assert_eq!(kind.starts_with("has an open time field"), schedule.expr.follows_elapsed_time(), "{text}: {kind}");
        let noticed = ![UNTOUCHED, NO_CHANGE, AS_EVER].contains(&summary);
        let told = hazards(&schedule, from).iter().filter(|line| line.contains(zone)).count();
        assert_eq!(told > 0, noticed, "{text} {zone}: hazards and the line disagree");
    }
}

/// A change of the clock as jiff knows it: UTC second, offset before and after.
fn changes(zone: &TimeZone, from: i64) -> Vec<(i64, Offset, Offset)> {
    let until = from + TWO_YEARS;
    let mut offset = zone.to_offset(Timestamp::from_second(from).unwrap());
    let mut found = Vec::new();
    for change in zone.following(Timestamp::from_second(from).unwrap()) {
        let at = change.timestamp().as_second();
        if at > until {
            break;
        }
        let before = std::mem::replace(&mut offset, change.offset());
        if before != offset {
            found.push((at, before, offset));
        }
    }
    found
}

/// What the walk sees of one change: `None` if no named time is concerned; else the clause for it and the hazard's words
/// for its first time, or no words where nobody notices the change.
fn seen(model: &Model, walk: &Walk<'_>, change: (i64, Offset, Offset)) -> Option<Option<(&'static str, String)>> {
    let (at, before, after) = change;
    let local = |at: i64, offset: Offset| offset.to_datetime(Timestamp::from_second(at).unwrap());
    let size = i64::from(after.seconds() - before.seconds());
    let earliest = if size > 0 { local(at, before) } else { local(at, after) };
    let concerned: Vec<DateTime> = (0..size.abs() / 60)
        .map(|minute| earliest.checked_add(SignedDuration::from_mins(minute)).unwrap())
        .filter(|time| model.matches(*time))
        .collect();
    let first = *concerned.first()?;
    let fires: BTreeSet<i64> = walk
        .occurrences(model, at - 2 * HOUR, at + 2 * HOUR)
        .into_iter()
        .filter(|(_, kind)| *kind == OccurrenceKind::Fire)
        .map(|(at, _)| at)
        .collect();
    let names = |minute: i64| model.hours.contains(&(minute / 60)) && model.minutes.contains(&(minute % 60));
    let as_ever = (0..1_440).all(|minute| names(minute) == names((minute + size / 60).rem_euclid(1_440)));
    if model.elapsed() && as_ever {
        let unchanged = |minute: &i64| model.matches(local(*minute, before));
        let of_hours: BTreeSet<i64> = (at - 2 * HOUR..=at + 2 * HOUR).step_by(60).filter(unchanged).collect();
        assert_eq!(fires, of_hours, "{}", model.text);
        return Some(None);
    }
    let verb = match (size > 0, concerned.len()) {
        (true, 1) => "does not exist",
        (true, _) => "do not exist",
        (false, 1) => "comes twice",
        (false, _) => "come twice",
    };
    let clause = if size > 0 {
        match (fires.contains(&at), model.matches(local(at, after))) {
            (false, _) => NOT_MADE_UP,
            (true, true) => REGULAR_STAYS,
            (true, false) => MADE_UP,
        }
    } else {
        let instants = [before, after].map(|offset| offset.to_timestamp(first).unwrap().as_second());
        match instants.map(|at| fires.contains(&at)) {
            [true, true] => BOTH_TIMES,
            [true, false] => FIRST_TIME,
            [false, true] => SECOND_TIME,
            [false, false] => panic!("{} fires at neither {instants:?}", model.text),
        }
    };
    let words = format!("{} {verb}", first.strftime("%Y-%m-%d %H:%M"));
    Some(Some((clause, words)))
}

/// The hazard's own words for each clause.
fn agrees(line: &str, clause: &str) -> bool {
    match clause {
        NOT_MADE_UP => line.ends_with("nothing runs instead") || line.ends_with("it does not fire"),
        REGULAR_STAYS => line.contains("the regular fire at "),
        MADE_UP => line.contains("it fires once, at "),
        BOTH_TIMES => line.ends_with("it runs both times") || line.contains(" and again at "),
        FIRST_TIME => line.contains("overlap FIRST: it fires at ") && line.contains(", not at "),
        SECOND_TIME => line.contains("overlap SECOND: it fires at ") && line.contains(", not at "),
        other => panic!("{other}"),
    }
}

#[test]
fn hazards_and_the_line_of_daylight_saving_agree_with_a_walk() {
    let mut rng = Rng(8);
    let mut noticed = 0;
    for _ in 0..250 {
        let name = *rng.pick(&ZONES);
        let zone = TimeZone::get(name).unwrap();
        let (gap, overlap) =
            (*rng.pick(&[Gap::Shift, Gap::Skip]), *rng.pick(&[Overlap::First, Overlap::Second, Overlap::Both]));
        let dense = *rng.pick(&[0, 30, 80]);
        let mut model =
            model(&mut rng, Shape { dialect: Dialect::Unix, fields: 5, specials: false, dense, years: (1970, 2099) });
        // Dates would make it miss nearly all changes.
        let fields: Vec<&str> = model.text.split(' ').collect();
        let mut hour = fields[1].to_owned();
        if rng.chance(70) {
            // Random hours would miss most of them too.
            let (text, hours, open): &(&str, &[i64], bool) = rng.pick(&HOURS);
            (hour, model.hours, model.open[2]) = ((*text).to_owned(), hours.iter().copied().collect(), *open);
        }
        model.text = format!("{} {hour} * * *", fields[0]);
        (model.days, model.weekdays, model.both) = (None, None, false);
        model.months = (1..=12).collect();
        let schedule = schedule(&model.text, Dialect::Unix, name, gap, overlap);
        let from = rng.of(ms("2024-01-01T00:00:00Z"), ms("2032-01-01T00:00:00Z")) / 1_000;
        let changes = changes(&zone, from);
        let walk = Walk { zone: &zone, gap, overlap, step: 60 };
        let concerned: Vec<_> = changes.iter().filter_map(|change| seen(&model, &walk, *change)).collect();
        let context = format!("{} {name} {gap} {overlap} from {from}", model.text);

        let mut clauses: Vec<&str> = Vec::new();
        for (clause, _) in concerned.iter().flatten() {
            if !clauses.contains(clause) {
                clauses.push(clause);
            }
        }
        clauses.sort_by_key(|clause| clause.starts_with("a time that comes twice"));
        let expected = match () {
            () if changes.is_empty() => NO_CHANGE.to_owned(),
            () if concerned.is_empty() => UNTOUCHED.to_owned(),
            () if clauses.is_empty() => AS_EVER.to_owned(),
            () => clauses.join(", "),
        };
        let line = daylight_saving(&schedule, from * 1_000);
        assert_eq!(line.split_once("; ").unwrap().1, expected, "{context}");

        let told: Vec<String> =
            hazards(&schedule, from * 1_000).into_iter().filter(|line| line.contains(name)).collect();
        let expected: Vec<&(&str, String)> = concerned.iter().flatten().collect();
        assert_eq!(told.len(), expected.len(), "{context}: {told:?} {expected:?}");
        for (line, (clause, words)) in told.iter().zip(expected) {
            let (first, verb) = words.split_at(16);
            assert!(line.starts_with(first), "{context}: {line} {clause}");
            assert!(line.contains(verb), "{context}: {line} {clause}");
            assert!(agrees(line, clause), "{context}: {line} {clause}");
            noticed += 1;
        }
    }
    assert!(noticed > 150, "only {noticed} changes were noticed");
}
