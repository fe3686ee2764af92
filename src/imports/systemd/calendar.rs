//! `OnCalendar=` of systemd as a cron expression of the UNIX dialect. What cannot be expressed there is refused by name.
//!
//! In systemd a weekday and a date must both match; in cron either is enough. What both say together is written with `#`, `L` or a step
//! that begins with `*`, or refused. `tests.rs` compares the instants with those of `systemd-analyze
//! calendar`.

use campanile_core::cron::find_zone;

/// An event of a calendar: an expression, and its zone if it names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub expr: String,
    pub zone: Option<String>,
}

const SHORTHANDS: [(&str, &str); 12] = [
    ("minutely", "*-*-* *:*:00"),
    ("hourly", "*-*-* *:00:00"),
    ("daily", "*-*-* 00:00:00"),
    ("monthly", "*-*-01 00:00:00"),
    ("weekly", "Mon *-*-* 00:00:00"),
    ("yearly", "*-01-01 00:00:00"),
    ("annually", "*-01-01 00:00:00"),
    ("anually", "*-01-01 00:00:00"),
    ("quarterly", "*-01,04,07,10-01 00:00:00"),
    ("semiannually", "*-01,07-01 00:00:00"),
    ("semi-annually", "*-01,07-01 00:00:00"),
    ("biannually", "*-01,07-01 00:00:00"),
];
const WEEKDAYS: [(&str, &str); 7] = [
    ("mon", "monday"),
    ("tue", "tuesday"),
    ("wed", "wednesday"),
    ("thu", "thursday"),
    ("fri", "friday"),
    ("sat", "saturday"),
    ("sun", "sunday"),
];
/// Longest event that is read, characters.
const LONGEST: usize = 512;

pub fn event(text: &str) -> Result<Event, String> {
    if text.chars().count() > LONGEST {
        return Err("is too long".to_owned());
    }
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let zone = words.last().filter(|word| words.len() > 1 && is_zone(word)).map(|word| (*word).to_owned());
    if zone.is_some() {
        words.pop();
    }
    let expanded = match words.as_slice() {
        [word] => SHORTHANDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, event)| *event),
        _ => None,
    };
    if let Some(event) = expanded {
        words = event.split_whitespace().collect();
    }
    let mut rest = words.as_slice();
    let mut next = |is: &dyn Fn(&str) -> bool| match rest {
        [word, after @ ..] if is(word) => {
            rest = after;
            Some(*word)
        }
        _ => None,
    };
    let weekdays = next(&|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
    let date = next(&|word| (word.contains('-') || word.contains('~')) && !word.contains(':'));
    let time = next(&|word| word.contains(':'));
    match rest {
        [] if !words.is_empty() => {}
        [word, ..] => return Err(format!("'{word}' is neither a weekday, a date, a time nor a time zone")),
        [] => return Err("is empty".to_owned()),
    }
    let (year, month, day) = date_fields(date.unwrap_or("*-*-*"))?;
    let [hour, minute, second] = time_fields(time.unwrap_or("00:00"))?;
    let (day, weekday) = days(day, weekdays)?;
    let mut fields = vec![minute, hour, day, month, weekday];
    if second != "0" || year != "*" {
        fields.insert(0, second);
    }
    if year != "*" {
        fields.push(year);
    }
    Ok(Event { expr: fields.join(" "), zone })
}

fn is_zone(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && weekday(word).is_none() && find_zone(word).is_ok()
}

/// Days of a month.
enum Day {
    /// As cron writes them.
    Items(String),
    /// The n-th from the end, from 1.
    FromEnd(u32),
    /// The last seven.
    LastWeek,
}

fn date_fields(text: &str) -> Result<(String, String, Day), String> {
    let (before, from_end) = match text.rsplit_once('~') {
        Some((before, day)) => (before, Some(day)),
        None => (text, None),
    };
    let mut parts: Vec<&str> = before.split('-').collect();
    let day = match from_end {
        Some(day) => from_the_end(day)?,
        None => Day::Items(items(parts.pop().unwrap_or_default(), "day")?),
    };
    let month = items(parts.pop().unwrap_or_default(), "month")?;
    let year = match parts.as_slice() {
        [] => "*".to_owned(),
        [year] => items(year, "year")?,
        _ => return Err(format!("the date '{text}' has too many parts")),
    };
    Ok((year, month, day))
}

