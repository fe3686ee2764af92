//! Why an expression that no calendar holds never fires, in words: `February has no 30th`.

use super::calendar::month_length;
use super::describe::{MONTHS, names, ordinal, years};
use super::expr::{CronExpr, FIRST_YEAR, Flags, LAST_YEAR};

/// One clause without a full stop. `expr` is one of which [`CronExpr::can_ever_fire`] says no.
pub(super) fn why_never(expr: &CronExpr) -> String {
    let months = names(u64::from(expr.months) >> 1, &MONTHS);
    let have = if expr.months.count_ones() == 1 { "has" } else { "have" };
    let within = if expr.flags.has(Flags::ANY_YEAR) { String::new() } else { format!(" in {}", years(expr)) };
    let weekday_alone_may_do = expr.flags.has(Flags::WEEKDAYS) && !expr.flags.has(Flags::BOTH);
    let counted_from_the_end = expr.days_from_end != 0 || expr.near_days_from_end != 0;
    let lowest = (expr.days | expr.near_days).trailing_zeros();
    if !weekday_alone_may_do && !counted_from_the_end && (29..=31).contains(&lowest) && lowest > longest(expr) {
        // Only the 29th of February depends on the year.
        let within = if lowest == 29 { within } else { String::new() };
        return format!("{months} {have} no {}{within}", ordinal(lowest));
    }
    format!("{months} {have} no such day{within}")
}

/// Days of the longest month that it names, in the years that it names.
fn longest(expr: &CronExpr) -> u32 {
    let months = (1..=12).filter(|month| expr.has_month(*month));
    let years = || (FIRST_YEAR..=LAST_YEAR).filter(|year| expr.has_year(*year));
    months.flat_map(|month| years().map(move |year| month_length(year, month))).max().unwrap_or(31)
}
