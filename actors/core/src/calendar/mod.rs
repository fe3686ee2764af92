//! Which days a calendar has, and the days that are found by counting them: the next one, and the nth of a month.
//!
//! A *day number* counts days from 1970-01-01. Nothing here knows a zone or an instant. A calendar is compiled once and then asked often.

pub mod book;
pub mod gate;
pub mod ics;
pub mod rules;

use campanile_schema::{
    calendar::{CalendarDate, CalendarSpec, DayRules, MonthlyRule},
    limits::{CALENDAR_DATES, CALENDAR_LOOK_DAYS, CALENDAR_RULES},
};
use jiff::civil::{Date, Weekday};
use rules::{Rule, kept};

/// 1970-01-01.
const FIRST_DAY: Date = Date::constant(1970, 1, 1);

/// Why a calendar cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    #[error("{rules}.{field}: {why}")]
    Rule { rules: &'static str, field: &'static str, why: String },
    /// Nothing is left.
    #[error("the calendar has no day from {from} to {to}")]
    Empty { from: String, to: String },
}

/// The day number of a date.
pub fn day_number(date: CalendarDate) -> i64 {
    number_of(Date::constant(date.year(), date.month(), date.day()))
}

fn number_of(date: Date) -> i64 {
    i64::from((date - FIRST_DAY).get_days())
}

/// The date of a day number; None: beyond the years that dates have.
fn date_of(day: i64) -> Option<Date> {
    let span = jiff::Span::new().try_days(day).ok()?;
    FIRST_DAY.checked_add(span).ok()
}

/// A calendar, ready to be asked.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// None: every day.
    include: Option<CompiledRules>,
    exclude: CompiledRules,
    make_up: CompiledRules,
    minus: Vec<Calendar>,
    valid_through: Option<i64>,
}

#[derive(Clone, Debug, Default)]
struct CompiledRules {
    /// Sorted, first and last day.
    ranges: Vec<(i64, i64)>,
    /// Bit n: the day n of the week, from Monday.
    weekly: u8,
    monthly: Vec<MonthlyRule>,
    easter: Vec<i16>,
}

impl Calendar {
    /// `minus`: the calendars that the definition names.
    pub fn compile(spec: &CalendarSpec, minus: Vec<Calendar>) -> Result<Self, CalendarError> {
        let include = CompiledRules::of("include", &spec.include)?;
        Ok(Self {
            include: (!spec.include.is_empty()).then_some(include),
            exclude: CompiledRules::of("exclude", &spec.exclude)?,
            make_up: CompiledRules::of("makeUp", &spec.make_up)?,
            minus,
            valid_through: spec.valid_through.map(day_number),
        })
    }

    /// Whether it has a day.
    pub fn has(&self, day: i64) -> bool {
        let Some(date) = date_of(day) else { return false };
        let included = self.include.as_ref().is_none_or(|rules| rules.name(day, date));
        let excluded = self.exclude.name(day, date);
        let made_up = kept(Rule::MakeUp) && self.make_up.name(day, date);
        let taken = kept(Rule::Minus) && self.minus.iter().any(|other| other.has(day));
        ((included && !excluded) || made_up) && !taken
    }

    /// The last day that somebody has looked after, of this calendar and of those that are taken away from it.
    pub fn valid_through(&self) -> Option<i64> {
        let of_minus = self.minus.iter().filter_map(Self::valid_through);
        self.valid_through.into_iter().chain(of_minus).min()
    }

    /// Its first day at or after this one. None: as far as anybody looks there is none.
    pub fn next(&self, day: i64) -> Option<i64> {
        (day..=day + CALENDAR_LOOK_DAYS).find(|day| self.has(*day))
    }

    /// The nth of its days in a month, from 1, or from -1 for the last one. None: the month has not so many.
    pub fn nth_of_month(&self, year: i16, month: i8, nth: i32) -> Option<i64> {
        let first = Date::new(year, month, 1).ok()?;
        let (from, length) = (number_of(first), i64::from(first.days_in_month()));
        let place = usize::try_from(nth.unsigned_abs()).ok()?.checked_sub(1)?;
        let mut days = (from..from + length).filter(|day| self.has(*day));
        if nth > 0 || !kept(Rule::FromTheEnd) { days.nth(place) } else { days.rev().nth(place) }
    }

    /// Refuses a calendar that leaves nothing, from a day on and for as long as it is valid.
    pub fn check(&self, from: i64) -> Result<(), CalendarError> {
        let last = self.valid_through().unwrap_or(i64::MAX).min(from + CALENDAR_LOOK_DAYS);
        if (from..=last).any(|day| self.has(day)) {
            return Ok(());
        }
        let shown = |day: i64| date_of(day).map_or_else(|| day.to_string(), |date| date.to_string());
        Err(CalendarError::Empty { from: shown(from), to: shown(last.max(from)) })
    }
}

