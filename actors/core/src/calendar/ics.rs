//! Reads the whole days of an iCalendar file (RFC 5545), as public holidays are published: events of whole days, with a length, and yearly
//! repetition.
//!
//! Strict: what would change the days and is not understood is refused with its line, so that no holiday is lost silently. What says nothing
//! about days (SUMMARY, UID, DESCRIPTION and others) is passed over. Never more memory than the text has.

use super::{
    date_of, day_number,
    rules::{Rule, kept},
};
use campanile_schema::{
    calendar::{CalendarDate, DateRange, DayRules, MonthlyRule},
    limits::{CALENDAR_DATES, ICS_BYTES, ICS_EVENT_DAYS},
};

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IcsError {
    #[error("the file has {bytes} bytes; at most {ICS_BYTES} are read")]
    TooLarge { bytes: usize },
    #[error("the file is not UTF-8")]
    NotText,
    #[error("line {line}: {why}")]
    Line { line: usize, why: String },
}

/// One event, as far as it was read.
#[derive(Default)]
struct Draft {
    start: Option<CalendarDate>,
    end: Option<CalendarDate>,
    days: Option<i64>,
    yearly: bool,
    canceled: bool,
}

/// The days that the events of a file name.
pub fn read(bytes: &[u8]) -> Result<DayRules, IcsError> {
    if bytes.len() > ICS_BYTES {
        return Err(IcsError::TooLarge { bytes: bytes.len() });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| IcsError::NotText)?;
    let mut found = DayRules::default();
    let mut open: Vec<String> = Vec::new();
    let mut event = Draft::default();
    let mut begun = false;
    for (line, content) in unfolded(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        let wrong = |why: String| IcsError::Line { line, why };
        let (name, params, value) = property(&content).ok_or_else(|| wrong("no NAME:VALUE".to_owned()))?;
        match name.as_str() {
            "BEGIN" => {
                let component = value.to_ascii_uppercase();
                if open.is_empty() && (component != "VCALENDAR" || begun) {
                    return Err(wrong("the file is not one VCALENDAR".to_owned()));
                }
                begun = true;
                if component == "VEVENT" {
                    event = Draft::default();
                }
                open.push(component);
            }
            "END" => {
                let component = value.to_ascii_uppercase();
                if open.pop().as_ref() != Some(&component) {
                    return Err(wrong(format!("END:{component} without its BEGIN")));
                }
                if component == "VEVENT" {
                    add(&mut found, &std::mem::take(&mut event)).map_err(wrong)?;
                }
            }
            _ if open.is_empty() => return Err(wrong("the file is not one VCALENDAR".to_owned())),
            _ if open.last().is_some_and(|component| component == "VEVENT") => {
                take(&mut event, &name, params, value).map_err(wrong)?;
            }
            _ => {}
        }
    }
    match open.last() {
        Some(component) => Err(IcsError::Line { line: text.lines().count(), why: format!("no END:{component}") }),
        None if !begun => Err(IcsError::Line { line: 1, why: "the file is not one VCALENDAR".to_owned() }),
        None => Ok(found),
    }
}

/// Lines without their folds, with the number of their first one. Empty lines are passed over.
fn unfolded(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(more), Some((_, before))) => before.push_str(more),
            (_, _) if line.trim().is_empty() => {}
            (_, _) => lines.push((n + 1, line.to_owned())),
        }
    }
    lines
}

/// Name, params and value; a colon in quotes belongs to the params.
fn property(line: &str) -> Option<(String, &str, &str)> {
    let mut quoted = false;
    let colon = line.bytes().position(|b| {
        quoted ^= b == b'"';
        b == b':' && !quoted
    })?;
    let (head, value) = (&line[..colon], &line[colon + 1..]);
    let (name, params) = head.split_once(';').unwrap_or((head, ""));
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    is_name.then(|| (name.to_ascii_uppercase(), params, value.trim()))
}

