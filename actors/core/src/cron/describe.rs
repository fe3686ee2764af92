//! A schedule in plain English, told from the compiled form: so it says what will happen, not what was typed.

use super::expr::{CronExpr, FIRST_YEAR, Flags, LAST_YEAR};
use campanile_schema::job::Dialect;

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Times of day that are listed one by one, at most.
const TIMES_LISTED: u32 = 6;

/// One sentence without a full stop: `at 02:00 every day`.
pub fn describe(expr: &CronExpr, dialect: Dialect) -> String {
    let (times, frequent) = times(expr);
    let mut parts = vec![times];
    parts.extend(days(expr, dialect, frequent));
    if expr.months != 0x1ffe {
        parts.push(format!("in {}", names(u64::from(expr.months) >> 1, &MONTHS)));
    }
    if !expr.flags.has(Flags::ANY_YEAR) {
        parts.push(format!("in {}", years(expr)));
    }
    parts.join(" ")
}

/// The times of day, and whether they are more than a few.
fn times(expr: &CronExpr) -> (String, bool) {
    let hours = u64::from(expr.hours);
    let count = expr.seconds.count_ones() * expr.minutes.count_ones() * hours.count_ones();
    if count <= TIMES_LISTED {
        let mut listed = Vec::new();
        for hour in values(hours) {
            for minute in values(expr.minutes) {
                listed.extend(values(expr.seconds).map(|second| match second {
                    0 => format!("{hour:02}:{minute:02}"),
                    _ => format!("{hour:02}:{minute:02}:{second:02}"),
                }));
            }
        }
        return (format!("at {}", and(&listed)), false);
    }
    let every_hour = hours.count_ones() == 24;
    let lead = match (expr.seconds, expr.minutes.count_ones()) {
        (1, 60) => "every minute".to_owned(),
        (1, 1) => return (on_the_hour(expr.minutes.trailing_zeros(), hours), true),
        (1, _) => match steps(expr.minutes, 60) {
            Some((0, step)) => format!("every {step} minutes"),
            Some((first, step)) => format!("every {step} minutes from minute {first}"),
            None if every_hour => format!("at minutes {} of every hour", numbers(expr.minutes)),
            None => format!("at minutes {}", numbers(expr.minutes)),
        },
        (seconds, minutes) => {
            let lead = match (seconds.count_ones(), steps(seconds, 60)) {
                (60, _) => "every second".to_owned(),
                (_, Some((0, step))) => format!("every {step} seconds"),
                (_, Some((first, step))) => format!("every {step} seconds from second {first}"),
                (1, None) => format!("at second {}", numbers(seconds)),
                (_, None) => format!("at seconds {}", numbers(seconds)),
            };
            match (minutes, steps(expr.minutes, 60)) {
                (60, _) => lead,
                (_, Some((0, step))) => format!("{lead} in every {} minute", ordinal(step)),
                (_, Some((first, step))) => format!("{lead} in every {} minute from minute {first}", ordinal(step)),
                (1, None) => format!("{lead} of minute {}", numbers(expr.minutes)),
                (_, None) => format!("{lead} of minutes {}", numbers(expr.minutes)),
            }
        }
    };
    if every_hour { (lead, true) } else { (format!("{lead} {}", during(hours)), true) }
}

fn on_the_hour(minute: u32, hours: u64) -> String {
    let at = if minute == 0 { String::new() } else { format!(" at minute {minute}") };
    let (first, last) = (hours.trailing_zeros(), hours.ilog2());
    match steps(hours, 24) {
        _ if hours.count_ones() == 24 => format!("every hour{at}"),
        _ if hours.count_ones() == last - first + 1 => {
            format!("every hour from {first:02}:{minute:02} to {last:02}:{minute:02}")
        }
        Some((0, step)) => format!("every {step} hours{at}"),
        Some((first, step)) => format!("every {step} hours from {first:02}:{minute:02}"),
        None => format!("at minute {minute} {}", during(hours)),
    }
}

fn during(hours: u64) -> String {
    let (first, last) = (hours.trailing_zeros(), hours.ilog2());
    match steps(hours, 24) {
        _ if hours.count_ones() == last - first + 1 => {
            format!("from {first:02}:00 to {last:02}:59")
        }
        Some((0, step)) => format!("in every {} hour", ordinal(step)),
        Some((first, step)) => format!("in every {} hour from {first:02}:00", ordinal(step)),
        None => format!("in hours {}", numbers(hours)),
    }
}

