//! Calendars against data that this project has not made (`calendars/make.py`), and against a plain reading of their rules; what they refuse;
//! and iCalendar files. Each clause is broken once, and that is seen.

use campanile_core::calendar::{
    Calendar, CalendarError, day_number,
    ics::{IcsError, read},
    rules::{Rule, break_rule},
};
use campanile_schema::{calendar::CalendarSpec, limits::ICS_BYTES};
use std::fmt::Write as _;

const COUNTRIES: [(&str, &str, &str); 3] = [
    ("CN", include_str!("calendars/CN.json"), include_str!("calendars/CN.txt")),
    ("DE", include_str!("calendars/DE.json"), include_str!("calendars/DE.txt")),
    ("US", include_str!("calendars/US.json"), include_str!("calendars/US.txt")),
];

fn spec(text: &str) -> CalendarSpec {
    serde_json::from_str(text).unwrap()
}

fn calendar(text: &str) -> Calendar {
    Calendar::compile(&spec(text), Vec::new()).unwrap()
}

fn day(date: &str) -> i64 {
    day_number(date.parse().unwrap())
}

/// Year, month, and whether each of its days is worked.
fn months(known: &str) -> impl Iterator<Item = (i16, i8, Vec<bool>)> {
    known.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (year, rest) = line.split_once('-').unwrap();
        let (month, days) = rest.split_once(' ').unwrap();
        (year.parse().unwrap(), month.parse().unwrap(), days.chars().map(|worked| worked == '1').collect())
    })
}

/// All days of three countries, and the nth working days of each month.
fn agrees_with_others() -> Result<(), String> {
    for (country, written, known) in COUNTRIES {
        let calendar = calendar(written);
        let mut looked = 0;
        for (year, month, days) in months(known) {
            let first = day(&format!("{year}-{month:02}-01"));
            let numbers = (first..).zip(&days);
            for (number, worked) in numbers.clone() {
                if calendar.has(number) != *worked {
                    return Err(format!("{country} {year}-{month}-{}", number - first + 1));
                }
                looked += 1;
            }
            let worked: Vec<i64> = numbers.filter(|(_, worked)| **worked).map(|(number, _)| number).collect();
            let found = |nth: i32| calendar.nth_of_month(year, month, nth);
            let ends = [found(1), found(2), found(-1), found(-2)];
            let last = worked.len();
            if ends != [worked[0], worked[1], worked[last - 1], worked[last - 2]].map(Some)
                || found(last as i32 + 1).is_some()
                || calendar.next(first) != Some(worked[0])
            {
                return Err(format!("{country} {year}-{month}: {ends:?}"));
            }
        }
        assert!(looked > 1_400, "{country}: {looked} days");
    }
    Ok(())
}

