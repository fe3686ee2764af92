//! Proleptic Gregorian arithmetic on day numbers, and which days of a month a schedule names.
//!
//! A *day number* counts days from 1970-01-01; a *local second* counts seconds of wall-clock time from 1970-01-01
//! 00:00 with no zone at all. Nothing here knows a zone. The civil conversions follow Howard Hinnant's
//! "chrono-compatible low-level date algorithms".

/// Seconds of a day of wall-clock time.
pub(super) const DAY_SECONDS: i64 = 86_400;

/// A date; months and days from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Date {
    pub year: i32,
    pub month: u32,
    pub day: u32,
}

/// The date of a day number.
pub(super) fn date_of(day_number: i64) -> Date {
    let shifted = day_number + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Date { year: year as i32, month: month as u32, day: day as u32 }
}

/// The day number of a date.
pub(super) fn day_number(date: Date) -> i64 {
    let year = i64::from(date.year) - i64::from(date.month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted_month = i64::from((date.month + 9) % 12);
    let of_year = (153 * shifted_month + 2) / 5 + i64::from(date.day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// 0 = Sunday.
pub(super) fn weekday_of(day_number: i64) -> u32 {
    (day_number + 4).rem_euclid(7) as u32
}

/// Days of a month.
pub(super) fn month_length(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// One month: the weekday of its first day and its length decide which days a schedule names in it.
#[derive(Clone, Copy)]
pub(super) struct Month {
    pub first_weekday: u32,
    pub length: u32,
}

impl Month {
    pub fn of(year: i32, month: u32) -> Month {
        let first = day_number(Date { year, month, day: 1 });
        Month { first_weekday: weekday_of(first), length: month_length(year, month) }
    }

    /// Days 1..=length as bits 1..=31.
    pub fn all_days(self) -> u32 {
        (u32::MAX >> (31 - self.length)) & !1
    }

    /// Days counted back from the last one: bit n of `from_end` is the day n before it.
    pub fn days_from_end(self, from_end: u32) -> u32 {
        (from_end.reverse_bits() >> (31 - self.length)) & self.all_days()
    }

    /// The Monday-to-Friday day nearest to `day` without leaving the month (Quartz `W`).
    pub fn nearest_weekday(self, day: u32) -> u32 {
        match (self.first_weekday + day - 1) % 7 {
            6 if day > 1 => day - 1,
            6 => day + 2,
            0 if day < self.length => day + 1,
            0 => day - 2,
            _ => day,
        }
    }

    /// The days whose weekday is in `weekdays` (bit 0 = Sunday).
    pub fn days_on(self, weekdays: u32) -> u32 {
        let week = u64::from(rotate_week(weekdays, self.first_weekday));
        ((week * 0x1020_4081) << 1) as u32 & self.all_days()
    }

    /// The nth (from 1) occurrence of each weekday.
    pub fn nth_days_on(self, weekdays: u32, nth: u32) -> u32 {
        let week = u64::from(rotate_week(weekdays, self.first_weekday));
        (week << (7 * (nth - 1) + 1)) as u32 & self.all_days()
    }

    /// The last occurrence of each weekday.
    pub fn last_days_on(self, weekdays: u32) -> u32 {
        rotate_week(weekdays, (self.first_weekday + self.length) % 7) << (self.length - 6)
    }
}

/// Weekdays seen from a week that starts on `first`: bit j is the weekday `first + j`.
fn rotate_week(weekdays: u32, first: u32) -> u32 {
    ((weekdays >> first) | (weekdays << (7 - first))) & 0x7f
}

/// `2026-03-29 02:30`, with the seconds when they are not 0.
pub(super) fn show_local(local: i64) -> String {
    let date = date_of(local.div_euclid(DAY_SECONDS));
    format!("{:04}-{:02}-{:02} {}", date.year, date.month, date.day, show_time(local.rem_euclid(DAY_SECONDS)))
}

/// `02:30`, with the seconds when they are not 0.
pub(super) fn show_time(second_of_day: i64) -> String {
    let (hour, minute, second) = (second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60);
    if second == 0 { format!("{hour:02}:{minute:02}") } else { format!("{hour:02}:{minute:02}:{second:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_numbers_and_dates_are_inverse_and_in_step() {
        let mut previous = date_of(-800_000);
        for day in -799_999..1_200_000_i64 {
            let date = date_of(day);
            assert_eq!(day_number(date), day);
            let follows = if previous.day < month_length(previous.year, previous.month) {
                Date { day: previous.day + 1, ..previous }
            } else if previous.month < 12 {
                Date { month: previous.month + 1, day: 1, ..previous }
            } else {
                Date { year: previous.year + 1, month: 1, day: 1 }
            };
            assert_eq!(date, follows);
            previous = date;
        }
        assert_eq!(date_of(0), Date { year: 1970, month: 1, day: 1 });
        assert_eq!(weekday_of(0), 4);
    }

    #[test]
    fn masks_of_a_month_agree_with_counting() {
        for (first_weekday, length) in (0..7).flat_map(|first| (28..=31).map(move |length| (first, length))) {
            let month = Month { first_weekday, length };
            let weekday = |day: u32| (first_weekday + day - 1) % 7;
            for day in 1..=31 {
                let bit = 1_u32 << day;
                assert_eq!(month.all_days() & bit != 0, day <= length);
                for name in 0..7 {
                    let on = day <= length && weekday(day) == name;
                    assert_eq!(month.days_on(1 << name) & bit != 0, on);
                    assert_eq!(month.last_days_on(1 << name) & bit != 0, on && day + 7 > length);
                    for nth in 1..=5 {
                        assert_eq!(month.nth_days_on(1 << name, nth) & bit != 0, on && (day - 1) / 7 + 1 == nth);
                    }
                }
                for back in 0..=30 {
                    assert_eq!(month.days_from_end(1 << back) & bit != 0, day + back == length);
                }
            }
            for day in 1..=length {
                let nearest = month.nearest_weekday(day);
                assert!((1..=length).contains(&nearest));
                assert!((1..=5).contains(&weekday(nearest)));
                assert!(nearest.abs_diff(day) <= 2);
                assert_eq!(nearest == day, (1..=5).contains(&weekday(day)));
            }
        }
    }
}
