//! The two day fields: what they take beyond the common grammar.
//!
//! Day of the month: `L` (last day), `L-3` (three days before it), `15W` (weekday nearest to the 15th), `LW`, `L-3W`.
//! Weekday: `5L` or `FRIL` (last Friday), `2#3` or `TUE#3` (third Tuesday), `L` (Saturday, as in Quartz).

use super::cursor::{Cursor, value};
use super::error::CronError;
use super::expr::{CronExpr, Flags};
use super::fields::Field;
use super::items::{Item, Listed, bits, item};
use campanile_schema::job::Dialect;

/// Furthest day before the last one of a month.
const FURTHEST_FROM_END: u32 = 30;

/// How a day field takes part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// `?`: the other field decides.
    Open,
    /// `*`: every day.
    Star,
    /// It names days and starts with `*` (`*/2`).
    StarredDays,
    Days,
}

/// Reads the start of a day field: `*` and `?` alone need no more.
fn given(cursor: &Cursor<'_>) -> Given {
    match (&cursor.text[cursor.at..cursor.end], cursor.peek()) {
        (b"?", _) => Given::Open,
        (b"*", _) => Given::Star,
        (_, Some(b'*')) => Given::StarredDays,
        (_, _) => Given::Days,
    }
}

/// Reads the day-of-month field.
pub(super) fn days_of_month(
    cursor: &mut Cursor<'_>,
    field: &Field,
    seed: u64,
    expr: &mut CronExpr,
) -> Result<Given, CronError> {
    let given = given(cursor);
    if matches!(given, Given::Open | Given::Star) {
        return Ok(given);
    }
    let mut listed = Listed::default();
    loop {
        listed.add(day_of_month(cursor, field, seed, expr)?);
        if !cursor.another(field)? {
            listed.note(field, &mut expr.flags);
            return Ok(given);
        }
    }
}

/// The item that was read. A form of the day fields alone counts as a single value.
fn day_of_month(cursor: &mut Cursor<'_>, field: &Field, seed: u64, expr: &mut CronExpr) -> Result<Item, CronError> {
    if cursor.take(b'L') {
        let back = if cursor.take(b'-') { days_back(cursor)? } else { 0 };
        if cursor.take(b'W') {
            expr.near_days_from_end |= 1 << back;
        } else {
            expr.days_from_end |= 1 << back;
        }
        return Ok(Item::one(field.max));
    }
    if cursor.peek_upper() == Some(b'W') {
        return Err(CronError::at(cursor.at, "the day is missing before W").suggest("write 15W or LW"));
    }
    let start = cursor.at;
    if cursor.number().is_some() && cursor.peek_upper() == Some(b'W') {
        cursor.at = start;
        let day = value(cursor, field)?;
        cursor.at += 1;
        expr.near_days |= 1 << day;
        return Ok(Item::one(day));
    }
    cursor.at = start;
    let item = item(cursor, field, seed)?;
    expr.days |= bits(item, field) as u32;
    Ok(item)
}

fn days_back(cursor: &mut Cursor<'_>) -> Result<u32, CronError> {
    let start = cursor.at;
    match cursor.number() {
        Some(back @ 0..=FURTHEST_FROM_END) => Ok(back),
        Some(_) => Err(CronError::at(start, format!("L- takes 0 to {FURTHEST_FROM_END} days"))),
        None => Err(CronError::at(start, "a number of days is missing after L-").suggest("write L-3")),
    }
}

/// Reads the weekday field.
pub(super) fn weekdays(
    cursor: &mut Cursor<'_>,
    field: &Field,
    seed: u64,
    expr: &mut CronExpr,
) -> Result<Given, CronError> {
    let given = given(cursor);
    if matches!(given, Given::Open | Given::Star) {
        return Ok(given);
    }
    let mut listed = Listed::default();
    loop {
        listed.add(weekday(cursor, field, seed, expr)?);
        if !cursor.another(field)? {
            listed.note(field, &mut expr.flags);
            return Ok(given);
        }
    }
}

fn weekday(cursor: &mut Cursor<'_>, field: &Field, seed: u64, expr: &mut CronExpr) -> Result<Item, CronError> {
    const SATURDAY: u32 = 6;
    let from_sunday = |value: u32| (value - field.first_name) % 7;
    match cursor.peek_upper() {
        Some(b'L') => {
            cursor.at += 1;
            expr.weekdays.add_every(1 << SATURDAY);
            return Ok(Item::one(field.open_max));
        }
        Some(b'#') => {
            return Err(CronError::at(cursor.at, "the weekday is missing before #").suggest("write FRI#2"));
        }
        Some(b'W') if cursor.at + 1 == cursor.end => {
            return Err(CronError::at(cursor.at, "W belongs to the day-of-month field"));
        }
        Some(b'*' | b'H') | None => {}
        Some(_) => {
            let start = cursor.at;
            let value = value(cursor, field)?;
            let weekday = from_sunday(value);
            if cursor.take(b'L') {
                expr.weekdays.add_last(weekday);
                return Ok(Item::one(value));
            }
            if cursor.take(b'#') {
                expr.weekdays.add_nth(weekday, nth(cursor)?);
                return Ok(Item::one(value));
            }
            cursor.at = start;
        }
    }
    let item = item(cursor, field, seed)?;
    let values = bits(item, field) >> field.first_name;
    // Bit 7 is the second Sunday of UNIX.
    expr.weekdays.add_every(((values | values >> 7) & 0x7f) as u32);
    Ok(item)
}

fn nth(cursor: &mut Cursor<'_>) -> Result<u32, CronError> {
    let start = cursor.at;
    match cursor.number() {
        Some(nth @ 1..=5) => Ok(nth),
        Some(_) => Err(CronError::at(start, "# takes 1 to 5: which of the month's").suggest("the last one is FRIL")),
        None => Err(CronError::at(start, "a number from 1 to 5 is missing after #").suggest("write FRI#2")),
    }
}

/// Joins the two fields by the rule of the dialect. `at` is where the weekday field starts.
pub(super) fn join(
    expr: &mut CronExpr,
    dialect: Dialect,
    days: Given,
    weekdays: Given,
    at: usize,
) -> Result<(), CronError> {
    let names = |given: Given| matches!(given, Given::StarredDays | Given::Days);
    match dialect {
        Dialect::Quartz if names(days) && names(weekdays) => {
            return Err(CronError::at(at, "QUARTZ takes the day of the month or the weekday, not both")
                .suggest("write ? in one of the two, or set dialect UNIX"));
        }
        Dialect::Quartz if days == Given::Open && weekdays == Given::Open => {
            return Err(CronError::at(at, "both day fields are '?'").suggest("write * in one of the two"));
        }
        Dialect::Quartz | Dialect::Unix | Dialect::Auto => {}
    }
    expr.flags.set(Flags::DAYS, names(days));
    expr.flags.set(Flags::WEEKDAYS, names(weekdays));
    let starred = days == Given::StarredDays || weekdays == Given::StarredDays;
    expr.flags.set(Flags::BOTH, names(days) && names(weekdays) && starred);
    Ok(())
}