fn from_the_end(day: &str) -> Result<Day, String> {
    if day.trim_start_matches('0') == "7/1" {
        return Ok(Day::LastWeek);
    }
    day.parse()
        .ok()
        .filter(|day| (1..=28).contains(day))
        .map(Day::FromEnd)
        .ok_or_else(|| format!("'~{day}' cannot be expressed: only one day from the end of the month can"))
}

fn time_fields(text: &str) -> Result<[String; 3], String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hour, minute, second) = match parts.as_slice() {
        [hour, minute] => (*hour, *minute, "0"),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return Err(format!("the time '{text}' is not hours:minutes or hours:minutes:seconds")),
    };
    if second.split(',').any(|item| item.split("..").any(|value| value.contains('.'))) {
        return Err("fractions of a second cannot be expressed".to_owned());
    }
    Ok([items(hour, "hour")?, items(minute, "minute")?, items(second, "second")?])
}

/// `*`, or a list of numbers, ranges and steps, as cron writes it.
fn items(text: &str, field: &str) -> Result<String, String> {
    if text == "*" {
        return Ok("*".to_owned());
    }
    let number = |text: &str| match text.parse::<u32>() {
        // As systemd reads years of two digits.
        Ok(year @ 0..70) if field == "year" => Ok(year + 2000),
        Ok(year @ 70..100) if field == "year" => Ok(year + 1900),
        Ok(number) if text.chars().all(|c| c.is_ascii_digit()) => Ok(number),
        Ok(_) | Err(_) => Err(format!("'{text}' is not a value of the field '{field}'")),
    };
    let item = |item: &str| {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(number_of(step).ok_or_else(|| format!("'{step}' is not a step"))?)),
            None => (item, None),
        };
        let mut written = match range.split_once("..") {
            Some((from, to)) => format!("{}-{}", number(from)?, number(to)?),
            None => number(range)?.to_string(),
        };
        if let Some(step) = step {
            written = format!("{written}/{step}");
        }
        Ok(written)
    };
    let items: Result<Vec<String>, String> = text.split(',').map(item).collect();
    items.map(|items| items.join(","))
}

fn number_of(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number > 0)
}

/// Day and weekday fields that are due when both match.
fn days(day: Day, weekdays: Option<&str>) -> Result<(String, String), String> {
    let names = weekdays.map(weekday_items).transpose()?;
    let (day, names) = match (day, names) {
        (Day::Items(day), None) => return Ok((day, "*".to_owned())),
        (Day::FromEnd(1), None) => return Ok(("L".to_owned(), "*".to_owned())),
        (Day::FromEnd(day), None) => return Ok((format!("L-{}", day - 1), "*".to_owned())),
        (Day::LastWeek, None) => return Err("'~07/1' without a weekday cannot be expressed".to_owned()),
        (Day::Items(day), Some(names)) if day == "*" => return Ok((day, names)),
        (day, Some(names)) => (day, names),
    };
    let each = |mark: &str| {
        let list: Result<Vec<String>, String> =
            expand(&names)?.iter().map(|name| Ok(format!("{name}{mark}"))).collect();
        list.map(|list| ("*".to_owned(), list.join(",")))
    };
    match day {
        Day::LastWeek => each("L"),
        Day::Items(day) => match day.as_str() {
            "1-7" => each("#1"),
            "8-14" => each("#2"),
            "15-21" => each("#3"),
            "22-28" => each("#4"),
            // With a star in front both fields are necessary.
            other if other.starts_with("1/") && !other.contains(',') => Ok((other.replacen('1', "*", 1), names)),
            other => Err(both(other)),
        },
        Day::FromEnd(day) => Err(both(&format!("~{day}"))),
    }
}

fn both(day: &str) -> String {
    format!(
        "a weekday that must be on day {day} of the month too cannot be expressed: only weeks of the month (1..7, 8..14, 15..21, 22..28, \
         ~07/1) and steps from day 1 can"
    )
}

