//! Our schedules against two public crates, over thousands of generated expressions and zones, away from changes of
//! the clock. Where we mean something else on purpose, the difference is listed with its reason, and each listed
//! difference must show.

use crate::cron_model::generate::{Shape, model};
use crate::cron_model::{Model, Rng};
use campanile_core::cron::{CronExpr, CronSchedule};
use campanile_schema::job::{Dialect, Gap, Overlap};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::parser::CronParser;
use jiff::{Timestamp, tz::TimeZone};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Zones on which the crates' database (2025b) and ours agree in the years of these tests.
const ZONES: [&str; 10] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Asia/Shanghai",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "America/St_Johns",
];
/// Instants from which a schedule is asked: 2020 to 2026.
const FROM_MS: (i64, i64) = (1_577_836_800_000, 1_767_225_600_000);
/// Fires compared of one schedule.
const FIRES: usize = 4;
/// A fire this near to a change of the clock is not compared: there the policies differ. Seconds.
const NEAR_CHANGE: i64 = 36 * 3_600;

type Applies = fn(&Model) -> bool;

/// Where we differ from croner, and why.
const CRONER_DIFFERS: [(&str, Applies); 5] = [
    (
        "a day field that starts with * and names days (*/2) is joined to the other by AND, as in cronie; croner uses OR",
        |m| m.both,
    ),
    ("QUARTZ ranges wrap (NOV-FEB); croner refuses them", wraps),
    ("L-3 and L-3W count back from the last day; croner refuses them", |m| m.text.contains("L-")),
    ("L and LW in one list are two days; croner keeps LW only", |m| {
        let mut items = field(m, 2).split(',');
        items.clone().any(|item| item == "L") && items.any(|item| item == "LW")
    }),
    ("1/3 as a UNIX weekday ends on Saturday; croner goes on to Sunday as 7", |m| {
        m.dialect == Dialect::Unix
            && field(m, 4).split(',').any(|item| item.contains('/') && !item.contains(['-', '*']))
    }),
];

/// Where we differ from cron, and why.
const CRON_DIFFERS: [(&str, Applies); 3] = [
    ("QUARTZ ranges wrap (NOV-FEB); cron refuses them", wraps),
    ("JAN-3 mixes a name and a number; cron refuses it", |m| ranges(m).any(|(from, to)| named(from) != named(to))),
    ("JAN/3 steps from a name; cron refuses it", |m| {
        items(m).any(|item| item.split_once('/').is_some_and(|(from, _)| named(from) && !from.contains('-')))
    }),
];

fn field(model: &Model, index: usize) -> &str {
    let fields: Vec<&str> = model.text.split(' ').collect();
    fields[index + usize::from(fields.len() > 5)]
}

fn items(model: &Model) -> impl Iterator<Item = &str> {
    model.text.split([' ', ','])
}

/// Both ends of the ranges, as written.
fn ranges(model: &Model) -> impl Iterator<Item = (&str, &str)> {
    items(model)
        .filter(|item| !item.starts_with('L'))
        .filter_map(|item| item.split('/').next().and_then(|range| range.split_once('-')))
}

