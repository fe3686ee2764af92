//! A second, slow and plain meaning of cron expressions, to test the compiled one against: generated expressions come
//! as text and as a model, and the model is asked second by second with jiff's civil calendar.
#![allow(clippy::unwrap_used, dead_code)]

pub mod generate;
pub mod oracle;

use campanile_core::mix::{STEP, mix};
use campanile_schema::job::Dialect;
use jiff::civil::{Date, DateTime, Weekday};
use std::collections::BTreeSet;

/// SplitMix64: the same cases in every run.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        number
    }

    /// A number of `from..=to`.
    pub fn of(&mut self, from: i64, to: i64) -> i64 {
        from + (self.next() % (to - from + 1) as u64) as i64
    }

    pub fn chance(&mut self, percent: i64) -> bool {
        self.of(0, 99) < percent
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.of(0, items.len() as i64 - 1) as usize]
    }
}

/// One thing that a day-of-month field can name.
#[derive(Clone, Debug, PartialEq)]
pub enum DayRule {
    On(i8),
    FromEnd(i8),
    Near(i8),
    NearFromEnd(i8),
}

/// One thing that a weekday field can name; 0 = Sunday.
#[derive(Clone, Debug, PartialEq)]
pub enum WeekdayRule {
    Every(i8),
    Nth(i8, i8),
    Last(i8),
}

/// What an expression means.
#[derive(Clone, Debug)]
pub struct Model {
    pub text: String,
    pub dialect: Dialect,
    pub seconds: BTreeSet<i64>,
    pub minutes: BTreeSet<i64>,
    pub hours: BTreeSet<i64>,
    pub months: BTreeSet<i64>,
    /// `None` = every year.
    pub years: Option<BTreeSet<i64>>,
    /// `None` = the field names no days (`*`, `?`).
    pub days: Option<Vec<DayRule>>,
    pub weekdays: Option<Vec<WeekdayRule>>,
    /// Both day fields must match.
    pub both: bool,
    /// Whether the second, minute and hour fields have an open end.
    pub open: [bool; 3],
}

impl Model {
    pub fn elapsed(&self) -> bool {
        self.open.contains(&true)
    }

    pub fn matches(&self, at: DateTime) -> bool {
        self.seconds.contains(&i64::from(at.second()))
            && self.minutes.contains(&i64::from(at.minute()))
            && self.hours.contains(&i64::from(at.hour()))
            && self.matches_date(at.date())
    }

    pub fn matches_date(&self, date: Date) -> bool {
        if !self.months.contains(&i64::from(date.month())) {
            return false;
        }
        if self.years.as_ref().is_some_and(|years| !years.contains(&i64::from(date.year()))) {
            return false;
        }
        let day = self.days.as_ref().map(|rules| rules.iter().any(|rule| rule.names(date)));
        let weekday = self.weekdays.as_ref().map(|rules| rules.iter().any(|rule| rule.names(date)));
        match (day, weekday) {
            (None, None) => true,
            (Some(one), None) | (None, Some(one)) => one,
            (Some(day), Some(weekday)) if self.both => day && weekday,
            (Some(day), Some(weekday)) => day || weekday,
        }
    }
}

impl DayRule {
    fn names(&self, date: Date) -> bool {
        let length = date.days_in_month();
        match *self {
            DayRule::On(day) => date.day() == day,
            DayRule::FromEnd(back) => date.day() == length - back,
            DayRule::Near(day) => day <= length && date.day() == nearest(date, day),
            DayRule::NearFromEnd(back) => length - back >= 1 && date.day() == nearest(date, length - back),
        }
    }
}

/// The day from Monday to Friday of `date`'s month that is nearest to `day`.
fn nearest(date: Date, day: i8) -> i8 {
    (1..=date.days_in_month())
        .filter(|other| {
            let weekday = date.with().day(*other).build().unwrap().weekday();
            !matches!(weekday, Weekday::Saturday | Weekday::Sunday)
        })
        .min_by_key(|other| (other - day).abs())
        .unwrap()
}

impl WeekdayRule {
    fn names(&self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        match *self {
            WeekdayRule::Every(day) => weekday == day,
            WeekdayRule::Nth(day, nth) => weekday == day && (date.day() + 6) / 7 == nth,
            WeekdayRule::Last(day) => weekday == day && date.day() + 7 > date.days_in_month(),
        }
    }
}
