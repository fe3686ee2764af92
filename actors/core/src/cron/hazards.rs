//! What may surprise the owner of a schedule: daylight saving ahead, months that are passed over, uneven steps.

use super::calendar::{DAY_SECONDS, date_of, month_length, show_local, show_time};
use super::describe::steps;
use super::expr::{CronExpr, FIRST_YEAR, Flags, LAST_YEAR};
use super::schedule::CronSchedule;
use super::stretch::{Stretch, Stretches};
use campanile_schema::job::{Gap, Overlap};
use campanile_schema::limits::{CRON_HAZARD_DAYS, CRON_HAZARD_LINES};

const EVERY_HOUR: u32 = 0xff_ffff;
/// Any year without a leap day.
const COMMON_YEAR: i32 = 2027;

/// One line for each hazard from `from_ms` on, two years ahead for daylight saving; empty when there is none.
pub fn hazards(schedule: &CronSchedule, from_ms: i64) -> Vec<String> {
    let mut lines = of_expression(&schedule.expr);
    let from = from_ms.div_euclid(1_000).max(0);
    let until = from + CRON_HAZARD_DAYS * DAY_SECONDS;
    let zone = schedule.zone.iana_name().unwrap_or("this zone");
    for stretch in Stretches::from(&schedule.zone, from).take_while(|stretch| stretch.start <= until) {
        if stretch.start > from {
            lines.extend(gap(schedule, &stretch, zone));
            lines.extend(overlap(schedule, &stretch, zone));
        }
    }
    lines.truncate(CRON_HAZARD_LINES);
    lines
}

/// What the expression alone tells.
fn of_expression(expr: &CronExpr) -> Vec<String> {
    let mut lines = Vec::new();
    let both_given = expr.flags.has(Flags::DAYS) && expr.flags.has(Flags::WEEKDAYS);
    if both_given && !expr.flags.has(Flags::BOTH) {
        lines.push("both day fields are given: it fires when either of them matches".to_owned());
    }
    if expr.flags.has(Flags::DAYS) && !both_given {
        let named = expr.days | expr.near_days;
        let from_end = expr.days_from_end | expr.near_days_from_end;
        let first = named.trailing_zeros();
        let short = |month| expr.has_month(month) && month_length(COMMON_YEAR, month) < first;
        if named != 0 && from_end == 0 && (1..=12).any(short) {
            lines.push(format!("months without a day {first} are passed over; L is the last day of every month"));
        }
    }
    of_steps(expr, &mut lines);
    lines
}

/// Steps that do not come out even, and steps that are longer than their range.
fn of_steps(expr: &CronExpr, lines: &mut Vec<String>) {
    let weekdays = u64::from(expr.weekdays.every());
    // Months and days as if counted from 0.
    let fields = [
        ("second", expr.seconds, 60, "seconds", "minute"),
        ("minute", expr.minutes, 60, "minutes", "hour"),
        ("hour", u64::from(expr.hours), 24, "hours", "day"),
        ("day-of-month", u64::from(expr.days) >> 1, 31, "days", "month"),
        ("month", u64::from(expr.months) >> 1, 12, "months", "year"),
        ("weekday", weekdays, 7, "days", "week"),
    ];
    for (place, (name, mask, size, unit, whole)) in (0..).zip(fields) {
        let stepped = expr.flags.has(Flags::stepped(place));
        let is_time = place < 3;
        if stepped && mask.count_ones() == 1 {
            lines.push(format!(
                "the step of the {name} field goes beyond the end of its range: only its first value is due, never a second"
            ));
            continue;
        }
        // A list of two values is no step, unless it was written as one; days and months only count as written.
        let Some((first, step)) = (if stepped { every(mask, size) } else { steps(mask, size).filter(|_| is_time) })
        else {
            continue;
        };
        let across = size - mask.ilog2() + first;
        if across == step && name != "day-of-month" {
            continue;
        }
        let after = match name {
            // Months differ in length.
            "day-of-month" => format!("day {} comes after the month's last, however near", first + 1),
            _ if across == 1 => format!("1 {} after the last", unit.trim_end_matches('s')),
            _ => format!("{across} {unit} after the last"),
        };
        lines.push(format!("{step} {unit} do not fill the {whole}: the steps start anew in each {whole}, {after}"));
    }
    if expr.flags.has(Flags::STEP_BEYOND) {
        lines.push(
            "a step in a list goes beyond the end of its range: of that item only the first value is due".to_owned(),
        );
    }
    if expr.flags.has(Flags::stepped(6)) && years_named(expr) == 1 {
        lines
            .push("the step of the year field goes beyond the end of its range: only its first year is due".to_owned());
    }
}