fn named(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// Whether a range runs over the end of its field.
fn wraps(model: &Model) -> bool {
    const NAMES: [&str; 2] = ["jan feb mar apr may jun jul aug sep oct nov dec", "sun mon tue wed thu fri sat"];
    let number = |text: &str| {
        let of_name = |names: &&str| names.find(&text.to_lowercase()).map(|at| at / 4 + 1);
        text.parse().ok().or_else(|| NAMES.iter().find_map(of_name)).unwrap()
    };
    ranges(model).any(|(from, to)| number(from) > number(to))
}

/// What another implementation says to one question.
enum Other {
    Refused,
    /// The next fire, milliseconds; `None` = none found.
    Next(Option<i64>),
}

/// Compares the next fires; the first difference in words.
fn compare(schedule: &CronSchedule, from: i64, mut other: impl FnMut(i64) -> Other) -> Compared {
    let mut at = from;
    let mut same = 0;
    while same < FIRES {
        let ours = schedule.next_fire(at);
        let theirs = match other(at) {
            Other::Refused => return Compared::Differ("refused by the other".to_owned()),
            Other::Next(theirs) => theirs,
        };
        if [Some(at), ours, theirs].into_iter().flatten().any(|at| near_change(&schedule.zone, at)) {
            break;
        }
        if ours != theirs {
            let show = |at: Option<i64>| at.map(|at| Timestamp::from_millisecond(at).unwrap().to_string());
            return Compared::Differ(format!(
                "after {:?}: ours {:?}, theirs {:?}",
                show(Some(at)),
                show(ours),
                show(theirs)
            ));
        }
        same += 1;
        match ours {
            None => break,
            Some(next) => at = next,
        }
    }
    Compared::Same(same)
}

enum Compared {
    /// So many fires were equal.
    Same(usize),
    Differ(String),
}

fn near_change(zone: &TimeZone, at_ms: i64) -> bool {
    let from = Timestamp::from_second(at_ms / 1_000 - NEAR_CHANGE).unwrap();
    zone.following(from).next().is_some_and(|change| change.timestamp().as_second() < at_ms / 1_000 + NEAR_CHANGE)
}

/// Runs `cases` generated expressions through ours and another implementation.
fn differential(
    seed: u64,
    cases: usize,
    shapes: &[(Dialect, usize, bool)],
    known: &[(&str, Applies)],
    ask: impl Fn(&Model, Tz, i64) -> Other,
) {
    let mut rng = Rng(seed);
    let mut equal = 0;
    let mut shown: BTreeMap<&str, u32> = BTreeMap::new();
    let mut unknown = Vec::new();
    for _ in 0..cases {
        let (dialect, fields, specials) = *rng.pick(shapes);
        let shape = Shape { dialect, fields, specials, dense: *rng.pick(&[0, 40]), years: (2020, 2035) };
        let model = model(&mut rng, shape);
        let zone = *rng.pick(&ZONES);
        let Ok((expr, _)) = CronExpr::parse(&model.text, dialect, 0) else {
            continue; // never fires: covered by the properties
        };
        let schedule = CronSchedule::new(expr, zone, Gap::Shift, Overlap::First).unwrap();
        let from = rng.of(FROM_MS.0, FROM_MS.1);
        let tz: Tz = zone.parse().unwrap();
        match compare(&schedule, from, |at| ask(&model, tz, at)) {
            Compared::Same(fires) => equal += fires,
            Compared::Differ(how) => match known.iter().find(|(_, applies)| applies(&model)) {
                Some((reason, _)) => *shown.entry(reason).or_default() += 1,
                None => unknown.push(format!("{} {} {zone}: {how}", model.dialect, model.text)),
            },
        }
    }
    let total = unknown.len();
    unknown.truncate(20);
    assert!(unknown.is_empty(), "{total} differences without a known reason, the first:\n{}", unknown.join("\n"));
    assert!(equal > cases, "only {equal} fires of {cases} expressions could be compared");
    for (reason, _) in known {
        assert!(shown.contains_key(reason), "this difference shows no more, take it from the list: {reason}");
    }
}

fn in_zone(at_ms: i64, tz: Tz) -> DateTime<Tz> {
    DateTime::<Utc>::from_timestamp_millis(at_ms).unwrap().with_timezone(&tz)
}

#[test]
fn croner_agrees_away_from_changes_of_the_clock() {
    let shapes = [
        (Dialect::Unix, 5, false),
        (Dialect::Unix, 5, true),
        (Dialect::Unix, 6, true),
        (Dialect::Unix, 7, true),
        (Dialect::Quartz, 6, true),
        (Dialect::Quartz, 7, true),
    ];
    differential(11, 25_000, &shapes, &CRONER_DIFFERS, |model, tz, at| {
        let parser =
            CronParser::builder().alternative_weekdays(model.dialect == Dialect::Quartz).sloppy_ranges(true).build();
        match parser.parse(&model.text) {
            Err(_) => Other::Refused,
            Ok(cron) => {
                let next = cron.find_next_occurrence(&in_zone(at, tz), false);
                Other::Next(next.ok().map(|next| next.timestamp_millis()))
            }
        }
    });
}

#[test]
fn cron_agrees_away_from_changes_of_the_clock() {
    let shapes = [(Dialect::Quartz, 6, false), (Dialect::Quartz, 7, false)];
    differential(12, 3_000, &shapes, &CRON_DIFFERS, |model, tz, at| match cron::Schedule::from_str(&model.text) {
        Err(_) => Other::Refused,
        Ok(schedule) => Other::Next(schedule.after(&in_zone(at, tz)).next().map(|next| next.timestamp_millis())),
    });
}
