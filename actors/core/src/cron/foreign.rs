//! Schedules of other systems that are handed in as a cron expression: which one it is, and what to write here instead.
//!
//! Only asked when a text could not be read, so it may be slow and guess: a text that is an expression never comes here.

use super::error::CronError;

/// The system that `text` is written for, as the refusal to give. `None`: nothing that is known.
pub(super) fn refusal(text: &str) -> Option<CronError> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    [zone_in_front, call, every, iso_8601, calendar_rule, on_calendar]
        .into_iter()
        .find_map(|known| known(text, &lower))
        .map(|ForeignAdvice { what, instead }| CronError::at(0, what).suggest(instead))
}

struct ForeignAdvice {
    what: String,
    instead: String,
}

fn advice(what: impl Into<String>, instead: impl Into<String>) -> Option<ForeignAdvice> {
    Some(ForeignAdvice { what: what.into(), instead: instead.into() })
}

/// What to write for an interval.
fn interval(seconds: Option<u64>) -> String {
    match seconds {
        Some(seconds) => format!(
            "use a trigger of type FIXED_RATE with everySec {seconds} (--every {seconds}s, in a manifest every: {seconds}s)"
        ),
        None => "use a trigger of type FIXED_RATE (--every TIME, in a manifest every: TIME)".to_owned(),
    }
}

/// `TZ=America/Denver 0 14 * * 1-5`, as Go's robfig/cron and crontabs have it.
fn zone_in_front(text: &str, lower: &str) -> Option<ForeignAdvice> {
    let prefix = ["cron_tz=", "tz="].into_iter().find(|prefix| lower.starts_with(prefix))?;
    let (zone, rest) = text[prefix.len()..].split_once([' ', '\t']).unwrap_or((&text[prefix.len()..], ""));
    let rest = if rest.trim().is_empty() { "the expression alone" } else { rest.trim() };
    advice(
        format!("{} in front of the expression is a form of crontabs and of robfig/cron", &text[..prefix.len()]),
        format!("give the zone apart: expr '{rest}', timezone '{zone}' (--tz {zone}, in a manifest timeZone: {zone})"),
    )
}

/// `cron(0 12 * * ? *)`, `rate(5 minutes)` and `at(...)` of Amazon EventBridge.
fn call(text: &str, lower: &str) -> Option<ForeignAdvice> {
    let (name, inner) = text.strip_suffix(')')?.split_once('(')?;
    let inner = inner.trim();
    match &lower[..name.len()] {
        "cron" => {
            let instead = match inner.split_whitespace().count() {
                6 => format!("write '0 {inner}' with dialect QUARTZ: here the seconds come first"),
                _ => format!("write '{inner}' without cron( )"),
            };
            advice("cron(...) is a form of Amazon EventBridge", instead)
        }
        "rate" => {
            let (count, unit) = inner.split_once(' ').unwrap_or((inner, ""));
            let seconds = count.parse::<u64>().ok().zip(unit_seconds(unit.trim()));
            let seconds = seconds.and_then(|(count, unit)| count.checked_mul(unit));
            advice("rate(...) is a form of Amazon EventBridge", interval(seconds))
        }
        "at" => advice(
            "at(...) is a form of Amazon EventBridge",
            format!("use a trigger of type ONCE with at '{inner}' and an offset, e.g. Z for UTC"),
        ),
        _ => None,
    }
}

/// Seconds of a unit by its English name.
fn unit_seconds(unit: &str) -> Option<u64> {
    match unit.to_ascii_lowercase().trim_end_matches('s') {
        "second" | "sec" => Some(1),
        "minute" | "min" => Some(60),
        "hour" => Some(3_600),
        "day" => Some(86_400),
        "week" => Some(604_800),
        _ => None,
    }
}

/// `@every 5m` of robfig/cron, `every 5 minutes` of App Engine.
fn every(text: &str, lower: &str) -> Option<ForeignAdvice> {
    if let Some(rest) = lower.strip_prefix("@every") {
        return advice(
            "@every is not a calendar schedule, but an interval of robfig/cron",
            interval(go_duration(rest)),
        );
    }
    let rest = text.get("every ".len()..).filter(|_| lower.starts_with("every "))?;
    let mut words = rest.split_whitespace();
    let seconds = match (words.next().map(str::parse::<u64>), words.next()) {
        (Some(Ok(count)), Some(unit)) => unit_seconds(unit).and_then(|unit| count.checked_mul(unit)),
        (_, _) => None,
    };
    let instead = match seconds {
        Some(_) => interval(seconds),
        None => {
            "write a cron expression, e.g. '0 9 * * MON' for every Monday at 09:00; or a trigger of type FIXED_RATE \
                 for an interval"
                .to_owned()
        }
    };
    advice("'every ...' is a form of App Engine's cron.yaml", instead)
}