/// Step and first value of a field that was written as steps to its end; `None` when a range ends them before.
fn every(mask: u64, size: u32) -> Option<(u32, u32)> {
    let first = mask.trailing_zeros();
    let step = (mask & mask.wrapping_sub(1)).trailing_zeros().checked_sub(first).filter(|step| *step < size)?;
    let same = (first..size).step_by(step as usize).fold(0_u64, |all, value| all | 1 << value);
    (first < step && same == mask).then_some((first, step))
}

fn years_named(expr: &CronExpr) -> usize {
    (FIRST_YEAR..=LAST_YEAR).filter(|year| expr.has_year(*year)).count()
}

fn gap(schedule: &CronSchedule, stretch: &Stretch, zone: &str) -> Option<String> {
    let (from, to) = stretch.gap_before()?;
    let (first, times) = named_times(&schedule.expr, from, to, ["does", "do"])?;
    let (left, right) = (clock(from, first), clock(to, first));
    let missing = format!("{times} not exist in {zone}: the clock goes from {left} to {right}");
    if schedule.expr.follows_elapsed_time() {
        return follows(schedule, &missing, "nothing runs instead");
    }
    let at = utc(stretch.start);
    Some(match schedule.gap {
        Gap::Shift => format!("{missing}; gap SHIFT: it fires once, at {at}"),
        Gap::Skip if schedule.expr.any_local(to, to + 1) => {
            format!("{missing}; gap SKIP: only the regular fire at {at} stays")
        }
        Gap::Skip => format!("{missing}; gap SKIP: it does not fire"),
    })
}

fn overlap(schedule: &CronSchedule, stretch: &Stretch, zone: &str) -> Option<String> {
    let from = stretch.local(stretch.start);
    let to = from + stretch.repeated_at_start();
    let (first, times) = named_times(&schedule.expr, from, to, ["comes", "come"])?;
    let (left, right) = (clock(to, first), clock(from, first));
    let twice = format!("{times} twice in {zone}: the clock goes back from {left} to {right}");
    if schedule.expr.follows_elapsed_time() {
        return follows(schedule, &twice, "it runs both times");
    }
    let (early, late) = (utc(first - stretch.offset_before), utc(first - stretch.offset));
    Some(match schedule.overlap {
        Overlap::First => format!("{twice}; overlap FIRST: it fires at {early}, not at {late}"),
        Overlap::Second => format!("{twice}; overlap SECOND: it fires at {late}, not at {early}"),
        Overlap::Both => format!("{twice}; overlap BOTH: it fires at {early} and again at {late}"),
    })
}

/// The first local second of `from..to` that the expression names, and words for all of them.
fn named_times(expr: &CronExpr, from: i64, to: i64, verbs: [&str; 2]) -> Option<(i64, String)> {
    let first = expr.next_local(from).filter(|first| *first < to)?;
    let shown = show_local(first);
    let words = match expr.count_local(from, to) {
        1 => format!("{shown} {}", verbs[0]),
        2 => format!("{shown} and 1 other time {}", verbs[1]),
        count => format!("{shown} and {} other times {}", count - 1, verbs[1]),
    };
    Some((first, words))
}

/// For a schedule that runs in every hour of the day a shorter or longer day is no surprise.
fn follows(schedule: &CronSchedule, change: &str, so: &str) -> Option<String> {
    (schedule.expr.hours != EVERY_HOUR).then(|| format!("{change}; it follows elapsed time, so {so}"))
}

/// The time of `local`, with its date when that differs from the one of `beside`.
fn clock(local: i64, beside: i64) -> String {
    let day = |local: i64| date_of(local.div_euclid(DAY_SECONDS));
    if day(local) == day(beside) { show_time(local.rem_euclid(DAY_SECONDS)) } else { show_local(local) }
}

fn utc(second: i64) -> String {
    format!("{} UTC", show_local(second))
}