impl CompiledRules {
    fn of(rules: &'static str, spec: &DayRules) -> Result<Self, CalendarError> {
        let wrong = |field, why: String| CalendarError::Rule { rules, field, why };
        let days = spec.dates.len() + spec.ranges.len();
        if days > CALENDAR_DATES {
            return Err(wrong("dates", format!("at most {CALENDAR_DATES} dates and ranges are allowed")));
        }
        if spec.monthly.len() + spec.easter.len() > CALENDAR_RULES {
            return Err(wrong("monthly", format!("at most {CALENDAR_RULES} rules are allowed")));
        }
        if let Some(range) = spec.ranges.iter().find(|range| range.from > range.to) {
            return Err(wrong("ranges", format!("{} lies after {}", range.from, range.to)));
        }
        if !spec.monthly.iter().all(is_whole) {
            let why =
                "give 'day', or 'weekday' and 'nth'; day 1 to 31, nth 1 to 5, or negative from the end; month 1 to 12";
            return Err(wrong("monthly", why.to_owned()));
        }
        if spec.easter.iter().any(|days| !(-200..=200).contains(days)) {
            return Err(wrong("easter", "at most 200 days before or after Easter Sunday are allowed".to_owned()));
        }
        let dates = spec.dates.iter().map(|date| (day_number(*date), day_number(*date)));
        let mut ranges: Vec<_> =
            dates.chain(spec.ranges.iter().map(|range| (day_number(range.from), day_number(range.to)))).collect();
        ranges.sort_unstable();
        Ok(Self {
            ranges: joined(ranges),
            weekly: spec.weekly.iter().fold(0, |days, day| days | 1 << day.code()),
            monthly: spec.monthly.clone(),
            easter: spec.easter.clone(),
        })
    }

    fn name(&self, day: i64, date: Date) -> bool {
        let weekday = date.weekday();
        let place = self.ranges.partition_point(|(first, _)| *first <= day);
        let in_range = place.checked_sub(1).is_some_and(|place| day <= self.ranges[place].1);
        in_range
            || self.weekly >> weekday.to_monday_zero_offset() & 1 == 1
            || self.monthly.iter().any(|rule| in_month(rule, date, weekday))
            || (!self.easter.is_empty() && self.easter.contains(&after_easter(day, date)))
    }
}

/// Ranges that meet or overlap as one, so that a look-up needs the one before a day only.
fn joined(sorted: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    let mut found: Vec<(i64, i64)> = Vec::with_capacity(sorted.len());
    for (first, last) in sorted {
        match found.last_mut().filter(|before| first <= before.1 + 1) {
            Some(before) => before.1 = before.1.max(last),
            None => found.push((first, last)),
        }
    }
    found
}

fn is_whole(rule: &MonthlyRule) -> bool {
    let fits = |value: i8, most: i8| value != 0 && (-most..=most).contains(&value);
    let named = match (rule.day, rule.weekday, rule.nth) {
        (Some(day), None, None) => fits(day, 31),
        (None, Some(_), Some(nth)) => fits(nth, 5),
        (_, _, _) => false,
    };
    named && rule.month.is_none_or(|month| (1..=12).contains(&month))
}

fn in_month(rule: &MonthlyRule, date: Date, weekday: Weekday) -> bool {
    if rule.month.is_some_and(|month| month != date.month()) {
        return false;
    }
    let (day, length) = (date.day(), date.days_in_month());
    match (rule.day, rule.weekday, rule.nth) {
        (Some(named), _, _) => day == if named > 0 { named } else { length + 1 + named },
        (None, Some(named), Some(nth)) => {
            let place = if nth > 0 { (day - 1) / 7 + 1 } else { -((length - day) / 7 + 1) };
            i8::try_from(named.code()) == Ok(weekday.to_monday_zero_offset()) && place == nth
        }
        (None, _, _) => false,
    }
}

/// Days since Easter Sunday of the same year, by the algorithm that Nature published in 1876 (Meeus, Jones and Butcher).
fn after_easter(day: i64, date: Date) -> i16 {
    let year = i64::from(date.year());
    let (a, b, c) = (year % 19, year / 100, year % 100);
    let (d, e) = (b / 4, b % 4);
    let g = (8 * b + 13) / 25;
    let h = (19 * a + b - d - g + 15) % 30;
    let (i, k) = (c / 4, c % 4);
    let l = (32 + 2 * e + 2 * i - h - k) % 7;
    let m = (a + 11 * h + 19 * l) / 433;
    let month = (h + l - 7 * m + 90) / 25;
    let of_month = (h + l - 7 * m + 33 * month + 19) % 32;
    let easter = Date::new(date.year(), month as i8, of_month as i8).map_or(i64::MAX / 2, number_of);
    i16::try_from(day - easter).unwrap_or(i16::MAX)
}