fn weekday(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    WEEKDAYS.iter().position(|(short, long)| name == *short || name == *long)
}

/// `MON-FRI,SUN`.
fn weekday_items(text: &str) -> Result<String, String> {
    let one = |name: &str| weekday(name).ok_or_else(|| format!("'{name}' is not a weekday"));
    let upper = |index: usize| WEEKDAYS[index].0.to_ascii_uppercase();
    let item = |item: &str| match item.split_once("..").or_else(|| item.split_once('-')) {
        Some((from, to)) => {
            let (from, to) = (one(from)?, one(to)?);
            if from > to {
                return Err(format!("'{item}' runs backwards"));
            }
            Ok(format!("{}-{}", upper(from), upper(to)))
        }
        None => one(item).map(upper),
    };
    let items: Result<Vec<String>, String> = text.trim_end_matches(',').split(',').map(item).collect();
    items.map(|items| items.join(","))
}

/// Every weekday of `MON-FRI,SUN`.
fn expand(names: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for item in names.split(',') {
        let (from, to) = item.split_once('-').unwrap_or((item, item));
        let (Some(from), Some(to)) = (weekday(from), weekday(to)) else {
            return Err(format!("'{item}' is not a weekday"));
        };
        found.extend(WEEKDAYS[from..=to].iter().map(|(name, _)| name.to_ascii_uppercase()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn events_become_expressions() {
        for (text, expr) in [
            ("daily", "0 0 * * *"),
            ("weekly", "0 0 * * MON"),
            ("quarterly", "0 0 1 1,4,7,10 *"),
            ("minutely", "* * * * *"),
            ("*-*-* 02:30", "30 2 * * *"),
            ("02:30", "30 2 * * *"),
            ("*:0/15", "0/15 * * * *"),
            ("*-*-* *:*:30", "30 * * * * *"),
            ("Mon..Fri 08..18/2:00", "0 8-18/2 * * MON-FRI"),
            ("Mon,Wed *-*-* 00:00:00", "0 0 * * MON,WED"),
            ("Monday", "0 0 * * MON"),
            ("*-06-01,15 04:00", "0 4 1,15 6 *"),
            ("06-01", "0 0 1 6 *"),
            ("2027..2029-01-01 00:00", "0 0 0 1 1 * 2027-2029"),
            ("*-*~01 18:00", "0 18 L * *"),
            ("*-02~03", "0 0 L-2 2 *"),
            ("Mon *-*-01..07 09:00", "0 9 * * MON#1"),
            ("Sat..Sun *-*-15..21", "0 0 * * SAT#3,SUN#3"),
            ("Fri *-05~07/1", "0 0 * 5 FRIL"),
            ("Mon *-*-01/2", "0 0 */2 * MON"),
        ] {
            assert_eq!(event(text), Ok(Event { expr: expr.to_owned(), zone: None }), "{text}");
        }
        let zoned = event("daily Europe/Berlin").unwrap();
        assert_eq!(zoned, Event { expr: "0 0 * * *".to_owned(), zone: Some("Europe/Berlin".to_owned()) });
        assert_eq!(event("*-*-* 02:30 UTC").unwrap().zone.as_deref(), Some("UTC"));
    }

    #[test]
    fn what_cannot_be_said_is_refused_by_name() {
        for (text, told) in [
            ("", "is empty"),
            ("*-*-* 00:00:00.5", "fractions of a second"),
            ("Mon *-*-01,15", "must be on day 1,15"),
            ("*-*~1,3", "'~1,3' cannot be expressed"),
            ("Mon *-*~01", "must be on day ~1"),
            ("*-*-*/2 00:00", "'*' is not a value of the field 'day'"),
            ("Fri..Mon 00:00", "runs backwards"),
            ("someday", "'someday' is not a weekday"),
            ("*-*-* 00:00 Mars/Base", "'Mars/Base' is neither"),
            ("@1395716396", "'@1395716396' is neither"),
            ("1:2:3:4", "is not hours:minutes"),
        ] {
            let why = event(text).unwrap_err();
            assert!(why.contains(told), "{text}: {why}");
        }
    }
}
