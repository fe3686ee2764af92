//! Matching in wall-clock time: the next local second that an expression names, and how many there are in a span.
//!
//! No zone and no daylight saving here; `schedule` puts these on the time line.

use super::calendar::{DAY_SECONDS, Date, Month, date_of, day_number, weekday_of};
use super::expr::{CronExpr, FIRST_YEAR, Flags, LAST_YEAR};

/// Last year in which anything fires. The zone database's arithmetic ends a year later.
pub(super) const END_YEAR: i32 = 9998;

impl CronExpr {
    /// The first matching local second at or after `from`.
    pub(super) fn next_local(&self, from: i64) -> Option<i64> {
        let today = from.div_euclid(DAY_SECONDS);
        if let Some(day) = self.next_day(today) {
            if day != today {
                return Some(day * DAY_SECONDS + i64::from(self.first_time()));
            }
            if let Some(time) = self.next_time(from.rem_euclid(DAY_SECONDS) as u32) {
                return Some(day * DAY_SECONDS + i64::from(time));
            }
            return self.next_day(today + 1).map(|day| day * DAY_SECONDS + i64::from(self.first_time()));
        }
        None
    }

    /// Whether a local second in `from..to` matches.
    pub(super) fn any_local(&self, from: i64, to: i64) -> bool {
        self.next_local(from).is_some_and(|found| found < to)
    }

    /// Matching local seconds in `from..to`: whole days by multiplication.
    pub(super) fn count_local(&self, from: i64, to: i64) -> u64 {
        if from >= to {
            return 0;
        }
        let (first_day, last_day) = (from.div_euclid(DAY_SECONDS), to.div_euclid(DAY_SECONDS));
        let before = |day: i64, second: i64| {
            if second != 0 && self.next_day(day) == Some(day) { self.times_before(second as u32) } else { 0 }
        };
        self.count_days(first_day, last_day) * self.times_a_day() + before(last_day, to.rem_euclid(DAY_SECONDS))
            - before(first_day, from.rem_euclid(DAY_SECONDS))
    }

    /// The first matching day number at or after `from`.
    fn next_day(&self, from: i64) -> Option<i64> {
        let start = date_of(from);
        if self.has_year(start.year) && self.has_month(start.month) && start.year <= END_YEAR {
            let first_weekday = weekday_of(from - i64::from(start.day - 1));
            let length = super::calendar::month_length(start.year, start.month);
            let days = self.days_in(Month { first_weekday, length }) & (u32::MAX << start.day);
            if days != 0 {
                return Some(from + i64::from(days.trailing_zeros() - start.day));
            }
        }
        self.next_day_in_later_month(start)
    }

    fn next_day_in_later_month(&self, start: Date) -> Option<i64> {
        let mut year = start.year;
        let mut later_months = u32::from(self.months) & (u32::MAX << (start.month + 1));
        loop {
            if self.has_year(year) {
                while later_months != 0 {
                    let month = later_months.trailing_zeros();
                    let first = day_number(Date { year, month, day: 1 });
                    let length = super::calendar::month_length(year, month);
                    let days = self.days_in(Month { first_weekday: weekday_of(first), length });
                    if days != 0 {
                        return Some(first + i64::from(days.trailing_zeros() - 1));
                    }
                    later_months &= later_months - 1;
                }
            }
            year = self.year_after(year)?;
            later_months = u32::from(self.months);
        }
    }

    /// The next year worth a look. The calendar repeats after 400 years, and parsing refused what is in none of them,
    /// so the search ends early.
    fn year_after(&self, year: i32) -> Option<i32> {
        let next = (year + 1).max(FIRST_YEAR);
        if self.flags.has(Flags::ANY_YEAR) {
            return (next <= END_YEAR).then_some(next);
        }
        (next..=LAST_YEAR).find(|year| self.has_year(*year))
    }

    /// Matching days in `from..to`, day numbers.
    fn count_days(&self, from: i64, to: i64) -> u64 {
        const EVERY_MONTH: u16 = 0x1ffe;
        if from >= to {
            return 0;
        }
        let named_days = self.flags.has(Flags::DAYS) || self.flags.has(Flags::WEEKDAYS);
        if !named_days && self.months == EVERY_MONTH && self.flags.has(Flags::ANY_YEAR) {
            return (to - from) as u64;
        }
        let mut count = 0;
        let mut first = from;
        while first < to {
            let date = date_of(first);
            let length = super::calendar::month_length(date.year, date.month);
            let next_month = first + i64::from(length - date.day + 1);
            if self.has_year(date.year) && self.has_month(date.month) {
                let first_weekday = weekday_of(first - i64::from(date.day - 1));
                let mut days = self.days_in(Month { first_weekday, length }) & (u32::MAX << date.day);
                if to < next_month {
                    days &= (1 << (date.day + (to - first) as u32)) - 1;
                }
                count += u64::from(days.count_ones());
            }
            first = next_month;
        }
        count
    }

    /// The first matching second of the day at or after `from`.
    fn next_time(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3_600, from / 60 % 60, from % 60);
        let first_minute = self.minutes.trailing_zeros();
        let first_second = self.seconds.trailing_zeros();
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1 {
                let seconds = self.seconds >> second;
                if seconds != 0 {
                    return Some(from + seconds.trailing_zeros());
                }
            }
            let minutes = self.minutes >> (minute + 1);
            if minutes != 0 {
                return Some(hour * 3_600 + (minute + 1 + minutes.trailing_zeros()) * 60 + first_second);
            }
        }
        let hours = self.hours >> (hour + 1);
        (hours != 0).then(|| (hour + 1 + hours.trailing_zeros()) * 3_600 + first_minute * 60 + first_second)
    }

    fn first_time(&self) -> u32 {
        self.hours.trailing_zeros() * 3_600 + self.minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros()
    }

    fn times_a_day(&self) -> u64 {
        u64::from(self.hours.count_ones() * self.minutes.count_ones() * self.seconds.count_ones())
    }

    /// Matching seconds of the day before `second_of_day`.
    fn times_before(&self, second_of_day: u32) -> u64 {
        let (hour, minute, second) = (second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60);
        let below = |mask: u64, bit: u32| (mask & ((1 << bit) - 1)).count_ones();
        let mut count = below(u64::from(self.hours), hour) * self.minutes.count_ones() * self.seconds.count_ones();
        if self.hours >> hour & 1 == 1 {
            count += below(self.minutes, minute) * self.seconds.count_ones();
            if self.minutes >> minute & 1 == 1 {
                count += below(self.seconds, second);
            }
        }
        u64::from(count)
    }
}