/// Whole seconds of Go's durations: `5m`, `1h30m`, `1.5h`. Shorter than a second is one second, as in robfig/cron.
pub fn go_duration(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 8] = [
        ("h", 3_600.0),
        ("m", 60.0),
        ("s", 1.0),
        ("ms", 1e-3),
        ("us", 1e-6),
        ("\u{b5}s", 1e-6),
        ("\u{3bc}s", 1e-6),
        ("ns", 1e-9),
    ];
    let mut rest = text.trim();
    let (mut seconds, mut parts) = (0.0, 0);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, after) = after.split_at(after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len()));
        let (_, of_unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
        seconds += number.parse::<f64>().ok()? * of_unit;
        (rest, parts) = (after, parts + 1);
    }
    // Of a float that is nearly whole the whole number is meant.
    (parts > 0 && seconds < 1e12).then(|| ((seconds + 1e-9) as u64).max(1))
}

/// `R/2026-01-01T00:00:00Z/PT1H` and `PT5M`.
fn iso_8601(text: &str, _: &str) -> Option<ForeignAdvice> {
    let repeats = text.starts_with('R') && text.contains("/P");
    let is_duration = text.starts_with('P')
        && text.len() > 2
        && text[1..].chars().all(|c| c.is_ascii_digit() || "YMWDTHS.".contains(c))
        && text.contains(|c: char| c.is_ascii_digit());
    (repeats || is_duration).then(|| ForeignAdvice {
        what: "this is an interval of ISO 8601".to_owned(),
        instead: format!("{}; its start is anchorAt", interval(None)),
    })
}

/// `RRULE:FREQ=DAILY;BYHOUR=9`.
fn calendar_rule(_: &str, lower: &str) -> Option<ForeignAdvice> {
    (lower.contains("freq=")).then(|| ForeignAdvice {
        what: "this is a recurrence rule of iCalendar (RRULE)".to_owned(),
        instead: "write a cron expression, e.g. '0 9 * * MON' for FREQ=WEEKLY;BYDAY=MO;BYHOUR=9".to_owned(),
    })
}