/// Days that a company does not work, taken away from those of a country.
fn takes_away() -> bool {
    let company = calendar(r#"{"include": {"ranges": [{"from": "2026-12-24", "to": "2026-12-31"}]}}"#);
    let both = Calendar::compile(&spec(COUNTRIES[1].1), vec![company]).unwrap();
    let germany = calendar(COUNTRIES[1].1);
    (day("2026-12-01")..day("2027-01-20"))
        .all(|at| both.has(at) == (germany.has(at) && !(day("2026-12-24")..=day("2026-12-31")).contains(&at)))
}

/// Three days in spring, a single one with a length, one of each year, and one that was called off.
const FILE: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//y//EN\r\nBEGIN:VTIMEZONE\r\nDTSTART:19700101T000000\r\nEND:VTIMEZONE\r\n\
BEGIN:VEVENT\r\nSUMMARY:Three da\r\n ys: \"spring\"\r\nDTSTART;VALUE=DATE:20260404\r\nDTEND;VALUE=DATE:20260407\r\nEND:VEVENT\r\n\
BEGIN:VEVENT\r\nDTSTART;X-A=\"b:c\";VALUE=DATE:20260501\r\nDURATION:P1D\r\nEND:VEVENT\r\n\
BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20201225\r\nRRULE:FREQ=YEARLY\r\nEND:VEVENT\r\n\
BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20260601\r\nSTATUS:CANCELLED\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

fn reads_files() -> bool {
    let Ok(exclude) = read(FILE.as_bytes()) else { return false };
    let calendar = Calendar::compile(&CalendarSpec { exclude, ..CalendarSpec::default() }, Vec::new()).unwrap();
    let off: Vec<i64> = (day("2026-01-01")..=day("2027-12-31")).filter(|at| !calendar.has(*at)).collect();
    off == ["2026-04-04", "2026-04-05", "2026-04-06", "2026-05-01", "2026-12-25", "2027-12-25"].map(day)
}

#[test]
fn working_days_of_three_countries_agree_with_data_of_others() {
    assert_eq!(agrees_with_others(), Ok(()));
}

#[test]
fn one_calendar_is_taken_away_from_another() {
    assert!(takes_away());
}

#[test]
fn whole_days_of_an_icalendar_file_are_read() {
    assert!(reads_files());
}

#[test]
fn each_clause_of_calendars_that_is_broken_is_found() {
    for rule in Rule::ALL {
        break_rule(Some(rule));
        let found = agrees_with_others().is_err() || !takes_away() || !reads_files();
        break_rule(None);
        assert!(found, "{rule:?} is broken, and nothing shows it");
    }
}

#[test]
fn a_file_that_is_too_large_or_that_says_more_than_days_is_refused_with_its_line() {
    let fifty = vec![b'x'; 50 << 20];
    assert_eq!(read(&fifty), Err(IcsError::TooLarge { bytes: 50 << 20 }));
    assert_eq!(read(&[0xff, 0xfe]), Err(IcsError::NotText));
    let of =
        |lines: &str| read(format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n").as_bytes());
    for (lines, line, why) in [
        ("SUMMARY:x", 4, "an event without DTSTART"),
        ("DTSTART:20260101T100000Z", 3, "only events of whole days are read"),
        ("DTSTART;VALUE=DATE:20260230", 3, "'20260230' is not a date"),
        ("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=WEEKLY", 4, "only FREQ=YEARLY is"),
        ("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=YEARLY;COUNT=3", 4, "only FREQ=YEARLY is"),
        ("DTSTART;VALUE=DATE:20260101\nEXDATE;VALUE=DATE:20270101", 4, "EXDATE is not supported"),
        ("DTSTART;VALUE=DATE:20260103\nDTEND;VALUE=DATE:20260102", 5, "ends before it begins"),
        ("DTSTART;VALUE=DATE:20260101\nDTEND;VALUE=DATE:20290102", 5, "of more than 366 days"),
        ("DTSTART;VALUE=DATE:20260101\nDURATION:PT5H", 4, "not in days or weeks"),
        ("nothing", 3, "no NAME:VALUE"),
        ("END:VALARM", 3, "END:VALARM without its BEGIN"),
    ] {
        let Err(IcsError::Line { line: at, why: told }) = of(lines) else { panic!("{lines}") };
        assert_eq!(at, line, "{lines}: {told}");
        assert!(told.contains(why), "{lines}: {told}");
    }
    for broken in ["", "BEGIN:VEVENT\nEND:VEVENT", "BEGIN:VCALENDAR", "BEGIN:VCALENDAR\nEND:VCALENDAR\nBEGIN:VCALENDAR"]
    {
        assert!(matches!(read(broken.as_bytes()), Err(IcsError::Line { .. })), "{broken}");
    }
    let mut many = "BEGIN:VCALENDAR\n".to_owned();
    while many.len() < ICS_BYTES - 200 {
        let _ = write!(many, "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20260101\nEND:VEVENT\n");
    }
    let Err(IcsError::Line { why, .. }) = read(many.as_bytes()) else { panic!("all were read") };
    assert!(why.contains("more than 2048 events"), "{why}");
}

#[test]
fn a_calendar_that_removes_every_day_is_refused() {
    let today = day("2026-06-21");
    for text in [
        r#"{"exclude": {"weekly": ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]}}"#,
        r#"{"include": {"dates": ["2026-06-20"]}}"#,
        r#"{"exclude": {"weekly": ["SUN"]}, "validThrough": "2026-06-21"}"#,
        r#"{"validThrough": "2026-06-20"}"#,
    ] {
        assert!(matches!(calendar(text).check(today), Err(CalendarError::Empty { .. })), "{text}");
    }
    assert_eq!(calendar(r#"{"include": {"dates": ["2031-06-19"]}}"#).check(today), Ok(()));
    let everything = Calendar::compile(&CalendarSpec::default(), vec![calendar("{}")]).unwrap();
    assert!(everything.check(today).is_err(), "a calendar minus itself");
}

#[test]
fn wrong_rules_are_refused_with_their_field() {
    for (text, why) in [
        (r#"{"exclude": {"monthly": [{"day": 0}]}}"#, "exclude.monthly"),
        (r#"{"exclude": {"monthly": [{"day": 1, "weekday": "MON", "nth": 1}]}}"#, "exclude.monthly"),
        (r#"{"exclude": {"monthly": [{"weekday": "MON"}]}}"#, "exclude.monthly"),
        (r#"{"exclude": {"monthly": [{"month": 13, "day": 1}]}}"#, "exclude.monthly"),
        (r#"{"makeUp": {"ranges": [{"from": "2026-02-01", "to": "2026-01-01"}]}}"#, "makeUp.ranges"),
        (r#"{"include": {"easter": [400]}}"#, "include.easter"),
    ] {
        let refused = Calendar::compile(&spec(text), Vec::new()).unwrap_err().to_string();
        assert!(refused.starts_with(why), "{text}: {refused}");
    }
}
