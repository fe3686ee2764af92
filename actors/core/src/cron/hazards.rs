//! What may surprise the owner of a schedule: daylight saving ahead, months that are passed over, uneven steps.

use super::calendar::month_length;
use super::clock_changes;
use super::describe::steps;
use super::expr::{CronExpr, FIRST_YEAR, Flags, LAST_YEAR};
use super::schedule::CronSchedule;
use campanile_schema::limits::CRON_HAZARD_LINES;

/// Any year without a leap day.
const COMMON_YEAR: i32 = 2027;

/// One line for each hazard from `from_ms` on, two years ahead for daylight saving; empty when there is none.
pub fn hazards(schedule: &CronSchedule, from_ms: i64) -> Vec<String> {
    let mut lines = of_expression(&schedule.expr);
    let zone = schedule.zone.iana_name().unwrap_or("this zone");
    let changes = clock_changes::ahead(schedule, from_ms).unwrap_or_default();
    let noticed = changes.iter().filter(|change| !change.is_unnoticed(schedule));
    lines.extend(noticed.map(|change| change.hazard(schedule, zone)));
    lines.truncate(CRON_HAZARD_LINES);
    lines
}

/// One line for each change of the clock in `from_ms..=until_ms` that removes or repeats an instant of the schedule, two years ahead
/// at most.
pub fn clock_hazards(schedule: &CronSchedule, from_ms: i64, until_ms: i64) -> Vec<String> {
    let zone = schedule.zone.iana_name().unwrap_or("this zone");
    let changes = clock_changes::ahead(schedule, from_ms).unwrap_or_default();
    let noticed = changes.iter().filter(|change| !change.is_unnoticed(schedule) && change.at_ms() <= until_ms);
    noticed.map(|change| change.hazard(schedule, zone)).collect()
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