fn take(event: &mut Draft, name: &str, params: &str, value: &str) -> Result<(), String> {
    match name {
        "DTSTART" => event.start = Some(date(params, value)?),
        "DTEND" => event.end = Some(date(params, value)?),
        "DURATION" => event.days = Some(duration(value)?),
        "RRULE" => {
            let parts = value.to_ascii_uppercase();
            let known = ["FREQ=YEARLY", "INTERVAL=1"];
            if !parts.split(';').all(|part| known.contains(&part)) || !parts.contains("FREQ=YEARLY") {
                return Err(format!("RRULE:{} is not supported; only FREQ=YEARLY is", short(value)));
            }
            event.yearly = true;
        }
        "STATUS" => event.canceled = value.eq_ignore_ascii_case("CANCELLED"),
        "RDATE" | "EXDATE" | "EXRULE" | "RECURRENCE-ID" => {
            return Err(format!("{name} is not supported; write the days as events of their own"));
        }
        _ => {}
    }
    Ok(())
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

fn date(params: &str, value: &str) -> Result<CalendarDate, String> {
    let is_digits = value.len() == 8 && value.bytes().all(|b| b.is_ascii_digit());
    let named = params.split(';').any(|param| param.eq_ignore_ascii_case("VALUE=DATE"));
    if !is_digits {
        let why = if named { "is not a date" } else { "is no whole day; only events of whole days are read" };
        return Err(format!("'{}' {why}", short(value)));
    }
    let number = |range: std::ops::Range<usize>| value[range].parse::<i16>().unwrap_or_default();
    let (month, day) = (i8::try_from(number(4..6)), i8::try_from(number(6..8)));
    let found = match (month, day) {
        (Ok(month), Ok(day)) => CalendarDate::new(number(0..4), month, day),
        (_, _) => None,
    };
    found.ok_or_else(|| format!("'{value}' is not a date"))
}

fn duration(value: &str) -> Result<i64, String> {
    let unit = |letter: char, days: i64| {
        let count = value.strip_prefix('P')?.strip_suffix(letter)?;
        count.parse::<u16>().ok().map(|count| i64::from(count) * days)
    };
    unit('D', 1).or_else(|| unit('W', 7)).ok_or_else(|| format!("DURATION:{} is not in days or weeks", short(value)))
}

fn add(found: &mut DayRules, event: &Draft) -> Result<(), String> {
    if event.canceled {
        return Ok(());
    }
    let start = event.start.ok_or("an event without DTSTART")?;
    let first = day_number(start);
    let last = match (event.end, event.days) {
        (Some(_), Some(_)) => return Err("an event with both DTEND and DURATION".to_owned()),
        // The end is the day after the last one.
        (Some(end), None) => day_number(end) - i64::from(kept(Rule::EndIsOutside)),
        (None, Some(days)) => first + days - 1,
        (None, None) => first,
    };
    if last < first {
        return Err("an event that ends before it begins".to_owned());
    }
    if last - first >= ICS_EVENT_DAYS {
        return Err(format!("an event of more than {ICS_EVENT_DAYS} days"));
    }
    if found.dates.len() + found.ranges.len() + found.monthly.len() >= CALENDAR_DATES {
        return Err(format!("more than {CALENDAR_DATES} events"));
    }
    let as_date = |day: i64| {
        let date = date_of(day)?;
        CalendarDate::new(date.year(), date.month(), date.day())
    };
    if event.yearly {
        for day in first..=last {
            let date = as_date(day).ok_or("an event beyond the calendar")?;
            found.monthly.push(MonthlyRule {
                month: Some(date.month()),
                day: Some(date.day()),
                ..MonthlyRule::default()
            });
        }
        return Ok(());
    }
    let to = as_date(last).ok_or("an event beyond the calendar")?;
    if first == last {
        found.dates.push(start);
    } else {
        found.ranges.push(DateRange { from: start, to });
    }
    Ok(())
}