/// `Mon..Fri *-*-* 09:00`, `daily`: what systemd calls OnCalendar.
fn on_calendar(text: &str, lower: &str) -> Option<ForeignAdvice> {
    const WORDS: [(&str, &str); 9] = [
        ("minutely", "* * * * *"),
        ("hourly", "@hourly"),
        ("daily", "@daily"),
        ("weekly", "0 0 * * MON"),
        ("monthly", "@monthly"),
        ("quarterly", "0 0 1 1,4,7,10 *"),
        ("semiannually", "0 0 1 1,7 *"),
        ("yearly", "@yearly"),
        ("annually", "@yearly"),
    ];
    let named = lower.starts_with("oncalendar=");
    let start = if named { "oncalendar=".len() } else { 0 };
    let (text, lower) = (text[start..].trim(), lower[start..].trim());
    let what = "this is a calendar event of systemd (OnCalendar)";
    if let Some((_, instead)) = WORDS.iter().find(|(word, _)| *word == lower) {
        return advice(what, format!("write '{instead}'"));
    }
    let is_time = |word: &str| {
        word.contains(':') && word.chars().all(|c| c.is_ascii_digit() || ":*/,.~".contains(c)) && word.len() > 2
    };
    let is_date = |word: &str| {
        let parts = word.split('-').count();
        (2..=3).contains(&parts)
            && word.chars().all(|c| c.is_ascii_digit() || "-*/,.~".contains(c))
            && word.contains("-*")
            || parts == 3 && word.len() == 10 && word.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    let looks = named || text.split_whitespace().any(|word| is_time(word) || is_date(word) || word.contains(".."));
    if !looks {
        return None;
    }
    let instead = match as_cron(text) {
        Some((expr, Some(zone))) => format!("write '{expr}' with timezone '{zone}'"),
        Some((expr, None)) => format!("write '{expr}'"),
        None => "write a cron expression, e.g. '0 9 * * MON-FRI' for Mon..Fri *-*-* 09:00".to_owned(),
    };
    advice(what, instead)
}

/// The plain ones as UNIX expressions: weekdays, day and month, hour and minute.
fn as_cron(text: &str) -> Option<(String, Option<&str>)> {
    let mut words = text.split_whitespace().peekable();
    let weekdays = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
    let date = words.next_if(|word| word.contains('-'));
    let time = words.next_if(|word| word.contains(':'));
    let zone = words.next();
    let plain = |part: &str| part == "*" || !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || c == ',');
    let weekdays = match weekdays {
        None => "*".to_owned(),
        Some(names) => names
            .split(',')
            .map(|item| item.split("..").map(|day| day.get(..3)).collect::<Option<Vec<_>>>().map(|days| days.join("-")))
            .collect::<Option<Vec<_>>>()?
            .join(",")
            .to_ascii_uppercase(),
    };
    let mut of_date: Vec<&str> = date.unwrap_or("*-*-*").split('-').collect();
    if of_date.len() == 2 {
        of_date.insert(0, "*");
    }
    let of_time: Vec<&str> = time.unwrap_or("00:00").split(':').collect();
    let (["*", month, day], [hour, minute, seconds @ ..]) = (of_date.as_slice(), of_time.as_slice()) else {
        return None;
    };
    let seconds_are_0 = seconds.iter().all(|second| second.trim_matches('0').is_empty());
    let all = [month, day, hour, minute];
    let over = words.next().is_some() || !seconds_are_0 || !all.iter().all(|part| plain(part));
    let number = |part: &str| match part.trim_start_matches('0') {
        "" => "0".to_owned(),
        rest => rest.to_owned(),
    };
    (!over).then(|| (format!("{} {} {} {} {weekdays}", number(minute), number(hour), number(day), number(month)), zone))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn schedules_of_other_systems_are_named_with_what_to_write_instead() {
        for (text, system, instead) in [
            ("cron(0 12 * * ? *)", "Amazon EventBridge", "write '0 0 12 * * ? *' with dialect QUARTZ"),
            ("CRON(0/15 10 ? * MON-FRI *)", "Amazon EventBridge", "write '0 0/15 10 ? * MON-FRI *'"),
            ("rate(5 minutes)", "Amazon EventBridge", "everySec 300"),
            ("rate(1 day)", "Amazon EventBridge", "everySec 86400"),
            ("at(2026-12-01T09:00:00)", "Amazon EventBridge", "type ONCE with at '2026-12-01T09:00:00'"),
            ("TZ=America/Denver 0 14 * * 1-5", "robfig/cron", "expr '0 14 * * 1-5', timezone 'America/Denver'"),
            ("CRON_TZ=Asia/Tokyo 0 6 * * ?", "robfig/cron", "expr '0 6 * * ?', timezone 'Asia/Tokyo'"),
            ("@every 5m", "robfig/cron", "everySec 300"),
            ("@every 1h30m", "robfig/cron", "everySec 5400"),
            ("@every soon", "robfig/cron", "FIXED_RATE"),
            ("every 5 minutes", "App Engine", "everySec 300"),
            ("every monday 09:00", "App Engine", "'0 9 * * MON'"),
            ("R/2026-01-01T00:00:00Z/PT1H", "ISO 8601", "anchorAt"),
            ("PT5M", "ISO 8601", "FIXED_RATE"),
            ("RRULE:FREQ=DAILY;BYHOUR=9", "iCalendar", "cron expression"),
            ("OnCalendar=daily", "systemd", "write '@daily'"),
            ("weekly", "systemd", "write '0 0 * * MON'"),
            ("Mon..Fri *-*-* 09:00", "systemd", "write '0 9 * * MON-FRI'"),
            ("*-*-* 02:30:00", "systemd", "write '30 2 * * *'"),
            (
                "Mon,Wed *-*-* 00:00:00 Europe/Berlin",
                "systemd",
                "write '0 0 * * MON,WED' with timezone 'Europe/Berlin'",
            ),
            ("*-*-01 04:00", "systemd", "write '0 4 1 * *'"),
            ("*-*-* *:0/15", "systemd", "MON-FRI"),
        ] {
            let advice = refusal(text).unwrap_or_else(|| panic!("{text} is not known")).to_string();
            assert!(advice.contains(system), "{text}: {advice}");
            assert!(advice.contains(instead), "{text}: {advice}");
        }
        for plain in
            ["", "0 2 * * *", "61 * * * *", "0 0 * * MONDAY", "1,2 3-4 * *", "hello", "0 0 1-7 * FRI-MON", "@never"]
        {
            assert!(refusal(plain).is_none(), "{plain}: {:?}", refusal(plain));
        }
    }

    #[test]
    fn intervals_of_go() {
        for (text, seconds) in [
            ("5m", Some(300)),
            ("1h30m10s", Some(5_410)),
            ("1.5h", Some(5_400)),
            ("90s", Some(90)),
            ("1500ms", Some(1)),
            ("10ms", Some(1)),
            ("", None),
            ("5", None),
            ("-5m", None),
            ("5 minutes", None),
        ] {
            assert_eq!(go_duration(text), seconds, "{text}");
        }
    }
}