fn days(expr: &CronExpr, dialect: Dialect, frequent: bool) -> Option<String> {
    match (expr.flags.has(Flags::DAYS), expr.flags.has(Flags::WEEKDAYS)) {
        (false, false) if frequent => None,
        (false, false) => Some("every day".to_owned()),
        (true, false) => Some(format!("on {}", days_of_month(expr))),
        (false, true) => Some(format!("on {}", weekdays(expr))),
        (true, true) if expr.flags.has(Flags::BOTH) => {
            Some(format!("on {}, only when that is {}", days_of_month(expr), weekdays(expr)))
        }
        (true, true) => {
            Some(format!("on {} and also on {} ({dialect}: either is enough)", days_of_month(expr), weekdays(expr)))
        }
    }
}

fn days_of_month(expr: &CronExpr) -> String {
    let mut parts = Vec::new();
    match (expr.days.count_ones(), steps(u64::from(expr.days) >> 1, 31)) {
        (0, _) => {}
        (1, _) => parts.push(format!("day {} of the month", numbers(u64::from(expr.days)))),
        (31, _) => parts.push("every day".to_owned()),
        (_, Some((0, step))) => parts.push(format!("every {} day from the 1st of the month", ordinal(step))),
        (_, _) => parts.push(format!("days {} of the month", numbers(u64::from(expr.days)))),
    }
    parts.extend(values(u64::from(expr.days_from_end)).map(|back| match back {
        0 => "the last day of the month".to_owned(),
        1 => "the day before the last day of the month".to_owned(),
        _ => format!("the day {back} days before the last day of the month"),
    }));
    parts.extend(
        values(u64::from(expr.near_days))
            .map(|day| format!("the working day (Monday to Friday) nearest to day {day} of the month")),
    );
    parts.extend(values(u64::from(expr.near_days_from_end)).map(|back| match back {
        0 => "the last working day (Monday to Friday) of the month".to_owned(),
        _ => format!("the working day (Monday to Friday) nearest to {back} days before the last day of the month"),
    }));
    and(&parts)
}

fn weekdays(expr: &CronExpr) -> String {
    let mut parts = Vec::new();
    match expr.weekdays.every() {
        0 => {}
        0x7f => parts.push("every weekday and weekend day".to_owned()),
        every => {
            // Monday first, so that a weekend is one run.
            let from_monday = u64::from(every >> 1 | (every & 1) << 6);
            let mut monday_first = WEEKDAYS;
            monday_first.rotate_left(1);
            parts.push(names(from_monday, &monday_first));
        }
    }
    for nth in 1..=5 {
        parts.extend(
            values(u64::from(expr.weekdays.nth(nth)))
                .map(|day| format!("the {} {} of the month", ordinal(nth), WEEKDAYS[day as usize])),
        );
    }
    parts.extend(
        values(u64::from(expr.weekdays.last())).map(|day| format!("the last {} of the month", WEEKDAYS[day as usize])),
    );
    and(&parts)
}

pub(super) fn years(expr: &CronExpr) -> String {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for year in (FIRST_YEAR..=LAST_YEAR).filter(|year| expr.has_year(*year)) {
        match runs.last_mut() {
            Some((_, last)) if *last == year - 1 => *last = year,
            _ => runs.push((year, year)),
        }
    }
    and(&shown(&runs, ToString::to_string))
}

/// `1, 5 and 10 to 20`.
fn numbers(mask: u64) -> String {
    and(&shown(&runs(mask), ToString::to_string))
}

/// Names of a mask whose bit 0 is the first name.
pub(super) fn names(mask: u64, names: &[&str]) -> String {
    and(&shown(&runs(mask), |index| names[*index as usize].to_owned()))
}

/// Runs of three and more become `a to b`.
fn shown<T: Copy + PartialEq>(runs: &[(T, T)], show: impl Fn(&T) -> String) -> Vec<String> {
    runs.iter()
        .map(|(first, last)| if first == last { show(first) } else { format!("{} to {}", show(first), show(last)) })
        .collect()
}

fn runs(mask: u64) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for value in values(mask) {
        match runs.last_mut() {
            Some((first, last)) if *last + 1 == value && mask >> (*first + 2) & 1 == 1 => *last = value,
            _ => runs.push((value, value)),
        }
    }
    runs
}

/// A whole field in steps: at least three values, none missing before the first or after the last.
pub(super) fn steps(mask: u64, size: u32) -> Option<(u32, u32)> {
    let first = mask.trailing_zeros();
    let rest = mask & mask.wrapping_sub(1);
    if mask.count_ones() < 3 {
        return None;
    }
    let step = rest.trailing_zeros() - first;
    let same = (first..size).step_by(step as usize).fold(0_u64, |all, value| all | 1 << value);
    (step > 1 && first < step && same == mask).then_some((first, step))
}

pub(super) fn values(mask: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |bit| mask >> bit & 1 == 1)
}

fn and(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

pub(super) fn ordinal(number: u32) -> String {
    let suffix = match (number % 10, number % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}
